# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether an ADD of a container still runs: that of a Multus, or of a plugin that went on when Multus was killed.

What such a plugin attaches after a DEL would stay for ever. So an ADD holds a lock on its delegates cache, which its
plugins inherit, and a DEL waits for it. When the ADD has come to its end it gives the lock up for all of them, since a
plugin may leave a process behind on purpose.
"""

from __future__ import annotations

import fcntl
import posix
import time

from ..cni import paths

_PAUSE_S = 0.02
_LONGEST_S = 300
_FLAGS = posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK


def begin(cache_file: str) -> int:
    """Take the lock of a new file and return its descriptor, which plugins inherit; -1 if that is not possible.

    :param cache_file: the path that it has before anybody else looks for it
    """
    try:
        fd = posix.open(cache_file, _FLAGS)
    except (OSError, ValueError):
        return -1
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        posix.set_inheritable(fd, True)
    except OSError:  # a file system without locks
        pass
    return fd


def end(fd: int) -> None:
    """Give the lock up, also for processes that have inherited it."""
    if fd < 0:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError:
        pass
    paths.close(fd)


def wait(cache_file: str, limit_s: float) -> bool:
    """Wait until no ADD runs that has the lock; tell whether that came true within *limit_s* seconds."""
    fd = alone(cache_file, limit_s)
    if fd is None:
        return False
    end(fd)
    return True


def alone(cache_file: str, limit_s: float) -> int | None:
    """Take the lock for oneself and return its descriptor, which `end` takes; -1 if there is no such file.

    None if an ADD has the lock, and still has it after *limit_s* seconds.
    """
    deadline = time.monotonic() + limit_s
    while True:
        try:
            fd = posix.open(cache_file, _FLAGS)
        except (OSError, ValueError):
            return -1
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            paths.close(fd)
            if time.monotonic() >= deadline:
                return None
            time.sleep(_PAUSE_S)
            continue
        except OSError:  # a file system without locks
            return fd
        if is_in_place(fd, cache_file):
            return fd
        paths.close(fd)  # another ADD has put its own in the place of it


def is_overdue(cache_file: str) -> bool:
    """Tell whether an ADD began so long ago that nothing waits for it any more.

    What has the lock may be a process that a plugin of a killed ADD has left behind on purpose.
    """
    try:
        return time.time() - posix.stat(cache_file).st_mtime > _LONGEST_S
    except (OSError, ValueError):
        return True


def is_in_place(fd: int, cache_file: str) -> bool:
    """Tell whether the file of a descriptor is still the one at that path."""
    try:
        return paths.same_file(posix.fstat(fd), posix.stat(cache_file))
    except (OSError, ValueError):
        return False
