# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The index of a large network directory: a file that says who held what when the directory was last read.

It lies beside the directory (`.nodenet-<network>~index`), where the Go plugin does not look. Nothing is lost with it,
and it proves nothing by itself: what may be believed of it is for `indexed` to judge. Whatever is odd about the file
means that there is no index. It is not synced, so it counts only until the next boot.

After a line of text with the numbers and with checksums of what follows come tables of addresses, sorted, a key and the
checksum of a content each; then names that must be looked at anew each time. That is all that is read while nothing has
changed. The rest are change times and names of what is in the tables.
"""

from __future__ import annotations

import posix
import sys
import time
from binascii import crc32

from ..cni import paths
from .addresses import Address, parse_address
from .layout import HOLDER_SUFFIX, index_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator, List, Tuple

    # key, checksum of the content, change time in ns (0: too young to be compared), name
    Entry = Tuple[bytes, bytes, int, str]
    Entries = List[List[Entry]]

#: How long before the reading a file or directory must have changed for its times to tell of every later change: some
#: file systems count whole seconds, and the clock that files are stamped by lags behind ours by up to a tick.
SETTLED_NS = 1_100_000_000
_MAGIC = b"nodenet.cni index 2"
# what is in the tables: width of the address in bits, what follows it in the name
_KINDS = ((32, ""), (128, ""), (32, HOLDER_SUFFIX), (128, HOLDER_SUFFIX))
_MOST_ODD_NAMES = 128
_MAX_SKEW_NS = 500_000_000
_LONGEST_HEADER = 512


def checksum(content: bytes) -> bytes:
    """Return what the index keeps of a content. That two contents may share it costs a look at a file."""
    return crc32(content).to_bytes(4, "big")


def place(name: str) -> tuple[int, bytes] | None:
    """Return the table of a file name and its key there; None for what is no address in its canonical spelling."""
    holder = name.endswith(HOLDER_SUFFIX)
    text = name[: -len(HOLDER_SUFFIX)] if holder else name
    try:
        address = parse_address(text)
    except ValueError:
        return None
    if str(address) != text:
        return None
    return kind(address.bits, holder), address.number.to_bytes(address.bits // 8, "big")


def kind(bits: int, holder: bool = False) -> int:
    """Return the number of a table, by the width of its addresses in bits and whether it is of holder files."""
    return (bits == 128) + 2 * holder


class Table:
    """Addresses of one family in ascending order: ``keys`` big-endian and joined, ``sums`` their checksums, joined."""

    def __init__(self, number: int, keys: bytes, sums: bytes) -> None:
        self.number = number
        self.bits, self._suffix = _KINDS[number]
        self.width = self.bits // 8
        self.keys = keys
        self.sums = sums

    def __len__(self) -> int:
        return len(self.keys) // self.width

    def name(self, position: int) -> str:
        """Return the file name at a position."""
        key = self.keys[position * self.width : (position + 1) * self.width]
        return f"{Address(self.bits, int.from_bytes(key, 'big'))}{self._suffix}"

    def find(self, key: bytes) -> int:
        """Return the position of *key*, -1 if it is not there."""
        position = self._position(key)
        start = position * self.width
        return position if self.keys[start : start + self.width] == key else -1

    def _position(self, key: bytes) -> int:
        """Return how many keys are smaller."""
        keys, width = self.keys, self.width
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if keys[middle * width : (middle + 1) * width] < key:
                low = middle + 1
            else:
                high = middle
        return low

    def sum(self, position: int) -> bytes:
        """Return the checksum at a position."""
        return self.sums[position * 4 : position * 4 + 4]

    def with_sum(self, wanted: bytes) -> Iterator[int]:
        """Yield the positions whose checksum is *wanted*."""
        start = self.sums.find(wanted)
        while start >= 0:
            if start % 4 == 0:
                yield start // 4
            start = self.sums.find(wanted, start + 1)

    def without(self, positions: list[int]) -> Table:
        """Return the table with some positions, given in ascending order, left out."""
        if not positions:
            return self
        keys, sums, width = [], [], self.width
        start = 0
        for position in [*positions, len(self)]:
            keys.append(self.keys[start * width : position * width])
            sums.append(self.sums[start * 4 : position * 4])
            start = position + 1
        return Table(self.number, b"".join(keys), b"".join(sums))

    def first_gap(self, start: int, end: int) -> int | None:
        """Return the first number from *start* to *end* that is not in the table."""
        if start > end:  # behind the last address of all there is no key
            return None
        first = self._position(start.to_bytes(self.width, "big"))
        low, high = 0, min(len(self) - first, end - start + 1)
        # the keys from start on are consecutive up to the gap
        while low < high:
            middle = (low + high) // 2
            at = (first + middle) * self.width
            if int.from_bytes(self.keys[at : at + self.width], "big") == start + middle:
                low = middle + 1
            else:
                high = middle
        return start + low if start + low <= end else None


class Index:
    """What an index file says.

    ``mtime`` and ``ctime`` are those of the directory when it was read, ``read_at`` is when that began, all in ns since
    the epoch. ``odd`` are the names that must be looked at anew each time. ``rest``, where it was read: change times
    and names.
    """

    def __init__(
        self, mtime: int, ctime: int, read_at: int, tables: list[Table], odd: list[str], rest: bytes = b""
    ) -> None:
        self.mtime = mtime
        self.ctime = ctime
        self.read_at = read_at
        self.tables = tables
        self.odd = odd
        self.rest = rest

    def __len__(self) -> int:
        return sum(len(table) for table in self.tables)

    def is_valid(self, mtime: int, ctime: int) -> bool:
        """Tell whether the directory, whose times are given, has the same names in it as when it was read.

        Its times must be older than the reading by more than their resolution: what changed in the same tick is lost.
        """
        settled = max(mtime, ctime) <= self.read_at - SETTLED_NS
        return settled and mtime == self.mtime and ctime == self.ctime

    def position(self, name: str) -> tuple[Table, int] | None:
        """Return the table and the position of a file name, None if it is in none of them."""
        found = place(name)
        if found is None:
            return None
        table = self.tables[found[0]]
        position = table.find(found[1])
        return None if position < 0 else (table, position)

    def with_content(self, content: bytes) -> Iterator[str]:
        """Yield the names of the files that may have had this content."""
        wanted = checksum(content)
        for table in self.tables:
            for position in table.with_sum(wanted):
                yield table.name(position)

    def change_times(self) -> dict[str, int]:
        """Return the change time in ns of each file, 0 if it was too young to be compared."""
        names = self._names()
        return dict(zip(names, memoryview(self.rest)[: 8 * len(names)].cast("q")))

    def _names(self) -> list[str]:
        text = self.rest[8 * len(self) :].decode("ascii")
        return text.split("\n") if text else []

    def entries(self, without: set[str]) -> Entries:
        """Return what is in the tables as `save` takes it, but for some names."""
        times = iter(self.change_times().items())
        found: Entries = []
        for table in self.tables:
            width, keys, sums = table.width, table.keys, table.sums
            found.append([])
            for position in range(len(table)):
                name, changed = next(times)
                if name not in without:
                    key = keys[position * width : (position + 1) * width]
                    found[-1].append((key, sums[position * 4 : position * 4 + 4], changed, name))
        return found


def empty() -> Index:
    """Return the index of a directory that nobody has read yet."""
    return Index(0, 0, 0, [Table(number, b"", b"") for number in range(len(_KINDS))], [])


def _start() -> bytes:
    """Return how an index of this boot begins."""
    fd = posix.open("/proc/sys/kernel/random/boot_id", posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return b"%s %s " % (_MAGIC, posix.read(fd, 64).strip())
    finally:
        paths.close(fd)


def load(directory: int, network: str, is_enough: Callable[[Index], bool] = lambda _index: False) -> Index | None:
    """Read the index that lies beside the open *directory*; None if there is none that may be used.

    :param is_enough: whether an index can do without its change times, which are most of it
    """
    flags = posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW | posix.O_NONBLOCK
    try:
        fd = posix.open(f"../{index_name(network)}", flags, dir_fd=directory)
        try:
            found = posix.fstat(fd)
            if found.st_uid != posix.geteuid() or found.st_mode & 0o022:
                return None
            return _read(fd, found.st_size, posix.fstat(directory).st_ino, is_enough)
        finally:
            paths.close(fd)
    except (OSError, ValueError, OverflowError, MemoryError):
        return None


def _read(fd: int, size: int, inode: int, is_enough: Callable[[Index], bool]) -> Index | None:
    start = _start()
    head = posix.read(fd, _LONGEST_HEADER).partition(b"\n")[0]
    at = len(start) + 9
    if not head.startswith(start) or int(head[len(start) : at], 16) != crc32(head[at:]):
        return None
    of, mtime, ctime, read_at, table_sum, rest_sum, odd_size, *lengths = (int(one) for one in head[at:].split(b" "))
    # by way of symlinks two directories may share a place; a clock that was set back since may repeat a time
    if of != inode or read_at > time.time_ns():
        return None
    ends = [len(head) + 1]
    for number, length in enumerate(lengths):
        ends += [ends[-1] + length * _KINDS[number][0] // 8]
        ends += [ends[-1] + length * 4]
    ends.append(ends[-1] + odd_size)
    found = 0
    parts = []
    for one, following in zip(ends, ends[1:]):  # one by one: a copy of half a megabyte costs as much as reading it
        parts.append(posix.pread(fd, following - one, one))
        found = crc32(parts[-1], found)
    if found != table_sum or sum(map(len, parts)) != ends[-1] - ends[0]:
        return None
    tables = [Table(number, *parts[2 * number : 2 * number + 2]) for number in range(len(lengths))]
    odd = parts[-1].decode("ascii")
    index = Index(mtime, ctime, read_at, tables, odd.split("\n") if odd else [])
    if not is_enough(index):
        index.rest = posix.pread(fd, size - ends[-1], ends[-1])
        if crc32(index.rest) != rest_sum:
            return None
    return index


def save(directory: int, network: str, mtime: int, ctime: int, read_at: int, entries: Entries, odd: list[str]) -> bool:
    """Write the index beside the open *directory*, under its lock; tell whether that was possible.

    :param mtime: change times of the directory before it was read, as *ctime*, in ns
    :param read_at: when reading it began, in ns since the epoch
    :param entries: what goes into each table, in any order
    :param odd: names to look at anew each time; with too many of them an index is of no use
    """
    if len(odd) > _MOST_ODD_NAMES:
        return False
    odd_text = "\n".join(odd).encode()
    parts: list[bytes] = []
    times: list[int] = []
    names: list[str] = []
    for table in entries:
        table.sort()
        parts += [b"".join(entry[0] for entry in table), b"".join(entry[1] for entry in table)]
        times += [entry[2] for entry in table]
        names += [entry[3] for entry in table]
    tables = b"".join([*parts, odd_text])
    rest = b"".join([*(one.to_bytes(8, sys.byteorder) for one in times), "\n".join(names).encode()])
    try:
        numbers = [posix.fstat(directory).st_ino, mtime, ctime, read_at, crc32(tables), crc32(rest), len(odd_text)]
        head = " ".join(map(str, [*numbers, *(len(table) for table in entries)])).encode()
        return _write(directory, network, b"%s%08x %s\n%s%s" % (_start(), crc32(head), head, tables, rest))
    except OSError:
        return False


def _write(directory: int, network: str, data: bytes) -> bool:
    parent = posix.open("..", posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC, dir_fd=directory)
    try:
        name = index_name(network)
        # only who holds the lock writes here, so the name is free or left by a crash
        staged = f"{name}.new"
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK
        fd = posix.open(staged, flags, 0o600, dir_fd=parent)
        try:
            complete = posix.write(fd, data) == len(data) and _same_clock(fd, directory)
            if complete:
                posix.rename(staged, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError:
            complete = False
        finally:
            paths.close(fd)
        if not complete:
            posix.unlink(staged, dir_fd=parent)
        return complete
    finally:
        paths.close(parent)


def _same_clock(fd: int, directory: int) -> bool:
    """Tell whether the file system's times are those of our clock; a file server's may not be."""
    found = posix.fstat(fd)
    return found.st_dev == posix.fstat(directory).st_dev and abs(found.st_mtime_ns - time.time_ns()) < _MAX_SKEW_NS
