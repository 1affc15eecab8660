# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan comes to, in the shape of the modules' results."""

from __future__ import annotations

from .layout import HOLDER_SUFFIX
from .rows import row, set_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Sequence

    from .addresses import Address
    from .ranges import RangeSet
    from .reservations import Plan
    from .snapshot import Reservation


def outcome(plan: Plan, sets: Sequence[RangeSet], now: float) -> dict[str, Any]:
    """Return what the plan does and what the listed attachments hold then, in the shape of the modules' results.

    An address that replaces another one of the attachment, or an odd spelling of itself, is in ``moved`` only;
    ``added`` and ``removed`` have the rest. What goes is named by its file. *now* is what ages are counted from.
    """
    after: list[tuple[Address, dict[str, Any]]] = []
    added: list[tuple[Address, dict[str, Any]]] = []
    moved: list[tuple[Address, dict[str, Any]]] = []
    removed = list(plan.purged)
    for entry in plan.entries:
        container_id, ifname = entry.wanted.key
        after += [(one.address, _shown(one, str(one.address), sets, now)) for one in entry.keep]
        gone = {one.name: one for one in entry.remove}
        staying = {one.address for one in entry.keep}.union(entry.respelled)
        respelled = {one.address: one for one in entry.remove if one.address in entry.respelled}
        for address in entry.add:
            fresh = row(str(address), container_id, ifname, set_index(sets, address), 0)
            after.append((address, fresh))
            old = respelled.get(address)
            if old is None:
                old = _replaced((one for one in gone.values() if one.address not in staying), address, sets)
            if old is None:
                added.append((address, fresh))
                continue
            del gone[old.name]
            move = {"container_id": container_id, "ifname": ifname, "from": old.name, "to": str(address)}
            moved.append((address, dict(move, owner=fresh["owner"])))
        removed += [*gone.values(), *entry.reclaim]
    return {
        "changed": plan.changed,
        "reservations": _in_order(after),
        "added": _in_order(added),
        "removed": _in_order([(one.address, _shown(one, one.name, sets, now)) for one in removed]),
        "moved": _in_order(moved),
        "conflicts": [one.document() for one in plan.conflicts],
    }


def _replaced(gone: Iterable[Reservation], address: Address, sets: Sequence[RangeSet]) -> Reservation | None:
    """Return which of the given-up addresses *address* replaces: one of the same set, else of the same family."""
    same = [one for one in gone if one.address.bits == address.bits]
    index = set_index(sets, address)
    return next((one for one in same if set_index(sets, one.address) == index), same[0] if same else None)


def _in_order(rows: list[tuple[Address, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [one for _address, one in sorted(rows, key=lambda pair: pair[0])]


def _shown(one: Reservation, address: str, sets: Sequence[RangeSet], now: float) -> dict[str, Any]:
    age = max(int(now - one.mtime), 0)
    if address.endswith(HOLDER_SUFFIX):
        address = str(one.address)
    return row(address, one.container_id, one.ifname, set_index(sets, one.address), age)
