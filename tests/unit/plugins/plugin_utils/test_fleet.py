# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Comparing the reports of nodes. The reports are made by the report itself, from a case's files."""

from __future__ import annotations

import itertools
import json
import random
import time
from pathlib import Path

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.config import load_ipam_config
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.live import LiveAttachments
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.report import Report
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.snapshot import Snapshot
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet import Question, merge, table, unknown_networks
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_lines import shown

CASES = Path(__file__).resolve().parents[3] / "cases"
NOW = 1_800_000_000.0


def case(name):
    return json.loads((CASES / (name + ".json")).read_text(encoding="utf-8"))


def node_report(networks, live=None, findings=()):
    """networks: name -> (files, ranges, scope); files: name -> content."""
    documents = []
    for name, (files, ranges, scope) in networks.items():
        ipam = {"type": "host-local", "ranges": ranges}
        sets = load_ipam_config({"name": name, "cniVersion": "1.0.0", "ipam": ipam}).sets if ranges else []
        read = {path: (content.encode(), NOW - 1000) for path, content in files.items()}
        report = Report(Snapshot(set(read), read, set(), {}, NOW), sets, live=live)
        documents.append(
            {
                "name": name,
                "data_dir": "/d",
                "source": "/c",
                "scope": scope,
                "range_sets": report.range_sets,
                "reservations": report.reservations,
                "foreign": report.foreign,
            }
        )
    return {"report_version": 1, "networks": documents, "findings": list(findings)}


def from_case(given):
    """The nodes of an audit case."""
    reports = {}
    for host, node in given["input"]["nodes"].items():
        networks = {}
        for path, content in node.get("data_dir", {}).items():
            name, _slash, address = path.partition("/")
            networks.setdefault(name, {})[address] = content
        for name in given["input"].get("scope", {}):
            networks.setdefault(name, {})
        ranges = [[{"subnet": node["conf_subnet"]}]] if "conf_subnet" in node else []
        reports[host] = node_report({name: (files, ranges, "node") for name, files in networks.items()})
    return reports


def lan(*addresses, owner="x", ranges=(), scope="shared"):
    return node_report({"lan": ({one: f"{owner}\r\neth0" for one in addresses}, list(ranges), scope)})


def codes(merged):
    return [one["code"] for one in merged["findings"]]


class TestCases:
    @pytest.mark.parametrize("name", ["audit-node-local-not-duplicate", "audit-v6-spelling", "audit-stale-podcidr"])
    def test_duplicates(self, name):
        given = case(name)
        merged = merge(from_case(given), Question(scopes=given["input"]["scope"]))
        found = {one["address"]: one["hosts"] for one in merged["duplicates"]}
        assert found == given["check"]["duplicates"]

    def test_node_local_would_be_one_if_it_were_shared(self):
        given = case("audit-node-local-not-duplicate")
        merged = merge(from_case(given), Question(scopes={"podman": "shared"}))
        assert [one["address"] for one in merged["duplicates"]] == ["10.88.0.2"]

    def test_same_podcidr(self):
        given = case("audit-same-podcidr")
        merged = merge(from_case(given), Question(scopes=given["input"]["scope"]))
        assert {one["address"]: one["hosts"] for one in merged["duplicates"]} == given["check"]["duplicates"]
        assert [one["hosts"] for one in merged["overlaps"]] == given["check"]["overlapping_ranges"]
        assert codes(merged) == ["FLEET002"]
        assert merged["findings"][0]["severity"] == "error"

    def test_stale_podcidr(self):
        given = case("audit-stale-podcidr")
        cidrs = {host: [node["pod_cidr"]] for host, node in given["input"]["nodes"].items()}
        merged = merge(from_case(given), Question(scopes=given["input"]["scope"], pod_cidrs=cidrs))
        assert [one["host"] for one in merged["pod_cidrs"]] == given["check"]["drift"]
        assert merged["pod_cidrs"][0]["networks"] == ["cbr0"]
        assert "FLEET010" in codes(merged)
        assert "10.42.5.0/24, but hands out 10.42.1.1-10.42.1.254 (cbr0)" in str(merged["findings"])

    def test_static_plan(self):
        """The hosts plan by owners of their own; n1 alone has told its range yet."""
        given = case("audit-static-plan")
        inputs = given["input"]
        plan = {
            host: [{"network": "lan", "reservations": [{"owner": f"vip-{host}", "addresses": found}]}]
            for host, found in inputs["plan"].items()
        }
        start, end = inputs["dynamic"]["n1"]
        ranges = [{"subnet": inputs["network"], "rangeStart": start, "rangeEnd": end, "gateway": inputs["gateway"]}]
        reports = {"n1": lan(ranges=[ranges]), "n2": lan(), "n3": lan()}
        merged = merge(reports, Question(plan=plan, scopes={"lan": inputs["scope"]}))
        assert len(merged["findings"]) == len(merged["plan"]) == given["check"]["findings"]
        assert [(one["problem"], one["address"], one["hosts"], one["other_hosts"]) for one in merged["plan"]] == [
            ("gateway", "192.0.2.1", ["n2"], []),
            ("foreign_range", "192.0.2.15", ["n3"], ["n1"]),
            ("twice", "192.0.2.50", ["n1", "n2"], []),
        ]

    def test_exhaustion(self):
        given = case("audit-exhaustion")
        reports = {}
        for host, node in given["input"]["nodes"].items():
            ids = [f"{number:064x}" for number in range(len(node["reserved"]))]
            files = {one: f"{container_id}\r\neth0" for one, container_id in zip(node["reserved"], ids)}
            live = LiveAttachments([{"container_id": one} for one in ids[: node["live"]]])
            reports[host] = node_report({"cbr0": (files, [[node["range"]]], "node")}, live)
        merged = merge(reports, Question(threshold=given["input"]["thresholds"]["warn"]))
        pools = {one["host"]: one for one in merged["pools"]}
        for host in ("n1", "n2"):
            assert (pools[host]["usable"], pools[host]["reserved"]) == (
                given["check"]["usable"],
                given["check"]["reserved"],
            )
            assert pools[host]["usage"] == 0.923
            assert {key: pools[host][key] for key in ("leaked", "action")} == given["check"][host]
        assert codes(merged) == ["FLEET004", "FLEET003"]
        assert merge(reports, Question(threshold=given["input"]["thresholds"]["crit"]))["pools"] == []


