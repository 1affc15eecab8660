# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages of others that go along with an executable: taken from the controller, kept beside our own code.

Only their Python files go. What such a package has in C is left out; PyYAML and h2 do without.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Mapping, Sequence

#: below the package of an executable; `multus.vendored` looks there
DIRECTORY = "vendored"
#: plugin -> groups of packages; the packages of a group need each other, a group as such may be missing
PACKAGES = {"multus": (("yaml",), ("h2", "hpack", "hyperframe"))}
_IN_C_ONLY = frozenset(("yaml/cyaml.py",))  # of no use without what is left out


def collect(plugins: Sequence[str]) -> dict[str, str]:
    """Return path -> text of the packages for *plugins* that this Python has, as `executables.collect_sources` does."""
    sources: dict[str, str] = {}
    for group in (group for plugin in plugins for group in PACKAGES.get(plugin, ())):
        folders = [_folder(package) for package in group]
        if not all(folders):
            continue
        files: dict[str, str] = {}
        try:
            for package, folder in zip(group, folders):
                files.update(_python_files(package, folder))
        except (OSError, UnicodeDecodeError):  # as good as not there
            continue
        sources.update(files)
    return sources


def missing(sources: Mapping[str, str], plugins: Sequence[str]) -> list[str]:
    """Return the names of the groups of packages, by their first, that *sources* lacks."""
    groups = [group for plugin in plugins for group in PACKAGES.get(plugin, ())]
    return [group[0] for group in groups if f"{DIRECTORY}/{group[0]}/__init__.py" not in sources]


def unfit(sources: Mapping[str, str]) -> list[str]:
    """Return the packages of which this Python cannot compile a file, with those of their groups.

    Errors a package only shows when it is used are for who uses it.
    """
    wrong = set()
    for path, text in sources.items():
        if is_others(path):
            try:
                compile(text, path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError):
                wrong.add(path.split("/")[1])
    groups = [group for groups in PACKAGES.values() for group in groups if wrong & set(group)]
    return sorted({package for group in groups for package in group})


def is_others(path: str) -> bool:
    """Tell whether a source is one of a package of others."""
    return path.startswith(DIRECTORY + "/")


def marker(package: str) -> str:
    """Return the path of the file that stands for a package which is none for this Python."""
    return f"{DIRECTORY}/{package}.unfit"


def wanted(sources: Mapping[str, str], without: Collection[str]) -> dict[str, str]:
    """Return *sources* with the packages *without* replaced by their markers."""
    starts = tuple(f"{DIRECTORY}/{package}/" for package in without)
    kept = {path: text for path, text in sources.items() if not starts or not path.startswith(starts)}
    return dict(kept, **{marker(package): "" for package in without})


def _folder(package: str) -> str:
    """Return where a package lies, "" if it is not here."""
    import importlib.util  # only who builds needs it, not every task

    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return ""
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    return places[0] if len(places) == 1 and os.path.isfile(os.path.join(places[0], "__init__.py")) else ""


def _python_files(package: str, folder: str) -> dict[str, str]:
    found = {}
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in ("__pycache__", "tests", "test")]
        for name in names:
            path = os.path.join(package, os.path.relpath(os.path.join(here, name), folder))
            if name.endswith(".py") and path not in _IN_C_ONLY:
                with open(os.path.join(here, name), encoding="utf-8") as stream:
                    found[f"{DIRECTORY}/{path}"] = stream.read()
    return found
