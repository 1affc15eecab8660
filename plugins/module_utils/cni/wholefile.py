# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading a file whole, and writing one whole or not at all, for code that an executable loads."""

from __future__ import annotations

import posix

from . import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

_READ = posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK  # a named pipe is no reason to wait
_CHUNK = 1 << 16
_FLAGS = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC


def read(path: str, most: int = 1 << 24) -> bytes:
    """Return the content of a file, no more than *most* bytes of it. Raises OSError, or ValueError for no path."""
    fd = posix.open(path, _READ)
    try:
        pieces: list[bytes] = []
        while most > 0:
            piece = posix.read(fd, min(most, _CHUNK))
            if not piece:
                break
            pieces.append(piece)
            most -= len(piece)
        return b"".join(pieces)
    finally:
        paths.close(fd)


def write(
    path: str, data: bytes, unfinished: str, sync: bool = False, prepare: Callable[[str], object] | None = None
) -> None:
    """Put a file of mode 0600 in the place of whatever *path* is, in one step as others see it.

    :param unfinished: how the path of the file begins until it is whole; on the same file system
    :param sync: have the content on disk before the file gets its name
    :param prepare: called with the path that the whole file has before it gets its name
    :raises OSError: *path* is as it was
    """
    staged = unfinished + posix.urandom(8).hex()
    fd = posix.open(staged, _FLAGS, 0o600)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[posix.write(fd, view) :]
            if sync:
                posix.fsync(fd)
        finally:
            paths.close(fd)
        if prepare is not None:
            prepare(staged)
        posix.rename(staged, path)
    except BaseException:
        posix.unlink(staged)
        raise
