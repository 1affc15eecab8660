# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON as Go's encoding/json reads and prints it (host-local spec 1.4, 1.5).

The document is read once by CPython's C scanner into a tree that keeps what Go looks at: objects are tuples of
(key, value) pairs in document order with their repetitions, arrays are lists, numbers keep their literal. A shape
(`Struct`, `List`, `Text`, `STRING`, `INTEGER`) then decodes the tree the way Go fills a struct.
"""

from __future__ import annotations

from _json import make_scanner

from .errors import DECODING_FAILURE, CniError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

WHITESPACE = " \t\r\n"


class Number(str):
    """A number as it is spelled in the document."""

    __slots__ = ()


class SyntaxFault(Exception):
    """The text is no JSON document; ``str()`` is worded like Go's message, ``offset`` counts characters."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class TypeFault(Exception):
    """A value has the wrong type or form; ``path`` names it."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


class _Context:
    """What the C scanner asks its caller for."""

    strict = True
    object_hook = None
    parse_float = Number
    parse_int = Number
    memo: dict[str, str] = {}
    object_pairs_hook = tuple

    @staticmethod
    def parse_constant(name: str) -> None:
        raise SyntaxFault("invalid character '%s' looking for beginning of value" % name.lstrip("-")[0], -1)


_scanner: Any = make_scanner  # the stubs ask for more than the scanner does
_scan = _scanner(_Context)


def parse(data: bytes | str) -> Any:
    """Return the tree of a document. Raises SyntaxFault where Go refuses the text.

    Invalid UTF-8 and unpaired surrogates become U+FFFD. A document nested deeper than the interpreter's scanner takes
    is refused like one beyond Go's 10,000 levels (H20).
    """
    # surrogateescape gives one code point for each bad byte, like Go; errors="replace" may merge several of them
    text = data.decode("utf-8", "surrogateescape") if isinstance(data, bytes) else data
    tree, end = _scan_from(text, _skip_space(text, 0))
    end = _skip_space(text, end)
    if end != len(text):
        raise SyntaxFault("invalid character %s after top-level value" % _quoted(text[end]), end)
    if not text.isascii() or "\\u" in text:
        tree = _without_surrogates(tree)
    return tree


def _scan_from(text: str, start: int) -> tuple[Any, int]:
    try:
        return _scan(text, start)
    except StopIteration as stop:
        raise _syntax_fault(text, stop.value) from None
    except RecursionError:
        raise SyntaxFault("exceeded max depth", -1) from None
    except SystemError:
        # the scanner takes its error class from json.decoder, which we import only when there is an error to report
        __import__("json.decoder")
        return _scan_from(text, start)
    except ValueError as error:
        raise _syntax_fault(text, getattr(error, "pos", -1)) from None


def _skip_space(text: str, index: int) -> int:
    length = len(text)
    while index < length and text[index] in WHITESPACE:
        index += 1
    return index


def _quoted(char: str) -> str:
    if char in "'\\":
        return "'\\%s'" % char
    return "'%s'" % (char if char.isprintable() else "\\u%04x" % ord(char))


def _syntax_fault(text: str, offset: int) -> SyntaxFault:
    offset = _skip_space(text, max(offset, 0))
    if offset >= len(text) or text[offset] == '"':
        return SyntaxFault("unexpected end of JSON input", offset)
    return SyntaxFault("invalid character %s" % _quoted(text[offset]), offset)


def _without_surrogates(node: Any) -> Any:
    if type(node) is str:
        try:
            node.encode()
        except UnicodeEncodeError:
            return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in node)
        return node
    if type(node) is tuple:
        return tuple((_without_surrogates(key), _without_surrogates(value)) for key, value in node)
    if type(node) is list:
        return [_without_surrogates(value) for value in node]
    return node


def fold(key: str) -> str:
    """Return the form in which two keys are equal for Go (simple case folding; our field names are ASCII)."""
    if not key.isascii():
        key = key.replace("\u017f", "s").replace("\u212a", "k")
    return key.lower()


def plain(node: Any) -> Any:
    """Return a tree as ordinary dicts, lists, ints and floats; of repeated keys the last one counts."""
    kind = type(node)
    if kind is tuple:
        return {key: plain(value) for key, value in node}
    if kind is list:
        return [plain(value) for value in node]
    if kind is Number:
        return float(node) if "." in node or "e" in node or "E" in node else int(node)
    return node


def from_plain(value: Any) -> Any:
    """Return ordinary Python values as a tree, as if they had been read from a document."""
    if isinstance(value, dict):
        return tuple((str(key), from_plain(one)) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return [from_plain(one) for one in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return Number(repr(value))
    return str(value)


def field(node: Any, name: str) -> Any:
    """Return the value Go would put into the field *name* of an object, None if there is none (scalars: last wins)."""
    wanted = fold(name)
    found = None
    if type(node) is tuple:
        for key, value in node:
            if fold(key) == wanted:
                found = value
    return found


def repeated_keys(node: Any, path: str = "") -> list[str]:
    """Return the paths of keys that one object has twice, also when they differ only in case."""
    found: list[str] = []
    if type(node) is tuple:
        seen: set[str] = set()
        for key, value in node:
            here = path + "." + key if path else key
            if fold(key) in seen:
                found.append(here)
            seen.add(fold(key))
            found.extend(repeated_keys(value, here))
    elif type(node) is list:
        for index, value in enumerate(node):
            found.extend(repeated_keys(value, "%s[%d]" % (path, index)))
    return found


# --- shapes: how Go fills a struct ------------------------------------------------------------------------------------


class Shape:
    """A Go type. ``decode`` returns the new value of a field that held *old* before (repeated keys)."""

    name = "interface {}"

    def decode(self, node: Any, old: Any, path: str) -> Any:
        return node


class Text(Shape):
    """A string, or a type that reads itself from one: *parse* raises ValueError with Go's text."""

    def __init__(
        self, name: str = "string", parse_text: Callable[[str], Any] | None = None, null_is_empty: bool = False
    ):
        self.name = name
        self.parse_text = parse_text
        self.null_is_empty = null_is_empty

    def decode(self, node: Any, old: Any, path: str) -> Any:
        if node is None:
            if not self.null_is_empty:
                return old if self.parse_text is None else None
            node = ""
        if type(node) is not str:
            raise _mismatch(node, path, self.name)
        if self.parse_text is None:
            return node
        try:
            return self.parse_text(node)
        except ValueError as error:
            raise TypeFault(str(error), path) from None


