# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Putting the reports of many nodes side by side, on the controller."""

from __future__ import annotations

import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import parse_address
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.rows import label, short_list
from ansible_collections.nodenet.cni.plugins.module_utils.node.findings import SEVERITIES, from_facts
from ansible_collections.nodenet.cni.plugins.module_utils.node.ipam_report import REPORT_VERSION

Json = dict[str, t.Any]

#: Version of the form of what `merge` returns.
FLEET_REPORT_VERSION = 1


def fault_of(report: t.Any) -> str | None:
    """Say why *report* is none that can be merged, None if it can."""
    if not isinstance(report, t.Mapping):
        return "it reported nothing"
    if report.get("failed"):
        return str(report.get("msg") or "its report failed")
    if report.get("unreachable"):
        return "it is unreachable"
    if not isinstance(report.get("networks"), list):
        return "what it reported is no report of host_local_info"
    version = report.get("report_version")
    if version != REPORT_VERSION:
        return f"its report has version {version}, this collection reads version {REPORT_VERSION}"
    return None


def merge(reports: t.Mapping[str, t.Any], scopes: t.Mapping[str, str] | None = None, threshold: float = 0.8) -> Json:
    """Compare the nodes' reports.

    :param reports: for each host that was asked, what host_local_info returned there; None if it returned nothing
    :param scopes: network name -> ``shared`` or ``node``, where the reports do not know or are wrong
    :param threshold: share of reserved addresses from which a range set is listed in ``pools``
    :returns: ``hosts``, ``duplicates``, ``overlaps``, ``pools``, ``findings`` and ``node_findings`` (the nodes' own,
        with ``host``); ``complete`` is false if a host is missing
    """
    faults = {host: fault_of(report) for host, report in reports.items()}
    usable = {host: report for host, report in sorted(reports.items()) if faults[host] is None}
    facts: list[Json] = [
        {"kind": "fleet-host-missing", "where": host, "host": host, "reason": reason}
        for host, reason in sorted(faults.items())
        if reason is not None
    ]
    by_name = _shared_networks(usable, scopes or {})
    duplicates = [one for name, members in by_name.items() for one in _duplicates(name, members)]
    overlaps = [one for name, members in by_name.items() for one in _overlaps(name, members)]
    pools = [one for host, report in usable.items() for one in _pools(host, report, threshold)]
    for one in duplicates:
        holders = short_list(f"{holder['host']} ({label(holder['container_id'])})" for holder in one["holders"])
        facts.append(_fact("fleet-address-twice", one, address=one["address"], holders=holders))
    for one in overlaps:
        first, *others = one["members"]
        facts.append(
            _fact(
                "fleet-ranges-overlap",
                one,
                first=first["range"],
                first_host=first["host"],
                second=short_list(dict.fromkeys(other["range"] for other in others), limit=3),
                second_host=short_list(dict.fromkeys(other["host"] for other in others)),
            )
        )
    for one in pools:
        kind = _POOL_KINDS[one["action"], bool(one["free"])]
        params = {key: one[key] for key in ("host", "reserved", "usable")}
        facts.append(_fact(kind, one, set=one["range_set"], leaked=one["leaked"] or 0, **params))
    return {
        "report_version": FLEET_REPORT_VERSION,
        "complete": not any(faults.values()),
        "hosts": [_host(host, usable.get(host), faults[host]) for host in sorted(reports)],
        "duplicates": duplicates,
        "overlaps": overlaps,
        "pools": pools,
        "findings": from_facts(facts),
        "node_findings": _node_findings(usable),
    }


def unknown_networks(reports: t.Mapping[str, t.Any], names: t.Iterable[str]) -> list[str]:
    """Return those of *names* that are a network in none of the reports."""
    usable = [report for report in reports.values() if fault_of(report) is None]
    known = {network["name"] for report in usable for network in report["networks"]}
    return sorted(set(names) - known)


def _node_findings(reports: t.Mapping[str, Json]) -> list[Json]:
    found = [dict(one, host=host) for host, report in reports.items() for one in report.get("findings", [])]
    return sorted(found, key=lambda one: SEVERITIES.index(one["severity"]))


def _fact(kind: str, one: Json, **params: t.Any) -> Json:
    return dict(params, kind=kind, where=f"network {one['network']}", network=one["network"])


def _host(host: str, report: Json | None, fault: str | None) -> Json:
    networks = report["networks"] if report else []
    severities = [one["severity"] for one in (report or {}).get("findings", [])]
    return {
        "host": host,
        "reported": fault is None,
        "reason": fault,
        "networks": len(networks),
        "reservations": sum(len(one["reservations"]) for one in networks),
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
    }


