# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real leaks of real runtimes: what host_local_gc frees, what it keeps, and what comes back."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import addressfiles
import needs
import ociimage
import pytest
from machine import SYSTEM_PYTHON
from test_containerd import Containerd
from test_podman import Podman

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
RUN = """
import json, sys
sys.path.insert(0, sys.argv[1])
from module_utils.cni.errors import NodenetError
from module_utils.node import ipam_report, liveness, reclaim_restore, reclaim_run
task, options = sys.argv[2], json.loads(sys.argv[3])
try:
    if task == "report":
        live = {"discover": True, "attachments": None}
        print(json.dumps(ipam_report.report(options["conf_dir"], "/none", names=["net"], live=live)))
    elif task == "restore":
        print(json.dumps(reclaim_restore.restore(options, False).result))
    else:
        where = {"containerd": liveness.CONTAINERD, "storage_root": liveness.STORAGE_ROOT, "sources": liveness.SOURCES,
                 "crio_address": liveness.CRIO_ADDRESS, "results_dirs": liveness.RESULTS_DIRS}
        print(json.dumps(reclaim_run.reclaim_addresses(dict(where, **options), task == "check").result))
except NodenetError as error:
    print(json.dumps({"failed": str(error), "sources": error.facts.get("sources")}))
"""
# what a reboot leaves: nothing that runs, no mounts of containers, an empty /run
REBOOT = r"""
kill -9 -1
for point in $(awk '$5 ~ "^/(run|var/lib)/." {print $5}' /proc/self/mountinfo | sort -r); do umount -l "$point"; done
rm -rf /run/* && mkdir /run/lock
for link in $(ls /sys/class/net); do [ "$link" = lo ] || ip link del "$link"; done
"""


class Node:
    """What an operator does on a machine with a network in a data dir."""

    def __init__(self, machine, work, conf_dir=None, network="net", env=None) -> None:
        self.machine = machine
        self.network = network
        self.env = env
        self.data_dir = work / "data"
        self.options = {
            "networks": None,
            "all": True,
            "orphans": False,
            "conf_dir": str(conf_dir or work / "c/netd"),
            "data_dir": None,
            "flannel_subnet_file": str(work / "none"),
            "state_dir": str(work / "state"),
            "live": None,
            "grace": 60.0,
            "force_empty": False,
            "command_timeout": 20.0,
            "lock_timeout": 10.0,
        }

    def _run(self, task, options):
        command = [SYSTEM_PYTHON, "-IBS", "-c", RUN, str(PLUGINS), task, json.dumps(options)]
        done = self.machine.run(*command, env=self.env)
        return json.loads(done.stdout)

    def gc(self, check=False, **more):
        return self._run("check" if check else "gc", dict(self.options, **more))

    def leaked(self):
        """Return the addresses that the report of host_local_info calls leaked."""
        report = self._run("report", self.options)
        return sorted(one["address"] for one in report["networks"][0]["reservations"] if one["alive"] is False)

    def restore(self, run_id):
        names = ("state_dir", "lock_timeout", "data_dir")
        return self._run(
            "restore", dict({name: self.options[name] for name in names}, network=self.network, restore=run_id)
        )

    def held(self):
        return addressfiles.held(self.data_dir, self.network)

    def age(self, seconds) -> None:
        """Let some time pass for all address files."""
        when = time.time() - seconds
        for name in self.held():
            os.utime(self.data_dir / self.network / name, (when, when))