def test_nothing_to_tell():
    merged = merge({"n1": lan("192.0.2.5"), "n2": lan("192.0.2.6")})
    assert merged["complete"]
    assert (merged["duplicates"], merged["overlaps"], merged["pools"], merged["findings"]) == ([], [], [], [])
    assert merged["report_version"] == 1


def test_duplicate_names_all_holders():
    reports = {"n2": lan("192.0.2.5", owner="static.b"), "n1": lan("192.0.2.5", owner="c" * 64), "n3": lan()}
    (one,) = merge(reports)["duplicates"]
    assert (one["network"], one["address"], one["hosts"]) == ("lan", "192.0.2.5", ["n1", "n2"])
    assert [holder["owner"] for holder in one["holders"]] == [None, "b"]
    text = merge(reports)["findings"][0]["text"]
    assert "n2 (b)" in text
    assert "n1 (cccc" in text


def test_one_static_owner_on_every_node_keeps_the_address_from_all():
    reports = {host: lan("192.0.2.5", owner="static.vip") for host in ("n1", "n2", "n3")}
    assert merge(reports)["duplicates"] == []
    reports["n4"] = lan("192.0.2.5", owner="d" * 64)
    assert merge(reports)["duplicates"][0]["hosts"] == ["n1", "n2", "n3", "n4"]


def test_two_files_of_one_node_are_that_nodes_business():
    assert merge({"n1": lan("fd00::a", "fd00:0::a"), "n2": lan()})["duplicates"] == []


def test_duplicates_are_in_order_of_addresses():
    addresses = ["192.0.2.10", "192.0.2.9", "2001:db8::1"]
    merged = merge({host: lan(*addresses) for host in ("n1", "n2")})
    assert [one["address"] for one in merged["duplicates"]] == ["192.0.2.9", "192.0.2.10", "2001:db8::1"]


def test_scope_of_one_node_or_of_the_option_decides():
    reports = {"n1": lan("192.0.2.5", scope="node"), "n2": lan("192.0.2.5", scope="shared")}
    assert len(merge(reports)["duplicates"]) == 1
    assert merge(reports, Question(scopes={"lan": "node"}))["duplicates"] == []
    assert merge({"n1": lan("192.0.2.5", scope=None), "n2": lan("192.0.2.5", scope=None)})["duplicates"] == []


