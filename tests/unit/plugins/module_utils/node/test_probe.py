# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A probe from end to end, with shell scripts as plugins that work in its namespace. Nothing leaves that namespace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import netns
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import probe, probe_record

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("nsenter") or not shutil.which("ip"),
    reason="not run: network namespaces need root and the programs ip and nsenter",
)

HEAD = """#!/bin/sh
RECORD=%s
cat >"$RECORD/stdin.$CNI_COMMAND"
echo "${0##*/} $CNI_COMMAND $CNI_CONTAINERID" >>"$RECORD/calls"
inside() { nsenter --net="$CNI_NETNS" ip "$@"; }
"""
# an interface, and the gateway as an address of the same namespace, which answers itself
MAKE = """
case $CNI_COMMAND in
ADD)
    inside link add "$CNI_IFNAME" type veth peer name gw
    inside link set "$CNI_IFNAME" up
    inside link set gw up
    inside addr add 10.5.0.2/24 dev "$CNI_IFNAME"
    inside -6 addr add fd05::2/64 dev "$CNI_IFNAME" nodad
    inside addr add 10.5.0.1/32 dev gw
    inside -6 addr add fd05::1/128 dev gw nodad
    inside route add 10.6.0.0/16 via 10.5.0.3 dev "$CNI_IFNAME"
    ;;
DEL)
    [ -z "$CNI_NETNS" ] || inside link del "$CNI_IFNAME" || :
    ;;
esac
"""
PRINT = "[ $CNI_COMMAND != ADD ] || cat <<'END'\n%s\nEND\n"


def result(netns_path="", **changes):
    document = {
        "cniVersion": "1.0.0",
        "interfaces": [{"name": "eth0", "sandbox": "there"}],
        "ips": [
            {"interface": 0, "address": "10.5.0.2/24", "gateway": "10.5.0.1"},
            {"interface": 0, "address": "fd05::2/64", "gateway": "fd05::1"},
        ],
        "routes": [{"dst": "10.6.0.0/16", "gw": "10.5.0.3"}],
    }
    document.update(changes)
    return document


def reachable(**changes):
    """A result all of whose gateways answer."""
    return result(**dict({"routes": [{"dst": "10.6.0.0/16"}]}, **changes))


class Node:
    def __init__(self, root):
        self.root = root
        for name in ("bin", "netns", "state"):
            (root / name).mkdir()

    def plugin(self, name="main", script=MAKE, answer=None):
        path = self.root / "bin" / name
        path.write_text(HEAD % self.root + script + (PRINT % json.dumps(answer) if answer is not None else ""))
        path.chmod(0o755)

    def options(self, *types, **more):
        network = {"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": one} for one in types or ("main",)]}
        options = {
            "network": None,
            "conflist": None,
            "config": network,
            "conf_dir": str(self.root / "net.d"),
            "bin_dir": str(self.root / "bin"),
            "state_dir": str(self.root / "state"),
            "netns_dir": str(self.root / "netns"),
            "ifname": "eth0",
            "args": {},
            "capabilities": {},
            "timeout": 20.0,
            "lock_timeout": 5.0,
            "allow_shared": False,
            "require_gateway": True,
            "flannel_subnet_file": str(self.root / "none"),
        }
        return dict(options, **more)

    def probe(self, *types, check_mode=False, **more):
        return probe.probe(self.options(*types, **more), check_mode)

    def fails(self, *types, **more):
        with pytest.raises(NodenetError) as caught:
            self.probe(*types, **more)
        return str(caught.value), caught.value.facts

    def calls(self):
        path = self.root / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        if path.exists():
            path.unlink()
        return [line.rsplit(" ", 1)[0] for line in lines]

    def nothing_left(self):
        found = [path.name for path in (self.root / "netns").iterdir()]
        folder = self.root / "state" / "probes"
        found += [path.name for path in folder.glob("**/*") if path.name != "results"] if folder.exists() else []
        return not found

    def start(self, *types, **more):
        """A probe in another process; its message or its result goes to a file."""
        script = (
            "import json, sys\n"
            "from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError\n"
            "from ansible_collections.nodenet.cni.plugins.module_utils.node import probe\n"
            "try:\n"
            "    print(json.dumps(probe.probe(json.loads(sys.argv[1]), False)))\n"
            "except NodenetError as error:\n"
            "    sys.exit(str(error))\n"
        )
        command = [sys.executable, "-c", script, json.dumps(self.options(*types, **more))]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)

    def wait_for(self, name, seconds=20):
        path = self.root / name
        deadline = time.monotonic() + seconds
        while not path.exists() or not path.read_text():
            assert time.monotonic() < deadline, "nothing wrote %s" % name
            time.sleep(0.02)
        return path.read_text().strip()


