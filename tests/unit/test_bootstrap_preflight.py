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


def bootstrap(folder, variables, playbook="bootstrap"):
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
        [*command, "nodenet.cni." + playbook], cwd=folder, env=environment, capture_output=True, text=True, check=False
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


ONE_NET = [{"name": "lan", "preset": "ptp", "subnet": "10.0.0.0/24"}]


def faults(text):
    """What the message names, one by one."""
    return text.split('"msg": "Cannot bring n1 to a CNI state: ')[1].split('"')[0].split("; ")


def test_one_slip_is_told_shortly(tmp_path):
    text = bootstrap(tmp_path, {"networks_conflists": [{"name": "podnet", "preset": "bridge", "subnett": "::/64"}]})
    assert faults(text) == ["network podnet: preset bridge takes no subnett, subnet is meant"]
    assert "UNREACHABLE" not in text
    assert len(text) < 1200, text


def test_slips_in_names_are_told_with_what_is_meant(tmp_path):
    slips = {
        "plugin_binaries_cheksum": "plugin_binaries_checksum",
        "node_probe_alow_shared": "node_probe_allow_shared",
        "networks_expect_efective": "networks_expect_effective",
    }
    networks = [
        {"name": "odd", "preset": "brigde", "subnet": "10.22.0.0/16"},
        {"name": "none", "preset": "cilium", "subnet": "10.22.0.0/16"},
        {"name": "six", "preset": "ptp", "subnets": [{"subnet": "::/64", "gatewy": "::1"}]},
        {"name": "chain", "pluggins": []},
        {"nane": "unnamed", "preset": "ptp", "subnet": "10.0.0.0/24"},
        {"name": "red", "preset": "ptp", "subnet": "10.0.0.0/24", "colour": "red"},
        {"name": "gone", "state": "absnet"},
        *ONE_NET,
    ]
    variables = dict.fromkeys(slips, "{{ undefined_as_yet }}")
    text = bootstrap(tmp_path, dict(variables, networks_conflists=networks))
    assert faults(text) == [
        *[
            f"there is no variable {name}, {slips[name]} is meant (if it is your own, list it in node_own_variables)"
            for name in sorted(slips)
        ],
        "network odd: there is no preset brigde, bridge is meant",
        "network none: there is no preset cilium, only bridge, ptp, macvlan, ipvlan, vlan, host-device, flannel",
        "network six: subnets takes no gatewy, gateway is meant",
        "network chain takes no pluggins, plugins is meant",
        "network 5 of networks_conflists needs a name",
        "network 5 of networks_conflists: preset ptp takes no nane",
        "network red: preset ptp takes no colour",
        "network gone: there is no state absnet, absent is meant",
    ]
    assert "UNREACHABLE" not in text


ABSENT = "which is not on the controller: put it there, or set plugin_binaries_remote_src if it is on the node"
#: What is added for a relative path; %s is the directory of the inventory, which is the current one.
SOUGHT = " (it is in none of %s, nor in files/ there or in a role)"


@pytest.mark.parametrize(
    ("source", "checksum", "words"),
    [
        (
            {
                "amd64": "absent.tgz",
                "arm64": "absent-{arch}.tgz",
                "arm": "~/nonexistent/absent.tgz",
                "s390x": "cni.tgz",
            },
            {
                "amd64": "sha256:absent/SHA256SUMS",
                "arm64": "sha256:/nonexistent/SUMS-{arch}",
                "arm": "sha256:https://example.org/SUMS",
                "s390x": "md5:" + "0" * 32,
                "386": "sha512:" + "0" * 64,
            },
            [
                "plugin_binaries_checksum has to begin with sha256: or sha512:, it is md5:" + "0" * 32,
                "plugin_binaries_checksum is no sha512 digest, which has 128 hex digits, not 64",
                "plugin_binaries_src names absent.tgz, " + ABSENT + SOUGHT,
                "plugin_binaries_src names absent-{arch}.tgz, "
                + ABSENT.replace("controller", "controller for any architecture")
                + SOUGHT,
                "plugin_binaries_src names ~/nonexistent/absent.tgz, " + ABSENT,
                "plugin_binaries_checksum names absent/SHA256SUMS, " + ABSENT + SOUGHT,
                "plugin_binaries_checksum names /nonexistent/SUMS-{arch}, "
                + ABSENT.replace("controller", "controller for any architecture"),
                "plugin_binaries_checksum is a URL, which is not fetched: put https://example.org/SUMS on the"
                " controller or on the node and name the file",
            ],
        ),
        ("cni.tgz", "sha256:SHA256SUMS", ["plugin_binaries_checksum names SHA256SUMS, " + ABSENT + SOUGHT]),
    ],
)
def test_files_that_are_not_there_are_told(tmp_path, source, checksum, words):
    (tmp_path / "cni.tgz").write_bytes(b"")
    text = bootstrap(tmp_path, {"plugin_binaries_src": source, "plugin_binaries_checksum": checksum})
    assert [one.replace(str(tmp_path), "%s") for one in faults(text)] == words
    assert "UNREACHABLE" not in text


def test_a_removal_refuses_slips_as_well(tmp_path):
    """Without its networks it would take the plugins away from under them."""
    text = bootstrap(tmp_path, {"networks_conflist": ONE_NET}, "remove")
    assert (
        "Cannot remove the CNI state of n1: there is no variable networks_conflist, networks_conflists is meant (if"
        " it is your own, list it in node_own_variables)"
    ) in text
    assert "UNREACHABLE" not in text


OWN = {
    "networks_of_our_company": ["10.0.0.0/8"],
    "node_exporter_version": "1.8.2",
    "node_network": "10.0.0.0/24",
    "node_own_variables": ["node_network"],
    "plugin_binaries_owner": "{{ undefined_as_yet }}",
}


def test_what_is_somebodys_own_and_what_can_be_found_is_no_fault(tmp_path):
    (tmp_path / "files").mkdir()
    for name in ("cni.tgz", "files/SHA256SUMS", "a-amd64.tgz", "files/b-arm64.tgz"):
        (tmp_path / name).write_bytes(b"")
    cases = [
        {"plugin_binaries_src": "cni.tgz", "plugin_binaries_checksum": "sha256:SHA256SUMS"},
        {"plugin_binaries_src": "a-{arch}.tgz", "plugin_binaries_checksum": "sha256:files/SHA256SUMS"},
        {
            "plugin_binaries_src": {"amd64": "a-{arch}.tgz", "arm64": "b-arm64.tgz"},
            "plugin_binaries_checksum": {"amd64": "sha256:" + "0" * 64, "arm64": "sha512:" + "0" * 128},
        },
    ]
    for variables in cases:
        text = bootstrap(tmp_path, dict(OWN, **variables, node_prerequisites=False))
        assert "Cannot bring n1" not in text
        assert "Install or remove the plugins" in text


def test_what_lies_on_the_node_is_not_looked_for_here(tmp_path):
    for variables in (
        {"plugin_binaries_src": "/nonexistent/a.tgz", "plugin_binaries_remote_src": True},
        {
            "plugin_binaries_src": "/nonexistent/a-{arch}.tgz",
            "plugin_binaries_checksum": "sha256:/nonexistent/SHA256SUMS",
            "plugin_binaries_remote_src": True,
        },
    ):
        text = bootstrap(tmp_path, dict(variables, node_prerequisites=False))
        assert "Cannot bring n1" not in text
        assert "Install or remove the plugins" in text
