# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures of the conformance tests; they need pytest and hypothesis, no Ansible."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import reporting
from multus_scenario import require_namespaces
from plugin_drivers import LibraryDriver, import_root


@pytest.fixture(scope="session", autouse=True)
def _collection_path():
    """Make ``ansible_collections.nodenet.cni`` this very tree, whatever else is installed."""
    with import_root() as base:
        yield base


@pytest.fixture
def collection_path(_collection_path):
    """The directory to import from, for processes that tests start."""
    return str(_collection_path)


@pytest.fixture(scope="session")
def library(_collection_path):
    return LibraryDriver()


@pytest.fixture(scope="session")
def executable(_collection_path, tmp_path_factory):
    """The path of host-local as an executable of this interpreter."""
    return _built("host-local", _collection_path, tmp_path_factory)


@pytest.fixture(scope="session")
def multus(_collection_path, tmp_path_factory):
    """The path of multus as an executable of this interpreter, for tests that have namespaces."""
    require_namespaces()
    return _built("multus", _collection_path, tmp_path_factory)


def _built(plugin, base, tmp_path_factory):
    from ansible_collections.nodenet.cni.plugins.module_utils.node import executables

    root = str(base / "ansible_collections" / "nodenet" / "cni" / "plugins" / "module_utils")
    python = os.path.realpath(sys.executable)
    return executables.build(root, str(tmp_path_factory.mktemp("bin")), [plugin], python)[0]


def pytest_terminal_summary(terminalreporter):
    for line in reporting.LINES:
        terminalreporter.write_line(line)
