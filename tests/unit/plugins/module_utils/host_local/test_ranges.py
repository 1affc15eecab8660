# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import parse_address, parse_cidr
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.ranges import Range, RangeFault, RangeSet


def values(subnet, start=None, end=None, gateway=None):
    given_values = {"subnet": parse_cidr(subnet) if subnet else None}
    for key, text in (("rangeStart", start), ("rangeEnd", end), ("gateway", gateway)):
        if text:
            given_values[key] = parse_address(text)
    return given_values


def range_set(*ranges):
    return RangeSet.from_values([values(*one) if isinstance(one, tuple) else values(one) for one in ranges])


@pytest.mark.parametrize(
    ("subnet", "text", "gateway"),
    [
        ("10.1.2.0/24", "10.1.2.1-10.1.2.254", "10.1.2.1"),
        ("10.1.2.0/30", "10.1.2.1-10.1.2.2", "10.1.2.1"),
        ("0.0.0.0/0", "0.0.0.1-255.255.255.254", "0.0.0.1"),
        # the all-ones address of an IPv6 network is an ordinary one
        ("2001:db8::/126", "2001:db8::1-2001:db8::3", "2001:db8::1"),
        # H10: these stay IPv6
        ("::100:0/126", "::100:1-::100:3", "::100:1"),
    ],
)
def test_defaults(subnet, text, gateway):
    one = Range.from_values(values(subnet))
    assert (str(one), str(one.gateway)) == (text, gateway)


@pytest.mark.parametrize(
    ("given_values", "message", "where"),
    [
        (None, "IP <nil> not v4 nor v6", ".subnet"),
        (values(None), "IP <nil> not v4 nor v6", ".subnet"),
        # too small comes before host bits and before the mapped spelling
        (values("10.1.2.1/31"), "Network 10.1.2.1/31 too small to allocate from", ".subnet"),
        (values("::ffff:10.1.2.0/127"), "Network 10.1.2.0/31 too small to allocate from", ".subnet"),
        (values("2001:db8::/127"), "Network 2001:db8::/127 too small to allocate from", ".subnet"),
        (values("::ffff:10.1.2.1/120"), "IPNet IP and Mask version mismatch", ".subnet"),
        (
            values("10.1.2.5/24"),
            "Network has host bits set. For a subnet mask of length 24 the network address is 10.1.2.0",
            ".subnet",
        ),
        (values("10.1.2.0/24", "10.1.3.1"), "RangeStart 10.1.3.1 not in network 10.1.2.0/24", ".rangeStart"),
        (values("10.1.2.0/24", "::1"), "RangeStart ::1 not in network 10.1.2.0/24", ".rangeStart"),
        (
            values("10.1.2.0/24", "10.1.2.9", "10.1.2.8"),
            "RangeStart 10.1.2.9 not in network 10.1.2.0/24",
            ".rangeStart",
        ),
        (values("10.1.2.0/24", None, "10.1.3.1"), "RangeEnd 10.1.3.1 not in network 10.1.2.0/24", ".rangeEnd"),
        (values("10.1.2.0/24", None, "10.1.2.0"), "RangeEnd 10.1.2.0 not in network 10.1.2.0/24", ".rangeEnd"),
        (values("10.1.2.0/24", "10.1.2.5", "::1"), "RangeEnd ::1 not in network 10.1.2.0/24", ".rangeEnd"),
        # H9: Go hands out addresses beyond the subnet here
        (values("10.1.2.0/24", "10.1.2.255"), "RangeEnd 10.1.2.254 not in network 10.1.2.0/24", ".rangeEnd"),
    ],
)
def test_faults_of_a_range(given_values, message, where):
    with pytest.raises(RangeFault) as caught:
        Range.from_values(given_values)
    assert (str(caught.value), caught.value.where) == (message, where)


