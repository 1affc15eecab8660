# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which mount a path lies on."""

from __future__ import annotations

import os


def noexec_mount(path: str) -> str:
    """Return the mount point whose noexec option keeps files at *path* from being executed; "" if none does.

    The path need not exist: its nearest existing parent counts.
    """
    current = os.path.realpath(path)
    while not os.path.exists(current):
        current = os.path.dirname(current)
    if not os.statvfs(current).f_flag & os.ST_NOEXEC:
        return ""
    return mount_point(current)


def mount_point(path: str) -> str:
    """Return the mount point of an existing path, a bind mount too ("/" if the list of mounts cannot be read)."""
    return _mount_of(path)[0]


def file_system(path: str) -> str:
    """Return the kind of file system on which an existing path lies (``ext4``), "" if that cannot be told."""
    return _mount_of(path)[1]


def _mount_of(path: str) -> tuple[str, str]:
    real = os.path.realpath(path)
    best, kind = "/", ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:
            for line in stream:
                fields = line.split(" ")
                point = _unescaped(fields[4])
                if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
                    best, kind = point, fields[fields.index("-") + 1]
    except OSError:
        pass
    return best, kind


def _unescaped(text: str) -> str:
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, character)
    return text
