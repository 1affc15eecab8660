# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""network_probe with Debian's main plugins, with Go's host-local and with ours."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import addressfiles
import needs
import pytest
from machine import GO_PLUGINS, SYSTEM_PYTHON

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
RANGES = ([{"subnet": "10.95.0.0/24"}], [{"subnet": "fd00:95::/64"}])
# what the module does, without Ansible; nothing but the interpreter and its standard library is at hand
DRIVER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from module_utils.cni import errors
from module_utils.node import probe
try:
    answer = probe.probe(json.load(sys.stdin), False)
except errors.NodenetError as error:
    answer = dict(error.facts, msg=str(error), failed=True)
print(json.dumps(answer))
"""


class Probe:
    def __init__(self, machine, bin_dir, root):
        self.machine = machine
        self.bin_dir = bin_dir
        self.root = root
        self.data = root / "data"

    def options(self, config, **more):
        options = {
            "network": None,
            "conflist": None,
            "config": config,
            "conf_dir": "/etc/cni/net.d",
            "bin_dir": self.bin_dir,
            "state_dir": "/var/lib/nodenet-cni",
            "netns_dir": "/run/netns",
            "ifname": "eth0",
            "args": {},
            "capabilities": {},
            "timeout": 30.0,
            "lock_timeout": 5.0,
            "allow_shared": False,
            "require_gateway": True,
            "flannel_subnet_file": "/run/flannel/subnet.env",
        }
        return dict(options, **more)

    def command(self):
        return [SYSTEM_PYTHON, "-IBS", "-c", DRIVER, str(PLUGINS)]

    def run(self, config, **more):
        done = self.machine.run(*self.command(), input=json.dumps(self.options(config, **more)))
        return json.loads(done.stdout)

    def start(self, config):
        """Start a probe and leave it running."""
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        process = subprocess.Popen([*self.machine.entry, *self.command()], **options)
        process.stdin.write(json.dumps(self.options(config)))
        process.stdin.close()
        process.stdin = None
        return process

    def nothing_left(self, *kept):
        """Nothing of a probe is left on the machine but interfaces that stay for the next pod."""
        links = {link["ifname"] for link in json.loads(self.machine.run("ip", "-json", "link", "show").stdout)}
        assert links - {"lo"} <= set(kept), links
        namespaces = self.machine.run("sh", "-c", "ls -A /run/netns 2>/dev/null || true").stdout.split()
        records = self.machine.run("sh", "-c", "find /var/lib/nodenet-cni -type f").stdout.split()
        assert [one for one in namespaces if one.startswith("nodenet-probe-")] == []
        assert records == []
        assert [one for one in addressfiles.held(self.data, "net").values() if "nodenet-probe-" in one] == []

    def rotation(self):
        folder = self.data / "net"
        return {path.name: path.read_text() for path in folder.glob("last_reserved_ip.*")} if folder.exists() else {}


@pytest.fixture(params=["go", "ours"])
def probed(machine, host_local_dir, tmp_path, request):
    """A probe whose bin dir has Debian's plugins and either host-local."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    for name in os.listdir(GO_PLUGINS):
        mine = request.param == "ours" and name == "host-local"
        (bin_dir / name).symlink_to(os.path.join(host_local_dir if mine else GO_PLUGINS, name))
    return Probe(machine, str(bin_dir), tmp_path)


def conflist(probed, kind="bridge", *more, ranges=RANGES, **settings):
    routes = [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]
    ipam = {"type": "host-local", "dataDir": str(probed.data), "ranges": ranges, "routes": routes[: len(ranges)]}
    first = dict({"type": kind, "ipam": ipam}, **settings)
    if kind == "bridge":
        first = dict({"bridge": "cni9", "isGateway": True}, **first)
    return {"cniVersion": "1.0.0", "name": "net", "plugins": [first, *more]}


