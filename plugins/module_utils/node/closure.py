# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of the library that a program needs: what its modules import, those inside of functions too."""

from __future__ import annotations

import ast
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable


def collect(root: str, entries: Iterable[str]) -> dict[str, str]:
    """Return path below *root* -> text of the files that *entries* are made of.

    :param root: the directory module_utils of the collection
    :param entries: paths below it, such as ``node/reclaim_program.py``
    """
    waiting = list(entries)
    found: dict[str, str] = {}
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        with open(os.path.join(root, path), encoding="utf-8") as stream:
            found[path] = stream.read()
        waiting.append(os.path.join(os.path.dirname(path), "__init__.py"))
        waiting += [one for one in _imports(found[path], path) if os.path.exists(os.path.join(root, one))]
    return found


def _imports(text: str, path: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.split("/")[: -node.level] + (node.module or "").split(".")
            folder = "/".join(part for part in base if part)
            found += [f"{folder}.py"] + [f"{folder}/{alias.name}.py" for alias in node.names]
    return found
