# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that container runtimes read while we write them.

A runtime lists the conf directory and executes what lies in the bin directory at any moment. So a file appears there
whole, with its final mode and owner, or it does not appear: it is written under a temporary name in the same
directory, synced, and renamed into place.

The temporary name (``.nodenet-tmp-<pid>-<random>``) starts with a dot and has no extension: libcni and CRI-O load
only names that end in .conf, .conflist or .json, and a plugin type of that name would have to be guessed.
The writer holds a lock on its temporary file, so that left-overs of a killed writer can be told from a file at work.
"""

from __future__ import annotations

import errno
import fcntl
import os

from . import selinux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TEMPORARY_PREFIX = ".nodenet-tmp-"


def replace_file(
    path: str,
    data: bytes | Iterable[bytes],
    mode: int = 0o644,
    owner: tuple[int, int] | None = None,
) -> None:
    """Put a file with this content in place of whatever has its name, in one step.

    A reader sees the old file or the new one, never none and never a part; a process that executes the old file
    keeps it. A symbolic link of that name is replaced as a link, its target is not touched. The umask plays no part.
    The SELinux label of a file that is replaced is kept; a new file gets that of its directory (selinux.hand_on).

    path: where; its directory must exist (see make_directory).
    data: the content, or pieces of it in order. If getting a piece fails, nothing has changed.
    mode: permission bits of the result.
    owner: (uid, gid); by default the user who writes, which is root:root for root whatever the directory's group is.
    Errors: OSError; nothing has changed then, unless the last sync of the directory failed.
    """
    with stage_file(path, data, mode, owner) as staged:
        staged.commit()
    sync_directory(os.path.dirname(path) or ".")


def stage_file(
    path: str,
    data: bytes | Iterable[bytes],
    mode: int = 0o644,
    owner: tuple[int, int] | None = None,
) -> StagedFile:
    """Write and sync the file under its temporary name; StagedFile.commit() then gives it its name.

    For a group of files of which none may change if one of them cannot be written (a full disk): stage all, commit
    all, then call sync_directory() once. Arguments and errors as for replace_file.
    """
    staged = StagedFile(path)
    try:
        staged.write(data, mode, owner)
    except BaseException:
        staged.discard()
        raise
    return staged


class StagedFile:
    """A complete file that waits under a temporary name; a context manager that discards what was not committed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._name = os.path.basename(path)
        if self._name in ("", ".", ".."):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self._lock_fd = -1
        self._temporary = ""
        # The directory is held open: renaming it meanwhile cannot make us write somewhere else.
        self._dir_fd = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def write(self, data: bytes | Iterable[bytes], mode: int, owner: tuple[int, int] | None) -> None:
        fd = self._create()
        try:
            with open(fd, "wb", closefd=False) as stream:
                for piece in (data,) if isinstance(data, bytes) else data:
                    stream.write(piece)
            if owner is None and os.geteuid() == 0:
                owner = (0, 0)
            if owner is not None:
                os.fchown(fd, *owner)
            os.fchmod(fd, mode)  # after the chown, which may clear bits
            selinux.hand_on(self.path, fd)
            os.fsync(fd)
        finally:
            # Before the file gets its name: who executes a file that is open for writing is told "text file busy".
            os.close(fd)

    def commit(self) -> None:
        """Give the file its name; sync_directory() makes that last over a power cut."""
        try:
            os.rename(self._temporary, self._name, src_dir_fd=self._dir_fd, dst_dir_fd=self._dir_fd)
        except OSError as exc:
            raise OSError(exc.errno, exc.strerror, self.path) from exc
        self._temporary = ""
        self._close()

    def discard(self) -> None:
        """Remove the temporary file; does nothing after commit()."""
        if self._temporary:
            try:
                os.unlink(self._temporary, dir_fd=self._dir_fd)
            except FileNotFoundError:
                pass
            self._temporary = ""
        self._close()

    def __enter__(self) -> StagedFile:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.discard()

    def _create(self) -> int:
        """Create and lock the temporary file; returns a descriptor to write with, which the caller closes."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        while True:
            name = f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(6).hex()}"
            fd = os.open(name, flags, 0o600, dir_fd=self._dir_fd)
            try:
                if self._lock(name):
                    self._temporary = name
                    return fd
            except BaseException:
                os.close(fd)
                os.unlink(name, dir_fd=self._dir_fd)
                raise
            os.close(fd)  # a sweep came between open and lock: it takes this name away, another one is used

    def _lock(self, name: str) -> bool:
        # A descriptor of its own, for reading: it outlives the one for writing and lasts until the file has its name.
        try:
            self._lock_fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._dir_fd)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock_fd)
            self._lock_fd = -1
            return False
        except OSError:
            return True  # a file system that cannot: a sweep cannot lock there either, and leaves the file alone
        if os.fstat(self._lock_fd).st_nlink:
            return True
        os.close(self._lock_fd)
        self._lock_fd = -1
        return False

    def _close(self) -> None:
        for fd in (self._lock_fd, self._dir_fd):
            if fd >= 0:
                os.close(fd)
        self._lock_fd = self._dir_fd = -1


def remove_file(path: str) -> bool:
    """Remove a file or a symbolic link (never its target) so that it stays removed; False if there was none."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    sync_directory(os.path.dirname(path) or ".")
    return True


