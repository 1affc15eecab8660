# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every reported fault of an installation or a conflist has the test of its right outcome.

A case of tests/cases says in ``check`` what has to come out. For each key stands here which test looks; that test has
to name the case and the key. A new case or a new key has none, and is red until it has one. The other kinds of cases
are counted in tests/conformance/test_cases_plugin.py.
"""

from __future__ import annotations

import ast
import functools
import json
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
CASES = TESTS / "cases"

FILES = {
    "binaries": "unit/plugins/module_utils/node/test_binaries.py",
    "checksum": "unit/plugins/module_utils/node/test_checksum.py",
    "confcheck": "unit/plugins/module_utils/node/test_confcheck.py",
    "confdir": "unit/plugins/module_utils/node/test_confdir.py",
    "conflists": "unit/plugins/module_utils/node/test_conflists.py",
    "dircheck": "unit/plugins/module_utils/node/test_dircheck.py",
    "effective": "unit/plugins/module_utils/node/test_effective.py",
    "elf": "unit/plugins/module_utils/node/test_elf.py",
    "lint": "unit/plugins/module_utils/node/test_lint.py",
}

SYNTAX = "confcheck test_cases_of_syntax"
STRUCTURE = "confcheck test_cases_of_structure"

TESTED = {
    "install-arch-alias": {"map": "elf test_case_arch_alias"},
    "install-archive-traversal": dict.fromkeys(["installed", "failed_on"], "binaries test_case_archive_traversal"),
    "install-checksum-of-wrong-file": {"chosen": "checksum test_case_checksum_of_wrong_file"},
    "install-flannel-not-in-archive": {"after_contains": "binaries test_case_flannel_not_in_archive"},
    "install-half-installed-version-dir": dict.fromkeys(
        ["changed", "present"], "binaries test_case_half_installed_version_dir"
    ),
    "install-keeps-foreign-plugins": {"after": "binaries test_case_keeps_foreign_plugins"},
    "install-noexec-mount": {"failed_or_warned": "binaries test_case_noexec_mount"},
    "install-text-file-busy": dict.fromkeys(
        ["changed", "inode_changed", "no_gap"], "binaries test_case_text_file_busy"
    ),
    "install-truncated-binary": {"changed": "binaries test_case_truncated_binary"},
    "install-umask-077": dict.fromkeys(["mode", "second_run_changed"], "binaries test_case_umask_077"),
    "conflist-cniversion-unsupported": dict.fromkeys(
        ["valid", "suggest"], "lint test_case_a_plugin_that_does_not_speak_the_version"
    ),
    "conflist-duplicate-names": {"effective_file": "dircheck test_case_duplicate_names"},
    "conflist-first-file-broken": dict.fromkeys(["effective", "invalid"], "effective test_case_first_file_broken"),
    "conflist-idempotent-key-order": {"changed": "conflists test_case_key_order"},
    "conflist-in-conf-extension": {"valid": STRUCTURE},
    "conflist-missing-name-plugins": {"valid": STRUCTURE},
    "conflist-plugin-binary-missing": {"missing": "confcheck test_case_missing_binaries"},
    "conflist-portmap-without-capability": dict.fromkeys(
        ["valid", "warnings"], "lint test_case_portmap_without_its_capability"
    ),
    "conflist-string-for-bool-number": dict.fromkeys(
        ["valid", "fields"], "lint test_case_strings_for_booleans_and_numbers"
    ),
    "conflist-subdir-chaining": {"chain": "confdir test_plugins_of_the_networks_directory_are_found"},
    "conflist-trailing-comma": {"valid": SYNTAX},
    "conflist-two-networks-one-subnet": {"overlap": "dircheck test_case_two_networks_on_one_subnet"},
    "conflist-unrendered-template": {
        "valid": SYNTAX,
        "leftovers": "conflists test_case_unrendered_template_is_refused_with_each_cause",
    },
}


@functools.lru_cache(maxsize=None)
def functions(path):
    """The source of each test of a file, with its decorators, by its name."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found.setdefault(node.name, []).append("\n".join(lines[first - 1 : node.end_lineno]))
    return found


def wanted():
    """All that has to be tested, as {case: keys of its check}."""
    paths = [path for kind in ("install", "conflist") for path in CASES.glob(kind + "-*.json")]
    return {path.stem: set(json.loads(path.read_text(encoding="utf-8"))["check"]) for path in paths}


def test_each_check_has_its_test():
    assert {name: set(keys) for name, keys in TESTED.items()} == wanted()
    assert len(TESTED) == 10 + 13


@pytest.mark.parametrize("name", sorted(TESTED))
def test_that_test_speaks_of_it(name):
    for key, place in TESTED[name].items():
        file_name, function = place.split()
        path = TESTS / FILES[file_name]
        (text,) = functions(path)[function]
        short = name.split("-", 1)[1]
        if f'"{name}"' not in text and f'"{short}"' not in text:
            # or by what it is called, and a constant of the module
            assert short.replace("-", "_") in function, f"{place} does not name {name}"
            assert f"{name}.json" in path.read_text(encoding="utf-8"), f"{file_name} does not load {name}"
        assert f'"{key}"' in text, f"{place} does not look at {key} of {name}"
