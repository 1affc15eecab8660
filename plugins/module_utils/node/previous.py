# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plugins before the last new version: ``<state_dir>/previous/<sha256>``, with an entry for each in the record.

    {"before": {"kind": "file", "sha256": ..., "mode": 493, "owner": [0, 0], "embedded": ""},
               # or {"kind": "link", "target": ...}, or null: there was none
     "record": <what the record said of it, null if it was not ours>,
     "written": <sha256 of what took its place, null if nothing did>,
     "source": "cni-plugins-linux-amd64-v1.6.0.tgz"}  # of what took its place

Only the last run that brought something new is kept, as one whole. A run that repairs what it finds spoilt is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os

from ..cni.errors import NodenetError
from . import archive, files, manifest
from .bin_dir import Present

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any


def entries(
    record: manifest.Manifest,
    present: Mapping[str, Present],
    written: Mapping[str, str | None],
    source: Mapping[str, str],
) -> dict[str, dict[str, Any]]:
    """Return the entries of what is about to be replaced or removed; written: the digest that comes, by name."""
    return {
        name: {
            "before": present[name].as_dict() if name in present else None,
            "record": record.plugins.get(name),
            "written": digest,
            "source": source[name],
        }
        for name, digest in written.items()
    }


def keep(state_dir: str, bin_dir: str, kept: Mapping[str, dict[str, Any]]) -> Callable[[], None]:
    """Copy these files; returns what takes the copies away again. Errors: NodenetError; nothing was changed."""
    store = _store(state_dir)
    added: list[str] = []
    created: list[str] = []

    def undo() -> None:
        for target in added:
            with contextlib.suppress(OSError):
                os.unlink(target)
        files.remove_directories(created)

    try:
        for name, entry in sorted(kept.items()):
            before = entry["before"]
            if not before or before["kind"] != "file":
                continue
            target = os.path.join(store, before["sha256"])
            if _digest(target) == before["sha256"]:
                continue
            path = os.path.join(bin_dir, name)
            try:
                created += files.make_directory(store, 0o700)
                files.replace_file(target, _verified(path, before["sha256"]), 0o600)
            except OSError as exc:
                raise NodenetError(
                    f"Cannot keep the present {name} in {store}: {exc.strerror or exc}; nothing was changed, make room "
                    "there or set keep_previous to false (roles: plugin_binaries_keep_previous)",
                    file=path,
                ) from exc
            added.append(target)
    except BaseException:
        undo()
        raise
    return undo


def sweep(state_dir: str, bin_dir: str, record: manifest.Manifest) -> None:
    """Remove the kept files that no entry names any more, also those that a killed run left; record: as it is now."""
    if not _orphans(state_dir, record):
        return
    # Another run may be about to record one of them. What cannot be done now is tried again by the next run.
    with contextlib.suppress(NodenetError, OSError), manifest.updating(state_dir, bin_dir) as current:
        store = _store(state_dir)
        files.sweep_temporary(store)
        for name in _orphans(state_dir, current):
            if not name.startswith(files.TEMPORARY_PREFIX):
                os.unlink(os.path.join(store, name))
        if not os.listdir(store):
            os.rmdir(store)


def _orphans(state_dir: str, record: manifest.Manifest) -> list[str]:
    try:
        names = os.listdir(_store(state_dir))
    except OSError:
        return []
    wanted = record.kept_digests()
    return [name for name in names if name not in wanted]


class Store:
    """The kept files as a supply of plugins: what bin_write.write() takes its content from."""

    def __init__(self, state_dir: str, bin_dir: str, kept: Mapping[str, dict[str, Any]]) -> None:
        self._store = _store(state_dir)
        self._bin_dir = bin_dir
        self._kept = kept

    def verify(self, names: Sequence[str]) -> None:
        """See that all of these are there and whole. Errors: NodenetError."""
        for name in names:
            before = self._kept[name]["before"]
            if before["kind"] != "file":
                continue
            path = os.path.join(self._store, before["sha256"])
            if _digest(path) != before["sha256"]:
                raise NodenetError(
                    f"Cannot put back {name} in {self._bin_dir}: what was kept of it in {path} is gone or damaged; "
                    "nothing was changed, install the version that is wanted from its archive",
                    plugin=name,
                    file=path,
                )

    def contents(self, names: Sequence[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Yield (name, pieces) of these plugins, verified."""
        for name in names:
            digest = self._kept[name]["before"]["sha256"]
            yield name, _verified(os.path.join(self._store, digest), digest)


def _store(state_dir: str) -> str:
    return os.path.join(state_dir, "previous")


def _verified(path: str, wanted: str) -> Iterator[bytes]:
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while True:
            piece = stream.read(archive.PIECE)
            if not piece:
                break
            digest.update(piece)
            yield piece
    if digest.hexdigest() != wanted:
        raise NodenetError(f"Cannot use {path}: it changed while it was read", file=path)


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            return archive.digest_of_stream(stream)
    except OSError:
        return ""
