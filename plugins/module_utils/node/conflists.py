# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what to write and to remove so that the conf dir holds these conflists. Changes nothing; confwrite does it."""

from __future__ import annotations

import json
import os

from ..cni import gojson
from ..cni.errors import NodenetError
from ..cni.names import valid_name
from . import confcheck, confdir, dircheck, networks
from .effective import RUNTIMES, Settings, predict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

DEFAULT_VERSION = "1.0.0"
STRICT, UPSTREAM, NONE = "strict", "upstream", "none"


class Options:
    """How to judge a plan.

    validate: "strict" refuses every error, "upstream" only what runtime or plugin refuse too, "none" nothing.
    expect_effective: network that each runtime has to use afterwards, "" for the one that it uses before.
    runtimes: what is known of them. flannel_subnet_file: where flannel leaves the node's subnet. move_ranges: a network
    that other nodes share may hand out other addresses than before.
    """

    def __init__(
        self,
        validate: str = STRICT,
        expect_effective: str = "",
        runtimes: Settings | None = None,
        bin_dir: str = "",
        mode: int = 0o644,
        flannel_subnet_file: str = networks.FLANNEL_SUBNET_FILE,
        move_ranges: bool = False,
    ) -> None:
        self.validate = validate
        self.expect_effective = expect_effective
        self.runtimes = runtimes or Settings()
        self.bin_dir = bin_dir
        self.mode = mode
        self.flannel_subnet_file = flannel_subnet_file
        self.move_ranges = move_ranges


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
        when: predict(listed, options.runtimes) for when, listed in (("before", found.files), ("after", after))
    }
    if plan.write or plan.remove or options.expect_effective:
        gone = [one.name for one in wanted if not one.present]
        _refuse_unexpected(found.path, effective, options.expect_effective, gone)
    told = {fact["where"] for fact in facts}
    for file in after:
        where = os.path.join(found.path, file.shown)
        if file.error and where not in told:
            facts += confcheck.check_file(file, where)
            told.add(where)
    later = confdir.ConfDir(found.path, True, after, found.chained, found.others)
    for fact in dircheck.check_dir(later, effective["after"], options.flannel_subnet_file):
        if fact["kind"] != "conf-broken" or fact["where"] not in told:  # else the exact cause is there already
            facts.append(fact)
    if plan.write:
        from . import confdanger  # most tasks write nothing

        facts += confdanger.check(found, plan.write, later, effective["after"], facts, options)
    plan.result = {
        "changed": bool(plan.write or plan.remove),
        "conf_dir": found.path,
        "conflists": states,
        "documents": {one.name: gojson.plain(one.file.tree) for one in wanted if one.file and one.file.plugins},
        "effective": effective,
        "findings": _findings(facts),
    }
    plan.diff = [_diff(plan, one.name, before.get(one.name), one, modes) for one in plan.write]
    plan.diff += [_diff(plan, name, before[name], None, modes) for name in plan.remove]
    return plan


def refuse_backup_dir(conf_dir: str, backup_dir: str) -> None:
    """Refuse a directory for backups that is a file, is the conf dir or lies in it."""
    if os.path.lexists(backup_dir) and not os.path.isdir(backup_dir):
        raise NodenetError(f"Cannot keep backups in {backup_dir}: it is no directory", backup_dir=backup_dir)
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
        if not name or "/" in name or "\0" in name or len(os.fsencode(name)) > 255:
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


def parse_mode(value: object) -> int:
    """Return permission bits, which must let the owner read the file.

    Text spells them in octal. A number is the bits themselves, as for ansible-core's own modules: YAML has read an
    unquoted 0644 in octal already.
    """
    text = f"{value:o}" if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else str(value)
    if not text or not set(text) <= set("01234567") or int(text, 8) > 0o777 or not int(text, 8) & 0o400:
        raise NodenetError(f"Cannot use mode {value!r} for a conflist: it has to be octal and quoted, like '0644'")
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
    if len(os.fsencode(filename)) > 255:
        raise NodenetError(f"Cannot {verb} conflist {name} in {conf_dir}: the file name has more than 255 bytes")
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
    facts = confcheck.check_file(file, path, options.flannel_subnet_file, options.runtimes.installed)
    grave = [
        item
        for item in _findings(facts)
        if item["severity"] == "error" and (options.validate == STRICT or item["go"] == "fails")
    ]
    if grave and options.validate != NONE:
        reasons = "; ".join(f"{item['text']} ({item['hint']})" for item in grave)
        raise NodenetError(f"Cannot write conflist {one.name} in {path}: {reasons}", findings=grave)
    if options.runtimes.installed is not None:
        facts += confcheck.check_binaries(file, path, options.bin_dir, options.runtimes.installed)
    if options.runtimes.speaks is not None:
        facts += confcheck.check_versions(file, path, options.runtimes.speaks)
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
            # a conflist can take over the name of another one, but not that of a .conf or .json
            rename = "give its name as filename, or " if confdir.extension(other.name) == ".conflist" else ""
            raise NodenetError(
                f"Cannot write conflist {one.name} in {os.path.join(conf_dir, one.filename)}: {other.name} defines "
                f"that network too; {rename}list it as well, with filename: {other.name} and state: absent",
                other_file=os.path.join(conf_dir, other.name),
            )


def _refuse_unexpected(
    conf_dir: str, effective: Mapping[str, Mapping[str, Mapping[str, Any]]], expected: str, gone: list[str]
) -> None:
    """Refuse a plan after which a runtime uses another network than is expected, or than it used before.

    :param gone: networks that the task removes; when no other takes the place of one, that is what was asked for
    """
    for runtime, title in RUNTIMES.items():
        before, after = effective["before"][runtime], effective["after"][runtime]
        wanted, hint = expected or before["network"], ""
        if not expected:
            if wanted is None or (after["network"] is None and (wanted in gone or not after["known"])):
                continue
            hint = (
                ", and nothing says that it shall; set expect_effective to the network that is meant "
                "(roles: networks_expect_effective, node_remove_expect_effective)"
            )
        if after["network"] != wanted:
            network = f"network {after['network']}" if after["network"] is not None else "no network"
            if not after["known"]:
                network = "an unknown network"
                hint = f'; set {runtime}_config: "" to go by its defaults (roles: networks_{runtime}_config)'
            raise NodenetError(
                f"Cannot write conflists in {conf_dir}: {title} would use {network} instead of {wanted} "
                f"({after['reason']}){hint}",
                effective=dict(effective["after"]),
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
    plan: Plan,
    name: str,
    before: confdir.ConfFile | None,
    after: confdir.ConfFile | None,
    modes: Mapping[str, int],
) -> dict[str, str]:
    headers = [os.path.join(plan.conf_dir, name)] * 2
    if before is not None and after is not None and modes.get(name) != plan.mode:
        headers = [f"{headers[0]} (mode {mode:04o})" for mode in (modes.get(name, 0), plan.mode)]
    return {
        "before": _text(before),
        "after": _text(after),
        "before_header": headers[0],
        "after_header": headers[1],
    }


def _text(one: confdir.ConfFile | None) -> str:
    return (one.data or b"").decode("utf-8", "replace") if one is not None else ""