class Rebooted(Containerd):
    """A containerd whose machine can be rebooted."""

    def reboot(self, image, wipe: bool) -> None:
        """End everything on the machine and start containerd again, with *wipe* as one that never ran before."""
        self.machine.run("sh", "-c", REBOOT + ("rm -rf /var/lib/containerd" if wipe else ""))
        self._server.wait()
        self._server = subprocess.Popen(
            [*self.machine.entry, "containerd", "--config", f"{self.work}/config.toml"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self.wait(image)


@pytest.fixture
def containerd(machine, host_local_dir, tmp_path):
    needs.require("containerd", "runc", "iptables")
    ociimage.write(tmp_path / "pause.tar", "localhost/pause:1", needs.static_busybox(), ["sleep", "600"])
    server = Rebooted(machine, tmp_path / "c", f"{host_local_dir}/host-local", tmp_path / "data")
    try:
        server.wait(tmp_path / "pause.tar")
        yield server
    finally:
        server.close()


def addresses(rows):
    return sorted(one["address"] for one in rows)


def test_pods_that_leaked(containerd, machine, tmp_path):
    """Three pods leak with their runtime's data, two are alive, one address is static: exactly the three go."""
    node, image = Node(machine, tmp_path), tmp_path / "pause.tar"
    addressfiles.reserve_static(node.data_dir, "net", "10.94.0.9", "db-0")
    lost = [containerd.run(f"lost{number}") for number in range(3)]
    leaked = sorted(address for pod in lost for address in containerd.addresses(pod))
    node.age(7200)
    assert addresses(node.gc(check=True)["removed"]) == []

    # a reboot alone leaves the pods for the kubelet to remove: their addresses are still theirs
    containerd.reboot(image, wipe=False)
    result = node.gc()
    assert addresses(result["removed"]) == []
    assert {one["reason"] for one in result["kept"]} == {"alive", "static"}

    containerd.reboot(image, wipe=True)
    alive = [containerd.run(f"alive{number}") for number in range(2)]
    kept = sorted(address for pod in alive for address in containerd.addresses(pod))
    node.age(7200)
    before = node.held()
    cached = sorted(os.listdir(machine.path("/var/lib/cni/results")))
    assert node.leaked() == leaked
    assert addresses(node.gc(check=True)["removed"]) == leaked
    assert node.held() == before

    freed = node.gc()
    assert addresses(freed["removed"]) == leaked
    assert sorted(node.held()) == sorted([*kept, "10.94.0.9"])
    left = os.listdir(machine.path("/var/lib/cni/results"))
    entries = [f"net-{pod}-eth0" for pod in lost]
    assert set(entries) <= set(cached)
    assert not set(entries) & set(left)
    assert {one["name"] for one in freed["sources"] if one["authoritative"]} == {"containerd", "cri", "ctr"}

    assert addresses(node.restore(freed["run_id"])["added"]) == leaked
    assert node.held() == before
    assert sorted(os.listdir(machine.path("/var/lib/cni/results"))) == cached
    assert addresses(node.gc()["removed"]) == leaked
    for pod in alive:
        containerd.stop(pod)
        containerd.remove(pod)
    assert node.held() == {"10.94.0.9": "static.db-0\r\neth0"}


def test_a_node_that_came_back_empty(containerd, machine, tmp_path):
    """Boot time newer than every file, the runtime up and empty: all go. Younger files are refused."""
    node, image = Node(machine, tmp_path), tmp_path / "pause.tar"
    for number in range(2):
        containerd.run(f"lost{number}")
    leaked = sorted(node.held())
    containerd.reboot(image, wipe=True)
    node.age(90)
    assert "set force_empty=true if really nobody is alive" in node.gc()["failed"]
    node.age(time.time() - 1000)  # before any boot
    assert addresses(node.gc()["removed"]) == leaked
    assert node.held() == {}


def test_pods_of_a_containerd_that_nobody_named(containerd, machine, tmp_path):
    """Told of the wrong directories, with a list that knows one pod: what the others do on the node is seen."""
    node = Node(machine, tmp_path)
    pods = [containerd.run(f"pod{number}") for number in range(3)]
    node.age(7200)
    wrong = [{"root": "/var/lib/other", "state": "/run/other"}]
    live = {"attachments": [{"container_id": pods[0]}]}
    assert "which the option containerd does not name" in node.gc(containerd=wrong, live=live)["failed"]
    for sources in (["processes"], ["namespaces"], ["caches"]):
        result = node.gc(sources=sources, live=live)
        assert addresses(result["removed"]) == [], sources
        assert {one["reason"] for one in result["kept"]} == {"alive"}, sources
    # the list alone would have freed the addresses of two pods that run
    assert len(node.gc(sources=[], live=live, check=True)["removed"]) == 4


def test_a_runtime_that_is_down(containerd, machine, tmp_path):
    node = Node(machine, tmp_path)
    containerd.run("pod0")
    node.age(7200)
    machine.run("sh", "-c", "kill -9 $(pidof containerd)")
    assert "containerd.sock does not answer" in node.gc()["failed"]


@pytest.fixture
def podman(machine, host_local_dir, tmp_path):
    mandatory = needs.debian_12()
    needs.require("podman", "runc", "iptables", mandatory=mandatory)
    version = subprocess.run(["podman", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    if not version.startswith("4."):
        needs.leave_out(f"podman {version} has no CNI backend", mandatory)
    client = Podman(machine, tmp_path / "podman", host_local_dir, tmp_path / "data", needs.static_busybox(mandatory))
    try:
        yield client
    finally:
        client.clean()


def test_containers_of_podman(podman, machine, tmp_path):
    """What podman forgot goes; what it knows stays, also containers that are in no storage, and stopped ones."""
    environment = dict(os.environ, CONTAINERS_CONF=f"{podman.work}/containers.conf", HOME=str(podman.work))
    node = Node(machine, tmp_path, conf_dir=podman.work / "netd", network="front", env=environment)
    podman.start("lost")
    leaked = sorted(node.held())
    assert len(leaked) == 2
    machine.run("sh", "-c", REBOOT + "rm -rf /var/lib/containers")
    alive = podman.start("alive")
    killed = podman.start("killed")
    # neither podman nor the plugin is told of its end
    machine.run("kill", "-9", *podman("inspect", "-f", "{{.State.ConmonPid}} {{.State.Pid}}", killed).split())
    node.age(7200)
    result = node.gc(networks=["front"], all=None)
    assert addresses(result["removed"]) == leaked
    assert {content.partition("\r\n")[0] for content in node.held().values()} == {alive, killed}
    assert "podman" in {name for one in result["kept"] for name in one["by"]}
    assert addresses(node.restore(result["run_id"])["added"]) == leaked
