# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lock of a network directory: flock on ``<dir>/lock``, shared with the Go plugin (host-local spec 3.2)."""

from __future__ import annotations

import _signal
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
    from types import FrameType

    from ..cni.skel import Call

DEFAULT_TIMEOUT = 60.0
_RING_AGAIN = 0.05
_LONGEST = 86400


class LockTimeout(CniError):
    """The lock was not to be had in time."""


class _Alarm(Exception):
    pass


class _Bell:
    """Ends a blocking call by an exception, once: the timer that rings it may do so again at any later moment."""

    def __init__(self) -> None:
        self.rung = False

    def __call__(self, _signum: int, _frame: FrameType | None) -> None:
        if not self.rung:
            self.rung = True
            raise _Alarm


def flock(fd: int, operation: int, timeout: float) -> bool:
    """Take a flock within *timeout* seconds and tell whether it was had. Main thread only, as it uses a signal.

    The wait is a blocking flock that a timer signal ends: whoever polls starves behind waiters that block (H13).
    """
    try:
        fcntl.flock(fd, operation | fcntl.LOCK_NB)
        return True
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
    if timeout <= 0:
        return False
    bell = _Bell()
    alarm = [_signal.SIGALRM]
    handler = _signal.signal(_signal.SIGALRM, bell)
    mask = _signal.pthread_sigmask(_signal.SIG_UNBLOCK, alarm)
    timer = _signal.getitimer(_signal.ITIMER_REAL)
    try:
        # the timer rings again: its first signal may come just before flock blocks
        _signal.setitimer(_signal.ITIMER_REAL, timeout, _RING_AGAIN)
        fcntl.flock(fd, operation)
        bell.rung = True
        return True
    except _Alarm:
        return False
    finally:
        # from here on the bell is silent, and nothing may ring when the handler is no longer ours
        _signal.setitimer(_signal.ITIMER_REAL, *timer)
        if _signal.SIGALRM in mask:
            _signal.pthread_sigmask(_signal.SIG_BLOCK, alarm)
        _signal.signal(_signal.SIGALRM, handler)


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
                holder = _holder(fd)
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


def _holder(fd: int) -> str:
    """Name the process that holds the lock, if the kernel says so."""
    found = posix.fstat(fd)
    wanted = f"{posix.major(found.st_dev):02x}:{posix.minor(found.st_dev):02x}:{found.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as lines:
            for line in lines:
                words = line.split()
                if len(words) > 5 and words[1] == "FLOCK" and words[5] == wanted:
                    return f"process {words[4]}{_command(words[4])}"
    except OSError:
        pass
    return ""


def _command(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as comm:
            return f" ({comm.read().strip()})"
    except OSError:
        return ""


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
