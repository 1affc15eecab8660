# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths, for code that an executable loads.

Such code calls the system through ``posix``, the C half of ``os``: loading ``os`` itself takes a quarter of the time in
which the interpreter starts.
"""

from __future__ import annotations

import posix
from _stat import S_ISDIR

#: Where libcni and Multus keep what each ADD returned.
RESULTS_DIRS = ("/var/lib/cni/results", "/var/lib/cni/multus/results")


def clean(path: str) -> str:
    """Return the shortest equal path, judged by its text alone, as Go's filepath.Clean does."""
    rooted = path[:1] == "/"
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif parts and parts[-1] != "..":
            parts.pop()
        elif not rooted:
            parts.append(part)
    return ("/" if rooted else "") + "/".join(parts) or "."


def parent(path: str) -> str:
    """Return the directory of a clean path, that of ``/`` is itself."""
    head, mark, _name = path.rpartition("/")
    return head or mark or "."


def is_directory(path: str) -> bool:
    """Tell whether there is a directory, or a link to one."""
    try:
        return S_ISDIR(posix.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def exists(path: str) -> bool:
    """Tell whether there is anything of that name, be it a dangling link."""
    try:
        posix.lstat(path)
    except (OSError, ValueError):
        return False
    return True


def same_file(one: posix.stat_result, other: posix.stat_result) -> bool:
    """Tell whether two results of stat are of one file."""
    return one.st_ino == other.st_ino and one.st_dev == other.st_dev


def close(fd: int) -> None:
    """Close a descriptor whose content has been synced or does not matter.

    Linux frees the descriptor also when close reports an error, and an error that comes this late must not decide
    what becomes of a call.
    """
    try:
        posix.close(fd)
    except OSError:
        pass
