# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""containerd's CRI, as a kubelet uses it, on a machine of its own: pods get their addresses from our host-local."""

from __future__ import annotations

import concurrent.futures
import json
import shlex
import subprocess
import time

import addressfiles
import cri
import needs
import ociimage
import pytest
from machine import GO_PLUGINS

RANGES = [[{"subnet": "10.94.0.0/25"}], [{"subnet": "fd00:94::/64"}]]

CONFIG = """
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{work}/bin"
    conf_dir = "{work}/netd"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""

# the runtime's environment says what it asks for; nothing else about the call is changed
WRAPPER = """#!/bin/sh
echo "$CNI_COMMAND $CNI_CONTAINERID netns=$CNI_NETNS $CNI_ARGS" >>{log}
exec {plugin}
"""


def conflist(data_dir, **more):
    ipam = {"type": "host-local", "dataDir": str(data_dir), "ranges": RANGES, "routes": [{"dst": "0.0.0.0/0"}], **more}
    plugin = {"type": "bridge", "bridge": "cni9", "isGateway": True, "ipam": ipam}
    return {"cniVersion": "1.0.0", "name": "net", "plugins": [plugin]}


class Containerd(cri.Cri):
    """A containerd in a machine, called from outside of it.

    :param network: what is in the only file of its conf dir, by default a bridge
    """

    def __init__(self, machine, work, plugin, data_dir, network=None) -> None:
        super().__init__(machine.path("/run/containerd/containerd.sock"), machine.cgroup)
        self.machine = machine
        self.data_dir = data_dir
        self.work = work
        self._calls = work / "calls"
        for folder in ("bin", "netd"):
            (work / folder).mkdir(parents=True)
        for name in ("bridge", "loopback", "macvlan"):
            (work / "bin" / name).symlink_to(f"{GO_PLUGINS}/{name}")
        self.install(plugin)
        (work / "netd/10-net.conflist").write_text(json.dumps(network or conflist(data_dir)))
        (work / "config.toml").write_text(CONFIG.format(work=work))
        self._log = open(work / "log", "wb")  # noqa: SIM115 - closed with the server
        self._server = subprocess.Popen(
            [*machine.entry, "containerd", "--config", f"{work}/config.toml"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def install(self, plugin: str) -> None:
        """Make a host-local the one of the node, in one step, whatever runs."""
        new = self.work / "bin" / ".new"
        new.write_text(WRAPPER.format(log=shlex.quote(str(self._calls)), plugin=shlex.quote(plugin)))
        new.chmod(0o755)
        new.rename(self.work / "bin" / "host-local")

    def wait(self, image) -> None:
        """Wait until pods can be started, and give it the image that holds a pod's namespaces."""
        deadline = time.monotonic() + 30
        while True:
            try:
                ready = self.ready()
                break
            except (OSError, cri.CallFailed):
                assert self._server.poll() is None, self.log()
                assert time.monotonic() < deadline, self.log()
                time.sleep(0.1)
        assert ready == {"RuntimeReady": True, "NetworkReady": True}, self.log()
        self.machine.run("ctr", "-n", "k8s.io", "images", "import", str(image))

    def log(self) -> str:
        return (self.work / "log").read_text(errors="replace")[-4000:]

    def calls(self, pod: str) -> list[tuple[str, bool, dict[str, str]]]:
        """Return (command, with a namespace or without, CNI_ARGS) of the calls for a pod."""
        found = []
        for line in self._calls.read_text().splitlines():
            command, container, netns, arguments = line.split(" ", 3)
            if container == pod:
                pairs = dict(pair.split("=", 1) for pair in arguments.split(";"))
                found.append((command, netns != "netns=", pairs))
        return found

    def held(self) -> dict[str, str]:
        return addressfiles.held(self.data_dir, "net")

    def close(self) -> None:
        self._server.kill()
        self._server.wait()
        self.machine.close()
        self._log.close()


@pytest.fixture
def containerd(machine, host_local_dir, tmp_path):
    needs.require("containerd", "runc", "iptables")
    ociimage.write(tmp_path / "pause.tar", "localhost/pause:1", needs.static_busybox(), ["sleep", "600"])
    server = Containerd(machine, tmp_path / "c", f"{host_local_dir}/host-local", tmp_path / "data")
    try:
        server.wait(tmp_path / "pause.tar")
        yield server
    finally:
        server.close()


