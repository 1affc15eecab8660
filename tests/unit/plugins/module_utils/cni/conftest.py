# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures for what calls plugins or works in network namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import netns


@pytest.fixture
def plugin(tmp_path):
    """Write a plugin as a shell script; `record` is a directory to which it may write, as $RECORD."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def write(name, script):
        path = folder / name
        path.write_text("#!/bin/sh\nRECORD=%s\n%s\n" % (tmp_path, script))
        path.chmod(0o755)
        return str(path)

    write.folder = str(folder)
    write.record = tmp_path
    return write


@pytest.fixture
def namespace(tmp_path):
    """The path of a new network namespace, and a function that runs the program ip in it."""
    if os.geteuid() != 0 or not shutil.which("nsenter") or not shutil.which("ip"):
        pytest.skip("not run: network namespaces need root and the programs ip and nsenter")
    path = str(tmp_path / "netns")
    netns.create(path)

    def ip(*arguments):
        command = ["nsenter", "--net=" + path, "ip"] + list(arguments)
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout

    ip.path = path
    try:
        yield ip
    finally:
        netns.remove(path)
