# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Protocol buffers, byte by byte as their encoding has them."""

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.protobuf import fields

NUMBER = b"\x08\x96\x01"  # field 1, 150
TEXT = b"\x12\x07testing"  # field 2
FIXED64 = b"\x19" + b"\x01" * 8  # field 3
FIXED32 = b"\x25" + b"\x01" * 4  # field 4
HIGH = b"\xa2\x06\x81\x01" + b"x" * 129  # field 100, longer than one byte of length tells


def test_fields_with_a_length_are_read_and_others_passed_over():
    assert list(fields(NUMBER + TEXT + FIXED64 + FIXED32 + HIGH + TEXT)) == [
        (2, b"testing"),
        (100, b"x" * 129),
        (2, b"testing"),
    ]
    assert list(fields(b"")) == []
    assert list(fields(b"\x12\x00")) == [(2, b"")]


@pytest.mark.parametrize("kind", [3, 4, 6, 7])
def test_a_kind_without_a_known_length_ends_the_reading(kind):
    with pytest.raises(ValueError, match=f"unknown kind {kind}"):
        list(fields(TEXT + bytes([1 << 3 | kind])))


@pytest.mark.parametrize("cut", [1, 2, 4, len(TEXT) - 1])
def test_a_text_that_is_cut_off(cut):
    with pytest.raises(ValueError, match="cut off"):
        list(fields(NUMBER + TEXT[:cut]))
