# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import findings

ROOT = os.path.abspath(__file__)
while not os.path.exists(os.path.join(ROOT, "galaxy.yml")):
    ROOT = os.path.dirname(ROOT)
REGISTRY = findings.every()


def sources():
    for directory, _folders, names in os.walk(os.path.join(ROOT, "plugins")):
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(directory, name), encoding="utf-8") as stream:
                    yield os.path.join(directory, name), stream.read()


def test_codes_are_unique_and_of_a_family():
    codes = [entry[0] for entry in REGISTRY.values()]
    assert len(codes) == len(set(codes))
    for code in codes:
        assert re.match(r"^(%s)\d{3}$" % "|".join(findings.FAMILIES), code), code


@pytest.mark.parametrize("kind", sorted(REGISTRY))
def test_an_entry_is_complete(kind):
    code, severity, go, text, hint = REGISTRY[kind]
    assert severity in findings.SEVERITIES
    assert go in findings.GO
    for sentence in (text, hint):
        assert sentence, code
        assert "\n" not in sentence, code
        assert not sentence.endswith("."), code
    fields = set(re.findall(r"\{(\w+)(?:![rs])?\}", text + hint))
    built = findings.finding(kind, "here", **{field: "<%s>" % field for field in fields})
    assert list(built) == ["code", "severity", "where", "text", "hint", "go"]
    assert built["where"] == "here"
    assert all("<%s>" % field in built["text"] + built["hint"] for field in fields)


def test_every_kind_that_the_code_names_is_registered():
    named = {}
    for path, text in sources():
        for kind in re.findall(r"""["']((?:conf|bin|ipam|multus|node|fleet)-[a-z-]+)["']""", text):
            named.setdefault(kind, path)
    for name in ("multus-shim", "multus-context", "multus-cni-network"):  # what Multus calls things
        named.pop(name, None)
    assert len(named) > 20
    assert {kind: path for kind, path in named.items() if kind not in REGISTRY} == {}


@pytest.mark.parametrize("kind", ["no-such-kind", "conf-no-such-kind", "", "conf"])
def test_an_unknown_kind_is_a_fault_of_the_program(kind):
    with pytest.raises(KeyError):
        findings.finding(kind, "here")


@pytest.mark.parametrize("family", findings.FAMILIES)
def test_a_table_has_its_family_only(family):
    table = findings.codes(family.lower())
    assert all(kind.startswith(family.lower() + "-") for kind in table)
    assert [code for code, *_rest in table.values() if not code.startswith(family)] == []


def test_the_gravest_come_first_and_repetitions_go():
    hidden = {"kind": "conf-hidden-file", "where": "a"}
    missing = {"kind": "conf-dir-missing", "where": "b"}
    chained = {"kind": "conf-subdir-plugins", "where": "c", "count": 1, "types": "tuning", "network": "n"}
    built = findings.from_facts([chained, hidden, missing, hidden])
    assert [item["severity"] for item in built] == ["error", "warning", "info"]
    assert [item["where"] for item in built] == ["b", "a", "c"]


def test_the_page_in_docs_is_generated_from_the_registry():
    tool = os.path.join(ROOT, "tests", "tools", "gen_findings.py")
    if not os.path.exists(tool):
        pytest.skip("not run: the page and its generator are not part of the installed collection")
    done = subprocess.run([sys.executable, tool, "--check"], stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize(
    "code", ["IPAM020", "IPAM021", "IPAM022", "IPAM023", "FLEET004", "FLEET006", "FLEET008", "FLEET009"]
)
def test_what_helps_against_leaked_addresses_is_named(code):
    (hint,) = [entry[4] for entry in REGISTRY.values() if entry[0] == code]
    assert "nodenet.cni.reclaim" in hint


def test_hints_name_playbooks_and_modules_that_there_are():
    folders = [os.path.join(ROOT, "playbooks"), os.path.join(ROOT, "plugins", "modules")]
    known = {os.path.splitext(name)[0] for folder in folders for name in os.listdir(folder)}
    named = {name for entry in REGISTRY.values() for name in re.findall(r"nodenet\.cni\.(\w+)", entry[4])}
    assert {"reclaim", "reserve", "bootstrap"} <= named <= known
