# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write and remove conflists: decide on what was read (make_plan, touches nothing), then do it (apply_plan)."""

from __future__ import annotations

import json
import os
import time

from ..cni import gojson
from ..cni.errors import NodenetError
from ..cni.names import valid_name
from . import confcheck, confdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from . import files

DEFAULT_VERSION = "1.0.0"
STRICT, UPSTREAM, NONE = "strict", "upstream", "none"


class Options:
    """How to judge a plan.

    validate: "strict" refuses every error, "upstream" only what runtime or plugin refuse too, "none" nothing.
    expect_effective: network that each runtime has to use afterwards, "" for any. installed: confdir.installed_plugins.
    """

    def __init__(
        self,
        validate: str = STRICT,
        expect_effective: str = "",
        crio_default_network: str = "",
        bin_dir: str = "",
        installed: Callable[[str], bool] | None = None,
        mode: int = 0o644,
    ) -> None:
        self.validate = validate
        self.expect_effective = expect_effective
        self.crio_default_network = crio_default_network
        self.bin_dir = bin_dir
        self.installed = installed
        self.mode = mode


class Wanted:
    """One element of the task's list. filename: "" for "whatever file defines the network" (only when absent)."""

    def __init__(self, name: str, filename: str, present: bool, data: bytes = b"") -> None:
        self.name = name
        self.filename = filename
        self.present = present
        self.file = confdir.ConfFile(filename, data) if present else None


class Plan:
    """What to do. write: files to put in place, remove: names to take away, result: what the module returns."""

    def __init__(self, conf_dir: str, mode: int) -> None:
        self.conf_dir = conf_dir
        self.mode = mode
        self.write: list[confdir.ConfFile] = []
        self.remove: list[str] = []
        self.result: dict[str, Any] = {}
        self.diff: list[dict[str, str]] = []


def make_plan(
    found: confdir.ConfDir,
    conflists: Sequence[Mapping[str, Any]],
    modes: Mapping[str, int],
    options: Options,
) -> Plan:
    """Decide what has to change so that the conf dir holds these conflists.

    :param found: what read_conf_dir returned
    :param conflists: ``{name, state, filename, plugins, content, cni_version}`` each
    :param modes: permission bits of the files that are there, by name
    :raises NodenetError: something is asked for that must not be written; facts carry the findings
    """
    wanted = [_wanted(found.path, entry) for entry in conflists]
    _refuse_repetitions(found.path, wanted)
    facts: list[dict[str, Any]] = []
    for one in wanted:
        facts += _checked(found.path, one, options)
    plan = Plan(found.path, options.mode)
    before = {one.name: one for one in found.files}
    states = []
    for one in wanted:
        names = [one.filename] if one.filename else [file.name for file in found.files if file.network == one.name]
        changed = [name for name in names if _is_change(one, before.get(name), modes.get(name), options.mode)]
        if one.file is None:
            _refuse_foreign(found.path, one, before)
            plan.remove += changed
        elif changed:
            plan.write.append(one.file)
        states.append(_state(found.path, one, names, bool(changed)))
    after = confdir.with_change(found.files, plan.write, plan.remove)
    for one in wanted:
        if one.present:
            _refuse_second(found.path, one, after)
    effective = {
        when: confdir.effective(listed, options.installed, options.crio_default_network)
        for when, listed in (("before", found.files), ("after", after))
    }
    _refuse_unexpected(found.path, effective["after"], options.expect_effective)
    facts += confcheck.check_dir(confdir.ConfDir(found.path, True, after, found.chained), effective["after"])
    plan.result = {
        "changed": bool(plan.write or plan.remove),
        "conf_dir": found.path,
        "conflists": states,
        "effective": effective,
        "findings": _findings(facts),
    }
    plan.diff = [_diff(found.path, before.get(one.name), one, modes, options.mode) for one in plan.write]
    plan.diff += [_diff(found.path, before[name], None, modes, options.mode, name) for name in plan.remove]
    return plan


def apply_plan(plan: Plan, backup_dir: str = "") -> list[str]:
    """Carry a plan out: every file whole and by rename inside of the directory, removals last.

    All new files are complete on disk before the first one gets its name, so a full file system changes nothing.

    :param backup_dir: where to keep what is replaced or removed, never in the conf dir
    :returns: paths of the backups
    """
    if not plan.write and not plan.remove:
        return []
    from . import files  # most runs change nothing and need not load it

    files.make_directory(plan.conf_dir)
    files.sweep_temporary(plan.conf_dir)
    backups = _back_up(plan, backup_dir) if backup_dir else []
    staged: list[files.StagedFile] = []
    try:
        for one in plan.write:
            staged.append(files.stage_file(os.path.join(plan.conf_dir, one.name), one.data or b"", plan.mode))
        for ready in staged:
            ready.commit()
    finally:
        for ready in staged:
            ready.discard()
    files.sync_directory(plan.conf_dir)
    for name in plan.remove:
        files.remove_file(os.path.join(plan.conf_dir, name))
    return backups


