# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How Go fills a struct from JSON (host-local spec 1.5).

Keys match without regard to case, repeated objects merge, a null leaves scalars alone; a wrong type is named.
"""

from __future__ import annotations

from .gojson import Number, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class TypeFault(Exception):
    """A value has the wrong type or form; ``path`` names it."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


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
        if not isinstance(node, str):
            raise mismatch(node, path, self.name)
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
        if not isinstance(node, Number):
            raise mismatch(node, path, self.name)
        literal = node.literal
        digits = literal[1:] if literal[0] == "-" else literal
        if not digits.isdigit() or len(digits) > 19 or not -(1 << 63) <= int(literal) < 1 << 63:
            raise TypeFault(f"json: cannot unmarshal number {literal} into Go value of type int", path)
        return int(literal)


class Boolean(Shape):
    """A bool: nothing but true and false."""

    name = "bool"

    def decode(self, node: Any, old: Any, path: str) -> Any:
        if node is None:
            return old
        if not isinstance(node, bool):
            raise mismatch(node, path, self.name)
        return node


class List(Shape):
    """A slice. A repeated key overlays its elements on those of the earlier list."""

    def __init__(self, element: Shape, pointers: bool = False) -> None:
        self.element = element
        self.pointers = pointers
        self.name = "[]" + element.name

    def decode(self, node: Any, old: Any, path: str) -> Any:
        if node is None:
            return None
        if not isinstance(node, list):
            raise mismatch(node, path, self.name)
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
        if not isinstance(node, tuple):
            raise mismatch(node, path, self.name)
        values = dict(old) if old else {}
        for key, value in node:
            known = self.fields.get(fold(key))
            if known is not None:
                name, shape = known
                decoded = shape.decode(value, values.get(name), path + "." + name if path else name)
                values[name] = decoded
                if decoded is None:
                    del values[name]
        return values


STRING = Text()
INTEGER = Integer()
BOOLEAN = Boolean()

_JSON_TYPES = {tuple: "object", list: "array", str: "string", Number: "number", bool: "bool"}


def mismatch(node: Any, path: str, name: str) -> TypeFault:
    """Return the fault of a value that is of another JSON type than *name*, a Go type, takes."""
    where = " of %s" % path if path else ""
    return TypeFault(
        "json: cannot unmarshal %s into Go value%s of type %s" % (_JSON_TYPES[type(node)], where, name), path
    )
