# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each code of the fleet once in a fleet with that fault, and none in a fleet that is well."""

from __future__ import annotations

import copy
import json

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.host_local import compact
from ansible_collections.nodenet.cni.plugins.module_utils.node.findings import codes as registered
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet import Question, failing, merge

from .fleets import FAULTS, NOW, Fleet, node


def codes(merged):
    return [one["code"] for one in merged["findings"]]


def test_nothing_is_found_in_a_fleet_that_is_well():
    fleet = Fleet()
    merged = merge(fleet.reports, fleet.question())
    assert merged["findings"] == []
    assert merged["complete"]
    assert not any(merged[key] for key in ("duplicates", "overlaps", "pools", "pod_cidrs", "plan", "drift"))
    assert merged["summary"]["hosts"] == merged["summary"]["reported"] == 20
    assert merged["summary"]["reservations"] == merged["summary"]["reserved"] == 20 * 22
    assert [(one["network"], one["scope"], one["hosts"]) for one in merged["networks"]] == [
        ("cbr0", "node", 20),
        ("lan", "shared", 20),
    ]


def test_every_code_has_a_fault():
    assert sorted(FAULTS) == sorted(code for code, *_rest in registered("fleet").values())


@pytest.mark.parametrize("code", sorted(FAULTS))
def test_each_fault_is_found_once(code):
    fleet = Fleet()
    FAULTS[code](fleet)
    merged = merge(fleet.reports, fleet.question())
    assert codes(merged) == [code]
    (one,) = merged["findings"]
    assert "n0003" in one["hosts"]
    assert merged["summary"]["codes"] == {code: 1}
    assert failing(merged, [code]) == failing(merged, ["info"]) == [code]
    assert failing(merged, ["never"]) == []
    assert failing(merged, ["error"]) == ([code] if one["severity"] == "error" else [])
    json.dumps(merged)


def test_all_faults_of_one_fleet_are_found_side_by_side():
    """On different hosts they do not hide each other."""
    fleet = Fleet()
    for code in ("FLEET001", "FLEET010", "FLEET016", "FLEET019", "FLEET021", "FLEET022"):
        FAULTS[code](fleet)
    fleet.reports["n0011"] = {"unreachable": True}
    assert sorted(codes(merge(fleet.reports, fleet.question()))) == [
        "FLEET001",
        "FLEET005",
        "FLEET010",
        "FLEET016",
        "FLEET019",
        "FLEET021",
        "FLEET022",
    ]


def test_what_each_node_has_for_itself_is_no_drift():
    fleet = Fleet()
    for number, host in enumerate(fleet.reports):
        fleet.settings(host, 0)["plugins[0].nodeAddress"] = f"192.0.2.{number}"
    assert merge(fleet.reports, fleet.question())["drift"] == []
    FAULTS["FLEET019"](fleet)
    (one,) = merge(fleet.reports, fleet.question())["drift"]
    assert one["differences"] == [{"key": "plugins.mtu", "here": "1500", "there": "1450"}]


def test_two_groups_that_differ_are_two_findings():
    fleet = Fleet()
    for host, mtu in (("n0003", "1500"), ("n0004", "1500"), ("n0005", "9000")):
        fleet.settings(host, 0)["plugins.mtu"] = mtu
    merged = merge(fleet.reports, fleet.question())
    assert [(one["hosts"], one["others"]) for one in merged["drift"]] == [(["n0003", "n0004"], 17), (["n0005"], 17)]
    first, second = merged["findings"]
    assert first["subject"] != second["subject"]
    assert first["text"] == (
        "network 'cbr0' on n0003, n0004 is not as on 17 other node(s): plugins.mtu 1500 instead of 1450"
    )


def test_what_most_nodes_have_and_one_lacks_and_the_other_way_round():
    fleet = Fleet()
    del fleet.reports["n0003"]["conf"]["files"][0]
    del fleet.reports["n0004"]["binaries"]["plugins"][0]
    fleet.reports["n0005"]["conf"]["files"].append(dict(fleet.reports["n0005"]["conf"]["files"][0], network="mine"))
    fleet.reports["n0006"]["binaries"] = fleet.reports["n0007"]["conf"] = None  # not asked for
    merged = merge(fleet.reports, fleet.question())
    assert [(one["code"], one["hosts"]) for one in merged["findings"]] == [
        ("FLEET019", ["n0003"]),
        ("FLEET021", ["n0004"]),
    ]
    assert merged["findings"][0]["text"].endswith("is not as on 18 other node(s): file is missing")