def refuse_backup_dir(conf_dir: str, backup_dir: str) -> None:
    """Refuse a directory for backups that is the conf dir or lies in it."""
    inside, outside = os.path.realpath(backup_dir), os.path.realpath(conf_dir)
    if inside == outside or inside.startswith(outside + os.sep):
        raise NodenetError(
            f"Cannot keep backups in {backup_dir}: it lies in the conf dir {conf_dir}, which runtimes read",
            backup_dir=backup_dir,
        )


def modes_of(conf_dir: str, names: Sequence[str]) -> dict[str, int]:
    """Return the permission bits of those files that exist. Raises NodenetError when one is a directory."""
    modes = {}
    for name in names:
        if not name or "/" in name or "\0" in name:
            continue  # make_plan refuses it
        path = os.path.join(conf_dir, name)
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if os.path.isdir(path):
            raise NodenetError(f"Cannot write conflist {name} in {conf_dir}: there is a directory of that name")
        modes[name] = status.st_mode & 0o7777
    return modes


def parse_mode(text: str) -> int:
    """Return the permission bits that *text* spells in octal; they must let the owner read the file."""
    if not text or not set(text) <= set("01234567") or int(text, 8) > 0o777 or not int(text, 8) & 0o400:
        raise NodenetError(f"Cannot use mode {text!r} for a conflist: it has to be octal and quoted, like '0644'")
    return int(text, 8)


def file_name(entry: Mapping[str, Any]) -> str:
    """Return the name of the file that an element of the list is about, "" when any file will do."""
    absent = entry.get("state") == "absent"
    return str(entry.get("filename") or ("" if absent else f"10-{entry.get('name')}.conflist"))


def _wanted(conf_dir: str, entry: Mapping[str, Any]) -> Wanted:
    name = str(entry.get("name") or "")
    present = entry.get("state") != "absent"
    filename = file_name(entry)
    verb = "write" if present else "remove"
    if not valid_name(name):
        raise NodenetError(
            f"Cannot {verb} conflist {name!r} in {conf_dir}: a network name starts with a letter or digit and goes on "
            "with letters, digits, '_', '.' and '-'"
        )
    allowed = (".conflist",) if present else confdir.EXTENSIONS
    if filename and ("/" in filename or "\0" in filename or confdir.extension(filename) not in allowed):
        raise NodenetError(
            f"Cannot {verb} conflist {name} in {conf_dir}: filename {filename!r} has to be a plain file name that ends "
            f"in {' or '.join(allowed)}"
        )
    if not present:
        return Wanted(name, filename, False)
    if (entry.get("plugins") is None) == (entry.get("content") is None):
        raise NodenetError(f"Cannot write conflist {name} in {conf_dir}: give either plugins or content")
    return Wanted(name, filename, True, _render(conf_dir, name, entry))


def _render(conf_dir: str, name: str, entry: Mapping[str, Any]) -> bytes:
    version = entry.get("cni_version")
    content = entry.get("content")
    if content is None:
        document: Any = {"cniVersion": version or DEFAULT_VERSION, "name": name, "plugins": entry["plugins"]}
    elif isinstance(content, dict):
        document = dict({"cniVersion": version} if version else {}, name=name)
        document.update(content)
    else:
        text = str(content)
        return (text if text.endswith("\n") else text + "\n").encode("utf-8", "replace")
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _refuse_repetitions(conf_dir: str, wanted: Sequence[Wanted]) -> None:
    for what in ("name", "filename"):
        seen: dict[str, Wanted] = {}
        for one in wanted:
            value = getattr(one, what)
            other = seen.setdefault(value, one)
            # a network moves to another file name in one task: the new name present, the old one absent
            moved = what == "name" and one.present != other.present and one.filename and other.filename
            if value and other is not one and not moved:
                raise NodenetError(
                    f"Cannot write conflist {one.name} in {conf_dir}: the list has {what} {value} more than once"
                )


def _checked(conf_dir: str, one: Wanted, options: Options) -> list[dict[str, Any]]:
    """Return the facts about a wanted file; refuse it when they are too grave."""
    file = one.file
    if file is None:
        return []
    path = os.path.join(conf_dir, one.filename)
    if file.network not in ("", one.name):
        raise NodenetError(f"Cannot write conflist {one.name} in {path}: its content names network {file.network!r}")
    facts = confcheck.check_file(file, path)
    grave = [
        item
        for item in _findings(facts)
        if item["severity"] == "error" and (options.validate == STRICT or item["go"] == "fails")
    ]
    if grave and options.validate != NONE:
        reasons = "; ".join(f"{item['text']} ({item['hint']})" for item in grave)
        raise NodenetError(f"Cannot write conflist {one.name} in {path}: {reasons}", findings=grave)
    if options.installed is not None:
        facts += confcheck.check_binaries(file, path, options.bin_dir, options.installed)
    return facts


