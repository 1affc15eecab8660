# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GC: what belongs to containers that the runtime no longer knows is taken down, and delegates are told (M12).

As in libcni a cached result says how: it has the interface, CNI_ARGS and runtimeConfig that the ADD had. What an ADD
left that was killed in the midst has no such result, and is in the delegates cache only.
"""

from __future__ import annotations

import posix
import time

from ..cni.errors import INTERNAL, CniError
from ..cni.invoke import Attachment
from . import cache, running
from .attachments import capability_args, interface_names
from .deleting import complete, take_down_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from ..cni.resultcache import Entry
    from .delegate import Delegate
    from .session import Session

_GRACE_S = 60  # an ADD that runs right now is not in the list yet
_UNKNOWN_S = 86400  # what nobody can take down is kept no longer
_OF_ONE_NETWORK = ("IP", "MAC")  # CNI_ARGS that tell what a network was asked for


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
    known = kept.union(cached)
    rest = [one for one in entries if one.container_id not in known and _is_settled(session, one)]
    if rest and session.shares_results():
        # of a network that another runtime attaches without us, whose containers are in no list that we get
        kept.update(one.container_id for one in rest)
        session.journal.note(
            f"Multus: GC leaves what the runtime may have attached by itself to {rest[0].container_id}"
            + (f" and {len(rest) - 1} more alone" if rest[1:] else " alone")
            + ": there is no delegates cache of it"
        )
    else:
        _take_down(session, rest, faults)
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
    leaves = f"Multus: GC leaves the delegates cache of {container_id} alone: "
    try:
        delegates = cache.read(directory, container_id) or []
    except cache.Unusable as fault:
        session.journal.note(leaves + str(fault))
        return
    lost, unknown = _without_result(delegates, entries)
    for delegate, interface in lost:
        try:
            _take_down_lost(session, delegate, container_id, interface, entries)
        except CniError as error:
            faults.append(f"failed to delete stale attachment {container_id} {interface}: {error}")
            done = False
    if not done:
        return
    if unknown:
        text = f"nothing tells which interface network {delegates[0].name} had, if it was attached at all"
        if not _is_old(cache.path_of(directory, container_id), _UNKNOWN_S):
            session.journal.note(leaves + text)
            return
        session.journal.note(f"Multus: GC removes the delegates cache of {container_id}: {text}")
    cache.remove(directory, container_id)


def _without_result(delegates: Sequence[Delegate], entries: Sequence[Entry]) -> tuple[list[tuple[Delegate, str]], bool]:
    """Return the networks that have no cached result, each with its interface.

    An ADD that was killed has attached them or not. The second value tells that the first network is one of them, and
    that nothing says how its interface is called.
    """
    names = interface_names(delegates, "")
    attached = {(one.network, one.ifname) for one in entries}
    pairs = [(delegate, name) for delegate, name in zip(delegates, names) if name]
    lost = [(delegate, name) for delegate, name in pairs if (delegate.network, name) not in attached]
    others = {(delegate.network, name) for delegate, name in pairs}
    master = delegates[0].network
    unknown = not names[0] and not any(one[0] == master for one in attached.difference(others))
    return lost, unknown


def _take_down_lost(
    session: Session, delegate: Delegate, container_id: str, interface: str, entries: Sequence[Entry]
) -> None:
    """Call DEL for a network by the delegates cache alone; what the pod is follows from its other attachments."""
    complete(session, delegate)
    arguments = capability_args(session.config, delegate, container_id, interface)
    attached = Attachment(container_id, "", interface, (), arguments)
    if entries:
        attached.netns = _namespace(entries[0])
        attached.args = [pair for pair in entries[0].args if pair[0] not in _OF_ONE_NETWORK]
    session.runtime.delete(delegate.load(), attached)
    if delegate.device_id:
        from . import deviceinfo

        deviceinfo.remove(delegate, container_id, interface)


def _take_down(session: Session, entries: Sequence[Entry], faults: list[str]) -> bool:
    """Take down what cached results tell of; tell whether that succeeded for all."""
    before = len(faults)
    for entry in entries:
        try:
            take_down_entry(session, entry, _namespace(entry))
        except CniError as error:
            faults.append(f"failed to delete stale attachment {entry.container_id} {entry.ifname}: {error}")
    return len(faults) == before


def _namespace(entry: Entry) -> str:
    """Return the namespace of an attachment, "" if that may be another's by now.

    The number of a process that has gone is given out again, and a plugin would delete the interface of the host.
    """
    path = entry.netns
    if path.lstrip("/").startswith("proc/"):
        return ""
    try:
        given, own = posix.lstat(path), posix.stat("/proc/self/ns/net")
    except (OSError, ValueError):
        return ""
    return path if given.st_dev == own.st_dev and given.st_ino != own.st_ino else ""


def _is_settled(session: Session, entry: Entry) -> bool:
    return _is_old(session.results.path(entry.network, entry.container_id, entry.ifname))


def _is_old(path: str, limit_s: float = _GRACE_S) -> bool:
    try:
        age = time.time() - posix.stat(path).st_mtime
    except OSError:
        return False
    return age > limit_s
