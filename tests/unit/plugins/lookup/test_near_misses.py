# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from ansible_collections.nodenet.cni.plugins.lookup import near_misses as plugin
from ansible_collections.nodenet.cni.plugins.plugin_utils import near_names

ROOT = Path(__file__).resolve().parents[4]
SLIPS = {
    "plugin_binaries_cheksum": "plugin_binaries_checksum",
    "plugin_binaries_chekcsum": "plugin_binaries_checksum",
    "plugin_binaries_checksums": "plugin_binaries_checksum",
    "plugin_binaries_checksum_": "plugin_binaries_checksum",
    "plugin_binaries_scr": "plugin_binaries_src",
    "plugin_binares_src": "plugin_binaries_src",
    "plugin_binaries_file_checksum": "plugin_binaries_file_checksums",
    "plugin_binaries_remotesrc": "plugin_binaries_remote_src",
    "plugin_binary_embedded": "plugin_binaries_embedded",
    "plugin_binary_src": "plugin_binaries_src",
    "pluginbinaries_src": "plugin_binaries_src",
    "plugins_binaries_required": "plugin_binaries_required",
    "plugins_binaries_state": "plugin_binaries_state",
    "plugin-binaries-src": "plugin_binaries_src",
    "network_conflist": "networks_conflists",
    "network_conflists": "networks_conflists",
    "networks_conflist": "networks_conflists",
    "networks_conflicts": "networks_conflists",
    "networks_conf_lists": "networks_conflists",
    "Networks_Conflists": "networks_conflists",
    "networks_expect_efective": "networks_expect_effective",
    "networks_valdiate": "networks_validate",
    "network_expect_effective": "networks_expect_effective",
    "reservation_network": "reservations_networks",
    "reservation_networks": "reservations_networks",
    "reservations_network": "reservations_networks",
    "multus_kubconfig": "multus_kubeconfig",
    "multus_mater": "multus_master",
    "node_remove_forced": "node_remove_force",
    "node_probe_timout": "node_probe_timeout",
    "node_prerequesites": "node_prerequisites",
    "prerequisites_pluggins": "prerequisites_plugins",
    "reclaim_timer_network": "reclaim_timer_networks",
}
OWN = [
    "bin_dir",
    "multus_cluster_networks",
    "multus_image",
    "multus_version",
    "network_bin_dir",
    "network_connections",
    "network_mode",
    "network_provider",
    "network_state",
    "networks",
    "networks_of_our_company",
    "node",
    "node_cni_dir",
    "node_data_dir",
    "node_exporter_state",
    "node_exporter_version",
    "node_ip",
    "node_labels",
    "node_log_dir",
    "node_name",
    "node_port",
    "node_proxy",
    "node_sbin_dir",
    "node_stage_dir",
    "node_version",
    "nodejs_version",
    "nodes",
    "plugin_binaries_owner",
    "plugin_dirs",
    "plugins",
    "reclaim_policy",
    "reservations_email",
    "_node_bin_dirs",
]


def found(names, **options):
    return {one["name"]: one["meant"] for one in plugin.LookupModule().run(list(names), **options)}


def test_slips_are_found():
    assert found(SLIPS) == SLIPS


def test_what_is_somebodys_own_is_not():
    assert found(OWN) == {}


def test_no_name_of_the_collection_is_a_slip():
    """Neither what its roles and playbooks take, register and set, nor what guides, examples and tests of them use."""
    names = set()
    folders = ("roles", "playbooks", "docs", "demo", "extensions", "tests/integration", "tests/fleet")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*")] + [ROOT / "README.md"]
    for path in paths:
        if path.suffix in (".yml", ".md", ".rst", ".j2", ".py"):
            names.update(re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b", path.read_text(encoding="utf-8")))
    assert len(names) > 200
    # those that stand there as examples of slips
    assert set(found(names)) <= {"networks_conflist", "plugin_binaries_cheksum"}


def test_every_variable_of_every_role_is_known():
    known = near_names.role_variables()
    assert known["plugin_binaries_checksum"] == "plugin_binaries"
    assert known["node_remove_force"] == "node"
    assert set(known.values()) == {path.name for path in (ROOT / "roles").iterdir()}


@pytest.mark.parametrize("name", sorted(near_names.role_variables()))
def test_a_letter_that_is_missing_or_doubled_in_a_long_word_is_always_found(name):
    """Whatever variables the roles get: a slip leads to the variable that it is of, not to one beside it."""
    word = max(re.findall(r"[a-z]+", name), key=len)
    middle = name.index(word) + len(word) // 2
    for slip in (name[:middle] + name[middle + 1 :], name[:middle] + name[middle] + name[middle:]):
        if slip not in near_names.role_variables():
            assert found([slip]) == {slip: name}


def test_known_names_can_be_given():
    known = ["subnet", "subnets", "range_start", "mtu", "master"]
    assert found(["subnett", "range_strat", "mut", "mode", "vlan", "subnets"], known=known) == {
        "subnett": "subnet",
        "range_strat": "range_start",
        "mut": "mtu",
    }


def test_the_variables_of_a_host_are_looked_at_by_name_only():
    class Untouched(dict):
        def __getitem__(self, key):
            raise AssertionError(f"{key} was read")

    names = ["node_network", "plugin_binaries_cheksum", "node_bin_dir", "plugin_binary_src"]
    assert found([], variables=Untouched.fromkeys(names), own=["node_network"]) == {
        "plugin_binaries_cheksum": "plugin_binaries_checksum",
        "plugin_binary_src": "plugin_binaries_src",
    }


def test_thousands_of_variables_take_no_time():
    names = [f"ansible_fact_{number}" for number in range(5000)] + [f"node_exporter_{number}" for number in range(500)]
    before = time.process_time()
    assert found(names) == {}
    assert time.process_time() - before < 1
