# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Preparing a node: what is planned, what is written, what is refused."""

from __future__ import annotations

import os
import stat
import sys

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import bringing, files, prerequisites
from ansible_collections.nodenet.cni.plugins.module_utils.node.needs import Needs

SYSCTLS = "etc/sysctl.d/90-nodenet-cni.conf"
MODULES = "etc/modules-load.d/nodenet-cni.conf"
NM = "etc/NetworkManager/conf.d/90-nodenet-cni.conf"
ZONE = "etc/firewalld/zones/nodenet-cni.xml"
MODPROBE = """#!/bin/sh
mkdir -p "{root}/sys/module/$1" && echo live > "{root}/sys/module/$1/initstate"
[ "$1" = br_netfilter ] || exit 0
mkdir -p "{root}/proc/sys/net/bridge"
echo 0 > "{root}/proc/sys/net/bridge/bridge-nf-call-iptables"
"""


def needs_of(*types, families=(4,)):
    needs = Needs()
    needs.add_plugins(types, families)
    return needs


@pytest.fixture
def ready(node):
    """A node whose kernel has what a bridge needs, as modules that are not loaded."""
    node.module_files("bridge", "br_netfilter", "veth", "nf_conntrack", "nf_nat", "macvlan")
    node.program("modprobe", MODPROBE.format(root=node.root))
    return node


def bring(node, needs, check=False, **more):
    places = node.places()
    plan = prerequisites.make_plan(needs, places, **more)
    result = plan.result()
    if not check and plan.changed:
        bringing.carry_out(plan, places)
    return result


def content(root):
    found = {}
    for here, _folders, names in os.walk(str(root)):
        for name in names:
            path = os.path.join(here, name)
            with open(path, "rb") as stream:
                found[path] = (os.stat(path).st_mode, stream.read())
    return found


def actions(result, what):
    return {row.get("name") or row.get("path"): row["action"] for row in result[what]}


def test_check_mode_predicts_the_run_and_a_second_run_changes_nothing(ready):
    needs = needs_of("bridge", "portmap")
    before = content(ready.root)
    predicted = bring(ready, needs, check=True)
    assert content(ready.root) == before
    done = bring(ready, needs)
    assert done == predicted
    assert done["changed"] is True
    assert set(actions(done, "modules").values()) == {"loaded"}
    assert actions(done, "sysctls") == {"net.ipv4.ip_forward": "set", "net.bridge.bridge-nf-call-iptables": "set"}
    assert ready.read("proc/sys/net/bridge/bridge-nf-call-iptables") == "1\n"
    assert ready.read("proc/sys/net/ipv4/ip_forward") == "1\n"
    assert ready.read(MODULES).splitlines()[1:] == ["br_netfilter", "bridge", "nf_conntrack", "nf_nat", "veth"]
    assert ready.read(SYSCTLS).splitlines()[1:] == ["net.ipv4.ip_forward = 1", "net.bridge.bridge-nf-call-iptables = 1"]
    assert stat.S_IMODE(os.stat(str(ready.root / SYSCTLS)).st_mode) == 0o644
    after = content(ready.root)
    again = bring(ready, needs)
    assert again["changed"] is False
    assert again["diff"] == []
    assert content(ready.root) == after


def test_the_diff_shows_files_kernel_and_directories(ready):
    result = bring(ready, needs_of("bridge"), check=True, directories=[str(ready.root / "var/cni")])
    shown = {one["after_header"]: one for one in result["diff"]}
    assert "net.ipv4.ip_forward = 1\n" in shown[str(ready.root / SYSCTLS)]["after"]
    assert shown["the running kernel"]["before"] == "net.ipv4.ip_forward = 0\nnet.bridge.bridge-nf-call-iptables =\n"
    assert "module br_netfilter\n" in shown["the running kernel"]["after"]
    assert shown[str(ready.root / "var/cni")]["after"] == "directory, mode 0755\n"


