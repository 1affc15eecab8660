# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""containerd starts pods with our multus, on networks of bridge and macvlan with our host-local; the API is over TLS.

The API server refuses what RBAC may refuse, fails for a while, hangs, or is gone; pods end nevertheless, in bounded
time, and what they had is given back.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import sys
import time
from pathlib import Path

import addressfiles
import cri
import needs
import ociimage
import pytest
from machine import GO_PLUGINS, Machine
from test_containerd import Containerd

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "unit"))
sys.path.insert(0, str(ROOT / "plugins"))

import api_server
from module_utils.cni import netns

NETWORKS = "k8s.v1.cni.cncf.io/networks"
STATUS = "k8s.v1.cni.cncf.io/network-status"
#: seconds that all calls to the API of one command may take
API_S = 3
#: what a loaded machine may add to that, with three plugins and the end of a pod
REST_S = 12
# the plugin attaches the pod, and its caller never sees the result: it is killed before that begins, or when it is done
KILLS_ITS_CALLER = """#!/bin/sh
[ "$CNI_COMMAND" = ADD ] || exec {plugins}/macvlan
{before}
{plugins}/macvlan
{after}
"""
KILL = "kill -KILL $PPID; sleep 0.3"


def ipam(data_dir, number):
    return {"type": "host-local", "dataDir": str(data_dir), "ranges": [[{"subnet": f"10.{number}.0.0/24"}]]}


class Node(Containerd):
    """A node whose network is that of multus, with two more networks in the namespace ``shop``."""

    def __init__(self, machine, work, multus, host_local, api, certificates) -> None:
        self.api = api
        self.token = "".join(("token-", secrets.token_hex(8)))
        api.token = self.token
        self.caches = work / "multus"
        cluster = {"certificate-authority-data": base64.b64encode(certificates.ca.read_bytes()).decode()}
        document = api_server.kubeconfig(api.url, cluster, {"token": self.token})
        work.mkdir()
        (work / "kubeconfig").write_text(json.dumps(document))
        self.data = work / "data"
        bridge = {"type": "bridge", "bridge": "cni9", "isGateway": True, "ipam": ipam(self.data, 91)}
        plugin = {
            "type": "multus",
            "kubeconfig": str(work / "kubeconfig"),
            "cniDir": str(self.caches),
            "binDir": str(work / "bin"),
            "apiTimeoutSeconds": API_S,
            "delegates": [{"cniVersion": "1.0.0", "name": "main", "plugins": [bridge]}],
        }
        network = {"cniVersion": "1.0.0", "name": "multus-cni-network", "plugins": [plugin]}
        self.add_network("side", {"type": "bridge", "bridge": "cni8", "isGateway": True, "ipam": ipam(self.data, 92)})
        flat = {"type": "macvlan", "master": "cni9", "mode": "bridge", "capabilities": {"mac": True}}
        self.add_network("flat", dict(flat, ipam=ipam(self.data, 93)))
        super().__init__(machine, work, f"{host_local}/host-local", self.data, network)
        (work / "bin" / "multus").symlink_to(multus)

    def add_network(self, name, config) -> None:
        config = dict(config, cniVersion="1.0.0", name=name)
        metadata = {"namespace": "shop", "name": name}
        self.api.nads["shop", name] = {"metadata": metadata, "spec": {"config": json.dumps(config)}}

    def add_pod(self, name, **more) -> None:
        asked = [{"name": "side"}, {"name": "flat", "interface": "flat0", **more}]
        annotations = {NETWORKS: json.dumps(asked), "kept": "as it is"}
        self.api.add_pod("shop", name, annotations, uid=f"uid-of-{name}")

    def start(self, name, **more) -> str:
        """Make a pod that asks for both networks, with *more* wishes for the second one."""
        self.add_pod(name, **more)
        return self.run(name, "shop")

    def interfaces(self, pod) -> dict[str, list[str]]:
        """Return interface -> addresses of a pod."""
        (cached,) = (self.caches / "results").glob(f"main-{pod}-eth0")
        space = os.path.basename(json.loads(cached.read_text())["netns"])
        shown = json.loads(self.machine.run("ip", "-n", space, "-json", "-4", "addr").stdout)
        return {one["ifname"]: [each["local"] for each in one["addr_info"]] for one in shown if one["ifname"] != "lo"}

    def status(self, name) -> list[tuple]:
        """Return what the API knows of a pod's networks."""
        text = self.api.pods["shop", name]["metadata"]["annotations"].get(STATUS, "[]")
        return [(one["name"], one["interface"], one["ips"], one.get("mac")) for one in json.loads(text)]

    def held(self) -> dict[str, str]:
        return {
            address: content
            for network in ("main", "side", "flat")
            for address, content in addressfiles.held(self.data, network).items()
        }

    def left(self) -> tuple[dict, list, list]:
        """Return addresses that are held, files of caches, and interfaces on the node that lead to pods."""
        files = [path.name for path in self.caches.rglob("*") if path.is_file()]
        links = json.loads(self.machine.run("ip", "-json", "link", "show", "type", "veth").stdout or "[]")
        return self.held(), sorted(files), [one["ifname"] for one in links]

    def requests(self) -> list[tuple[str, str]]:
        """Return method and last part of the path of what came since the last time."""
        found = [(one.method, one.path.rpartition("/")[2]) for one in self.api.requests]
        del self.api.requests[:]
        return found

    def end(self, pod) -> float:
        """Stop and remove a pod; return the seconds that its stop took."""
        begin = time.monotonic()
        self.stop(pod)
        took = time.monotonic() - begin
        self.remove(pod)
        return took


