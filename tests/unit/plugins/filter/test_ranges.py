# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ipaddress
import json

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.nodenet.cni.plugins.filter import node_ranges as ranges_plugin
from ansible_collections.nodenet.cni.plugins.filter import range_capacity as capacity_plugin

HOSTS = [f"node{number}" for number in range(1, 41)]


def cut(*arguments, **options):
    (function,) = ranges_plugin.FilterModule().filters().values()
    return function(*arguments, **options)


def capacity(value):
    (function,) = capacity_plugin.FilterModule().filters().values()
    return function(value)


@pytest.mark.parametrize(("subnet", "prefix"), [("10.244.0.0/16", 24), ("fd00:22::/48", "64"), ("10.9.0.0/20", "/26")])
def test_every_host_has_a_subnet_of_its_own(subnet, prefix):
    found = cut(subnet, HOSTS, prefix)
    assert list(found) == HOSTS
    nets = [ipaddress.ip_network(one["subnet"]) for one in found.values()]
    assert len(set(nets)) == len(HOSTS)
    assert all(net.subnet_of(ipaddress.ip_network(subnet)) for net in nets)
    assert {net.prefixlen for net in nets} == {int(str(prefix).lstrip("/"))}
    # the next run, on another controller and with another order, comes to the same
    assert cut(subnet, list(reversed(HOSTS)), prefix) == found
    assert cut(subnet, HOSTS + HOSTS, prefix) == found


def test_where_a_name_lies_never_changes_between_releases():
    assert cut("10.244.0.0/16", ["node1", "node2"], 24) == {
        "node1": {"subnet": "10.244.138.0/24"},
        "node2": {"subnet": "10.244.236.0/24"},
    }


def test_with_room_nobody_moves_when_hosts_come_and_go():
    all_of_them = cut("fd00:22::/48", HOSTS, 64)
    for name in HOSTS:
        others = [one for one in HOSTS if one != name]
        assert cut("fd00:22::/48", others, 64) == {one: all_of_them[one] for one in others}


def test_held_parts_stay_in_a_full_subnet():
    found = cut("10.0.0.0/22", ["a", "b", "c"], 24)
    for gone in ("a", "b", "c"):
        left = [one for one in ("a", "b", "c") if one != gone]
        later = cut("10.0.0.0/22", [*left, "d"], 24, held=found)
        assert {one: later[one] for one in found} == found  # also of the host that is gone: it may come back
        assert cut("10.0.0.0/22", [*left, "d", gone], 24, held=later) == later
    with pytest.raises(AnsibleFilterError, match=r"10.0.0.0/22 has 0 free parts of /24 for 1 hosts"):
        cut("10.0.0.0/22", ["e"], 24, held=dict(found, **cut("10.0.0.0/22", ["d"], 24, held=found)))


@pytest.mark.parametrize("part", [2, "2", "10.0.2.0/24", "10.0.2.77", {"subnet": "10.0.2.0/24"}])
def test_how_a_held_part_is_told(part):
    assert cut("10.0.0.0/22", ["a"], 24, held={"a": part}) == {"a": {"subnet": "10.0.2.0/24"}}


def test_ranges_of_a_shared_subnet():
    everything = {number: cut("192.0.2.0/24", ["a"], 26, {"a": number}, True)["a"] for number in range(4)}
    assert [(one["range_start"], one["range_end"]) for one in everything.values()] == [
        ("192.0.2.1", "192.0.2.63"),
        ("192.0.2.64", "192.0.2.127"),
        ("192.0.2.128", "192.0.2.191"),
        ("192.0.2.192", "192.0.2.254"),
    ]
    assert {one["subnet"] for one in everything.values()} == {"192.0.2.0/24"}
    assert cut("192.0.2.0/24", ["a"], 26, everything[2] and {"a": everything[2]}, True) == {"a": everything[2]}
    last = cut("fd00::/64", ["a"], 66, {"a": 3}, True)["a"]
    assert last["range_end"] == "fd00::ffff:ffff:ffff:ffff"