@pytest.mark.parametrize("kind", ["bridge", "ptp"])
def test_a_chain_that_works(probed, kind):
    needs.require("iptables")
    chain = ({"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}}, {"type": "portmap", "snat": True})
    config = conflist(probed, kind, *chain, ipMasq=True)
    config["plugins"][2]["capabilities"] = {"portMappings": True}
    port = {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}
    config["disableCheck"] = True  # portmap 1.1.1 misses a chain in CHECK that its ADD does not make
    found = probed.run(config, capabilities={"portMappings": [port]})
    assert "failed" not in found, found
    assert [one["ok"] for one in found["checks"]] == [True] * 7
    assert [one["detail"] for one in found["checks"] if one["check"] == "gateway"] == ["answers an echo request"] * 2
    assert addressfiles.of_result(found["result"]) == ["10.95.0.2/24", "fd00:95::2/64"]
    assert found["interfaces_created"] == (["cni9"] if kind == "bridge" else [])
    assert found["changed"] == (kind == "bridge")
    assert all(0 < one["seconds"] < 10 for one in found["calls"])
    probed.nothing_left("cni9")
    rules = probed.machine.run("iptables-save").stdout
    assert "8080" not in rules
    assert not probed.run(config)["changed"]
    probed.nothing_left("cni9")


def test_a_node_without_the_program_ip(probed):
    """Nothing is needed but Python; the plugins of Go call the kernel themselves."""
    program = os.path.realpath(shutil.which("ip"))
    probed.machine.run("mount", "--bind", "/dev/null", program)
    assert probed.machine.run("sh", "-c", "ip link || echo refused").stdout == "refused\n"
    found = probed.run(conflist(probed))
    probed.machine.run("umount", program)
    assert "failed" not in found, found
    assert all(one["ok"] for one in found["checks"])
    probed.nothing_left("cni9")


def test_a_pod_gets_the_address_after_it(probed):
    """The rotation is where it was, so the address of the probe is given out next."""
    config = conflist(probed)
    single = dict(config["plugins"][0], cniVersion="1.0.0", name="net")
    assert "failed" not in probed.run(config)
    assert probed.rotation() == {}
    for pod, address in (("pod0", "10.95.0.2/24"), ("pod1", "10.95.0.3/24")):
        probed.machine.add_pod(pod)
        result = probed.machine.cni(probed.bin_dir, "ADD", single, pod)
        assert address in addressfiles.of_result(result)
        before = probed.rotation()
        assert len(before) == 2
        found = probed.run(config)
        assert "failed" not in found, found
        assert probed.rotation() == before
        assert probed.machine.addresses(pod) == addressfiles.of_result(result)


def test_a_full_network(probed):
    config = conflist(probed, ranges=[[{"subnet": "10.95.0.0/30"}]])
    addressfiles.reserve_static(probed.data, "net", "10.95.0.2", "db-0")
    found = probed.run(config)
    assert found["failed"]
    assert "plugin bridge failed at ADD: " in found["msg"]
    assert "no IP addresses available in range set" in found["msg"]
    assert [item["code"] for item in found["findings"]] == ["NODE034"]
    assert found["exhausted"] is True
    assert found["interfaces_created"] == ["cni9"]  # the plugin makes its bridge before it asks for an address
    assert probed.run(config)["interfaces_created"] == []
    probed.nothing_left("cni9")
    assert list(addressfiles.held(probed.data, "net")) == ["10.95.0.2"]


def test_a_gateway_that_is_not_there(probed):
    config = conflist(probed, isGateway=False, ranges=RANGES[:1])
    found = probed.run(config)
    assert found["failed"]
    assert "gateway 10.95.0.1 answers neither" in found["msg"]
    assert [item["code"] for item in found["findings"]] == ["NODE028"]
    assert found["interfaces_created"] == ["cni9"]
    assert probed.rotation() == {}
    probed.nothing_left("cni9")
    assert not probed.run(config, require_gateway=False).get("failed")


def test_a_gateway_behind_a_firewall_counts_by_its_hardware_address(probed):
    needs.require("iptables")
    probed.machine.run("iptables", "-A", "INPUT", "-p", "icmp", "-j", "DROP")
    found = probed.run(conflist(probed, ranges=RANGES[:1]))
    assert "failed" not in found, found
    (gateway,) = [one for one in found["checks"] if one["check"] == "gateway"]
    assert gateway["ok"]
    assert "an echo request stays without answer" in gateway["detail"]


@pytest.mark.parametrize("version", ["0.2.0", "0.3.1", "0.4.0"])
def test_older_versions_of_the_protocol(probed, version):
    config = dict(conflist(probed, "ptp", ranges=RANGES[:1]), cniVersion=version)
    found = probed.run(config)
    assert "failed" not in found, found
    assert found["result"]["cniVersion"] == version
    assert [one["command"] for one in found["calls"]] == ["ADD", *(["CHECK"] if version == "0.4.0" else []), "DEL"]
    assert {one["check"]: one["ok"] for one in found["checks"]} == dict.fromkeys(
        ("interface", "address", "route", "gateway"), True
    )
    probed.nothing_left()


def test_macvlan_only_when_allowed(probed):
    machine = probed.machine
    machine.run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "up0p")
    for name in ("up0", "up0p"):
        machine.run("ip", "link", "set", name, "up")
    if machine.run("ip", "link", "add", "try", "link", "up0", "type", "macvlan", check=False).returncode:
        needs.leave_out("this kernel has no macvlan", mandatory=False)
    machine.run("ip", "link", "delete", "try")
    config = conflist(probed, "macvlan", master="up0", ranges=RANGES[:1])
    found = probed.run(config)
    assert (found["skipped"], found["calls"]) == (True, [])
    machine.run("ip", "addr", "add", "10.95.0.1/24", "dev", "up0p")
    found = probed.run(config, allow_shared=True)
    assert "failed" not in found, found
    probed.nothing_left("up0", "up0p")


def test_a_bridge_that_leads_out_of_the_node(probed):
    machine = probed.machine
    machine.run("ip", "link", "add", "cni9", "type", "bridge")
    machine.run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "up0p")
    made = machine.run("ip", "link", "add", "link", "up0", "name", "mv0", "type", "macvlan", check=False)
    if made.returncode:
        needs.leave_out("this kernel has no macvlan", mandatory=False)
    machine.run("ip", "link", "set", "mv0", "master", "cni9")
    found = probed.run(conflist(probed))
    assert found["skipped"]
    assert "mv0 is a port of its bridge" in found["msg"]


