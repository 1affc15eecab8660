# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole files or none: how an address file comes to be (H1).

An address file is written without a name, synced, and then linked to its name: whatever happens, other processes and
the next boot see all of it or nothing. Where the file system cannot do without a name, it gets one beside the network's
directory.
"""

from __future__ import annotations

import errno
import posix

from ..cni import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from .beside import Beside

_NO_TMPFILE = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS)


class NewFile:
    """A file that is written but has no name in the directory yet. ``fd`` is open for writing."""

    def __init__(self, fd: int, beside: Beside | None = None, temporary: str = "") -> None:
        self.fd = fd
        self._beside = beside
        self._temporary = temporary

    def link(self, name: str, directory: int) -> None:
        """Give the file a name in an open directory. Raises FileExistsError if there is one."""
        if self._beside is None:
            posix.link(f"/proc/self/fd/{self.fd}", name, dst_dir_fd=directory, follow_symlinks=True)
        else:
            parent = self._beside.parent
            posix.link(self._temporary, name, src_dir_fd=parent, dst_dir_fd=directory, follow_symlinks=False)

    def close(self) -> None:
        """Forget the file unless it has been linked."""
        paths.close(self.fd)
        if self._beside is not None:
            self._beside.remove(self._temporary)


def create(directory: int, content: bytes, beside: Callable[[], Beside]) -> NewFile:
    """Write a file of mode 0600 without a name below the open *directory*. It is not synced yet.

    *beside* is called when the file system has no unnamed files.
    """
    new = _unnamed(directory) or _beside(beside())
    try:
        view = memoryview(content)
        while view:
            view = view[posix.write(new.fd, view) :]
    except BaseException:
        new.close()
        raise
    return new


def _unnamed(directory: int) -> NewFile | None:
    try:
        fd = posix.open(".", posix.O_TMPFILE | posix.O_WRONLY | posix.O_CLOEXEC, 0o600, dir_fd=directory)
    except OSError as error:
        if error.errno in _NO_TMPFILE:
            return None
        raise
    if not paths.exists(f"/proc/self/fd/{fd}"):  # no /proc, no way to link it
        paths.close(fd)
        return None
    return NewFile(fd)


def _beside(beside: Beside) -> NewFile:
    if not beside.usable:
        raise OSError(errno.EXDEV, "the file system has no unnamed files and the directory is a mount point")
    temporary = beside.new_name()
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC
    return NewFile(posix.open(temporary, flags, 0o600, dir_fd=beside.parent), beside, temporary)
