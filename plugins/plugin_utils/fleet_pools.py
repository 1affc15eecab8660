# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How full the range sets of all nodes are, what helps, and when they will be full."""

from __future__ import annotations

import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.node.ipam_trend import full_in, growth, is_filling, span
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_reports import Json, told

#: host, network, index of the range set
Place = tuple[str, str, int]


class Before(t.NamedTuple):
    """What the audit before knew of a range set; ``seconds`` is how long ago."""

    ranges: list[str]
    reserved: int
    seconds: float


#: What helps, and whether an address is free: the kind of finding.
_KINDS = {
    ("enlarge", True): "fleet-pool-high",
    ("gc", True): "fleet-pool-leaked",
    ("unknown", True): "fleet-pool-unknown",
    ("enlarge", False): "fleet-pool-full",
    ("gc", False): "fleet-pool-full-leaked",
    ("unknown", False): "fleet-pool-full-unknown",
}


def usage(
    host: str,
    report: t.Mapping[str, t.Any],
    scopes: t.Mapping[str, str],
    threshold: float,
    before: t.Mapping[Place, Before],
) -> t.Iterator[Json]:
    """Yield how full each range set of a host is.

    :param scopes: network name -> ``shared`` or ``node``
    """
    for network in report["networks"]:
        for index, one in enumerate(network["range_sets"]):
            usable, leaked = one["usable"], one["leaked"]
            taken = max(usable - one["free"], 0)
            earlier = before.get((host, network["name"], index))
            rate = None
            if earlier is not None and earlier.ranges == one["ranges"]:
                rate = growth(earlier.reserved, taken, earlier.seconds)
            action = None
            if taken and taken >= threshold * usable:
                action = "unknown" if leaked is None else "gc" if leaked else "enlarge"
            yield {
                "host": host,
                "network": network["name"],
                "scope": scopes[network["name"]],
                "range_set": index,
                "ranges": list(one["ranges"]),
                "gateways": list(one.get("gateways", ())),
                "usable": usable,
                "reserved": taken,
                "static": one["static"],
                "leaked": leaked,
                "free": one["free"],
                "usage": round(taken / usable, 3) if usable else 0.0,
                "action": action,
                "per_day": None if rate is None else round(rate * 86400, 1),
                "full_in_s": full_in(one["free"], rate),
            }


def findings(found: t.Iterable[Json], before: t.Mapping[Place, Before]) -> t.Iterator[Json]:
    """Yield the findings about what `usage` yielded."""
    for one in found:
        host, name, index = one["host"], one["network"], one["range_set"]
        where, subject = f"network {name}", f"range set {index} of {host}"
        numbers = {"reserved": one["reserved"], "usable": one["usable"]}
        common: Json = {"network": name, "host": host, "set": index}
        if one["action"] is not None:
            kind = _KINDS[one["action"], bool(one["free"])]
            yield told(kind, where, [host], subject, leaked=one["leaked"] or 0, **common, **numbers)
        if is_filling(one["usable"], one["free"], one["full_in_s"]):
            params = {"left": span(one["full_in_s"]), "per_day": f"{one['per_day']:g}"}
            yield told("fleet-pool-filling", where, [host], subject, **common, **numbers, **params)
        earlier = before.get((host, name, index))
        if earlier is not None and earlier.ranges != one["ranges"]:
            params = {"before": ", ".join(earlier.ranges), "ranges": ", ".join(one["ranges"])}
            yield told("fleet-range-changed", where, [host], subject, **common, **params)


def totals(found: t.Iterable[Json]) -> Json:
    """Return the sums of what `usage` yielded; ``leaked`` is None if no node was told who is alive."""
    sums: Json = {"pools": 0, "usable": 0, "reserved": 0, "static": 0, "leaked": None, "free": 0}
    for one in found:
        sums["pools"] += 1
        for key in ("usable", "reserved", "static", "free"):
            sums[key] += one[key]
        if one["leaked"] is not None:
            sums["leaked"] = (sums["leaked"] or 0) + one["leaked"]
    return sums


def percent(pool: t.Mapping[str, t.Any]) -> int | None:
    """Return how full a pool is, None where that is not known. 100 is said of full pools only."""
    usable, free = pool["usable"], pool["free"]
    return max(usable - free, 0) * 100 // usable if usable else None