def test_ranges_that_only_touch_do_not_overlap():
    def part(start, end):
        return lan(ranges=[[{"subnet": "192.0.2.0/24", "rangeStart": start, "rangeEnd": end}]])

    reports = {"n1": part("192.0.2.10", "192.0.2.19"), "n2": part("192.0.2.20", "192.0.2.29")}
    assert merge(reports)["overlaps"] == []
    reports["n3"] = part("192.0.2.19", "192.0.2.20")
    merged = merge(reports)
    # n1 and n2 have no address in common, whatever n3 has with both of them
    assert [one["hosts"] for one in merged["overlaps"]] == [["n1", "n3"], ["n2", "n3"]]
    assert merged["overlaps"][0]["members"] == [
        {"host": "n1", "range": "192.0.2.10-192.0.2.19"},
        {"host": "n3", "range": "192.0.2.19-192.0.2.20"},
    ]
    assert [one["text"] for one in merged["findings"]] == [
        "network 'lan': 192.0.2.10-192.0.2.19 on n1 overlaps 192.0.2.19-192.0.2.20 on n3",
        "network 'lan': 192.0.2.19-192.0.2.20 on n3 overlaps 192.0.2.20-192.0.2.29 on n2",
    ]


def test_overlaps_are_all_pairs_and_no_others():
    chosen = random.Random(7)
    for _round in range(60):
        spans = {}
        reports = {}
        for host in "abcdefgh":
            start = chosen.randrange(1, 200)
            end = min(254, start + chosen.randrange(0, 60))
            spans[host] = (start, end)
            limits = {"rangeStart": f"192.0.2.{start}", "rangeEnd": f"192.0.2.{end}"}
            reports[host] = lan(ranges=[[dict(limits, subnet="192.0.2.0/24", gateway="192.0.2.254")]])
        pairs = {
            (one, other)
            for one in spans
            for other in spans
            if one < other and spans[one][0] <= spans[other][1] and spans[other][0] <= spans[one][1]
        }
        told = merge(reports)["overlaps"]
        assert {pair for one in told for pair in itertools.combinations(one["hosts"], 2)} == pairs
        groups = [set(one["hosts"]) for one in told]
        assert not [1 for one, other in itertools.permutations(groups, 2) if one <= other]


@pytest.mark.parametrize(
    ("alive", "free", "code", "severity", "hint"),
    [
        (None, 0, "FLEET009", "error", "see whether addresses leaked"),
        (5, 0, "FLEET007", "error", "enlarge the range"),
        (2, 0, "FLEET008", "error", "give the leaked addresses back"),
        (None, 1, "FLEET006", "warning", "see whether addresses leaked"),
        (4, 1, "FLEET003", "warning", "enlarge the range"),
        (2, 1, "FLEET004", "warning", "give the leaked addresses back"),
    ],
)
def test_a_pool_is_told_once_and_the_hint_is_what_helps(alive, free, code, severity, hint):
    ids = [f"{number:064x}" for number in range(5 - free)]
    files = {f"192.0.2.{number}": f"{one}\r\neth0" for number, one in enumerate(ids, 2)}
    live = None if alive is None else LiveAttachments([{"container_id": one} for one in ids[:alive]])
    ranges = [[{"subnet": "192.0.2.0/29"}]]
    (one,) = merge({"n1": node_report({"net": (files, ranges, "node")}, live)}, Question(threshold=0.5))["findings"]
    assert (one["code"], one["severity"]) == (code, severity)
    assert one["hint"].startswith(hint)


def test_causes_stand_before_what_comes_of_them():
    ranges = [[{"subnet": "192.0.2.0/24"}]]
    merged = merge({host: lan("192.0.2.5", "192.0.2.6", owner=host, ranges=ranges) for host in ("n1", "n2")})
    assert codes(merged) == ["FLEET002", "FLEET001", "FLEET001"]


def test_lines_for_people_name_the_hosts_and_are_not_too_many():
    own = [{"code": "IPAM017", "severity": "warning", "where": "/d", "text": "1 outside", "hint": "wait"}]
    own.append({"code": "IPAM018", "severity": "error", "where": "/d", "text": "1 held"})
    more = [{"code": "IPAM012", "severity": "info", "where": "/d", "text": f"file {one}"} for one in range(150)]
    reports = {f"n{number:02}": lan() for number in range(10)}
    for found in reports.values():
        found["findings"] = [*own, *more]
    reports["n99"] = None
    lines = shown(merge(reports))
    hosts = "n00, n01, n02, n03, n04, n05, n06, n07 and 2 more"
    # hundreds of hosts without a report shall not hide what the others say
    assert lines["errors"][0] == f"{hosts}: /d: 1 held (IPAM018)"
    assert lines["errors"][1].startswith("no report of host n99: it reported nothing (FLEET005): see why")
    assert lines["warnings"] == [f"{hosts}: /d: 1 outside (IPAM017): wait"]
    assert len(lines["infos"]) == 101
    assert lines["infos"][0] == f"{hosts}: /d: file 0 (IPAM012)"
    assert lines["infos"][-1] == "and 500 more, in the reports"
    assert lines["unread"] == []


