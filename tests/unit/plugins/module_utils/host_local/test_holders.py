# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sticky addresses in the report of a directory, which is made with real files."""

from __future__ import annotations

import os
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.config import load_ipam_config
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.foreign import foreign_contents
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.live import LiveAttachments
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.report import Report
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.store import Store

A, B = "a" * 64, "b" * 64
SETS = load_ipam_config({"name": "lan", "cniVersion": "1.0.0", "ipam": {"ranges": [[{"subnet": "10.9.0.0/29"}]]}}).sets
RESERVED = {"10.9.0.5": "static.shop.db-0\r\neth0", "10.9.0.6": "static.shop.db-1\r\neth0"}


@pytest.fixture
def report_of(tmp_path):
    """Returns a function that makes the report of a directory with these files, 1,000 s old."""

    def make(files, live=None, age_s=1000):
        folder = tmp_path / "lan"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content.encode())
            os.utime(str(folder / name), (time.time() - age_s,) * 2)
        with Store(str(tmp_path), "lan", create=False) as store, store.lock(5):
            snapshot = store.snapshot()
            report = Report(snapshot, SETS, (), live, "/d/lan")
            report.add_foreign_copies(snapshot, foreign_contents(store))
        return report

    return make


def facts(report):
    return {one["kind"]: one.get("names") for one in report.facts}


def test_the_present_holder_is_part_of_the_reservation(report_of):
    report = report_of(dict(RESERVED, **{"10.9.0.5.holder": A + "\r\neth0", "10.9.0.2": A + "\r\neth0"}))
    assert [(one["address"], one.get("holder")) for one in report.reservations] == [
        ("10.9.0.2", None),
        ("10.9.0.5", {"container_id": A, "ifname": "eth0"}),
        ("10.9.0.6", None),
    ]
    assert "holder" not in report.reservations[2]
    assert report.foreign == []
    assert facts(report) == {}
    assert (report.range_sets[0]["reserved"], report.range_sets[0]["free"]) == (3, 2)


def test_who_is_alive(report_of):
    live = LiveAttachments([{"container_id": B, "ifname": "eth0"}])
    files = dict(RESERVED, **{"10.9.0.5.holder": A + "\r\neth0", "10.9.0.6.holder": B + "\r\neth0"})
    report = report_of(files, live)
    assert [(one["alive"], one["holder"]["alive"]) for one in report.reservations] == [(None, False), (None, True)]
    assert facts(report) == {"ipam-holder-leaked": "10.9.0.5.holder"}
    assert report.range_sets[0]["leaked"] == 0


def test_a_holder_whose_address_is_in_use_is_alive(report_of):
    """Evidence of a node also says which addresses its namespaces carry, and host_local_gc keeps those."""

    class InUse(LiveAttachments):
        def judge(self, container_id, ifname, address=""):
            return address == "10.9.0.5" or super().judge(container_id, ifname, address)

    live = InUse([{"container_id": B, "ifname": "eth0"}])
    files = dict(RESERVED, **{"10.9.0.5.holder": A + "\r\neth0", "10.9.0.6.holder": A + "\r\neth0"})
    report = report_of(files, live)
    assert [one["holder"]["alive"] for one in report.reservations] == [True, False]
    assert facts(report) == {"ipam-holder-leaked": "10.9.0.6.holder"}


def test_a_young_holder_may_be_newer_than_the_list(report_of):
    live = LiveAttachments([{"container_id": B, "ifname": "eth0"}])
    report = report_of(dict(RESERVED, **{"10.9.0.5.holder": A + "\r\neth0"}), live, age_s=5)
    assert report.reservations[0]["holder"]["alive"] is None
    assert facts(report) == {}


def test_an_unknown_form_of_id(report_of):
    live = LiveAttachments([{"container_id": B, "ifname": "eth0"}])
    report = report_of(dict(RESERVED, **{"10.9.0.5.holder": "pod-x\r\neth0"}), live)
    assert report.reservations[0]["holder"]["alive"] is None


def test_a_holder_file_without_its_reservation(report_of):
    report = report_of({"10.9.0.5.holder": A + "\r\neth0"})
    assert facts(report) == {"ipam-holder-alone": "10.9.0.5.holder"}
    assert report.reservations == []
    assert report.range_sets[0]["free"] == 4, "nobody is given that address"


def test_a_holder_file_beside_the_reservation_of_a_container(report_of):
    report = report_of({"10.9.0.5": B + "\r\neth0", "10.9.0.5.holder": A + "\r\neth0"})
    assert facts(report) == {"ipam-holder-alone": "10.9.0.5.holder"}
    assert "holder" not in report.reservations[0]
    assert report.range_sets[0]["free"] == 4


def test_odd_holder_files(report_of):
    report = report_of(
        dict(
            RESERVED,
            **{
                "10.9.0.5.holder": "",
                "10.9.0.6.holder": "two words\r\n",
                "10.9.0.300.holder": "x",
                "x.holder": "x",
                "copy": A + "\r\neth0",
                "fd00::1.holder": A + "\r\neth0",
            },
        )
    )
    assert report.foreign == ["10.9.0.300.holder", "copy", "x.holder"]
    assert facts(report) == {
        "ipam-empty-file": "10.9.0.5.holder",
        "ipam-bad-content": "10.9.0.6.holder",
        "ipam-holder-alone": "fd00::1.holder",
        "ipam-foreign-entry": "10.9.0.300.holder, copy, x.holder",
        "ipam-foreign-copy": "copy",
    }
