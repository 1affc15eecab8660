# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our multus and our host-local with the Go plugins bridge, macvlan and tuning, in a node that is a namespace."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import reporting
from multus_api import ApiServer
from multus_scenario import require_namespaces
from plugin_drivers import CommandDriver

PLUGINS = os.environ.get("NODENET_GO_PLUGINS", "/usr/lib/cni")
NEEDED = ("bridge", "macvlan", "tuning")
NETWORKS = [
    {"name": "side", "default-route": ["10.2.0.1"]},
    {"name": "flat", "mac": "02:00:00:00:00:99", "interface": "flat0"},
]
ARGS = "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns1;K8S_POD_NAME=p1;K8S_POD_UID=u1"


def ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


class Node:
    """A network namespace in the place of a node, and one for the pod."""

    def __init__(self, root, collection_path) -> None:
        from ansible_collections.nodenet.cni.plugins.module_utils.cni import netns
        from ansible_collections.nodenet.cni.plugins.module_utils.node import executables

        self.root = root
        self.host, self.pod = ("nodenet-mr-%d-%s" % (os.getpid(), which) for which in ("host", "pod"))
        sources = str(collection_path / "ansible_collections" / "nodenet" / "cni" / "plugins" / "module_utils")
        executables.build(sources, str(root / "bin"), ["multus", "host-local"], os.path.realpath(sys.executable))
        for name in (self.host, self.pod):
            ip("netns", "add", name)
        ip("-n", self.host, "link", "set", "lo", "up")
        self.api = netns.open_inside("/run/netns/" + self.host, ApiServer)
        kubeconfig = {
            "clusters": [{"name": "c", "cluster": {"server": self.api.url}}],
            "contexts": [{"name": "x", "context": {"cluster": "c"}}],
            "current-context": "x",
        }
        (root / "kubeconfig").write_text(json.dumps(kubeconfig))
        side = [
            {"type": "bridge", "bridge": "br2", "isGateway": True, "ipam": self.ipam(2)},
            {"type": "tuning", "sysctl": {"net.ipv4.conf.all.log_martians": "1"}},
        ]
        self.put_nad("side", {"cniVersion": "1.0.0", "name": "side", "plugins": side})
        flat = {
            "type": "macvlan",
            "master": "br1",
            "mode": "bridge",
            "ipam": self.ipam(3),
            "capabilities": {"mac": True},
        }
        self.put_nad("flat", {"cniVersion": "1.0.0", "name": "flat", **flat})
        metadata = {"namespace": "ns1", "name": "p1", "uid": "u1"}
        metadata["annotations"] = {"k8s.v1.cni.cncf.io/networks": json.dumps(NETWORKS)}
        self.api.put_pod({"metadata": metadata, "spec": {}, "status": {}})

    def ipam(self, number: int) -> dict:
        ranges = [[{"subnet": "10.%d.0.0/24" % number}]]
        return {
            "type": "host-local",
            "dataDir": str(self.root / "data"),
            "ranges": ranges,
            "routes": [{"dst": "0.0.0.0/0"}],
        }

    def put_nad(self, name: str, config: dict) -> None:
        metadata = {"namespace": "ns1", "name": name}
        self.api.put_nad({"metadata": metadata, "spec": {"config": json.dumps(config)}})

    def call(self, command: str):
        main = {"type": "bridge", "bridge": "br1", "isGateway": True, "ipam": self.ipam(1)}
        config = {
            "cniVersion": "1.0.0",
            "name": "multus",
            "type": "multus",
            "kubeconfig": str(self.root / "kubeconfig"),
            "cniDir": str(self.root / "cni"),
            "binDir": str(self.root / "bin"),
            "delegates": [{"cniVersion": "1.0.0", "name": "main", "plugins": [main]}],
        }
        env = {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": "c1",
            "CNI_IFNAME": "eth0",
            "CNI_NETNS": "/run/netns/" + self.pod,
            "CNI_PATH": PLUGINS,
            "CNI_ARGS": ARGS,
            "PATH": os.environ["PATH"],
        }
        multus = CommandDriver(["ip", "netns", "exec", self.host, str(self.root / "bin" / "multus")])
        done = multus.call(env, json.dumps(config).encode())
        return done.rc, json.loads(done.stdout) if done.stdout else None

    def links(self) -> list:
        shown = json.loads(ip("-n", self.pod, "-j", "addr"))
        return sorted(one["ifname"] for one in shown if one["ifname"] != "lo")

    def default_routes(self) -> list:
        return [one.split()[:5] for one in ip("-n", self.pod, "route").splitlines() if one.startswith("default")]

    def held(self) -> list:
        names = [path.name for path in (self.root / "data").rglob("*") if path.is_file()]
        return sorted(name for name in names if name[0].isdigit())

    def cached(self) -> list:
        return sorted(path.name for path in (self.root / "cni").rglob("*") if path.is_file())

    def close(self) -> None:
        self.api.stop()
        for name in (self.host, self.pod):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.fixture
