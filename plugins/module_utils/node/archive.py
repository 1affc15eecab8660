# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where plugins come from: an archive or a directory, read without ever unpacking it anywhere.

Foreign input: nothing of a member but its content, its plain name and its executable bit is used. A member that points
outside of the archive, a link or a device makes the whole archive unacceptable, wherever it stands in it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat

from ..cni.errors import NodenetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import tarfile
    import zipfile
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO, Protocol

    Pieces = Callable[[], Iterator[bytes]]

    class Readable(Protocol):
        """What all kinds of opened files have."""

        def read(self, size: int = -1, /) -> bytes: ...


PIECE = 1 << 20
_MOST_MEMBERS = 10000
_MOST_BYTES = 4 << 30
_MOST_BETWEEN = 16 << 20  # what a tar archive may hold beside its members' content, from one to the next
_MAGICS = ((b"\x1f\x8b", "gz"), (b"\xfd7zXZ\x00", "xz"), (b"BZh", "bz2"), (b"PK\x03\x04", "zip"))


class Entry:
    """One plain file of a source: ``path`` in it (with "/"), ``size`` in bytes, whether it is marked executable.

    ``pieces()`` gives the content, once, and only before the next entry is taken.
    """

    def __init__(self, path: str, size: int, marked: bool, pieces: Pieces) -> None:
        self.path = path
        self.size = size
        self.marked = marked
        self.pieces = pieces


class DirectorySource:
    """The plain files at the top of a directory; links count as what they lead to, if that lies inside."""

    digest = ""

    def __init__(self, path: str) -> None:
        self.path = path
        self.label = path

    def entries(self, wanted: frozenset[str] | None = None) -> Iterator[Entry]:
        """Yield the files, by name; *wanted* limits them, and the complaints about links, to these names."""
        top = os.path.realpath(self.path)
        for name in sorted(os.listdir(self.path)):
            if wanted is not None and name not in wanted:
                continue
            path = os.path.join(self.path, name)
            real = os.path.realpath(path)
            if os.path.isdir(real):
                continue
            if os.path.islink(path):
                if not os.path.exists(real):
                    raise self._refusal(name, f"its link {name} leads nowhere")
                if os.path.commonpath((top, real)) != top:
                    raise self._refusal(name, f"its link {name} leads out of it, to {real}")
            if not stat.S_ISREG(os.stat(real).st_mode):
                continue  # opening a pipe would wait for somebody to write into it
            with open(real, "rb") as stream:
                status = os.fstat(stream.fileno())
                yield Entry(name, status.st_size, bool(status.st_mode & 0o111), functools.partial(_pieces, stream))

    def close(self) -> None:
        pass

    def _refusal(self, name: str, reason: str) -> NodenetError:
        return NodenetError(f"Cannot take plugins from {self.path}: {reason}", member=name)


