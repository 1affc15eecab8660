# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Multus's own log: to standard error and to a file of its own, which is rotated (multus spec 13, M15)."""

from __future__ import annotations

import posix
import time

from ..cni import folders, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from .config import Config

LEVELS = ("panic", "error", "verbose", "debug")
_APPEND = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC
_MEGABYTE = 1 << 20
_DAY = 86400
_MAX_SIZE, _MAX_BACKUPS, _MAX_AGE = 100, 5, 5


def write_stderr(text: str) -> None:
    """Write to this process's standard error; what cannot be written is lost."""
    try:
        posix.write(2, text.encode("utf-8", "surrogateescape"))
    except OSError:
        pass


class Journal:
    """The log of one call.

    :param tell: writes a text to standard error
    """

    def __init__(self, tell: Callable[[str], None] = write_stderr) -> None:
        self.tell = tell
        self._level = 0
        self._to_stderr = True
        self._file = ""
        self._options: dict[str, int] = {}
        self._compress = True

    def configure(self, config: Config) -> None:
        """Take level, file and options from the configuration."""
        self._to_stderr = config.log_to_stderr
        self._file = config.log_file
        options = config.log_options
        self._options = {key: options[key] for key in ("maxAge", "maxSize", "maxBackups") if key in options}
        self._compress = options.get("compress", True)
        level = config.log_level.lower()
        if level in LEVELS:
            self._level = LEVELS.index(level)
        elif level:
            self.tell(f"multus logging: cannot set logging level to {config.log_level}\n")

    def error(self, text: str) -> None:
        self._log("error", text)

    def verbose(self, text: str) -> None:
        self._log("verbose", text)

    def wants(self, level: str) -> bool:
        """Tell whether lines of a level are written anywhere."""
        return LEVELS.index(level) <= self._level

    def note(self, text: str) -> None:
        """Say what an operator has to know though the call succeeds: at every level, always to standard error."""
        line = _line("error", text)
        self.tell(line)
        if self._file:
            self._append(line)

    def _log(self, level: str, text: str) -> None:
        if not self.wants(level):
            return
        line = _line(level, text)
        if self._to_stderr:
            self.tell(line)
        if self._file:
            self._append(line)

    def _append(self, line: str) -> None:
        data = line.encode("utf-8", "surrogateescape")
        try:
            self._rotate(len(data))
        except OSError:
            pass  # another call has just done it
        try:
            fd = self._open()
            try:
                posix.write(fd, data)
            finally:
                paths.close(fd)
        except OSError:
            pass  # a log that cannot be written must not decide what becomes of a pod

    def _open(self) -> int:
        try:
            return posix.open(self._file, _APPEND, 0o600)
        except FileNotFoundError:
            folders.make(paths.parent(self._file))
            return posix.open(self._file, _APPEND, 0o600)

    def _rotate(self, more: int) -> None:
        try:
            size = posix.stat(self._file).st_size
        except OSError:
            return
        if size + more <= (self._options.get("maxSize") or _MAX_SIZE) * _MEGABYTE:
            return
        folder, name = paths.parent(self._file), self._file.rpartition("/")[2]
        stem, dot, suffix = name.rpartition(".")
        stem, suffix = (stem, dot + suffix) if stem else (name, "")
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(now)) + ".%03d" % (now % 1 * 1000)
        backup = f"{folder}/{stem}-{stamp}{suffix}"
        posix.rename(self._file, backup)
        if self._compress:
            _compress(backup)
        self._sweep(folder, stem + "-", suffix, now)

    def _sweep(self, folder: str, prefix: str, suffix: str, now: float) -> None:
        """Remove the oldest of the rotated files, those of this log's name only."""
        backups = sorted(
            one
            for one in posix.listdir(folder)
            if one.startswith(prefix + "2") and one.endswith((suffix, suffix + ".gz")) and "T" in one[len(prefix) :]
        )
        most = self._options.get("maxBackups", _MAX_BACKUPS)
        age = self._options.get("maxAge", _MAX_AGE)
        for number, one in enumerate(reversed(backups)):
            path = f"{folder}/{one}"
            if (most and number >= most) or (age and now - posix.stat(path).st_mtime > age * _DAY):
                posix.unlink(path)


def _line(level: str, text: str) -> str:
    now = time.localtime()
    offset = time.strftime("%z", now)
    zone = "Z" if offset in ("+0000", "") else f"{offset[:3]}:{offset[3:]}"
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', now)}{zone} [{level}] {text}\n"


def _compress(path: str) -> None:
    import gzip
    import shutil

    with open(path, "rb") as source, open(path + ".gz", "xb") as raw:
        posix.fchmod(raw.fileno(), 0o600)
        with gzip.GzipFile(fileobj=raw, mode="wb") as target:
            shutil.copyfileobj(source, target)
    posix.unlink(path)
