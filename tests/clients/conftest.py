# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures of the tests with real clients; they need pytest, root and Debian's packages, no Ansible."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import libcni_calls
import needs
from machine import GO_PLUGINS, SYSTEM_PYTHON, Machine

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
# by the Python of the system, as on a node: the byte code is that interpreter's
BUILD = """
import sys
plugins, target, name = sys.argv[1:]
sys.path.insert(0, plugins)
from module_utils.node import executables
print(executables.build(plugins + "/module_utils", target, [name], executables.node_python())[0])
"""


def build(name: str, target: Path) -> str:
    """Build one of our executables in a bin dir of its own; return its path."""
    needs.require_namespaces()
    command = [SYSTEM_PYTHON, "-IBS", "-c", BUILD, str(PLUGINS), str(target), name]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == target / name
    return str(target / name)


@pytest.fixture(scope="session")
def host_local_dir(tmp_path_factory):
    """A bin dir with nothing but our host-local."""
    return os.path.dirname(build("host-local", tmp_path_factory.mktemp("plugins")))


@pytest.fixture(scope="session")
def multus(tmp_path_factory):
    """The path of our multus."""
    return build("multus", tmp_path_factory.mktemp("multus"))


@pytest.fixture(scope="session")
def paths(host_local_dir):
    """CNI_PATH by whose host-local comes first in it."""
    return {"ours": f"{host_local_dir}:{GO_PLUGINS}", "go": GO_PLUGINS}


@pytest.fixture
def machine():
    needs.require_namespaces()
    node = Machine()
    try:
        yield node
    finally:
        node.close()


@pytest.fixture(scope="session")
def client_program(tmp_path_factory):
    """The client of libcni."""
    return libcni_calls.build(tmp_path_factory.mktemp("libcni"))


@pytest.fixture
def libcni(machine, client_program, paths, tmp_path):
    """Call ``libcni(command, conflist, pod, ...)``; it returns what libcni does, or raises ClientFailed."""
    return libcni_calls.caller(machine, client_program, paths, tmp_path / "cache")
