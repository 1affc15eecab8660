# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plugin executables in a bin directory: installing and removing them, the work of module plugin_binaries.

Everything is verified before the first byte is written; all new files wait complete beside the old ones before the
first takes its name. Files of other products are never looked at, let alone changed.
"""

from __future__ import annotations

import os

from ..cni.errors import NodenetError
from . import archive, elf, files, findings, manifest, mounts, offers, plugin_version
from .bin_dir import ADJUSTED, KEPT, MODE, REMOVED, UNCHANGED, WRITES, Present, look, plan, plan_removal
from .supply import Supply

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
    check_mode: bool = False,
) -> dict[str, Any]:
    """Make the plugins of *src* present in *bin_dir*, and see that the *required* ones are there.

    src: an archive or a directory on this node; without it only *required* is looked after.
    checksum: see checksum.wanted_digest; archives only. include: names to take; all plugins if empty.
    Returns the module's result; ``diff`` holds before and after. Errors: NodenetError, OSError: nothing was changed.
    """
    offers.check_names(include, "include")
    offers.check_names(required, "required")
    record = manifest.Manifest(state_dir, bin_dir)
    supply = Supply(src, bin_dir, checksum, include, record) if src else Supply.nothing()
    try:
        present = look(bin_dir, sorted(set(supply.wanted) | set(required)))
        _check_required(required, supply, present, bin_dir)
        _check_place(bin_dir, sorted(supply.wanted), present)
        owner = (0, 0) if os.geteuid() == 0 else None
        wanted = {name: offer.sha256 for name, offer in supply.wanted.items()}
        actions = plan(wanted, present, owner)
        if any(action in WRITES for _name, action in actions):
            supply.need_content()
        if not check_mode:
            _write(bin_dir, actions, supply, owner)
            if actions:
                _remember(state_dir, bin_dir, supply)
    finally:
        supply.close()
    kept = [(name, KEPT) for name in sorted(set(required) - set(wanted))]
    facts: list[dict[str, Any]] = []
    plugins = [
        _describe(bin_dir, name, action, wanted.get(name) or present[name].sha256, check_mode, facts)
        for name, action in sorted(actions + kept)
    ]
    after = {
        name: Present("file", digest, MODE, owner or (os.geteuid(), os.getegid())) for name, digest in wanted.items()
    }
    return {
        "changed": any(action != UNCHANGED for _name, action in actions),
        "bin_dir": bin_dir,
        "plugins": plugins,
        "removed": [],
        "ignored": supply.ignored,
        "findings": findings.from_facts(facts),
        "diff": _diff(bin_dir, actions, present, after),
    }


def remove(
    bin_dir: str,
    state_dir: str,
    src: str | None = None,
    checksum: str | None = None,
    include: Sequence[str] = (),
    check_mode: bool = False,
) -> dict[str, Any]:
    """Remove from *bin_dir* what we installed and nobody changed since, or exactly the plugins in *include*.

    src: files that are identical to those of this source count as ours too, for plugins that something else unpacked.
    Returns and errors as for install().
    """
    offers.check_names(include, "include")
    record = manifest.Manifest(state_dir, bin_dir)
    recorded = {name: entry["sha256"] for name, entry in record.plugins.items()}
    if src and not include:
        supply = Supply(src, bin_dir, checksum, (), record)
        supply.close()
        recorded = dict({name: offer.sha256 for name, offer in supply.wanted.items()}, **recorded)
    present = look(bin_dir, sorted(set(include) | set(recorded)))
    actions = plan_removal(recorded, include, present)
    gone = [name for name, action in actions if action == REMOVED]
    for name in gone:
        if present[name].kind == "directory":
            raise NodenetError(f"Cannot remove {name} from {bin_dir}: it is a directory, not a plugin", plugin=name)
    if not check_mode:
        for name in gone:
            _remove_file(bin_dir, name)
        stale = set(record.plugins) & (set(gone) | (set(record.plugins) - set(present)))
        if stale:
            with manifest.updating(state_dir, bin_dir) as current:
                for name in stale:
                    current.plugins.pop(name, None)
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
            {
                "name": name,
                "path": os.path.join(bin_dir, name),
                "action": action,
                "sha256": present[name].sha256 or None,
                "version": None,
                "cni_versions": [],
            }
            for name, action in actions
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


def _write(bin_dir: str, actions: Sequence[tuple[str, str]], supply: Supply, owner: tuple[int, int] | None) -> None:
    new = [name for name, action in actions if action in WRITES]
    if new:
        try:
            files.make_directory(bin_dir)
        except OSError as exc:
            raise NodenetError(f"Cannot create {bin_dir}: {exc.strerror} ({exc.filename})", bin_dir=bin_dir) from exc
        files.sweep_temporary(bin_dir)
        staged: list[files.StagedFile] = []
        try:
            for name, pieces in supply.contents(new):
                staged.append(_stage(bin_dir, name, pieces))
            for item in staged:
                item.commit()
        finally:
            for item in staged:
                item.discard()
        files.sync_directory(bin_dir)
    for name, action in actions:
        if action == ADJUSTED:
            _adjust(os.path.join(bin_dir, name), owner)


def _stage(bin_dir: str, name: str, pieces: Iterator[bytes]) -> files.StagedFile:
    path = os.path.join(bin_dir, name)
    try:
        return files.stage_file(path, pieces, MODE)
    except OSError as exc:
        raise NodenetError(
            f"Cannot install {name} in {bin_dir}: {exc.strerror or exc}; nothing was changed", file=path
        ) from exc


def _adjust(path: str, owner: tuple[int, int] | None) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if owner is not None:
            os.fchown(fd, *owner)
        os.fchmod(fd, MODE)
    finally:
        os.close(fd)


def _remove_file(bin_dir: str, name: str) -> None:
    path = os.path.join(bin_dir, name)
    try:
        files.remove_file(path)
    except OSError as exc:
        raise NodenetError(f"Cannot remove {name} from {bin_dir}: {exc.strerror or exc}", file=path) from exc


def _remember(state_dir: str, bin_dir: str, supply: Supply) -> None:
    with manifest.updating(state_dir, bin_dir) as record:
        source = os.path.basename(supply.label) if supply.digest else supply.label
        for name, offer in supply.wanted.items():
            record.plugins[name] = {"sha256": offer.sha256, "source": source, "archive": supply.digest or None}
        if supply.digest:
            record.archives[supply.digest] = {"source": source, "files": [offer.as_dict() for offer in supply.offers]}


def _describe(
    bin_dir: str, name: str, action: str, digest: str, check_mode: bool, facts: list[dict[str, Any]]
) -> dict[str, Any]:
    path = os.path.join(bin_dir, name)
    answer = None
    # In check mode a plugin that would be written is not there to be asked.
    if not check_mode or action in (UNCHANGED, KEPT):
        fact = _kept_fault(path) if action == KEPT else None
        if fact is None:
            answer = plugin_version.ask(path)
            if answer.problem:
                fact = {"kind": "bin-silent", "where": path, "reason": answer.problem}
        if fact:
            facts.append(fact)
    return {
        "name": name,
        "path": path,
        "action": action,
        "sha256": digest or None,
        "version": answer.release if answer else None,
        "cni_versions": answer.cni_versions if answer else [],
    }


def _kept_fault(path: str) -> dict[str, Any] | None:
    """See whether an executable that we did not bring can be run at all."""
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        offer = offers.scan(path, size, iter(lambda: stream.read(archive.PIECE), b""))
    architectures = elf.node_architectures()
    if offer.missing:
        return {"kind": "bin-truncated", "where": path, "reason": offer.missing}
    if offer.architecture and offer.architecture not in architectures:
        wanted = " and ".join(architectures)
        return {"kind": "bin-wrong-architecture", "where": path, "found": offer.architecture, "wanted": wanted}
    if not os.stat(path).st_mode & 0o111:
        return {"kind": "bin-not-executable", "where": path, "reason": "no execute bit in its mode"}
    return None


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