class ArchiveSource:
    """A tar (plain, gz, xz, bz2) or zip file; the kind is told by the content, not by the name.

    The file is opened once, so what was verified is what is installed. ``digest`` is its sha256.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.label = os.path.basename(path)
        self._stream = open(path, "rb")  # noqa: SIM115
        try:
            self.kind = self._find_kind()
            self.digest = self.hexdigest("sha256")
        except BaseException:
            self._stream.close()
            raise

    def hexdigest(self, algorithm: str) -> str:
        return digest_of_stream(self._stream, algorithm)

    def entries(self, wanted: frozenset[str] | None = None) -> Iterator[Entry]:
        """Yield the plain files in the archive's order; *wanted* limits them to these paths.

        Errors: NodenetError for an archive that is damaged or holds what no plugin archive holds.
        """
        self._stream.seek(0)
        members = self._zip_members() if self.kind == "zip" else self._tar_members()
        seen = set()
        total = 0
        while True:
            # Only the reading is guarded: what goes wrong with the consumer's files is not the archive's fault.
            with self._damage():
                entry = next(members, None)
            if entry is None:
                return
            total += entry.size
            if entry.path in seen:
                raise self._refusal(entry.path, f"it holds {entry.path} more than once")
            seen.add(entry.path)
            if len(seen) > _MOST_MEMBERS or total > _MOST_BYTES:
                raise self._refusal(entry.path, "it holds far more than plugins")
            if wanted is None or entry.path in wanted:
                yield Entry(entry.path, entry.size, entry.marked, self._guarded(entry.pieces))

    def close(self) -> None:
        self._stream.close()

    def _find_kind(self) -> str:
        head = self._stream.read(512)
        for magic, kind in _MAGICS:
            if head.startswith(magic):
                return kind
        if head[257:262] == b"ustar" or head == bytes(512):  # zeros end a tar archive, also one without members
            return "tar"
        start = head[:16].decode("ascii", "replace").split("\n")[0]
        raise NodenetError(
            f"Cannot read {self.path}: it is no tar archive (plain, gz, xz, bz2) and no zip archive"
            + (f", it starts with {start!r}" if head else ", it is empty"),
            file=self.path,
        )

    def _tar_members(self) -> Iterator[Entry]:
        import tarfile

        content = _Meter(self._decompressed(), self._refusal("", "it holds far more than plugins"))
        # As a stream: seeking back in a compressed file would read it again from its start.
        stream: Any = content  # as a stream tarfile only reads it
        with tarfile.open(fileobj=stream, mode="r|", bufsize=PIECE) as archive:
            for member in archive:
                content.announce(member.size)
                path = self._plain_path(member.name)
                if member.isdir():
                    continue
                if member.issym() or member.islnk():
                    raise self._refusal(member.name, f"its member {member.name} is a link to {member.linkname}")
                if not member.isreg() or member.issparse():
                    raise self._refusal(member.name, f"its member {member.name} is no plain file")
                yield Entry(path, member.size, bool(member.mode & 0o111), _tar_pieces(archive, member))
        while content.read(PIECE):  # to the end, where compressed files keep their own checksum
            pass

    def _decompressed(self) -> Readable:
        try:
            if self.kind == "gz":
                import gzip

                return gzip.GzipFile(fileobj=self._stream, mode="rb")
            if self.kind == "xz":
                import lzma

                return lzma.LZMAFile(self._stream)
            if self.kind == "bz2":
                import bz2

                return bz2.BZ2File(self._stream)
        except ImportError as exc:
            raise NodenetError(
                f"Cannot read {self.path}: this machine's Python has no module {exc.name}; use a .tar or .tgz archive",
                file=self.path,
            ) from exc
        return self._stream

    def _zip_members(self) -> Iterator[Entry]:
        import zipfile

        with zipfile.ZipFile(self._stream) as archive:
            for member in archive.infolist():
                path = self._plain_path(member.filename.rstrip("/"))
                mode = member.external_attr >> 16
                if stat.S_ISLNK(mode):
                    raise self._refusal(member.filename, f"its member {member.filename} is a link")
                if member.is_dir() or stat.S_ISDIR(mode):
                    continue
                if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                    raise self._refusal(member.filename, f"its member {member.filename} is no plain file")
                if member.flag_bits & 1:
                    raise self._refusal(member.filename, f"its member {member.filename} is encrypted")
                yield Entry(path, member.file_size, bool(mode & 0o111), _zip_pieces(archive, member))

    def _plain_path(self, name: str) -> str:
        parts = name.split("/")
        if name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
            raise self._refusal(name, f"its member {name} points outside of the archive")
        return "/".join(part for part in parts if part not in ("", "."))

    def _guarded(self, pieces: Pieces) -> Pieces:
        def read() -> Iterator[bytes]:
            stream = pieces()
            while True:
                with self._damage():
                    piece = next(stream, b"")
                if not piece:
                    return
                yield piece

        return read

    def _damage(self) -> _Damage:
        return _Damage(self.path)

    def _refusal(self, member: str, reason: str) -> NodenetError:
        return NodenetError(f"Cannot take plugins from {self.path}: {reason}", member=member, file=self.path)


class _Meter:
    """A stream that ends in an error when more comes than was announced.

    A few bytes of a compressed archive can stand for a header of gigabytes, which tarfile would read into memory.
    """

    def __init__(self, stream: Readable, excess: NodenetError) -> None:
        self._stream = stream
        self._excess = excess
        self._left = _MOST_BETWEEN

    def announce(self, size: int) -> None:
        self._left = size + _MOST_BETWEEN

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise self._excess
        return data


class _Damage:
    """Turns what the readers of the standard library raise for a damaged archive into one clear error."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if exc is None or isinstance(exc, NodenetError):
            return
        import zlib
        from tarfile import TarError
        from zipfile import BadZipFile

        # lzma.LZMAError is told by its name: the module may be missing.
        expected = (TarError, BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)
        if isinstance(exc, expected) or type(exc).__name__ == "LZMAError":
            raise NodenetError(
                f"Cannot read archive {self._path}: it is damaged or incomplete ({exc})", file=self._path
            ) from exc


def open_source(path: str) -> ArchiveSource | DirectorySource:
    """Open an archive or a directory as a source of plugins; close() it afterwards.

    Errors: NodenetError, with the fact ``src_missing`` if there is nothing of that name.
    """
    try:
        return DirectorySource(path) if os.path.isdir(path) else ArchiveSource(path)
    except FileNotFoundError as exc:
        raise NodenetError(
            f"Cannot read {path} on this node: there is no such file; put it there, or set remote_src to false if it "
            "is on the controller (roles: plugin_binaries_remote_src)",
            file=path,
            src_missing=True,
        ) from exc
    except OSError as exc:
        raise NodenetError(f"Cannot read {path} on this node: {exc.strerror}", file=path) from exc


def digest_of_stream(stream: BinaryIO, algorithm: str = "sha256") -> str:
    """Return the hex digest of the whole file."""
    stream.seek(0)
    digest = hashlib.new(algorithm)
    for piece in _pieces(stream):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(stream: Readable) -> Iterator[bytes]:
    while True:
        piece = stream.read(PIECE)
        if not piece:
            return
        yield piece


def _tar_pieces(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Pieces:
    def read() -> Iterator[bytes]:
        stream = archive.extractfile(member)
        return _pieces(stream) if stream else iter(())

    return read


def _zip_pieces(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Pieces:
    def read() -> Iterator[bytes]:
        with archive.open(member) as stream:
            yield from _pieces(stream)

    return read