def test_what_holds_already_is_not_written_again(ready):
    ready.write("sys/module/macvlan/initstate", "live\n")
    result = bring(ready, needs_of("macvlan"))
    assert actions(result, "modules") == {"macvlan": "unchanged"}
    ready.setting("net/ipv4/ip_forward", "1")
    stamp = os.stat(str(ready.root / "proc/sys/net/ipv4/ip_forward")).st_mtime_ns
    result = bring(ready, needs_of("ptp"))
    assert actions(result, "sysctls") == {"net.ipv4.ip_forward": "unchanged"}
    assert os.stat(str(ready.root / "proc/sys/net/ipv4/ip_forward")).st_mtime_ns == stamp


def test_built_in_modules_are_not_listed_for_the_boot(node):
    node.builtin("macvlan")
    result = bring(node, needs_of("macvlan"))
    assert result["changed"] is False
    assert node.read(MODULES) is None


def test_a_need_that_went_leaves_the_files_and_the_last_one_takes_them_along(ready):
    bring(ready, needs_of("bridge", "macvlan"))
    bring(ready, needs_of("macvlan"))
    assert ready.read(SYSCTLS) is None
    assert ready.read(MODULES).splitlines()[1:] == ["macvlan"]
    result = bring(ready, Needs())
    assert result["changed"] is True
    assert ready.read(MODULES) is None
    assert ready.read("proc/sys/net/ipv4/ip_forward") == "1\n"


def test_without_apply_the_running_kernel_plays_no_part(node):
    needs = needs_of("bridge", "vrf")
    result = bring(node, needs, apply=False)
    assert node.read(MODULES).splitlines()[1:] == ["br_netfilter", "bridge", "veth", "vrf"]
    assert node.read(SYSCTLS) is not None
    assert node.read("proc/sys/net/ipv4/ip_forward") == "0\n"
    assert set(actions(result, "sysctls").values()) == {"unchanged"}
    assert result["findings"] == []
    assert bring(node, needs, apply=False)["changed"] is False


def test_a_file_with_another_mode_is_put_right_and_the_diff_says_so(ready):
    bring(ready, needs_of("macvlan"))
    (ready.root / MODULES).chmod(0o600)
    result = bring(ready, needs_of("macvlan"))
    assert actions(result, "files")[str(ready.root / MODULES)] == "replaced"
    assert result["diff"][0]["before_header"].endswith("(mode 0600)")
    assert stat.S_IMODE(os.stat(str(ready.root / MODULES)).st_mode) == 0o644


# --- refusals: nothing changes


@pytest.fixture
def refused(node):
    def attempt(needs, **more):
        before = content(node.root)
        with pytest.raises(NodenetError) as failure:
            bring(node, needs, **more)
        assert content(node.root) == before
        return str(failure.value)

    return attempt


def test_a_module_that_the_kernel_does_not_have(ready, refused):
    message = refused(needs_of("bridge", "vrf"))
    assert message.startswith(
        "Cannot load kernel module vrf on this node, needed by vrf: kernel 6.1.0-test has no such module"
    )


def test_a_module_but_no_modprobe(ready, refused):
    (ready.programs / "modprobe").unlink()
    assert "there is no modprobe" in refused(needs_of("bridge"))


def test_a_modprobe_that_fails(ready, refused):
    ready.program("modprobe", "#!/bin/sh\necho 'Operation not permitted'; exit 1\n")
    assert refused(needs_of("bridge")) == "Cannot load kernel module br_netfilter on this node: Operation not permitted"


def test_a_setting_that_the_kernel_does_not_have(ready, refused):
    (ready.root / "proc/sys/net/ipv6/conf/all/forwarding").unlink()
    message = refused(needs_of("ptp", families=(6,)))
    assert message == (
        "Cannot set net.ipv6.conf.all.forwarding to 1 on this node, needed by ptp: "
        "the running kernel has no such setting"
    )


