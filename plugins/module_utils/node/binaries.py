# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plugin executables in a bin directory: installing and removing them, the work of module plugin_binaries.

Everything is verified before the first byte is written; all new files wait complete beside the old ones before the
first takes its name. Files of other products are never looked at, let alone changed.
"""

from __future__ import annotations

import contextlib
import os

from ..cni.errors import NodenetError
from . import bin_checks, bin_report, bin_write, embedded, executables, findings, manifest, offers, previous
from .bin_dir import KEPT, MODE, REMOVED, UNCHANGED, WRITES, Present, look, plan, plan_removal
from .checksum import file_digests
from .supply import Supply, open_supply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any


def install(
    bin_dir: str,
    state_dir: str,
    src: str | None = None,
    checksum: str | None = None,
    include: Sequence[str] = (),
    required: Sequence[str] = (),
    own: Sequence[str] = (),
    sources: str | None = None,
    file_checksums: Mapping[str, object] | None = None,
    keep_previous: bool = True,
    check_mode: bool = False,
) -> dict[str, Any]:
    """Make the plugins of *src* present in *bin_dir*, and see that the *required* ones are there.

    src: an archive or a directory on this node; without it only *required* is looked after.
    checksum: see checksum.wanted_digest; archives only. include: names to take; all plugins if empty.
    own: plugins to make of this collection's own code, whatever *src* has. sources: that code, from embedded.pack().
    file_checksums: see checksum.file_digests. keep_previous: whether what a new version takes the place of is kept.
    Returns the module's result; ``diff`` holds before and after. Errors: NodenetError, OSError: nothing was changed.
    """
    offers.check_names(include, "include")
    offers.check_names(required, "required")
    record = manifest.Manifest(state_dir, bin_dir)
    ours = embedded.Embedded(own, bin_dir, sources)
    supply = open_supply(src, bin_dir, checksum, include, record, own) if src else Supply("")
    try:
        outdated = supply.outdated(record, {*required, *own})
        supply.embed(ours.launchers)
        present = look(bin_dir, sorted({*supply.wanted, *required, *outdated}))
        bin_checks.required(required, supply, present, bin_dir)
        bin_checks.digests(file_digests(file_checksums or {}), supply, {*required} - {*supply.wanted}, own, bin_dir)
        bin_checks.place(bin_dir, sorted(supply.wanted), present)
        owner = (0, 0) if os.geteuid() == 0 else None
        wanted = {name: offer.sha256 for name, offer in supply.wanted.items()}
        actions = ours.complete(plan(wanted, present, owner), present)
        actions += plan_removal({name: record.plugins[name]["sha256"] for name in outdated}, (), present)
        staying = {name for name, action in actions if action == KEPT}
        gone = set(outdated) - staying
        brought: list[str] = []
        changes = [name for name, action in actions if action in WRITES or action == REMOVED]
        bin_checks.changeable(bin_dir, [name for name, action in actions if action not in (UNCHANGED, KEPT)], present)
        if changes:
            supply.need_content([name for name in changes if name in wanted])
            manifest.probe(state_dir)
            bin_write.probe(bin_dir)

        @contextlib.contextmanager
        def recording() -> Iterator[None]:
            with manifest.updating(state_dir, bin_dir) as current, contextlib.ExitStack() as stack:
                fresh = {name: wanted.get(name) for name in changes if _is_new(current, name, wanted.get(name))}
                finished = set(changes) & set(current.pending) & set(current.previous)  # a run before was killed
                if fresh:
                    named = {name: embedded.SOURCE if name in own else supply.source for name in fresh}
                    current.previous = previous.entries(current, present, fresh, named) if keep_previous else {}
                    stack.callback(previous.keep(state_dir, bin_dir, current.previous))
                _note(current, supply, actions, {}, own)
                current.pending = list(changes)
                with ours.installing():
                    current.save()
                    stack.pop_all()  # now the record speaks of the copies
                    yield
                brought.extend(sorted((set(fresh) | finished) & set(current.previous)))
                current.pending = []
                current.forget(gone)  # only now: a run that is killed leaves none behind that nothing speaks of
                with contextlib.suppress(NodenetError):  # all is in place; the next run comes to the same
                    current.save()

        if not check_mode:
            # Without a change there is nothing that must be recorded.
            bin_write.write(bin_dir, actions, supply, owner, recording if changes else contextlib.nullcontext)
    finally:
        supply.close()
    all_actions = sorted(actions + [(name, KEPT) for name in sorted(set(required) - set(wanted))])
    report = bin_report.Report(bin_dir, {*include, *required}, record.versions, absent=check_mode)
    plugins = [
        report.describe(
            name,
            action,
            wanted.get(name) or present[name].sha256,
            name in own or (name not in wanted and bool(present[name].embedded)),
            bin_report.drifted(record, present, name),
        )
        for name, action in all_actions
    ]
    report.facts += bin_report.drift_facts(bin_dir, record, present, [name for name, _action in all_actions], staying)
    if not check_mode:
        _remember(state_dir, bin_dir, supply, actions, report.answers, own, gone)
        settled = manifest.Manifest(state_dir, bin_dir)
        previous.sweep(state_dir, bin_dir, settled)
        ours.sweep(state_dir, settled.kept_code())
    uid_gid = owner or (os.geteuid(), os.getegid())
    after = {
        name: Present("file", digest, MODE, uid_gid, ours.version if name in own else "")
        for name, digest in wanted.items()
    }
    return {
        "changed": any(action not in (UNCHANGED, KEPT) for _name, action in actions),
        "bin_dir": bin_dir,
        "plugins": plugins,
        "removed": [name for name, action in actions if action == REMOVED],
        "brought": brought,
        "ignored": supply.ignored,
        "findings": findings.from_facts(report.facts),
        "diff": bin_report.diff(bin_dir, actions, present, after),
    }


def remove(
    bin_dir: str,
    state_dir: str,
    src: str | None = None,
    checksum: str | None = None,
    include: Sequence[str] = (),
    own: Sequence[str] = (),
    conf_dir: str | None = None,
    leaving: Sequence[str] = (),
    check_mode: bool = False,
) -> dict[str, Any]:
    """Remove from *bin_dir* what we installed and nobody changed since, or exactly the plugins in *include*.

    src: files that are identical to those of this source count as ours too, for plugins that something else unpacked.
    own: plugins that count as ours if they are made of this collection's code, whoever made them.
    conf_dir: what its networks need stays unless *include* names it, but for the networks *leaving*; None for nobody.
    What was kept of earlier versions goes too. Returns and errors as for install().
    """
    offers.check_names(include, "include")
    record = manifest.Manifest(state_dir, bin_dir)
    running = executables.named_versions(bin_dir)
    recorded = {name: plugin["sha256"] for name, plugin in record.plugins.items()}
    if src and not include:
        supply = open_supply(src, bin_dir, checksum, (), record)
        supply.close()
        recorded = dict({name: offer.sha256 for name, offer in supply.wanted.items()}, **recorded)
    present = look(bin_dir, sorted({*include, *recorded, *own}))
    for name in own:
        if name in present and present[name].embedded:
            recorded.setdefault(name, present[name].sha256)
    needed = _needed(conf_dir, leaving) if conf_dir and not include else {}
    actions = plan_removal(recorded, include, present, needed)
    gone = [name for name, action in actions if action == REMOVED]
    staying = [name for name, action in actions if action == KEPT]
    for name in gone:
        if present[name].kind == "directory":
            raise NodenetError(f"Cannot remove {name} from {bin_dir}: it is a directory, not a plugin", plugin=name)
    ours = set(record.plugins) & (set(gone) | (set(record.plugins) - set(present)))
    found = set(record.found) & (set(include) or set(record.found))
    kept = set(record.previous) & (set(include) or set(record.previous))
    bin_checks.changeable(bin_dir, gone, present)
    if ours or found or kept:
        manifest.probe(state_dir)
    if not check_mode:
        if ours or found or kept:
            with manifest.updating(state_dir, bin_dir) as current:
                current.forget(ours, found, kept)
                with current.saving():
                    bin_write.remove(bin_dir, gone)
        else:
            bin_write.remove(bin_dir, gone)
        settled = manifest.Manifest(state_dir, bin_dir)
        previous.sweep(state_dir, bin_dir, settled)
        embedded.sweep(state_dir, bin_dir, running | settled.kept_code())
    return {
        "changed": bool(gone),
        "bin_dir": bin_dir,
        "plugins": [
            bin_report.entry(
                bin_dir,
                name,
                action,
                present[name].sha256,
                bool(present[name].embedded),
                bin_report.drifted(record, present, name),
                needed_by=needed.get(name, ()),
            )
            for name, action in actions
        ],
        "removed": gone,
        "brought": [],
        "ignored": [],
        "findings": findings.from_facts(bin_report.drift_facts(bin_dir, record, present, staying, staying)),
        "diff": bin_report.diff(bin_dir, actions, present, {}),
    }


def _needed(conf_dir: str, leaving: Sequence[str]) -> dict[str, list[str]]:
    from . import bin_users  # an installation has no use for it

    return bin_users.find(conf_dir, leaving)


def _is_new(record: manifest.Manifest, name: str, digest: str | None) -> bool:
    """Tell a new version, or none any more, from one that is only repaired, or finished after a run was killed."""
    entry = record.previous.get(name)
    if entry and name in record.pending and entry["written"] == digest:
        return False
    return record.plugins.get(name, {}).get("sha256") != digest


def _note(
    record: manifest.Manifest,
    supply: Supply,
    actions: Sequence[tuple[str, str]],
    answers: Mapping[str, dict[str, Any]],
    own: Sequence[str],
) -> None:
    """Put into the record what a run found or brought: ours is what it writes, or wrote before."""
    for name, action in actions:
        if name not in supply.wanted:
            continue
        sha256 = supply.wanted[name].sha256
        plugin = {"sha256": sha256, "archive": supply.digest if supply.digest and name not in own else None}
        if action in WRITES or record.knows_as_ours(name, sha256):
            record.plugins[name] = dict(plugin, source=embedded.SOURCE if name in own else supply.source)
            record.found.pop(name, None)
        else:
            record.plugins.pop(name, None)  # somebody else put it in place of ours
            record.found[name] = plugin
    names = {name for name, _action in actions}
    record.pending = [name for name in record.pending if name not in names]
    if supply.digest and supply.offers:
        files = [offer.as_dict() for offer in supply.offers]
        record.archives[supply.digest] = {"source": supply.source, "files": files}
    record.versions.update(answers)


def _remember(
    state_dir: str,
    bin_dir: str,
    supply: Supply,
    actions: Sequence[tuple[str, str]],
    answers: Mapping[str, dict[str, Any]],
    own: Sequence[str],
    gone: Collection[str],
) -> None:
    """Record what spares the next run some work; what is ours is recorded already."""
    record = manifest.Manifest(state_dir, bin_dir)
    _note(record, supply, actions, answers, own)
    record.forget(gone)
    if not record.differs():
        return
    # A run that has nothing to write needs no state directory that it can write to.
    with contextlib.suppress(NodenetError), manifest.updating(state_dir, bin_dir) as current:
        _note(current, supply, actions, answers, own)
        current.forget(gone)
        current.save()