@pytest.mark.parametrize(
    ("ranges", "message", "where"),
    [
        ([], "empty range set", ""),
        (None, "empty range set", ""),
        ([values("10.1.0.0/24"), values("fd00::/64")], "mixed address families", "[1].subnet"),
        ([values("10.1.0.0/24"), values("10.1.1.1/24")], "Network has host bits set.", "[1].subnet"),
        (
            [values("10.1.0.0/24"), values("10.2.0.0/24"), values("10.1.0.0/25")],
            "subnets 10.1.0.1-10.1.0.254 and 10.1.0.1-10.1.0.126 overlap",
            "",
        ),
    ],
)
def test_faults_of_a_set(ranges, message, where):
    with pytest.raises(RangeFault) as caught:
        RangeSet.from_values(ranges)
    assert str(caught.value).startswith(message)
    assert caught.value.where == where


def test_parts_of_one_subnet_do_not_overlap():
    one = range_set(("10.1.2.0/24", None, "10.1.2.99"), ("10.1.2.0/24", "10.1.2.100"))
    assert str(one) == "10.1.2.1-10.1.2.99,10.1.2.100-10.1.2.254"


def test_no_gateway_of_the_set_is_usable():
    """H12: Go passes over the own range's gateway only."""
    one = range_set(
        ("10.1.2.0/24", "10.1.2.10", "10.1.2.12", "10.1.2.20"), ("10.1.2.0/24", "10.1.2.20", "10.1.2.21", "10.1.2.11")
    )
    assert [str(address) for address in one.walk()] == ["10.1.2.10", "10.1.2.12", "10.1.2.21"]
    assert one.usable() == 3


def test_the_order_behind_each_address():
    one = range_set(
        "10.1.2.0/30", ("10.0.0.0/29", None, "10.0.0.3"), ("192.168.0.0/24", "192.168.0.100", "192.168.0.101")
    )
    ring = ["10.1.2.2", "10.0.0.2", "10.0.0.3", "192.168.0.100", "192.168.0.101"]
    assert [str(address) for address in one.walk()] == ring
    for index, last in enumerate(ring):
        assert [str(address) for address in one.walk(parse_address(last))] == ring[index + 1 :] + ring[: index + 1]
    # the gateway is contained, so the walk goes on behind it; what is outside starts anew
    assert str(next(one.walk(parse_address("10.0.0.1")))) == "10.0.0.2"
    assert str(next(one.walk(parse_address("10.1.2.3")))) == "10.1.2.2"


@st.composite
def sets(draw):
    ranges = []
    for index in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, 14))
        end = draw(st.integers(max(start, 1), 15))
        gateway = draw(st.none() | st.integers(0, 15))
        base = f"10.0.{index}."
        if start > 14 or (start, end) == (0, 0):
            continue
        ranges.append(
            values(
                f"{base}0/28", base + str(start), base + str(end), base + str(gateway) if gateway is not None else None
            )
        )
    return RangeSet.from_values(ranges)


@given(sets(), st.integers(0, 63))
def test_the_walk_meets_every_usable_address_once(one_set, offset):
    last = parse_address(str(ipaddress.IPv4Address("10.0.0.0") + offset // 16 * 256 + offset % 16))
    everything = [
        address
        for one in one_set.ranges
        for address in (one.start.plus(step) for step in range(one.size()))
        if address not in one_set.gateways
    ]
    walked = list(one_set.walk(last))
    assert sorted(walked) == sorted(everything)
    assert len(walked) == one_set.usable()
    if last in one_set and last in everything:
        assert walked[-1] == last
    assert all(address in one_set for address in walked)


def test_a_huge_set_is_walked_without_being_built():
    one = range_set("fd00::/32")
    assert str(next(one.walk(parse_address("fd00::ffff:ffff:ffff")))) == "fd00::1:0:0:0"
    assert one.usable() == 2**96 - 2


@given(sets(), sets())
def test_sets_overlap_if_they_share_an_address(one, other):
    shared = {
        address
        for piece in one.ranges
        for address in (piece.start.plus(step) for step in range(piece.size()))
        if address in other
    }
    assert one.overlaps(other) == bool(shared)
    assert one.overlaps(other) == other.overlaps(one)
