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
from . import bin_write, embedded, findings, manifest, mounts, offers
from .bin_dir import KEPT, MODE, REMOVED, UNCHANGED, WRITES, Present, look, plan, plan_removal
from .bin_report import Report, entry
from .supply import Supply, open_supply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
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
    check_mode: bool = False,
) -> dict[str, Any]:
    """Make the plugins of *src* present in *bin_dir*, and see that the *required* ones are there.

    src: an archive or a directory on this node; without it only *required* is looked after.
    checksum: see checksum.wanted_digest; archives only. include: names to take; all plugins if empty.
    own: plugins to make of this collection's own code, whatever *src* has. sources: that code, from embedded.pack().
    Returns the module's result; ``diff`` holds before and after. Errors: NodenetError, OSError: nothing was changed.
    """
    offers.check_names(include, "include")
    offers.check_names(required, "required")
    record = manifest.Manifest(state_dir, bin_dir)
    ours = embedded.Embedded(own, bin_dir, sources)
    supply = open_supply(src, bin_dir, checksum, include, record, own) if src else Supply("")
    try:
        supply.embed(ours.launchers)
        present = look(bin_dir, sorted(set(supply.wanted) | set(required)))
        _check_required(required, supply, present, bin_dir)
        _check_place(bin_dir, sorted(supply.wanted), present)
        owner = (0, 0) if os.geteuid() == 0 else None
        wanted = {name: offer.sha256 for name, offer in supply.wanted.items()}
        actions = ours.complete(plan(wanted, present, owner), present)
        new = [name for name, action in actions if action in WRITES]
        if new:
            supply.need_content(new)
            manifest.probe(state_dir)
            bin_write.probe(bin_dir)

        @contextlib.contextmanager
        def recording() -> Iterator[None]:
            with manifest.updating(state_dir, bin_dir) as current:
                _note(current, supply, actions, {}, own)
                with ours.installing():
                    current.save()
                    yield

        if not check_mode:
            # Without a new file there is nothing that must be recorded.
            bin_write.write(bin_dir, actions, supply, owner, recording if new else contextlib.nullcontext)
    finally:
        supply.close()
    kept = [(name, KEPT) for name in sorted(set(required) - set(wanted))]
    report = Report(bin_dir, {*include, *required}, record.versions, absent=check_mode)
    plugins = [
        report.describe(
            name,
            action,
            wanted.get(name) or present[name].sha256,
            name in own or (name not in wanted and bool(present[name].embedded)),
        )
        for name, action in sorted(actions + kept)
    ]
    if not check_mode:
        _remember(state_dir, bin_dir, record, supply, actions, report.answers, own)
        ours.sweep(state_dir)
    uid_gid = owner or (os.geteuid(), os.getegid())
    after = {
        name: Present("file", digest, MODE, uid_gid, ours.version if name in own else "")
        for name, digest in wanted.items()
    }
    return {
        "changed": any(action != UNCHANGED for _name, action in actions),
        "bin_dir": bin_dir,
        "plugins": plugins,
        "removed": [],
        "ignored": supply.ignored,
        "findings": findings.from_facts(report.facts),
        "diff": _diff(bin_dir, actions, present, after),
    }


def remove(
    bin_dir: str,
    state_dir: str,
    src: str | None = None,
    checksum: str | None = None,
    include: Sequence[str] = (),
    own: Sequence[str] = (),
    check_mode: bool = False,
) -> dict[str, Any]:
    """Remove from *bin_dir* what we installed and nobody changed since, or exactly the plugins in *include*.

    src: files that are identical to those of this source count as ours too, for plugins that something else unpacked.
    own: plugins that count as ours if they are made of this collection's code, whoever made them.
    Returns and errors as for install().
    """
    offers.check_names(include, "include")
    record = manifest.Manifest(state_dir, bin_dir)
    recorded = {name: plugin["sha256"] for name, plugin in record.plugins.items()}
    if src and not include:
        supply = open_supply(src, bin_dir, checksum, (), record)
        supply.close()
        recorded = dict({name: offer.sha256 for name, offer in supply.wanted.items()}, **recorded)
    present = look(bin_dir, sorted({*include, *recorded, *own}))
    for name in own:
        if name in present and present[name].embedded:
            recorded.setdefault(name, present[name].sha256)
    actions = plan_removal(recorded, include, present)
    gone = [name for name, action in actions if action == REMOVED]
    for name in gone:
        if present[name].kind == "directory":
            raise NodenetError(f"Cannot remove {name} from {bin_dir}: it is a directory, not a plugin", plugin=name)
    ours = set(record.plugins) & (set(gone) | (set(record.plugins) - set(present)))
    found = set(record.found) & (set(include) or set(record.found))
    if ours or found:
        manifest.probe(state_dir)
    if not check_mode:
        with contextlib.ExitStack() as stack:
            if ours or found:
                current = stack.enter_context(manifest.updating(state_dir, bin_dir))
                current.forget(ours, found)
                stack.enter_context(current.saving())
            bin_write.remove(bin_dir, gone)
        embedded.sweep(state_dir, bin_dir)
    facts = [
        {
            "kind": "bin-changed-since",
            "where": os.path.join(bin_dir, name),
            "source": record.plugins[name]["source"],
        }
        for name, action in actions
        if action == KEPT and name in record.plugins
    ]
    return {
        "changed": bool(gone),
        "bin_dir": bin_dir,
        "plugins": [
            entry(bin_dir, name, action, there.sha256, bool(there.embedded))
            for name, action in actions
            for there in [present[name]]
        ],
        "removed": gone,
        "ignored": [],
        "findings": findings.from_facts(facts),
        "diff": _diff(bin_dir, actions, present, {}),
    }