def test_a_directory_in_the_place_of_a_file(ready, refused):
    (ready.root / SYSCTLS).mkdir(parents=True)
    assert "Is a directory" in refused(needs_of("ptp"))


def test_a_file_in_the_place_of_a_directory(ready, refused):
    ready.write("etc/sysctl.d", "")
    assert "Not a directory" in refused(needs_of("ptp"))
    ready.write("var/cni", "")
    assert "something else has that name" in refused(needs_of("macvlan"), directories=[str(ready.root / "var/cni")])


def test_settings_go_back_when_a_later_one_fails(node):
    """The kernel takes the first and not the second; what is put back is what was there."""
    node.module_files("veth")
    node.write("sys/module/veth/initstate", "live\n")
    places = node.places()
    needs = needs_of("ptp", families=(4, 6))
    plan = prerequisites.make_plan(needs, places)
    (node.root / "proc/sys/net/ipv6/conf/all/forwarding").unlink()  # IPv6 goes away after the plan was made
    with pytest.raises(NodenetError, match="Cannot set net.ipv6.conf.all.forwarding"):
        bringing.carry_out(plan, places)
    assert node.read("proc/sys/net/ipv4/ip_forward") == "0\n"
    assert node.read(SYSCTLS) is None
    assert not (node.root / "etc/sysctl.d").exists()


@pytest.mark.parametrize("mode", ["", "755x", "0955", "17777", "0444", 493])
def test_modes_that_are_none(mode):
    with pytest.raises(NodenetError, match="has to be octal and quoted"):
        prerequisites.parse_mode(str(mode))


# --- what others set


@pytest.mark.parametrize(
    ("name", "code"), [("etc/sysctl.d/99-hardening.conf", "NODE006"), ("etc/sysctl.d/10-old.conf", "NODE007")]
)
def test_a_contradiction_is_a_finding_and_stays_as_it_is(ready, name, code):
    path = ready.write(name, "net.ipv4.ip_forward = 0\n")
    result = bring(ready, needs_of("ptp"))
    assert [(one["code"], one["where"]) for one in result["findings"]] == [(code, str(path))]
    assert ready.read(name) == "net.ipv4.ip_forward = 0\n"
    assert ready.read("proc/sys/net/ipv4/ip_forward") == "1\n"
    assert bring(ready, needs_of("ptp"))["changed"] is False


def test_a_node_in_a_container_is_told_what_cannot_be_known(node):
    node.setting("net/bridge/bridge-nf-call-iptables", "1")
    result = bring(node, needs_of("bridge"))
    assert [one["code"] for one in result["findings"]] == ["NODE003", "NODE003"]  # bridge and veth
    assert "br_netfilter" in node.read(MODULES)


ROUTE = "{to} {plen} " + "0" * 32 + " 00 fe800000000000000000000000000001 00000400 00000001 00000000 {flags} {name}\n"


def route(flags, name, plen="00"):
    return ROUTE.format(to="0" * 32, plen=plen, flags=flags, name=name)


def test_a_default_route_by_router_advertisement_survives_the_forwarding(ready):
    ready.write(
        "proc/net/ipv6_route", route("00450003", "eth0") + route("00000003", "eth1") + route("00040001", "eth2", "40")
    )
    for name in ("eth0", "eth1", "eth2"):
        ready.setting(f"net/ipv6/conf/{name}/accept_ra", "1")
    result = bring(ready, needs_of("ptp", families=(6,)))
    assert [row["name"] for row in result["sysctls"]] == [
        "net.ipv6.conf.eth0.accept_ra",
        "net.ipv6.conf.all.forwarding",
    ]
    assert ready.read("proc/sys/net/ipv6/conf/eth0/accept_ra") == "2\n"
    assert [one["code"] for one in result["findings"]] == ["NODE015"]
    # kept while the route is away for a moment
    ready.write("proc/net/ipv6_route", "")
    again = bring(ready, needs_of("ptp", families=(6,)))
    assert again["changed"] is False


