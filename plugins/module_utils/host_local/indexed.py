# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A large network directory, read as far as an answer needs it: the cost of a call hardly grows with the directory.

Go plugins, operators and crashes change the directory without telling the index. So

- if the directory's own times show that no name came or went since the index was made, it tells what there is;
- else every file is looked at, one stat each, and those whose change time is not the recorded one are read;
- what is found through the index is read again before it is used;
- a DEL or CHECK that finds nothing has everything read.
"""

from __future__ import annotations

import posix
import time
from _stat import S_ISREG

from . import index
from .addresses import Address
from .layout import HOLDER_SUFFIX
from .snapshot import Snapshot, owner_key
from .store import NAME_CHARS, StoreError, may_be_address_file, read_address_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from .index import Entries, Index, Table
    from .ranges import RangeSet
    from .snapshot import Reservation
    from .store import Store

# the index is made anew when this many files, and this part of all, had to be read though none of them is new
_WORTH_FILES = 64
_WORTH_PART = 8
_EMPTY = index.checksum(b"")


def glance(store: Store, container_id: str, ifname: str) -> bool:
    """Tell whether the index, however old, leads to a file of the attachment. False says nothing."""
    found = index.load(store.directory, store.network, lambda _found: True) or index.empty()
    for key in (owner_key(container_id, ifname), owner_key(container_id, "")):
        for name in found.with_content(key):
            try:
                if read_address_file(name, store.directory)[0] == key:
                    return True
            except OSError:
                continue
    return False


class IndexedSnapshot(Snapshot):
    """A snapshot for questions about one attachment or one address.

    ``names``, ``files`` and ``holders`` hold what was looked at so far; the index speaks for all other names.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(set(), {}, set(), {}, time.time())
        self._store = store
        # names of which the index is wrong, and those of which it need not be asked any more
        self._stale: set[str] = set()
        self._overruled: set[str] = set()
        self._changed: dict[str, posix.stat_result] = {}
        self._solid: dict[int, Table] = {}
        self._touched = False
        self._read_at = time.time_ns()
        directory = posix.fstat(store.directory)
        self._mtime, self._ctime = directory.st_mtime_ns, directory.st_ctime_ns
        found = index.load(store.directory, store.network, lambda one: one.is_valid(self._mtime, self._ctime))
        self._index: Index = found or index.empty()
        self._valid = self._index.is_valid(self._mtime, self._ctime)
        if self._valid:
            for name in self._index.odd:
                self._look_at(name)
        else:
            self._compare()
        self.complete = not len(self._index)

    def _compare(self) -> None:
        """Find out of which names the index is wrong, and look at those and at the ones that it lacks."""
        known = self._index.change_times()
        take = known.pop  # a hot spot: all files of a directory that has changed pass here
        changed = self._changed
        stale = self._stale
        lost = []
        try:
            with posix.scandir(self._store.directory) as entries:
                for entry in entries:
                    name = entry.name
                    recorded = take(name, None)
                    if recorded is None and name.strip(NAME_CHARS) and not may_be_address_file(name):
                        continue
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except OSError:
                        lost.append(name)
                        known[name] = 0
                        continue
                    if recorded != found.st_ctime_ns:
                        changed[name] = found
                        if recorded is not None:
                            stale.add(name)
        except OSError as error:
            raise StoreError("read", self._store.path, error) from None
        stale.update(known)
        self._overruled.update(stale)
        for name, found in changed.items():
            self._look_at(name, found)
        for name in lost:  # gone, or broken: then the names are not all in the index that may be made
            self._look_at(name)
            self._mtime = -1

    def _look_at(self, name: str, found: posix.stat_result | None = None) -> None:
        """Find out what *name* is now, whatever the index says; *found* is its stat, if that is known."""
        directory = self._store.directory
        self._overruled.add(name)
        try:
            if found is None:
                found = posix.stat(name, dir_fd=directory, follow_symlinks=False)
            if S_ISREG(found.st_mode):
                files = self.holders if name.endswith(HOLDER_SUFFIX) else self.files
                files[name] = read_address_file(name, directory)
            self.names.add(name)
        except FileNotFoundError:
            pass
        except OSError as error:
            self.names.add(name)
            self.unreadable[name] = error
        self._forget_indexes()

    def _ask_index(self, name: str) -> tuple[Table, int] | None:
        """Return where the index has *name*, None if it has not or need not be asked."""
        return None if name in self._overruled else self._index.position(name)

    # --- questions ------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        return super().has(name) or self._ask_index(name) is not None

    def is_reclaimable(self, name: str) -> bool:
        found = self._ask_index(name)
        if found is not None and found[0].sum(found[1]) == _EMPTY:
            self._look_at(name)
        return super().is_reclaimable(name)

    def present_holder(self, address: Address) -> Reservation | None:
        name = f"{address}{HOLDER_SUFFIX}"
        if self._ask_index(name) is not None:
            self._look_at(name)
        return super().present_holder(address)

    def _matching(self, *keys: bytes) -> list[Reservation]:
        for key in keys:
            for name in self._index.with_content(key):
                if name not in self._overruled:
                    self._look_at(name)
        return super()._matching(*keys)

    def free(self, range_set: RangeSet, last: Address | None) -> Iterator[Address]:
        for bits, start, end in range_set.spans(last):
            table = self._solid_table(bits)
            number: int | None = table.first_gap(start, end)
            while number is not None:
                address = Address(bits, number)
                if address not in range_set.gateways and not self.is_taken(address):
                    yield address
                number = table.first_gap(number + 1, end)

    def _solid_table(self, bits: int) -> Table:
        """Return the table of the addresses that are taken for sure; others may be, but one has to look."""
        if bits not in self._solid:
            table = self._index.tables[index.kind(bits)]
            new = self._changed.keys() - self._stale  # of those the index knows nothing
            found = (self._index.position(name) for name in self._overruled - new)
            loose = {one[1] for one in found if one is not None and one[0] is table}
            self._solid[bits] = table.without(sorted(loose.union(table.with_sum(_EMPTY))))
        return self._solid[bits]

    # --- changes --------------------------------------------------------------------------------------------------

    def add(self, reservation: Reservation) -> None:
        self._touched = True
        self._overruled.add(reservation.name)
        super().add(reservation)

    def discard(self, name: str) -> None:
        self._touched = True
        self._overruled.add(name)
        super().discard(name)

    def keep(self) -> None:
        """Write the index if that will save more than it costs; under the lock, after all changes.

        It says what the directory was like when it was read; what was changed since is found like any other change.
        """
        settled = self._read_at - index.SETTLED_NS
        old = sum(found.st_ctime_ns <= settled for found in self._changed.values())
        size = len(self._index) - len(self._stale) + len(self._changed)
        quiet = max(self._mtime, self._ctime) <= settled and not self._touched and not self._valid
        worth = size >= _WORTH_FILES and (quiet or old > max(_WORTH_FILES, size // _WORTH_PART))
        # most of it is about files that are gone: a small one is read sooner
        worn = len(self._stale) > max(_WORTH_FILES, size)
        if not worth and not worn:
            return
        entries = self._index.entries(self._stale)
        odd = self._file(entries, settled)
        mtime = self._mtime if all(entry[2] for table in entries for entry in table) else -1
        index.save(self._store.directory, self._store.network, mtime, self._ctime, self._read_at, entries, odd)

    def _file(self, entries: Entries, settled: int) -> list[str]:
        """Put the files that were read where they belong in *entries*; return the names that belong nowhere."""
        odd = []
        for name, found in self._changed.items():
            read = self.files.get(name) or self.holders.get(name)
            place = index.place(name)
            if read is None or place is None:
                odd.append(name)
            else:
                kind, key = place
                changed = found.st_ctime_ns if found.st_ctime_ns <= settled else 0
                entries[kind].append((key, index.checksum(read[0]), changed, name))
        return odd
