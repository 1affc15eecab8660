# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result caches of libcni and Multus: ``<network>-<container id>-<ifname>``, written by ADD, removed by DEL.

They leak together with the reservation, so an entry proves nothing by itself: it counts only while the namespace that
it names is still there.
"""

from __future__ import annotations

import errno
import json
import os

from .liveness import Source, content_of
from .liveness_netns import namespace_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CacheEntry:
    """One file of a cache; ``namespaces`` are the inodes of those that it names and that are still there."""

    def __init__(self, path: str, network: str, container_id: str, ifname: str, namespaces: set[int]) -> None:
        self.path = path
        self.network = network
        self.container_id = container_id
        self.ifname = ifname
        self.namespaces = namespaces

    @property
    def alive(self) -> bool:
        """True if a namespace that it names is still there."""
        return bool(self.namespaces)


def read(folder: str) -> Source:
    """Read a cache. Files that are empty, cut or not of the cache are left alone; a missing directory is empty."""
    source = Source("caches", folder, authoritative=False)
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return source
    except OSError as error:
        source.failed = f"{folder} cannot be read ({(error.strerror or str(error)).lower()})"
        return source
    for name in names:
        try:
            entry = read_entry(os.path.join(folder, name))
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno == errno.EINVAL:  # not a regular file
                continue
            source.failed = f"{folder}/{name} cannot be read ({(error.strerror or str(error)).lower()})"
            return source
        if entry is not None:
            source.entries.append(entry)
            if entry.alive:
                source.add(entry.container_id, entry.ifname)
    return source


def read_entry(path: str) -> CacheEntry | None:
    """Return an entry, None if the file is not one. Names are not taken apart: all of their parts may hold dashes."""
    try:
        tree = json.loads(content_of(path))
    except (ValueError, RecursionError):
        return None
    if not isinstance(tree, dict):
        return None
    keys = [tree.get(key) for key in ("networkName", "containerId", "ifName")]
    if not all(isinstance(one, str) and one for one in keys):
        return None
    namespaces = {inode for inode in map(namespace_of, _namespaces(tree)) if inode}
    return CacheEntry(path, str(keys[0]), str(keys[1]), str(keys[2]), namespaces)


def _namespaces(tree: dict[str, Any]) -> list[str]:
    """Return the namespaces that an entry names: up to libcni 1.1 only the interfaces of its result do."""
    result = tree.get("result")
    interfaces = result.get("interfaces") if isinstance(result, dict) else None
    found = [tree.get("netns")]
    found += [one.get("sandbox") for one in interfaces or () if isinstance(one, dict)]
    return [one for one in found if isinstance(one, str) and one.startswith("/")]
