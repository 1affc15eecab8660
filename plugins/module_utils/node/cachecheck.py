# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result caches beside the reservations: entries that are of no use, and addresses in use that nothing reserves.

libcni writes an entry when an ADD has succeeded and removes it when the DEL has. An entry whose network namespace is
still mounted, or whose container is alive as far as somebody told, has the addresses of its result in use.
"""

from __future__ import annotations

import json
import os
import stat
import time

from ..host_local.addresses import parse_address
from ..host_local.report import YOUNG
from ..host_local.rows import label, printable, short_list
from .liveness_netns import namespace_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Sequence

    from ..host_local.live import LiveAttachments


_MOST_BYTES = 1 << 24
#: Seconds for which a DEL may be under way.
SETTLE = 1.0


class Entry:
    """One entry of a result cache; ``addresses`` are those of its result, as canonical text."""

    def __init__(self, tree: Mapping[str, Any]) -> None:
        self.network = str(tree["networkName"])
        self.container_id = str(tree["containerId"])
        self.ifname = str(tree["ifName"])
        result = tree.get("result")
        result = result if isinstance(result, dict) else {}
        self.addresses = list(_addresses(result))
        interfaces = result.get("interfaces")
        names = [tree.get("netns")]
        if isinstance(interfaces, list):
            names += [one.get("sandbox") for one in interfaces if isinstance(one, dict)]
        self._namespaces = [one for one in names if isinstance(one, str) and one.startswith("/")]

    def has_namespace(self) -> bool:
        """Tell whether the network namespace that it names is still there."""
        return any(namespace_of(one) for one in self._namespaces)


def _addresses(result: Mapping[str, Any]) -> Iterable[str]:
    ips = result.get("ips")
    texts: list[Any] = [one.get("address") for one in ips if isinstance(one, dict)] if isinstance(ips, list) else []
    texts += [result[key].get("ip") for key in ("ip4", "ip6") if isinstance(result.get(key), dict)]
    for text in texts:
        try:
            yield str(parse_address(text.partition("/")[0]))
        except (AttributeError, ValueError):
            continue  # of a plugin that names none, or whose result is no concern of host-local


class Cache:
    """What a cache directory holds: ``entries`` and ``ages`` (seconds) by file name, and names that are ``broken``.

    ``failed`` is why it cannot be read, empty if it can.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}
        self.ages: dict[str, float] = {}
        self.broken: list[str] = []
        self.failed = ""
        now = time.time()
        try:
            names = sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.failed = (error.strerror or str(error)).lower()
            return
        for name in names:
            try:
                self._read(name, now)
            except FileNotFoundError:
                continue  # its DEL came
            except OSError:
                self.broken.append(name)

    def forget_gone(self) -> None:
        """Take out the entries whose files are not there any more."""
        for name in list(self.entries):
            if not os.path.exists(os.path.join(self.path, name)):
                del self.entries[name]

    def _read(self, name: str, now: float) -> None:
        path = os.path.join(self.path, name)
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as stream:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                return
            content = stream.read(_MOST_BYTES)
        age = now - status.st_mtime
        try:
            entry = Entry(json.loads(content))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if age >= YOUNG:  # a younger one may be half written: libcni does not write it in one piece
                self.broken.append(name)
            return
        self.entries[name] = entry
        self.ages[name] = age


def check(
    folders: Sequence[str], documents: Sequence[Mapping[str, Any]], live: LiveAttachments | None
) -> list[dict[str, Any]]:
    """Return the facts about the result caches of a node.

    :param folders: directories of result caches; a missing one is empty
    :param documents: networks to compare with, each with its ``reservations`` as they were before the caches are read
    :param live: who is alive, None when nobody said: then only a network namespace proves life
    """
    facts: list[dict[str, Any]] = []
    caches = [Cache(folder) for folder in dict.fromkeys(folders)]
    for cache in caches:
        if cache.failed:
            facts.append({"kind": "node-cache-unreadable", "where": cache.path, "reason": cache.failed})
        if cache.broken:
            facts.append(_counted("ipam-cache-broken", cache.path, map(printable, cache.broken), len(cache.broken)))
    doubts = _judge(caches, documents, live)
    if doubts:
        # a DEL frees the address first and removes the entry last: what is in doubt must outlast it
        time.sleep(SETTLE)
        for cache in caches:
            cache.forget_gone()
        doubts = _judge(caches, documents, live)
    return facts + doubts


def _judge(
    caches: Sequence[Cache], documents: Sequence[Mapping[str, Any]], live: LiveAttachments | None
) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = []
    networks = {one["name"]: one for one in documents if one["source"]}
    used: dict[str, dict[str, list[Entry]]] = {}
    for cache in caches:
        dead = []
        for name, entry in cache.entries.items():
            if cache.ages[name] < YOUNG:
                continue  # its ADD may be newer than the list of who is alive, and than the reservations
            alive = True if entry.has_namespace() else None
            if alive is None and live is not None:
                alive = live.judge(entry.container_id, entry.ifname)
            if alive is False:
                dead.append(name)
            if alive and entry.network in networks:
                for address in entry.addresses:
                    used.setdefault(entry.network, {}).setdefault(address, []).append(entry)
        if dead:
            facts.append(_counted("ipam-cache-dead", cache.path, map(printable, dead), len(dead)))
    for name, addresses in used.items():
        facts += _compare(networks[name], addresses)
    return facts


def _compare(network: Mapping[str, Any], used: Mapping[str, Sequence[Entry]]) -> list[dict[str, Any]]:
    """Compare the addresses in use on a network with its reservations."""
    where = os.path.join(network["data_dir"], network["name"])
    holders: dict[str, set[str]] = {}
    for one in network["reservations"]:
        known = holders.setdefault(one["address"], set())
        known.add(one["container_id"])
        if "holder" in one:
            known.add(one["holder"]["container_id"])
    bare, twice = [], []
    for address, entries in used.items():
        users = {entry.container_id for entry in entries}
        held = holders.get(address, set())
        if not held:
            bare.append(f"{address} ({short_list(sorted(users), 2)})")
        others = held - {""} if not held & users else set()
        if len(users) > 1 or others:
            twice.append(f"{address} ({short_list(sorted(label(one) for one in users | others), 3)})")
    facts = [_counted("ipam-live-unreserved", where, bare, len(bare))] if bare else []
    return facts + ([_counted("ipam-in-use-twice", where, twice, len(twice))] if twice else [])


def _counted(kind: str, where: str, names: Iterable[str], count: int) -> dict[str, Any]:
    return {"kind": kind, "where": where, "count": count, "names": short_list(names)}
