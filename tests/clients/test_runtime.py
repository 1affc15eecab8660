# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What we do as a runtime beside what the CNI project's libcni does: the same plugins, cache files, errors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import addressfiles
import needs
import pytest
from libcni_calls import ClientFailed
from machine import SYSTEM_PYTHON

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
RANGES = [[{"subnet": "10.94.0.0/24"}], [{"subnet": "fd00:94::/64"}]]
# takes the same request as the client of libcni
DRIVER = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from module_utils.cni import chain, errors, invoke, netconf, resultcache
wanted = json.load(sys.stdin)
network = netconf.load_config(json.dumps(wanted["conflist"]).encode(), "x.conflist")
plugins = invoke.Plugins(wanted["path"], os.environ, 60)
runtime = chain.Runtime(plugins, resultcache.ResultCache(wanted["cache"]))
attachment = invoke.Attachment(
    wanted["container"], wanted["netns"], wanted["ifname"], wanted["args"], wanted.get("capabilities")
)
try:
    if wanted["command"] == "add":
        answer = runtime.add(network, attachment)
    elif wanted["command"] == "check":
        answer = runtime.check(network, attachment)
    elif wanted["command"] == "del":
        answer = runtime.delete(network, attachment)
    else:
        answer = runtime.validate(network)
except errors.CniError as error:
    sys.exit(str(error))
