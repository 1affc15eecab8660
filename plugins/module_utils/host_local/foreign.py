# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files beside the reservations that the Go plugin takes for some of them (host-local spec 3.3, Search)."""

from __future__ import annotations

import os
import stat

from .addresses import parse_address
from .snapshot import strip_space

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from .store import Store


def foreign_contents(store: Store) -> Iterator[tuple[str, bytes]]:
    """Yield (path below the directory, content) of every file that Go would compare with an owner, whatever its name
    and depth, besides the address files."""
    if not store.exists:
        return
    for here, _directories, names, fd in os.fwalk(".", dir_fd=store.directory):
        for name in sorted(names):
            path = os.path.normpath(os.path.join(here, name))
            if path == name and is_address(name):
                continue
            try:
                content = _read_regular(name, fd)
            except OSError:
                continue
            yield path, strip_space(content)


def is_address(name: str) -> bool:
    """Tell whether a file of that name is an address file, whatever its spelling."""
    try:
        parse_address(name)
    except ValueError:
        return False
    return True


def _read_regular(name: str, directory: int) -> bytes:
    fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=directory)
    try:
        return os.read(fd, 4096) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)
