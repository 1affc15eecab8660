# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of the library that a program needs: what its modules import, those inside of functions too."""

from __future__ import annotations

import ast
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator, Mapping

_PACKAGE = "__init__.py"


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
        waiting.append(os.path.join(os.path.dirname(path), _PACKAGE))
        imports = _imports(_that_run(ast.parse(found[path])), path)
        waiting += [one for one in imports if os.path.exists(os.path.join(root, one))]
    return found


def run_order(sources: Mapping[str, str], entries: Iterable[str]) -> list[str]:
    """Return the paths in *sources* that are run when *entries* are imported, each behind those that it needs."""
    found: list[str] = []
    begun: set[str] = set()

    def visit(path: str) -> None:
        if path in begun or path not in sources:
            return
        begun.add(path)
        folder, name = os.path.split(path)
        visit(os.path.join(os.path.dirname(folder) if name == _PACKAGE else folder, _PACKAGE))
        for needed in _imports(ast.parse(sources[path]).body, path):
            visit(needed)
        found.append(path)

    for entry in entries:
        visit(entry)
    return found


def absolute_imports(sources: Mapping[str, str]) -> set[str]:
    """Return the names of the top modules of others that *sources* import."""
    found: set[str] = set()
    for text in sources.values():
        for node in _that_run(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
    return found


def _that_run(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a module but those that only a type checker sees."""
    yield tree
    if not (isinstance(tree, ast.If) and isinstance(tree.test, ast.Name) and tree.test.id == "TYPE_CHECKING"):
        for node in ast.iter_child_nodes(tree):
            yield from _that_run(node)


def _imports(nodes: Iterable[ast.AST], path: str) -> list[str]:
    found = []
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.split("/")[: -node.level] + (node.module.split(".") if node.module else [])
            names = [base, *([*base, alias.name] for alias in node.names)]
            found += ["/".join(name) + ".py" for name in names if name]
    return found
