# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules of an executable, taken from one file: to look for each in a file of its own costs more than to run it.

What a module imports as it is loaded is loaded before it, without the import statement, which costs as much again. A
starter runs this before anything else of ours can be imported, so it stands alone. The file stays open: a call ends
with the code it began with, whatever becomes of the directory.
"""

from __future__ import annotations

import posix
import sys
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any, Iterable, Mapping, Tuple

    # where byte code begins and its length, and the names of the modules to be loaded before
    Place = Tuple[int, int, Tuple[str, ...]]


class Bundle:
    """Finds and loads modules by their full names; what is not here others find.

    :param fd: the open file; the places count from *start*
    :param top: the directory of the sources, which serve if byte code is damaged
    :param extensions: paths of modules of Python itself: to look for one costs as much as to load it
    """

    def __init__(
        self, fd: int, start: int, top: str, places: Mapping[str, Place], extensions: Mapping[str, str]
    ) -> None:
        self._fd = fd
        self._start = start
        self._top = top
        self._places = places
        self._extensions = extensions

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Say that a module is found here."""
        kind: Any = type(sys.__spec__)  # importing it by its name costs as much as what is saved
        if name in self._places:
            spec: ModuleSpec = kind(name, self)
            return spec
        path = self._extensions.get(name)
        return None if path is None else _extension(kind, name, path)

    def create_module(self, _spec: ModuleSpec) -> None:
        """Leave making the module to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Run a module, after those that it needs."""
        name = module.__name__
        _load((needed, self._code(needed)) for needed in self._places[name][2] if needed not in sys.modules)
        _run(module, self._code(name))

    def _code(self, name: str) -> CodeType:
        start, size, _needs = self._places[name]
        try:
            code: CodeType = loads(posix.pread(self._fd, size, self._start + start))
        except (EOFError, ValueError, TypeError):  # cut off or damaged
            path = f"{self._top}/{name.replace('.', '/')}.py"
            with open(path, "rb") as stream:
                code = compile(stream.read(), path, "exec", dont_inherit=True)
        return code


def _extension(kind: Any, name: str, path: str) -> ModuleSpec | None:
    from _frozen_importlib_external import ExtensionFileLoader

    try:
        posix.stat(path)
    except OSError:
        return None
    spec: ModuleSpec = kind(name, ExtensionFileLoader(name, path), origin=path)
    return spec


def _load(modules: Iterable[tuple[str, CodeType]]) -> None:
    """Load modules, as the import statement would."""
    for name, code in modules:
        module = type(sys)(name)
        parent, _dot, last = name.rpartition(".")
        module.__package__ = parent
        if code.co_filename.endswith("/__init__.py"):
            module.__package__ = name
            module.__path__ = [code.co_filename.rpartition("/")[0]]
        sys.modules[name] = module
        try:
            _run(module, code)
        except BaseException:
            del sys.modules[name]
            raise
        if parent:
            setattr(sys.modules[parent], last, module)


def _run(module: ModuleType, code: CodeType) -> None:
    module.__file__ = code.co_filename
    exec(code, module.__dict__)


def install(
    fd: int,
    start: int,
    top: str,
    first: Iterable[tuple[str, CodeType]],
    places: Mapping[str, Place],
    extensions: Mapping[str, str],
) -> None:
    """Have modules imported from an open file first, and load those that every call needs."""
    finder: Any = Bundle(fd, start, top, places, extensions)
    sys.meta_path.insert(0, finder)
    _load(first)
