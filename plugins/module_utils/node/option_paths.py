# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with a path that a task gives: loaded only for one that looks odd."""

from __future__ import annotations

from ..cni.errors import NodenetError

#: Directories to work in. Of other options an empty one means none, or the default of whoever reads it.
_NAMED = ("bin_dir", "conf_dir", "state_dir")


def check(option: str, path: str) -> None:
    """Refuse a path that names no place for sure: which directory a module runs in is nobody's choice.

    :raises NodenetError: it is a relative one, or has a NUL byte
    """
    if "\0" in path:
        raise NodenetError(f"Cannot use {path!r} as {option}: a path holds no NUL byte")
    # what src is, and what is wrong with it, says who opens it
    if path[:1] != "/" and option != "src" and (path or option in _NAMED):
        raise NodenetError(f"Cannot use {path!r} as {option}: it has to be an absolute path")
