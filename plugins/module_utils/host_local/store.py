# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data directory of host-local: all knowledge of the on-disk format (host-local spec 3).

    <dataDir>/<network>/<address>           the owner: id CRLF ifname
    <dataDir>/<network>/<address>.holder    who has a statically reserved address at present, written in the same way
    <dataDir>/<network>/last_reserved_ip.N  where the round robin of range set N stands, a hint
    <dataDir>/<network>/lock                empty, for flock

Go plugins work on the same directory at the same time.
"""

from __future__ import annotations

import errno
import posix
import time
from _stat import S_ISDIR, S_ISREG

from ..cni import paths
from ..cni.errors import INTERNAL, IO_FAILURE, CniError, go_strerror
from . import lock
from .addresses import Address, parse_address
from .layout import HOLDER_SUFFIX, LAST_RESERVED_PREFIX, LOCK_NAME, network_dir
from .snapshot import Reservation, Snapshot, owner_key, strip_space

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from .beside import Beside
    from .indexed import IndexedSnapshot
    from .newfile import NewFile

NAME_CHARS = "0123456789abcdefABCDEF.:"
_READ_FLAGS = posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW | posix.O_NONBLOCK
_MAX_CONTENT = 1 << 20
_REOPEN_LIMIT = 10
_LARGE = 8192


class StoreError(CniError):
    """The directory cannot be used; ``msg`` is Go's text, ``path`` the file."""

    def __init__(self, operation: str, path: str, error: OSError, code: int = INTERNAL) -> None:
        text = go_strerror(error)
        super().__init__(code, f"{operation} {path}: {text}" if operation else text)
        self.path = path
        self.errno = error.errno


