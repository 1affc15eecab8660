# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Batches of reservations in a directory with sticky addresses, some of which containers have."""

from __future__ import annotations

import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.host_local import batch, difference, outcome, reservations
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.config import load_ipam_config
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.wanted import read_batch

PLACE = "network lan (/d/lan)"
SETS = load_ipam_config(
    {
        "name": "lan",
        "cniVersion": "1.0.0",
        "ipam": {"ranges": [[{"subnet": "10.9.0.0/28"}], [{"subnet": "fd00:9::/120"}]]},
    }
).sets
RESERVED = {"10.9.0.5": "static.shop.db-0\r\neth0", "10.9.0.6": "static.shop.db-1\r\neth0"}
HELD = dict(RESERVED, **{"10.9.0.5.holder": "c1\r\neth0"})


class Lan:
    """The directory of a network, and batches on it."""

    def __init__(self, data_dir):
        self.data_dir = data_dir
        self.path = data_dir / "lan"
        self.path.mkdir()

    def has(self, files):
        for name, content in files.items():
            (self.path / name).write_bytes(content.encode())

    def files(self):
        return {name: (self.path / name).read_bytes().decode() for name in os.listdir(str(self.path)) if name != "lock"}

    def run(self, *items, check_mode=False, **options):
        wanted = read_batch(items, "lan")

        def decide(snapshot):
            return reservations.make_plan(snapshot, SETS, wanted, PLACE, **options)

        plan, warnings = batch.run_batch(str(self.data_dir), "lan", decide, check_mode, 5)
        assert warnings == []
        return plan, outcome.outcome(plan, SETS, 0.0)

    def refused(self, *items, **options):
        before = self.files()
        with pytest.raises(NodenetError) as caught:
            self.run(*items, **options)
        assert self.files() == before
        return str(caught.value), caught.value.facts["conflicts"]


@pytest.fixture
def lan(tmp_path):
    lan = Lan(tmp_path)
    lan.has(HELD)
    return lan


IN_USE = (
    "Cannot release 10.9.0.5 of shop.db-0 in network lan (/d/lan): it is in use by container c1 interface eth0; "
    "remove that container, or release it first"
)
CONFLICT = {"address": "10.9.0.5", "wanted_by": "shop.db-0", "held_by": "c1"}


@pytest.mark.parametrize(
    ("items", "options"),
    [
        ([{"owner": "shop.db-0", "state": "absent"}], {}),
        ([{"owner": "shop.db-0", "addresses": ["10.9.0.5"], "state": "absent"}], {}),
        ([{"owner": "shop.db-0", "addresses": ["10.9.0.7"]}], {}),
        ([], {"purge": ""}),
        ([{"owner": "shop.db-1"}], {"purge": "shop."}),
        ([{"owner": "shop.db-0", "state": "absent"}, {"owner": "shop.db-2", "addresses": ["10.9.0.5"]}], {}),
    ],
    ids=["absent", "address absent", "moved", "purged", "purged by prefix", "handed on"],
)
def test_a_reservation_whose_address_a_container_has_stays(lan, items, options):
    assert lan.refused(*items, **options) == (IN_USE, [CONFLICT])
    with pytest.raises(NodenetError, match="in use by container c1"):
        lan.run(*items, check_mode=True, **options)
    plan, result = lan.run(*items, keep_conflicts=True, **options)
    assert CONFLICT in result["conflicts"]
    assert lan.files()["10.9.0.5"] == HELD["10.9.0.5"]
    assert lan.files()["10.9.0.5.holder"] == HELD["10.9.0.5.holder"]


def test_what_nobody_has_goes(lan):
    _plan, result = lan.run({"owner": "shop.db-1", "state": "absent"})
    assert [one["address"] for one in result["removed"]] == ["10.9.0.6"]
    assert sorted(lan.files()) == ["10.9.0.5", "10.9.0.5.holder"]


def test_purge_with_keep_takes_the_rest(lan):
    _plan, result = lan.run(purge="", keep_conflicts=True)
    assert [one["address"] for one in result["removed"]] == ["10.9.0.6"]
    assert sorted(lan.files()) == ["10.9.0.5", "10.9.0.5.holder"]


