# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.nodenet.cni.plugins.module_utils.cni import gojson, goprint

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.sampled_from([None, 4]))
def test_what_the_standard_library_prints_is_read_as_it_was(value, indent):
    text = json.dumps(value, indent=indent)
    assert gojson.plain(gojson.parse(text.encode())) == json.loads(text)


@given(st.binary(max_size=40))
def test_any_bytes_give_a_tree_or_a_syntax_fault(data):
    try:
        tree = gojson.parse(data)
    except gojson.SyntaxFault:
        with pytest.raises(json.JSONDecodeError):
            json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _name: json.loads("x"))
        return
    goprint.dumps(gojson.plain(tree)).encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "[1,]",
        '{"a":1,}',
        '{"a":01}',
        "[1.]",
        "[+1]",
        "[.5]",
        "[NaN]",
        "[Infinity]",
        "[-Infinity]",
        "\ufeff{}",
        "{} x",
        '{"a" 1}',
        "{a: 1}",
        '["\x01"]',
        '["\\x41"]',
        '["\\u12"]',
        '"open',
        "tru",
        "{}{}",
        "\u00a0{}",
        "[1\x0c]",
    ],
)
def test_what_rfc_8259_refuses_is_refused(text):
    with pytest.raises(gojson.SyntaxFault):
        gojson.parse(text.encode())


def test_nesting_beyond_the_interpreter_is_a_fault_and_no_crash():
    for depth in (10_001, 200_000):
        with pytest.raises(gojson.SyntaxFault, match="exceeded max depth"):
            gojson.parse(b"[" * depth + b"]" * depth)


def test_each_bad_byte_becomes_one_replacement_character():
    assert gojson.parse(b'["\xff\xfe", "\xe2\x82", "\xed\xa0\x80", "ok"]') == ["��", "��", "���", "ok"]
    assert gojson.parse(b'["\\ud800", "\\ud83d\\ude00", "\\udc00x"]') == ["�", "\U0001f600", "�x"]


def test_numbers_keep_their_literal():
    tree = gojson.parse(b"[1, 1.50, 1e3, -0, 123456789012345678901234567890]")
    assert [str(one) for one in tree] == ["1", "1.50", "1e3", "-0", "123456789012345678901234567890"]
    assert gojson.plain(tree) == [1, 1.5, 1000.0, 0, 123456789012345678901234567890]
    gojson.parse(b'{"x": ' + b"9" * 5000 + b"}")  # longer than int() takes on newer Pythons


def test_the_json_package_is_loaded_only_for_a_fault():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from ansible_collections.nodenet.cni.plugins.module_utils.cni import gojson\n"
        'gojson.parse(b\'{"a": ["b", 1.5, null]}\')\n'
        "assert 'json' not in sys.modules and 're' not in sys.modules\n"
        "try:\n    gojson.parse(b'{')\nexcept gojson.SyntaxFault:\n    print('fault')\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, ".dev"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("fault\n", "")


def test_repeated_keys_are_found_at_every_depth():
    text = '{"a": 1, "b": [{"x": 1, "X": 2}], "A": {"y": 1}, "c": {"z": 1, "z": 1}}'
    assert gojson.repeated_keys(gojson.parse(text)) == ["b[0].X", "A", "c.z"]


@given(JSON)
def test_ordinary_values_make_the_tree_of_their_document(value):
    assert gojson.from_plain(value) == gojson.parse(json.dumps(value))


@given(st.recursive(st.none(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner)))
def test_the_depth_of_a_tree(value):
    def measured(one):
        parts = list(one.values()) if isinstance(one, dict) else one
        return 1 + max([measured(part) for part in parts], default=0) if isinstance(one, (dict, list)) else 0

    assert gojson.depth(gojson.from_plain(value)) == measured(value)


@pytest.mark.parametrize("odd", [b"\xff", b"\\ud800", "\u00e9".encode(), b"\\udc00\\ud83d\\ude00"])
def test_odd_characters_in_a_deep_document(odd):
    deep = 400
    tree = gojson.parse(b"[" * deep + b'"' + odd + b'"' + b"]" * deep)
    assert gojson.depth(tree) == deep


@given(
    st.lists(
        st.sampled_from(["\\", "\\\\", "\\ud83d", "\\uDE00", "\\u0041", "\\n", "x", "u", "\\ud8", "d83d"]), max_size=8
    )
)
def test_escapes_are_read_as_the_standard_library_reads_them(pieces):
    text = '"%s"' % "".join(pieces)
    try:
        wanted = json.loads(text)
    except json.JSONDecodeError:
        with pytest.raises(gojson.SyntaxFault):
            gojson.parse(text)
        return
    assert gojson.parse(text) == "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in wanted)