def _findings(facts: list[dict[str, Any]]) -> list[dict[str, str]]:
    if not facts:
        return []
    from . import findings  # the registry is long, and most directories have nothing to report

    return findings.from_facts(facts)


def _is_change(one: Wanted, before: confdir.ConfFile | None, mode: int | None, wanted_mode: int) -> bool:
    if one.file is None:
        return before is not None
    return before is None or mode != wanted_mode or not same_content(before, one.file)


def same_content(one: confdir.ConfFile, other: confdir.ConfFile) -> bool:
    """Tell whether two files mean the same: key order and white space do not matter, numbers against strings do."""
    if one.tree is None or other.tree is None:
        return one.data == other.data
    return one.data == other.data or _same(one.tree, other.tree)


def _same(one: Any, other: Any) -> bool:
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, tuple):
        mine, theirs = dict(one), dict(other)
        if len(mine) != len(one) or len(theirs) != len(other):
            return False  # repeated keys: what counts depends on the reader
        return mine.keys() == theirs.keys() and all(_same(value, theirs[key]) for key, value in mine.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(_same(mine, theirs) for mine, theirs in zip(one, other))
    if isinstance(one, gojson.Number):
        return bool(gojson.plain(one) == gojson.plain(other))
    return bool(one == other)


def _refuse_foreign(conf_dir: str, one: Wanted, before: Mapping[str, confdir.ConfFile]) -> None:
    """Refuse to remove a file that defines another network; a broken one may go."""
    present = before.get(one.filename)
    if present is not None and present.network not in ("", one.name):
        raise NodenetError(
            f"Cannot remove conflist {one.name} in {os.path.join(conf_dir, one.filename)}: the file defines network "
            f"{present.network}"
        )


def _refuse_second(conf_dir: str, one: Wanted, after: Sequence[confdir.ConfFile]) -> None:
    for other in after:
        if other.name != one.filename and other.network == one.name:
            raise NodenetError(
                f"Cannot write conflist {one.name} in {os.path.join(conf_dir, one.filename)}: {other.name} defines "
                "that network too; give its name as filename, or remove it with state absent",
                other_file=os.path.join(conf_dir, other.name),
            )


def _refuse_unexpected(conf_dir: str, after: Mapping[str, Mapping[str, Any]], expected: str) -> None:
    for runtime, title in (("containerd", "containerd"), ("crio", "CRI-O")):
        got = after[runtime]
        if expected and got["network"] != expected:
            network = f"network {got['network']}" if got["network"] is not None else "no network"
            raise NodenetError(
                f"Cannot write conflists in {conf_dir}: {title} would use {network} instead of {expected} "
                f"({got['reason']})",
                effective=dict(after),
            )


def _state(conf_dir: str, one: Wanted, names: list[str], changed: bool) -> dict[str, Any]:
    filename = one.filename or (names[0] if names else "")
    return {
        "name": one.name,
        "filename": filename or None,
        "path": os.path.join(conf_dir, filename) if filename else None,
        "state": "present" if one.present else "absent",
        "changed": changed,
    }


def _diff(
    conf_dir: str,
    before: confdir.ConfFile | None,
    after: confdir.ConfFile | None,
    modes: Mapping[str, int],
    mode: int,
    name: str = "",
) -> dict[str, str]:
    name = after.name if after is not None else name
    path = os.path.join(conf_dir, name)
    texts = [
        one.data.decode("utf-8", "replace") if one is not None and one.data is not None else ""
        for one in (before, after)
    ]
    headers = [path, path]
    if before is not None and after is not None and modes.get(name) != mode:
        headers = [f"{path} (mode {modes.get(name, 0):04o})", f"{path} (mode {mode:04o})"]
    return {"before": texts[0], "after": texts[1], "before_header": headers[0], "after_header": headers[1]}


def _back_up(plan: Plan, backup_dir: str) -> list[str]:
    from . import files

    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    kept = []
    for name in [one.name for one in plan.write] + plan.remove:
        try:
            with open(os.path.join(plan.conf_dir, name), "rb") as stream:
                data = stream.read()
        except FileNotFoundError:
            continue
        path = os.path.join(backup_dir, f"{name}.{stamp}")
        number = 1
        while os.path.lexists(path):
            number += 1
            path = os.path.join(backup_dir, f"{name}.{stamp}.{number}")
        files.make_directory(backup_dir, 0o700)
        files.replace_file(path, data, 0o600)
        kept.append(path)
    return kept