@pytest.fixture
def node(tmp_path):
    made = Node(tmp_path)
    yield made
    for path in (tmp_path / "netns").iterdir():
        netns.remove(str(path))


def ended(pid, seconds=5):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with open("/proc/%s/stat" % pid) as stream:
                if stream.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def codes(found):
    return [item["code"] for item in found["findings"]]


def test_a_network_that_works(node):
    node.plugin(answer=reachable())
    node.plugin("second", "", reachable())
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
    found = node.probe("main", "second")
    assert (found["changed"], found["probed"], found["findings"]) == (False, True, [])
    assert (found["network"], found["source"], found["plugins"]) == ("net", "config", ["main", "second"])
    assert found["result"] == reachable()
    assert [(one["check"], one["target"], one["ok"]) for one in found["checks"]] == [
        ("interface", "eth0", True),
        ("address", "10.5.0.2/24", True),
        ("address", "fd05::2/64", True),
        ("route", "10.6.0.0/16", True),
        ("gateway", "10.5.0.1", True),
        ("gateway", "fd05::1", True),
    ]
    assert [(one["command"], one["plugin"], one["error"]) for one in found["calls"]] == [
        ("ADD", "main", None),
        ("ADD", "second", None),
        ("CHECK", "main", None),
        ("CHECK", "second", None),
        ("DEL", "second", None),
        ("DEL", "main", None),
    ]
    assert found["calls"][0]["result"] == reachable()
    assert 0 < found["calls"][0]["seconds"] < found["seconds"]
    assert found["container_id"].startswith("nodenet-probe-")
    assert found["netns"] == str(node.root / "netns" / found["container_id"])
    assert json.loads((node.root / "stdin.DEL").read_text())["prevResult"] == reachable()
    assert node.nothing_left()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)] == handlers


def test_what_the_task_says_reaches_the_plugins(node):
    node.plugin(script=MAKE + 'env >"$RECORD/env.$CNI_COMMAND"\n', answer=reachable())
    options = node.options(args={"IgnoreUnknown": "1", "K8S_POD_NAME": "p"}, capabilities={"mac": "m", "ips": []})
    options["config"]["plugins"][0]["capabilities"] = {"mac": True}
    found = probe.probe(options, False)
    for command in ("ADD", "CHECK", "DEL"):
        environment = dict(line.split("=", 1) for line in (node.root / ("env." + command)).read_text().splitlines())
        assert environment["CNI_ARGS"] == "IgnoreUnknown=1;K8S_POD_NAME=p"
        assert environment["CNI_NETNS"] == found["netns"]
        assert "/usr/sbin" in environment["PATH"].split(":")
        assert json.loads((node.root / ("stdin." + command)).read_text())["runtimeConfig"] == {"mac": "m"}


def test_modes_of_what_stays_do_not_depend_on_the_umask(node):
    node.plugin(script=MAKE + 'mkdir -p "$RECORD/data"\n', answer=reachable())
    before = os.umask(0o077)
    try:
        node.probe(netns_dir=str(node.root / "run" / "netns"))
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)
    for folder in ("data", "run", "run/netns"):
        assert (node.root / folder).stat().st_mode & 0o777 == 0o755


def test_a_plugin_that_fails(node):
    node.plugin(answer=reachable())
    node.plugin(
        "second", 'echo why >&2\n[ $CNI_COMMAND = DEL ] || { echo \'{"code": 7, "msg": "no luck"}\'; exit 1; }\n'
    )
    node.plugin("third", "", reachable())
    message, facts = node.fails("main", "second", "third")
    assert message == "Cannot prove network net (config): plugin second failed at ADD: no luck"
    assert codes(facts) == ["NODE021"]
    assert node.calls() == ["main ADD", "second ADD", "third DEL", "second DEL", "main DEL"]
    assert facts["calls"][1]["log"] == "why\n"
    assert (facts["result"], facts["checks"]) == ({}, [])
    assert node.nothing_left()


