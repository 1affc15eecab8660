# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole files or none: how an address file comes to be (H1).

An address file is written without a name, synced, and then linked to its name: whatever happens, other processes and
the next boot see all of it or nothing. Where the file system cannot do without a name, the file is written beside the
network's directory (never in it: Go reads every name there) and swept when a crash leaves it.
"""

from __future__ import annotations

import errno
import os

# "~" cannot stand in a network name, so no network's leftovers look like another one's
_PREFIX = ".nodenet-{network}~"
_NO_TMPFILE = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS)


class NewFile:
    """A file that is written but has no name in the directory yet. ``fd`` is open for writing."""

    def __init__(self, directory: int, fd: int, temporary: str = "", parent: int = -1) -> None:
        self.directory = directory
        self.fd = fd
        self.temporary = temporary
        self.parent = parent

    def link(self, name: str) -> None:
        """Give the file its name. Raises FileExistsError if there is one."""
        if self.temporary:
            os.link(self.temporary, name, src_dir_fd=self.parent, dst_dir_fd=self.directory, follow_symlinks=False)
        else:
            os.link(f"/proc/self/fd/{self.fd}", name, dst_dir_fd=self.directory, follow_symlinks=True)

    def close(self) -> None:
        """Forget the file unless it has been linked."""
        os.close(self.fd)
        if self.temporary:
            os.unlink(self.temporary, dir_fd=self.parent)
            os.close(self.parent)


def create(directory: int, network: str, content: bytes) -> NewFile:
    """Write a file of mode 0600 without a name below the open *directory*. It is not synced yet."""
    new = _unnamed(directory) or _beside(directory, network)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(new.fd, view) :]
    except BaseException:
        new.close()
        raise
    return new


def _unnamed(directory: int) -> NewFile | None:
    try:
        fd = os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=directory)
    except OSError as error:
        if error.errno in _NO_TMPFILE:
            return None
        raise
    if not os.path.lexists(f"/proc/self/fd/{fd}"):  # no /proc, no way to link it
        os.close(fd)
        return None
    return NewFile(directory, fd)


def _beside(directory: int, network: str) -> NewFile:
    parent = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        if os.fstat(parent).st_dev != os.fstat(directory).st_dev:
            raise OSError(errno.EXDEV, "the file system has no unnamed files and the directory is a mount point")
        prefix = _PREFIX.format(network=network)
        temporary = f"{prefix}{os.getpid()}.{os.urandom(6).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return NewFile(directory, os.open(temporary, flags, 0o600, dir_fd=parent), temporary, parent)
    except BaseException:
        os.close(parent)
        raise


def sweep(directory: int, network: str, keep: str) -> None:
    """Remove what crashes left beside the directory, all but *keep*. The caller holds the network's lock."""
    prefix = _PREFIX.format(network=network)
    try:
        parent = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return
    try:
        for name in os.listdir(parent):
            if name.startswith(prefix) and name != keep:
                os.unlink(name, dir_fd=parent)
    finally:
        os.close(parent)
