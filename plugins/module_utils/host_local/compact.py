# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reservations of a report as one text, a line each: some 90 bytes instead of 230, and one value instead of nine.

A controller that audits thousands of nodes keeps the reports of all of them, and Ansible looks at every value of a
result. Fields of a line, separated by tabs: address, container id, interface, index of the range set (empty outside
every one), age in seconds, whether the owner is alive (1, 0, or empty where it is not known), and, where there is a
holder of a sticky address, its container id and interface.
"""

from __future__ import annotations

from .rows import row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Mapping, Sequence

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_PLAIN = {escaped[1]: plain for plain, escaped in _ESCAPES.items()}
_ALIVE = {True: "1", False: "0", None: ""}
_KNOWN = {"1": True, "0": False, "": None}


def encode(reservations: Sequence[Mapping[str, Any]]) -> str:
    """Return the text for what a report has as ``reservations``."""
    return "\n".join(map(_line, reservations))


def _line(one: Mapping[str, Any]) -> str:
    index = one["range_set"]
    line = "\t".join(
        (
            one["address"],
            _escaped(one["container_id"]),
            _escaped(one["ifname"]),
            "" if index is None else str(index),
            str(one["age_s"]),
            _ALIVE[one.get("alive")],
        )
    )
    holder = one.get("holder")
    if holder is None:
        return line
    return "\t".join((line, _escaped(holder["container_id"]), _escaped(holder["ifname"])))


def _escaped(text: str) -> str:
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(_ESCAPES.get(one, one) for one in text)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    head, *parts = text.split("\\\\")
    out = [_simple(head)]
    out += ["\\" + _simple(part) for part in parts]
    return "".join(out)


def _simple(text: str) -> str:
    """Undo the escapes of a text without an escaped backslash."""
    for letter, plain in _PLAIN.items():
        if letter != "\\":
            text = text.replace("\\" + letter, plain)
    return text


def lines(text: str) -> Iterator[list[str]]:
    """Yield the fields of each line; ids and interface names are still escaped. Raises ValueError if one is no line."""
    if not text:
        return
    for line in text.split("\n"):
        fields = line.split("\t")
        if len(fields) not in (6, 8):
            raise ValueError(f"a line of rows has {len(fields)} fields")
        yield fields


def decode(text: str) -> Iterator[dict[str, Any]]:
    """Yield the reservations that `encode` was given. Raises ValueError if the text is not of that form."""
    for fields in lines(text):
        address, container_id, ifname, index, age, alive = fields[:6]
        if alive not in _KNOWN:
            raise ValueError(f"{alive!r} does not say whether somebody is alive")
        one = row(address, _unescaped(container_id), _unescaped(ifname), int(index) if index else None, int(age))
        one["alive"] = _KNOWN[alive]
        if len(fields) == 8:
            one["holder"] = {"container_id": _unescaped(fields[6]), "ifname": _unescaped(fields[7])}
        yield one


def reservations_of(network: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the reservations of a network in a report of either form.

    Raises ValueError, TypeError or KeyError if the report is damaged: it comes from a node.
    """
    rows = network.get("rows")
    if rows is not None:
        yield from decode(rows)
    else:
        yield from network["reservations"]


def count(network: Mapping[str, Any]) -> int:
    """Return how many reservations a network in a report has, without reading them."""
    rows = network.get("rows")
    if rows is None:
        return len(network["reservations"])
    return int(rows.count("\n") + 1) if rows else 0
