# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a batch must not do to sticky addresses: free one that a container has. Few directories have holder files."""

from __future__ import annotations

from ..cni.errors import NodenetError
from .conflicts import Conflict, refusal
from .layout import HOLDER_SUFFIX
from .rows import label, short_list
from .snapshot import EMPTY_GRACE, STATIC_PREFIX
from .wanted import Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from .addresses import Address
    from .reservations import Entry
    from .snapshot import Reservation, Snapshot


class InUse(Conflict):
    """A static reservation that would go although a container has its address."""

    def described(self) -> str:
        """Name the present holder for people, and the way out."""
        holder = self.holder
        if holder is None or holder.empty:
            return f"perhaps in use: {self.address}{HOLDER_SUFFIX} is empty and younger than {EMPTY_GRACE:g} s"
        interface = f" interface {holder.ifname}" if holder.ifname else ""
        return f"in use by container {holder.container_id}{interface}; remove that container, or release it first"


def assign_holders(snapshot: Snapshot, entries: Sequence[Entry]) -> None:
    """Give each attachment that is to be released its holder files, exact matches first as a DEL does (spec 3.3)."""
    names = set(snapshot.holders)
    for entry in entries:
        if not entry.wanted.present:
            entry.held += [one for one in snapshot.to_release(*entry.wanted.key) if one.name in names]


def protect(
    snapshot: Snapshot, entries: Sequence[Entry], purged: list[Reservation], place: str, keep_conflicts: bool
) -> list[Conflict]:
    """Find what a batch would free, or give to a second one, although a container has it.

    With *keep_conflicts* its reservation stays, also in *purged*, and the conflicts are returned.

    :raises NodenetError: there is any, without *keep_conflicts*
    """
    leaving = {one.name for entry in entries for one in entry.remove}
    conflicts: list[Conflict] = []
    for entry in entries:
        found = [one for one in (_given_up(snapshot, gone, leaving, entry) for gone in entry.remove) if one]
        found += [one for one in (_taken(snapshot, address, leaving, entry.wanted) for address in entry.add) if one]
        if found and keep_conflicts:
            entry.withdraw()
        conflicts += found
    for gone in list(purged):
        lost = _given_up(snapshot, gone, leaving)
        if lost is not None:
            conflicts.append(lost)
            purged.remove(gone)
    if conflicts and not keep_conflicts:
        raise _refusal(conflicts, place)
    return conflicts


def _given_up(snapshot: Snapshot, gone: Reservation, leaving: set[str], entry: Entry | None = None) -> Conflict | None:
    """Return what stands against taking away an address file; nothing if its holder goes in the same batch."""
    present = snapshot.present_holder(gone.address)
    if present is None or present.name in leaving or not gone.static or not gone.canonical:
        return None
    wanted = entry.wanted if entry else Wanted(gone.container_id, gone.ifname, None, False)
    return InUse(gone.address, wanted, present)


def _taken(snapshot: Snapshot, address: Address, leaving: set[str], wanted: Wanted) -> Conflict | None:
    """Return what stands against a new address file where there is a holder file alone.

    A static one frees nothing and gives nothing to anybody: whoever it is for has to wait for the holder.
    """
    present = snapshot.present_holder(address)
    if present is None or present.name in leaving or str(address) in snapshot.names:
        return None
    if wanted.container_id.startswith(STATIC_PREFIX) or (present.container_id, present.ifname) == wanted.key:
        return None
    return Conflict(address, wanted, present)


def _refusal(conflicts: list[Conflict], place: str) -> NodenetError:
    lost = [one for one in conflicts if isinstance(one, InUse)]
    if not lost:
        return refusal(conflicts, place)
    each = [f"{one.address} of {label(one.wanted.container_id)}" for one in lost]
    if len(lost) == 1:
        text = f"Cannot release {each[0]} in {place}: it is {lost[0].described()}"
    else:
        texts = [f"{name} is {one.described()}" for name, one in zip(each, lost)]
        text = f"Cannot release {len(lost)} addresses in {place}: {short_list(texts, limit=5)}"
    return NodenetError(text, conflicts=[one.document() for one in conflicts])