def slow_bridge(probed):
    """A chain whose last plugin hangs at ADD, when the bridge plugin has made everything."""
    path = Path(probed.bin_dir) / "hang"
    path.write_text('#!/bin/sh\n[ $CNI_COMMAND != ADD ] || { echo $$ >"%s/hangs"; exec sleep 60; }\n' % probed.root)
    path.chmod(0o755)
    return conflist(probed, "bridge", {"type": "hang"})


def test_a_plugin_that_hangs(probed):
    found = probed.run(slow_bridge(probed), timeout=1.0)
    assert found["failed"]
    assert "plugin hang gave no answer to ADD within 1 s" in found["msg"]
    probed.nothing_left("cni9")
    assert probed.rotation() == {}
    assert "sleep" not in probed.machine.run("ps", "-eo", "comm", check=False).stdout


def test_a_killed_probe_leaves_nothing_after_the_next(probed):
    running = probed.start(slow_bridge(probed))
    deadline = time.monotonic() + 20
    while not (probed.root / "hangs").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with open(f"/proc/{running.pid}/task/{running.pid}/children", encoding="ascii") as children:
        os.kill(int(children.read()), signal.SIGKILL)  # nsenter itself only waits
    running.communicate()
    held = addressfiles.held(probed.data, "net")
    assert sorted(held) == ["10.95.0.2", "fd00:95::2"]
    assert probed.rotation() != {}
    (left,) = {content.split("\r\n")[0] for content in held.values()}
    found = probed.run(conflist(probed))
    assert "failed" not in found, found
    assert found["leftovers"] == [left]
    assert addressfiles.of_result(found["result"]) == ["10.95.0.2/24", "fd00:95::2/64"]
    probed.nothing_left("cni9")
    assert probed.rotation() == {}
    assert "sleep" not in probed.machine.run("ps", "-eo", "comm", check=False).stdout


def test_an_interface_that_del_leaves_goes_and_is_told(probed):
    """A plugin that makes a pair on the node and forgets it."""
    path = Path(probed.bin_dir) / "forgets"
    document = {
        "cniVersion": "1.0.0",
        "interfaces": [{"name": "vleft"}, {"name": "lo", "sandbox": "x"}],
        "ips": [{"interface": 1, "address": "127.0.0.1/8"}],
    }
    script = "[ $CNI_COMMAND != ADD ] || { ip link add vleft type veth peer name vother; echo '%s'; }"
    path.write_text("#!/bin/sh\n%s\n" % (script % json.dumps(document)))
    path.chmod(0o755)
    found = probed.run({"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "forgets"}]})
    assert found["failed"]
    assert found["msg"].endswith("what the plugins made is not gone after DEL: interface vleft")
    probed.nothing_left()
