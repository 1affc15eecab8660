# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.rows import printable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"192.0.2.2", "192.0.2.2"),
        (b"\xff\xfe", "\\xff\\xfe"),
        (b"gr\xc3\xbcn\x80", "gr\u00fcn\\x80"),
        (b"a\0b", "a\\x00b"),
        (b"\\xff", "\\xff"),
    ],
)
def test_printable(name, shown):
    assert printable(name.decode("utf-8", "surrogateescape")) == shown


def test_any_name_can_be_sent():
    for code in (0, 9, 0x7F, 0xD800, 0xDC00, 0xDC7F, 0xDC80, 0xDCFF, 0xDD00, 0xDFFF, 0x10FFFF):
        printable("a" + chr(code)).encode()
    for byte in range(1, 256):
        printable(os.fsdecode(bytes([byte]))).encode()
