# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Deciding which addresses of a node are free again: what is on disk and the evidence give a fate for each reservation.

Pure: nothing is read or changed here, so check mode shows what the real run does. To free the address of somebody alive
is the worst that this collection could do, so each doubt keeps a reservation, and doubt about the evidence itself ends
the run (DESIGN section 6).
"""

from __future__ import annotations

from ..cni.errors import NodenetError
from ..host_local.idforms import id_form
from ..host_local.rows import short_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Sequence

    from ..host_local.snapshot import Reservation, Snapshot
    from .liveness import Evidence

#: Why a reservation goes.
DEAD, EMPTY = "dead", "empty"
#: Why a reservation stays.
STATIC, ALIVE, YOUNG, UNKNOWN, UNCLEAR, DOUBTFUL, CHANGED, RESTORED = (
    "static",
    "alive",
    "young",
    "unknown_form",
    "unclear",
    "doubtful",
    "changed",
    "restored",
)
# the kernel stamps files by a clock that lags behind, and some file systems keep whole seconds
_STAMP_SLACK = 2.0


class Look:
    """A network's directory at one moment. ``selected`` is false for one that is only looked at as evidence."""

    def __init__(self, network: str, data_dir: str, path: str, snapshot: Snapshot, selected: bool = True) -> None:
        self.network = network
        self.data_dir = data_dir
        self.path = path
        self.snapshot = snapshot
        self.selected = selected


class Fate:
    """What becomes of a reservation, and why; ``by`` are those who say that it is alive."""

    __slots__ = ("look", "reservation", "reason", "by")

    def __init__(self, look: Look, reservation: Reservation, reason: str, by: Sequence[str] = ()) -> None:
        self.look = look
        self.reservation = reservation
        self.reason = reason
        self.by = list(by)

    @property
    def goes(self) -> bool:
        """True if the reservation is to be removed."""
        return self.reason in (DEAD, EMPTY)

    @property
    def identity(self) -> tuple[str, bytes, float]:
        """What must be the same at a second look: name, content and time of the file."""
        return self.reservation.name, self.reservation.content, self.reservation.mtime


def refuse_bad_evidence(evidence: Evidence) -> None:
    """Raise NodenetError if the sources as such cannot be relied on: one failed, or none is authoritative."""
    if evidence.failures:
        reasons = "; ".join(f"{one.name}: {one.failed}" for one in evidence.failures)
        raise NodenetError(
            f"Cannot tell who is alive on this node: {reasons}; repair it, or leave it out (options sources and "
            "containerd, variables reclaim_sources and reclaim_containerd) if it has no containers any more",
            sources=evidence.documents(),
        )
    if not evidence.authoritative:
        raise NodenetError(
            "Cannot tell who is alive on this node: no container runtime was found, and no list was given; name the "
            "attachments that are alive with the option live (variable reclaim_live), or the place of a runtime with "
            "containerd, storage_root or crio_address (variables reclaim_containerd, reclaim_storage_root and "
            "reclaim_crio_address)",
            sources=evidence.documents(),
        )


def decide(
    looks: Sequence[Look],
    evidence: Evidence,
    grace: float,
    force_empty: bool = False,
    restored: Collection[tuple[str, str, bytes]] = (),
) -> list[Fate]:
    """Return the fate of every reservation of the selected networks.

    :param looks: all networks of the node that can be read: those that are not selected still tell whether the
        sources know anybody here
    :param grace: seconds; a reservation that was made later than that before the sources were asked stays
    :param force_empty: believe sources that know none of the reservations
    :param restored: network, file name and content of what somebody brought back, which stays whatever the sources say
    :raises NodenetError: the evidence is not to be relied on, nothing may be freed
    """
    refuse_bad_evidence(evidence)
    cutoff = evidence.started - max(grace, 0.0) - _STAMP_SLACK
    fates = [
        _fate(look, one, evidence, cutoff)
        for look in looks
        for one in [*look.snapshot.reservations, *look.snapshot.holding]
    ]
    _doubt(fates, evidence, cutoff)
    for one in fates:
        if one.goes and (one.look.network, one.reservation.name, one.reservation.content) in restored:
            one.reason = RESTORED
    going = [one for one in fates if one.reason == DEAD and one.look.selected]
    if going and not force_empty:
        _expect_a_match(fates, going, evidence, cutoff)
    return [one for one in fates if one.look.selected]


