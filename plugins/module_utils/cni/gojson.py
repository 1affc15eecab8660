# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON as Go's encoding/json reads it (host-local spec 1.5).

The document is read once by CPython's C scanner into a tree that keeps what Go looks at: objects are tuples of
(key, value) pairs in document order with their repetitions, arrays are lists, numbers keep their literal. The shapes of
`goshape` decode it the way Go fills a struct.
"""

from __future__ import annotations

from _json import make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WHITESPACE = " \t\r\n"
_HEX_DIGITS = "0123456789abcdefABCDEF"


class Number:
    """A number; ``literal`` is how it is spelled in the document."""

    __slots__ = ("literal",)

    def __init__(self, literal: str) -> None:
        self.literal = literal

    def __str__(self) -> str:
        return self.literal

    def __repr__(self) -> str:
        return f"Number({self.literal!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self.literal == other.literal

    def __hash__(self) -> int:
        return hash(self.literal)


class SyntaxFault(Exception):
    """The text is no JSON document; ``str()`` is worded like Go's message, ``offset`` counts characters."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class _Context:
    """What the C scanner asks its caller for."""

    strict = True
    object_hook = None
    parse_float = Number
    parse_int = Number
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
    if not text.isascii():
        text = without_surrogates(text)
    if "\\ud" in text or "\\uD" in text:
        text = _without_unpaired_escapes(text)
    tree, end = _scan_from(text, _skip_space(text, 0))
    end = _skip_space(text, end)
    if end != len(text):
        raise SyntaxFault("invalid character %s after top-level value" % _quoted(text[end]), end)
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


def without_surrogates(text: str) -> str:
    """Return *text* with each unpaired surrogate, which may stand for a bad byte, replaced by U+FFFD."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)


def _without_unpaired_escapes(text: str) -> str:
    """Replace the escapes of surrogates that make no pair; the rest of the text stays as it is."""
    pieces = []
    start = 0
    at = text.find("\\")
    while at >= 0:
        code = _surrogate(text, at)
        length = 2
        if code is not None:
            length = 6
            following = _surrogate(text, at + 6)
            if code < 0xDC00 and following is not None and following >= 0xDC00:
                length = 12
            else:
                pieces += [text[start:at], "\\ufffd"]
                start = at + 6
        at = text.find("\\", at + length)
    return "".join(pieces) + text[start:]


def _surrogate(text: str, at: int) -> int | None:
    """Return the code of the surrogate whose escape begins at *at*, None if there is none."""
    digits = text[at + 2 : at + 6]
    if text[at : at + 2] != "\\u" or len(digits) < 4 or digits[0] not in "dD" or digits.strip(_HEX_DIGITS):
        return None
    code = int(digits, 16)
    return code if code >= 0xD800 else None


def depth(tree: Any) -> int:
    """Return how deep objects and arrays are nested; found without recursion."""
    levels = 0
    level = [tree]
    while True:
        level = [node for node in level if isinstance(node, (tuple, list))]
        if not level:
            return levels
        levels += 1
        level = [value for node in level for value in (node if isinstance(node, list) else [pair[1] for pair in node])]


def fold(key: str) -> str:
    """Return the form in which two keys are equal for Go (simple case folding; our field names are ASCII)."""
    if not key.isascii():
        key = key.replace("\u017f", "s").replace("\u212a", "k")
    return key.lower()


def plain(node: Any) -> Any:
    """Return a tree as ordinary dicts, lists, ints and floats; of repeated keys the last one counts."""
    if isinstance(node, tuple):
        return {key: plain(value) for key, value in node}
    if isinstance(node, list):
        return [plain(value) for value in node]
    if isinstance(node, Number):
        literal = node.literal
        return float(literal) if "." in literal or "e" in literal or "E" in literal else int(literal)
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
    if isinstance(node, tuple):
        for key, value in node:
            if fold(key) == wanted:
                found = value
    return found


def repeated_keys(node: Any, path: str = "") -> list[str]:
    """Return the paths of keys that one object has twice, also when they differ only in case."""
    found: list[str] = []
    if isinstance(node, tuple):
        seen: set[str] = set()
        for key, value in node:
            here = path + "." + key if path else key
            if fold(key) in seen:
                found.append(here)
            seen.add(fold(key))
            found.extend(repeated_keys(value, here))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            found.extend(repeated_keys(value, "%s[%d]" % (path, index)))
    return found
