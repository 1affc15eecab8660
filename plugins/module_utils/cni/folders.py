# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Making directories, for code that an executable loads: see paths.py."""

from __future__ import annotations

import posix
from errno import ENOTDIR

from . import paths


def make(path: str, mode: int = 0o755) -> None:
    """Make a directory and those above it, unless they are there; another process may do the same at the same time.

    :param path: a clean one
    :param mode: of those that are made, less what the umask takes away
    :raises OSError: naming the one that cannot be made
    """
    if paths.is_directory(path):
        return
    folder = paths.parent(path)
    if folder != path:
        make(folder, mode)
    try:
        posix.mkdir(path, mode)
    except FileExistsError:
        if not paths.is_directory(path):
            raise NotADirectoryError(ENOTDIR, posix.strerror(ENOTDIR), path) from None
