# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What this machine must have for these tests; what it lacks is said, and is a failure where it is mandatory."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess

import pytest

PACKAGES = {
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "/usr/lib/cni/host-local": "containernetworking-plugins",
    "busybox": "busybox-static",
    "containerd": "containerd",
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "openssl": "openssl",
    "podman": "podman",
    "runc": "runc",
    "unshare": "util-linux",
    "/usr/bin/python3": "python3-minimal",
}


def debian_12() -> bool:
    try:
        with open("/etc/debian_version", encoding="ascii") as stream:
            return stream.read().startswith("12")
    except OSError:
        return False


def leave_out(why: str, mandatory: bool) -> None:
    """End the test: as skipped with the reason, or as failed where ``CI=true`` and it is mandatory."""
    if mandatory and os.environ.get("CI") == "true":
        pytest.fail(f"not run: {why}")
    pytest.skip(f"not run: {why}")


def require(*programs: str, mandatory: bool = True) -> None:
    """Leave the test out unless this is root on Linux with these programs."""
    if os.geteuid() != 0:
        leave_out("namespaces of clients need root", mandatory)
    for program in programs:
        if not shutil.which(program):
            leave_out(f"there is no {program} (Debian package {PACKAGES[program]})", mandatory)


def static_busybox(mandatory: bool = True) -> str:
    """Return the path of the program that runs in containers, where there is no library beside it."""
    require("busybox", mandatory=mandatory)
    path = os.path.realpath(shutil.which("busybox") or "")
    if subprocess.run(["ldd", path], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0:
        leave_out(f"{path} needs shared libraries (Debian package busybox-static has one that does not)", mandatory)
    return path


@functools.lru_cache(maxsize=None)
def require_namespaces() -> None:
    """Leave the test out where a machine of its own cannot be made, for instance in most containers."""
    require("unshare", "nsenter", "ip", "/usr/bin/python3", "/usr/lib/cni/bridge", "/usr/lib/cni/host-local")
    namespaces = ["--net", "--mount", "--pid", "--ipc", "--uts", "--fork", "--mount-proc"]
    links = "mount -t tmpfs tmpfs /run && ip link add b0 type bridge && ip link add v0 type veth"
    probe = ["unshare", *namespaces, "sh", "-c", links]
    done = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        leave_out(f"a namespace for the Go plugins cannot be made: {done.stderr.strip()}", mandatory=True)