def _check_required(required: Sequence[str], supply: Supply, present: Mapping[str, Present], bin_dir: str) -> None:
    missing = []
    for name in required:
        # A link counts for what it leads to; a dangling one for nothing.
        there = name in present and os.path.isfile(os.path.join(bin_dir, name))
        if name not in supply.wanted and not there:
            missing.append(name)
    if not missing:
        return
    names = " and ".join(missing)
    where = f"neither in {supply.label} nor there already" if supply.label else "not there"
    homes = "".join(offers.home(name) for name in missing)
    raise NodenetError(
        f"Cannot provide {names} in {bin_dir}: required, but {where}{homes}", missing=missing, bin_dir=bin_dir
    )


def _check_place(bin_dir: str, names: Sequence[str], present: Mapping[str, Present]) -> None:
    if os.path.lexists(bin_dir) and not os.path.isdir(bin_dir):
        raise NodenetError(f"Cannot install plugins in {bin_dir}: it is no directory", bin_dir=bin_dir)
    for name in names:
        if name in present and present[name].kind not in ("file", "link"):
            raise NodenetError(
                f"Cannot install {name} in {bin_dir}: a {present[name].kind} of that name is in the way", plugin=name
            )
    mount = mounts.noexec_mount(bin_dir)
    if mount:
        fact = {"kind": "bin-noexec", "where": bin_dir, "mount": mount}
        raise NodenetError(
            f"Cannot install plugins in {bin_dir}: {mount} is mounted with noexec, so none of them could run",
            mount=mount,
            findings=findings.from_facts([fact]),
        )


def _note(
    record: manifest.Manifest,
    supply: Supply,
    actions: Sequence[tuple[str, str]],
    answers: Mapping[str, dict[str, Any]],
    own: Sequence[str],
) -> None:
    """Put into the record what a run found or brought: ours is what it writes, or wrote before."""
    source = os.path.basename(supply.label) if supply.digest else supply.label
    for name, action in actions:
        offer = supply.wanted[name]
        plugin = {"sha256": offer.sha256, "archive": supply.digest if supply.digest and name not in own else None}
        if action in WRITES or record.plugins.get(name, {}).get("sha256") == offer.sha256:
            record.plugins[name] = dict(plugin, source=embedded.SOURCE if name in own else source)
            record.found.pop(name, None)
        else:
            record.found[name] = plugin
    if supply.digest and supply.offers:
        record.archives[supply.digest] = {"source": source, "files": [offer.as_dict() for offer in supply.offers]}
    record.versions.update(answers)


def _remember(
    state_dir: str,
    bin_dir: str,
    record: manifest.Manifest,
    supply: Supply,
    actions: Sequence[tuple[str, str]],
    answers: Mapping[str, dict[str, Any]],
    own: Sequence[str],
) -> None:
    """Record what spares the next run some work; what is ours is recorded already."""
    _note(record, supply, actions, answers, own)
    if not record.differs():
        return
    # A run that has nothing to write needs no state directory that it can write to.
    with contextlib.suppress(NodenetError), manifest.updating(state_dir, bin_dir) as current:
        _note(current, supply, actions, answers, own)
        current.save()


def _diff(
    bin_dir: str,
    actions: Sequence[tuple[str, str]],
    before: Mapping[str, Present],
    after: Mapping[str, Present],
) -> dict[str, Any]:
    changed = [name for name, action in actions if action not in (UNCHANGED, KEPT)]
    return {
        "before": {name: before[name].words() for name in changed if name in before},
        "after": {name: after[name].words() for name in changed if name in after},
        "before_header": bin_dir,
        "after_header": bin_dir,
    }