NOTHING: tuple[dict, list, list] = ({}, [], [])


@pytest.fixture(scope="module")
def node(multus, host_local_dir, tmp_path_factory):
    """One node for all of these tests; each of them leaves nothing on it."""
    needs.require("containerd", "runc", "iptables", "openssl")
    folder = tmp_path_factory.mktemp("node")
    certificates = api_server.Certificates(folder / "certificates")
    ociimage.write(folder / "pause.tar", "localhost/pause:1", needs.static_busybox(), ["sleep", "600"])
    machine = Machine()
    api = None
    try:
        api = netns.open_inside(f"/proc/{machine.pid}/ns/net", lambda: api_server.ApiServer(certificates))
        server = Node(machine, folder / "c", multus, host_local_dir, api, certificates)
        try:
            server.wait(folder / "pause.tar")
            yield server
        finally:
            server.close()
    finally:
        if api is not None:
            api.stop()
        machine.close()


@pytest.fixture(autouse=True)
def clean(node):
    """Let a test begin with an API server that is well, and assert that it left nothing."""
    node.api.faults, node.api.forbidden = [], set()
    node.requests()
    yield
    assert node.left() == NOTHING


def refused(path, method=None, **more):
    return api_server.Fault(path, method, code=403, message="is forbidden: User multus cannot do that", **more)


def unavailable(path, method=None, times=1):
    return api_server.Fault(path, method, code=503, times=times, message="the server is currently unable to answer")


