# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import time

from ansible_collections.nodenet.cni.plugins.module_utils.node import cachecount, findings


def test_a_missing_cache_is_empty(tmp_path):
    row, facts = cachecount.count("results", str(tmp_path / "none"), 0)
    assert (row["entries"], row["oldest_age_s"], facts) == (0, None, [])


def test_entries_are_counted_and_those_before_the_boot_are_a_fact(tmp_path):
    now = time.time()
    for name, age in (("net-a-eth0", 10), ("net-b-eth0", 5000), ("net-c-eth0", 9000)):
        path = tmp_path / name
        path.write_bytes(b"")
        os.utime(str(path), (now - age, now - age))
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("net-a-eth0")
    row, facts = cachecount.count("results", str(tmp_path), now - 3600)
    assert (row["entries"], row["before_boot"]) == (3, 2)
    assert 9000 <= row["oldest_age_s"] < 9060
    (finding,) = findings.from_facts(facts)
    assert finding["text"] == "2 of 3 entry(s) are older than the last boot"
    assert cachecount.count("results", str(tmp_path), 0)[1] == []


def test_a_file_in_its_place_is_a_fact(tmp_path):
    (tmp_path / "results").write_bytes(b"")
    _row, facts = cachecount.count("results", str(tmp_path / "results"), 0)
    assert [fact["kind"] for fact in facts] == ["node-cache-unreadable"]


def test_the_boot_time_is_that_of_the_kernel(tmp_path):
    (tmp_path / "stat").write_text("cpu 1 2 3\nbtime 1700000000\nprocesses 5\n")
    assert cachecount.boot_time(str(tmp_path)) == 1700000000.0
    assert cachecount.boot_time(str(tmp_path / "none")) == 0.0
    assert 0 < cachecount.boot_time() <= time.time() + 60