def test_skipped_parts_are_nobodys():
    found = cut("192.0.2.0/24", HOSTS[:6], 27, shared=True, skip=2)
    assert min(ipaddress.ip_address(one["range_start"]) for one in found.values()) == ipaddress.ip_address("192.0.2.64")
    with pytest.raises(AnsibleFilterError, match="has 6 free parts"):
        cut("192.0.2.0/24", HOSTS[:7], 27, shared=True, skip=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("10.0.0.1/8", ["a"], 24), "has host bits set"),
        (("10.0.0.0/24", ["a"], 16), "prefix has to be a number from 24 to 30, not 16"),
        (("10.0.0.0/24", ["a"], 31), "prefix has to be a number from 24 to 30, not 31"),
        (("10.0.0.0/24", ["a"], "x"), "not 'x'"),
        (("10.0.0.0/24", "a", 26), "wants the hosts as a list of names"),
        (("10.0.0.0/24", ["a"], 26, ["a"]), "held has to be a dictionary by host"),
        (("10.0.0.0/24", ["a"], 26, {"a": 4}), "held says 4 for a, which is no part of 10.0.0.0/24"),
        (("10.0.0.0/24", ["a"], 26, {"a": "10.0.1.0/26"}), "held says 10.0.1.0/26 for a"),
        (("10.0.0.0/24", ["a"], 26, {"a": "fd00::"}), "held says fd00:: for a"),
        (("10.0.0.0/24", ["a"], 26, {"a": {}}), "held says None for a"),
        (("10.0.0.0/24", ["a"], 26, {"a": 1, "b": "10.0.0.64/26"}), "held gives a and b the same part"),
        (("10.0.0.0/24", ["a"], 26, {}, False, 4), "skip has to be a number from 0 to 3, not 4"),
    ],
)
def test_what_is_refused(arguments, words):
    with pytest.raises(AnsibleFilterError, match="^nodenet.cni.node_ranges: ") as caught:
        cut(*arguments)
    assert words in str(caught.value)


IPAM = {"type": "host-local", "ranges": [[{"subnet": "10.0.0.0/29", "gateway": "10.0.0.6"}], [{"subnet": "fd00::/64"}]]}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("10.22.0.0/24", 253),
        ("10.22.0.0/30", 1),
        ("fd00:22::/64", 2**64 - 2),
        ({"subnet": "10.22.0.0/24", "rangeStart": "10.22.0.100", "rangeEnd": "10.22.0.109"}, 10),
        ({"subnet": "10.22.0.0/24", "range_start": "10.22.0.100", "range_end": "10.22.0.109"}, 10),
        ({"subnet": "10.22.0.0/24", "range_end": "10.22.0.9", "gateway": "10.22.0.9"}, 8),
        (["10.22.0.0/29", "10.23.0.0/29"], 10),
        ([["10.22.0.0/29"], ["10.23.0.0/24"]], 5),
        ({"name": "a", "preset": "bridge", "subnet": "10.22.0.0/24", "subnets": [{"subnet": "10.23.0.0/28"}]}, 13),
        (IPAM, 5),
        ({"type": "bridge", "ipam": IPAM}, 5),
        ({"name": "a", "plugins": [{"type": "bridge", "ipam": IPAM}, {"type": "portmap"}]}, 5),
    ],
)
def test_capacity(value, wanted):
    assert capacity(value) == wanted
    assert capacity(json.loads(json.dumps(value))) == wanted


def test_capacity_of_what_node_ranges_gives():
    found = cut("192.0.2.0/24", HOSTS[:4], 26, shared=True)
    # the gateway of the subnet is one of its addresses
    assert sum(capacity(one) for one in found.values()) == 253


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("10.22.0.1/24", "Network has host bits set"),
        ("10.22.0.0/31", "too small to allocate from"),
        ([], "no IP ranges specified"),
        ({}, "neither a subnet nor ranges"),
        ({"plugins": [{"type": "portmap"}]}, "no plugin of the network has an ipam"),
        (7, "wants a subnet, a range"),
        ([7], "a range is a subnet or a dictionary"),
        (["10.22.0.0/24", "10.22.0.0/25"], "overlap"),
    ],
)
def test_what_capacity_refuses(value, words):
    with pytest.raises(AnsibleFilterError, match="^nodenet.cni.range_capacity: ") as caught:
        capacity(value)
    assert words in str(caught.value)