def test_a_plugin_that_is_not_there(node):
    node.plugin(answer=reachable())
    message, facts = node.fails("main", "none")
    assert 'plugin none failed at ADD: plugin type="none" failed (add): failed to find plugin "none" in path' in message
    # DEL starts with the plugin that is missing, as in a runtime; what the others made goes nevertheless
    assert node.calls() == ["main ADD", "main DEL"]
    assert node.nothing_left()
    node.plugin("none", "", reachable())
    assert node.probe("main", "none")["leftovers"] == []


def test_no_plugin_is_there(node):
    message, _facts = node.fails("none", "neither")
    assert "plugin none failed at ADD" in message
    assert node.nothing_left()


@pytest.mark.parametrize(
    ("kind", "more", "kept"),
    [
        ("macvlan", {}, False),
        ("bridge", {"ipMasq": True}, True),
        ("macvlan", {"ipam": {"type": "whereabouts"}}, True),
        ("another", {}, True),
    ],
)
def test_a_del_that_fails_as_its_add_did(node, kind, more, kept):
    """A wrong master, for one: the record of a probe that made nothing would call that DEL for ever."""
    node.plugin(kind, "exit 1\n")
    config = {"cniVersion": "1.0.0", "name": "net", "plugins": [dict(more, type=kind)]}
    message, _facts = node.fails(config=config, allow_shared=True)
    assert f"plugin {kind} failed at ADD" in message
    assert node.nothing_left() is not kept


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"ifname": "a/b"}, "with interface 'a/b': interface name contains / or : or whitespace"),
        ({"ifname": "x" * 16}, "interface name is too long"),
        ({"ifname": "lo"}, "with interface 'lo': the pod's first interface needs a name of its own"),
        ({"ifname": ""}, "with interface ''"),
        ({"args": {"A;B": "c"}}, "with 'A;B' in args: a name and its value hold no ';' and no '='"),
        ({"args": {"A": "b=c"}}, "with 'A' in args"),
        ({"args": {"": "c"}}, "with '' in args"),
    ],
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_wishes_that_no_plugin_could_take(node, wish, words, check_mode):
    node.plugin(answer=reachable())
    message, _facts = node.fails(check_mode=check_mode, **wish)
    assert message.startswith("Cannot probe with ")
    assert words in message
    assert node.calls() == []
    assert not (node.root / "state" / "probes").exists()


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("rubbish", "failed to unmarshal raw result: invalid character 'r'"),
        ("", "failed to unmarshal raw result: unexpected end of JSON input"),
        ('{"cniVersion": "1.0.0", "ips": [{"address": "10.5.0.2"}]}', "invalid CIDR address: 10.5.0.2"),
    ],
)
def test_a_plugin_that_prints_rubbish(node, printed, said):
    node.plugin(script="[ $CNI_COMMAND != ADD ] || printf '%%s' '%s'\n" % printed)
    message, facts = node.fails()
    assert "plugin main failed at ADD: " in message
    assert said in message
    assert node.calls() == ["main ADD", "main DEL"]
    assert node.nothing_left()


def test_a_plugin_that_hangs_is_ended_with_all_it_started(node):
    hang = '[ $CNI_COMMAND != ADD ] || { setsid sleep 60 & sleep 60 & echo $! >"$RECORD/child"; wait; }\n'
    node.plugin(script=MAKE)
    node.plugin("second", hang)
    node.plugin("main", answer=reachable())
    started = time.monotonic()
    message, facts = node.fails("main", "second", timeout=1.0)
    assert time.monotonic() - started < 10
    assert message == "Cannot prove network net (config): plugin second gave no answer to ADD within 1 s"
    assert codes(facts) == ["NODE022"]
    assert [one["timed_out"] for one in facts["calls"]] == [False, True, False, False]
    assert node.calls() == ["main ADD", "second ADD", "second DEL", "main DEL"]
    assert ended(node.wait_for("child"))
    assert not with_id(facts["container_id"])
    assert node.nothing_left()


