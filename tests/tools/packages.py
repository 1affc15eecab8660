# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of the distribution that the tests use: present, installed as root on Debian, or named as missing."""

from __future__ import annotations

import os
import shutil
import subprocess

GO_PLUGIN = "/usr/lib/cni/host-local"
DEBIAN = {
    GO_PLUGIN: "containernetworking-plugins",
    "ip": "iproute2",
    "openssl": "openssl",
    "shellcheck": "shellcheck",
    "strace": "strace",
}
# what the tests with real clients need besides
CLIENTS = {
    "busybox": "busybox-static",
    "containerd": "containerd",
    "iptables": "iptables",
    "podman": "podman",
    "runc": "runc",
    "/usr/share/gocode/src/github.com/containernetworking/cni/libcni": "golang-github-appc-cni-dev",
    "/usr/lib/go-1.19/bin/go": "golang-1.19-go",
}
# what the tests of the audit's page use, any of them; the first is what is installed where there is none
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def missing(programs: list[str]) -> list[str]:
    return [name for name in programs if not (os.path.exists(name) if os.path.isabs(name) else shutil.which(name))]


def obstacle() -> str | None:
    """Why nothing can be installed here; None when it can."""
    if os.environ.get("NODENET_NO_APT"):
        return "NODENET_NO_APT is set"
    if not shutil.which("apt-get"):
        return "this is not a Debian system"
    if os.geteuid() != 0:
        return "installing it needs root"
    return None


def apt(*arguments: str) -> bool:
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    command = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", *arguments]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, env=environment, check=False, **quiet)
    if done.returncode:
        print(done.stdout.decode(errors="replace")[-2000:], flush=True)
    return done.returncode == 0


def install(names: list[str]) -> bool:
    """Install Debian packages; the lists are fetched only when the first try finds them wanting."""
    wanted = ["install", "-y", "--no-install-recommends", *names]
    return apt(*wanted) or (apt("update") and apt(*wanted))


def browser() -> str | None:
    """Make a browser available; None, or one sentence that says why there is none."""
    return None if any(map(shutil.which, BROWSERS)) else ensure(BROWSERS[0])


def ensure(*programs: str) -> str | None:
    """Make the programs available; None, or one sentence that says what is missing and why."""
    absent = missing(list(programs))
    if not absent:
        return None
    names = sorted({{**DEBIAN, **CLIENTS}.get(name, name) for name in absent})
    why = obstacle()
    if why is None:
        print("installing %s" % ", ".join(names), flush=True)
        install(names)
        absent = missing(absent)
        if not absent:
            return None
        why = "installing it failed"
    return "%s is missing (Debian package %s) and %s" % (", ".join(absent), ", ".join(names), why)
