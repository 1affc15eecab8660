# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import gojson
from ansible_collections.nodenet.cni.plugins.module_utils.node import jsonfaults

CASES = os.path.abspath(__file__)
while not os.path.isdir(os.path.join(CASES, "tests", "cases")):
    CASES = os.path.dirname(CASES)
CASES = os.path.join(CASES, "tests", "cases")


def raw(case):
    with open(os.path.join(CASES, case + ".json"), encoding="utf-8") as stream:
        data = json.load(stream)
    return next(iter(data["input"]["conf_dir"].values()))["raw"], data["check"]


def test_case_trailing_comma_has_its_place():
    text, _check = raw("conflist-trailing-comma")
    assert jsonfaults.explain(text, "f") == [
        {"kind": "conf-trailing-comma", "where": "f", "line": 1, "column": text.index(",]") + 1}
    ]


def test_case_unrendered_template_lists_each_cause():
    text, check = raw("conflist-unrendered-template")
    facts = jsonfaults.explain(text, "f")
    assert [fact["text"] for fact in facts if fact["kind"] == "conf-template-leftover"] == check["leftovers"]
    assert {fact["kind"] for fact in facts} == {
        "conf-template-leftover",
        "conf-single-quotes",
        "conf-python-literal",
    }
    literal = next(fact for fact in facts if fact["kind"] == "conf-python-literal")
    assert (literal["text"], literal["wanted"], literal["column"]) == ("True", "true", text.index("True") + 1)


def test_case_truncated_file_has_line_and_column():
    text, _check = raw("conflist-first-file-broken")
    (fact,) = jsonfaults.explain(text, "f")
    assert fact["kind"] == "conf-syntax"
    assert (fact["line"], fact["column"]) == (text.count("\n") + 1, len(text.splitlines()[-1]) + 1)
    assert "ends in the middle" in fact["reason"]


@pytest.mark.parametrize(
    ("text", "kind", "place"),
    [
        ("", "conf-syntax", (1, 1)),
        (" \n", "conf-syntax", (1, 1)),
        ('{"a": NaN}', "conf-syntax", (1, 7)),
        ('{"a":1}}', "conf-syntax", (1, 8)),
        ('{\n"a" 1}', "conf-syntax", (2, 5)),
        ('{"a":1,\n }', "conf-trailing-comma", (1, 7)),
        ('{"a": None}', "conf-python-literal", (1, 7)),
        ("{'a': 1}", "conf-single-quotes", (1, 2)),
        ('{"mtu": ${MTU}}', "conf-template-leftover", (1, 9)),
        ('{"a": {{ x.y }}}', "conf-template-leftover", (1, 7)),
        ('{"a": [{% for x in y %}]}', "conf-template-leftover", (1, 8)),
        ('{"a": "unfinished}', "conf-syntax", (1, 7)),
    ],
)
def test_place_and_cause(text, kind, place):
    with pytest.raises(gojson.SyntaxFault):
        gojson.parse(text)
    fact = jsonfaults.explain(text, "f")[0]
    assert (fact["kind"], (fact["line"], fact["column"])) == (kind, place)


def test_what_stands_in_a_string_is_no_fault_of_syntax():
    text = '{"a": "True, or \'so\', ]", }'
    assert [fact["kind"] for fact in jsonfaults.explain(text, "f")] == ["conf-trailing-comma"]


def test_leftovers_are_found_in_a_valid_document():
    text = '{"a": "{{ item }}", "b": "__NODE_NAME__", "c": {"d": {}}, "e": "x__y__z", "f": "${VAR}"}'
    gojson.parse(text)
    assert [fact["text"] for fact in jsonfaults.leftovers(text, "f")] == ["{{ item }}", "__NODE_NAME__", "${VAR}"]


def test_a_document_without_leftovers_has_none():
    assert jsonfaults.leftovers(json.dumps({"a": {"b": {"c": [{"d": {}}]}}, "e": "$HOME"}), "f") == []
