# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a program with something on its standard input, within a time limit, and end all that it started if need be.

Without the standard library's subprocess: that costs an executable more than its whole start.
"""

from __future__ import annotations

import _signal
import errno
import posix
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Mapping

_CHUNK = 1 << 16
_SLICE = 0.05  # how late an exit may be seen whose output somebody else holds open, and the wish to stop
_SHORTEST = 0.0001
_BUSY_ATTEMPTS = 6
_BUSY_WAIT = 1.0
_REAP_LIMIT = 5.0
_REAP_PAUSE = 0.001
_MOST_KEPT = 1 << 24  # of the output; what comes after it is read and forgotten
_PIPE_CHUNKS = 64  # more than a pipe holds


class Ended:
    """How a program ended: ``status`` as subprocess gives it (negative: the signal), ``stdout``, ``stderr``.

    ``overdue``: it was killed as the time was up. ``stopped``: it was killed as somebody asked to stop.
    """

    __slots__ = ("status", "stdout", "stderr", "overdue", "stopped")

    def __init__(self, status: int, stdout: bytes, stderr: bytes, overdue: bool, stopped: bool) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.overdue = overdue
        self.stopped = stopped


def run(
    path: str,
    environ: Mapping[str, str],
    stdin: bytes,
    time_limit: float | None = None,
    stop: Callable[[], bool] | None = None,
    alone: bool = False,
) -> Ended:
    """Run *path* without arguments in a process group of its own, and wait for it.

    :param time_limit: seconds after which the group is killed, None: it may take as long as it likes
    :param stop: asked again and again; once it returns true the group is killed
    :param alone: kill what the program leaves running in its group; else only what a time-out or *stop* interrupts
    :raises OSError: it cannot be executed. A program that is just being written is tried again for some seconds.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    # a runtime that ignores its children's ends would keep us from learning of ours
    if _signal.getsignal(_signal.SIGCHLD) == _signal.SIG_IGN:
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    child = _Child()
    try:
        child.start(path, environ, deadline)
        overdue = stopped = False
        while not child.step(stdin):
            overdue = deadline is not None and time.monotonic() >= deadline
            stopped = not overdue and stop is not None and stop()
            if overdue or stopped:
                child.kill()
                break
        if alone:
            child.kill()
        return Ended(child.status or 0, b"".join(child.stdout), b"".join(child.stderr), overdue, stopped)
    except BaseException:
        child.kill()
        raise
    finally:
        child.close()


class _Child:
    """A process and the ends of its pipes that are ours."""

    def __init__(self) -> None:
        self.pid = 0
        self.status: int | None = None
        self.stdout: list[bytes] = []
        self.stderr: list[bytes] = []
        self._open: dict[int, list[bytes]] = {}
        self._stdin = -1
        self._sent = 0
        self._kept = 0
        self._poll = select.poll()
        self._pause = _SHORTEST

    def start(self, path: str, environ: Mapping[str, str], deadline: float | None) -> None:
        theirs: list[int] = []
        try:
            for output in (None, self.stdout, self.stderr):
                reading, writing = posix.pipe()
                ours = writing if output is None else reading
                theirs.append(reading if output is None else writing)
                posix.set_blocking(ours, False)
                self._poll.register(ours, select.POLLOUT if output is None else select.POLLIN)
                if output is None:
                    self._stdin = ours
                else:
                    self._open[ours] = output
            self.pid = _spawn(path, environ, theirs, deadline)
        finally:
            for fd in theirs:
                posix.close(fd)

    def step(self, stdin: bytes) -> bool:
        """Exchange what there is to exchange, for a moment; tell whether the process has ended."""
        if self._open:
            for fd, _events in self._poll.poll(_SLICE * 1000):
                if fd == self._stdin:
                    self._write(stdin)
                else:
                    self._read(fd)
        else:
            time.sleep(self._pause)
            self._pause = min(self._pause * 2, _SLICE)
        if not self._reap(posix.WNOHANG):
            return False
        # what it wrote last; a process that it left behind may hold the pipes for ever
        for fd in list(self._open):
            for _chunk in range(_PIPE_CHUNKS):
                if not self._read(fd):
                    break
        return True

    def _write(self, stdin: bytes) -> None:
        try:
            self._sent += posix.write(self._stdin, stdin[self._sent : self._sent + _CHUNK])
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want to know
            self._sent = len(stdin)
        if self._sent >= len(stdin):
            self._shut(self._stdin)
            self._stdin = -1

    def _read(self, fd: int) -> bool:
        """Take one piece of output; tell whether there may be more at once."""
        try:
            piece = posix.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if not piece:
            del self._open[fd]
            self._shut(fd)
            return False
        self._kept += len(piece)
        if self._kept <= _MOST_KEPT:
            self._open[fd].append(piece)
        return True

    def _shut(self, fd: int) -> None:
        self._poll.unregister(fd)
        posix.close(fd)

    def _reap(self, flags: int) -> bool:
        if self.status is None and self.pid:
            try:
                pid, raw = posix.waitpid(self.pid, flags)
            except ChildProcessError:  # somebody else has waited for it
                pid, raw = self.pid, 0
            if pid:
                self.status = -posix.WTERMSIG(raw) if posix.WIFSIGNALED(raw) else posix.WEXITSTATUS(raw)
        return self.status is not None

    def kill(self) -> None:
        """Kill the whole process group, and wait for the process itself unless not even that ends it."""
        if not self.pid:
            return
        try:
            posix.killpg(self.pid, _signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        deadline = time.monotonic() + _REAP_LIMIT
        while not self._reap(posix.WNOHANG) and time.monotonic() < deadline:
            time.sleep(_REAP_PAUSE)

    def close(self) -> None:
        for fd in [*self._open, self._stdin]:
            if fd >= 0:
                posix.close(fd)
        self._open = {}
        self._stdin = -1


def _spawn(path: str, environ: Mapping[str, str], fds: list[int], deadline: float | None) -> int:
    actions = [(posix.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(fds)]
    variables = {_bytes(key): _bytes(value) for key, value in environ.items()}
    signals = [_signal.SIGPIPE, _signal.SIGXFSZ]  # Python ignores these, and it would inherit that
    attempt = 0
    while True:
        attempt += 1
        try:
            return posix.posix_spawn(
                _bytes(path),
                [_bytes(path)],
                variables,
                file_actions=actions,
                setpgroup=0,
                setsigmask=(),
                setsigdef=signals,
            )
        except OSError as error:
            overdue = deadline is not None and time.monotonic() + _BUSY_WAIT >= deadline
            if error.errno != errno.ETXTBSY or attempt == _BUSY_ATTEMPTS or overdue:
                raise OSError(error.errno, error.strerror, path) from None
            time.sleep(_BUSY_WAIT)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
