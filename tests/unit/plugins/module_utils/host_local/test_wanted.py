# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import parse_address
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.wanted import read_batch


def test_owner_is_stored_as_a_static_id():
    (one,) = read_batch([{"owner": "vip-db", "addresses": ["192.0.2.50", "2001:DB8::50"]}], "lan")
    assert one.key == ("static.vip-db", "eth0")
    assert one.addresses == [parse_address("192.0.2.50"), parse_address("2001:db8::50")]
    assert one.present


def test_container_id_is_stored_as_it_is():
    (one,) = read_batch([{"container_id": "abc", "ifname": "net1", "state": "absent"}], "lan")
    assert (one.key, one.addresses, one.present) == (("abc", "net1"), None, False)


def test_owner_of_241_characters_is_the_longest():
    assert read_batch([{"owner": "a" * 241}], "lan")[0].container_id == "static." + "a" * 241


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([{"owner": ""}], "owner ''"),
        ([{"owner": "vip db"}], "'vip db' in network lan: the name must start with a letter or digit"),
        ([{"owner": "vip\n"}], "must start with"),
        ([{"owner": ".vip"}], "must start with"),
        ([{"owner": "../vip"}], "must start with"),
        ([{"owner": "v\u00eep"}], "must start with"),
        ([{"owner": "a" * 242}], "is longer than 241 characters"),
        ([{"container_id": "static.vip-db"}], "may not start with 'static.'"),
        ([{"container_id": "a/b"}], "'a/b' in network lan: the id must start with"),
        ([{"container_id": ""}], "must start with"),
        ([{"owner": "a", "ifname": "eth0/1"}], "interface name contains / or : or whitespace characters: 'eth0/1'"),
        ([{"owner": "a", "ifname": "a" * 16}], "interface name is too long"),
        ([{"owner": "a", "ifname": ".."}], "interface name is . or .."),
        ([{"owner": "a", "container_id": "b"}], "needs either owner or container_id"),
        ([{"ifname": "eth0"}], "needs either owner or container_id"),
        ([{"owner": "a"}, {"owner": "a"}], "for interface eth0 is listed twice"),
        ([{"owner": "a"}, {"owner": "a", "state": "absent"}], "for interface eth0 is listed twice"),
        ([{"owner": "a", "addresses": []}], "or write 'state: absent' to release"),
        (
            [{"owner": "a", "addresses": [], "state": "absent"}],
            "list of addresses is empty; leave it out to release all",
        ),
        ([{"owner": "a", "addresses": ["192.0.2.50/24"]}], "'192.0.2.50/24' is not an IP address"),
        ([{"owner": "a", "addresses": ["192.0.2.050"]}], "is not an IP address"),
        ([{"owner": "a", "addresses": ["192.0.2.5", "::ffff:192.0.2.5"]}], "address 192.0.2.5 is listed twice"),
        (
            [{"owner": "a", "addresses": ["fd00::a"]}, {"owner": "b", "addresses": ["fd00:0::a"]}],
            "Cannot reserve fd00::a for b in network lan: it is listed for a too",
        ),
    ],
)
def test_faults_are_named(items, words):
    with pytest.raises(NodenetError) as caught:
        read_batch(items, "lan")
    assert words in str(caught.value)
    assert str(caught.value).startswith("Cannot ")


def test_one_container_may_have_two_interfaces():
    batch = read_batch([{"container_id": "a"}, {"container_id": "a", "ifname": "net1"}], "lan")
    assert [one.key for one in batch] == [("a", "eth0"), ("a", "net1")]


def test_what_one_gives_up_another_may_get():
    items = [
        {"owner": "a", "addresses": ["192.0.2.5"], "state": "absent"},
        {"owner": "b", "addresses": ["192.0.2.5"]},
    ]
    assert len(read_batch(items, "lan")) == 2
