# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""As much of TOML as configurations of container runtimes are written in; the rest is refused, never guessed.

Python has a reader of its own from 3.11 on, and nodes have 3.8.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TOKEN = re.compile(
    r"""(?P<space>[ \t]+|\#[^\n]*)
    |(?P<newline>\r?\n)
    |(?P<multi>\"\"\"|''')
    |(?P<basic>"(?:[^"\\\n]|\\.)*")
    |(?P<literal>'[^'\n]*')
    |(?P<mark>\[\[|\]\]|[\[\]{}=,.])
    |(?P<bare>[A-Za-z0-9_+:-]+(?:\.[0-9][0-9_eE+-]*)?)""",
    re.VERBOSE,
)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")


class Unreadable(Exception):
    """The text is no TOML, or TOML that this reader does not know; ``str()`` says where."""


def parse(text: str) -> dict[str, Any]:
    """Return the document as dicts, lists, strings, integers, floats and booleans. Raises Unreadable."""
    return _Reader(text).document()


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str, int]] = []
        self.at = 0
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            line = text.count("\n", 0, position) + 1
            if match is None or match.lastgroup == "multi":
                raise Unreadable(f"line {line} is written in a way that is not understood")
            if match.lastgroup != "space":
                self.tokens.append((str(match.lastgroup), match.group(), line))
            position = match.end()
        self.tokens.append(("end", "", text.count("\n") + 1))

    def document(self) -> dict[str, Any]:
        root: dict[str, Any] = {}
        here, defined = root, set()
        while self.peek()[0] != "end":
            kind, word, _line = self.peek()
            if kind == "newline":
                self.at += 1
                continue
            if word in ("[", "[["):
                self.at += 1
                path = self.key()
                self.want("]" if word == "[" else "]]")
                if word == "[" and tuple(path) in defined:
                    raise self.fault()
                defined.add(tuple(path))
                here = self.table(root, path, word == "[[")
            else:
                self.assign(here)
            if self.peek()[0] not in ("newline", "end"):
                raise self.fault()
        return root

    def peek(self) -> tuple[str, str, int]:
        return self.tokens[self.at]

    def fault(self) -> Unreadable:
        return Unreadable(f"line {self.peek()[2]} is written in a way that is not understood")

    def want(self, mark: str) -> None:
        if self.peek()[:2] != ("mark", mark):
            raise self.fault()
        self.at += 1

    def key(self) -> list[str]:
        path = []
        while True:
            kind, word, _line = self.peek()
            if kind == "bare" and "." in word:  # numbers as keys, which the tokens take for one
                path += word.split(".")
            elif kind == "bare" and not set(word) & set("+:"):
                path.append(word)
            elif kind in ("basic", "literal"):
                path.append(self.string(kind, word))
            else:
                raise self.fault()
            self.at += 1
            if self.peek()[:2] != ("mark", "."):
                return path
            self.at += 1

    def table(self, root: dict[str, Any], path: list[str], listed: bool) -> dict[str, Any]:
        here: Any = root
        for name in path[:-1]:
            here = here.setdefault(name, {})
            here = here[-1] if isinstance(here, list) and here else here
            if not isinstance(here, dict):
                raise self.fault()
        if listed:
            rows = here.setdefault(path[-1], [])
            if not isinstance(rows, list):
                raise self.fault()
            rows.append({})
            return rows[-1]
        found = here.setdefault(path[-1], {})
        if not isinstance(found, dict):
            raise self.fault()
        return found

    def assign(self, here: dict[str, Any]) -> None:
        path = self.key()
        self.want("=")
        target = self.table(here, path[:-1], False) if len(path) > 1 else here
        if path[-1] in target:
            raise self.fault()
        target[path[-1]] = self.value()

    def value(self) -> Any:
        kind, word, _line = self.peek()
        if word == "[[" and kind == "mark":  # a list whose first element is a list
            self.tokens[self.at : self.at + 1] = [("mark", "[", _line), ("mark", "[", _line)]
            word = "["
        self.at += 1
        if kind in ("basic", "literal"):
            return self.string(kind, word)
        if kind == "bare":
            return self.scalar(word)
        if word == "[":
            return self.items()
        if word == "{":
            return self.inline()
        self.at -= 1
        raise self.fault()

    def items(self) -> list[Any]:
        found: list[Any] = []
        while True:
            while self.peek()[0] == "newline":
                self.at += 1
            kind, word, line = self.peek()
            if (kind, word) == ("mark", "]]"):
                self.tokens[self.at : self.at + 1] = [("mark", "]", line), ("mark", "]", line)]
                word = "]"
            if (kind, word) == ("mark", "]"):
                self.at += 1
                return found
            if found and not self.comma:
                raise self.fault()
            found.append(self.value())
            while self.peek()[0] == "newline":
                self.at += 1
            self.comma = self.peek()[:2] == ("mark", ",")
            self.at += self.comma

    comma = False

    def inline(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.peek()[:2] != ("mark", "}"):
            self.assign(found)
            if self.peek()[:2] == ("mark", ","):
                self.at += 1
            elif self.peek()[:2] != ("mark", "}"):
                raise self.fault()
        self.at += 1
        return found

    def string(self, kind: str, word: str) -> str:
        return word[1:-1] if kind == "literal" else _ESCAPE.sub(self.escape, word[1:-1])

    def escape(self, match: re.Match[str]) -> str:
        code = match.group(1) or match.group(2)
        if code:
            return chr(int(code, 16))
        if match.group(3) not in _ESCAPES:
            raise self.fault()
        return _ESCAPES[match.group(3)]

    def scalar(self, word: str) -> Any:
        if word in ("true", "false"):
            return word == "true"
        digits = word.replace("_", "")
        try:
            return int(digits, 0) if digits.lstrip("+-")[:2] in ("0x", "0o", "0b") else int(digits)
        except ValueError:
            pass
        try:
            return float(digits)
        except ValueError:
            self.at -= 1
            raise self.fault() from None
