# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import random

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.host_local import compact
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.rows import row


def test_what_is_written_is_read():
    draw = random.Random(3)
    rows = []
    for number in range(300):
        texts = ["".join(draw.choices("\\tnr\t\n\r\x0b\u2028aä\x00", k=draw.randrange(6))) for _field in range(4)]
        one = row(f"10.0.0.{number}", texts[0], texts[1], draw.choice([None, 0, 7]), number)
        one["alive"] = draw.choice([True, False, None])
        if draw.random() < 0.3:
            one["holder"] = {"container_id": texts[2], "ifname": texts[3]}
        rows.append(one)
    text = compact.encode(rows)
    assert list(compact.decode(text)) == rows
    assert compact.count({"rows": text}) == len(rows)
    assert compact.encode([]) == ""
    assert list(compact.decode("")) == []
    assert compact.count({"rows": ""}) == 0


def test_it_is_about_a_hundred_bytes_a_reservation():
    rows = [row(f"10.244.1.{number}", "e" * 64, "eth0", 0, 86400) for number in range(1, 251)]
    assert len(json.dumps(compact.encode(rows))) / len(rows) < 105


@pytest.mark.parametrize(
    "text", ["192.0.2.1", "192.0.2.1\ta\tb\tx\t1\t", "192.0.2.1\ta\tb\t\t1\t2", "a\t\t\t\t1\t\t\t\t"]
)
def test_what_is_no_such_text_is_refused(text):
    with pytest.raises(ValueError, match="."):
        list(compact.decode(text))