def _fate(look: Look, one: Reservation, evidence: Evidence, cutoff: float) -> Fate:
    if one.static:
        return Fate(look, one, STATIC)
    strong, weak = evidence.witnesses(one.container_id, one.ifname, str(one.address))
    if strong or weak:
        return Fate(look, one, ALIVE, strong + weak)
    if not one.mtime <= cutoff:  # a time in the future is young as well
        return Fate(look, one, YOUNG)
    if one.empty:
        return Fate(look, one, EMPTY)
    if not one.exact or not one.container_id:
        return Fate(look, one, UNCLEAR)
    if not evidence.can_judge(one.container_id):
        return Fate(look, one, UNKNOWN)
    return Fate(look, one, DEAD)


def _doubt(fates: Sequence[Fate], evidence: Evidence, cutoff: float) -> None:
    """Keep all of a form of id of which somebody is alive whom no authoritative source knows.

    A runtime that nobody asked has such ids, or one that was asked does not tell everything. The young do not count:
    a container has its address before its runtime lists it. Nor does a namespace without processes, which may be left
    of a container that is gone, nor an address that a listed container has in another network.
    """
    authoritative = {one.name for one in evidence.authoritative}
    listed = {one.reservation.address for one in fates if authoritative & set(one.by)}
    unlisted: dict[str, str] = {}
    for one in fates:
        found = one.reservation
        if one.reason == ALIVE and found.container_id and found.mtime <= cutoff and not authoritative & set(one.by):
            address = None if found.address in listed else str(found.address)
            if evidence.runs(found.container_id, found.ifname, address):
                unlisted.setdefault(id_form(found.container_id), found.name)
    for one in fates:
        form = id_form(one.reservation.container_id)
        if one.reason == DEAD and form in unlisted:
            one.reason, one.by = DOUBTFUL, [unlisted[form]]


def _expect_a_match(fates: Sequence[Fate], going: Sequence[Fate], evidence: Evidence, cutoff: float) -> None:
    """Refuse sources that know none of the old reservations: the list may be the wrong one, or empty by a fault.

    After a reboot nobody who was there before is alive, but then a runtime must be up: a list alone does not do.
    """
    authoritative = {one.name for one in evidence.authoritative}
    old = [one for one in fates if one.reservation.mtime <= cutoff and one.reason not in (STATIC, EMPTY)]
    if any(authoritative & set(one.by) for one in old if one.reason == ALIVE):
        return
    if evidence.a_runtime_is_up and all(one.reservation.mtime < evidence.boot for one in old):
        return
    names = short_list(one.reservation.name for one in going)
    raise NodenetError(
        f"Cannot free {len(going)} address(es) on this node ({names}): none of the reservations older than the grace "
        "age is known to any source, so the sources may be wrong; name the right ones, or set force_empty=true if "
        "really nobody is alive (variable reclaim_force_empty)",
        sources=evidence.documents(),
    )


def confirm(first: Sequence[Fate], again: Sequence[Fate]) -> list[Fate]:
    """Return the second look's fates of what was to go at the first, with `CHANGED` for what is not the same file.

    What has gone meanwhile is not among them.
    """
    now = {one.reservation.name: one for one in again}
    confirmed = []
    for one in first:
        found = now.get(one.reservation.name)
        if not one.goes or found is None:
            continue
        if found.goes and found.identity != one.identity:
            found.reason = CHANGED
        confirmed.append(found)
    return confirmed
