# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Say where and why a text is no JSON document, in the words of the person who rendered it.

A conflist that does not parse usually comes from a template: a comma after the last element of a loop, a placeholder
that nobody replaced, the text of a Python dict. Each of them is a fact of its own, with its place.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LEFTOVER = re.compile(
    r"\{\{[^\n]*?\}\}|\{%[^\n]*?%\}|\{\{[^\n\"']*|\$\{[A-Za-z_]\w*\}|__[A-Z][A-Z0-9_]*?__|<no value>|<undefined>"
)
_TOKEN = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|[A-Za-z_]\w*|-?\d[\d.eE+-]*|\S")
_PYTHON_LITERALS = {"True": "true", "False": "false", "None": "null"}


def leftovers(text: str, where: str) -> list[dict[str, Any]]:
    """Return a fact for each different piece of template text, also inside of strings of a valid document."""
    found: dict[str, int] = {}
    for match in _LEFTOVER.finditer(text):
        found.setdefault(match.group().strip(), match.start())
    return [_fact("conf-template-leftover", where, text, start, text=piece) for piece, start in found.items()]


def explain(text: str, where: str) -> list[dict[str, Any]]:
    """Return the facts that explain why Go refuses *text*: each cause once, at its first place.

    :param text: a text that cni.gojson.parse refuses
    :param where: what the facts are about, usually the file name
    """
    facts = leftovers(text, where)
    taken = {fact["text"] for fact in facts}
    seen: set[str] = set()
    comma = -1
    for match in _TOKEN.finditer(text):
        token, start = match.group(), match.start()
        fact = None
        if token in ("]", "}") and comma >= 0:
            fact, token = _fact("conf-trailing-comma", where, text, comma), ","
        elif token.startswith("'"):
            fact, token = _fact("conf-single-quotes", where, text, start), "'"
        elif token in _PYTHON_LITERALS:
            fact = _fact("conf-python-literal", where, text, start, text=token, wanted=_PYTHON_LITERALS[token])
        elif token in ("NaN", "Infinity"):
            fact = _fact("conf-syntax", where, text, start, reason=f"JSON has no {token}")
        if fact is not None and token not in seen and token not in taken:
            seen.add(token)
            facts.append(fact)
        comma = start if match.group() == "," else -1
    return facts or [_fact("conf-syntax", where, text, *_place(text))]


def _place(text: str) -> tuple[int, str]:
    """Return offset and reason of the first fault."""
    if not text.strip():
        return 0, "the text is empty"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        end = len(text.rstrip())
        if error.pos >= end:
            return end, "the text ends in the middle of the document"
        reason = error.msg[:1].lower() + error.msg[1:]
        return error.pos, "a string that does not end" if error.msg.startswith("Unterminated") else reason
    except RecursionError:
        return 0, "nested too deep"
    return 0, "not a JSON document"


def _fact(kind: str, where: str, source: str, offset: int, reason: str = "", **params: Any) -> dict[str, Any]:
    fact = {
        "kind": kind,
        "where": where,
        "line": source.count("\n", 0, offset) + 1,
        "column": offset - source.rfind("\n", 0, offset),
    }
    fact.update(params)
    if reason:
        fact["reason"] = reason
    return fact
