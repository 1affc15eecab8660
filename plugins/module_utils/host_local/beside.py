# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files beside a network's directory: where something needs a name that must not be in the directory itself.

Go reads every name in the directory, so nothing of ours may have one there but address files. What a crash leaves is
swept by the next call that comes here under the network's lock.
"""

from __future__ import annotations

import posix

from ..cni import paths
from .layout import beside_prefix, index_name


class Beside:
    """The directory that holds the network's directory; ``parent`` is its open descriptor.

    ``usable`` is false when the network's directory is a mount point of its own, so that no file can be moved.
    """

    def __init__(self, directory: int, network: str) -> None:
        self.parent = posix.open("..", posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC, dir_fd=directory)
        self.usable = posix.fstat(self.parent).st_dev == posix.fstat(directory).st_dev
        self._prefix = beside_prefix(network)
        self._index = index_name(network)
        self._count = 0
        if self.usable:
            self._sweep()

    def _sweep(self) -> None:
        for name in posix.listdir(self.parent):
            if name.startswith(self._prefix) and name != self._index:
                self.remove(name)

    def new_name(self) -> str:
        """Return a name that nothing has."""
        self._count += 1
        return f"{self._prefix}{posix.getpid()}.{self._count}"

    def remove(self, name: str) -> None:
        """Remove a file, if that can be done: one that stays is swept later."""
        try:
            posix.unlink(name, dir_fd=self.parent)
        except OSError:
            pass

    def close(self) -> None:
        """Close the descriptor."""
        paths.close(self.parent)
