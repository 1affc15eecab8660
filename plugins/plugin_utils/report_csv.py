# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of an audit as CSV, for spreadsheets and for address management systems."""

from __future__ import annotations

import csv
import re
import typing as t

from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_pools import percent
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_rows import Audit, Json, visible

FINDINGS = ("severity", "code", "hosts", "where", "text", "hint", "go")
POOLS = (
    *("host", "network", "scope", "range_set", "ranges", "usable", "reserved", "static", "leaked", "conflicts"),
    *("free", "use_percent", "action", "per_day", "full_in_s"),
)
ADDRESSES = (
    *("host", "network", "range_set", "address", "state", "owner", "container_id", "ifname", "age_s"),
    "holder_container_id",
)
# What makes a spreadsheet take a cell for a formula, in ASCII and in the full width that some of them fold. Where lists
# are written with semicolons, spreadsheets begin a new cell after one, quotes or not.
_FORMULA = re.compile("(^|;)([\\s'\"]*)(?=[=+\\-@\uff1d\uff0b\uff0d\uff20])")


def cell(value: t.Any) -> str:
    """Return a value as the text of a cell: never a formula, never more than one line."""
    if value is None:
        return ""
    if isinstance(value, (int, float)):
        return str(value)
    text = visible(value)
    if text[:1].isalnum() and ";" not in text:
        return text
    return _FORMULA.sub(r"\1'\2", text) if text else ""


class _Lines:
    """Hands a line back instead of writing it: the table of a large fleet need not be in memory at once."""

    def write(self, line: str) -> str:
        return line


def _table(columns: t.Sequence[str], rows: t.Iterable[Json]) -> t.Iterator[str]:
    writer: t.Any = csv.writer(_Lines(), lineterminator="\n")
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([cell(row[column]) for column in columns])


def findings_csv(audit: Audit) -> t.Iterator[str]:
    """Return the lines with the findings of the fleet and of all nodes, the gravest first."""
    return _table(FINDINGS, (dict(one, hosts=" ".join(one["hosts"])) for one in audit.findings()))


def pools_csv(audit: Audit) -> t.Iterator[str]:
    """Return one line for each range set of each host."""
    rows = (row for network in audit.networks() for row in network.pools())
    return _table(POOLS, (dict(one, ranges=" ".join(one["ranges"]), use_percent=percent(one)) for one in rows))


def addresses_csv(audit: Audit) -> t.Iterator[str]:
    """Return one line for each reservation of each host."""
    return _table(ADDRESSES, _addresses(audit))


def _addresses(audit: Audit) -> t.Iterator[Json]:
    for network in audit.networks():
        for one in network.reservations:
            holder = (one.get("holder") or {}).get("container_id")
            more = {"state": network.state(one), "holder_container_id": holder}
            yield dict(one, host=network.host, network=network.name, **more)