print(json.dumps(answer))
"""


@pytest.fixture
def call(machine, libcni, paths, tmp_path):
    """Call ``call(who, command, conflist, pod, ...)`` with ``who`` one of "ours" and "libcni"."""

    def run(who, command, conflist, pod, **more):
        if who == "libcni":
            return libcni(command, conflist, pod, "go", **more)
        request = {
            "command": command,
            "conflist": conflist,
            "path": paths["go"].split(":"),
            "cache": str(tmp_path / "cache"),
            "container": pod,
            "netns": f"/run/netns/{pod}",
            "ifname": "eth0",
            "args": [["IgnoreUnknown", "1"], ["K8S_POD_NAMESPACE", "default"], ["K8S_POD_NAME", pod]],
        }
        command_line = [SYSTEM_PYTHON, "-IBS", "-c", DRIVER, str(PLUGINS)]
        done = machine.run(*command_line, input=json.dumps(dict(request, **more)), check=False)
        if done.returncode:
            raise ClientFailed(done.stderr.strip())
        return json.loads(done.stdout)

    return run


def conflist(data_dir, *more, version="1.0.0", kind="bridge"):
    ipam = {"type": "host-local", "dataDir": str(data_dir), "ranges": RANGES, "routes": [{"dst": "0.0.0.0/0"}]}
    first = {"type": kind, "capabilities": {"ips": True}, "ipam": ipam}
    if kind == "bridge":
        first.update(bridge="cni9", isGateway=True)
    return {"cniVersion": version, "name": "net", "plugins": [first, *more]}


def cached(tmp_path, pod):
    return json.loads((tmp_path / "cache" / "results" / f"net-{pod}-eth0").read_text())


@pytest.mark.parametrize("version", ["0.3.1", "0.4.0", "1.0.0"])
@pytest.mark.parametrize(("first", "second"), [("ours", "libcni"), ("libcni", "ours")])
def test_one_adds_and_the_other_checks_and_deletes(machine, call, tmp_path, version, first, second):
    network = conflist(tmp_path / "data", {"type": "tuning", "mac": "02:00:00:00:00:94"}, version=version)
    machine.add_pod("pod0")
    result = call(first, "add", network, "pod0")
    assert machine.addresses("pod0") == addressfiles.of_result(result)
    if version != "0.3.1":
        call(second, "check", network, "pod0")
        machine.run("ip", "-n", "pod0", "addr", "flush", "dev", "eth0")
        said = []
        for who in (first, second):
            with pytest.raises(ClientFailed) as caught:
                call(who, "check", network, "pod0")
            said.append(str(caught.value))
        assert said[0] == said[1]
    call(second, "del", network, "pod0")
    assert addressfiles.held(tmp_path / "data", "net") == {}
    assert os.listdir(tmp_path / "cache" / "results") == []
    call(first, "del", network, "pod0")


@pytest.mark.parametrize("version", ["0.3.1", "0.4.0", "1.0.0"])
@pytest.mark.parametrize("kind", ["bridge", "ptp"])
def test_the_cached_files_are_equal(machine, call, tmp_path, version, kind):
    needs.require("iptables")
    network = conflist(
        tmp_path / "data", {"type": "portmap", "capabilities": {"portMappings": True}}, version=version, kind=kind
    )
    capabilities = {
        "ips": ["10.94.0.9/24", "fd00:94::9/64"],
        "portMappings": [{"hostPort": 80, "containerPort": 8, "protocol": "tcp"}],
    }
    files = {}
    for who in ("libcni", "ours"):
        machine.add_pod("pod0")
        call(who, "add", network, "pod0", capabilities=capabilities)
        files[who] = cached(tmp_path, "pod0")
        call(who, "del", network, "pod0", capabilities=capabilities)
        machine.run("ip", "netns", "delete", "pod0")
    assert files["ours"].pop("netns") == "/run/netns/pod0"  # libcni writes it from 1.2 on
    ours, theirs = files["ours"], files["libcni"]
    assert json.loads(base64(ours["config"])) == json.loads(base64(theirs["config"])) == network
    for document in (ours, theirs):
        del document["config"]  # the client sends its keys in an order of its own
        for interface in document["result"]["interfaces"]:
            for key in ("mac", "name"):
                interface.pop(key)  # made up anew each time
        if not document["result"].get("dns"):
            document["result"].pop("dns", None)
    assert list(ours) == list(theirs)
    assert ours == theirs


def base64(text):
    import base64 as codec

    return codec.b64decode(text)


def test_errors_are_worded_alike(machine, call, tmp_path):
    machine.add_pod("pod0")
    good = conflist(tmp_path / "data")
    cases = [
        ("add", conflist(tmp_path / "data", {"type": "none"}), "pod0"),
        ("add", conflist(tmp_path / "data", kind="../bridge"), "pod0"),
        ("add", dict(good, name="a b"), "pod0"),
        ("add", good, "-pod"),
        ("add", good, "nowhere"),
        ("add", conflist(tmp_path / "data", {"type": "portmap", "conditionsV4": 3}), "pod0"),
        ("add", dict(good, cniVersion="9.9.9"), "pod0"),
        ("add", conflist("/proc/none"), "pod0"),
        ("check", dict(good, cniVersion="0.3.1"), "pod0"),
        ("del", dict(good, cniVersion="9.9.9"), "pod0"),
        ("validate", conflist(tmp_path / "data", {"type": "none"}, version="1.0.0"), "pod0"),
        ("validate", dict(good, cniVersion="9.9.9"), "pod0"),
    ]
    for command, network, pod in cases:
        said = []
        for who in ("libcni", "ours"):
            with pytest.raises(ClientFailed) as caught:
                call(who, command, network, pod)
            said.append(str(caught.value))
            machine.run("ip", "netns", "delete", "pod0")
            machine.add_pod("pod0")
            call("libcni", "del", good, "pod0")
        assert said[0] == said[1], (command, network, pod)


def test_what_a_capability_switches_on(call, tmp_path):
    network = conflist(tmp_path / "data", {"type": "portmap", "capabilities": {"portMappings": True, "mac": False}})
    assert call("ours", "validate", network, "pod0") == ["ips", "portMappings"]
    assert sorted(call("libcni", "validate", network, "pod0")) == ["ips", "portMappings"]


def test_check_says_the_same(machine, call, tmp_path):
    """Debian's portmap 1.1.1 misses a chain for IPv6 that it makes only for a pod with IPv6; newer ones do not."""
    needs.require("iptables")
    network = conflist(tmp_path / "data", {"type": "portmap", "capabilities": {"portMappings": True}})
    network["plugins"][0]["ipam"]["ranges"] = RANGES[:1]
    capabilities = {"portMappings": [{"hostPort": 80, "containerPort": 8, "protocol": "tcp"}]}
    machine.add_pod("pod0")
    call("ours", "add", network, "pod0", capabilities=capabilities)
    said = {}
    for who in ("libcni", "ours"):
        try:
            said[who] = call(who, "check", network, "pod0", capabilities=capabilities)
        except ClientFailed as error:
            said[who] = str(error)
    assert said["ours"] == said["libcni"]
    assert "--dport 80" in machine.run("iptables-save", "-t", "nat").stdout
    call("ours", "del", network, "pod0", capabilities=capabilities)
    assert "--dport 80" not in machine.run("iptables-save", "-t", "nat").stdout