def test_pods(containerd):
    """Dual stack, the pod's name in CNI_ARGS, DEL twice, an address that is free again."""
    addressfiles.reserve_static(containerd.data_dir, "net", "10.94.0.2", "db-0")
    pods = [containerd.run(f"pod{number}") for number in range(2)]
    assert [containerd.addresses(pod) for pod in pods] == [["10.94.0.3", "fd00:94::2"], ["10.94.0.4", "fd00:94::3"]]
    expected = {
        "10.94.0.2": "static.db-0\r\neth0",
        "10.94.0.3": f"{pods[0]}\r\neth0",
        "10.94.0.4": f"{pods[1]}\r\neth0",
        "fd00:94::2": f"{pods[0]}\r\neth0",
        "fd00:94::3": f"{pods[1]}\r\neth0",
    }
    assert containerd.held() == expected
    assert addressfiles.written_by(containerd.data_dir, "net", "10.94.0.3") == "ours"

    containerd.stop(pods[0])
    assert sorted(containerd.held()) == ["10.94.0.2", "10.94.0.4", "fd00:94::3"]
    containerd.remove(pods[0])
    calls = containerd.calls(pods[0])
    assert [call[0] for call in calls] == ["ADD", "DEL", "DEL"], calls
    assert [call[1] for call in calls] == [True, True, False], "the second DEL has no namespace any more"
    assert all((call[2]["K8S_POD_NAMESPACE"], call[2]["K8S_POD_NAME"]) == ("default", "pod0") for call in calls)
    assert sorted(containerd.held()) == ["10.94.0.2", "10.94.0.4", "fd00:94::3"]

    again = containerd.run("again")
    assert containerd.addresses(again) == ["10.94.0.5", "fd00:94::4"]
    for pod in (pods[1], again):
        containerd.stop(pod)
        containerd.remove(pod)
    assert containerd.held() == {"10.94.0.2": "static.db-0\r\neth0"}


def test_thirty_pods_eight_at_a_time(containerd):
    with concurrent.futures.ThreadPoolExecutor(8) as workers:
        pods = list(workers.map(containerd.run, [f"pod{number}" for number in range(30)]))
        given = list(workers.map(containerd.addresses, pods))
        files = containerd.held()
        for pod, addresses in zip(pods, given):
            assert [files.pop(address) for address in addresses] == [f"{pod}\r\neth0"] * 2
        assert files == {}
        list(workers.map(containerd.stop, pods))
        list(workers.map(containerd.remove, pods))
    assert containerd.held() == {}
    assert {tuple(call[0] for call in containerd.calls(pod)) for pod in pods} == {("ADD", "DEL", "DEL")}


def test_swap_under_running_pods(containerd, host_local_dir):
    """Pods of one host-local are stopped with the other, and the next pods get what is behind the last address."""
    plugins = {"ours": f"{host_local_dir}/host-local", "go": f"{GO_PLUGINS}/host-local"}
    addressfiles.reserve_static(containerd.data_dir, "net", "10.94.0.4", "db-0")
    pods = {}
    for whose, number in (("ours", 2), ("ours", 3), ("go", 5), ("go", 6), ("ours", 7)):
        containerd.install(plugins[whose])
        pod = containerd.run(f"pod{number}")
        assert containerd.addresses(pod)[0] == f"10.94.0.{number}"
        assert addressfiles.written_by(containerd.data_dir, "net", f"10.94.0.{number}") == whose
        pods[number] = pod
    for whose, number in (("ours", 5), ("go", 2), ("go", 7), ("ours", 6), ("go", 3)):
        containerd.install(plugins[whose])
        containerd.stop(pods[number])
        assert f"10.94.0.{number}" not in containerd.held()
        containerd.remove(pods[number])
    assert containerd.held() == {"10.94.0.4": "static.db-0\r\neth0"}


def test_a_pod_keeps_its_address(containerd, host_local_dir):
    """A StatefulSet pod is replaced, also while Go is the plugin: it has the address that is reserved for it."""
    (containerd.work / "netd/10-net.conflist").write_text(json.dumps(conflist(containerd.data_dir, stickyStatic=True)))
    reserved = {"10.94.0.60": "static.shop.db-0\r\neth0"}
    addressfiles.reserve_static(containerd.data_dir, "net", "10.94.0.60", "shop.db-0")
    deadline = time.monotonic() + 20
    while True:  # containerd reads a changed file when the kernel tells it
        pod = containerd.run("db-0", "shop")
        if containerd.addresses(pod)[0] == "10.94.0.60":
            break
        containerd.stop(pod)
        containerd.remove(pod)
        assert time.monotonic() < deadline, containerd.log()
    for number in range(2):
        files = containerd.held()
        assert files["10.94.0.60.holder"] == f"{pod}\r\neth0"
        assert containerd.addresses(containerd.run("web", "shop", f"web{number}"))[0] != "10.94.0.60"
        with pytest.raises(cri.CallFailed):
            containerd.run("db-0", "shop", f"early{number}")
        assert f"still held by container {pod} interface eth0" in containerd.log()
        assert containerd.held()["10.94.0.60.holder"] == files["10.94.0.60.holder"]
        containerd.install(f"{GO_PLUGINS}/host-local")
        containerd.stop(pod)
        containerd.remove(pod)
        assert "10.94.0.60.holder" not in containerd.held()
        containerd.install(f"{host_local_dir}/host-local")
        pod = containerd.run("db-0", "shop", f"next{number}")
        assert containerd.addresses(pod)[0] == "10.94.0.60"
    containerd.stop(pod)
    containerd.remove(pod)
    left = {name: content for name, content in containerd.held().items() if name.startswith("10.94.0.6")}
    assert left == reserved


def test_a_pod_that_gets_no_address(containerd):
    """A full network: RunPodSandbox fails, containerd takes it down again, nothing stays."""
    for last in range(2, 127):
        addressfiles.reserve_static(containerd.data_dir, "net", f"10.94.0.{last}", "taken")
    with pytest.raises(cri.CallFailed):
        containerd.run("pod0")
    assert "no IP addresses available in range set: 10.94.0.1-10.94.0.126" in containerd.log()
    assert set(containerd.held().values()) == {"static.taken\r\neth0"}
