# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Choosing addresses for those who named none: the lowest free ones, so that the same input gives the same plan."""

from __future__ import annotations

from ..cni.errors import NodenetError
from .rows import label, set_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Sequence

    from .addresses import Address
    from .ranges import RangeSet
    from .reservations import Entry, Plan
    from .snapshot import Reservation, Snapshot


def take_lowest_free(
    plan: Plan,
    asking: Sequence[Entry],
    snapshot: Snapshot,
    sets: Sequence[RangeSet],
    gateways: set[Address],
    place: str,
) -> None:
    """Give each entry that is *asking* the lowest free address of every range set from which it holds none.

    An address that it holds outside all ranges stands for the first set of its family that serves it nothing: after a
    change of ranges the attachment keeps what it has instead of getting a second address.
    """
    going = {one.name for one in plan.remove}
    blocked = set(gateways)
    for entry in plan.entries:
        blocked.update(entry.add)
        if entry.wanted.present:
            blocked |= entry.listed
    reclaimable: dict[Address, list[Reservation]] = {}
    for one in snapshot.reservations:
        if snapshot.is_reclaimable(one.name):
            reclaimable.setdefault(one.address, []).append(one)
        elif one.name not in going:
            blocked.add(one.address)
    # other things than reservations may stand in the way: a directory, an unreadable file
    in_the_way = snapshot.names.difference(snapshot.files)
    in_the_way.update(str(one.address) for one in snapshot.holding if not snapshot.is_reclaimable(one.name))
    cursors = [_ascending(one) for one in sets]
    for entry in asking:
        for index in _missing(entry, sets):
            for address in cursors[index]:
                if address not in blocked and str(address) not in in_the_way:
                    break
            else:
                who = label(entry.wanted.container_id)
                raise NodenetError(
                    f"Cannot reserve an address for {who} in {place}: "
                    f"no IP addresses available in range set: {sets[index]}"
                )
            entry.add.append(address)
            entry.reclaim += reclaimable.get(address, ())


def _missing(entry: Entry, sets: Sequence[RangeSet]) -> list[int]:
    """Return the indexes of the range sets that serve the entry nothing yet."""
    served = set()
    strangers = []
    for address in [*(one.address for one in entry.keep), *entry.respelled]:
        index = set_index(sets, address)
        if index is None:
            strangers.append(address.bits)
        else:
            served.add(index)
    missing = []
    for index, one in enumerate(sets):
        if index in served:
            continue
        if one.ranges[0].start.bits in strangers:
            strangers.remove(one.ranges[0].start.bits)
        else:
            missing.append(index)
    return missing


def _ascending(one_set: RangeSet) -> Iterator[Address]:
    return type(one_set)(sorted(one_set.ranges, key=lambda one: one.start)).walk()
