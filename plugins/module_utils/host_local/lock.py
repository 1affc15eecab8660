# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lock of a network directory: flock on ``<dir>/lock``, shared with the Go plugin (host-local spec 3.2)."""

from __future__ import annotations

import errno
import fcntl
import posix
import time
from _stat import S_ISDIR

from ..cni import paths
from ..cni.errors import TRY_AGAIN_LATER, CniError, NodenetError
from .layout import LOCK_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..cni.skel import Call

DEFAULT_TIMEOUT = 60.0
_LONGEST = 86400


class LockTimeout(CniError):
    """The lock was not to be had in time."""


def flock(fd: int, operation: int, timeout: float) -> bool:
    """Take a flock within *timeout* seconds and tell whether it was had. Main thread only, see `lockwait`."""
    try:
        fcntl.flock(fd, operation | fcntl.LOCK_NB)
        return True
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
    if timeout <= 0:
        return False
    from . import lockwait

    return lockwait.wait(fd, operation, timeout)


def acquire(directory: int, path: str, timeout: float, asked: float, create: bool) -> int | None:
    """Open and lock the file ``lock`` below the open *directory*; return its descriptor, closing which unlocks.

    With *create* the lock is exclusive and the file is made if need be; else it is shared, and None is returned when
    there is no such file. *path* names the directory in messages, *asked* is the whole time that the user gave, of
    which *timeout* is left. Raises OSError, or LockTimeout (code 11).
    """
    deadline = time.monotonic() + timeout
    flags = posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK | (posix.O_CREAT if create else 0)
    while True:
        try:
            fd = posix.open(LOCK_NAME, flags, 0o750, dir_fd=directory)
        except FileNotFoundError:
            if create:
                raise
            return None
        try:
            if S_ISDIR(posix.fstat(fd).st_mode):
                raise IsADirectoryError(errno.EISDIR, posix.strerror(errno.EISDIR))
            operation = fcntl.LOCK_EX if create else fcntl.LOCK_SH
            if not flock(fd, operation, deadline - time.monotonic()):
                from . import lockwait

                holder = lockwait.holder(fd)
                raise LockTimeout(
                    TRY_AGAIN_LATER,
                    f"cannot lock {path}/{LOCK_NAME} within {asked:g} s: {holder or 'another process'} holds it",
                )
            if _is_still_there(fd, directory):
                return fd
        except BaseException:
            paths.close(fd)
            raise
        # somebody removed or replaced the file while we waited: what we hold locks nobody out
        paths.close(fd)


def _is_still_there(fd: int, directory: int) -> bool:
    try:
        return paths.same_file(posix.stat(LOCK_NAME, dir_fd=directory), posix.fstat(fd))
    except FileNotFoundError:
        return False


def timeout_from_environment(value: str | None) -> float:
    """Return the seconds that CNI_LOCK_TIMEOUT asks for, the default when it is unset."""
    if not value:
        return DEFAULT_TIMEOUT
    try:
        return check_timeout(float(value), "CNI_LOCK_TIMEOUT")
    except ValueError:
        raise _no_timeout(value, "CNI_LOCK_TIMEOUT") from None


def call_timeout(call: Call) -> float:
    """Return the seconds that a call of the plugin waits for the lock."""
    return timeout_from_environment(call.environ.get("CNI_LOCK_TIMEOUT"))


def check_timeout(seconds: float, what: str) -> float:
    """Return *seconds*; raise NodenetError that names *what* if nobody can wait that long."""
    if not 0 <= seconds <= _LONGEST:
        raise _no_timeout(f"{seconds:g}", what)
    return seconds


def _no_timeout(value: str, what: str) -> NodenetError:
    return NodenetError(
        f"Cannot wait for the lock: {what} must be a number of seconds from 0 to {_LONGEST}, not {value}"
    )
