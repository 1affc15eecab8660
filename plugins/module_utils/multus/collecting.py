# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GC: what belongs to containers that the runtime no longer knows is taken down, and delegates are told (M12)."""

from __future__ import annotations

import posix
import time

from ..cni.errors import INTERNAL, CniError
from . import cache
from .deleting import take_down, take_down_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from .delegate import Delegate
    from .session import Session

_GRACE_S = 60  # an ADD that runs right now is not in the list yet


def collect(session: Session, delegates: Sequence[Delegate], listed: Sequence[tuple[str, str]]) -> None:
    """Take down stale containers by their delegates cache, then tell each delegate what is valid.

    *listed* are the runtime's own attachments: (container id, interface). Those of our networks in the same containers
    are valid as well, and what has been made a moment ago. Raises CniError with one line for each failure, after all
    was tried.
    """
    faults = _collect_stale(session, {one[0] for one in listed})
    # a container that still has its delegates cached is being attached right now, or could not be taken down
    kept = {one[0] for one in listed}.union(cache.containers(session.config.cni_dir))
    faults += _collect_orphans(session, kept)
    valid = list(listed)
    for entry in session.results.entries():
        attached = (entry.container_id, entry.ifname)
        path = session.results.path(entry.network, *attached)
        if attached not in valid and (entry.container_id in kept or not _is_old(path)):
            valid.append(attached)
    for delegate in delegates:
        try:
            session.runtime.collect(delegate.load(), valid)
        except CniError as error:
            faults.append(f"error in GC command: {error}")
    if faults:
        raise CniError(INTERNAL, "\n".join(faults))


def _collect_stale(session: Session, alive: set[str]) -> list[str]:
    faults = []
    directory, call = session.config.cni_dir, session.call
    for container_id in cache.containers(directory):
        if container_id in alive or not _is_old(cache.path_of(directory, container_id)):
            continue
        try:
            delegates = cache.read(directory, container_id)
        except cache.Unusable as fault:
            session.journal.note(f"Multus: GC leaves container {container_id} alone: {fault}")
            continue
        entries = [one for one in session.results.entries() if one.container_id == container_id]
        if delegates is None or not entries:
            continue
        master = next((one for one in entries if one.network == delegates[0].network), entries[0])
        call.container_id, call.ifname, call.netns = container_id, master.ifname, master.netns
        session.pod.pairs = []
        failed = take_down(session, delegates)
        faults += [f"failed to delete stale container {container_id}: {one}" for one in failed]
        if not failed:
            cache.remove(directory, container_id)
    return faults


def _collect_orphans(session: Session, kept: set[str]) -> list[str]:
    """Take down by its cached result what has no delegates cached any more: a DEL that had failed, and was given up."""
    faults = []
    for entry in session.results.entries():
        path = session.results.path(entry.network, entry.container_id, entry.ifname)
        if entry.container_id in kept or not _is_old(path):
            continue
        try:
            take_down_entry(session, entry, entry.netns)
        except CniError as error:
            faults.append(f"failed to delete stale attachment {entry.container_id} {entry.ifname}: {error}")
    return faults


def _is_old(path: str) -> bool:
    try:
        age = time.time() - posix.stat(path).st_mtime
    except OSError:
        return False
    return age > _GRACE_S
