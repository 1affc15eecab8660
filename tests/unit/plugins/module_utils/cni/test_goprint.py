# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.nodenet.cni.plugins.module_utils.cni import goprint

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.sampled_from([0, 4]))
def test_what_we_print_is_what_the_standard_library_reads(value, indent):
    assert json.loads(goprint.dumps(value, indent)) == value


@given(JSON)
def test_indentation_is_that_of_the_standard_library(value):
    plain = json.dumps(value, indent=4, ensure_ascii=False).replace("\x7f", "\x7f")
    escapes = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    for char, escape in escapes.items():
        plain = plain.replace(char, escape)
    assert goprint.dumps(value) == plain


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (9007199254740992.0, "9007199254740992"),
        (9223372036854775807.0, "9223372036854776000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5, "1.5"),
        (1e-7, "1e-7"),
        (1.25e-10, "1.25e-10"),
        (0.00001234, "0.00001234"),
        (-1500.0, "-1500"),
    ],
)
def test_floats_read_like_go_prints_them(number, text):
    assert goprint.dumps(number) == text
    assert float(text) == number