def test_a_program_that_handles_the_advertisements_is_left_alone(ready):
    ready.write("proc/net/ipv6_route", route("00450003", "eth0"))
    ready.setting("net/ipv6/conf/eth0/accept_ra", "0")
    result = bring(ready, needs_of("ptp", families=(6,)))
    assert [row["name"] for row in result["sysctls"]] == ["net.ipv6.conf.all.forwarding"]


def test_ipv6_that_is_switched_off_and_cloud_setup_are_findings(ready):
    ready.setting("net/ipv6/conf/all/disable_ipv6", "1")
    ready.write("etc/systemd/system/timers.target.wants/nm-cloud-setup.timer", "")
    result = bring(ready, needs_of("ptp", families=(6,)))
    assert [one["code"] for one in result["findings"]] == ["NODE013", "NODE014"] or [
        one["code"] for one in result["findings"]
    ] == ["NODE014", "NODE013"]


# --- directories


def test_directories_are_created_with_their_mode_and_others_keep_theirs(ready):
    there, new = ready.root / "there", ready.root / "a/b"
    there.mkdir()
    there.chmod(0o700)
    old = os.umask(0o077)
    try:
        result = bring(ready, Needs(), directories=[str(there), str(new)], directory_mode=0o750)
    finally:
        os.umask(old)
    assert [(row["mode"], row["action"]) for row in result["directories"]] == [
        ("0700", "unchanged"),
        ("0750", "created"),
    ]
    assert stat.S_IMODE(there.stat().st_mode) == 0o700
    assert stat.S_IMODE(new.stat().st_mode) == 0o750


def test_a_directory_that_others_can_write_to_is_a_finding(ready):
    there = ready.root / "there"
    there.mkdir()
    there.chmod(0o777)
    result = bring(ready, Needs(), directories=[str(there)])
    assert [(one["code"], one["where"]) for one in result["findings"]] == [("NODE016", str(there))]
    assert result["changed"] is False


# --- NetworkManager and firewalld that do not run


def test_a_daemon_that_is_not_installed_gets_no_file(ready):
    result = bring(ready, needs_of("bridge"))
    assert result["exemptions"] == []
    assert len(result["files"]) == 2


def test_networkmanager_gets_a_drop_in_where_it_is_installed(ready):
    (ready.root / "etc/NetworkManager").mkdir()
    result = bring(ready, needs_of("bridge"))
    assert ready.read(NM).splitlines()[1:] == [
        "[keyfile]",
        "unmanaged-devices+=interface-name:cni0;interface-name:veth*",
    ]
    assert result["exemptions"][0]["interfaces"] == ["cni0", "veth*"]
    assert result["exemptions"][0]["action"] == "unchanged"
    assert bring(ready, needs_of("portmap", "bridge"))["changed"] is True  # conntrack
    bring(ready, needs_of("bridge", "portmap"), exempt=[])
    assert ready.read(NM) is None


def test_a_file_that_makes_networkmanager_forget_ours_is_a_finding(ready):
    later = ready.write("etc/NetworkManager/conf.d/99-x.conf", "[keyfile]\nunmanaged-devices=mac:00:00:5e:00:53:01\n")
    result = bring(ready, needs_of("bridge"))
    assert [(one["code"], one["where"]) for one in result["findings"]] == [("NODE010", str(later))]


def test_firewalld_gets_a_zone_for_bridges_and_leaves_the_owners_zones_alone(ready):
    theirs = ready.write("etc/firewalld/zones/dmz.xml", '<zone><interface name="br1"/></zone>')
    needs = needs_of("bridge")
    needs.bridges.append("br1")
    result = bring(ready, needs)
    assert 'interface name="cni0"' in ready.read(ZONE)
    assert "br1" not in ready.read(ZONE)
    assert [one["code"] for one in result["findings"]] == ["NODE011"]
    assert theirs.read_text() == '<zone><interface name="br1"/></zone>'
    assert bring(ready, needs)["changed"] is False


