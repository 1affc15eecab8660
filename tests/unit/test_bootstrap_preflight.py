# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What playbook bootstrap refuses before it asks a node anything: all of it at once, with what to set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTHING = "set at least one of plugin_binaries_src, plugin_binaries_embedded, plugin_binaries_required"


def bootstrap(folder, variables):
    """Run the playbook for a host that does not exist: whoever asks it anything fails in another way."""
    everything = {
        "ansible_connection": "ssh",
        "ansible_host": "nowhere.invalid",
        "ansible_ssh_executable": "/bin/false",
    }
    inventory = {"all": {"hosts": {"n1": {}}, "vars": dict(everything, **variables)}}
    (folder / "inventory.yml").write_text(json.dumps(inventory))
    command = [os.path.join(os.path.dirname(sys.executable), "ansible-playbook"), "-i", "inventory.yml"]
    environment = dict(
        os.environ,
        ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".dev"),
        ANSIBLE_LOCAL_TEMP=str(folder / "tmp"),
        ANSIBLE_NOCOLOR="1",
        ANSIBLE_SSH_RETRIES="0",
    )
    done = subprocess.run(
        [*command, "nodenet.cni.bootstrap"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return " ".join((done.stdout + done.stderr).split())


def test_everything_that_is_wrong_is_told_at_once(tmp_path):
    variables = {
        "node_bin_dir": "opt/cni/bin",
        "node_state_dir": "",
        "node_probe_timeout": 0,
        "plugin_binaries_src": {"amd64": "/nonexistent/a.tgz", "arm64": "https://example.org/b.tgz", "x86": "/"},
    }
    text = bootstrap(tmp_path, variables)
    wanted = [
        "node_bin_dir has to be an absolute path, it is opt/cni/bin",
        "node_state_dir has to be an absolute path, it is empty",
        "plugin_binaries_src has to name architectures like amd64 and arm64, not amd64, arm64, x86",
        "plugin_binaries_src names /nonexistent/a.tgz, which is not on the controller: put it there, or set"
        " plugin_binaries_remote_src if it is on the node",
        "plugin_binaries_src is a URL, which is not fetched: put https://example.org/b.tgz on the controller or on the"
        " node and name the file",
        "node_probe_timeout has to be more than 0 and at most 3600 seconds",
    ]
    assert "Cannot bring n1 to a CNI state: " + "; ".join(wanted) in text
    assert "UNREACHABLE" not in text


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, NOTHING),
        (
            {"networks_conflists": [{"name": "a", "preset": "ptp", "subnet": "10.0.0.0/24"}], "node_networks": False},
            NOTHING,
        ),
        (
            {"plugin_binaries_required": ["a"], "plugin_binaries_checksum": "sha256:0"},
            "plugin_binaries_checksum is for an archive",
        ),
        (
            {"plugin_binaries_required": ["a"], "network_conflists": []},
            "there is no variable network_conflists, networks_conflists is meant",
        ),
        (
            {"plugin_binaries_required": ["a"], "plugin_binary_embedded": ["multus"]},
            "there is no variable plugin_binary_embedded, plugin_binaries_embedded is meant",
        ),
    ],
)
def test_one_fault(tmp_path, variables, words):
    text = bootstrap(tmp_path, variables)
    assert "Cannot bring n1 to a CNI state: " + words in text
    assert "; " not in text.split("Cannot bring n1 to a CNI state: ")[1].split('"')[0]


def test_what_lies_on_the_node_or_is_told_by_it_is_not_looked_for_here(tmp_path):
    for variables in (
        {"plugin_binaries_src": "/nonexistent/a.tgz", "plugin_binaries_remote_src": True},
        {"plugin_binaries_src": "/nonexistent/a-{arch}.tgz"},
    ):
        text = bootstrap(tmp_path, dict(variables, node_prerequisites=False))
        assert "Cannot bring n1" not in text
        assert "Install or remove the plugins" in text
