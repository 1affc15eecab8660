# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import sqlite3

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet import merge
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_history import History

from .fleets import FAULTS, NOW, Fleet

DAY = 86400
OWN = {"code": "IPAM011", "severity": "warning", "where": "/d/cbr0", "text": "1 empty file", "hint": "", "go": "fails"}


@pytest.fixture
def audit(tmp_path):
    """Call audit(fleet, day): the merged audit with its history."""

    def run(fleet, day, keep=100, write=True):
        now = NOW + int(day * DAY)
        with History(str(tmp_path / "history.sqlite"), write=write) as history:
            before = history.before(now)
            merged = merge(fleet.reports, fleet.question()._replace(before=before, now=now))
            merged["history"] = history.compare(merged, before)
            if write:
                history.append(merged, keep)
        return merged

    return run


def codes(found):
    return [(one["host"], one["code"]) for one in found]


def broken(*faults):
    fleet = Fleet(12)
    for code in faults:
        FAULTS[code](fleet)
    return fleet


def test_the_first_audit_has_nothing_to_compare_with(audit):
    history = audit(broken("FLEET019"), 0)["history"]
    assert history == {"previous_at": None, "audits": 1, "new": [], "gone": [], "growing": [], "ranges_changed": []}


def test_new_and_gone(audit):
    audit(broken(), 0)
    fleet = broken("FLEET001", "FLEET019")
    fleet.reports["n0002"]["findings"].append(OWN)
    history = audit(fleet, 1)["history"]
    assert (history["previous_at"], history["audits"]) == (NOW, 2)
    assert codes(history["new"]) == [(None, "FLEET001"), (None, "FLEET019"), ("n0002", "IPAM011")]
    assert history["new"][2] == {"host": "n0002", **{key: OWN[key] for key in ("code", "severity", "where", "text")}}
    assert history["gone"] == []
    fleet.reports["n0002"]["findings"][0] = dict(OWN, text="2 empty files")
    history = audit(fleet, 2)["history"]
    assert history["new"] == history["gone"] == []
    history = audit(broken("FLEET019"), 3)["history"]
    assert history["new"] == []
    assert codes(history["gone"]) == [(None, "FLEET001"), ("n0002", "IPAM011")]


def test_a_host_that_is_away_loses_no_finding_and_gets_none_anew(audit):
    fleet = broken("FLEET001")  # of n0003 and n0007
    fleet.plan.clear()
    fleet.reports["n0007"]["findings"].append(OWN)
    audit(fleet, 0)
    away = fleet.reports.pop("n0007")
    fleet.reports["n0007"] = None
    history = audit(fleet, 1)["history"]
    assert codes(history["new"]) == [(None, "FLEET005")]
    assert history["gone"] == []
    fleet.reports["n0007"] = away
    history = audit(fleet, 2)["history"]
    assert history["new"] == []
    assert codes(history["gone"]) == [(None, "FLEET005")]
    del fleet.reports["n0007"], fleet.pod_cidrs["n0007"]
    history = audit(fleet, 3)["history"]  # out of the inventory: nobody can say that the address is held once now
    assert history["gone"] == []


def test_what_grows_and_when_it_is_full(audit):
    fleet = Fleet(12)
    audit(fleet, 0)
    fleet.set_pool("n0003", "cbr0", reserved=140, free=113)
    merged = audit(fleet, 2)
    assert merged["history"]["growing"] == [
        {
            "host": "n0003",
            "network": "cbr0",
            "range_set": 0,
            "before": 20,
            "reserved": 140,
            "usable": 253,
            "per_day": 60.0,
            "full_in_s": 113 * DAY // 60,
        }
    ]
    assert [one["code"] for one in merged["findings"]] == ["FLEET023"]
    assert "full in 45 hours at the rate of 60 a day" in merged["findings"][0]["text"]
    quick = audit(fleet, 2.001)  # an audit a minute later still tells the trend since the one that is old enough
    assert quick["history"]["growing"][0]["before"] == 20
    assert audit(fleet, 4)["history"]["growing"] == []


def test_ranges_that_changed(audit):
    fleet = Fleet(12)
    audit(fleet, 0)
    fleet.set_pool("n0003", "cbr0", ranges=["10.64.3.1-10.64.3.99"])
    merged = audit(fleet, 1)
    changed = {"before": ["10.64.3.1-10.64.3.254"], "ranges": ["10.64.3.1-10.64.3.99"]}
    assert merged["history"]["ranges_changed"] == [{"host": "n0003", "network": "cbr0", "range_set": 0, **changed}]
    assert [one["code"] for one in merged["findings"]] == ["FLEET024"]
    assert audit(fleet, 2)["findings"] == []


def test_huge_ranges_and_a_clock_that_steps_back(audit):
    fleet = Fleet(12)
    huge = 2**128 - 1
    fleet.set_pool("n0003", "cbr0", usable=huge, free=huge - 20)
    audit(fleet, 0)
    assert audit(fleet, 1)["history"]["growing"] == []
    fleet.set_pool("n0003", "cbr0", usable=huge, free=huge - 30)
    assert audit(fleet, 0.5)["history"]["growing"][0]["per_day"] == 20.0  # the audit of day 1 is still to come


def test_it_is_for_whoever_made_it(audit, tmp_path):
    audit(broken("FLEET001"), 0)
    assert (tmp_path / "history.sqlite").stat().st_mode & 0o777 == 0o600
    (tmp_path / "history.sqlite").chmod(0o640)
    audit(broken(), 1)
    assert (tmp_path / "history.sqlite").stat().st_mode & 0o777 == 0o640


def test_only_so_many_audits_are_kept(audit, tmp_path):
    for day in range(5):
        merged = audit(Fleet(2), day, keep=3)
    assert merged["history"]["audits"] == 4
    database = sqlite3.connect(tmp_path / "history.sqlite")
    assert database.execute("SELECT count(*) FROM audits").fetchone() == (3,)
    assert database.execute("SELECT count(*) FROM pools").fetchone() == (3 * 4,)
    database.close()


def test_without_write_nothing_is_written(audit, tmp_path):
    assert audit(broken("FLEET019"), 0, write=False)["history"]["audits"] == 1
    assert list(tmp_path.iterdir()) == []
    audit(broken(), 0)
    before = (tmp_path / "history.sqlite").read_bytes()
    assert codes(audit(broken("FLEET019"), 1, write=False)["history"]["new"]) == [(None, "FLEET019")]
    assert (tmp_path / "history.sqlite").read_bytes() == before


def test_a_merge_that_fails_leaves_the_history_as_it_was(tmp_path):
    path = tmp_path / "history.sqlite"
    with pytest.raises(RuntimeError), History(str(path)):
        raise RuntimeError
    with History(str(path)) as history:
        assert history.before(NOW) == {}


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be looked at" * 40, "other"])
def test_a_file_that_is_no_history_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "history.sqlite"
    if content == "other":
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE mine (x)")
        database.commit()
        database.close()
        content = path.read_bytes()
    else:
        path.write_bytes(content)
    with pytest.raises(NodenetError, match=f"Cannot use the history in {path}: "):
        History(str(path))
    assert path.read_bytes() == content


def test_a_directory_that_is_missing(tmp_path):
    with pytest.raises(NodenetError, match="Cannot use the history in .*unable to open"):
        History(str(tmp_path / "none" / "history.sqlite"))
