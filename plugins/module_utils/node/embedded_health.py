# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the executables of this collection still run as they were made: their Python may have gone or changed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

from . import bundling, executables, vendoring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FRESH, STALE, MISSING = "fresh", "stale", "missing"
_TIMEOUT_S = 10
_QUESTION = (
    "import importlib.util as u, sys; print(u.MAGIC_NUMBER.hex(), sys.implementation.cache_tag, *sys.version_info[:3])"
)


class Python:
    """What byte code an interpreter takes. problem: why it does not run, "" if it does."""

    def __init__(self, magic: bytes = b"", tag: str = "", version: str = "", problem: str = "") -> None:
        self.magic = magic
        self.tag = tag
        self.version = version
        self.problem = problem


def look(bin_dir: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return ``{name, version, python, python_version, byte_code}`` of our executables in *bin_dir*, and facts."""
    rows, facts = [], []
    pythons: dict[str, Python] = {}
    for name in sorted(executables.PLUGINS):
        path = os.path.join(bin_dir, name)
        version = executables.launched_version(path)
        if version is None:
            continue
        interpreter = _interpreter(path)
        if interpreter not in pythons:
            pythons[interpreter] = ask(interpreter)
        python = pythons[interpreter]
        root = os.path.join(_store(path, bin_dir), version)
        byte_code = _byte_code(root, name, python)
        params = {"where": path, "python": interpreter}
        if byte_code == MISSING:
            facts.append({"kind": "bin-embedded-code", "where": path, "code": root})
        elif python.problem:
            facts.append(dict(params, kind="bin-embedded-python", reason=python.problem))
        elif byte_code == STALE:
            facts.append(dict(params, kind="bin-embedded-stale", version=python.version))
        rows.append(
            {
                "name": name,
                "version": version,
                "python": interpreter or None,
                "python_version": python.version or None,
                "byte_code": byte_code,
            }
        )
    return rows, facts


def ask(interpreter: str) -> Python:
    """Return what an interpreter is; it is run unless it is the one that runs this."""
    if os.path.realpath(interpreter) == os.path.realpath(sys.executable):
        version = ".".join(str(part) for part in sys.version_info[:3])
        return Python(importlib.util.MAGIC_NUMBER, str(sys.implementation.cache_tag), version)
    if not os.path.exists(interpreter):
        return Python(problem="there is no such file any more")
    try:
        done = subprocess.run(
            [interpreter, "-IBSc", _QUESTION],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
        magic, tag, *numbers = done.stdout.decode("ascii", "replace").split()
        return Python(bytes.fromhex(magic), tag, ".".join(numbers))
    except subprocess.TimeoutExpired:
        return Python(problem=f"it does not answer within {_TIMEOUT_S} s")
    except OSError as exc:
        return Python(problem=(exc.strerror or str(exc)).lower())
    except ValueError:
        return Python(problem="it does not run as Python")


def _interpreter(path: str) -> str:
    """Return the interpreter that a launcher ends up with, "" if what it starts is gone."""
    try:
        with open(path, "rb") as stream:
            words = stream.readline(4096)[len(b"#!") :].split()
    except OSError:
        return ""
    first = os.fsdecode(words[0]) if words else ""
    return _interpreter(first) if f"/{executables.STORE}/" in first else first


def _store(path: str, bin_dir: str) -> str:
    """Return the directory of versions that a launcher names: it may have been made for another name of bin_dir."""
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        before = stream.read().partition(f"/{executables.STORE}/")[0]
    named = before[max(before.rfind(mark) for mark in ("'", '"', "!")) + 1 :]
    return os.path.join(named or bin_dir, executables.STORE)


def _byte_code(root: str, plugin: str, python: Python) -> str:
    """Tell whether a version has byte code that this Python takes, for the plugin and for packages of others."""
    package = os.path.join(root, executables.PACKAGE)
    sources = [(here, name) for here, _folders, names in os.walk(package) for name in names if name.endswith(".py")]
    if not sources:
        return MISSING
    if python.problem:
        return STALE
    others = os.path.join(package, vendoring.DIRECTORY, "")
    try:
        with open(os.path.join(root, plugin + bundling.SUFFIX), "rb") as stream:
            if not bundling.is_sound(stream.read(), python.magic):
                return STALE
        for here, name in sources:
            if here.startswith(others):
                with open(os.path.join(here, "__pycache__", f"{name[:-3]}.{python.tag}.pyc"), "rb") as stream:
                    if stream.read(len(python.magic)) != python.magic:
                        return STALE
    except OSError:
        return STALE
    return FRESH
