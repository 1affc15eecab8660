# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules of an executable, taken from one file: to look for each in a file of its own costs more than to run it.

A starter runs this before anything else of ours can be imported, so it stands alone. The file stays open: a call ends
with the code it began with, whatever becomes of the directory.
"""

from __future__ import annotations

import posix
import sys
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Mapping, Tuple

    # whether it is a package, path of its source below the root, where its byte code begins, and its length
    Place = Tuple[bool, str, int, int]


class Bundle:
    """Finds and loads the modules in *places*, by their full names; what is not there others find."""

    def __init__(self, fd: int, start: int, root: str, places: Mapping[str, Place]) -> None:
        self._fd = fd
        self._start = start
        self._root = root
        self._places = places

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Say that a module is found here."""
        if name not in self._places:
            return None
        is_package = self._places[name][0]
        kind: Any = type(sys.__spec__)  # importing it by its name costs as much as what is saved
        spec: ModuleSpec = kind(name, self, is_package=is_package)
        if is_package:  # for what is not in the file
            spec.submodule_search_locations = [self._path(name).rpartition("/")[0]]
        return spec

    def _path(self, name: str) -> str:
        return f"{self._root}/{self._places[name][1]}"

    def create_module(self, _spec: ModuleSpec) -> None:
        """Leave making the module to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Run a module."""
        name = module.__name__
        _is_package, _path, start, size = self._places[name]
        path = module.__file__ = self._path(name)
        try:
            code = loads(posix.pread(self._fd, size, self._start + start))
        except (EOFError, ValueError, TypeError):  # cut off or damaged
            with open(path, "rb") as stream:
                code = compile(stream.read(), path, "exec", dont_inherit=True)
        exec(code, module.__dict__)


def install(fd: int, start: int, root: str, places: Mapping[str, Place]) -> None:
    """Have modules imported from an open file first, in which byte code begins at *start*."""
    finder: Any = Bundle(fd, start, root, places)
    sys.meta_path.insert(0, finder)
