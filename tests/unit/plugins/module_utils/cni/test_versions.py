# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.nodenet.cni.plugins.module_utils.cni import versions
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import CniError


@given(st.tuples(*[st.integers(0, 99)] * 3), st.tuples(*[st.integers(0, 99)] * 3))
def test_numbers_are_compared_not_texts(one, other):
    texts = [".".join(str(part) for part in version) for version in (one, other)]
    assert versions.at_least(*texts) == (one >= other)


@pytest.mark.parametrize(
    ("text", "msg"),
    [
        ("1.0.0.0", 'invalid version "1.0.0.0": too many parts'),
        ("abc", 'failed to convert major version part "abc": strconv.Atoi: parsing "abc": invalid syntax'),
        ("1.x", 'failed to convert minor version part "x": strconv.Atoi: parsing "x": invalid syntax'),
        ("1.0.", 'failed to convert micro version part "": strconv.Atoi: parsing "": invalid syntax'),
        ("1._1", 'failed to convert minor version part "_1": strconv.Atoi: parsing "_1": invalid syntax'),
        (
            "9223372036854775808",
            'failed to convert major version part "9223372036854775808": strconv.Atoi: '
            'parsing "9223372036854775808": value out of range',
        ),
    ],
)
def test_what_is_no_version(text, msg):
    with pytest.raises(CniError) as caught:
        versions.parse(text)
    assert (caught.value.code, caught.value.msg) == (6, msg)


def test_signs_and_missing_parts():
    assert versions.parse("+1") == (1, 0, 0)
    assert versions.parse("-1.2") == (-1, 2, 0)
    assert versions.parse("9223372036854775807") == (2**63 - 1, 0, 0)
    assert versions.parse("0" * 5000 + "1.1") == (1, 1, 0)


def test_only_the_exact_spelling_is_supported():
    for version in versions.SUPPORTED:
        versions.require_supported(version)
    for version in ("1.0", "1.1.0 ", "0.5.0", "", "1.2.0"):
        with pytest.raises(CniError, match="incompatible CNI versions") as caught:
            versions.require_supported(version)
        assert caught.value.code == 1
