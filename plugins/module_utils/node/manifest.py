# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of the plugins that we installed: ``<state_dir>/plugin_binaries.json``.

It says which files of a bin directory are ours to remove (``plugins``: those that we wrote, and no others), what an
archive holds, so that the same archive need not be unpacked, nor even be there, to see that everything is in place,
and what plugins answered when they were asked, so that they need not be asked again::

    {"version": 1, "bin_dirs": {"/opt/cni/bin": {
        "plugins": {"bridge": {"sha256": ..., "source": "cni-plugins-linux-amd64-v1.5.1.tgz", "archive": <its sha256>}},
        "found": {"ptp": {"sha256": ..., "archive": ...}},   # in place as wanted before we came: never ours to remove
        "archives": {<sha256>: {"source": ..., "files": [<offers.Offer as a dict>]}},
        "versions": {<sha256 of a plugin>: {"release": "v1.5.1", "cni_versions": [...]}},
        "previous": {"bridge": <an entry as previous.py makes it>},  # what the last new version took the place of
        "pending": ["bridge"]}}}  # names that a run is about to change, or was when it was killed
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time

from ..cni.errors import NodenetError
from . import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

VERSION = 1
_LOCK_TIMEOUT_S = 30.0


class Manifest:
    """The part of the record that belongs to one bin directory: ``plugins``, ``found``, ``archives``, ``versions``,
    ``previous`` and ``pending``.

    All are plain dicts and a list, to be changed in place; save() writes them.
    """

    def __init__(self, state_dir: str, bin_dir: str) -> None:
        self.path = os.path.join(state_dir, "plugin_binaries.json")
        self._state_dir = state_dir
        self._key = os.path.realpath(bin_dir)
        self._document: dict[str, Any] = {}
        self.plugins: dict[str, dict[str, Any]] = {}
        self.found: dict[str, dict[str, Any]] = {}
        self.archives: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, dict[str, Any]] = {}
        self.previous: dict[str, dict[str, Any]] = {}
        self.pending: list[str] = []
        self._load()

    def _load(self) -> None:
        self._document = {"version": VERSION, "bin_dirs": {}}
        try:
            with open(self.path, encoding="utf-8") as stream:
                document = json.load(stream)
            if document["version"] != VERSION:
                raise self._refusal(f"it has version {document['version']}, this release knows {VERSION}")
            own = document["bin_dirs"].get(self._key)
            if own is not None:
                self.plugins, self.found = dict(own["plugins"]), dict(own["found"])
                self.archives, self.versions = dict(own["archives"]), dict(own["versions"])
                self.previous, self.pending = dict(own.get("previous", {})), list(own.get("pending", []))
            self._document = document
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as exc:
            raise self._refusal(exc.strerror or str(exc)) from exc
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise self._refusal("it is not what this collection wrote; move it away to start anew") from exc

    def forget(self, plugins: Iterable[str], found: Iterable[str] = (), previous: Iterable[str] = ()) -> None:
        """Drop these names of ours, of those that were there before us, and of what is kept."""
        for name in plugins:
            self.plugins.pop(name, None)
        for name in found:
            self.found.pop(name, None)
        for name in previous:
            self.previous.pop(name, None)

    def drifted(self, name: str, sha256: str | None) -> bool:
        """Tell whether a plugin that we wrote is not any more as we left it; sha256: of what is there, None if gone.

        What a killed run left as it was is not somebody's change.
        """
        return name in self.plugins and name not in self.pending and self.plugins[name]["sha256"] != sha256

    def knows_as_ours(self, name: str, sha256: str) -> bool:
        """Tell whether a file with this content can only be one that we wrote, also if a run of ours was killed."""
        entry = self.previous.get(name)
        known = {self.plugins.get(name, {}).get("sha256")}
        if entry and name in self.pending:
            known |= {entry["written"], (entry["record"] or {}).get("sha256")}
        return sha256 in known

    def kept_digests(self) -> set[str]:
        """Return the digests of the former plugins that are kept, of all bin directories."""
        kept = set()
        for own in self._updated()["bin_dirs"].values():
            for entry in own.get("previous", {}).values():
                kept.add((entry["before"] or {}).get("sha256", ""))
        return kept

    def kept_code(self) -> frozenset[str]:
        """Return the versions of embedded plugins' code that the kept ones need."""
        found = ((entry["before"] or {}).get("embedded") for entry in self.previous.values())
        return frozenset(version for version in found if version)

    def differs(self) -> bool:
        """Tell whether save() would write anything."""
        return self._updated() != self._document

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Save the record after the block; what prevents that shows before the block. Call it within updating().

        Errors: NodenetError; nothing is written if the block fails.
        """
        document = self._updated()
        if document == self._document:
            yield
            return
        text = json.dumps(document, indent=1, sort_keys=True) + "\n"
        try:
            staged = files.stage_file(self.path, text.encode("utf-8"), 0o644)
        except OSError as exc:
            raise _unusable(self._state_dir, exc) from exc
        with staged:
            yield
            try:
                staged.commit()
                files.sync_directory(self._state_dir)
            except OSError as exc:
                raise _unusable(self._state_dir, exc) from exc
        self._document = document

    def save(self) -> None:
        """Write the record if it differs from the file. Call it within updating(). Errors: NodenetError."""
        with self.saving():
            pass

    def _updated(self) -> dict[str, Any]:
        bin_dirs = dict(self._document["bin_dirs"])
        entries = [*self.plugins.values(), *self.found.values()]
        if entries or self.previous:
            former = [entry["record"] or entry["before"] or {} for entry in self.previous.values()]
            archives = {entry["archive"] for entry in entries} | {entry.get("archive") for entry in former}
            digests = {entry["sha256"] for entry in entries} | {entry.get("sha256") for entry in former}
            bin_dirs[self._key] = {
                "plugins": self.plugins,
                "found": self.found,
                "archives": {digest: archive for digest, archive in self.archives.items() if digest in archives},
                "versions": {digest: answer for digest, answer in self.versions.items() if digest in digests},
                "previous": self.previous,
                "pending": self.pending,
            }
        else:
            bin_dirs.pop(self._key, None)
        return {"version": VERSION, "bin_dirs": bin_dirs}

    def _refusal(self, reason: str) -> NodenetError:
        return NodenetError(f"Cannot read the record of installed plugins in {self.path}: {reason}", file=self.path)


@contextlib.contextmanager
def updating(state_dir: str, bin_dir: str) -> Iterator[Manifest]:
    """Give the record as it is now, to be saved before the block ends, with no other run of ours in between.

    Creates the state directory. Errors: NodenetError.
    """
    created: list[str] = []
    try:
        created = files.make_directory(state_dir)
        fd = os.open(_lock_path(state_dir), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        files.remove_directories(created)
        raise _unusable(state_dir, exc) from exc
    try:
        _lock(fd, state_dir)
        files.sweep_temporary(state_dir)
        yield Manifest(state_dir, bin_dir)
    finally:
        os.close(fd)


def probe(state_dir: str) -> None:
    """See whether the record can be kept there, without leaving a trace. Errors: NodenetError."""
    try:
        files.check_writable(state_dir)
        with contextlib.suppress(FileNotFoundError):
            os.close(os.open(_lock_path(state_dir), os.O_RDWR | os.O_CLOEXEC))
    except OSError as exc:
        raise _unusable(state_dir, exc) from exc


def _lock_path(state_dir: str) -> str:
    return os.path.join(state_dir, "plugin_binaries.lock")


def _unusable(state_dir: str, exc: OSError) -> NodenetError:
    reason = exc.strerror or str(exc)
    if exc.filename not in (None, state_dir):
        reason += f" ({exc.filename})"
    return NodenetError(f"Cannot keep the record of installed plugins in {state_dir}: {reason}", state_dir=state_dir)


def _lock(fd: int, state_dir: str) -> None:
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as exc:
            if exc.errno not in (errno.EAGAIN, errno.EACCES):
                raise _unusable(state_dir, exc) from exc
        if time.monotonic() > deadline:
            raise NodenetError(
                f"Cannot keep the record of installed plugins in {state_dir}: another run has held its lock for "
                f"{_LOCK_TIMEOUT_S:g} s",
                state_dir=state_dir,
            )
        time.sleep(0.05)