def make_directory(path: str, mode: int = 0o755) -> list[str]:
    """Create the directory and its missing parents with exactly this mode; returns those created, outermost first.

    An existing directory keeps its mode and owner. Errors: OSError, also when a part of the path is a file; what was
    created is removed again then.
    """
    created: list[str] = []
    missing: list[str] = []
    current = os.path.abspath(path)
    while not os.path.isdir(current):
        missing.append(current)
        current = os.path.dirname(current)
    try:
        for directory in reversed(missing):
            try:
                os.mkdir(directory, 0o700)
            except FileExistsError:
                if os.path.isdir(directory):  # somebody else made it meanwhile
                    continue
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory) from None
            created.append(directory)
            os.chmod(directory, mode)
            sync_directory(os.path.dirname(directory))
    except OSError:
        remove_directories(created)
        raise
    return created


def check_writable(path: str) -> None:
    """See, without leaving a trace, that files can be created in a directory, or that it can be made for them.

    Errors: OSError with the part of the path that is in the way.
    """
    existing = os.path.abspath(path)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    code = 0
    if not os.path.isdir(existing):
        code = errno.ENOTDIR
    elif os.statvfs(existing).f_flag & os.ST_RDONLY:
        code = errno.EROFS
    elif not os.access(existing, os.W_OK | os.X_OK, effective_ids=True):
        code = errno.EACCES
    if code:
        raise OSError(code, os.strerror(code), existing)


def remove_directories(created: list[str]) -> None:
    """Undo make_directory(), given what it returned: remove what is still empty, innermost first."""
    for directory in reversed(created):
        try:
            os.rmdir(directory)
        except OSError:
            return  # somebody else uses it meanwhile


def sync_directory(path: str) -> None:
    """Make renames, creations and removals in this directory last over a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sweep_temporary(directory: str) -> list[str]:
    """Remove temporary files whose writer is gone (killed, power cut); returns their names.

    A file that is being written is left alone: its writer holds the lock on it.
    """
    removed: list[str] = []
    for name in _temporary_names(directory):
        path = os.path.join(directory, name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue  # committed or swept meanwhile, or not ours (a link)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
            removed.append(name)
        except (BlockingIOError, FileNotFoundError):
            pass
        finally:
            os.close(fd)
    return removed


def _temporary_names(directory: str) -> Iterator[str]:
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return iter(())
    return iter(sorted(name for name in names if name.startswith(TEMPORARY_PREFIX)))
