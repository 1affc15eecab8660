# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SELinux labels as extended attributes: read and handed on, where there are any, without any library of the node."""

from __future__ import annotations

import contextlib
import os
import stat

_ATTRIBUTE = "security.selinux"
# what a file brings along that was moved out of a home or a temporary directory, or that was never labelled
_STRAY_TYPES = frozenset(
    ("tmp_t", "user_tmp_t", "initrc_tmp_t", "admin_home_t", "user_home_t", "default_t", "unlabeled_t", "file_t")
)


def label_of(path: str) -> bytes:
    """Return the label of a file, of a link its own; b"" if there is none."""
    try:
        return os.getxattr(path, _ATTRIBUTE, follow_symlinks=False)
    except OSError:
        return b""


def hand_on(path: str, fd: int) -> None:
    """Give the file behind *fd*, which is to take the name *path*, the label of the file before, or of the directory.

    A label that says that the file before came from somewhere else is not handed on.
    """
    try:
        plain = stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        plain = False
    label = label_of(path) if plain else b""
    if not label or type_in(label) in _STRAY_TYPES:
        label = label_of(os.path.dirname(path) or ".")
    with contextlib.suppress(OSError):  # no SELinux, or a policy that forbids it: what the kernel gave it stays
        if label and label != _label_behind(fd):
            os.setxattr(fd, _ATTRIBUTE, label)


def fault(path: str) -> dict[str, str] | None:
    """Return the fact "bin-label" if a file's label says that it came from somewhere else than its directory."""
    own, there = type_in(label_of(path)), type_in(label_of(os.path.dirname(path) or "."))
    if own not in _STRAY_TYPES or not there or own == there:
        return None
    return {"kind": "bin-label", "where": path, "label": own, "directory": there}


def type_in(label: bytes) -> str:
    """Return the type in a label, "bin_t" in b"system_u:object_r:bin_t:s0"; "" if there is none."""
    parts = label.rstrip(b"\0").decode("ascii", "replace").split(":")
    return parts[2] if len(parts) > 2 else ""


def _label_behind(fd: int) -> bytes:
    try:
        return os.getxattr(fd, _ATTRIBUTE)
    except OSError:
        return b""
