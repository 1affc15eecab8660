# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A network that its node could not read: nothing is known of it, and nothing is concluded from that."""

from __future__ import annotations

import fcntl
import json

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node.findings import finding
from ansible_collections.nodenet.cni.plugins.module_utils.node.ipam_report import report
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet import Question, failing, merge, unknown_networks
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_history import History
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_html import html
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_prometheus import prometheus
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_rows import Audit

from .fleets import FAULTS, NOW, Fleet

DAY = 86400
REASON = "the lock of another process"


def hide(fleet, host, name):
    """Let the host be unable to read a network."""
    found = fleet.reports[host]
    path = f"/var/lib/cni/networks/{name}"
    found["networks"] = [one for one in found["networks"] if one["name"] != name]
    found["unread"] = [{"name": name, "path": path, "reason": REASON}]
    found["findings"] = [finding("ipam-dir-unusable", path, reason=REASON)]
    return path


def codes(found):
    return [one["code"] for one in found]


def test_the_audit_is_incomplete_and_says_why():
    fleet = Fleet()
    path = hide(fleet, "n0003", "lan")
    merged = merge(fleet.reports, fleet.question())
    assert merged["complete"] is False
    assert merged["unread"] == [{"host": "n0003", "network": "lan", "where": path, "reason": REASON}]
    assert (merged["summary"]["unread"], merged["summary"]["missing"]) == (1, 0)
    assert {one["network"]: (one["hosts"], one["unread"]) for one in merged["networks"]} == {
        "cbr0": (20, 0),
        "lan": (19, 1),
    }
    assert {one["host"]: one["unread"] for one in merged["hosts"] if one["unread"]} == {"n0003": 1}
    assert failing(merged, ["error"]) == ["IPAM028"]
    json.dumps(merged)


def test_it_is_not_compared_with_a_plan_or_a_pod_cidr():
    fleet = Fleet()
    fleet.plan["n0003"][0]["reservations"].append({"owner": "any"})  # an owner who takes any address
    for name in ("lan", "cbr0"):
        hide(fleet, "n0003", name)
        merged = merge(fleet.reports, fleet.question())
        assert merged["findings"] == [], name
        fleet.reports["n0003"]["networks"] = Fleet().reports["n0003"]["networks"]
        fleet.reports["n0003"]["unread"] = []
        if name == "lan":
            fleet.plan["n0003"][0]["reservations"].pop()


def test_the_plan_of_what_was_read_is_still_compared():
    fleet = Fleet()
    hide(fleet, "n0003", "lan")
    FAULTS["FLEET010"](fleet)  # a pod CIDR of which cbr0, which was read, hands out nothing
    fleet.plan["n0005"][0]["reservations"].append({"owner": "vip", "addresses": ["172.16.5.9"]})
    merged = merge(fleet.reports, fleet.question()._replace(pod_network="cbr0"))
    assert codes(merged["findings"]) == ["FLEET010", "FLEET016"]
    # which network has to hand it out is not known without its name: lan might
    assert codes(merge(fleet.reports, fleet.question())["findings"]) == ["FLEET016"]


def test_a_scope_of_a_network_that_nobody_could_read_is_no_slip():
    fleet = Fleet(2)
    for host in fleet.reports:
        hide(fleet, host, "lan")
    assert unknown_networks(fleet.reports, ["lan", "lna"]) == ["lna"]


def test_a_report_that_only_has_the_finding_is_incomplete_too():
    fleet = Fleet(12)
    path = hide(fleet, "n0003", "lan")
    del fleet.reports["n0003"]["unread"]
    merged = merge(fleet.reports, fleet.question())
    assert merged["complete"] is False
    assert [(one["host"], one["network"], one["where"]) for one in merged["unread"]] == [("n0003", None, path)]
    assert merged["findings"] == []


@pytest.mark.parametrize("bad", ["x", [1], [{"name": "lan"}], [{"name": 1, "path": "/d", "reason": "x"}]])
def test_a_list_that_is_none_is_a_damaged_report(bad):
    fleet = Fleet(2)
    fleet.reports["n0001"]["unread"] = bad
    (one,) = [one for one in merge(fleet.reports)["hosts"] if not one["reported"]]
    assert one["reason"].startswith("its report is damaged")


def test_the_page_and_the_figures_do_not_claim_to_know_all():
    fleet = Fleet(4)
    hide(fleet, "n0003", "lan")
    merged = merge(fleet.reports, Question(now=NOW))
    audit = Audit(dict(merged, reports=fleet.reports))
    page = html(audit)
    assert "Every host that was asked has reported." not in page
    assert "This audit is incomplete" in page
    assert "1 network not read" in page
    assert f"<bdi>lan</bdi> on <bdi>n0003</bdi> in <bdi>/var/lib/cni/networks/lan</bdi>: <bdi>{REASON}</bdi>" in page
    assert '<dt>Held twice</dt><dd>0 <span class="note">of what was read</span>' in page
    assert page.count('<td data-label="Hosts" class="n">3 + 1 not read</td>') == 1
    figures = prometheus(audit).splitlines()
    assert "nodenet_cni_audit_complete 0" in figures
    assert 'nodenet_cni_host_unread_networks{host="n0003"} 1' in figures
    assert 'nodenet_cni_host_unread_networks{host="n0001"} 0' in figures
    # a network of a node's own has no address twice, whoever is read; of the other one nobody can say so
    assert 'nodenet_cni_duplicate_addresses{network="cbr0"} 0' in figures
    assert not [line for line in figures if line.startswith('nodenet_cni_duplicate_addresses{network="lan"}')]
    assert not [line for line in figures if line.startswith('nodenet_cni_overlapping_ranges{network="lan"}')]
    whole = Fleet(4)
    page = html(Audit(dict(merge(whole.reports, Question(now=NOW)), reports=whole.reports)))
    assert "Every host that was asked has reported, and every network was read." in page
    assert "of what was read" not in page