def test_a_pod_on_three_networks(node):
    """RBAC lets multus update a status, not patch it, and every call fails once or twice before it succeeds."""
    node.api.faults = [
        unavailable("/pods/web$", times=2),
        unavailable("/network-attachment-definitions/flat$"),
        refused("/status$", "PATCH", times=None),
        unavailable("/status$", "PUT"),
    ]
    pod = node.start("web", mac="02:00:00:00:00:93")
    assert node.addresses(pod) == ["10.91.0.2"]
    assert node.interfaces(pod) == {"eth0": ["10.91.0.2"], "net1": ["10.92.0.2"], "flat0": ["10.93.0.2"]}
    assert node.held() == {
        "10.91.0.2": f"{pod}\r\neth0",
        "10.92.0.2": f"{pod}\r\nnet1",
        "10.93.0.2": f"{pod}\r\nflat0",
    }
    assert [one[:3] for one in node.status("web")] == [
        ("main", "eth0", ["10.91.0.2"]),
        ("shop/side", "net1", ["10.92.0.2"]),
        ("shop/flat", "flat0", ["10.93.0.2"]),
    ]
    assert node.status("web")[2][3] == "02:00:00:00:00:93"
    assert node.api.pods["shop", "web"]["metadata"]["annotations"]["kept"] == "as it is"
    assert node.api.pods["shop", "web"]["status"] == {"phase": "Pending"}
    asked = node.requests()
    assert [one["message"] for one in node.api.events] == [
        "Add eth0 [10.91.0.2/24] from main",
        "Add net1 [10.92.0.2/24] from shop/side",
        "Add flat0 [10.93.0.2/24] from shop/flat",
    ]
    assert asked[:3] == [("GET", "web")] * 3
    assert [one for one in asked if one[1] in ("side", "flat")] == [("GET", "side"), ("GET", "flat"), ("GET", "flat")]
    assert [one for one in asked if one[1] == "status"] == [("PATCH", "status"), ("PUT", "status"), ("PUT", "status")]

    node.end(pod)
    calls = [call[:2] for call in node.calls(pod)]
    assert calls[:6] == [("ADD", True)] * 3 + [("DEL", True)] * 3
    assert calls[6:] == [("DEL", False)] * 3, "the second DEL has no namespace and no cache, and the API knows the pod"
    assert node.token not in node.log()


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (refused("/network-attachment-definitions/flat$", times=None), "(flat) in namespace (shop): is forbidden"),
        (refused("/pods/web", times=None), "error waiting for pod: is forbidden: User multus"),
        (refused("/status$", times=None), "error setting the networks status"),
        (unavailable("/status$", times=None), f"within the {API_S} s of apiTimeoutSeconds"),
    ],
    ids=["network", "pod", "status", "status-503"],
)
def test_a_pod_that_the_api_does_not_let_be(node, fault, told):
    """RunPodSandbox fails with the server's words, in bounded time, and nothing stays of what was attached before."""
    node.api.faults = [fault]
    begin = time.monotonic()
    with pytest.raises(cri.CallFailed):
        node.start("web")
    assert time.monotonic() - begin < API_S + REST_S
    assert told in node.log()
    assert node.status("web") == []
    assert node.left() == NOTHING


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_add_that_is_killed(node, when):
    """The last plugin makes its interface all the same; containerd's DEL takes down all three networks."""
    plugin = node.work / "bin" / "macvlan"
    script = node.work / "bin" / ".killing"
    script.write_text(KILLS_ITS_CALLER.format(plugins=GO_PLUGINS, **dict({"before": "", "after": ""}, **{when: KILL})))
    script.chmod(0o755)
    script.rename(plugin)
    try:
        with pytest.raises(cri.CallFailed):
            node.start("web")
    finally:
        plugin.unlink()
        plugin.symlink_to(f"{GO_PLUGINS}/macvlan")
    assert "signal: killed" in node.log()
    assert node.status("web") == []
    assert node.left() == NOTHING
    pod = node.start("web")
    assert sorted(node.interfaces(pod)) == ["eth0", "flat0", "net1"]
    node.end(pod)


def test_del_after_the_caches_were_wiped(node):
    """What the pod has is found again in the API."""
    pod = node.start("web")
    shutil.rmtree(node.caches)
    node.requests()
    node.end(pod)
    assert node.left() == NOTHING
    assert {("GET", "web"), ("GET", "side"), ("GET", "flat")} <= set(node.requests())


def test_del_with_an_api_that_hangs(node):
    """With a cache nobody asks it; without, the cached results tell what is to go, and the wait is bounded."""
    pods = [node.start(name) for name in ("web", "cart")]
    (node.caches / pods[1]).unlink()
    node.api.faults = [api_server.Fault(how="hang", times=None)]
    node.requests()
    took = []
    for pod in pods:
        begin = time.monotonic()
        node.stop(pod)
        took.append(time.monotonic() - begin)
    assert took[0] < REST_S
    assert API_S < took[1] < API_S + REST_S
    assert node.requests() == [("GET", "cart")]
    assert node.left() == NOTHING
    node.api.faults = []
    for pod in pods:
        node.remove(pod)


def test_del_with_everything_gone(node):
    """Caches wiped and no API server: the default network goes; of the others only host_local_gc can know."""
    pod = node.start("web")
    shutil.rmtree(node.caches)
    node.api.stop()
    took = node.end(pod)
    assert took < API_S + REST_S
    held = node.held()
    assert set(held.values()) == {f"{pod}\r\nnet1", f"{pod}\r\nflat0"}
    for network in ("side", "flat"):
        for address in addressfiles.held(node.data, network):
            (node.data / network / address).unlink()
