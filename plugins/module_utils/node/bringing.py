# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Doing what prerequisites.py has planned: modules are loaded and settings written while the drop-ins wait complete
beside their places; only then these take their names."""

from __future__ import annotations

import contextlib
import os

from ..cni.errors import NodenetError
from . import daemons, files, sysctls
from .prerequisites import MODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .prerequisites import Plan
    from .survey import Places


def carry_out(plan: Plan, places: Places) -> None:
    """Do what was planned. Errors: NodenetError; unless a running daemon refuses or a rename fails, no file was changed
    then, and settings are as they were. Modules that were loaded by then stay."""
    with contextlib.ExitStack() as stack:
        staged = _prepare(plan, places, stack)
        for item in staged:
            _try("write", item.path, item.commit)
    if plan.reload_pid:
        daemons.nm_reload(plan.reload_pid)  # at once: a run that is killed here would never do it again
    for one in plan.drop_ins:
        if one.action == "removed":
            _try("remove", one.path, files.remove_file, one.path)
    for folder in sorted({os.path.dirname(item.path) for item in staged}):
        _try("write", folder, files.sync_directory, folder)
    for what in plan.bind:
        places.firewalld.bind(what)


def _prepare(plan: Plan, places: Places, stack: contextlib.ExitStack) -> list[files.StagedFile]:
    """Do all but the renames, or nothing."""
    staged: list[files.StagedFile] = []
    created: list[str] = []
    written: list[dict[str, Any]] = []
    try:
        for one in plan.drop_ins:
            if one.action in ("created", "replaced") and one.after is not None:
                folder = os.path.dirname(one.path)
                created += _try("write", one.path, files.make_directory, folder)
                files.sweep_temporary(folder)
                staged.append(_try("write", one.path, files.stage_file, one.path, one.after, MODE))
                stack.enter_context(staged[-1])
        for row in plan.directories:
            if row["action"] == "created":
                created += _try("create", row["path"], files.make_directory, row["path"], int(row["mode"], 8))
        for row in plan.modules:
            if row["action"] == "loaded":
                places.kernel.load(row["name"])
        for row in plan.sysctls:
            if row["action"] == "set":
                written.append(row)
                _set(places, row)
    except BaseException:
        for row in reversed(written):
            if row["before"] is not None:
                with contextlib.suppress(OSError):
                    places.live.set(sysctls.parse_key(row["name"]), row["before"])
        for item in staged:
            item.discard()
        files.remove_directories(created)
        raise
    return staged


def _set(places: Places, row: dict[str, Any]) -> None:
    key = sysctls.parse_key(row["name"])
    try:
        places.live.set(key, row["value"])
        got = places.live.get(key)
        reason = "" if got == row["value"] else f"the kernel made {got!r} of it"
    except OSError as exc:
        reason = exc.strerror or str(exc)
    if reason:
        raise NodenetError(f"Cannot set {row['name']} to {row['value']} on this node: {reason}", sysctl=row["name"])


def _try(verb: str, path: str, function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except OSError as exc:
        raise NodenetError(f"Cannot {verb} {path} on this node: {exc.strerror or exc}", file=path) from exc
