# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import args
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import CniError

KEYS = {"IP": str}


def test_known_keys_last_one_wins():
    assert args.parse("IP=1;IgnoreUnknown=TRUE;A=b;IP=2", KEYS) == {"IP": "2"}
    assert args.parse("", KEYS) == {}


@pytest.mark.parametrize(
    ("text", "msg"),
    [
        ("IP=1;", 'ARGS: invalid pair ""'),
        ("IP", 'ARGS: invalid pair "IP"'),
        ("A=b=c", 'ARGS: invalid pair "A=b=c"'),
        ("A=1;B=2", 'ARGS: unknown args ["A=1" "B=2"]'),
        ("ip=1", 'ARGS: unknown args ["ip=1"]'),
        ("A=1;IgnoreUnknown=0", 'ARGS: unknown args ["A=1"]'),
        (
            "IgnoreUnknown=Yes",
            'ARGS: error parsing value of pair "IgnoreUnknown=Yes": boolean unmarshal error: invalid input yes',
        ),
        ('A="\\\x7f\n\u00a0\u200bé\udcff', 'ARGS: invalid pair "A=\\"\\\\\\x7f\\n\\u00a0\\u200bé\\xff;"'),
    ],
)
def test_errors(text, msg):
    if msg.endswith(';"'):  # what %q does is seen best where the pair itself is at fault
        text, msg = text + "=", msg[:-2] + '="'
    with pytest.raises(CniError) as caught:
        args.parse(text, KEYS)
    assert (caught.value.code, caught.value.msg) == (999, msg)
