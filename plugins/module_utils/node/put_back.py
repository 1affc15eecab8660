# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Putting the plugins back that the last new version took the place of: state ``previous`` of plugin_binaries."""

from __future__ import annotations

import contextlib
import os

from ..cni.errors import NodenetError
from . import bin_checks, bin_report, bin_write, embedded, executables, findings, manifest, offers, previous
from .bin_dir import KEPT, REMOVED, WRITES, Present, look, plan_return

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


def put_back(bin_dir: str, state_dir: str, include: Sequence[str] = (), check_mode: bool = False) -> dict[str, Any]:
    """Make the plugins again what they were before the last run that brought something new, as previous.py keeps it.

    What that run installed and was not there before goes. Files that somebody changed since stay.
    include: only these, whatever they hold now.
    Returns the module's result as binaries.install() does. Errors: NodenetError, OSError: nothing was changed.
    """
    offers.check_names(include, "include")
    record = manifest.Manifest(state_dir, bin_dir)
    kept = _chosen(record, include, bin_dir, state_dir)
    before = {name: Present.from_dict(entry["before"]) for name, entry in kept.items() if entry["before"]}
    running = executables.named_versions(bin_dir)
    present = look(bin_dir, sorted(kept))
    actions = plan_return(kept, include, present)
    new = [name for name, action in actions if action in WRITES]
    staying = [name for name, action in actions if action == KEPT]
    removed = [name for name, action in actions if action == REMOVED]
    changes = [name for name, action in actions if name in removed or action in WRITES]
    bin_checks.place(bin_dir, changes, present)
    store = previous.Store(state_dir, bin_dir, kept)
    store.verify(new)
    _check_code(bin_dir, {name: before[name] for name in new})
    looks = before if os.geteuid() == 0 else {name: _owned(one) for name, one in before.items()}
    bin_checks.changeable(bin_dir, changes, present)
    if changes:
        manifest.probe(state_dir)
        bin_write.probe(bin_dir)

        @contextlib.contextmanager
        def recording() -> Iterator[None]:
            with manifest.updating(state_dir, bin_dir) as current:
                if current.previous != record.previous:
                    raise NodenetError(f"Cannot put back plugins in {bin_dir}: another task installs some; try again")
                _note(current, kept, staying + removed)
                current.pending = list(changes)
                current.save()
                yield
                _note(current, kept, staying)
                current.pending = []
                with contextlib.suppress(NodenetError):  # all is in place; the next run comes to the same
                    current.save()

        if not check_mode:
            bin_write.write(bin_dir, actions, store, None, recording, looks)
    elif not check_mode:
        _note(record, kept, staying)
        if record.differs():  # a run that installed them was killed before it changed anything
            with contextlib.suppress(NodenetError), manifest.updating(state_dir, bin_dir) as current:
                _note(current, kept, staying)
                current.save()
    report = bin_report.Report(bin_dir, set(include), record.versions, absent=check_mode)
    plugins = [
        report.describe(
            name,
            action,
            (before[name] if action in WRITES else present[name]).sha256,
            bool((before[name] if action in WRITES else present[name]).embedded),
            action == KEPT or bin_report.drifted(record, present, name),
        )
        for name, action in actions
    ]
    facts = [
        {"kind": "bin-changed-since", "where": os.path.join(bin_dir, name), "source": kept[name]["source"]}
        for name in staying
    ]
    if not check_mode:
        previous.sweep(state_dir, bin_dir, manifest.Manifest(state_dir, bin_dir))
        embedded.sweep(state_dir, bin_dir, running | record.kept_code())
    return {
        "changed": bool(changes),
        "bin_dir": bin_dir,
        "plugins": plugins,
        "removed": removed,
        "brought": [],
        "ignored": [],
        "findings": findings.from_facts(report.facts + facts),
        "diff": bin_report.diff(bin_dir, actions, present, looks),
    }


def _chosen(
    record: manifest.Manifest, include: Sequence[str], bin_dir: str, state_dir: str
) -> dict[str, dict[str, Any]]:
    if not record.previous:
        raise NodenetError(
            f"Cannot put back plugins in {bin_dir}: nothing is kept of an earlier version in {state_dir}",
            bin_dir=bin_dir,
        )
    for name in include:
        if name not in record.previous:
            raise NodenetError(
                f"Cannot put back {name} in {bin_dir}: the last new version changed only "
                + ", ".join(sorted(record.previous)),
                plugin=name,
            )
    return {name: entry for name, entry in record.previous.items() if not include or name in include}


def _note(record: manifest.Manifest, kept: dict[str, dict[str, Any]], staying: Sequence[str]) -> None:
    """Put into the record what it said of these before."""
    record.pending = [name for name in record.pending if name not in kept or name in staying]
    for name, entry in kept.items():
        if name in staying:
            continue
        was = entry["record"]
        if was is None or record.plugins.get(name, {}).get("sha256") != was["sha256"]:
            record.plugins.pop(name, None)
            if was:
                record.plugins[name] = was


def _check_code(bin_dir: str, launchers: dict[str, Present]) -> None:
    there = executables.versions(bin_dir)
    for name, one in sorted(launchers.items()):
        if one.embedded and one.embedded not in there:
            raise NodenetError(
                f"Cannot put back {name} in {bin_dir}: its code, version {one.embedded}, is not there any more",
                plugin=name,
            )


def _owned(one: Present) -> Present:
    """What a user who is not root can make of it."""
    return (
        one if one.kind == "link" else Present("file", one.sha256, one.mode, (os.geteuid(), os.getegid()), one.embedded)
    )
