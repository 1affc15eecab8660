# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every report file of an audit is made of: text that is safe to show, and one row for each pool and address.

What a node reports is untrusted: whoever can write into a data dir chooses ids, interface names and file names.
"""

from __future__ import annotations

import socket
import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.compact import reservations_of
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.rows import row
from ansible_collections.nodenet.cni.plugins.module_utils.node.findings import SEVERITIES
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_reports import MOST, Json, key_of, text_of

#: What an address can be, in the order in which one word wins over the next.
STATES = ("conflict", "static", "leaked", "live", "reserved")
#: What of a pool is counted.
COUNTS = ("usable", "reserved", "static", "leaked", "free")
#: Characters of a text from a node that are shown; an address file may hold kilobytes of anything.
LONGEST = 300
#: Seconds, the most that a node may tell.
FOREVER = 10**10


def visible(value: t.Any) -> str:
    r"""Return a text in which every character is seen; those that are not stand as their codes.

    These are controls, newlines, marks of text direction, spaces of no width, halves of surrogate pairs. So nothing
    that comes out can break a line, turn the text around, hide a part of it or fail to be encoded.
    """
    text = str(value)
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}... ({len(text) - LONGEST} more characters)"
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escape(ord(one)) for one in text)


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class Audit:
    """A merged audit with the reports in it (docs/audit-schema.md), asked for what report files tell.

    :param document: what fleet_audit returns, with ``reports``
    """

    def __init__(self, document: Json) -> None:
        self.document = document
        self.hosts: list[Json] = document["hosts"]
        reported = {one["host"] for one in self.hosts if one["reported"]}
        self.reports: dict[str, Json] = {host: document["reports"][host] for host in sorted(reported)}
        self._scopes = {one["network"]: one["scope"] for one in document["networks"]}
        self._duplicates: dict[tuple[str, str], set[str]] = {}
        for one in document["duplicates"]:
            for host in one["hosts"]:
                self._duplicates.setdefault((host, one["network"]), set()).add(one["address"])
        self._usage: dict[tuple[str, str], list[Json]] = {}
        for one in document["usage"]:
            self._usage.setdefault((one["host"], one["network"]), []).append(one)

    def networks(self) -> t.Iterator[Network]:
        """Return each network of each host, one at a time: the rows of all of them would fill the memory."""
        for host, report in self.reports.items():
            for one in report["networks"]:
                key = host, one["name"]
                held = self._duplicates.get(key, set())
                yield Network(host, one, self._scopes.get(one["name"]), self._usage.get(key, []), held)

    def findings(self) -> list[Json]:
        """Return the findings of the fleet and of its nodes as one list, the gravest first, each with ``hosts``."""
        own = (dict({"hint": "", "go": "", **one}, hosts=[one["host"]]) for one in self.document["node_findings"])
        found = [*self.document["findings"], *own]
        return sorted(found, key=lambda one: SEVERITIES.index(one["severity"]))


class Network:
    """A network of one host: its reservations, each with its state, and its range sets with their counts."""

    def __init__(self, host: str, document: Json, scope: str | None, usage: list[Json], duplicates: set[str]) -> None:
        self.host = host
        self.name = document["name"]
        self.scope = scope
        self.source = document.get("source")
        self.reservations: list[Json] = list(_reservations(document))
        self.conflicts = self._doubles()
        if duplicates:
            self.conflicts |= {one["address"] for one in self.reservations if one["address"] in duplicates}
        self._usage = usage

    def _doubles(self) -> set[str]:
        """Two spellings of one address are two files, and both count as that address."""
        seen: set[str] = set()
        found = set()
        for one in self.reservations:
            if one["address"] in seen:
                found.add(one["address"])
            seen.add(one["address"])
        return found

    def state(self, reservation: Json) -> str:
        """Return the one word of STATES that a reservation is."""
        if self.conflicts and reservation["address"] in self.conflicts:
            return "conflict"
        if reservation["static"]:
            return "static"
        alive = reservation.get("alive")
        return "reserved" if alive is None else "live" if alive else "leaked"

    def pools(self) -> list[Json]:
        """Return a dict for each range set: the keys of ``usage`` and ``conflicts``.

        What lies outside every range, and all of a network whose ranges are not known, is one more row: ``range_set``,
        ``usable`` and ``free`` are None there, ``ranges`` is empty.
        """
        conflicts: dict[int | None, set[str]] = {}
        if self.conflicts:
            for one in self.reservations:
                if one["address"] in self.conflicts:
                    conflicts.setdefault(one["range_set"], set()).add(one["address"])
        found = [
            dict(one, conflicts=len(conflicts.get(one["range_set"], ())), **{key: bounded(one[key]) for key in COUNTS})
            for one in self._usage
        ]
        rest = [one for one in self.reservations if one["range_set"] is None]
        if rest or not found:
            judged = any(one.get("alive") is not None for one in rest)
            outside = dict.fromkeys(("range_set", "usable", "free", "usage", "action", "per_day", "full_in_s"))
            outside.update(
                host=self.host, network=self.name, scope=self.scope, ranges=[], gateways=[], reserved=len(rest)
            )
            outside["static"] = sum(1 for one in rest if one["static"])
            outside["leaked"] = sum(1 for one in rest if one.get("alive") is False) if judged else None
            outside["conflicts"] = len(conflicts.get(None, ()))
            found.append(outside)
        return found


def _reservations(network: Json) -> t.Iterator[Json]:
    """Yield the reservations of a network, each key what it ought to be whatever the node says.

    That addresses, ids and interface names are texts has been looked at when the reports were merged.
    """
    if network.get("rows") is not None:
        for one in reservations_of(network):
            one["address"] = _canonical(one["address"])
            yield one
        return
    for one in reservations_of(network):
        index, age, alive, holder = (one.get(key) for key in ("range_set", "age_s", "alive", "holder"))
        found = row(
            _canonical(one["address"]),
            one["container_id"],
            one["ifname"],
            index if isinstance(index, int) else None,
            min(max(age, 0), FOREVER) if isinstance(age, int) else 0,
        )
        found["alive"] = alive if isinstance(alive, bool) else None
        if isinstance(holder, dict):
            found["holder"] = {key: str(holder.get(key, "")) for key in ("container_id", "ifname")}
        yield found


def _canonical(address: str) -> str:
    """Return an address as duplicates have it, in its one spelling."""
    if ":" not in address:
        return address
    try:
        text = socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, address))
        return text if text == address and "." not in text else text_of(key_of(address))
    except (OSError, ValueError):
        return address


def bounded(value: int | None) -> int | None:
    """Return a count, at most the number of all IPv6 addresses: a node may say anything."""
    return None if value is None else min(max(value, 0), MOST)
