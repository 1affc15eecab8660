# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes that differ from the majority of the fleet in what ought to be the same on all of them.

Compares reports of node_info; what a report lacks is not compared. The majority is the largest group of equal nodes.
"""

from __future__ import annotations

import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.rows import short_list
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_reports import Json, short, told

#: What can be compared.
KINDS = ("conflists", "multus", "plugins", "effective")

#: From so many nodes on a setting with another value on most of them counts as each node's own.
_MANY = 6

Reports = t.Mapping[str, t.Mapping[str, t.Any]]
#: One thing as each host has it: host -> key -> text.
States = dict[str, dict[str, str]]


def drift(reports: Reports, kinds: t.Collection[str] = KINDS) -> list[Json]:
    """Return the groups of hosts that differ, as docs/audit-schema.md describes ``drift``."""
    found: list[Json] = []
    if "conflists" in kinds:
        found += _conflists(reports, multus=False)
    if "multus" in kinds:
        found += _conflists(reports, multus=True)
    if "plugins" in kinds:
        found += _plugins(reports)
    if "effective" in kinds:
        found += _effective(reports)
    return found


def _conflists(reports: Reports, multus: bool) -> t.Iterator[Json]:
    states: dict[str, States] = {}
    asked = []
    for host, report in reports.items():
        files = _part(report, "conf", "files")
        if files is None or not all("settings" in one or one.get("error") for one in files):
            continue
        asked.append(host)
        for one in files:
            if "settings" in one and multus == any(kind.startswith("multus") for kind in one["plugins"]):
                name = "Multus" if multus else str(one["network"])
                states.setdefault(name, {}).setdefault(host, dict(one["settings"]))
    for name, state in sorted(states.items()):
        _drop_own(state)
        yield from _groups("multus" if multus else "conflist", name, state)
        yield from _absent("multus" if multus else "conflist", name, state, asked, "file")


def _drop_own(state: States) -> None:
    """Take out what each node has for itself: its name, its addresses, which most nodes have with another value."""
    if len(state) < _MANY:
        return
    values: dict[str, set[str]] = {}
    for settings in state.values():
        for key, text in settings.items():
            values.setdefault(key, set()).add(text)
    own = {key for key, found in values.items() if 2 * len(found) > len(state)}
    for host, settings in state.items():
        state[host] = {key: text for key, text in settings.items() if key not in own}


def _plugins(reports: Reports) -> t.Iterator[Json]:
    states: dict[str, States] = {}
    asked = []
    for host, report in reports.items():
        plugins = _part(report, "binaries", "plugins")
        if plugins is None:
            continue
        asked.append(host)
        for one in plugins:
            version = one.get("version") or (one.get("sha256") or "")[:12]
            if one.get("embedded"):
                version = f"{version} (of this collection)"
            if version:
                states.setdefault(one["name"], {})[host] = {one["name"]: version}
    groups: dict[tuple[tuple[str, ...], int], Json] = {}
    for name, state in sorted(states.items()):
        for one in (*_groups("plugin", name, state), *_absent("plugin", name, state, asked, name)):
            # a node with another release differs in all of its plugins: that is one fact
            known = groups.setdefault((tuple(one["hosts"]), one["others"]), one)
            if known is not one:
                known["differences"] += one["differences"]
                known["name"] += ", " + one["name"]
    yield from groups.values()


def _effective(reports: Reports) -> t.Iterator[Json]:
    states: dict[str, States] = {}
    for host, report in reports.items():
        for runtime, one in (_part(report, "conf", "effective") or {}).items():
            if one["known"]:
                states.setdefault(runtime, {})[host] = {"network": str(one["network"] or "none")}
    groups: dict[tuple[tuple[str, ...], int, str], Json] = {}
    for runtime, state in sorted(states.items()):
        for one in _groups("effective", runtime, state):
            # mostly the runtimes agree, and then it is one fact
            key = tuple(one["hosts"]), one["others"], str(one["differences"])
            known = groups.setdefault(key, one)
            if known is not one:
                known["name"] += " and " + runtime
    yield from groups.values()


def _part(report: t.Mapping[str, t.Any], part: str, key: str) -> t.Any:
    found = report.get(part)
    return found.get(key) if isinstance(found, t.Mapping) else None


def _groups(what: str, name: str, state: States) -> t.Iterator[Json]:
    """Yield a difference for each group of hosts whose state is not that of the largest group."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for host, values in state.items():
        groups.setdefault(tuple(sorted(values.items())), []).append(host)
    if len(groups) < 2:
        return
    there = min(groups, key=lambda one: (-len(groups[one]), one))
    most = dict(there)
    for here, hosts in sorted(groups.items(), key=lambda item: item[1]):
        if here != there:
            mine = dict(here)
            keys = [key for key in sorted({*mine, *most}) if mine.get(key) != most.get(key)]
            differences = [{"key": key, "here": mine.get(key), "there": most.get(key)} for key in keys]
            yield _difference(what, name, hosts, len(groups[there]), differences)


def _absent(what: str, name: str, state: States, asked: t.Sequence[str], key: str) -> t.Iterator[Json]:
    """Yield a difference for the hosts that lack what more than half of them have."""
    absent = [host for host in asked if host not in state]
    if absent and 2 * len(state) > len(asked):
        difference = {"key": key, "here": None, "there": "present"}
        yield _difference(what, name, absent, len(state), [difference])


def _difference(what: str, name: str, hosts: list[str], others: int, differences: list[Json]) -> Json:
    return {"what": what, "name": name, "hosts": sorted(hosts), "others": others, "differences": differences}


def findings(found: t.Iterable[Json]) -> t.Iterator[Json]:
    """Yield the findings about what `drift` returned."""
    for one in found:
        what, name = one["what"], one["name"]
        shown = short_list(map(_shown, one["differences"]), limit=4)
        params = {"hosts": short_list(one["hosts"]), "others": one["others"], "differences": shown}
        where = {"conflist": f"network {name}", "multus": name, "plugin": "plugins", "effective": name}[what]
        name = short(name)
        # by its first host, so that another group is a new finding, and one more host in the group is not
        subject = f"{name}: {', '.join(difference['key'] for difference in one['differences'])} from {one['hosts'][0]}"
        finding = told(f"fleet-{what}-drift", where, one["hosts"], subject, name=name, **params)
        if what == "conflist":
            finding["network"] = name
        yield finding


def _shown(one: Json) -> str:
    key, here, there = (None if text is None else short(text) for text in (one["key"], one["here"], one["there"]))
    if here is None:
        return f"{key} is missing" if there == "present" else f"no {key} ({there} there)"
    return f"{key} {here} (none there)" if there is None else f"{key} {here} instead of {there}"
