# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A batch of changes in a network's directory: all of it, or none if there is an error."""

from __future__ import annotations

import os
import stat
import time

from ..cni.errors import IO_FAILURE
from .snapshot import Reservation, owner_key
from .store import MAX_CONTENT, READ_FLAGS, StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Sequence, Tuple

    from .addresses import Address
    from .newfile import NewFile
    from .snapshot import Snapshot
    from .store import Store

    Addition = Tuple[Address, str, str]
    UndoLog = List[Tuple[str, Optional["_Kept"]]]

# how many unnamed files are open at a time, well below the usual limit of 1,024 descriptors
_AT_A_TIME = 256
# from here on one sync of the whole file system is quicker than one of each file, even if others have written much
_MANY = 32


def apply(store: Store, snapshot: Snapshot, add: Sequence[Addition], remove: Sequence[Reservation]) -> None:
    """Add (address, container id, ifname) and remove reservations; the caller holds the lock.

    All files are written and synced before the first gets its name. Additions come before removals, so that a crash
    leaves nobody without an address; an address that changes its owner is given over in place. Raises StoreError; what
    had been done is undone in reverse, and what could not be is in ``store.warnings``.
    """
    if not add and not remove:
        return
    removed = {one.name for one in remove}
    undo: UndoLog = []
    try:
        for start in range(0, len(add), _AT_A_TIME):
            _add(store, snapshot, add[start : start + _AT_A_TIME], removed, undo)
        for name in sorted(removed):
            undo.append((name, _unlink(store, name)))
        store.sync_directory()
    except BaseException as error:
        _undo(store, undo, error)
        raise
    now = time.time()
    for one in remove:
        snapshot.discard(one.name)
    for address, container_id, ifname in add:
        snapshot.add(Reservation(address, str(address), owner_key(container_id, ifname), now))


class _Kept:
    """A file as it was before it was removed, to the byte."""

    def __init__(self, name: str, directory: int) -> None:
        fd = os.open(name, READ_FLAGS, dir_fd=directory)
        try:
            self.content = os.read(fd, MAX_CONTENT)
            self.found = os.fstat(fd)
        finally:
            os.close(fd)

    def restore_attributes(self, fd: int) -> None:
        os.fchmod(fd, stat.S_IMODE(self.found.st_mode))
        os.fchown(fd, self.found.st_uid, self.found.st_gid)
        os.utime(fd, ns=(self.found.st_atime_ns, self.found.st_mtime_ns))


def _add(store: Store, snapshot: Snapshot, add: Sequence[Addition], removed: set[str], undo: UndoLog) -> None:
    files: list[tuple[str, NewFile]] = []
    name = ""
    try:
        for address, container_id, ifname in add:
            name = str(address)
            files.append((name, store.new_file(owner_key(container_id, ifname))))
        _sync_files(store, [new for _name, new in files])
        for name, new in files:
            if name in removed or snapshot.is_reclaimable(name):
                undo.append((name, _unlink(store, name)))
                removed.discard(name)
            new.link(name)
            undo.append((name, None))
    except OSError as error:
        raise StoreError("open", f"{store.path}/{name}", error) from None
    finally:
        for _name, new in files:
            new.close()


def _unlink(store: Store, name: str) -> _Kept:
    try:
        kept = _Kept(name, store.directory)
        os.unlink(name, dir_fd=store.directory)
    except OSError as error:
        raise StoreError("remove", f"{store.path}/{name}", error, IO_FAILURE) from None
    return kept


def _undo(store: Store, undo: UndoLog, cause: BaseException) -> None:
    for name, kept in reversed(undo):
        try:
            if kept is None:
                os.unlink(name, dir_fd=store.directory)
                continue
            new = store.new_file(kept.content)
            try:
                kept.restore_attributes(new.fd)
                os.fsync(new.fd)
                new.link(name)
            finally:
                new.close()
        except OSError as error:
            store.warnings.append(f"{store.path}/{name} could not be put back after an error ({cause}): {error}")
    try:
        store.sync_directory()
    except StoreError as error:
        store.warnings.append(str(error))


def _sync_files(store: Store, files: Sequence[NewFile]) -> None:
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
