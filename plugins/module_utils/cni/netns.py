# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network namespaces: make, enter and remove them, without the program ``ip``.

A socket belongs to the namespace in which it was made. So who wants to look into a namespace makes a socket in it
(`open_inside`) and uses it from outside.
"""

from __future__ import annotations

import errno
import posix
import time

from . import folders, paths, syscalls
from .errors import NodenetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, TypeVar

    T = TypeVar("T")

RUN_DIR = "/run/netns"
OWN = "/proc/self/ns/net"
_SETTLE = 0.02


class Entered:
    """``with Entered(path):`` runs the block in the namespace at *path*.

    Only the calling thread moves. Raises OSError that names the path. Coming back cannot fail but by a defect of the
    system; then the process ends, as nothing it does would happen where it belongs.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._own = -1

    def __enter__(self) -> None:
        target = posix.open(self.path, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            self._own = posix.open(OWN.replace("self", "thread-self"), posix.O_RDONLY | posix.O_CLOEXEC)
            syscalls.setns(target)
        except OSError as error:
            if self._own >= 0:
                paths.close(self._own)
            raise OSError(error.errno, error.strerror, self.path) from None
        finally:
            paths.close(target)

    def __exit__(self, *_exc: object) -> None:
        try:
            syscalls.setns(self._own)
        except OSError:
            posix.write(2, b"cannot return to the own network namespace\n")
            posix._exit(70)
        paths.close(self._own)


def open_inside(path: str, make: Callable[[], T]) -> T:
    """Return what *make* makes in the namespace at *path*, a socket for instance."""
    with Entered(path):
        return make()


def is_namespace(path: str) -> bool:
    """Tell whether a network namespace is mounted at *path*, not just a file left from one."""
    try:
        return posix.stat(path).st_dev == posix.stat(OWN).st_dev
    except (OSError, ValueError):
        return False


def create(path: str, prepare: Callable[[], None] | None = None) -> None:
    """Make a namespace and mount it at *path*, whose directory is made if need be.

    *prepare* is called in the new namespace, by another process. The namespace lasts until `remove`, also when this
    process ends. Raises NodenetError; nothing is left then.
    """
    folder = paths.parent(path)
    try:
        folders.make(folder)
        paths.close(posix.open(path, posix.O_RDONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o444))
    except OSError as error:
        raise _cannot("make", path, error) from None
    try:
        _in_child(lambda: _mount_new(path, prepare))
    except OSError as error:
        remove(path)
        raise _cannot("make", path, error) from None
    except BaseException:
        remove(path)
        raise


def remove(path: str) -> None:
    """Unmount the namespace at *path* and remove the file; nothing is done if there is none.

    The kernel takes the namespace and the interfaces in it apart a moment later, when no process uses it any more.
    Raises NodenetError.
    """
    try:
        while is_namespace(path):
            syscalls.unmount(path)
        posix.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot("remove", path, error) from None


class Anonymous:
    """A namespace without a name: ``with Anonymous() as path``. It ends with the block, or with this process.

    A process of ours that does nothing keeps it; *path* is below /proc.
    """

    def __init__(self) -> None:
        self._end = -1
        self._pid = 0

    def __enter__(self) -> str:
        waiting, self._end = posix.pipe()
        answer, ready = posix.pipe()
        self._pid = posix.fork()
        if self._pid == 0:
            try:
                posix.close(self._end)
                posix.write(ready, bytes([_errno_of(syscalls.unshare)]))
                posix.read(waiting, 1)
            finally:
                posix._exit(0)
        posix.close(ready)
        posix.close(waiting)
        said = posix.read(answer, 1)
        posix.close(answer)
        if said != b"\0":
            self.__exit__()
            raise _cannot("make", "without a name", _error(said))
        return f"/proc/{self._pid}/ns/net"

    def __exit__(self, *_exc: object) -> None:
        posix.close(self._end)
        posix.waitpid(self._pid, 0)


def _mount_new(path: str, prepare: Callable[[], None] | None) -> None:
    syscalls.unshare()
    if prepare is not None:
        prepare()
    syscalls.bind_mount(OWN, path)


def _in_child(function: Callable[[], object]) -> None:
    """Call *function* in another process; an OSError of it is raised here."""
    reading, writing = posix.pipe()
    pid = posix.fork()
    if pid == 0:
        try:
            posix.write(writing, bytes([_errno_of(function)]))
        finally:
            posix._exit(0)
    posix.close(writing)
    said = posix.read(reading, 1)
    posix.close(reading)
    posix.waitpid(pid, 0)
    if said != b"\0":
        raise _error(said)


def _error(said: bytes) -> OSError:
    """Return the error that a process of ours told by its number, or by telling nothing."""
    number = said[0] if said else errno.EIO
    return OSError(number, posix.strerror(number))


def _errno_of(function: Callable[[], object]) -> int:
    try:
        function()
    except OSError as error:
        return min(error.errno or errno.EIO, 255)
    return 0


def _cannot(what: str, path: str, error: OSError) -> NodenetError:
    return NodenetError(f"Cannot {what} network namespace {path}: {(error.strerror or str(error)).lower()}", netns=path)


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Look at *condition* until it holds or the time is up; tell whether it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_SETTLE)
    return True
