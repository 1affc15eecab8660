# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel says of a directory: which name appeared how, and which was written to while it had that name."""

from __future__ import annotations

import ctypes
import os
import struct

MODIFY, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x8, 0x40, 0x80, 0x100, 0x200
_ALL = MODIFY | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE
_OVERFLOW = 0x4000
_LIBC = ctypes.CDLL(None, use_errno=True)


class Watch:
    """Watches a directory from now on; ``events()`` returns (name, mask) of all that happened since."""

    def __init__(self, path: str) -> None:
        self._fd = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0 or _LIBC.inotify_add_watch(self._fd, os.fsencode(path), _ALL) < 0:
            raise OSError(ctypes.get_errno(), "inotify", path)

    def events(self) -> list[tuple[str, int]]:
        found = []
        while True:
            try:
                data = os.read(self._fd, 1 << 20)
            except BlockingIOError:
                return found
            place = 0
            while place < len(data):
                _watch, mask, _cookie, length = struct.unpack_from("iIII", data, place)
                name = data[place + 16 : place + 16 + length].rstrip(b"\0")
                place += 16 + length
                assert not mask & _OVERFLOW, "more happened than the kernel keeps"
                found.append((os.fsdecode(name), mask))

    def close(self) -> None:
        os.close(self._fd)
