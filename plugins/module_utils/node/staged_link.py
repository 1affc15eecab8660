# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A symbolic link that takes its name by a rename, beside files.StagedFile."""

from __future__ import annotations

import contextlib
import os
import stat
import time

from .files import TEMPORARY_PREFIX

_AGE_S = 600  # no run stages files for longer


class StagedLink:
    """A symbolic link that waits under a temporary name."""

    def __init__(self, path: str, target: str) -> None:
        self.path = path
        name = f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(6).hex()}"
        self._temporary = os.path.join(os.path.dirname(path), name)
        os.symlink(target, self._temporary)

    def commit(self) -> None:
        os.rename(self._temporary, self.path)
        self._temporary = ""

    def discard(self) -> None:
        if self._temporary:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._temporary)
            self._temporary = ""


def sweep_links(directory: str) -> None:
    """Remove the temporary links of killed runs: nothing can hold a lock on a link, so only its age tells."""
    for name in os.listdir(directory):
        if name.startswith(TEMPORARY_PREFIX):
            path = os.path.join(directory, name)
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(path)
                if stat.S_ISLNK(status.st_mode) and time.time() - status.st_mtime > _AGE_S:
                    os.unlink(path)
