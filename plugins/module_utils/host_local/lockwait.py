# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting for a lock that somebody holds, and saying who. Most calls find the lock free and do without."""

from __future__ import annotations

import _signal
import fcntl
import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_RING_AGAIN = 0.05


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


def wait(fd: int, operation: int, timeout: float) -> bool:
    """Take a flock within *timeout* seconds and tell whether it was had. Main thread only, as it uses a signal.

    The wait is a blocking flock that a timer signal ends: whoever polls starves behind waiters that block (H13).
    """
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


def holder(fd: int) -> str:
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