def node(_collection_path, tmp_path):
    require_namespaces()
    missing = [name for name in NEEDED if not os.access(os.path.join(PLUGINS, name), os.X_OK)]
    if missing:
        why = "not run: no %s in %s (Debian package containernetworking-plugins)" % (", ".join(missing), PLUGINS)
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        reporting.note(why)
        pytest.skip(why)
    made = Node(tmp_path, _collection_path)
    yield made
    made.close()


def test_a_pod_on_three_networks(node):
    rc, result = node.call("ADD")
    assert rc == 0, result
    assert [one["address"] for one in result["ips"]] == ["10.1.0.2/24"]
    assert node.links() == ["eth0", "flat0", "net1"]
    assert node.default_routes() == [["default", "via", "10.2.0.1", "dev", "net1"]]
    assert node.held() == ["10.1.0.2", "10.2.0.2", "10.3.0.2"]
    annotations = node.api.pods["ns1", "p1"]["metadata"]["annotations"]
    status = json.loads(annotations["k8s.v1.cni.cncf.io/network-status"])
    assert [(one["name"], one["interface"], one["ips"]) for one in status] == [
        ("main", "eth0", ["10.1.0.2"]),
        ("ns1/side", "net1", ["10.2.0.2"]),
        ("ns1/flat", "flat0", ["10.3.0.2"]),
    ]
    assert [one.get("gateway") for one in status] == [None, ["10.2.0.1"], None]
    assert status[2]["mac"] == "02:00:00:00:00:99"
    assert node.call("CHECK") == (0, None)
    assert node.call("DEL") == (0, None)
    assert (node.links(), node.held(), node.cached()) == ([], [], [])
    assert node.call("DEL") == (0, None)


def test_del_after_the_cache_was_wiped(node):
    assert node.call("ADD")[0] == 0
    for path in (node.root / "cni").rglob("*"):
        if path.is_file():
            path.unlink()
    assert node.call("DEL") == (0, None)
    assert (node.links(), node.held(), node.cached()) == ([], [], [])


def test_a_network_that_cannot_be_attached_takes_the_others_with_it(node):
    taken = node.root / "data" / "flat" / "10.3.0.2"
    taken.parent.mkdir(parents=True)
    taken.write_text("other\r\neth0")
    ipam = dict(node.ipam(3), ranges=[[{"subnet": "10.3.0.0/30"}]])
    flat = {"type": "macvlan", "master": "br1", "ipam": ipam}
    node.put_nad("flat", {"cniVersion": "1.0.0", "name": "flat", **flat})
    rc, error = node.call("ADD")
    assert rc == 1
    assert 'error adding container to network "flat": failed to allocate for range 0' in error["msg"]
    assert (node.links(), node.held()) == ([], ["10.3.0.2"])
    assert node.call("DEL") == (0, None)
    assert (node.cached(), node.held()) == ([], ["10.3.0.2"])