# --- removal


def test_absent_takes_away_what_we_wrote_and_nothing_else(ready):
    (ready.root / "etc/NetworkManager").mkdir()
    (ready.root / "etc/firewalld").mkdir()
    others = [ready.write("etc/sysctl.d/50-x.conf", "a.b = 1\n"), ready.write("etc/modules-load.d/x.conf", "x\n")]
    bring(ready, needs_of("bridge"))
    places = ready.places()
    plan = prerequisites.make_removal(places)
    assert len([one for one in plan.result()["files"] if one["action"] == "removed"]) == 4
    bringing.carry_out(plan, places)
    assert all(one.exists() for one in others)
    assert [ready.read(name) for name in (SYSCTLS, MODULES, NM, ZONE)] == [None] * 4
    assert ready.read("proc/sys/net/ipv4/ip_forward") == "1\n"
    assert prerequisites.make_removal(ready.places()).changed is False


def test_left_overs_of_a_killed_run_go(ready):
    left = ready.write("etc/sysctl.d/.nodenet-tmp-1-abc", "half")
    bring(ready, needs_of("ptp"))
    assert not left.exists()
    assert [name for name in os.listdir(str(ready.root / "etc/sysctl.d")) if files.TEMPORARY_PREFIX in name] == []


# --- the real thing, in a network namespace of its own

REAL = """
import json, os, signal, subprocess, sys, time
from ansible_collections.nodenet.cni.plugins.module_utils.node import bringing, prerequisites, survey
from ansible_collections.nodenet.cni.plugins.module_utils.node.needs import Needs
root = sys.argv[1]
places = lambda: survey.Places(
    modules_load_dir=root + "/modules-load.d", sysctl_dir=root + "/sysctl.d", sysctl_others=[],
    networkmanager_dir=root + "/NetworkManager/conf.d", firewalld_dir=root + "/firewalld",
    systemd=root, nm_vendor=[], programs=[root + "/sbin"])
needs = Needs(bridge_nf_call=False)
needs.add_sysctl("net/ipv4/ip_forward", "1", "test")
needs.add_sysctl("net/ipv6/conf/all/forwarding", "1", "test")
needs.add_sysctl("net/ipv4/conf/all/rp_filter", "2", "test")
needs.add_sysctl("net/ipv4/ip_local_port_range", "32768 60000", "test")
needs.interfaces += ["cni0", "veth*"]
needs.bridges += ["cni0"]
def get(key):
    with open("/proc/sys/" + key) as stream:
        return " ".join(stream.read().split())
def bring():
    there = places()
    plan = prerequisites.make_plan(needs, there)
    result = plan.result()
    bringing.carry_out(plan, there)
    return result
for key in ("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", "net/ipv4/conf/all/rp_filter"):
    with open("/proc/sys/" + key, "w") as stream:
        stream.write("0")
"""


def test_settings_of_the_real_kernel(in_namespace, tmp_path):
    before = content("/proc/sys/net/ipv4/conf/all")
    code = """
first = bring()
values = [get(key) for key in sorted(needs.sysctls)]
print(json.dumps([first["changed"], [row["action"] for row in first["sysctls"]], values, bring()["changed"]]))
"""
    printed = in_namespace(REAL + code, tmp_path)
    assert printed.strip() == '[true, ["set", "set", "set", "set"], ["2", "1", "32768 60000", "1"], false]'
    assert content("/proc/sys/net/ipv4/conf/all") == before


