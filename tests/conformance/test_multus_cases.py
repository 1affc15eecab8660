# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every reported fault of Multus and of pod annotations (tests/cases) has its tests: where they are, key by key."""

from __future__ import annotations

import pytest
from test_cases_plugin import CASES, load, source_of

INFO = "tests/unit/plugins/modules/test_multus_info.py::test_case_"
CONFIG = "tests/unit/plugins/modules/test_multus_config.py::test_case_"
DECISION = "tests/unit/plugins/module_utils/multus/test_resolve.py::test_"
PLUGIN = "tests/conformance/test_multus_behaviour.py::test_case_"

#: case -> key of its check -> the tests that assert it. Each of them names the case and the key.
TESTS = {
    "annotation-auto-names": {"ifnames": [INFO + "automatic_names", DECISION + "automatic_names_count_positions"]},
    "annotation-bad-json": {"error": [INFO + "bad_json"]},
    "annotation-default-namespace": {
        "error": [INFO + "default_namespace"],
        "looked_up": [INFO + "default_namespace", DECISION + "the_namespace_of_the_pod_is_the_default"],
        "hint": [INFO + "default_namespace", DECISION + "the_namespace_of_the_pod_is_the_default"],
    },
    "annotation-duplicate-ifname": {
        "error": [INFO + "duplicate_interfaces"],
        "also_errors": [
            INFO + "duplicate_interfaces",
            DECISION + "an_interface_name_twice_is_a_fault_before_anything_runs",
        ],
    },
    "annotation-ifname-too-long": {
        "error": [INFO + "interface_too_long"],
        "accepted": [INFO + "interface_too_long", DECISION + "an_interface_name_has_at_most_15_characters"],
    },
    "annotation-interface-request-old-key": {
        "ifnames": [INFO + "old_key", DECISION + "the_old_key_of_the_interface_counts_where_the_new_one_is_missing"],
        "warnings": [INFO + "old_key"],
    },
    "annotation-ips-as-string": {"error": [INFO + "ips_as_text"], "as_list": [INFO + "ips_as_text"]},
    "annotation-ns-isolation-global-replaces-default": {"error": [INFO + "global_namespaces_replace_default"]},
    "annotation-trailing-comma": {"error_or_warning": [INFO + "trailing_comma"]},
    "multus-capabilities-merged": {"capabilities": [CONFIG + "capabilities_merged"]},
    "multus-clusternetwork-lookup": {
        "found": [INFO + "cluster_network", DECISION + "where_a_cluster_network_is_looked_for"],
        "not_found": [INFO + "cluster_network", DECISION + "where_a_cluster_network_is_looked_for"],
    },
    "multus-cniversion-mismatch": {
        "failed": [CONFIG + "cni_versions_have_to_agree"],
        "auto_version": [CONFIG + "cni_versions_have_to_agree"],
    },
    "multus-del-without-cache": {
        "rc": [PLUGIN + "del_without_cache"],
        "max_seconds": [PLUGIN + "del_without_cache"],
    },
    "multus-delegate-del-fails": {
        "rc": [PLUGIN + "delegate_del_fails"],
        "cache_kept": [PLUGIN + "delegate_del_fails"],
    },
    "multus-master-file-path": {"delegate": [CONFIG + "master_by_path_file_or_name"]},
    "multus-master-not-there-yet": {
        "failed": [CONFIG + "master_not_there_yet"],
        "written": [CONFIG + "master_not_there_yet"],
    },
    "multus-snapshot-drift": {
        "drift": [CONFIG + "the_copy_follows_a_changed_master"],
        "changed": [CONFIG + "the_copy_follows_a_changed_master"],
    },
    "multus-stale-conf-beside-conflist": {
        "present": [CONFIG + "the_twin_of_another_ending_goes"],
        "absent": [CONFIG + "the_twin_of_another_ending_goes"],
    },
    "multus-token-expired": {
        key: [CONFIG + "token_expired"] for key in ("expired", "seconds_left", "mode_ok")
    },
    "multus-uninstall-leftovers": {
        "effective_after": [CONFIG + "uninstall_goes_in_order"],
        "order": [CONFIG + "uninstall_goes_in_order"],
    },
}  # fmt: skip


def names():
    return sorted(path.stem for pattern in ("multus-*.json", "annotation-*.json") for path in CASES.glob(pattern))


def test_every_case_is_here():
    assert len(names()) == 20
    assert names() == sorted(TESTS)


@pytest.mark.parametrize("name", names())
def test_every_key_is_tested_where_it_says(name):
    check = load(name)["check"]
    assert set(TESTS[name]) == set(check)
    for key, tests in TESTS[name].items():
        assert tests
        for test in tests:
            source = source_of(test)
            assert name in source, "%s says nothing of %s" % (test, name)
            assert '"%s"' % key in source, "%s does not look at %s" % (test, key)
            assert "assert " in source or "raises" in source
