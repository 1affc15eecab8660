# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Putting the reports of many nodes side by side, on the controller. docs/audit-schema.md describes what comes out."""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.compact import count
from ansible_collections.nodenet.cni.plugins.module_utils.node.findings import SEVERITIES
from ansible_collections.nodenet.cni.plugins.plugin_utils import (
    fleet_drift,
    fleet_plan,
    fleet_pod_cidrs,
    fleet_pools,
    fleet_shared,
)
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_reports import Json, fault_of, keys_of, told, unread_of

#: Version of the form of what `merge` returns.
FLEET_REPORT_VERSION = 1


class Question(t.NamedTuple):
    """What to compare the reports with, and how.

    ``scopes``: network name -> ``shared`` or ``node``, where the reports do not know or are wrong. ``threshold``: share
    of reserved addresses from which a range set is listed in ``pools``. ``plan``: host -> what the role reservations
    takes for it. ``pod_cidrs``: host -> the pod CIDRs that were assigned to it. ``pod_network``: the network that has
    to hand out their addresses, any one if empty. ``drift``: what to compare, of `fleet_drift.KINDS`. ``before``: what
    the audit before knew of each range set. ``now``: seconds since the epoch.
    """

    scopes: t.Mapping[str, str] = {}
    threshold: float = 0.8
    plan: t.Mapping[str, t.Any] = {}
    pod_cidrs: t.Mapping[str, t.Sequence[str]] = {}
    pod_network: str = ""
    drift: t.Collection[str] = fleet_drift.KINDS
    before: t.Mapping[fleet_pools.Place, fleet_pools.Before] = {}
    now: int = 0


def merge(reports: t.Mapping[str, t.Any], question: Question = Question()) -> Json:  # noqa: B008 - it cannot change
    """Compare the nodes' reports.

    :param reports: for each host that was asked, what host_local_info or node_info returned there; None if it returned
        nothing
    :returns: the merged audit without ``history`` and ``reports``; ``complete`` is false if a host is missing
        or could not read one of its networks
    :raises ValueError: a plan or a pod CIDR that is none, with the name of the host
    """
    faults = {host: fault_of(reports[host]) for host in sorted(reports)}
    usable = {host: reports[host] for host, fault in faults.items() if fault is None}
    members = _by_name(usable, faults)
    usable = {host: report for host, report in usable.items() if faults[host] is None}
    members = {name: [one for one in found if faults[one[0]] is None] for name, found in members.items()}
    networks = [_network(name, found, question.scopes) for name, found in members.items() if found]
    scopes = {one["network"]: one["scope"] for one in networks}
    shared = {name: found for name, found in members.items() if scopes.get(name) == "shared"}
    duplicates = [one for name, found in shared.items() for one in fleet_shared.duplicates(name, found)]
    overlaps = [one for name, found in shared.items() for one in fleet_shared.overlaps(name, found)]
    usage = [
        one
        for host, report in usable.items()
        for one in fleet_pools.usage(host, report, scopes, question.threshold, question.before)
    ]
    unread = [dict(one, host=host) for host, report in usable.items() for one in unread_of(report)]
    hidden: dict[str, set[str | None]] = {}
    for one in unread:
        hidden.setdefault(one["host"], set()).add(one["network"])
    stale = fleet_pod_cidrs.check(question.pod_cidrs, usable, question.pod_network, hidden)
    plan = fleet_plan.check(fleet_plan.Plan(question.plan), usable, scopes, hidden) if question.plan else []
    drift = fleet_drift.drift(usable, question.drift)
    findings = [
        *(_missing(host, fault) for host, fault in faults.items() if fault is not None),
        *fleet_shared.findings(duplicates, overlaps),
        *fleet_pools.findings(usage, question.before),
        *fleet_pod_cidrs.findings(stale),
        *fleet_plan.findings(plan),
        *fleet_drift.findings(drift),
    ]
    node_findings = [dict(one, host=host) for host, report in usable.items() for one in report.get("findings", ())]
    merged = {
        "report_version": FLEET_REPORT_VERSION,
        "taken_at": question.now,
        "complete": not unread and not any(faults.values()),
        "threshold": question.threshold,
        "hosts": [_host(host, usable.get(host), fault) for host, fault in faults.items()],
        "unread": unread,
        "networks": _with_sums(networks, usage, duplicates, overlaps, unread),
        "usage": usage,
        "pools": [one for one in usage if one["action"] is not None],
        "duplicates": duplicates,
        "overlaps": overlaps,
        "pod_cidrs": stale,
        "plan": plan,
        "drift": drift,
        "findings": _gravest_first(findings),
        "node_findings": _gravest_first(node_findings),
        "history": None,
    }
    return dict(merged, summary=_summary(merged))


def unknown_networks(reports: t.Mapping[str, t.Any], names: t.Iterable[str]) -> list[str]:
    """Return those of *names* that are a network in none of the reports."""
    usable = [report for report in reports.values() if fault_of(report) is None]
    known = {network["name"] for report in usable for network in report["networks"]}
    known |= {one["network"] for report in usable for one in unread_of(report)}
    return sorted(set(names) - known)