def test_a_value_that_the_kernel_refuses_changes_nothing(in_namespace, tmp_path):
    code = """
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
needs.add_sysctl("net/ipv4/ip_local_port_range", "60000 1", "test")
try:
    bring()
except NodenetError as exc:
    print(exc)
print(get("net/ipv4/ip_forward"), os.listdir(root))
"""
    lines = in_namespace(REAL + code, tmp_path).splitlines()
    assert lines[0] == "Cannot set net.ipv4.ip_local_port_range to 60000 1 on this node: Invalid argument"
    assert lines[1] == "0 []"


def test_a_read_only_procfs_is_refused_unless_everything_is_right_already(in_namespace, tmp_path):
    code = """
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
bring()
for options in (["--bind"], ["-o", "remount,ro,bind"]):
    subprocess.run(["mount", *options, "/proc/sys", "/proc/sys"], check=True)
print(bring()["changed"])
needs.add_sysctl("net/ipv4/conf/all/log_martians", "1", "test")
try:
    bring()
except NodenetError as exc:
    print(exc)
"""
    lines = in_namespace(REAL + code, tmp_path).splitlines()
    assert lines == [
        "False",
        "Cannot set net.ipv4.conf.all.log_martians to 1 on this node, needed by test: "
        "/proc/sys is mounted read-only here, as in a container",
    ]


def test_running_daemons_are_told_once(in_namespace, tmp_path):
    """Stand-ins under the daemons' names, in a network namespace where no real one is."""
    (tmp_path / "sbin").mkdir()
    (tmp_path / "NetworkManager").mkdir()
    (tmp_path / "firewalld").mkdir()
    # no shell: what it forks has its name for a moment, and may have a smaller process id
    daemon = (
        f"#!{sys.executable} -IS\nimport signal, sys\n"
        "def note(word):\n    with open(sys.argv[1], 'a') as log:\n        print(word, file=log)\n"
        "signal.signal(signal.SIGHUP, lambda *_: note('reload'))\nnote('started')\nwhile True:\n    signal.pause()\n"
    )
    for name in ("NetworkManager", "firewalld"):
        (tmp_path / "sbin" / name).write_text(daemon)
        (tmp_path / "sbin" / name).chmod(0o755)
    (tmp_path / "sbin" / "firewall-cmd").write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
        f'case "$1" in --get-*) cat {tmp_path}/zone 2>/dev/null || {{ echo "no zone"; exit 2; }};; '
        f"*) echo trusted > {tmp_path}/zone;; esac\n"
    )
    (tmp_path / "sbin" / "firewall-cmd").chmod(0o755)
    code = """
started = [subprocess.Popen([root + "/sbin/" + name, root + "/" + name + ".log"], start_new_session=True)
           for name in ("NetworkManager", "firewalld")]
def log(name):
    try:
        with open(root + "/" + name + ".log") as stream:
            return stream.read().split()
    except FileNotFoundError:
        return []
def wait(name, count):
    deadline = time.time() + 10
    while len(log(name)) < count and time.time() < deadline:
        time.sleep(0.02)
try:
    wait("NetworkManager", 1), wait("firewalld", 1)
    first = bring()
    wait("NetworkManager", 2)
    second = bring()
    time.sleep(0.2)
    print(json.dumps([log("NetworkManager"), log("firewalld")]))
    print(json.dumps([[(row["service"], row["running"], row["action"]) for row in one["exemptions"]]
                      for one in (first, second)]))
    print(second["changed"])
finally:
    for one in started:
        os.killpg(one.pid, signal.SIGKILL)
        one.wait()
"""
    lines = in_namespace(REAL + code, tmp_path).splitlines()
    assert lines[0] == '[["started", "reload"], ["started"]]'
    assert lines[1] == (
        '[[["NetworkManager", true, "reloaded"], ["firewalld", true, "accepted"]], '
        '[["NetworkManager", true, "unchanged"], ["firewalld", true, "unchanged"]]]'
    )
    assert lines[2] == "False"
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == [
        "--get-zone-of-interface=cni0",
        "--zone=trusted --add-interface=cni0",
        "--get-zone-of-interface=cni0",
    ]
