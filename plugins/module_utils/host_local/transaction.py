# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A batch of changes in a network's directory: all of it, or none if there is an error.

What a batch takes away waits beside the directory until all is done, so undoing it is giving it its name again.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from ..cni.errors import IO_FAILURE, go_strerror
from .snapshot import Reservation, owner_key
from .store import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Sequence, Tuple

    from .addresses import Address
    from .newfile import NewFile
    from .snapshot import Snapshot
    from .store import Store

    Addition = Tuple[Address, str, str]
    # (address file, where its predecessor waits): None if it had none, "" if it could not be kept
    Done = List[Tuple[str, Optional[str]]]

_MOST_AT_A_TIME = 256
_OTHER_DESCRIPTORS = 32
# from here on one sync of the whole file system is quicker than one of each file, even if others have written much
_MANY = 32


def apply(store: Store, snapshot: Snapshot, add: Sequence[Addition], remove: Sequence[Reservation]) -> None:
    """Add (address, container id, ifname) and remove reservations; the caller holds the lock.

    Files are written and synced before they get their names. Additions come before removals, and an address that
    changes its owner changes it in one step; so a crash leaves every file whole and no address of the batch free that
    somebody is to have, but of two owners who swap one may hold nothing until the batch is run again.

    Raises StoreError; what had been done is undone then, and what could not be is in ``store.warnings``.
    """
    if not add and not remove:
        return
    leaving = {one.name for one in remove}
    done: Done = []
    try:
        store.beside()  # sweeps what an interrupted batch left
        step = at_a_time()
        for start in range(0, len(add), step):
            _add(store, snapshot, add[start : start + step], leaving, done)
        for name in sorted(leaving):
            done.append((name, _take_away(store, name)))
        store.sync_directory()
    except BaseException as error:
        _undo(store, done, error)
        raise
    for _name, aside in done:
        if aside:
            store.beside().remove(aside)
    now = time.time()
    for one in remove:
        snapshot.discard(one.name)
    for address, container_id, ifname in add:
        snapshot.add(Reservation(address, str(address), owner_key(container_id, ifname), now))


def at_a_time() -> int:
    """Return how many unnamed files may be open at a time."""
    try:
        limit = os.sysconf("SC_OPEN_MAX")
    except (OSError, ValueError):
        limit = _MOST_AT_A_TIME
    return max(1, min(_MOST_AT_A_TIME, (limit - _OTHER_DESCRIPTORS) // 2))


def _add(store: Store, snapshot: Snapshot, add: Sequence[Addition], leaving: set[str], done: Done) -> None:
    files: list[tuple[str, NewFile]] = []
    name = ""
    try:
        for address, container_id, ifname in add:
            name = str(address)
            files.append((name, store.new_file(owner_key(container_id, ifname))))
        sync_files(store, [new for _name, new in files])
        for name, new in files:
            if name in leaving or snapshot.is_reclaimable(name):
                done.append((name, _replace(store, name, new)))
                leaving.discard(name)
            else:
                new.link(name, store.directory)
                done.append((name, None))
    except OSError as error:
        raise StoreError("open", f"{store.path}/{name}", error) from None
    finally:
        for _name, new in files:
            new.close()


def _replace(store: Store, name: str, new: NewFile) -> str:
    """Put *new* in the place of an address file in one step; return where the old one waits."""
    beside = store.beside()
    if not beside.usable:
        os.unlink(name, dir_fd=store.directory)
        new.link(name, store.directory)
        return ""
    aside, staged = beside.new_name(), beside.new_name()
    os.link(name, aside, src_dir_fd=store.directory, dst_dir_fd=beside.parent, follow_symlinks=False)
    try:
        new.link(staged, beside.parent)
        os.rename(staged, name, src_dir_fd=beside.parent, dst_dir_fd=store.directory)
    except BaseException:
        beside.remove(staged)
        beside.remove(aside)
        raise
    return aside


def _take_away(store: Store, name: str) -> str:
    """Take an address file away; return where it waits."""
    beside = store.beside()
    try:
        if not beside.usable:
            os.unlink(name, dir_fd=store.directory)
            return ""
        if not stat.S_ISREG(os.lstat(name, dir_fd=store.directory).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        aside = beside.new_name()
        os.rename(name, aside, src_dir_fd=store.directory, dst_dir_fd=beside.parent)
        return aside
    except OSError as error:
        raise StoreError("remove", f"{store.path}/{name}", error, IO_FAILURE) from None


def _undo(store: Store, done: Done, cause: BaseException) -> None:
    for name, aside in reversed(done):
        try:
            if aside is None:
                os.unlink(name, dir_fd=store.directory)
            elif aside:
                os.rename(aside, name, src_dir_fd=store.beside().parent, dst_dir_fd=store.directory)
            else:
                store.warnings.append(f"{store.path}/{name} is gone: its directory is a mount point of its own")
        except OSError as error:
            store.warnings.append(f"{store.path}/{name} is not as it was: {go_strerror(error)}")
    try:
        store.sync_directory()
    except StoreError as error:
        store.warnings.append(str(error))


def sync_files(store: Store, files: Sequence[NewFile]) -> None:
    """Have the content of new files on disk before they get their names. Raises OSError."""
    if len(files) < _MANY or not _sync_file_system(store.directory):
        for new in files:
            os.fsync(new.fd)


def _sync_file_system(directory: int) -> bool:
    """Sync a batch with one call instead of one for each file; False where that cannot be had."""
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True).syncfs(directory) == 0
    except (ImportError, OSError, AttributeError):
        return False
