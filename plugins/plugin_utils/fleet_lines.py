# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A merged audit as lines for a terminal: what was found, on which host, and what to do about it."""

from __future__ import annotations

import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.rows import short_list
from ansible_collections.nodenet.cni.plugins.module_utils.node.findings import SEVERITIES, entry
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_reports import Json
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_data import grouped

#: Lines of one kind; nobody reads more of them in a terminal.
LIMIT = 100
_MISSING = entry("fleet-host-missing")[0]


def shown(merged: t.Mapping[str, t.Any]) -> dict[str, list[str]]:
    """Return the lines of a merged audit: ``errors``, ``warnings`` and ``infos``, those of the fleet first; ``unread``.

    Findings of nodes that say the same are one line, which names its hosts. Hosts without a report come last.
    """
    missing = [one for one in merged["findings"] if one["code"] == _MISSING]
    fleet = [one for one in merged["findings"] if one["code"] != _MISSING]
    own = [dict({"hint": ""}, **one, hosts=[one["host"]]) for one in merged["node_findings"]]
    lines = {}
    for severity in SEVERITIES:
        found = [(_line(one), 1) for one in fleet if one["severity"] == severity]
        groups = grouped(one for one in own if one["severity"] == severity)
        found += [(f"{short_list(one['hosts'])}: {one['where']}: {_line(one)}", one["count"]) for one in groups]
        found += [(_line(one), 1) for one in missing if one["severity"] == severity]
        lines[severity + "s"] = _limited(found)
    lines["unread"] = _limited((_unread(one), 1) for one in merged["unread"])
    return lines


def _line(one: Json) -> str:
    hint = f": {one['hint']}" if one["hint"] else ""
    return f"{one['text']} ({one['code']}){hint}"  # those of the fleet say in the text where


def _unread(one: Json) -> str:
    what = "networks whose names are not known" if one["network"] is None else f"network {one['network']}"
    return f"{one['host']}: {what} in {one['where']}: {one['reason']}"


def _limited(found: t.Iterable[tuple[str, int]]) -> list[str]:
    """Return the first lines, and how many findings are not told by them."""
    listed = list(found)
    rest = sum(count for _line, count in listed[LIMIT:])
    return [line for line, _count in listed[:LIMIT]] + ([f"and {rest} more, in the reports"] if rest else [])
