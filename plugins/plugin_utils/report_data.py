# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the script of an audit's page reads: packed, since a fleet may hold 250,000 reservations.

This is between the two and no interface for others.
"""

from __future__ import annotations

import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import parse_address
from ansible_collections.nodenet.cni.plugins.module_utils.node.findings import SEVERITIES
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_rows import Audit, Json, Network, visible

#: state -> sign in the maps, meaning
SIGNS = {
    "free": ("\u00b7", "free"),
    "live": ("\u25cf", "live: its owner is alive"),
    "reserved": ("?", "reserved: not known whether its owner is alive"),
    "static": ("\u25c6", "static: reserved by an operator"),
    "leaked": ("\u2715", "leaked: its owner is not alive"),
    "conflict": ("!", "conflict: held by two"),
    "gateway": ("G", "gateway: never handed out"),
}
_LETTERS = {"conflict": "C", "static": "S", "leaked": "L", "live": "A", "reserved": "R"}
_HEX = frozenset("0123456789abcdef")


def grouped(findings: t.Iterable[Json]) -> list[Json]:
    """Return *findings* with those that say the same of several hosts as one, and in ``count`` how many it stands for.

    What a thousand hosts have in common is one thing to do.
    """
    found: dict[tuple[str, ...], Json] = {}
    for one in findings:
        key = tuple(one[part] for part in ("severity", "code", "where", "text", "hint"))
        group = found.setdefault(key, dict(one, hosts=[], count=0))
        group["hosts"] += one["hosts"]
        group["count"] += 1
    return [dict(one, hosts=list(dict.fromkeys(one["hosts"]))) for one in found.values()]


def page_data(audit: Audit, findings: list[Json]) -> Json:
    """Return what page.js reads, with the `grouped` *findings* in the order given."""
    hosts = {one["host"]: index for index, one in enumerate(audit.hosts)}
    hints: dict[str, int] = {}
    rows = []
    for one in findings:
        hint = hints.setdefault(visible(one["hint"]), len(hints))
        texts = [visible(one[key]) for key in ("where", "text")]
        known = [hosts[host] for host in one["hosts"] if host in hosts]
        rows.append([SEVERITIES.index(one["severity"]), visible(one["code"]), known, *texts, hint, one["count"]])
    return {
        "hosts": [visible(host) for host in hosts],
        "signs": SIGNS,
        "hints": list(hints),
        "findings": rows,
        "twice": [
            [visible(one["network"]), visible(one["address"]), [hosts[host] for host in one["hosts"] if host in hosts]]
            for one in audit.document["duplicates"]
        ],
        "nets": [_network(one, hosts[one.host]) for one in audit.networks()],
    }


def _network(network: Network, host: int) -> Json:
    """Pack a network: a list for each property of its reservations; steps between IPv4 addresses instead of these."""
    addresses: list[int | str] = []
    interfaces: dict[int, str] = {}
    holders: dict[int, str] = {}
    before = 0
    for index, one in enumerate(network.reservations):
        step, before = _step(one["address"], before)
        addresses.append(step)
        if one["ifname"] != "eth0":
            interfaces[index] = visible(one["ifname"])
        if one.get("holder"):
            holders[index] = _owner(None, one["holder"]["container_id"])
    sets = [one["range_set"] for one in network.reservations]
    packed = {
        "host": host,
        "n": visible(network.name),
        "source": visible(network.source or ""),
        "p": [_pool(one) for one in network.pools()],
        "a": addresses,
        "s": "".join(_LETTERS[network.state(one)] for one in network.reservations),
        "o": [_owner(one["owner"], one["container_id"]) for one in network.reservations],
        "t": [one["age_s"] // 60 for one in network.reservations],
        "i": interfaces,
        "h": holders,
    }
    # mostly all are in one set
    packed.update({"r0": sets[0] if sets else 0} if len(set(sets)) < 2 else {"r": sets})
    return packed


def _step(address: str, before: int) -> tuple[int | str, int]:
    try:
        parsed = parse_address(address)
    except ValueError:
        return visible(address), 0
    if parsed.bits != 32:
        return str(parsed), 0
    return parsed.number - before, parsed.number


def _owner(owner: str | None, container_id: str) -> str:
    """Return the owner as page.js shows it: an id of 64 digits is one that nobody reads to its end."""
    if owner is None and len(container_id) == 64 and _HEX.issuperset(container_id):
        return container_id[:16] + "~"
    return visible(container_id if owner is None else owner)


def _pool(row: Json) -> list[t.Any]:
    keys = ("usable", "reserved", "static", "leaked", "conflicts", "free", "action", "full_in_s")
    return [
        row["range_set"],
        [visible(one) for one in row["ranges"]],
        [visible(one) for one in row["gateways"]],
        *(row[key] for key in keys),
    ]
