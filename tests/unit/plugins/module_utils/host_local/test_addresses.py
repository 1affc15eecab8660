# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ipaddress
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import (
    Address,
    Cidr,
    parse_address,
    parse_address_or_cidr,
    parse_cidr,
)

V4 = st.integers(0, 2**32 - 1)
# numbers with runs of zero groups, which is what spelling IPv6 is about
V6 = st.lists(st.sampled_from([0, 0, 0, 1, 0xFFFF, 0xAB]), min_size=8, max_size=8).map(
    lambda groups: int("".join("%04x" % group for group in groups), 16)
)


@given(V4)
def test_ipv4_reads_and_prints_as_the_standard_library(number):
    text = str(ipaddress.IPv4Address(number))
    assert parse_address(text) == Address(32, number)
    assert str(Address(32, number)) == text


@given(V6)
def test_ipv6_reads_and_prints_as_the_standard_library(number):
    text = str(ipaddress.IPv6Address(number))
    if number >> 32 == 0xFFFF:
        assert parse_address(text) == Address(32, number & 0xFFFFFFFF)
        return
    assert parse_address(text) == Address(128, number)
    assert parse_address(ipaddress.IPv6Address(number).exploded.upper()) == Address(128, number)
    if "." not in text:  # newer Pythons print more addresses with a dotted end than Go does
        assert str(Address(128, number)) == text


@given(st.text(alphabet="0123456789abf:./% ", max_size=20))
def test_whatever_is_read_is_what_the_standard_library_reads(text):
    try:
        address = parse_address(text)
    except ValueError:
        with pytest.raises(ValueError, match=r".*"):
            ipaddress.ip_address(text)
        return
    wanted = ipaddress.ip_address(text)
    wanted = getattr(wanted, "ipv4_mapped", None) or wanted
    assert (address.bits, address.number) == (wanted.max_prefixlen, int(wanted))


@pytest.mark.parametrize(
    "text",
    ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:1.2.3.4", "::", "::1.2.3.4", "1::", "::ffff:1.2.3.4", "ABCD::ef01"],
)
def test_spellings_that_are_fine(text):
    assert parse_address(str(parse_address(text))) == parse_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "1.2.3", "1.2.3.4.5", " 1.2.3.4", "1.2.3.4 ", "01.2.3.4", "1.2.3.256", "1.2.3.-1", "1.2.3.+4", "1..3.4",
        "1:2:3:4::5:6:7:8", "00001::", "::ffff:1.2.3.04", "::%lo", "fe80::1%eth0", ":", ":::", "1:2", "1::2::3",
        "1.2.3.4::", "::1.2.3.4:5", "g::", "\u0661.2.3.4", "1.2.3.4/24", ":1", "1:", "1:2:3:4:5:6:7:8:9",
    ],
)  # fmt: skip
def test_what_is_no_address(text):
    with pytest.raises(ValueError, match="^invalid IP address: "):
        parse_address(text)


@given(V4, st.integers(0, 32))
def test_networks_of_ipv4(number, prefix):
    cidr = parse_cidr(f"{ipaddress.IPv4Address(number)}/{prefix}")
    wanted = ipaddress.ip_network((number, prefix), strict=False)
    assert str(cidr.network) == str(wanted.network_address)
    assert cidr.network.number + cidr.host_mask == int(wanted.broadcast_address)
    assert cidr.address in cidr
    assert Address(128, number) not in cidr


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.0", "10.0.0.0/", "/24", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+1", "::/129", "10.0.0.0/24/1",
        "10.0.0.0/255.0.0.0", "10.0.0.0/\u0662", "10.0.0.0/2 4", "",
    ],
)  # fmt: skip
def test_what_is_no_cidr(text):
    with pytest.raises(ValueError, match="^invalid CIDR address: "):
        parse_cidr(text)


def test_prefix_lengths_may_have_leading_zeros_of_any_number():
    assert parse_cidr("10.0.0.0/" + "0" * 5000 + "24").prefix == 24
    with pytest.raises(ValueError, match="^invalid CIDR address: "):
        parse_cidr("10.0.0.0/" + "9" * 5000)


def test_a_mapped_network_counts_its_prefix_as_it_was_spelled():
    cidr = parse_cidr("::ffff:10.1.2.0/120")
    assert (str(cidr), cidr.mapped, cidr.prefix, cidr.width) == ("10.1.2.0/24", True, 120, 128)
    assert str(parse_cidr("::ffff:10.1.2.0/24")) == "10.1.2.0/0"
    assert not parse_cidr("10.1.2.0/24").mapped


def test_requested_addresses():
    assert parse_address_or_cidr("") is None
    assert parse_address_or_cidr("10.1.2.3/24") == parse_address("10.1.2.3")
    for text in ("x", "10.1.2.3/33", "10.1.2.3/"):
        with pytest.raises(ValueError, match="^invalid IP address " + text):
            parse_address_or_cidr(text)


def test_ipv4_sorts_before_ipv6_and_by_number():
    texts = ["10.0.0.2", "10.0.0.10", "255.255.255.255", "::1", "fd00::2", "fd00::10"]
    assert [str(one) for one in sorted(parse_address(text) for text in reversed(texts))] == texts


def test_addresses_are_values():
    one = parse_address("10.0.0.1")
    assert one == parse_address("::ffff:10.0.0.1")
    assert len({one, parse_address("10.0.0.1"), Address(128, one.number)}) == 2
    assert one != "10.0.0.1"
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == "Address('10.0.0.1')"
    assert repr(Cidr(one, 8)) == "Cidr('10.0.0.1/8')"
    assert (one.family, parse_address("::1").family) == ("4", "6")
