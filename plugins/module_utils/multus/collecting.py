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
from . import cache
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
    directory = session.config.cni_dir
    alive = {one[0] for one in listed}
    cached = cache.containers(directory)
    stale = [one for one in cached if one not in alive and _is_old(cache.path_of(directory, one))]
    # a container whose delegates were cached a moment ago is being attached right now
    kept = alive.union(cached).difference(stale)
    faults = _collect_results(session, kept)
    _forget_delegates(session, stale)
    valid = list(listed)
    for entry in session.attached():
        attached = (entry.container_id, entry.ifname)
        if attached not in valid and (entry.container_id in kept or not _is_old(_path(session, entry))):
            valid.append(attached)
    for delegate in delegates:
        try:
            session.runtime.collect(delegate.load(), valid)
        except CniError as error:
            faults.append(f"error in GC command: {error}")
    if faults:
        raise CniError(INTERNAL, "\n".join(faults))


def _collect_results(session: Session, kept: set[str]) -> list[str]:
    """Take down what the cached results of all other containers tell of; return what failed."""
    faults = []
    for entry in session.attached():
        if entry.container_id in kept or not _is_old(_path(session, entry)):
            continue
        try:
            take_down_entry(session, entry, entry.netns)
        except CniError as error:
            faults.append(f"failed to delete stale attachment {entry.container_id} {entry.ifname}: {error}")
    return faults


def _forget_delegates(session: Session, stale: Sequence[str]) -> None:
    """Remove the delegates caches of containers that have nothing attached any more, and no file of somebody else."""
    directory = session.config.cni_dir
    left = {one.container_id for one in session.attached()}
    for container_id in stale:
        if container_id in left:
            continue
        try:
            cache.read(directory, container_id)
        except cache.Unusable as fault:
            session.journal.note(f"Multus: GC leaves container {container_id} alone: {fault}")
            continue
        cache.remove(directory, container_id)


def _path(session: Session, entry: Entry) -> str:
    return session.results.path(entry.network, entry.container_id, entry.ifname)


def _is_old(path: str) -> bool:
    try:
        age = time.time() - posix.stat(path).st_mtime
    except OSError:
        return False
    return age > _GRACE_S