def test_a_mixed_fleet_is_compared_as_it_is_told_to():
    fleet = Fleet()
    for code in ("FLEET019", "FLEET020", "FLEET021", "FLEET022"):
        FAULTS[code](fleet)
    for kind, code in zip(("conflists", "multus", "plugins", "effective"), sorted(FAULTS)[18:22]):
        assert codes(merge(fleet.reports, fleet.question()._replace(drift=[kind]))) == [code]
    assert codes(merge(fleet.reports, fleet.question()._replace(drift=[]))) == []


def test_both_forms_of_a_report_say_the_same():
    fleet = Fleet()
    for code in ("FLEET001", "FLEET015"):
        FAULTS[code](fleet)
    merged = merge(fleet.reports, fleet.question())
    for report in fleet.reports.values():
        for one in report["networks"]:
            one["reservations"] = list(compact.reservations_of(one))
            del one["rows"]
    assert merge(fleet.reports, fleet.question()) == merged


def damaged():
    def rows(text):
        return lambda report: report["networks"][0].update(rows=text)

    def sets(**values):
        return lambda report: report["networks"][0]["range_sets"][0].update(values)

    yield "rows that are none", rows("x")
    yield "a row with a field too many", rows("10.0.0.1\ta\tb\t0\t1\t1\tx")
    yield "an address that is none", rows("10.0.0.999\ta\tb\t0\t1\t1")
    yield "a number that is huge", rows("10.0.0.9\ta\tb\t0\t" + "9" * 5000 + "\t1")
    yield "no rows at all", rows(None)
    yield "rows of another type", rows(["10.0.0.1"])
    yield "reservations of nothing", lambda report: report["networks"][0].update(rows=None, reservations=[None])
    yield "a range that is none", sets(ranges=["here-there"])
    yield "a range that ends before it starts", sets(ranges=["10.0.0.9-10.0.0.1"])
    yield "a range of two families", sets(ranges=["10.0.0.9-::1"])
    yield "free is a text", sets(free="3")
    yield "usable is negative", sets(usable=-1)
    yield "usable is more than there is", sets(usable=2**128 + 1)
    yield "leaked is a list", sets(leaked=[])
    yield "leaked is negative", sets(leaked=-1)
    yield "a name that is no network's", lambda report: report["networks"][0].update(name="a/../b\x1b[2J")
    yield "a gateway that is none", sets(gateways=["x"])
    yield "range sets that are none", lambda report: report["networks"][0].update(range_sets=3)
    yield "a scope that is none", lambda report: report["networks"][0].update(scope="global")
    yield "a network that is none", lambda report: report["networks"].append("lan")
    yield "a name that is none", lambda report: report["networks"][0].update(name=None)
    yield (
        "a severity that is none",
        lambda report: report.update(findings=[{"code": "X", "severity": "fatal", "where": "", "text": ""}]),
    )
    yield "a finding that is none", lambda report: report.update(findings=[3])
    yield "settings that are none", lambda report: report["conf"]["files"][0].update(settings=[1])
    yield "a nested setting", lambda report: report["conf"]["files"][0]["settings"].update(x={})
    yield "plugins that are none", lambda report: report.update(binaries={"plugins": [{"name": 3}]})
    yield "effective that is none", lambda report: report["conf"]["effective"].update(containerd=3)


DAMAGED = dict(damaged())


@pytest.mark.parametrize("damage", sorted(DAMAGED))
def test_a_damaged_report_is_a_missing_host_and_spoils_nothing(damage):
    fleet = Fleet(4)
    whole = copy.deepcopy(fleet)
    whole.reports["n0003"] = None
    DAMAGED[damage](fleet.reports["n0003"])
    merged = merge(fleet.reports, fleet.question())
    assert codes(merged) == ["FLEET005"]
    assert "n0003: its report is damaged" in merged["findings"][0]["text"]
    expected = merge(whole.reports, whole.question())
    for key in set(merged) - {"findings", "hosts"}:
        assert merged[key] == expected[key]


def test_a_plan_that_is_none_names_the_host():
    with pytest.raises(ValueError, match="the plan of n0000 is no list"):
        merge({"n0000": node(0)}, Question(plan={"n0000": [{"network": "lan"}]}))
    with pytest.raises(ValueError, match=r"pod CIDR 'x' of n0000"):
        merge({"n0000": node(0)}, Question(pod_cidrs={"n0000": ["x"]}, now=NOW))
