# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bringing a node to where its plugins can work: drop-ins for the next boot, and the same at once.

Here it is decided what to do, and everything that can refuse is asked; bringing.py does it. What is right already is
never touched, and what the node's owner sets in other files is only reported.
"""

from __future__ import annotations

import os
import stat

from ..cni.errors import NodenetError
from . import daemons, files, findings, kernel, survey, sysctls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from .needs import Needs

HEAD = "# Written by the Ansible collection nodenet.cni (node_prerequisites); changes are lost."
MODE = 0o644
NETWORKMANAGER, FIREWALLD = "networkmanager", "firewalld"
_MANAGER = "NetworkManager"
_BROUGHT_BY = {"net/bridge/": "br_netfilter", "net/netfilter/": "nf_conntrack"}


class DropIn:
    """A file of ours. before, after: its content, None for no file. wrong_mode: it has another mode than MODE."""

    def __init__(self, path: str, after: bytes | None) -> None:
        self.path = path
        self.after = after
        self.before, self.mode = _read(path)

    @property
    def action(self) -> str:
        if self.after is None:
            return "unchanged" if self.before is None else "removed"
        if self.before is None:
            return "created"
        return "unchanged" if (self.before, self.mode) == (self.after, MODE) else "replaced"

    def diff(self) -> dict[str, str]:
        headers = [self.path] * 2
        if self.before is not None and self.after is not None and self.mode != MODE:
            headers = [f"{self.path} (mode {mode:04o})" for mode in (self.mode, MODE)]
        return {
            "before": (self.before or b"").decode("utf-8", "replace"),
            "after": (self.after or b"").decode("utf-8", "replace"),
            "before_header": headers[0],
            "after_header": headers[1],
        }


class Plan:
    """What is to be done. Each row is as the module returns it, with ``action``."""

    def __init__(self) -> None:
        self.drop_ins: list[DropIn] = []
        self.modules: list[dict[str, Any]] = []
        self.sysctls: list[dict[str, Any]] = []
        self.directories: list[dict[str, Any]] = []
        self.reload_pid = 0
        self.bind: list[str] = []
        self.exemptions: list[dict[str, Any]] = []
        self.facts: list[dict[str, Any]] = []

    @property
    def changed(self) -> bool:
        rows = [*self.modules, *self.sysctls, *self.directories]
        return (
            any(one.action != "unchanged" for one in self.drop_ins)
            or any(row["action"] != "unchanged" for row in rows)
            or bool(self.bind)
        )

    def result(self) -> dict[str, Any]:
        """Return what the module returns; ``diff`` holds before and after."""
        live = [row for row in self.sysctls if row["action"] == "set"]
        loaded = [row for row in self.modules if row["action"] == "loaded"]
        diff = [one.diff() for one in self.drop_ins if one.action != "unchanged"]
        if live or loaded or self.bind:
            before = [f"{row['name']} = {row['before'] or ''}".rstrip() for row in live]
            after = [f"{row['name']} = {row['value']}" for row in live]
            after += [f"module {row['name']}" for row in loaded] + [f"firewalld accepts {one}" for one in self.bind]
            pair = {"before": _lines(before), "after": _lines(after)}
            diff.append(dict(pair, before_header="the running kernel", after_header="the running kernel"))
        for row in self.directories:
            if row["action"] == "created":
                pair = {"before": "", "after": f"directory, mode {row['mode']}\n"}
                diff.append(dict(pair, before_header=row["path"], after_header=row["path"]))
        return {
            "changed": self.changed,
            "modules": self.modules,
            "sysctls": self.sysctls,
            "files": [{"path": one.path, "action": one.action} for one in self.drop_ins],
            "directories": self.directories,
            "exemptions": self.exemptions,
            "findings": findings.from_facts(self.facts),
            "diff": diff,
        }


def plan_task(params: Mapping[str, Any], places: survey.Places) -> Plan:
    """Plan what a task of the module asks for. params: its options. Errors: NodenetError."""
    needs, facts = survey.needs_of(
        params["conf_dir"],
        params["flannel_subnet_file"],
        plugins=params["plugins"],
        families=params["ip_versions"],
        configs=params["configs"],
        names=params["networks"],
        bridge_nf_call=params["bridge_nf_call"],
    )
    wishes = (params["modules"], params["sysctls"], params["rp_filter"], params["interfaces"])
    survey.add_wishes(needs, *wishes)
    paths = [params[f"{name}_dir"] for name in params["directories"]]
    if not needs.types and params["plugins"] is None and params["configs"] is None:
        raise NodenetError(
            f"Cannot tell what this node needs: {params['conf_dir']} defines no network that can be read; "
            "name the plugins that will be used"
        )
    return make_plan(
        needs, places, facts, params["exempt"], paths, parse_mode(params["directory_mode"]), params["apply"]
    )


def parse_mode(text: str) -> int:
    """Return permission bits that are spelled in octal. Errors: NodenetError."""
    if not text or not set(text) <= set("01234567") or int(text, 8) > 0o7777 or int(text, 8) & 0o700 != 0o700:
        raise NodenetError(f"Cannot use mode {text!r} for a directory: it has to be octal and quoted, like '0755'")
    return int(text, 8)


def make_plan(
    needs: Needs,
    places: survey.Places,
    facts: Iterable[dict[str, Any]] = (),
    exempt: Sequence[str] = (NETWORKMANAGER, FIREWALLD),
    directories: Sequence[str] = (),
    directory_mode: int = 0o755,
    apply: bool = True,
) -> Plan:
    """Decide what has to change so that the node has what is needed. Changes nothing.

    :param exempt: what to keep away from the interfaces of containers, where it is installed
    :param directories: that have to exist; those that do keep their mode
    :param apply: whether it has to hold at once too, and not only after the next boot
    :raises NodenetError: something that is needed cannot be had
    """
    plan = Plan()
    plan.facts += facts
    plan.facts += survey.add_router_advertisements(needs, places) if apply else []
    _plan_modules(plan, needs, places, apply)
    _plan_sysctls(plan, needs, places, apply)
    _plan_networkmanager(plan, needs, places, NETWORKMANAGER in exempt, apply)
    _plan_firewalld(plan, needs, places, FIREWALLD in exempt, apply)
    _plan_directories(plan, directories, directory_mode)
    for one in plan.drop_ins:
        if one.action in ("created", "replaced"):
            _check_place(os.path.dirname(one.path), one.path)
    plan.facts += survey.condition_facts(needs, places) if apply else []
    plan.facts += survey.directory_facts([row["path"] for row in plan.directories])
    return plan


def make_removal(places: survey.Places) -> Plan:
    """Decide what to take away: our drop-ins. What holds now stays until the next boot, since pods may depend on it."""
    plan = Plan()
    paths = (places.modules_file, places.sysctl_file, places.networkmanager_file, places.firewalld.path)
    plan.drop_ins = [DropIn(path, None) for path in paths]
    for one in plan.drop_ins:
        if one.action == "removed":
            _check_place(os.path.dirname(one.path), one.path)
    return plan


def _plan_modules(plan: Plan, needs: Needs, places: survey.Places, apply: bool) -> None:
    rows = survey.module_rows(needs, places)
    for row in rows:
        row["action"] = "loaded" if apply and row["state"] == kernel.AVAILABLE else "unchanged"
        users = ", ".join(row["needed_by"])
        if not apply:
            continue
        if row["state"] == kernel.ABSENT:
            raise NodenetError(
                f"Cannot load kernel module {row['name']} on this node, needed by {users}: kernel "
                f"{places.kernel.release} has no such module; install the package with its further modules, or another "
                "kernel",
                module=row["name"],
            )
        if row["action"] == "loaded" and not places.kernel.modprobe():
            raise NodenetError(
                f"Cannot load kernel module {row['name']} on this node, needed by {users}: there is no modprobe; "
                "install kmod, or load the module from outside of the container",
                module=row["name"],
            )
    plan.modules = rows
    if apply:
        loading = {row["name"] for row in rows if row["action"] == "loaded"}
        plan.facts += [one for one in survey.module_facts(rows, places) if one["module"] not in loading]
    # The loader of the next boot would fail on what only this kernel's configuration knows to be built in.
    listed = [row["name"] for row in rows if not (apply and row["state"] == kernel.BUILTIN)]
    content = "\n".join([HEAD, *listed]) + "\n"
    plan.drop_ins.append(DropIn(places.modules_file, content.encode() if listed else None))


def _plan_sysctls(plan: Plan, needs: Needs, places: survey.Places, apply: bool) -> None:
    ordered = needs.ordered_sysctls()
    content = sysctls.render([(key, value) for key, value, _users in ordered], HEAD) if ordered else None
    plan.drop_ins.append(DropIn(places.sysctl_file, content))
    plan.facts += survey.sysctl_facts(needs, places)
    for key, value, users in ordered:
        before = places.live.get(key) if apply else None
        row = {"name": sysctls.shown(key), "value": value, "before": before, "needed_by": users, "action": "unchanged"}
        plan.sysctls.append(row)
        if not apply or before == value:
            continue
        row["action"] = "set"
        if not os.path.exists(places.live.path(key)):
            if _comes_with_a_module(key, plan.modules):
                continue
            reason = "the running kernel has no such setting"
        else:
            reason = places.live.refusal(key)
        if reason:
            raise NodenetError(
                f"Cannot set {row['name']} to {value} on this node, needed by {', '.join(users)}: {reason}",
                sysctl=row["name"],
            )


def _comes_with_a_module(key: str, modules: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether a setting that is not there may come with a module that is about to be loaded."""
    loading = {row["name"]: row["needed_by"] for row in modules if row["action"] == "loaded"}
    brings = next((module for start, module in _BROUGHT_BY.items() if key.startswith(start)), None)
    if brings is not None:
        return brings in loading
    return any("the task" in users for users in loading.values())  # who names a module knows what it brings


