# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lowest free address of a set; the round robin is pinned by tests/conformance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import parse_address, parse_cidr
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.allocator import lowest_free
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.ranges import RangeSet
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.snapshot import EMPTY_GRACE, Snapshot

NOW = 1_000_000.0


def snapshot(files):
    return Snapshot(set(files), {name: (content, mtime) for name, (content, mtime) in files.items()}, set(), {}, NOW)


def pool(*subnets):
    return RangeSet.from_values([{"subnet": parse_cidr(subnet)} for subnet in subnets])


@given(st.sets(st.integers(0, 31)), st.sets(st.integers(0, 31)))
def test_the_lowest_that_is_neither_taken_nor_spoken_for_nor_a_gateway(taken, spoken):
    base = parse_address("10.1.2.0")
    # given in the wrong order: the ranges' order must not matter
    one_set = pool("10.1.2.16/28", "10.1.2.0/28")
    files = {str(base.plus(number)): (b"c1\r\neth0", NOW) for number in taken}
    found = lowest_free(one_set, snapshot(files), {base.plus(number) for number in spoken})
    free = [number for number in range(32) if number not in taken | spoken and number not in (0, 1, 15, 16, 17, 31)]
    assert found == (base.plus(free[0]) if free else None)


def test_a_full_pool_of_ipv6_is_no_endless_search():
    files = {str(parse_address("fd00::").plus(number)): (b"c1\r\neth0", NOW) for number in range(2, 1000)}
    assert lowest_free(pool("fd00::/64"), snapshot(files)) == parse_address("fd00::3e8")


def test_empty_files_past_their_grace_time_are_free():
    old, young = (b"", NOW - EMPTY_GRACE - 1), (b"", NOW - EMPTY_GRACE + 1)
    assert lowest_free(pool("10.1.2.0/29"), snapshot({"10.1.2.2": young, "10.1.2.3": old})) == parse_address("10.1.2.3")
