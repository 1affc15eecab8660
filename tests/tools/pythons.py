# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the Python interpreters of this machine, wherever their manager keeps them.

Real files only: the shims of a version manager need environment variables that ansible-test removes.
"""

from __future__ import annotations

import functools
import glob
import os
import re
import subprocess
import sys

PROBE = (
    "import sys, platform, ssl, ctypes, sqlite3;"
    "print(platform.python_implementation(), '%d.%d' % sys.version_info[:2],"
    " getattr(sys, '_base_executable', sys.executable))"
)
BASE_VERSIONS = ((3, 11), (3, 12), (3, 13))


def probe(executable: str) -> tuple[tuple[int, int], str] | None:
    """The version and the real path of an interpreter; None when it does not run, or is not CPython 3.8 or newer."""
    try:
        done = subprocess.run(
            [executable, "-I", "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    kind, version, path = done.stdout.decode().strip().split(" ", 2)
    major, minor = (int(part) for part in version.split("."))
    if kind != "CPython" or (major, minor) < (3, 8):
        return None
    return (major, minor), os.path.realpath(path)


def folders() -> list[str]:
    """The folders that may hold interpreters: those of PATH, then those of version managers."""
    home = os.path.expanduser("~")
    places = [part for part in os.environ.get("PATH", "").split(os.pathsep) if part]
    roots = [
        os.path.join(os.environ.get("PYENV_ROOT") or os.path.join(home, ".pyenv"), "versions"),
        os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share"), "uv", "python"),
        os.path.join(home, ".asdf", "installs", "python"),
    ]
    for root in roots:
        places.extend(sorted(glob.glob(os.path.join(root, "*", "bin")), key=release, reverse=True))
    unique = []
    for place in places:
        if place not in unique and os.path.basename(place) != "shims" and not in_venv(place):
            unique.append(place)
    return unique


def release(folder: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", os.path.basename(os.path.dirname(folder)))]


def in_venv(folder: str) -> bool:
    return os.path.exists(os.path.join(os.path.dirname(folder), "pyvenv.cfg"))


@functools.lru_cache(maxsize=None)
def find() -> dict[tuple[int, int], str]:
    """Every version that the machine has, with the real path of the interpreter found first."""
    found: dict[tuple[int, int], str] = {}
    seen = set()
    for folder in folders():
        for candidate in sorted(glob.glob(os.path.join(folder, "python3*"))):
            real = os.path.realpath(candidate)
            if not re.fullmatch(r"python3(\.\d+)?", os.path.basename(candidate)) or real in seen:
                continue
            seen.add(real)
            answer = probe(candidate)
            if answer and answer[0] not in found:
                found[answer[0]] = answer[1]
    return dict(sorted(found.items()))


def base() -> str:
    """The interpreter of the mandatory row: the one that runs this, else the lowest that ansible-core 2.19 runs on."""
    own = probe(sys.executable)
    if own and own[0] in BASE_VERSIONS:
        return own[1]
    for version in BASE_VERSIONS:
        if version in find():
            return find()[version]
    raise SystemExit(
        "Cannot set up the test environment on this machine: ansible-core 2.19 needs Python 3.11, 3.12 or 3.13,"
        " and none is in PATH or kept by a version manager"
    )


def search_path(first: str) -> str:
    """A PATH with `first`, then the real interpreters, then what was there, without the shims of version managers."""
    kept = [part for part in os.environ.get("PATH", "").split(os.pathsep) if part and os.path.basename(part) != "shims"]
    return os.pathsep.join([first] + [os.path.dirname(path) for path in reversed(list(find().values()))] + kept)


if __name__ == "__main__":
    for number, location in find().items():
        print("%d.%d %s" % (number[0], number[1], location))
