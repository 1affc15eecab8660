# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Planning a batch of reservations: what is on disk and what is wanted give what to do.

Pure: the plan depends on nothing but the arguments, so check mode predicts what the real run does, and the same input
gives the same plan. Every step is linear in the number of reservations.
"""

from __future__ import annotations

from ..cni.errors import NodenetError
from .rows import label, set_index, short_list
from .snapshot import STATIC_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from .addresses import Address
    from .conflicts import Conflict
    from .ranges import RangeSet
    from .snapshot import Reservation, Snapshot
    from .wanted import Wanted


class Entry:
    """One element of the batch: what its attachment holds now, and what becomes of it.

    ``respelled`` are those of ``add`` that are held already, under a file name that makes no address taken.
    """

    __slots__ = ("wanted", "listed", "held", "keep", "remove", "add", "respelled", "reclaim", "withdrawn")

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.listed = frozenset(wanted.addresses or ())
        self.held: list[Reservation] = []
        self.keep: list[Reservation] = []
        self.remove: list[Reservation] = []
        self.add: list[Address] = []
        self.respelled: dict[Address, None] = {}
        self.reclaim: list[Reservation] = []
        self.withdrawn = False

    def withdraw(self) -> None:
        """Leave the attachment as it is."""
        self.withdrawn = True
        self.keep, self.remove, self.add, self.respelled, self.reclaim = self.held, [], [], {}, []


class Plan:
    """What a batch does. ``add`` and ``remove`` are the arguments of `transaction.apply`."""

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
    gateways = {gateway for one in sets for gateway in one.gateways}
    purged = _assign_held(snapshot, entries, purge)
    if snapshot.holders:
        from . import inuse

        inuse.assign_holders(snapshot, entries)
    for entry in entries:
        _choose(entry, sets, gateways, place)
    conflicts = inuse.protect(snapshot, entries, purged, place, keep_conflicts) if snapshot.holders else []
    conflicts += _find_conflicts(snapshot, entries, purged, keep_conflicts)
    if conflicts and not keep_conflicts:
        from .conflicts import refusal

        raise refusal(conflicts, place)
    plan = Plan(entries, purged, conflicts)
    asking = [one for one in entries if one.wanted.present and one.wanted.addresses is None and not one.withdrawn]
    if asking:
        from .lowest import take_lowest_free

        take_lowest_free(plan, asking, snapshot, sets, gateways, place)
    plan.facts = _facts(entries, sets, gateways, place)
    return plan


def _assign_held(snapshot: Snapshot, entries: list[Entry], purge: str | None) -> list[Reservation]:
    """Give each entry what it holds; return the unlisted static reservations that *purge* covers."""
    by_key = {entry.wanted.key: entry for entry in entries}
    by_id: dict[str, list[Entry]] = {}
    for entry in entries:
        by_id.setdefault(entry.wanted.container_id, []).append(entry)
    prefix = None if purge is None else STATIC_PREFIX + purge
    purged: list[Reservation] = []
    legacy: list[Reservation] = []
    for one in snapshot.reservations:
        entry_of = by_key.get((one.container_id, one.ifname))
        if entry_of is not None:
            entry_of.held.append(one)
        elif not one.ifname and one.container_id in by_id:
            legacy.append(one)
        elif prefix is not None and one.container_id.startswith(prefix):
            purged.append(one)
    if legacy:
        from .oddfiles import owner_of_legacy

        with_own = {entry.wanted.key for entry in entries if entry.held}
        for one in legacy:
            entry_of = owner_of_legacy(one, by_id[one.container_id], with_own)
            if entry_of is not None:
                entry_of.held.append(one)
    return purged


def _choose(entry: Entry, sets: Sequence[RangeSet], gateways: set[Address], place: str) -> None:
    """Sort what the entry holds into keep and remove, and say which of its listed addresses it lacks."""
    wanted = entry.wanted
    everything = wanted.addresses is None
    for one in entry.held:
        stays = wanted.present if everything else (one.address in entry.listed) == wanted.present
        (entry.keep if stays else entry.remove).append(one)
    if not wanted.present:
        return
    if not all(one.canonical for one in entry.keep):
        from .oddfiles import respell

        respell(entry)
    held = {one.address for one in entry.keep}.union(entry.respelled)
    who = label(wanted.container_id)
    served: dict[int, Address] = {}
    for address in wanted.addresses or ():
        index = set_index(sets, address)
        if address not in held:
            entry.add.append(address)
            if address in gateways:
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
    """Find the wanted addresses that somebody holds who does not give them up in this batch.

    With *keep_conflicts* such an entry is withdrawn, so what it would have given up stays held, which may be the
    conflict of another: each withdrawal is followed up.
    """
    waiting: dict[Address, list[Entry]] = {}
    vacated = {one.name for one in purged}
    for entry in entries:
        for address in entry.add:
            waiting.setdefault(address, []).append(entry)
        # a new name for the same address gives nothing up
        vacated.update(one.name for one in entry.remove if one.address not in entry.respelled)
    holders: dict[Address, list[Reservation]] = {}
    for one in snapshot.reservations if waiting else ():
        if one.address in waiting:
            holders.setdefault(one.address, []).append(one)

    conflicts: list[Conflict] = []
    todo = [entry for entry in entries if entry.add]
    for entry in todo:  # grows while it is walked
        entry.reclaim = []
        own = {one.name for one in entry.remove}
        found: list[Conflict] = []
        for address in entry.add:
            name = str(address)
            blocked = name in snapshot.names and name not in snapshot.files
            blocker: Reservation | None = None
            for one in holders.get(address, ()):
                if snapshot.is_reclaimable(one.name):
                    entry.reclaim.append(one)
                elif one.name not in vacated and one.name not in own:
                    blocker = one
                    break
            if blocked or blocker:
                from .conflicts import Conflict

                found.append(Conflict(address, entry.wanted, blocker, snapshot.unreadable.get(name)))
        if not found:
            continue
        conflicts += found
        if keep_conflicts:
            given_up = entry.remove
            entry.withdraw()
            for one in given_up:
                vacated.discard(one.name)
                # whoever was to get this address has to be judged again
                todo += waiting.get(one.address, ())
    return conflicts


def _facts(entries: list[Entry], sets: Sequence[RangeSet], gateways: set[Address], place: str) -> list[dict[str, Any]]:
    """Report what is kept although it would be refused if it were new."""
    if not sets:
        return []
    kept: dict[Address, None] = {}
    for entry in entries:
        if entry.wanted.present:
            kept.update(dict.fromkeys(one.address for one in entry.keep))
            kept.update(entry.respelled)
    outside = [address for address in kept if set_index(sets, address) is None]
    in_use = [address for address in kept if address in gateways]
    facts = []
    for kind, found in (("ipam-outside-ranges", outside), ("ipam-gateway-reserved", in_use)):
        if found:
            facts.append({"kind": kind, "where": place, "count": len(found), "names": short_list(found)})
    return facts
