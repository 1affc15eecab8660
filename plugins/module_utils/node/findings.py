# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The registry of findings: one checked fact that is wrong or doubtful, with a code that never changes its meaning.

Code that looks at a node returns plain facts, ``{"kind": ..., "where": ..., **params}``. This module turns a fact into
what a user reads: code, severity, text, hint, and whether the Go plugins or runtimes fail on it. The page
docs/findings.md is generated from the same tables (tests/tools/gen_findings.py).

A kind begins with its family, whose table is in the module ``codes_<family>``: they are long, and a task needs few.
Adding one: take the next free number of the family, never reuse a number. A text is one sentence without a final dot;
``{name}`` is replaced by the fact's value of that name.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Tuple

    Entry = Tuple[str, str, str, str, str]  # code, severity, go, text, hint

FAMILIES = {
    "CONF": "files of the conf dir and what the runtimes make of them",
    "BIN": "plugin executables",
    "IPAM": "host-local configurations and their data dirs",
    "MULTUS": "Multus and its delegates",
    "NODE": "the node itself",
    "FLEET": "what only shows when nodes are compared",
}

SEVERITIES = ("error", "warning", "info")

FAILS = "fails"
CARRIES_ON = "carries_on"
UNAFFECTED = "unaffected"

#: What the Go plugins, or the runtime that reads the file, do about it.
GO = {
    FAILS: "the runtime or the Go plugin fails on it",
    CARRIES_ON: "the runtime or the Go plugin carries on, and the fault shows later or never",
    UNAFFECTED: "no concern of the runtime or the Go plugin",
}


def codes(family: str) -> dict[str, Entry]:
    """Return the table of a family: kind -> (code, severity, go, text, hint). Raises KeyError for no family."""
    if family == "conf":
        from . import codes_conf

        return codes_conf.CODES
    if family == "bin":
        from . import codes_bin

        return codes_bin.CODES
    if family == "ipam":
        from . import codes_ipam

        return codes_ipam.CODES
    if family == "multus":
        from . import codes_multus

        return codes_multus.CODES
    if family == "node":
        from . import codes_node

        return codes_node.CODES
    if family == "fleet":
        from . import codes_fleet

        return codes_fleet.CODES
    raise KeyError(family)


def entry(kind: str) -> Entry:
    """Return what there is to say about a kind. An unknown one is a fault of the program (KeyError)."""
    return codes(kind.partition("-")[0])[kind]


def every() -> dict[str, Entry]:
    """Return the tables of all families."""
    return {kind: one for family in FAMILIES for kind, one in codes(family.lower()).items()}


def finding(kind: str, where: str, **params: object) -> dict[str, str]:
    """Build the finding of one fact, in the shape that all modules return.

    :param kind: key of a table; an unknown one is a fault of the program (KeyError)
    :param where: the file, network or address that the finding is about
    :param params: the values that the text names
    """
    code, severity, go, text, hint = entry(kind)
    return {
        "code": code,
        "severity": severity,
        "where": _printable(where),
        "text": _printable(text.format(**params)),
        "hint": _printable(hint.format(**params)),
        "go": go,
    }


def _printable(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    from ..host_local.rows import printable  # names that are no UTF-8 are rare

    return printable(text)


def from_facts(facts: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    """Turn facts into findings, the gravest first, else in the order given; of equal ones the first is kept.

    :param facts: iterable of ``{"kind": ..., "where": ..., **params}``
    """
    out = []
    for fact in facts:
        params = {key: value for key, value in fact.items() if key not in ("kind", "where")}
        item = finding(fact["kind"], fact["where"], **params)
        if item not in out:
            out.append(item)
    return sorted(out, key=lambda item: SEVERITIES.index(item["severity"]))