@pytest.fixture
def audit(tmp_path):
    """Call audit(fleet, day): the history of the audit of a fleet; only of *hosts* if they are named."""

    def run(fleet, day, hosts=None, keep=100):
        now = NOW + int(day * DAY)
        reports = {host: one for host, one in fleet.reports.items() if hosts is None or host in hosts}
        with History(str(tmp_path / "history.sqlite")) as history:
            before = history.before(now)
            merged = merge(reports, Question(before=before, now=now))
            told = history.compare(merged, before)
            history.append(merged, keep)
        return {part: [(one["host"], one["code"]) for one in told[part]] for part in ("new", "gone")}

    return run


def with_faults(*codes_of_faults):
    fleet = Fleet(12)
    for code in codes_of_faults:
        FAULTS[code](fleet)
    return fleet


NOTHING = {"new": [], "gone": []}


def test_findings_about_a_network_that_was_not_read_are_not_gone(audit):
    faults = ("FLEET001", "FLEET009", "FLEET021")  # lan of n0003 and n0007, cbr0 of n0003, plugins of n0003
    fleet = with_faults(*faults)
    own = finding("ipam-empty-file", "/var/lib/cni/networks/lan", count=1, names="x")
    fleet.reports["n0003"]["findings"] = [own]
    audit(fleet, 0)
    fleet = Fleet(12)
    hide(fleet, "n0003", "lan")
    # what lies in the network stays open, what does not is gone
    assert audit(fleet, 1) == {
        "new": [("n0003", "IPAM028")],
        "gone": [(None, "FLEET009"), (None, "FLEET021")],
    }
    fleet = with_faults("FLEET001")
    fleet.reports["n0003"]["findings"] = [own]
    assert audit(fleet, 2) == {"new": [], "gone": [("n0003", "IPAM028")]}
    assert audit(Fleet(12), 3) == {"new": [], "gone": [(None, "FLEET001"), ("n0003", "IPAM011")]}


def test_an_audit_of_some_hosts_closes_nothing_of_the_others(audit):
    fleet = with_faults("FLEET001", "FLEET009")
    fleet.reports["n0007"]["findings"] = [finding("ipam-empty-file", "/d/lan", count=1, names="x")]
    audit(fleet, 0)
    assert audit(fleet, 1, {"n0011"}) == NOTHING
    assert audit(fleet, 2) == NOTHING
    # FLEET001 is of n0007 as well, who was not asked
    assert audit(Fleet(12), 3, {"n0003", "n0004"}) == {"new": [], "gone": [(None, "FLEET009")]}
    assert audit(Fleet(12), 4) == {"new": [], "gone": [(None, "FLEET001"), ("n0007", "IPAM011")]}


def test_a_few_hosts_do_not_tell_that_one_is_as_most_are(audit):
    fleet = with_faults("FLEET021")
    audit(fleet, 0)
    assert audit(fleet, 1, {"n0003"}) == NOTHING  # alone it differs from nobody
    assert audit(fleet, 2) == NOTHING
    assert audit(Fleet(12), 3) == {"new": [], "gone": [(None, "FLEET021")]}


def test_a_host_that_no_audit_on_file_asked_is_forgotten(audit, tmp_path):
    audit(with_faults("FLEET001", "FLEET009"), 0, keep=3)
    others = set(Fleet(12).reports) - {"n0003"}
    for day in (1, 2):
        assert audit(Fleet(12), day, others, keep=3) == NOTHING
    assert audit(Fleet(12), 3, others, keep=3) == NOTHING
    # it is in none of the last three: what it has now is new
    assert audit(with_faults("FLEET009"), 4, keep=3) == {"new": [(None, "FLEET009")], "gone": []}


def test_a_lock_that_is_held_on_a_node(tmp_path):
    """The report of a node itself, not one that is made up."""
    (tmp_path / "net.d").mkdir()
    for name, scope in (("lan", "macvlan"), ("pods", "bridge")):
        ipam = {"type": "host-local", "dataDir": str(tmp_path / "data"), "ranges": [[{"subnet": "192.0.2.0/29"}]]}
        document = {"cniVersion": "1.0.0", "name": name, "plugins": [{"type": scope, "ipam": ipam}]}
        (tmp_path / "net.d" / f"{name}.conflist").write_text(json.dumps(document))
        (tmp_path / "data" / name).mkdir(parents=True)
    lock = tmp_path / "data" / "lan" / "lock"
    lock.touch()
    with open(lock) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        told = report(str(tmp_path / "net.d"), "/nonexistent", lock_timeout=0.1)
    (one,) = told["unread"]
    assert (one["name"], one["path"]) == ("lan", str(tmp_path / "data" / "lan"))
    assert "0.1 s" in one["reason"]
    plan = {"n1": [{"network": "lan", "reservations": [{"owner": "dns", "addresses": ["192.0.2.3"]}]}]}
    merged = merge({"n1": told}, Question(plan=plan))
    assert (merged["complete"], merged["findings"]) == (False, [])
    assert merged["unread"][0]["network"] == "lan"
    told = report(str(tmp_path / "net.d"), "/nonexistent")
    assert told["unread"] == []
    assert codes(merge({"n1": told}, Question(plan=plan))["findings"]) == ["FLEET016"]
