# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GC: what belongs to containers that the runtime no longer knows is taken down, and delegates are told (M12).

As in libcni a cached result says how: it has the interface, CNI_ARGS and runtimeConfig that the ADD had.
"""

from __future__ import annotations

import posix
import time

from ..cni.errors import INTERNAL, CniError
from . import cache, running
from .deleting import take_down_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from ..cni.resultcache import Entry
    from .delegate import Delegate
    from .session import Session

_GRACE_S = 60  # an ADD that runs right now is not in the list yet


def collect(session: Session, delegates: Sequence[Delegate], listed: Sequence[tuple[str, str]]) -> None:
    """Take down the attachments of stale containers, then tell each delegate what is valid.

    *listed* are the runtime's own attachments: (container id, interface). Those of our networks in the same containers
    are valid as well, and what has been made a moment ago. Raises CniError with one line for each failure, after all
    was tried.
    """
    kept = {one[0] for one in listed}
    cached = [one for one in cache.containers(session.config.cni_dir) if one not in kept]
    entries = session.attached()
    faults: list[str] = []
    for container_id in cached:
        own = [one for one in entries if one.container_id == container_id]
        if not _collect_container(session, container_id, own, faults):
            kept.add(container_id)
    without = kept.union(cached)
    _take_down(
        session, [one for one in entries if one.container_id not in without and _is_settled(session, one)], faults
    )
    valid = list(listed)
    for entry in session.attached():
        attached = (entry.container_id, entry.ifname)
        if attached not in valid and (entry.container_id in kept or not _is_settled(session, entry)):
            valid.append(attached)
    for delegate in delegates:
        try:
            session.runtime.collect(delegate.load(), valid)
        except CniError as error:
            faults.append(f"error in GC command: {error}")
    if faults:
        raise CniError(INTERNAL, "\n".join(faults))


def _collect_container(session: Session, container_id: str, entries: Sequence[Entry], faults: list[str]) -> bool:
    """Take down a container that has a delegates cache; tell false if an ADD of it runs or has ended a moment ago."""
    path = cache.path_of(session.config.cni_dir, container_id)
    lock = running.alone(path, 0)
    if lock is None:
        return False
    try:
        # only with the lock: until then another ADD may have written the file anew
        if not _is_old(path) or not all(_is_settled(session, one) for one in entries):
            return False
        _forget(session, container_id, entries, faults)
    finally:
        running.end(lock)
    return True


def _forget(session: Session, container_id: str, entries: Sequence[Entry], faults: list[str]) -> None:
    """Take down what a container has. Its delegates cache goes when all that is done, and no file of somebody else."""
    directory = session.config.cni_dir
    done = _take_down(session, entries, faults)
    try:
        cache.read(directory, container_id)
    except cache.Unusable as fault:
        session.journal.note(f"Multus: GC leaves the delegates cache of {container_id} alone: {fault}")
        return
    if done:
        cache.remove(directory, container_id)


def _take_down(session: Session, entries: Sequence[Entry], faults: list[str]) -> bool:
    """Take down what cached results tell of; tell whether that succeeded for all."""
    before = len(faults)
    for entry in entries:
        try:
            take_down_entry(session, entry, entry.netns)
        except CniError as error:
            faults.append(f"failed to delete stale attachment {entry.container_id} {entry.ifname}: {error}")
    return len(faults) == before


def _is_settled(session: Session, entry: Entry) -> bool:
    return _is_old(session.results.path(entry.network, entry.container_id, entry.ifname))


def _is_old(path: str) -> bool:
    try:
        age = time.time() - posix.stat(path).st_mtime
    except OSError:
        return False
    return age > _GRACE_S
