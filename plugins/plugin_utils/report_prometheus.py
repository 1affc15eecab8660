# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Figures of an audit in the text format of Prometheus, for the textfile collector of the node exporter."""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.node.findings import SEVERITIES
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_rows import Audit, visible

#: name without prefix -> what it tells. The guide of audits has the same list for people.
METRICS = {
    "audit_timestamp_seconds": "When the audit was made, in seconds since 1970.",
    "audit_complete": "Whether every host that was asked has reported, and every network was read.",
    "host_reported": "Whether the host has reported.",
    "host_unread_networks": "Networks of the host that could not be read.",
    "host_findings": "Findings about a host by severity.",
    "findings": "Findings of the fleet and of its hosts by code.",
    "duplicate_addresses": "Addresses of a shared network that several hosts hold; missing if none and incomplete.",
    "overlapping_ranges": "Groups of overlapping ranges of different hosts; missing if none and incomplete.",
    "pool_usable_addresses": "Addresses of a range set that can be handed out in all.",
    "pool_reserved_addresses": "Reservations in a range set.",
    "pool_static_addresses": "Reservations in a range set that an operator made.",
    "pool_leaked_addresses": "Reservations in a range set whose owner is not alive; missing where that is not known.",
    "pool_conflicting_addresses": "Reserved addresses of a range set that somebody else holds too.",
    "pool_free_addresses": "Addresses of a range set that are left.",
    "pool_full_in_seconds": "Time until a range set is full at the present rate; missing where it does not grow.",
}
PREFIX = "nodenet_cni_"


def label_value(value: t.Any) -> str:
    """Return a label's value, escaped as the format wants it, with nothing in it that is not seen."""
    return visible(value).replace("\\", "\\\\").replace('"', '\\"')


class _Samples:
    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {name: [] for name in METRICS}

    def add(self, metric: str, value: int | None, **labels: t.Any) -> None:
        if value is None:
            return
        text = ",".join(f'{name}="{label_value(labels[name])}"' for name in labels)
        self._lines[metric].append(f"{PREFIX}{metric}{{{text}}} {value}" if text else f"{PREFIX}{metric} {value}")

    def text(self) -> str:
        parts = []
        for name, lines in self._lines.items():
            if lines:
                # two hosts whose names only differ in what is not seen would be one series twice, which is refused
                known = {line.rpartition(" ")[0]: line for line in lines}
                head = [f"# HELP {PREFIX}{name} {METRICS[name]}", f"# TYPE {PREFIX}{name} gauge"]
                parts += [*head, *known.values()]
        return "\n".join(parts) + "\n"


def prometheus(audit: Audit) -> str:
    """Return the figures."""
    document = audit.document
    samples = _Samples()
    samples.add("audit_timestamp_seconds", document["taken_at"])
    samples.add("audit_complete", int(document["complete"]))
    found = audit.findings()
    by_host = collections.Counter((host, one["severity"]) for one in found for host in one["hosts"])
    for one in audit.hosts:
        host = one["host"]
        samples.add("host_reported", int(host in audit.reports), host=host)
        samples.add("host_unread_networks", one["unread"] if one["reported"] else None, host=host)
        for severity in SEVERITIES:
            samples.add("host_findings", by_host[host, severity], host=host, severity=severity)
    by_code = collections.Counter((one["code"], one["severity"]) for one in found)
    for (code, severity), count in sorted(by_code.items()):
        samples.add("findings", count, code=code, severity=severity)
    # a network without any is told as 0, so that an alert on it ends; that is said only where all of it is known
    missing = document["summary"]["missing"] or any(one["network"] is None for one in document["unread"])
    for one in document["networks"]:
        known = one["scope"] == "node" or not (missing or one["unread"])
        for metric, key in (("duplicate_addresses", "duplicates"), ("overlapping_ranges", "overlaps")):
            samples.add(metric, one[key] if one[key] or known else None, network=one["network"])
    for row in (row for network in audit.networks() for row in network.pools()):
        if row["range_set"] is not None:
            labels = {"host": row["host"], "network": row["network"], "range_set": row["range_set"]}
            for key in ("usable", "reserved", "static", "leaked", "free"):
                samples.add(f"pool_{key}_addresses", row[key], **labels)
            samples.add("pool_conflicting_addresses", row["conflicts"], **labels)
            samples.add("pool_full_in_seconds", row["full_in_s"], **labels)
    return samples.text()