def _shared_networks(reports: t.Mapping[str, Json], scopes: t.Mapping[str, str]) -> dict[str, list[tuple[str, Json]]]:
    """Return the networks of one segment over the nodes: name -> (host, the network as that host reports it)."""
    found: dict[str, list[tuple[str, Json]]] = {}
    for host, report in reports.items():
        for network in report["networks"]:
            found.setdefault(network["name"], []).append((host, network))
    return {
        name: members
        for name, members in sorted(found.items())
        if scopes.get(name, "shared" if any(one["scope"] == "shared" for _host, one in members) else "node") == "shared"
    }


def _duplicates(name: str, members: list[tuple[str, Json]]) -> t.Iterator[Json]:
    """Find addresses that more than one node holds.

    One owner may hold a static address on many nodes: that is how an address is kept from all of them.
    """
    holders: dict[str, list[tuple[str, Json]]] = {}
    for host, network in members:
        for one in network["reservations"]:
            holders.setdefault(one["address"], []).append((host, one))
    for address in sorted((one for one, found in holders.items() if len(found) > 1), key=parse_address):
        found = holders[address]
        same_owner = all(one["static"] for _host, one in found) and len({one["owner"] for _host, one in found}) == 1
        if len({host for host, _one in found}) > 1 and not same_owner:
            yield {
                "network": name,
                "address": address,
                "hosts": sorted({host for host, _one in found}),
                "holders": [
                    {"host": host, "owner": one["owner"], "container_id": one["container_id"], "ifname": one["ifname"]}
                    for host, one in found
                ],
            }


def _overlaps(name: str, members: list[tuple[str, Json]]) -> t.Iterator[Json]:
    """Find ranges of different nodes that have addresses in common.

    A result holds ranges that all have the same addresses in common, and no range could be added to it: of three
    ranges in a chain, first and last are never put together.
    """
    spans = set()
    for host, network in members:
        for range_set in network["range_sets"]:
            for text in range_set["ranges"]:
                start, _dash, end = text.partition("-")
                spans.add((parse_address(start).key, parse_address(end).key, host, text))
    starts = sorted(spans)
    ends = sorted(starts, key=lambda span: span[1])
    running: dict[tuple[t.Any, ...], None] = {}  # in order of their starts
    position = 0
    grown = False
    for span in ends:
        while position < len(starts) and starts[position][0] <= span[1]:
            running[starts[position]] = None
            position += 1
            grown = True
        if grown:  # else all of these were together before
            hosts = sorted({host for _start, _end, host, _text in running})
            if len(hosts) > 1:
                found = [{"host": host, "range": text} for _start, _end, host, text in running]
                yield {"network": name, "hosts": hosts, "members": found}
        grown = False
        del running[span]


#: What helps, and whether an address is free: the kind of finding.
_POOL_KINDS = {
    ("enlarge", True): "fleet-pool-high",
    ("gc", True): "fleet-pool-leaked",
    ("unknown", True): "fleet-pool-unknown",
    ("enlarge", False): "fleet-pool-full",
    ("gc", False): "fleet-pool-full-leaked",
    ("unknown", False): "fleet-pool-full-unknown",
}


def _pools(host: str, report: Json, threshold: float) -> t.Iterator[Json]:
    for network in report["networks"]:
        for index, one in enumerate(network["range_sets"]):
            taken = one["usable"] - one["free"]
            if taken and taken >= threshold * one["usable"]:
                leaked = one["leaked"]
                yield {
                    "host": host,
                    "network": network["name"],
                    "range_set": index,
                    "usable": one["usable"],
                    "reserved": taken,
                    "leaked": leaked,
                    "free": one["free"],
                    "usage": round(taken / one["usable"], 3),
                    "action": "unknown" if leaked is None else "gc" if leaked else "enlarge",
                }


COLUMNS = ("network", "set", "ranges", "usable", "reserved", "static", "leaked", "free", "use")


def table(report: t.Any) -> str:
    """Return the report of one node as a text table with its findings below."""
    fault = fault_of(report)
    if fault is not None:
        return f"no report: {fault}"
    rows = [COLUMNS]
    for network in report["networks"]:
        for index, one in enumerate(network["range_sets"]):
            use = f"{(one['usable'] - one['free']) * 100 // one['usable']} %" if one["usable"] else "-"
            counts = (one["usable"], one["reserved"], one["static"], one["leaked"], one["free"])
            cells = ["-" if count is None else str(count) for count in counts]
            rows.append((network["name"], str(index), ", ".join(one["ranges"]), *cells, use))
        if not network["range_sets"]:
            held = str(len(network["reservations"]))
            rows.append((network["name"], "-", "ranges not known", "-", held, "-", "-", "-", "-"))
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows]
    lines += [f"{one['code']} {one['severity']} {one['where']}: {one['text']}" for one in report.get("findings", [])]
    return "\n".join(lines)
