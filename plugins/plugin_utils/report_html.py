# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An audit as one HTML page that needs nothing but itself.

What a reader sees first is markup made here; the pools, their maps and the search are made by the page's script, of
data that lie in the page as JSON, and only when they are opened. The policy of the page lets this one script and this
one style run, by their hashes, and nothing be loaded.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import pathlib
import typing as t

import jinja2
from markupsafe import Markup

from ansible_collections.nodenet.cni.plugins.module_utils.node.findings import SEVERITIES, entry
from ansible_collections.nodenet.cni.plugins.module_utils.node.ipam_trend import span
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_pools import percent
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_reports import MOST
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_data import SIGNS, grouped, page_data
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_rows import Audit, Json, visible

_PARTS = pathlib.Path(__file__).parent / "report_page"
#: Rows of a table that are there without the script.
LIMIT = 100
#: Rows of a list of what changed.
CHANGES = 50
_POWERS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"


def html(audit: Audit) -> str:
    """Return the page."""
    style, script = _part("page.css"), _part("page.js")
    document = audit.document
    summary = document["summary"]
    # hosts without a report are told of at the top; hundreds of them shall not stand before what was found
    findings = sorted(grouped(audit.findings()), key=lambda one: (SEVERITIES.index(one["severity"]), _is_missing(one)))
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.from_string(_part("page.html.j2"))
    return template.render(
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data=Markup(_json(page_data(audit, findings))),
        title=f"CNI address audit, {_moment(document['taken_at'])[:10]}: {_verdict(summary)['text']}",
        taken=_moment(document["taken_at"]),
        summary=summary,
        verdict=_verdict(summary),
        missing=[_shown(one) for one in audit.hosts if not one["reported"]],
        unread=[_shown(one) for one in document["unread"]],
        tiles=_tiles(summary, document["complete"]),
        history=_history(document["history"]),
        findings=[dict(_shown(one), hosts=_names(one["hosts"])) for one in findings[:LIMIT]],
        networks=[_shown({key: _cell(one[key]) for key in one}) for one in document["networks"]],
        drift=[_drift(one) for one in document["drift"]],
        legend=[{"state": key, "sign": SIGNS[key][0], "text": SIGNS[key][1]} for key in SIGNS],
        limit=LIMIT,
    )


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(value: t.Any) -> str:
    """Return JSON that can stand in a script element: nothing in it can end one or begin a comment."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _moment(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shown(one: Json) -> Json:
    return {key: visible(value) if isinstance(value, str) else value for key, value in one.items()}


def _names(hosts: t.Sequence[str], limit: int = 4) -> str:
    shown = ", ".join(visible(one) for one in hosts[:limit])
    return f"{shown} and {len(hosts) - limit} more" if len(hosts) > limit else shown


def _is_missing(one: Json) -> bool:
    return one["code"] == entry("fleet-host-missing")[0]


def _verdict(summary: Json) -> Json:
    errors, warnings, missing, unread = (summary[key] for key in ("errors", "warnings", "missing", "unread"))
    parts = [
        f"{count} {word}{'' if count == 1 else 's'}"
        for count, word in ((errors, "error"), (warnings, "warning"))
        if count
    ]
    if missing:
        parts.append(f"{missing} of {summary['hosts']} hosts missing")
    if unread:
        parts.append(f"{unread} network{'' if unread == 1 else 's'} not read")
    level = "error" if errors or missing or unread else "warning" if warnings else "good"
    return {"level": level, "text": ", ".join(parts) or "Nothing wrong found"}


def _tiles(summary: Json, complete: bool) -> list[Json]:
    def tile(label: str, value: t.Any, note: str = "", level: str = "") -> Json:
        return {"label": label, "value": _count(value), "note": note, "level": level if value else ""}

    full = percent(summary)
    missing = f"{summary['missing']} missing" if summary["missing"] else "all reported"
    return [
        tile("Errors", summary["errors"], level="error"),
        tile("Warnings", summary["warnings"], level="warning"),
        dict(tile("Hosts", summary["hosts"], missing), level="error" if summary["missing"] else ""),
        tile("Networks", summary["networks"]),
        tile("Pools", summary["pools"]),
        tile("Usable addresses", summary["usable"]),
        tile("Reserved", summary["reserved"], "" if full is None else f"{full} % of all"),
        tile("Static", summary["static"]),
        tile("Leaked", summary["leaked"], "nobody said who is alive" if summary["leaked"] is None else "", "warning"),
        tile("Held twice", summary["duplicates"], "" if complete else "of what was read", "error"),
        tile("Free", summary["free"]),
    ]


def _count(value: int | None) -> str:
    if value is None:
        return "-"
    value = min(value, MOST)
    if value < 10**12:
        return f"{value:,}"
    head, power = f"{value:.1e}".split("e+")
    return f"{head} \u00d7 10" + "".join(_POWERS[int(one)] for one in power)


def _cell(value: t.Any) -> str:
    return value if isinstance(value, str) else _count(value)


def _history(history: Json | None) -> Json | None:
    if history is None:
        return None
    grown = [
        f"{_range_set(one)}: {one['before']} to {one['reserved']} of {one['usable']}"
        + (f", full in {span(one['full_in_s'])}" if one["full_in_s"] is not None else "")
        for one in history["growing"]
    ]
    changed = [
        f"{_range_set(one)}: {', '.join(one['before'])}, now {', '.join(one['ranges'])}"
        for one in history["ranges_changed"]
    ]
    parts = (
        ("New findings", [_finding(one) for one in history["new"]]),
        ("Findings that are gone", [_finding(one) for one in history["gone"]]),
        ("Growing pools", grown),
        ("Pools with other ranges than before", changed),
    )
    return {
        "previous": None if history["previous_at"] is None else _moment(history["previous_at"]),
        "audits": history["audits"],
        "parts": [
            {"title": title, "rows": [visible(row) for row in rows[:CHANGES]], "total": len(rows), "open": not index}
            for index, (title, rows) in enumerate(parts)
        ],
    }


def _range_set(one: Json) -> str:
    return f"{one['network']} on {one['host']}, range set {one['range_set']}"


def _finding(one: Json) -> str:
    host = f"{one['host']}: " if one["host"] else ""
    return f"{one['severity']} {one['code']} {host}{one['where']}: {one['text']}"


def _drift(one: Json) -> Json:
    differences = [
        {key: "(nothing)" if two[key] is None else visible(two[key]) for key in ("key", "here", "there")}
        for two in one["differences"]
    ]
    return dict(_shown(one), hosts=_names(one["hosts"]), differences=differences[:LIMIT])
