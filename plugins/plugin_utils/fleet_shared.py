# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks that are one segment over the nodes: who holds the same address, whose ranges have addresses in common."""

from __future__ import annotations

import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.rows import label, short_list
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_reports import (
    Json,
    chosen,
    keys_of,
    order,
    short,
    span_of,
    text_of,
    told,
)

Members = t.Sequence[tuple[str, t.Mapping[str, t.Any]]]


def duplicates(name: str, members: Members) -> list[Json]:
    """Find addresses that more than one node holds.

    One owner may hold a static address on many nodes: that is how an address is kept from all of them.

    :param members: host and the network as that host reports it
    """
    first: dict[bytes, int] = {}
    several: dict[bytes, set[int]] = {}
    for index, (_host, network) in enumerate(members):
        for key in keys_of(network):
            if first.setdefault(key, index) != index:
                several.setdefault(key, {first[key]}).add(index)
    holders: dict[bytes, list[tuple[str, Json]]] = {key: [] for key in sorted(several, key=order)}
    for index in sorted({one for found in several.values() for one in found}):
        host, network = members[index]
        for key, one in chosen(network, holders):
            holders[key].append((host, one))
    found = ((text_of(key), rows) for key, rows in holders.items() if not _is_no_fault(rows))
    return [_duplicate(name, address, rows) for address, rows in found]


def _is_no_fault(rows: t.Sequence[tuple[str, Json]]) -> bool:
    if len({host for host, _one in rows}) < 2:  # a network that one host has twice
        return True
    return all(one["static"] for _host, one in rows) and len({one["container_id"] for _host, one in rows}) == 1


def _duplicate(name: str, address: str, rows: t.Sequence[tuple[str, Json]]) -> Json:
    holders = [
        {
            "host": host,
            "owner": one["owner"],
            "container_id": one["container_id"],
            "ifname": one["ifname"],
            "alive": one.get("alive"),
        }
        for host, one in rows
    ]
    return {"network": name, "address": address, "hosts": sorted({host for host, _one in rows}), "holders": holders}


def overlaps(name: str, members: Members) -> t.Iterator[Json]:
    """Find ranges of different nodes that have addresses in common.

    A result holds ranges that all have the same addresses in common, and no range could be added to it: of three
    ranges in a chain, first and last are never put together.
    """
    spans = set()
    for host, network in members:
        for range_set in network["range_sets"]:
            for text in range_set["ranges"]:
                start, end = span_of(text)
                spans.add((order(start), order(end), host, text))
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
        if grown and len(running) > 1:  # else all of these were together before
            hosts = sorted({host for _start, _end, host, _text in running})
            if len(hosts) > 1:
                found = [{"host": host, "range": text} for _start, _end, host, text in running]
                yield {"network": name, "hosts": hosts, "members": found}
        grown = False
        del running[span]


def findings(duplicate: t.Iterable[Json], overlapping: t.Iterable[Json]) -> t.Iterator[Json]:
    """Yield the findings about what `duplicates` and `overlaps` returned, causes before what comes of them."""
    for one in overlapping:
        name = one["network"]
        first, *others = one["members"]
        second = short_list(dict.fromkeys(other["range"] for other in others), limit=3)
        params = {
            "first": first["range"],
            "first_host": first["host"],
            "second": second,
            "second_host": short_list(dict.fromkeys(other["host"] for other in others)),
        }
        yield told("fleet-ranges-overlap", f"network {name}", one["hosts"], second, network=name, **params)
    for one in duplicate:
        name = one["network"]
        holders = short_list(f"{holder['host']} ({short(label(holder['container_id']))})" for holder in one["holders"])
        params = {"address": one["address"], "holders": holders}
        yield told("fleet-address-twice", f"network {name}", one["hosts"], one["address"], network=name, **params)