def test_several_are_named_together(lan):
    lan.has({"10.9.0.6.holder": "c2\r\neth0"})
    text, conflicts = lan.refused(purge="")
    assert text.startswith("Cannot release 2 addresses in network lan (/d/lan): 10.9.0.5 of shop.db-0 is in use by ")
    assert "10.9.0.6 of shop.db-1 is in use by container c2 interface eth0" in text
    assert len(conflicts) == 2


def test_a_holder_file_without_content_may_be_somebody_while_it_is_young(lan):
    lan.has({"10.9.0.5.holder": ""})
    text, _conflicts = lan.refused({"owner": "shop.db-0", "state": "absent"})
    assert text.endswith("it is perhaps in use: 10.9.0.5.holder is empty and younger than 60 s")
    os.utime(str(lan.path / "10.9.0.5.holder"), (1, 1))
    lan.run({"owner": "shop.db-0", "state": "absent"})
    assert "10.9.0.5" not in lan.files()


def test_the_holder_is_released_as_a_container(lan):
    item = {"container_id": "c1", "state": "absent"}
    plan, result = lan.run(item, check_mode=True)
    assert lan.files() == HELD
    assert plan.changed
    assert difference.lines(plan) == (["10.9.0.5.holder c1 eth0"], [])
    row = result["removed"][0]
    assert (row["address"], row["container_id"], row["static"], row["owner"]) == ("10.9.0.5", "c1", False, None)
    plan, result = lan.run(item)
    assert lan.files() == RESERVED
    plan, result = lan.run(item)
    assert not result["changed"]


def test_holder_and_reservation_go_in_one_batch(lan):
    lan.run({"owner": "shop.db-0", "state": "absent"}, {"container_id": "c1", "state": "absent"})
    assert lan.files() == {"10.9.0.6": RESERVED["10.9.0.6"]}


@pytest.mark.parametrize(
    ("item", "left"),
    [
        ({"container_id": "c1", "ifname": "net1", "state": "absent"}, True),
        ({"container_id": "c1", "addresses": ["10.9.0.7"], "state": "absent"}, True),
        ({"container_id": "c1", "addresses": ["10.9.0.5"], "state": "absent"}, False),
    ],
)
def test_only_the_holder_that_is_meant_goes(lan, item, left):
    lan.run(item)
    assert ("10.9.0.5.holder" in lan.files()) is left


def test_the_same_plan_again_changes_nothing(lan):
    plan, result = lan.run({"owner": "shop.db-0", "addresses": ["10.9.0.5"]}, {"owner": "shop.db-1"}, purge="")
    # db-1 got an IPv6 address
    assert [one["address"] for one in result["added"]] == ["fd00:9::2"]
    plan, result = lan.run({"owner": "shop.db-0", "addresses": ["10.9.0.5"]}, {"owner": "shop.db-1"}, purge="")
    assert not result["changed"]
    assert lan.files()["10.9.0.5.holder"] == "c1\r\neth0"


def test_a_reservation_that_was_lost_can_be_made_again(lan):
    (lan.path / "10.9.0.5").unlink()
    item = {"owner": "shop.db-0", "addresses": ["10.9.0.5"]}
    lan.run(item)
    assert lan.files() == HELD


def test_an_address_that_only_a_holder_file_keeps_goes_to_no_container_and_is_not_chosen(lan):
    (lan.path / "10.9.0.5").unlink()
    text, conflicts = lan.refused({"container_id": "c2", "addresses": ["10.9.0.5"]})
    assert text == (
        "Cannot reserve 10.9.0.5 for c2 in network lan (/d/lan): "
        "it is held by c1 (id c1, interface eth0, file 10.9.0.5.holder)"
    )
    assert conflicts == [{"address": "10.9.0.5", "wanted_by": "c2", "held_by": "c1"}]
    for number in range(4):
        lan.run({"owner": "n%d" % number, "addresses": None})
    assert sorted(name for name in lan.files() if "." in name) == sorted(
        ["10.9.0.2", "10.9.0.3", "10.9.0.4", "10.9.0.5.holder", "10.9.0.6", "10.9.0.7"]
    )
    lan.run({"container_id": "c1", "addresses": ["10.9.0.5"]})
    assert lan.files()["10.9.0.5"] == "c1\r\neth0"
