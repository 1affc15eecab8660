# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writing into a bin directory: everything waits complete, and the record is kept, before the first plugin changes."""

from __future__ import annotations

import contextlib
import os

from ..cni.errors import NodenetError
from . import files, staged_link
from .bin_dir import ADJUSTED, MODE, REMOVED, WRITES, Present

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Protocol

    class Contents(Protocol):
        def contents(self, names: Sequence[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
            """Yield (name, pieces) of these plugins."""


def write(
    bin_dir: str,
    actions: Sequence[tuple[str, str]],
    supply: Contents,
    owner: tuple[int, int] | None,
    recording: Callable[[], AbstractContextManager[None]],
    looks: Mapping[str, Present] | None = None,
) -> None:
    """Do what was planned: write the new plugins from the supply, set mode and owner of others, remove the last ones.

    owner: (uid, gid) that the adjusted files get, None to leave them.
    looks: what differs from plain files of mode 0755 that belong to who writes them, by name.
    recording: entered, to write the record, once all new files wait complete beside the old ones; they take their names
    within it. So a run that is killed may leave a plugin of ours unwritten, never one unrecorded.
    Errors: NodenetError; nothing was changed, unless the disk fails in the middle of the renames.
    """
    new = [name for name, action in actions if action in WRITES]
    gone = [name for name, action in actions if action == REMOVED]
    with _staged(bin_dir, new, supply, looks or {}) as staged, recording():
        for name, action in actions:
            if action == ADJUSTED:
                _adjust(bin_dir, name, owner)
        for item in staged:
            try:
                item.commit()
            except OSError as exc:
                raise _failure("install", item.path, exc) from exc
        _unlink(bin_dir, gone)
        if staged or gone:
            files.sync_directory(bin_dir)


def probe(bin_dir: str) -> None:
    """See whether plugins can be written there, without leaving a trace. Errors: NodenetError."""
    try:
        files.check_writable(bin_dir)
    except OSError as exc:
        raise _unusable(bin_dir, exc) from exc


def remove(bin_dir: str, names: Sequence[str]) -> None:
    """Remove these plugins; links are removed, not what they lead to. Errors: NodenetError."""
    _unlink(bin_dir, names)
    if names:
        files.sync_directory(bin_dir)


def _unlink(bin_dir: str, names: Sequence[str]) -> None:
    for name in names:
        path = os.path.join(bin_dir, name)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        except OSError as exc:
            raise _failure("remove", path, exc) from exc


@contextlib.contextmanager
def _staged(
    bin_dir: str, names: Sequence[str], supply: Contents, looks: Mapping[str, Present]
) -> Iterator[list[files.StagedFile | staged_link.StagedLink]]:
    """Give the new files, complete under their temporary names; what was not committed goes, as does a new bin_dir."""
    staged: list[files.StagedFile | staged_link.StagedLink] = []
    if not names:
        yield staged
        return
    try:
        created = files.make_directory(bin_dir)
    except OSError as exc:
        raise _unusable(bin_dir, exc) from exc
    try:
        files.sweep_temporary(bin_dir)
        staged_link.sweep_links(bin_dir)
        links = [name for name in names if name in looks and looks[name].kind == "link"]
        for name in links:
            path = os.path.join(bin_dir, name)
            try:
                staged.append(staged_link.StagedLink(path, looks[name].target))
            except OSError as exc:
                raise _failure("install", path, exc, "; nothing was changed") from exc
        for name, pieces in supply.contents([name for name in names if name not in links]):
            path = os.path.join(bin_dir, name)
            mode, owner = (looks[name].mode, looks[name].owner) if name in looks else (MODE, None)
            try:
                staged.append(files.stage_file(path, pieces, mode, owner))
            except OSError as exc:
                raise _failure("install", path, exc, "; nothing was changed") from exc
        yield staged
    except BaseException:
        for item in staged:
            item.discard()
        files.remove_directories(created)
        raise


def _adjust(bin_dir: str, name: str, owner: tuple[int, int] | None) -> None:
    path = os.path.join(bin_dir, name)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if owner is not None:
                os.fchown(fd, *owner)
            os.fchmod(fd, MODE)
        finally:
            os.close(fd)
    except OSError as exc:
        raise _failure("set mode and owner of", path, exc) from exc


def _unusable(bin_dir: str, exc: OSError) -> NodenetError:
    verb = "write plugins into" if os.path.isdir(bin_dir) else "create"
    reason = exc.strerror if exc.filename == bin_dir else f"{exc.strerror} ({exc.filename})"
    return NodenetError(f"Cannot {verb} {bin_dir}: {reason}", bin_dir=bin_dir)


def _failure(verb: str, path: str, exc: OSError, claim: str = "") -> NodenetError:
    bin_dir, name = os.path.split(path)
    return NodenetError(f"Cannot {verb} {name} in {bin_dir}: {exc.strerror or exc}{claim}", file=path)
