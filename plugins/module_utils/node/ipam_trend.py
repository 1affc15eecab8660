# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What two reports of one network say together: how fast its pools fill, and whether its ranges changed."""

from __future__ import annotations

from ..cni.errors import NodenetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Sequence

#: A pool that will be full sooner than this many seconds from now is worth a finding, if half of it is taken.
HORIZON = 7 * 86400
SHARE = 0.5
#: Reports that lie closer together than this many seconds say nothing of a trend: a rollout is no growth.
SHORTEST = 600


def growth(before: int, now: int, seconds: float) -> float | None:
    """Return by how many addresses a second a pool grew, None if the time between is too short to tell."""
    return (now - before) / seconds if seconds >= SHORTEST else None


def full_in(free: int, rate: float | None) -> int | None:
    """Return in how many seconds a pool is full, None if it does not grow. *rate* in addresses a second."""
    return int(free / rate) if rate is not None and rate > 0 else None


def is_filling(usable: int, free: int, seconds: int | None) -> bool:
    """Tell whether a pool that is full in *seconds* is worth a finding; one that is full already has its own."""
    return seconds is not None and free > 0 and seconds <= HORIZON and usable - free >= SHARE * usable


def span(seconds: float) -> str:
    """Return a time as people say it: ``40 minutes``, ``3.5 hours``, ``2 days``."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}" if seconds >= 10 * size else f"{seconds / size:.2g} {unit}"
    return f"{seconds:.0f} seconds"


def compare(
    previous: Mapping[str, Any], documents: Sequence[Mapping[str, Any]], now: float, wheres: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the facts that an earlier report of the node adds to one.

    :param previous: what host_local_info, or node_info with audit, returned earlier
    :param documents: the networks of the report made at *now* (seconds since the epoch)
    :param wheres: network name -> what the facts are about
    :raises NodenetError: *previous* is no such report
    """
    try:
        taken, earlier = int(previous["taken_at"]), {one["name"]: one["range_sets"] for one in previous["networks"]}
        return [
            fact
            for network in documents
            for index, (old, new) in enumerate(zip(earlier.get(network["name"], ()), network["range_sets"]))
            for fact in _compare_sets(index, old, new, now - taken, wheres[network["name"]])
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise NodenetError("Cannot compare with the option previous: that is no report of this node") from None


def _compare_sets(
    index: int, old: Mapping[str, Any], new: Mapping[str, Any], seconds: float, where: str
) -> Iterable[dict[str, Any]]:
    if old["ranges"] != new["ranges"]:
        was, now = ", ".join(old["ranges"]), ", ".join(new["ranges"])
        yield {"kind": "ipam-range-changed", "where": where, "set": index, "before": was, "ranges": now}
        return
    usable, free = int(new["usable"]), int(new["free"])
    more = int(old["free"]) - free
    left = full_in(free, growth(0, more, seconds))
    if is_filling(usable, free, left):
        params = {"set": index, "reserved": usable - free, "usable": usable, "more": more}
        yield dict(params, kind="ipam-pool-filling", where=where, since=span(seconds), left=span(left or 0))
