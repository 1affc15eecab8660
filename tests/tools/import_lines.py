# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count the lines of code of the collection that importing a module executes.

A module comes to the node in an archive without byte code, so each task on each host compiles what it imports: about
10 ms for 1,000 lines of code. Comments, docstrings and a module's documentation cost next to nothing and are not
counted. What is imported inside a function travels too but costs nothing until it is reached.
"""

from __future__ import annotations

import ast
import glob
import io
import json
import os
import subprocess
import sys
import time
import tokenize

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SMALL = ("conflist", "host_local_info", "host_local_reservation")
BUDGET_SMALL, BUDGET = 2000, 4000
DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
PROBE = """
import importlib, json, sys
importlib.import_module("ansible_collections.nodenet.cni.plugins.modules." + sys.argv[1])
prefix = "ansible_collections.nodenet.cni."
print(json.dumps(sorted(module.__file__ for name, module in sys.modules.items()
                        if name.startswith(prefix) and getattr(module, "__file__", None))))
"""


def code_lines(text: str) -> int:
    """The lines of a file that hold code: no blank ones, no comments, no docstrings, no documentation of a module."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        words = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        manual = isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in DOCUMENTATION
        if words or manual:
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def modules() -> list[str]:
    found = glob.glob(os.path.join(ROOT, "plugins", "modules", "*.py"))
    return sorted(os.path.splitext(os.path.basename(path))[0] for path in found)


def budget(module: str) -> int:
    return BUDGET_SMALL if module in SMALL else BUDGET


def measure(module: str) -> dict[str, int]:
    """The files that importing `module` loads, with their lines of code; this interpreter must have ansible-core."""
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, ".dev"), PYTHONDONTWRITEBYTECODE="1")
    command = [sys.executable, "-c", PROBE, module]
    done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    counted = {}
    for path in json.loads(done.stdout.decode()):
        with open(path, encoding="utf-8") as stream:
            counted[os.path.relpath(os.path.realpath(path), os.path.realpath(ROOT))] = code_lines(stream.read())
    return counted


def compile_ms(names: list[str]) -> float:
    texts = []
    for name in names:
        with open(os.path.join(ROOT, name), encoding="utf-8") as stream:
            texts.append((stream.read(), name))
    started = time.perf_counter()
    for text, name in texts:
        compile(text, name, "exec")
    return (time.perf_counter() - started) * 1000


def main() -> int:
    over = 0
    for module in modules():
        files = measure(module)
        lines = sum(files.values())
        over += lines > budget(module)
        figures = (module, lines, budget(module), len(files), compile_ms(list(files)))
        print("%-24s %5d of %d lines, %2d files, compiled in %.1f ms" % figures)
        if "-v" in sys.argv:
            for name, number in sorted(files.items(), key=lambda item: -item[1]):
                print("    %5d  %s" % (number, name))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
