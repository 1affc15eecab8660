# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carry a plan of conflists out: every file whole and by rename inside of the directory, removals last."""

from __future__ import annotations

import os
import stat
import time

from ..cni.errors import NodenetError
from . import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .conflists import Plan


def apply_plan(plan: Plan, backup_dir: str = "") -> list[str]:
    """Carry a plan out.

    All new files and backups are complete on disk before the first file gets its name, so a full or read-only file
    system changes nothing and leaves nothing behind. If one file can then not be replaced or removed, for example since
    it is immutable, the others are put back.

    :param backup_dir: where to keep what is replaced or removed, never in the conf dir
    :returns: paths of the backups
    :raises NodenetError: names the file that cannot be written, kept or removed, and what could not be put back
    """
    if not plan.write and not plan.remove:
        return []
    made = _Made()
    staged: list[files.StagedFile] = []
    try:
        _stage(plan, made, staged)
        if backup_dir:
            _back_up(plan, backup_dir, made)
        for ready in staged:
            made.change(f"write conflist {os.path.basename(ready.path)} in {plan.conf_dir}", ready.path, ready.commit)
        if staged:
            files.sync_directory(plan.conf_dir)
        for name in plan.remove:
            path = os.path.join(plan.conf_dir, name)
            made.change(f"remove conflist {name} in {plan.conf_dir}", path, files.remove_file, path)
    except BaseException as fault:
        for ready in staged:
            ready.discard()
        left = made.undo()
        if left and isinstance(fault, NodenetError):
            names = sorted(map(os.path.basename, left))
            text = f"{fault}; could not put back what {', '.join(names)} was before"
            raise NodenetError(text, **dict(fault.facts, not_put_back=names)) from fault
        raise
    return made.backups


class _Before:
    """What stood in the place of a file. Errors: OSError."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._link = os.readlink(path) if os.path.islink(path) else ""
        self._data = None if self._link else _read(path)
        self._stat = None if self._data is None else os.stat(path)

    def put_back(self) -> None:
        if self._data is not None and self._stat is not None:
            owner = (self._stat.st_uid, self._stat.st_gid)
            files.replace_file(self.path, self._data, stat.S_IMODE(self._stat.st_mode), owner)
            return
        files.remove_file(self.path)
        if self._link:
            os.symlink(self._link, self.path)
            files.sync_directory(os.path.dirname(self.path))


class _Made:
    """What was done of a plan: ``backups``, directories, and changes of the conf dir."""

    def __init__(self) -> None:
        self.backups: list[str] = []
        self._directories: list[str] = []
        self._changed: list[_Before] = []

    def change(self, what: str, path: str, action: Callable[..., object], *arguments: object) -> None:
        """Do something to a file, and note what stood there before."""
        before = _try(what, _Before, path)
        _try(what, action, *arguments)
        self._changed.append(before)

    def directory(self, what: str, path: str, mode: int) -> None:
        missing = []
        current = os.path.abspath(path)
        while not os.path.lexists(current):
            missing.append(current)
            current = os.path.dirname(current)
        self._directories += reversed(missing)
        _try(what, files.make_directory, path, mode)

    def undo(self) -> list[str]:
        """Take all of it back; return the paths for which that was not possible, of which the backups stay."""
        left = []
        for before in reversed(self._changed):
            try:
                before.put_back()
            except OSError:
                left.append(before.path)
        if not left:
            for path in self.backups:
                _quietly(os.unlink, path)
            for path in reversed(self._directories):
                _quietly(os.rmdir, path)
        return left


def _stage(plan: Plan, made: _Made, staged: list[files.StagedFile]) -> None:
    if plan.write:
        made.directory(f"write conflist {plan.write[0].name} in {plan.conf_dir}", plan.conf_dir, 0o755)
    _try(f"change conf dir {plan.conf_dir}", files.sweep_temporary, plan.conf_dir)
    for one in plan.write:
        path = os.path.join(plan.conf_dir, one.name)
        what = f"write conflist {one.name} in {plan.conf_dir}"
        staged.append(_try(what, files.stage_file, path, one.data or b"", plan.mode))


def _back_up(plan: Plan, backup_dir: str, made: _Made) -> None:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for name in [one.name for one in plan.write] + plan.remove:
        what = f"keep a copy of {name} in backup_dir {backup_dir}"
        data = _try(what, _read, os.path.join(plan.conf_dir, name))
        if data is None:
            continue
        made.directory(what, backup_dir, 0o700)
        path = os.path.join(backup_dir, f"{name}.{stamp}")
        number = 1
        while os.path.lexists(path):
            number += 1
            path = os.path.join(backup_dir, f"{name}.{stamp}.{number}")
        made.backups.append(path)
        _try(what, files.replace_file, path, data, 0o600)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def _try(what: str, action: Callable[..., Any], *arguments: object) -> Any:
    """Return what *action* returns; an OSError becomes one sentence about *what* could not be done."""
    try:
        return action(*arguments)
    except OSError as fault:
        raise NodenetError(f"Cannot {what}: {fault.strerror or fault}", errno=fault.errno) from fault


def _quietly(action: Callable[[str], None], path: str) -> None:
    try:
        action(path)
    except OSError:
        pass  # somebody else put something into the directory, or what we report stops this as well