def _plan_networkmanager(plan: Plan, needs: Needs, places: survey.Places, wanted: bool, apply: bool) -> None:
    path = places.networkmanager_file
    if not daemons.nm_installed(places.networkmanager_dir):
        return
    pid = daemons.running(_MANAGER, places.proc) if apply else 0
    row: dict[str, Any] = {"service": _MANAGER, "running": bool(pid), "interfaces": [], "subnets": []}
    if wanted and needs.interfaces:
        row["interfaces"] = sorted(needs.interfaces)
        drop_in = DropIn(path, daemons.nm_render(row["interfaces"], HEAD))
        plan.facts += survey.networkmanager_facts(needs, places, drop_in.after, pid)
        plan.reload_pid = pid if drop_in.action != "unchanged" else 0
    else:
        drop_in = DropIn(path, None)
    plan.drop_ins.append(drop_in)
    plan.exemptions.append(dict(row, action="reloaded" if plan.reload_pid else "unchanged"))


def _plan_firewalld(plan: Plan, needs: Needs, places: survey.Places, wanted: bool, apply: bool) -> None:
    firewalld = places.firewalld
    if not firewalld.installed:
        return
    names = [*sorted(needs.bridges), *sorted(needs.subnets)] if wanted else []
    elsewhere = firewalld.bound_elsewhere() if names else {}
    for one in names:
        zone = elsewhere.get(one, "trusted")
        if apply and firewalld.running and not elsewhere.get(one):
            zone = firewalld.zone_of(one)
            if not zone:
                plan.bind.append(one)
        if zone and not daemons.is_trusted(zone):
            plan.facts.append({"kind": "node-firewalld", "where": places.firewalld_dir, "what": one, "zone": zone})
            elsewhere[one] = zone
    ours = [one for one in names if one not in elsewhere]
    bridges, subnets = [one for one in ours if "/" not in one], [one for one in ours if "/" in one]
    plan.drop_ins.append(DropIn(firewalld.path, daemons.zone_render(bridges, subnets, HEAD) if ours else None))
    plan.exemptions.append(
        {
            "service": "firewalld",
            "running": bool(apply and firewalld.running),
            "interfaces": bridges,
            "subnets": subnets,
            "action": "accepted" if plan.bind else "unchanged",
        }
    )


def _plan_directories(plan: Plan, directories: Sequence[str], mode: int) -> None:
    for path in directories:
        if os.path.lexists(path) and not os.path.isdir(path):
            raise NodenetError(f"Cannot create directory {path} on this node: something else has that name")
        there = os.path.isdir(path)
        shown = stat.S_IMODE(os.stat(path).st_mode) if there else mode
        action = "unchanged" if there else "created"
        plan.directories.append({"path": path, "mode": f"{shown:04o}", "action": action})
        if not there:
            _check_place(path, path, verb="create directory")


def _check_place(directory: str, path: str, verb: str = "write") -> None:
    try:
        files.check_writable(directory)
    except OSError as exc:
        raise NodenetError(f"Cannot {verb} {path} on this node: {exc.strerror} ({exc.filename})", file=path) from exc


def _read(path: str) -> tuple[bytes | None, int]:
    try:
        with open(path, "rb") as stream:
            return stream.read(), stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None, 0
    except OSError as exc:
        raise NodenetError(f"Cannot write {path} on this node: {exc.strerror}", file=path) from exc


def _lines(rows: Iterable[str]) -> str:
    return "".join(f"{row}\n" for row in rows)