def test_the_nodes_own_findings_come_along_gravest_first():
    def found(severity):
        return {"code": "X", "severity": severity, "where": "/d", "text": severity}

    reports = {"n1": node_report({}, findings=[found("info"), found("warning")]), "n2": None}
    reports["n3"] = node_report({}, findings=[found("error")])
    told = [(one["host"], one["text"]) for one in merge(reports)["node_findings"]]
    assert told == [("n3", "error"), ("n1", "warning"), ("n1", "info")]


def test_unknown_networks():
    assert unknown_networks({"n1": lan(), "n2": None}, ["lan", "wan"]) == ["wan"]


def test_one_range_listed_twice_by_a_node_is_that_nodes_business():
    report = lan(ranges=[[{"subnet": "192.0.2.0/24"}]])
    report["networks"] *= 2
    assert merge({"n1": report, "n2": lan()})["overlaps"] == []


def test_families_do_not_overlap_each_other():
    reports = {"n1": lan(ranges=[[{"subnet": "0.0.0.0/1"}]]), "n2": lan(ranges=[[{"subnet": "2001:db8::/64"}]])}
    assert merge(reports)["overlaps"] == []


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (None, "it reported nothing"),
        ({"failed": True, "msg": "Cannot report"}, "Cannot report"),
        ({"unreachable": True}, "it is unreachable"),
        # what is told by a module that never ran, without a terminal and with one
        (
            {"failed": True, "msg": "No start", "module_stdout": "", "module_stderr": "/bin/sh: 1: sudo: not found\n"},
            "No start (/bin/sh: 1: sudo: not found)",
        ),
        (
            {
                "msg": "MODULE FAILURE\nSee stdout/stderr",
                "module_stdout": "\r\nsudo: a password is required\r\n",
                "module_stderr": "Shared connection to 192.0.2.1 closed.\r\n",
            },
            "MODULE FAILURE See stdout/stderr (sudo: a password is required)",
        ),
        ({"failed": True, "msg": "No start", "module_stderr": "x" * 1000}, f"No start ({'x' * 300}...)"),
        ({"changed": False}, "what it reported is no report of host_local_info, or of node_info with audit"),
        ({"networks": [], "report_version": 2}, "its report has version 2, this collection reads version 1"),
        ({"networks": []}, "its report has version None, this collection reads version 1"),
    ],
)
def test_a_host_without_a_report_makes_the_result_incomplete(report, reason):
    merged = merge({"n1": lan("192.0.2.5"), "n2": report})
    assert not merged["complete"]
    assert codes(merged) == ["FLEET005"]
    assert merged["hosts"][1]["reported"] is False
    assert merged["hosts"][1]["reason"] == reason
    assert table(report) == "no report: " + reason


def test_table():
    finding = {"code": "IPAM011", "severity": "warning", "where": "/d/lan", "text": "an empty file"}
    networks = {
        "lan": (
            {"192.0.2.2": "static.a\r\neth0"},
            [[{"subnet": "192.0.2.0/29"}], [{"subnet": "2001:db8::/126"}]],
            "node",
        ),
        "old": ({"10.0.0.1": "x\r\neth0"}, [], None),
    }
    assert table(node_report(networks, findings=[finding])).splitlines() == [
        "network  set  ranges                   usable  reserved  static  leaked  free  use",
        "lan      0    192.0.2.1-192.0.2.6      5       1         1       -       4     20 %",
        "lan      1    2001:db8::1-2001:db8::3  2       0         0       -       2     0 %",
        "old      -    ranges not known         -       1         -       -       -     -",
        "IPAM011 warning /d/lan: an empty file",
    ]


def test_a_thousand_nodes_are_merged_in_seconds():
    reports = {}
    for host in range(1000):
        files = {
            f"10.{host >> 4}.{(host & 15) * 16 + n // 16}.{n}": f"{host * 1000 + n:064x}\r\neth0" for n in range(50)
        }
        reports[f"n{host:04}"] = node_report({"lan": (files, [[{"subnet": "10.0.0.0/8"}]], "shared")})
    started = time.process_time()
    merged = merge(reports)
    assert time.process_time() - started < 10
    assert merged["duplicates"] == []
    (one,) = merged["overlaps"]
    assert len(one["hosts"]) == 1000
    # one finding for all of them, of readable length
    assert len(merged["findings"]) == 1
    assert len(merged["findings"][0]["text"]) < 400
