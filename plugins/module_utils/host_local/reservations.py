# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Planning a batch of reservations: what is on disk and what is wanted give what to do.

Pure: the plan depends on nothing but the arguments, so check mode predicts what the real run does, and the same input
gives the same plan. Every step is linear in the number of reservations.
"""

from __future__ import annotations

from ..cni.errors import NodenetError
from .rows import label, row, set_index, short_list
from .snapshot import EMPTY_GRACE, STATIC_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

    from .addresses import Address
    from .ranges import RangeSet
    from .snapshot import Reservation, Snapshot
    from .wanted import Wanted


class Conflict:
    """An address that somebody else holds. ``holder`` is None when no reservation but another entry blocks it."""

    __slots__ = ("address", "wanted", "holder")

    def __init__(self, address: Address, wanted: Wanted, holder: Reservation | None) -> None:
        self.address = address
        self.wanted = wanted
        self.holder = holder

    def described(self) -> str:
        """Name the holder for people."""
        if self.holder is None:
            return "blocked by an entry of that name which is no reservation"
        if self.holder.empty:
            return f"held by an empty address file younger than {EMPTY_GRACE:g} s, which a plugin may be about to fill"
        parts = [f"id {self.holder.container_id}"]
        if self.holder.ifname:
            parts.append(f"interface {self.holder.ifname}")
        return f"held by {label(self.holder.container_id)} ({', '.join(parts)})"

    def document(self) -> dict[str, str]:
        """Return the conflict as the modules return it."""
        held_by = label(self.holder.container_id) if self.holder else "an entry that is no reservation"
        return {
            "address": str(self.address),
            "wanted_by": label(self.wanted.container_id),
            "held_by": held_by,
        }


class Entry:
    """One element of the batch: what its attachment holds now, and what becomes of it."""

    __slots__ = ("wanted", "held", "keep", "remove", "add", "reclaim")

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.held: list[Reservation] = []
        self.keep: list[Reservation] = []
        self.remove: list[Reservation] = []
        self.add: list[Address] = []
        self.reclaim: list[Reservation] = []

    def withdraw(self) -> None:
        """Leave the attachment as it is."""
        self.keep, self.remove, self.add, self.reclaim = self.held, [], [], []


class Plan:
    """What a batch does. ``add`` and ``remove`` are the arguments of `Store.apply`."""

    __slots__ = ("entries", "purged", "conflicts", "facts")

    def __init__(self, entries: list[Entry], purged: list[Reservation], conflicts: list[Conflict]) -> None:
        self.entries = entries
        self.purged = purged
        self.conflicts = conflicts
        self.facts: list[dict[str, Any]] = []

    @property
    def add(self) -> list[tuple[Address, str, str]]:
        """The reservations to make."""
        return [(address,) + entry.wanted.key for entry in self.entries for address in entry.add]

    @property
    def remove(self) -> list[Reservation]:
        """The reservations to take away."""
        return self.purged + [one for entry in self.entries for one in entry.remove + entry.reclaim]

    @property
    def changed(self) -> bool:
        """True when there is anything to do."""
        return bool(self.purged) or any(entry.add or entry.remove for entry in self.entries)


def make_plan(
    snapshot: Snapshot,
    sets: Sequence[RangeSet],
    batch: Sequence[Wanted],
    place: str,
    purge: str | None = None,
    keep_conflicts: bool = False,
) -> Plan:
    """Decide what to do so that each attachment of *batch* holds what it shall.

    :param sets: the network's range sets; may be empty when *batch* only releases
    :param place: network and directory as messages name them
    :param purge: also release every static reservation whose owner begins with this text and is not listed
    :param keep_conflicts: leave an attachment as it is when an address it wants is held, instead of failing
    :raises NodenetError: for the first rule that the batch breaks
    """
    entries = [Entry(wanted) for wanted in batch]
    purged = _assign_held(snapshot, entries, purge)
    for entry in entries:
        _choose(entry, sets, place)
    conflicts = _find_conflicts(snapshot, entries, purged, keep_conflicts)
    if conflicts and not keep_conflicts:
        _refuse(conflicts, place)
    _take_lowest_free(snapshot, sets, entries, purged, place)
    plan = Plan(entries, purged, conflicts)
    plan.facts = _facts(entries, sets, place)
    return plan


def _assign_held(snapshot: Snapshot, entries: list[Entry], purge: str | None) -> list[Reservation]:
    """Give each entry what it holds; return the unlisted static reservations that *purge* covers.

    A reservation without an interface name belongs to every interface of its container (spec 3.3): the entry that
    lists its address gets it, else the first one of that container.
    """
    by_key = {entry.wanted.key: entry for entry in entries}
    by_id: dict[str, list[Entry]] = {}
    for entry in entries:
        by_id.setdefault(entry.wanted.container_id, []).append(entry)
    prefix = None if purge is None else STATIC_PREFIX + purge
    purged: list[Reservation] = []
    for one in snapshot.reservations:
        entry_of = by_key.get((one.container_id, one.ifname))
        if entry_of is None and not one.ifname and one.container_id in by_id:
            candidates = by_id[one.container_id]
            listed = [entry for entry in candidates if one.address in (entry.wanted.addresses or ())]
            entry_of = (listed or candidates)[0]
        if entry_of is not None:
            entry_of.held.append(one)
        elif prefix is not None and one.container_id.startswith(prefix):
            purged.append(one)
    return purged


def _choose(entry: Entry, sets: Sequence[RangeSet], place: str) -> None:
    """Sort what the entry holds into keep and remove, and say which of its listed addresses it lacks."""
    wanted = entry.wanted
    if not wanted.present:
        entry.remove = [one for one in entry.held if wanted.addresses is None or one.address in wanted.addresses]
        entry.keep = [one for one in entry.held if one not in entry.remove]
        return
    if wanted.addresses is None:
        entry.keep = entry.held
        return
    entry.keep = [one for one in entry.held if one.address in wanted.addresses]
    entry.remove = [one for one in entry.held if one.address not in wanted.addresses]
    held = {one.address for one in entry.keep}
    who = label(wanted.container_id)
    served: dict[int, Address] = {}
    for address in wanted.addresses:
        index = set_index(sets, address)
        if address not in held:
            entry.add.append(address)
            if any(address in one.gateways for one in sets):
                raise NodenetError(f"Cannot reserve {address} for {who} in {place}: it is the gateway")
            if index is None:
                raise NodenetError(
                    f"Cannot reserve {address} for {who} in {place}: it is outside every range ({short_list(sets)})"
                )
        if index is not None and served.setdefault(index, address) != address:
            raise NodenetError(
                f"Cannot reserve {served[index]} and {address} for {who} in {place}: both are of range set {index} "
                f"({sets[index]}), which gives one address"
            )


def _find_conflicts(
    snapshot: Snapshot, entries: list[Entry], purged: list[Reservation], keep_conflicts: bool
) -> list[Conflict]:
    """Find the listed addresses that somebody holds who does not give them up in this batch.

    With *keep_conflicts* such an entry is withdrawn, so what it would have given up stays held, which may be the
    conflict of another: each withdrawal is followed up.
    """
    waiting = {address: entry for entry in entries for address in entry.add}
    holders: dict[Address, list[Reservation]] = {}
    for one in snapshot.reservations if waiting else ():
        if one.address in waiting:
            holders.setdefault(one.address, []).append(one)
    vacated = {one.name for one in purged}
    vacated.update(one.name for entry in entries for one in entry.remove)

    conflicts: list[Conflict] = []
    todo = [entry for entry in entries if entry.add]
    for entry in todo:  # grows while it is walked
        entry.reclaim = []
        found: list[Conflict] = []
        for address in entry.add:
            blockers = holders.get(address, [])
            for one in blockers:
                if snapshot.is_reclaimable(one.name):
                    entry.reclaim.append(one)
                elif one.name not in vacated:
                    found.append(Conflict(address, entry.wanted, one))
                    break
            if not blockers and str(address) in snapshot.names:
                found.append(Conflict(address, entry.wanted, None))
        if not found:
            continue
        conflicts += found
        if keep_conflicts:
            for one in entry.remove:
                vacated.discard(one.name)
                # whoever was to get this address has to be judged again
                if one.address in waiting and waiting[one.address].add:
                    todo.append(waiting[one.address])
            entry.withdraw()
    return conflicts


def _refuse(conflicts: list[Conflict], place: str) -> None:
    first = conflicts[0]
    if len(conflicts) == 1:
        who = label(first.wanted.container_id)
        text = f"Cannot reserve {first.address} for {who} in {place}: it is {first.described()}"
    else:
        each = [f"{one.address} for {label(one.wanted.container_id)} is {one.described()}" for one in conflicts]
        text = f"Cannot reserve {len(conflicts)} addresses in {place}: {short_list(each, limit=5)}"
    raise NodenetError(text, conflicts=[one.document() for one in conflicts])


def _take_lowest_free(
    snapshot: Snapshot,
    sets: Sequence[RangeSet],
    entries: list[Entry],
    purged: list[Reservation],
    place: str,
) -> None:
    """Give each entry without listed addresses the lowest free one of every range set from which it holds none.

    An address that it holds outside all ranges stands for the first set of its family that serves it nothing: after a
    change of ranges the attachment keeps what it has instead of getting a second address.
    """
    asking = [entry for entry in entries if entry.wanted.present and entry.wanted.addresses is None]
    if not asking:
        return
    listed = {address for entry in entries for address in entry.wanted.addresses or () if entry.wanted.present}
    going = {one.name for one in purged}
    going.update(one.name for entry in entries for one in entry.remove)
    freed: dict[Address, Reservation | None] = {}
    staying: set[Address] = set()
    for one in snapshot.reservations:
        if one.name in going:
            freed[one.address] = None
        elif snapshot.is_reclaimable(one.name):
            freed[one.address] = one
        else:
            staying.add(one.address)
    blocked = staying | listed
    cursors = [_ascending(one) for one in sets]
    for entry in asking:
        missing = list(range(len(sets)))
        strangers = []
        for one in entry.keep:
            index = set_index(sets, one.address)
            if index is None:
                strangers.append(one)
            elif index in missing:
                missing.remove(index)
        for one in strangers:
            same_family = [index for index in missing if sets[index].ranges[0].start.bits == one.address.bits]
            missing = [index for index in missing if index not in same_family[:1]]
        for index in missing:
            for address in cursors[index]:
                # other things than reservations may stand in the way: a directory, an unreadable file
                if address not in blocked and (address in freed or str(address) not in snapshot.names):
                    break
            else:
                who = label(entry.wanted.container_id)
                raise NodenetError(
                    f"Cannot reserve an address for {who} in {place}: "
                    f"no IP addresses available in range set: {sets[index]}"
                )
            entry.add.append(address)
            old = freed.get(address)
            if old is not None:
                entry.reclaim.append(old)


def _ascending(one_set: RangeSet) -> Iterator[Address]:
    return type(one_set)(sorted(one_set.ranges, key=lambda one: one.start)).walk()


def _facts(entries: list[Entry], sets: Sequence[RangeSet], place: str) -> list[dict[str, Any]]:
    """Report what is kept although it would be refused if it were new."""
    if not sets:
        return []
    kept = [one.address for entry in entries if entry.wanted.present for one in entry.keep]
    outside = [address for address in kept if set_index(sets, address) is None]
    gateways = [address for address in kept if any(address in one.gateways for one in sets)]
    facts = []
    for kind, found in (("ipam-outside-ranges", outside), ("ipam-gateway-reserved", gateways)):
        if found:
            facts.append({"kind": kind, "where": place, "count": len(found), "names": short_list(found)})
    return facts


def outcome(plan: Plan, sets: Sequence[RangeSet], now: float) -> dict[str, Any]:
    """Return what the plan does and what the listed attachments hold then, in the shape of the modules' results.

    An address that replaces another one of the attachment is in ``moved`` only; ``added`` and ``removed`` have the
    rest. *now* is what ages are counted from.
    """
    after: list[tuple[Address, dict[str, Any]]] = []
    added: list[tuple[Address, dict[str, Any]]] = []
    moved: list[tuple[Address, dict[str, Any]]] = []
    removed = list(plan.purged)
    for entry in plan.entries:
        container_id, ifname = entry.wanted.key
        after += [(one.address, _shown(one, sets, now)) for one in entry.keep]
        gone = list(entry.remove)
        for address in entry.add:
            fresh = row(str(address), container_id, ifname, set_index(sets, address), 0)
            after.append((address, fresh))
            old = _replaced(gone, address, sets)
            if old is None:
                added.append((address, fresh))
                continue
            gone.remove(old)
            move = {"container_id": container_id, "ifname": ifname, "from": str(old.address), "to": str(address)}
            moved.append((address, dict(move, owner=fresh["owner"])))
        removed += gone + entry.reclaim
    return {
        "changed": plan.changed,
        "reservations": _in_order(after),
        "added": _in_order(added),
        "removed": _in_order([(one.address, _shown(one, sets, now)) for one in removed]),
        "moved": _in_order(moved),
        "conflicts": [one.document() for one in plan.conflicts],
    }


def _replaced(gone: list[Reservation], address: Address, sets: Sequence[RangeSet]) -> Reservation | None:
    """Return which of the given-up addresses *address* replaces: one of the same set, else of the same family."""
    same = [one for one in gone if one.address.bits == address.bits]
    index = set_index(sets, address)
    return next((one for one in same if set_index(sets, one.address) == index), same[0] if same else None)


def _in_order(rows: list[tuple[Address, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [one for _address, one in sorted(rows, key=lambda pair: pair[0])]


def _shown(one: Reservation, sets: Sequence[RangeSet], now: float) -> dict[str, Any]:
    age = max(int(now - one.mtime), 0)
    return row(str(one.address), one.container_id, one.ifname, set_index(sets, one.address), age)


def lines(plan: Plan) -> tuple[list[str], list[str]]:
    """Return the reservations that the plan concerns, before and after, one text line each in order of address."""
    before = {(one.address, _text(one.container_id, one.ifname)) for one in plan.remove}
    after = {(address, _text(container_id, ifname)) for address, container_id, ifname in plan.add}
    for entry in plan.entries:
        kept = {(one.address, _text(one.container_id, one.ifname)) for one in entry.keep}
        before |= kept
        after |= kept
    return (
        [f"{address} {holder}" for address, holder in sorted(before)],
        [f"{address} {holder}" for address, holder in sorted(after)],
    )


def _text(container_id: str, ifname: str) -> str:
    return " ".join(part for part in (container_id, ifname) if part) or "(empty)"