def _by_name(
    usable: t.Mapping[str, t.Any], faults: dict[str, str | None]
) -> dict[str, list[tuple[str, t.Mapping[str, t.Any]]]]:
    """Return the networks by name, each as (host, the network as that host reports it), sorted by both.

    A host that reports an address that is none gets a fault.
    """
    members: dict[str, list[tuple[str, t.Mapping[str, t.Any]]]] = {}
    for host, report in usable.items():
        try:
            for network in report["networks"]:
                keys_of(network)
        except (OSError, ValueError) as error:
            faults[host] = f"its report is damaged ({type(error).__name__}: {error})"
            continue
        for network in report["networks"]:
            members.setdefault(network["name"], []).append((host, network))
    return dict(sorted(members.items()))


def _network(name: str, members: fleet_plan.Members, scopes: t.Mapping[str, str]) -> Json:
    told_scopes = {network["scope"] for _host, network in members}
    scope_from = "option" if name in scopes else "report" if told_scopes - {None} else "default"
    scope = scopes.get(name, "shared" if "shared" in told_scopes else "node")
    return {"network": name, "scope": scope, "scope_from": scope_from, "hosts": len({host for host, _one in members})}


def _with_sums(
    networks: list[Json], usage: list[Json], duplicates: list[Json], overlaps: list[Json], unread: list[Json]
) -> list[Json]:
    pools: dict[str, list[Json]] = {}
    for one in usage:
        pools.setdefault(one["network"], []).append(one)
    twice = collections.Counter(one["network"] for one in duplicates)
    over = collections.Counter(one["network"] for one in overlaps)
    hidden = collections.Counter(one["network"] for one in unread)
    return [
        dict(
            one,
            **fleet_pools.totals(pools.get(one["network"], ())),
            duplicates=twice[one["network"]],
            overlaps=over[one["network"]],
            unread=hidden[one["network"]],
        )
        for one in networks
    ]


def _missing(host: str, reason: str) -> Json:
    return told("fleet-host-missing", host, [host], "", host=host, reason=reason)


def _gravest_first(found: list[Json]) -> list[Json]:
    return sorted(found, key=lambda one: SEVERITIES.index(one["severity"]))


def _host(host: str, report: t.Mapping[str, t.Any] | None, fault: str | None) -> Json:
    networks = report["networks"] if report else []
    severities = [one["severity"] for one in (report or {}).get("findings", ())]
    return {
        "host": host,
        "reported": fault is None,
        "reason": fault,
        "networks": len(networks),
        "reservations": sum(map(count, networks)),
        "unread": len(unread_of(report)) if report else 0,
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
        "infos": severities.count("info"),
    }


def _summary(merged: Json) -> Json:
    found = [*merged["findings"], *merged["node_findings"]]
    severities = collections.Counter(one["severity"] for one in found)
    reported = sum(one["reported"] for one in merged["hosts"])
    return {
        "hosts": len(merged["hosts"]),
        "reported": reported,
        "missing": len(merged["hosts"]) - reported,
        "unread": len(merged["unread"]),
        "networks": len(merged["networks"]),
        **fleet_pools.totals(merged["usage"]),
        "reservations": sum(one["reservations"] for one in merged["hosts"]),
        "duplicates": len(merged["duplicates"]),
        "overlaps": len(merged["overlaps"]),
        "errors": severities["error"],
        "warnings": severities["warning"],
        "infos": severities["info"],
        "codes": dict(sorted(collections.Counter(one["code"] for one in found).items())),
    }


def failing(merged: t.Mapping[str, t.Any], fail_on: t.Iterable[str]) -> list[str]:
    """Return the codes of the findings that *fail_on* names, each once: by code, or by severity, that or a graver one.

    ``never`` names none.
    """
    wanted = set(fail_on)
    for index, severity in enumerate(SEVERITIES):
        if severity in wanted:
            wanted.update(SEVERITIES[:index])
    found = [*merged["findings"], *merged["node_findings"]]
    return sorted({one["code"] for one in found if one["code"] in wanted or one["severity"] in wanted})


COLUMNS = ("network", "set", "ranges", "usable", "reserved", "static", "leaked", "free", "use")


def table(report: t.Any) -> str:
    """Return the report of one node as a text table with its findings below."""
    fault = fault_of(report)
    if fault is not None:
        return f"no report: {fault}"
    rows = [COLUMNS]
    for network in report["networks"]:
        for index, one in enumerate(network["range_sets"]):
            full = fleet_pools.percent(one)
            use = "-" if full is None else f"{full} %"
            counts = (one["usable"], one["reserved"], one["static"], one["leaked"], one["free"])
            cells = ["-" if count is None else str(count) for count in counts]
            rows.append((network["name"], str(index), ", ".join(one["ranges"]), *cells, use))
        if not network["range_sets"]:
            held = str(count(network))
            rows.append((network["name"], "-", "ranges not known", "-", held, "-", "-", "-", "-"))
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows]
    lines += [f"{one['code']} {one['severity']} {one['where']}: {one['text']}" for one in report.get("findings", [])]
    return "\n".join(lines)
