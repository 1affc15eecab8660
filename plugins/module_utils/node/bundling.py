# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The byte code of an executable in one file, as this Python compiles it; see `cni.bundle` for who reads it.

The file begins like every file with byte code, with what tells the versions of Python apart; digests of the sources
and of the rest follow, then a table with the byte code of all that every call needs, then the byte code of every module
that only some calls need. Of another version of Python, or gone, the starter does without it, and the sources serve.
"""

from __future__ import annotations
import __future__

import hashlib
import importlib.util
import marshal
import os
import sys

from . import closure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Mapping, Sequence

SUFFIX = ".code"
_LOADER = "cni/bundle.py"
_DIGEST = 32
#: how many bytes say how long the table is that follows them
NUMBER = 8
#: how many bytes there are up to the table
HEAD = len(importlib.util.MAGIC_NUMBER) + 2 * _DIGEST + NUMBER


def make(sources: Mapping[str, str], root: str, package: str, entries: Sequence[str]) -> bytes:
    """Return the content of the file for *sources* (path below the package -> text), which lie in *root*.

    :param entries: the paths of what every call imports
    """
    codes = {path: _compiled(text, os.path.join(root, path)) for path, text in sources.items()}
    first = closure.run_order(sources, entries)
    places = {}
    rest = []
    start = 0
    for path in sorted(set(sources).difference(first)):
        *needed, _path = (_name(package, one) for one in closure.run_order(sources, [path]) if one not in first)
        data = marshal.dumps(codes[path])
        places[_name(package, path)] = (start, len(data), tuple(needed))
        rest.append(data)
        start += len(data)
    loaded_first = tuple((_name(package, path), codes[path]) for path in first)
    table = marshal.dumps((codes[_LOADER], os.path.dirname(root), loaded_first, places, _extensions(sources)))
    body = len(table).to_bytes(NUMBER, "little") + table + b"".join(rest)
    return _head(sources, root) + hashlib.sha256(body).digest() + body


def _name(package: str, path: str) -> str:
    words = [package, *path[: -len(".py")].split("/")]
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


def _extensions(sources: Mapping[str, str]) -> dict[str, str]:
    """Return name -> path of the modules of Python itself that are imported from a file of machine code."""
    found = {}
    for name in closure.absolute_imports(sources) - set(sys.builtin_module_names):
        spec = importlib.util.find_spec(name)
        path = (spec.origin if spec else None) or ""
        if path.startswith(f"{sys.base_exec_prefix}/") and os.path.dirname(path).endswith("/lib-dynload"):
            found[name] = path
    return found


def is_whole(data: bytes, sources: Mapping[str, str], root: str) -> bool:
    """Tell whether *data* is what `make` gave for these sources, with this Python."""
    at = HEAD - NUMBER
    return data[:at] == _head(sources, root) + hashlib.sha256(data[at:]).digest()


def is_sound(data: bytes, magic: bytes) -> bool:
    """Tell whether *data* is undamaged byte code for the Python whose mark is *magic*."""
    at = HEAD - NUMBER
    return data.startswith(magic) and data[at - _DIGEST : at] == hashlib.sha256(data[at:]).digest()


def _head(sources: Mapping[str, str], root: str) -> bytes:
    digest = hashlib.sha256(root.encode("utf-8", "surrogateescape"))
    for path in sorted(sources):
        digest.update(f"\0{path}\0{sources[path]}".encode())
    return importlib.util.MAGIC_NUMBER + digest.digest()


def _compiled(text: str, path: str) -> CodeType:
    """Compile a source without what it would import for its annotations, a module of Python that costs a file."""
    import ast  # only who builds needs it, not every task

    tree = ast.parse(text, path)
    features = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    flags = 0
    for node in features:
        tree.body.remove(node)
        for alias in node.names:
            flags |= getattr(__future__, alias.name).compiler_flag
    code: CodeType = compile(tree, path, "exec", flags=flags, dont_inherit=True, optimize=2)
    return code