class Store:
    """One network's directory, opened once and used under its lock.

    ``with Store(data_dir, network) as store, store.lock(30): ...``. With ``create=False`` nothing is ever created: a
    missing directory is an empty one. ``warnings`` collects what does not stop a call but ought to be said.
    """

    def __init__(self, data_dir: str, network: str, create: bool = True) -> None:
        self.network = network
        self.path = network_dir(data_dir, network)
        self.create = create
        self.warnings: list[str] = []
        self.directory = -1
        self._beside: Beside | None = None
        self._view: IndexedSnapshot | None = None
        self._made: list[str] = []

    def __enter__(self) -> Store:
        if "\0" in self.path:
            raise StoreError("mkdir", self.path, OSError(errno.EINVAL, posix.strerror(errno.EINVAL)))
        self._open()
        return self

    def _open(self) -> None:
        if self.create:
            _make_directories(self.path, self._made)
        flags = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC
        try:
            try:
                self.directory = posix.open(self.path, flags if self.create else flags | posix.O_NOATIME)
            except PermissionError:  # O_NOATIME is for owners
                self.directory = posix.open(self.path, flags)
        except FileNotFoundError as error:
            if self.create:
                raise StoreError("open", self.path, error) from None
        except OSError as error:
            raise StoreError("open", self.path, error) from None

    def __exit__(self, *_exc: object) -> None:
        if self._beside is not None:
            self._beside.close()
            self._beside = None
        if self.directory >= 0:
            paths.close(self.directory)
            self.directory = -1

    @property
    def exists(self) -> bool:
        """False only for a missing directory that was opened with ``create=False``."""
        return self.directory >= 0

    def lock(self, timeout: float = lock.DEFAULT_TIMEOUT, asked: float | None = None) -> _Held:
        """Hold the lock in a with block: exclusively, or shared with ``create=False`` (and then only if it exists).

        Raises LockTimeout (code 11) after *timeout* seconds; *asked* is what it says if that is only the rest of them.
        """
        return _Held(self, timeout, timeout if asked is None else asked)

    def discard(self) -> None:
        """Take away again the directories that opening this store made, if nothing but the lock file is in them.

        For a task that fails and was to change nothing; under the lock, or when opening failed half way. Whoever waits
        for the lock then finds itself in a directory that is gone and in which no file can be made.
        """
        try:
            if self.exists and self.path in self._made and posix.listdir(self.directory) == [LOCK_NAME]:
                posix.unlink(LOCK_NAME, dir_fd=self.directory)
            while self._made:
                posix.rmdir(self._made.pop())
        except OSError:
            pass

    def _acquire(self, timeout: float, asked: float) -> int | None:
        deadline = time.monotonic() + timeout
        for _attempt in range(_REOPEN_LIMIT):
            if not self.exists:
                return None
            try:
                left = max(deadline - time.monotonic(), 0.0)
                return lock.acquire(self.directory, self.path, left, asked, self.create)
            except FileNotFoundError:
                # somebody removed the directory after we opened it
                paths.close(self.directory)
                self.directory = -1
                self._open()
            except OSError as error:
                # Go names neither the operation nor the file [vector disk-lock-is-dir]
                raise StoreError("", f"{self.path}/{LOCK_NAME}", error) from None
        raise StoreError("open", self.path, OSError(errno.ENOENT, posix.strerror(errno.ENOENT)))

    # --- reading --------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Read the whole directory. Files that vanish meanwhile (only without the lock) are skipped.

        Only regular files directly in the directory whose name may be an address, or one with ``.holder`` at its end,
        are opened (H5).
        """
        now = time.time()
        if not self.exists:
            return Snapshot.nothing(now)
        names: set[str] = set()
        directories: set[str] = set()
        candidates: list[str] = []
        holding: list[str] = []
        try:
            with posix.scandir(self.directory) as entries:
                for entry in entries:
                    name = entry.name
                    names.add(name)
                    if entry.is_file(follow_symlinks=False):
                        if may_be_address_file(name):
                            (holding if name.endswith(HOLDER_SUFFIX) else candidates).append(name)
                    elif entry.is_dir(follow_symlinks=False):
                        directories.add(name)
        except OSError as error:
            raise StoreError("read", self.path, error) from None
        files: dict[str, tuple[bytes, float]] = {}
        holders: dict[str, tuple[bytes, float]] = {}
        unreadable: dict[str, OSError] = {}
        directory = self.directory
        for wanted, found in ((candidates, files), (holding, holders)):
            for name in wanted:
                try:
                    found[name] = read_address_file(name, directory)
                except FileNotFoundError:
                    names.discard(name)
                except OSError as error:
                    unreadable[name] = error
        return Snapshot(names, files, directories, unreadable, now, holders)

    def view(self) -> Snapshot:
        """Return a snapshot for the questions of one call, for which few files of a large directory need be read.

        Under the lock. It answers `is_taken`, `free` and what an attachment holds; see `indexed`.
        """
        if not self._is_large():
            return self.snapshot()
        from .indexed import IndexedSnapshot

        self._view = IndexedSnapshot(self)
        return self._view

    def glance(self, container_id: str, ifname: str) -> bool:
        """Tell whether an address of the attachment is found at once; if not, that says nothing. Under the lock."""
        if not self._is_large():
            return False
        from . import indexed

        return indexed.glance(self, container_id, ifname)

    def _is_large(self) -> bool:
        """Tell whether an index would pay off: a directory of some 250 entries has this size or more."""
        return self.exists and posix.fstat(self.directory).st_size > _LARGE

    def _keep_index(self) -> None:
        if self._view is not None:
            self._view.keep()
            self._view = None

    def warn_of_unreadable(self, snapshot: Snapshot) -> None:
        """Say which address files could not be read: whose they are cannot be told, so nothing releases them."""
        for name, error in sorted(snapshot.unreadable.items()):
            self.warnings.append(f"cannot read {self.path}/{name}: {go_strerror(error)}")

    def last_reserved(self, index: int) -> Address | None:
        """Return where the round robin of set *index* stands, None if that cannot be told (spec 3.3)."""
        text = self.last_reserved_text(index)
        try:
            return parse_address(text) if text else None
        except ValueError:
            return None

    def last_reserved_text(self, index: int) -> str:
        """Return what last_reserved_ip.N says, the empty text if there is none or it cannot be read."""
        if not self.exists:
            return ""
        name = f"{LAST_RESERVED_PREFIX}{index}"
        try:
            fd = posix.open(
                name, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK | posix.O_NOFOLLOW, dir_fd=self.directory
            )
        except FileNotFoundError:
            return ""
        except OSError as error:
            self.warnings.append(f"Error retrieving last reserved ip: open {self.path}/{name}: {go_strerror(error)}")
            return ""
        try:
            return posix.read(fd, 256).decode("utf-8", "replace")
        except OSError as error:
            self.warnings.append(f"Error retrieving last reserved ip: read {self.path}/{name}: {go_strerror(error)}")
            return ""
        finally:
            paths.close(fd)

    # --- writing --------------------------------------------------------------------------------------------------

    def reserve(self, snapshot: Snapshot, address: Address, container_id: str, ifname: str, suffix: str = "") -> bool:
        """Create the address file, whole and synced; False if there is one already, of whatever type.

        An empty file past its grace time is replaced (H18). The rotation is not touched: see set_last_reserved.
        With *suffix* ``.holder`` it is the holder file of a reserved address.
        """
        name = f"{address}{suffix}"
        content = owner_key(container_id, ifname)
        try:
            new = self.new_file(content)
            try:
                posix.fsync(new.fd)
                if snapshot.has(name) and snapshot.is_reclaimable(name):
                    posix.unlink(name, dir_fd=self.directory)
                    snapshot.discard(name)
                new.link(name, self.directory)
            finally:
                new.close()
            self._sync_link(name)
        except FileExistsError:
            return False
        except OSError as error:
            raise StoreError("open", f"{self.path}/{name}", error) from None
        snapshot.add(Reservation(address, name, content, snapshot.now))
        return True

    def _sync_link(self, name: str) -> None:
        """Make a new name last; an address that might not outlive a power cut is not handed out."""
        try:
            posix.fsync(self.directory)
        except OSError:
            posix.unlink(name, dir_fd=self.directory)
            raise

    def set_last_reserved(self, index: int, address: Address) -> None:
        """Note where the round robin of set *index* stands. It is a hint: a failure is only warned of (H2)."""
        name = f"{LAST_RESERVED_PREFIX}{index}"
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC | posix.O_NONBLOCK | posix.O_NOFOLLOW
        content = str(address).encode()
        try:
            fd = posix.open(name, flags, 0o600, dir_fd=self.directory)
            try:
                # cut after writing: a crash in between leaves a wrong hint at worst, never an empty one
                posix.write(fd, content)
                posix.ftruncate(fd, len(content))
            finally:
                paths.close(fd)
        except OSError as error:
            self.warnings.append(f"Error writing last reserved ip: open {self.path}/{name}: {go_strerror(error)}")

    def release(self, snapshot: Snapshot, reservations: Sequence[Reservation]) -> None:
        """Remove address files. Raises StoreError (code 5) that names the first one which cannot be removed (H6),
        after it has tried all."""
        fault: StoreError | None = None
        for one in reservations:
            try:
                posix.unlink(one.name, dir_fd=self.directory)
            except FileNotFoundError:
                pass
            except OSError as error:
                fault = fault or StoreError("remove", f"{self.path}/{one.name}", error, IO_FAILURE)
                continue
            snapshot.discard(one.name)
        if reservations:
            self.sync_directory()
        if fault is not None:
            raise fault

    def sync_directory(self) -> None:
        """Make the names in the directory last. Raises StoreError (code 5)."""
        try:
            posix.fsync(self.directory)
        except OSError as error:
            raise StoreError("fsync", self.path, error, IO_FAILURE) from None

    def new_file(self, content: bytes) -> NewFile:
        """Write a file that has no name in the directory yet, to be synced, linked and closed."""
        from . import newfile

        return newfile.create(self.directory, content, self.beside)

    def beside(self) -> Beside:
        """Return the place for files that need a name elsewhere; under the lock."""
        if self._beside is None:
            from .beside import Beside

            self._beside = Beside(self.directory, self.network)
        return self._beside


class _Held:
    """The lock of a store, held in a with block."""

    def __init__(self, store: Store, timeout: float, asked: float) -> None:
        self._store = store
        self._timeout = timeout
        self._asked = asked
        self._fd: int | None = None

    def __enter__(self) -> None:
        self._fd = self._store._acquire(self._timeout, self._asked)

    def __exit__(self, *_exc: object) -> None:
        try:
            self._store._keep_index()
        finally:
            if self._fd is not None:
                paths.close(self._fd)


def may_be_address_file(name: str) -> bool:
    """Tell whether a name looks like that of an address file, or of a holder file."""
    return not name.strip(NAME_CHARS) or (
        name.endswith(HOLDER_SUFFIX) and not name[: -len(HOLDER_SUFFIX)].strip(NAME_CHARS)
    )


def read_address_file(name: str, directory: int) -> tuple[bytes, float]:
    """Return content and file time. A hot spot: 50,000 of these are the whole cost of a report."""
    fd = posix.open(name, _READ_FLAGS, dir_fd=directory)
    try:
        content = posix.read(fd, 4096).strip()
        found = posix.fstat(fd)
        if found.st_size > 4096 or not content.isascii():
            content = strip_space(posix.pread(fd, _MAX_CONTENT, 0))
        if not S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return content, found.st_mtime
    finally:
        try:
            posix.close(fd)
        except OSError:
            pass


def _make_directories(path: str, made: list[str]) -> None:
    """Create *path* and its parents, mode 0755, each one synced into its parent; errors read like Go's MkdirAll.

    What it creates is appended to *made*.
    """
    try:
        if not S_ISDIR(posix.stat(path).st_mode):
            raise StoreError("mkdir", path, NotADirectoryError(errno.ENOTDIR, posix.strerror(errno.ENOTDIR)))
        return
    except OSError:
        pass
    parent = paths.parent(path)
    if parent not in (path, "."):
        _make_directories(parent, made)
    try:
        posix.mkdir(path, 0o755)
    except FileExistsError as error:
        if not paths.is_directory(path):
            raise StoreError("mkdir", path, error) from None
        return
    except OSError as error:
        raise StoreError("mkdir", path, error) from None
    made.append(path)
    try:
        fd = posix.open(parent, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    except PermissionError:  # writable but not readable: it cannot be synced, and Go never does
        return
    try:
        posix.fsync(fd)
    except OSError as error:
        raise StoreError("fsync", parent, error, IO_FAILURE) from None
    finally:
        paths.close(fd)
