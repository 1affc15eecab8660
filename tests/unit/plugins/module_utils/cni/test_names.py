# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.nodenet.cni.plugins.module_utils.cni.names import interface_fault, valid_name


@given(st.text(max_size=6))
def test_names_are_ascii_and_start_with_a_letter_or_digit(text):
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    wanted = len(text) > 0 and text[0] in letters and all(char in letters + "_.-" for char in text)
    assert valid_name(text) == wanted


@pytest.mark.parametrize("name", ["", "a\n", "..", "a/b", ".a", "-a", "é", "a b", "\u0661"])
def test_what_is_no_name(name):
    assert not valid_name(name)


@pytest.mark.parametrize("name", ["eth0", "a" * 15, "net1.100", "eth\x1c0", "x-y"])
def test_interface_names(name):
    assert interface_fault(name) is None


@pytest.mark.parametrize("name", ["a" * 16, "é" * 8, ".", "..", "a/b", "a:b", "a b", "a\u2003b", "a\x85b"])
def test_what_is_no_interface_name(name):
    assert interface_fault(name) is not None