class Integer(Shape):
    """A signed 64-bit integer: only integer literals, no 1500.0, no 1e3. *pointer* fields become None by null."""

    name = "int"

    def __init__(self, pointer: bool = False) -> None:
        self.pointer = pointer

    def decode(self, node: Any, old: Any, path: str) -> Any:
        if node is None:
            return None if self.pointer else old
        if type(node) is not Number:
            raise _mismatch(node, path, self.name)
        digits = node[1:] if node[0] == "-" else node
        if not digits.isdigit() or len(digits) > 19 or not -(1 << 63) <= int(node) < 1 << 63:
            raise TypeFault("json: cannot unmarshal number %s into Go value of type int" % node, path)
        return int(node)


class List(Shape):
    """A slice. A repeated key overlays its elements on those of the earlier list."""

    def __init__(self, element: Shape, pointers: bool = False) -> None:
        self.element = element
        self.pointers = pointers
        self.name = "[]" + element.name

    def decode(self, node: Any, old: Any, path: str) -> Any:
        if node is None:
            return None
        if type(node) is not list:
            raise _mismatch(node, path, self.name)
        before = old or []
        return [
            None
            if self.pointers and value is None
            else self.element.decode(value, before[index] if index < len(before) else None, "%s[%d]" % (path, index))
            for index, value in enumerate(node)
        ]


class Struct(Shape):
    """An object with named fields; unknown keys are ignored, keys match without regard to case."""

    def __init__(self, name: str, fields: dict[str, Shape], pointer: bool = False) -> None:
        self.name = name
        self.fields = {fold(key): (key, shape) for key, shape in fields.items()}
        self.pointer = pointer

    def decode(self, node: Any, old: Any, path: str) -> Any:
        if node is None:
            return None if self.pointer else (old or {})
        if type(node) is not tuple:
            raise _mismatch(node, path, self.name)
        values = dict(old) if old else {}
        for key, value in node:
            known = self.fields.get(fold(key))
            if known is not None:
                name, shape = known
                values[name] = shape.decode(value, values.get(name), path + "." + name if path else name)
        return values


STRING = Text()
INTEGER = Integer()

_JSON_TYPES = {tuple: "object", list: "array", str: "string", Number: "number", bool: "bool"}


def _mismatch(node: Any, path: str, name: str) -> TypeFault:
    where = " of %s" % path if path else ""
    return TypeFault(
        "json: cannot unmarshal %s into Go value%s of type %s" % (_JSON_TYPES[type(node)], where, name), path
    )


def decode(shape: Shape, data: bytes | str, prefix: str) -> Any:
    """Parse and decode a document. Raises CniError (code 6); *prefix* precedes Go's text."""
    try:
        return shape.decode(parse(data), None, "")
    except (SyntaxFault, TypeFault) as fault:
        raise CniError(DECODING_FAILURE, prefix + str(fault)) from None


# --- printing ---------------------------------------------------------------------------------------------------------

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
_ESCAPE_TABLE.update({code: "\ufffd" for code in range(0xD800, 0xE000)})


def quote(text: str) -> str:
    """Return a string literal as Go prints it."""
    return '"' + text.translate(_ESCAPE_TABLE) + '"'


def dumps(value: Any, indent: int = 4) -> str:
    """Return a document as Go prints it with an indentation of *indent* spaces, 0 for the compact form."""
    return _print(value, "\n" if indent else "", " " * indent)


def _print(value: Any, newline: str, step: str) -> str:
    if isinstance(value, Number):
        return value
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
