# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CNI_ARGS, the key=value list of a call (host-local spec 2.5)."""

from __future__ import annotations

from .errors import INTERNAL, CniError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

_SHORT_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_BOOLEANS = {"1": True, "true": True, "0": False, "false": False}


def go_quote(text: str) -> str:
    """Return *text* as Go's ``%q`` prints it; a surrogate escape stands for the raw byte it came from."""
    out = []
    for char in text:
        code = ord(char)
        if char in '"\\':
            out.append("\\" + char)
        elif char in _SHORT_ESCAPES:
            out.append(_SHORT_ESCAPES[char])
        elif 0xDC80 <= code <= 0xDCFF:
            out.append("\\x%02x" % (code - 0xDC00))
        elif char.isprintable():
            out.append(char)
        elif code < 0x80:
            out.append("\\x%02x" % code)
        else:
            out.append("\\u%04x" % code if code < 0x10000 else "\\U%08x" % code)
    return '"' + "".join(out) + '"'


def parse(text: str, keys: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    """Return the values of the known *keys*, each read by its parser, which raises ValueError with Go's text.

    Unknown keys are an error unless the list itself says ``IgnoreUnknown=1``.
    """
    values: dict[str, Any] = {}
    if not text:
        return values
    unknown: list[str] = []
    ignore_unknown = False
    for pair in text.split(";"):
        key, mark, value = pair.partition("=")
        if not mark or "=" in value:
            raise CniError(INTERNAL, "ARGS: invalid pair %s" % go_quote(pair))
        if key == "CommonArgs":
            raise CniError(
                INTERNAL,
                "ARGS: cannot unmarshal into field 'CommonArgs' - type '*types.CommonArgs'"
                " does not implement encoding.TextUnmarshaler",
            )
        try:
            if key == "IgnoreUnknown":
                ignore_unknown = _boolean(value)
            elif key in keys:
                values[key] = keys[key](value)
            else:
                unknown.append(go_quote(pair))
        except ValueError as error:
            raise CniError(INTERNAL, "ARGS: error parsing value of pair %s: %s" % (go_quote(pair), error)) from None
    if unknown and not ignore_unknown:
        raise CniError(INTERNAL, "ARGS: unknown args [%s]" % " ".join(unknown))
    return values


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in _BOOLEANS:
        raise ValueError("boolean unmarshal error: invalid input " + lowered)
    return _BOOLEANS[lowered]
