# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""podman 4 with network_backend cni, which calls the plugins through the real libcni, on a machine of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess

import addressfiles
import needs
import pytest
from machine import GO_PLUGINS

NETWORKS = {
    "front": ("cni1", ["10.91.0.0/24", "fd00:91::/64"]),
    "back": ("cni2", ["10.92.0.0/24"]),
}

CONTAINERS_CONF = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
log_driver = "k8s-file"
seccomp_profile = ""
[network]
network_backend = "cni"
cni_plugin_dirs = ["{plugins}", "{go}"]
network_config_dir = "{work}/netd"
default_network = "front"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{work}/tmp"
"""


def conflist(name, data_dir):
    bridge, subnets = NETWORKS[name]
    ipam = {
        "type": "host-local",
        "dataDir": str(data_dir),
        "ranges": [[{"subnet": subnet}] for subnet in subnets],
        "routes": [{"dst": "::/0" if ":" in subnet else "0.0.0.0/0"} for subnet in subnets if name == "front"],
    }
    plugin = {"type": "bridge", "bridge": bridge, "isGateway": True, "ipam": ipam}
    return {"cniVersion": "0.4.0", "name": name, "plugins": [plugin]}


class Podman:
    """podman with its stores below a work directory, in a machine."""

    def __init__(self, machine, work, plugins, data_dir, busybox) -> None:
        self.machine = machine
        self.work = work
        self.data_dir = data_dir
        for folder in ("netd", "tmp", "rootfs/bin", "rootfs/etc", "rootfs/proc", "rootfs/sys", "rootfs/dev"):
            (work / folder).mkdir(parents=True)
        shutil.copy(busybox, work / "rootfs/bin/busybox")
        for name in NETWORKS:
            (work / f"netd/{name}.conflist").write_text(json.dumps(conflist(name, data_dir)))
        text = CONTAINERS_CONF.format(work=work, plugins=plugins, go=GO_PLUGINS)
        (work / "containers.conf").write_text(text)

    def __call__(self, *arguments: str, **options) -> str:
        # both are the machine's own; podman refuses a runroot of more than 50 characters
        stores = ["--root", "/var/lib/containers/storage", "--runroot", "/run/containers", "--storage-driver", "vfs"]
        environment = dict(os.environ, CONTAINERS_CONF=f"{self.work}/containers.conf", HOME=str(self.work))
        done = self.machine.run("podman", *stores, *arguments, env=environment, timeout_s=90, **options)
        return done.stdout if done.returncode == 0 else done.stderr

    def start(self, name: str, *options: str, check: bool = True) -> str:
        """Run a container that sleeps; return its id, or with *check* False what podman says."""
        command = ["--rootfs", f"{self.work}/rootfs", "/bin/busybox", "sleep", "300"]
        limits = ["--cgroup-parent", self.machine.cgroup, "--pull", "never"]
        return self("run", "-d", "--name", name, *limits, *options, *command, check=check).strip()

    def addresses(self, name: str, ifname: str = "eth0") -> list[str]:
        """Return what the container itself sees on an interface, without prefixes and link-local addresses."""
        text = self("exec", name, "/bin/busybox", "ip", "addr", "show", "dev", ifname)
        found = re.findall(r"inet6? ([0-9a-f.:]+)/\d+", text)
        return sorted(one for one in found if not one.startswith("fe80:"))

    def held(self, network: str) -> dict[str, str]:
        return addressfiles.held(self.data_dir, network)

    def clean(self) -> None:
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self("rm", "--all", "--force", "--time", "0")


@pytest.fixture
def podman(machine, host_local_dir, tmp_path):
    mandatory = needs.debian_12()
    needs.require("podman", "runc", "iptables", mandatory=mandatory)
    version = subprocess.run(["podman", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    if not version.startswith("4."):
        needs.leave_out(f"podman {version} has no CNI backend", mandatory)
    busybox = needs.static_busybox(mandatory)
    client = Podman(machine, tmp_path / "podman", host_local_dir, tmp_path / "data", busybox)
    try:
        yield client
    finally:
        client.clean()


def test_containers(podman):
    """--ip, dual stack, two networks, rm; a static reservation is not handed out."""
    addressfiles.reserve_static(podman.data_dir, "front", "10.91.0.2", "db-0")
    first = podman.start("first")
    assert podman.held("front") == {
        "10.91.0.2": "static.db-0\r\neth0",
        "10.91.0.3": f"{first}\r\neth0",
        "fd00:91::2": f"{first}\r\neth0",
    }
    assert addressfiles.written_by(podman.data_dir, "front", "10.91.0.3") == "ours"
    assert podman.addresses("first") == ["10.91.0.3", "fd00:91::2"]

    wanted = podman.start("wanted", "--network", "front", "--ip", "10.91.0.77")
    assert podman.held("front")["10.91.0.77"] == f"{wanted}\r\neth0"
    assert podman.addresses("wanted") == ["10.91.0.77", "fd00:91::3"]

    both = podman.start("both", "--network", "back,front")
    entries = {network: sorted(podman.held(network).items()) for network in NETWORKS}
    ours = {
        (network, address): content.partition("\r\n")[2]
        for network, files in entries.items()
        for address, content in files
        if content.startswith(both)
    }
    assert sorted(set(ours.values())) == ["eth0", "eth1"]
    assert sorted(ours) == [("back", "10.92.0.2"), ("front", "10.91.0.78"), ("front", "fd00:91::4")]
    for ifname in ("eth0", "eth1"):
        of_interface = sorted(address for (_network, address), name in ours.items() if name == ifname)
        assert podman.addresses("both", ifname) == of_interface

    for address in ("10.91.0.77", "10.91.0.78", "10.91.0.1"):
        podman("exec", "first", "/bin/busybox", "ping", "-c", "1", "-W", "2", address)
    podman("exec", "first", "/bin/busybox", "ping", "-6", "-c", "1", "-W", "2", "fd00:91::3")

    said = podman.start("refused", "--network", "front", "--ip", "10.91.0.2", check=False)
    assert "requested IP address 10.91.0.2 is not available in range set" in said
    podman("rm", "--force", "--time", "0", "first", "wanted", "both")
    assert podman.held("front") == {"10.91.0.2": "static.db-0\r\neth0"}
    assert podman.held("back") == {}


def test_stop_and_start(podman):
    """A stopped container holds nothing; started again it goes on behind the last address that was given."""
    first = podman.start("first", "--network", "back")
    podman("stop", "--time", "0", "first")
    assert podman.held("back") == {}
    podman("start", "first")
    assert podman.held("back") == {"10.92.0.3": f"{first}\r\neth0"}
    podman("rm", "--force", "--time", "0", "first")
    assert podman.held("back") == {}
