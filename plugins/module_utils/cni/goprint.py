# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON as Go's encoding/json prints it (host-local spec 1.4)."""

from __future__ import annotations

from .gojson import Number, without_surrogates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
_ESCAPE_TABLE = {ord(char): text for char, text in _ESCAPES.items()}
_ESCAPE_TABLE.update({code: "\\u%04x" % code for code in range(0x20) if chr(code) not in _ESCAPES})


def quote(text: str) -> str:
    """Return a string literal as Go prints it."""
    if not text.isascii():
        text = without_surrogates(text)
    return '"' + text.translate(_ESCAPE_TABLE) + '"'


def dumps(value: Any, indent: int = 4) -> str:
    """Return a document as Go prints it with an indentation of *indent* spaces, 0 for the compact form."""
    return _print(value, "\n" if indent else "", " " * indent)


def in_order(value: Any) -> Any:
    """Return a document with the keys of all objects in order, as Go prints a map."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(one) for one in value] if isinstance(value, (list, tuple)) else value


def _print(value: Any, newline: str, step: str) -> str:
    if isinstance(value, Number):
        return value.literal
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _print_float(value)
    inner = newline + step
    if isinstance(value, dict):
        colon = ": " if newline else ":"
        parts = [quote(str(key)) + colon + _print(one, inner if newline else "", step) for key, one in value.items()]
        return "{" + inner + ("," + inner).join(parts) + newline + "}" if parts else "{}"
    parts = [_print(one, inner if newline else "", step) for one in value]
    return "[" + inner + ("," + inner).join(parts) + newline + "]" if parts else "[]"


def _print_float(value: float) -> str:
    """Print a float64 as Go does: shortest digits, exponent form below 1e-6 and from 1e21 on."""
    if value == int(value) and abs(value) < 1e21:
        return _shortest_integer(value)
    text = repr(value)
    if "e" in text and 1e-6 <= abs(value) < 1e21:
        mantissa, _unused, exponent = text.partition("e")
        sign = "-" if mantissa[0] == "-" else ""
        digits = mantissa.lstrip("-").replace(".", "")
        return sign + "0." + "0" * (-int(exponent) - 1) + digits
    mantissa, mark, exponent = text.partition("e")
    if not mark:
        return text
    return "%se%s%s" % (mantissa, exponent[0] if exponent[0] in "+-" else "+", exponent.lstrip("+-").lstrip("0"))


def _shortest_integer(value: float) -> str:
    mantissa, _mark, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa.partition(".")[0]
    digits, _dot, fraction = mantissa.partition(".")
    return digits + fraction + "0" * (int(exponent) - len(fraction))
