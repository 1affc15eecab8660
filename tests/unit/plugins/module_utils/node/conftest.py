# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest


@pytest.fixture
def case():
    """Load a public case of tests/cases by its id."""
    root = os.path.abspath(__file__)
    while not os.path.isdir(os.path.join(root, "tests", "cases")):
        root = os.path.dirname(root)

    def load(name):
        with open(os.path.join(root, "tests", "cases", name + ".json"), encoding="utf-8") as stream:
            return json.load(stream)

    return load


class NodeTree:
    """A node's files below one directory: what a kernel and its daemons would show, made of ordinary files."""

    RELEASE = "6.1.0-test"

    def __init__(self, root):
        self.root = root
        self.programs = root / "sbin"
        for folder in ("proc/sys/kernel", "proc/net", "sys/module", "boot", "sbin", "etc", "net.d"):
            (root / folder).mkdir(parents=True)
        self.write("proc/sys/kernel/osrelease", self.RELEASE + "\n")
        self.setting("net/ipv4/ip_forward", "0")
        self.setting("net/ipv6/conf/all/forwarding", "0")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name):
        path = self.root / name
        return path.read_text(encoding="utf-8") if path.is_file() else None

    def setting(self, key, value):
        self.write("proc/sys/" + key, value + "\n")

    def module_files(self, *names):
        """Make a kernel whose loadable modules are these."""
        lines = ["kernel/drivers/net/{}.ko.xz: kernel/lib/libcrc32c.ko.xz\n".format(name) for name in names]
        self.write("lib/modules/{}/modules.dep".format(self.RELEASE), "".join(lines))

    def builtin(self, *names):
        text = "".join("kernel/net/{}.ko\n".format(name) for name in names)
        self.write("lib/modules/{}/modules.builtin".format(self.RELEASE), text)

    def program(self, name, text):
        path = self.write("sbin/" + name, text)
        path.chmod(0o755)
        return path

    def places(self, **more):
        from ansible_collections.nodenet.cni.plugins.module_utils.node import survey

        root = str(self.root)
        values = {
            "modules_load_dir": root + "/etc/modules-load.d",
            "sysctl_dir": root + "/etc/sysctl.d",
            "networkmanager_dir": root + "/etc/NetworkManager/conf.d",
            "firewalld_dir": root + "/etc/firewalld",
            "sysctl_others": [root + "/run/sysctl.d", root + "/usr/lib/sysctl.d", root + "/etc/sysctl.conf"],
            "proc": root + "/proc",
            "sys": root + "/sys",
            "modules": root + "/lib/modules",
            "boot": root + "/boot",
            "programs": [str(self.programs)],
            "systemd": root + "/etc/systemd/system",
            "nm_vendor": [root + "/usr/lib/NetworkManager/conf.d"],
        }
        values.update(more)
        return survey.Places(**values)


@pytest.fixture
def node(tmp_path):
    """An empty node, see NodeTree."""
    return NodeTree(tmp_path / "node")


@pytest.fixture
def in_namespace():
    """Call in_namespace(code, *arguments): run it with this Python in a network and mount namespace of its own.

    The settings below net.* are those of the namespace then, and nothing that it does reaches the machine.
    """
    how = ["unshare", "-n", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-n", "-m"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*how, "true"], stderr=subprocess.DEVNULL, check=False).returncode
    ):
        pytest.skip("not run: no right to make a network namespace")

    def run(code, *arguments):
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run(
            [*how, sys.executable, "-c", code, *[str(one) for one in arguments]],
            env=environment,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    return run
