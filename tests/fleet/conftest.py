# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures of the tests over SSH; they need root, namespaces, the Go plugins and ansible-core."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "tools")]

import nodes
import plugin_sets
import sshd
from controller import Controller


def leave_out(why: str) -> None:
    """End the test: failed where ``CI=true``, else skipped with the reason."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"not run: {why}")
    pytest.skip(f"not run: {why}")


@pytest.fixture(scope="session", autouse=True)
def able():
    """What this machine must have."""
    if os.geteuid() != 0:
        leave_out("nodes of their own need root")
    for program in ("ssh", "ssh-keygen", "nsenter", "unshare", "ip"):
        if not shutil.which(program):
            leave_out(f"there is no {program}")
    for plugin in plugin_sets.BRIDGE_SET:
        if not os.path.exists(os.path.join(plugin_sets.GO_PLUGINS, plugin)):
            leave_out(f"there is no {plugin_sets.GO_PLUGINS}/{plugin} (Debian package containernetworking-plugins)")
    try:
        sshd.layer()
    except OSError as exc:
        leave_out(str(exc))


@pytest.fixture
def control(able, tmp_path):
    """Call ``control(count, variables, bare)``; it returns a Controller of that many new nodes."""
    started = []

    def start(count: int, variables: dict, bare: bool = False) -> Controller:
        try:
            fleet = nodes.Fleet([f"node{number}" for number in range(1, count + 1)], bare=bare)
        except AssertionError as exc:
            leave_out(f"nodes cannot be made here: {exc}")
        started.append(fleet)
        return Controller(fleet, tmp_path, variables)

    yield start
    for fleet in started:
        fleet.close()