def with_id(container_id):
    """The processes that have a container id in their environment."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/environ" % name, "rb") as stream:
                if container_id.encode() in stream.read():
                    found.append(name)
        except OSError:
            pass
    return found


def test_a_failing_del_is_tried_again_by_the_next_probe(node):
    node.plugin(script=MAKE + '[ $CNI_COMMAND != DEL ] || [ -e "$RECORD/ok" ] || exit 1\n', answer=reachable())
    message, facts = node.fails()
    assert "plugin main failed at DEL: netplugin failed with no error message: exit status 1" in message
    assert list((node.root / "netns").iterdir()) == []
    assert not node.nothing_left()
    node.calls()

    message, second = node.fails()
    assert "NODE031" in codes(second)
    assert node.calls() == ["main DEL", "main ADD", "main CHECK", "main DEL"]

    assert node.probe(check_mode=True)["leftovers"] == sorted([facts["container_id"], second["container_id"]])
    (node.root / "ok").write_text("")
    found = node.probe()
    assert found["leftovers"] == sorted([facts["container_id"], second["container_id"]])
    assert found["changed"]
    assert node.nothing_left()
    assert not node.probe()["changed"]


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (reachable(interfaces=[{"name": "eth1", "sandbox": "there"}]), "NODE024", "interface eth1, which is not there"),
        (
            reachable(ips=[{"interface": 0, "address": "10.5.0.9/24"}]),
            "NODE025",
            "address 10.5.0.9/24 on eth0, which has 10.5.0.2/24, fd05::2/64",
        ),
        (reachable(ips=[{"interface": 0, "address": "10.5.0.2/25"}]), "NODE025", "address 10.5.0.2/25 on eth0"),
        (reachable(routes=[{"dst": "10.7.0.0/16"}]), "NODE027", "route to 10.7.0.0/16, which is not there"),
        (
            reachable(routes=[{"dst": "10.6.0.0/16", "gw": "10.5.0.4"}]),
            "NODE027",
            "route to 10.6.0.0/16 over 10.5.0.4",
        ),
    ],
)
def test_a_result_that_is_not_so(node, monkeypatch, answer, code, said):
    monkeypatch.setattr(probe, "GATEWAY_TIMEOUT", 0.3)
    node.plugin(answer=answer)
    message, facts = node.fails()
    assert code in codes(facts)
    assert said in " ".join(item["text"] for item in facts["findings"])
    assert False in [one["ok"] for one in facts["checks"]]
    assert node.nothing_left()


def test_an_interface_that_is_down(node):
    node.plugin(
        script=MAKE + '[ $CNI_COMMAND != ADD ] || inside link set "$CNI_IFNAME" down\n', answer=reachable(routes=[])
    )
    message, facts = node.fails()
    assert "the result names interface eth0, which is down" in message


def test_a_gateway_that_is_silent(node, monkeypatch):
    monkeypatch.setattr(probe, "GATEWAY_TIMEOUT", 0.5)
    node.plugin(answer=result())
    message, facts = node.fails()
    assert message.startswith("Cannot prove network net (config): gateway 10.5.0.3 answers neither")
    assert codes(facts) == ["NODE028"]
    assert [(one["target"], one["ok"]) for one in facts["checks"] if one["check"] == "gateway"] == [
        ("10.5.0.1", True),
        ("fd05::1", True),
        ("10.5.0.3", False),
    ]
    found = node.probe(require_gateway=False)
    assert codes(found) == ["NODE028"]
    assert node.nothing_left()


def test_what_could_not_be_checked_is_said(node):
    node.plugin(answer=reachable(cniVersion="0.3.1", ips=[{"version": "4", "address": "10.5.0.2/24"}], routes=[]))
    options = node.options()
    options["config"]["cniVersion"] = "0.3.1"
    found = probe.probe(options, False)
    assert [item["text"] for item in found["findings"]] == [
        "reaching a gateway was not checked: the result of ADD names none",
        "CHECK was not checked: there is none in version 0.3.1",
    ]
    assert node.calls() == ["main ADD", "main DEL"]
    options = node.options()
    options["config"]["disableCheck"] = True
    assert "CHECK was not checked: the configuration says disableCheck" in [
        item["text"] for item in probe.probe(options, False)["findings"]
    ]


def test_a_check_that_fails(node):
    node.plugin(script=MAKE + "[ $CNI_COMMAND != CHECK ] || exit 1\n", answer=reachable())
    message, facts = node.fails()
    assert "plugin main failed at CHECK" in message
    assert node.calls() == ["main ADD", "main CHECK", "main DEL"]
    assert node.nothing_left()


def test_check_mode_runs_nothing(node):
    node.plugin(answer=reachable())
    before = sorted(str(path) for path in node.root.glob("**/*"))
    options = node.options("main", "none")
    options["config"]["plugins"][0]["ipam"] = {"type": "static"}
    found = probe.probe(options, True)
    assert (found["changed"], found["probed"], found["calls"]) == (False, False, [])
    assert [item["text"][:20] for item in found["findings"]] == ["plugin 'static' is n", "plugin 'none' is not"]
    assert sorted(str(path) for path in node.root.glob("**/*")) == before
    assert node.calls() == []


def test_a_shared_segment_is_left_alone(node):
    node.plugin("macvlan", answer=reachable())
    found = node.probe("macvlan")
    assert (found["probed"], found["skipped"], found["changed"]) == (False, True, False)
    assert codes(found) == ["NODE032"]
    assert "plugin macvlan puts it on a segment that reaches beyond this node" in found["msg"]
    assert node.calls() == []
    assert node.probe("macvlan", allow_shared=True)["probed"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_tidily(node, number):
    node.plugin(script=MAKE + '[ $CNI_COMMAND != ADD ] || { echo $$ >"$RECORD/pid"; exec sleep 60; }\n')
    with node.start() as process:
        pid = node.wait_for("pid")
        process.send_signal(number)
        _out, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "ended by signal %d; what it had made was taken down" % number in errors
    assert ended(pid)
    assert node.calls() == ["main ADD", "main DEL"]
    assert node.nothing_left()


def test_what_a_killed_probe_leaves_goes_with_the_next(node):
    node.plugin(script=MAKE + '[ $CNI_COMMAND != ADD ] || { echo $$ >"$RECORD/pid"; exec sleep 60; }\n')
    with node.start() as process:
        pid = node.wait_for("pid")
        process.kill()
        process.communicate(timeout=20)
    assert not ended(pid, 0.2)
    (space,) = (node.root / "netns").iterdir()
    assert node.calls() == ["main ADD"]

    assert node.probe(check_mode=True)["leftovers"] == [space.name]
    assert not ended(pid, 0.2)
    node.plugin(answer=reachable())
    found = node.probe()
    assert (found["leftovers"], found["changed"]) == ([space.name], True)
    assert ended(pid)
    assert node.calls() == ["main DEL", "main ADD", "main CHECK", "main DEL"]
    assert node.nothing_left()


def test_what_a_killed_probe_leaves_goes_also_when_its_record_is_lost(node):
    node.plugin(script=MAKE + '[ $CNI_COMMAND != ADD ] || { echo $$ >"$RECORD/pid"; exec sleep 60; }\n')
    data = node.root / "data" / "net"
    data.mkdir(parents=True)
    with node.start() as process:
        pid = node.wait_for("pid")
        process.kill()
        process.communicate(timeout=20)
    (space,) = (node.root / "netns").iterdir()
    shutil.rmtree(str(node.root / "state" / "probes"))
    (data / "10.5.0.7").write_bytes(space.name.encode() + b"\r\neth0")
    (data / "10.5.0.8").write_bytes(b"somebody\r\neth0")
    (data / "10.5.0.9").write_bytes(b"nodenet-probe-young\r\neth0")
    for name in ("10.5.0.7", "10.5.0.8"):
        os.utime(str(data / name), (1, 1))
    node.calls()
    release = '[ $CNI_COMMAND != DEL ] || grep -l "$CNI_CONTAINERID" %s/10.* | xargs -r rm\n' % data
    node.plugin(script=MAKE + release, answer=reachable())
    options = node.options()
    ranges = [[{"subnet": "10.5.0.0/24"}]]
    options["config"]["plugins"][0]["ipam"] = {"type": "host-local", "dataDir": str(data.parent), "ranges": ranges}
    found = probe.probe(options, False)
    assert found["leftovers"] == [space.name]
    assert ended(pid)
    assert sorted(path.name for path in data.iterdir()) == ["10.5.0.8", "10.5.0.9"]
    assert node.calls() == ["main DEL", "main ADD", "main CHECK", "main DEL"]
    assert node.nothing_left()


def test_a_running_probe_is_not_disturbed_by_another(node):
    wait = '[ $CNI_COMMAND != CHECK ] || { echo x >"$RECORD/waits"; until [ -e "$RECORD/go" ]; do sleep 0.05; done; }'
    node.plugin("slow", MAKE + wait + "\n", reachable())
    node.plugin(answer=reachable())
    with node.start("slow") as process:
        node.wait_for("waits")
        first = node.probe()
        other_state = node.probe(state_dir=str(node.root / "other"))
        assert (first["leftovers"], other_state["leftovers"]) == ([], [])
        (node.root / "go").write_text("")
        out, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert json.loads(out)["findings"] == []
    assert node.nothing_left()


def test_addresses_that_del_leaves_are_told(node):
    data = node.root / "data" / "net"
    data.mkdir(parents=True)
    keep = '[ $CNI_COMMAND != ADD ] || printf "%%s\\r\\neth0" "$CNI_CONTAINERID" >%s/10.5.0.2\n' % data
    node.plugin(script=MAKE + keep, answer=reachable())
    options = node.options()
    options["config"]["plugins"][0]["ipam"] = {
        "type": "host-local",
        "dataDir": str(data.parent),
        "subnet": "10.5.0.0/24",
    }
    with pytest.raises(NodenetError) as caught:
        probe.probe(options, False)
    assert "what the plugins made is not gone after DEL: address 10.5.0.2 in" in str(caught.value)
    assert codes(caught.value.facts) == ["NODE030"]


def test_a_namespace_that_cannot_be_made_calls_nobody(node):
    node.plugin(answer=reachable())
    (node.root / "file").write_text("")
    with pytest.raises(NodenetError, match="Cannot make network namespace .*: not a directory"):
        node.probe(netns_dir=str(node.root / "file"))
    assert node.calls() == []
    assert node.nothing_left()


def test_a_record_that_cannot_be_kept_stops_it(node):
    node.plugin(answer=reachable())
    (node.root / "state" / "probes").write_text("")
    with pytest.raises(NodenetError, match="Cannot keep the record of a probe in .*: file exists"):
        node.probe()
    assert node.calls() == []


def test_time_limits(node):
    node.plugin(answer=reachable())
    for seconds in (0, -1, 4000, float("nan")):
        with pytest.raises(NodenetError, match="Cannot probe within a timeout of"):
            node.probe(timeout=seconds)


def test_a_record_that_cannot_be_read_goes(node):
    node.plugin(answer=reachable())
    folder = node.root / "state" / "probes"
    folder.mkdir()
    (folder / "nodenet-probe-00.json").write_text("{")
    (folder / ".new-nodenet-probe-01").write_text("{")
    (folder / "README").write_text("somebody's")
    netns.create(str(node.root / "netns" / "nodenet-probe-00"))
    netns.create(str(node.root / "netns" / "cni-00"))
    found = node.probe()
    assert found["leftovers"] == ["nodenet-probe-00"]
    assert sorted(path.name for path in folder.iterdir()) == ["README", "results"]
    assert [path.name for path in (node.root / "netns").iterdir()] == ["cni-00"]


def test_ids_are_of_the_form_that_runtimes_take():
    made = {probe_record.new_id() for _attempt in range(50)}
    assert len(made) == 50
    assert all(one.startswith("nodenet-probe-") and len(one) == 24 for one in made)


def test_a_record_keeps_a_configuration_that_is_no_utf_8(node):
    """As libcni does: the bad byte becomes U+FFFD for the plugins, and never stops a DEL."""
    path = node.root / "net.conflist"
    path.write_bytes(b'{"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "main", "note": "caf\xe9"}]}')
    node.plugin(script=MAKE + '[ $CNI_COMMAND != DEL ] || [ -e "$RECORD/ok" ] || exit 1\n', answer=reachable())
    _message, facts = node.fails(config=None, conflist=str(path))
    (node.root / "ok").write_text("")
    found = node.probe(config=None, conflist=str(path))
    assert found["leftovers"] == [facts["container_id"]]
    assert node.nothing_left()
