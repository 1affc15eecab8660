# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal of freed addresses: ``<state_dir>/reclaimed/<run id>.json``, written before anything goes.

    {"journal_version": 1, "run_id": "...", "by": "timer" or "module", "networks": [{"network", "data_dir", "entries": [
        {"name", "address", "content", "mode", "mtime_ns", "container_id", "ifname", "reason"}],
        "cache": [{"path", "content", "mode"}]}], "sources": [...]}

``content`` are the bytes of a file in base64, so that they come back as they were. What did come back is noted beside
it, in ``<run id>.restored``, a list of network, name and content: timers leave that alone.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import json
import os
import re
import time

from ..cni.errors import NodenetError
from . import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection

VERSION = 1
FOLDER = "reclaimed"
_RESTORED = ".restored"
#: Who frees.
TIMER, MODULE = "timer", "module"
#: What `prune` leaves: so many journals, and all of the last so many seconds.
KEEP, KEEP_S = 100, 90 * 86400
_SLACK_S = 60.0
_RUN_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}\.json")
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_NEEDED_OF_CACHE = {"path": str, "content": str, "mode": int}
_MOST_NS = 1 << 62
_NEEDED = {"name": str, "content": str, "mode": int, "mtime_ns": int, "container_id": str, "ifname": str}


class Journal:
    """What one run frees. ``run_id`` names it, ``path`` is its file, ``written`` tells whether that is there."""

    def __init__(self, state_dir: str, sources: list[dict[str, Any]], by: str = MODULE) -> None:
        self.run_id = f"{_time_text(time.time())}-{os.urandom(3).hex()}"
        self.path = os.path.join(state_dir, FOLDER, f"{self.run_id}.json")
        self.written = False
        self._state_dir = state_dir
        self._networks: list[dict[str, Any]] = []
        self._sources = sources
        self._by = by

    def add(self, network: str, data_dir: str, entries: list[dict[str, Any]], cache: list[dict[str, Any]]) -> None:
        """Note what is about to go in a network, on disk before this returns. Raises NodenetError if that cannot be."""
        self._networks.append({"network": network, "data_dir": data_dir, "entries": entries, "cache": cache})
        document = {
            "journal_version": VERSION,
            "run_id": self.run_id,
            "by": self._by,
            "networks": self._networks,
            "sources": self._sources,
        }
        try:
            files.make_directory(self._state_dir)
            folder = os.path.dirname(self.path)
            files.make_directory(folder, 0o700)
            files.sweep_temporary(folder)
            files.replace_file(self.path, json.dumps(document, indent=1).encode(), 0o600)
        except OSError as error:
            raise NodenetError(_unwritable(self.path, error)) from None
        self.written = True


def check_writable(state_dir: str) -> None:
    """See, without leaving a trace, that a journal can be written. Raises NodenetError."""
    folder = os.path.join(state_dir, FOLDER)
    try:
        files.check_writable(folder)
    except OSError as error:
        raise NodenetError(f"Cannot free addresses: {_unwritable(folder, error)}") from None


def _unwritable(path: str, error: OSError) -> str:
    return (
        f"the journal {path} cannot be written: {(error.strerror or str(error)).lower()}; nothing is freed without it, "
        "make room for it there or name another directory with the option state_dir (variable reclaim_state_dir)"
    )


def prune(state_dir: str, now: float) -> int:
    """Remove journals of timers that nobody will want back; return their number.

    Those of the last `KEEP_S` seconds stay, by their names and by the times of their files, and the newest `KEEP` of
    all journals. Nothing goes if one is of the future: the clock is wrong then, or was.
    """
    folder = os.path.join(state_dir, FOLDER)
    found = []
    try:
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.endswith(".json") and _RUN_NAME.fullmatch(name):
                found.append((name, os.lstat(path).st_mtime, path))
    except FileNotFoundError:  # none yet, or another run is at it as well
        return 0
    old, future = _time_text(now - KEEP_S), _time_text(now + _SLACK_S)
    if any(name > future or mtime > now + _SLACK_S for name, mtime, _path in found):
        return 0
    aged = [path for name, mtime, path in sorted(found)[:-KEEP] if name < old and mtime < now - KEEP_S]
    gone = [path for path in aged if _of_timer(path)]
    for path in gone:
        files.remove_file(path)
    return len(gone)


def _time_text(when: float) -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(when))


def _of_timer(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return bool(json.loads(stream.read())["by"] == TIMER)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def mark_restored(state_dir: str, run_id: str, entries: Collection[tuple[str, str, bytes]]) -> None:
    """Note that these come back by hand: network, file name and content without white space. Errors: OSError."""
    folder = os.path.join(state_dir, FOLDER)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # other networks of the run may be restored at this moment
        path = os.path.join(folder, run_id + _RESTORED)
        marks = [[one[0], one[1], encoded(one[2])] for one in sorted(_marks(path) | set(entries))]
        files.sweep_temporary(folder)
        files.replace_file(path, json.dumps(marks, indent=1).encode(), 0o600)
    finally:
        os.close(fd)


def restored(state_dir: str) -> set[tuple[str, str, bytes]]:
    """Return what `mark_restored` was given, of all runs. Errors: OSError, NodenetError if it cannot be understood."""
    folder = os.path.join(state_dir, FOLDER)
    found: set[tuple[str, str, bytes]] = set()
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return found
    for name in names:
        if name.endswith(_RESTORED):
            found |= _marks(os.path.join(folder, name))
    return found


def _marks(path: str) -> set[tuple[str, str, bytes]]:
    try:
        with open(path, "rb") as stream:
            listed = json.loads(stream.read())
        return {(network, name, base64.b64decode(content, validate=True)) for network, name, content in listed}
    except FileNotFoundError:
        return set()
    except (ValueError, TypeError, RecursionError) as error:
        raise NodenetError(f"Cannot tell what was restored: {path} cannot be understood: {error}") from None


def encoded(content: bytes) -> str:
    """Return bytes as the journal keeps them."""
    return base64.b64encode(content).decode()


def read(state_dir: str, run_id: str, network: str, data_dir: str | None = None) -> dict[str, Any]:
    """Return what a run freed in a network: one of ``networks``, with ``content`` as bytes again.

    :param data_dir: which one is meant if the run freed addresses of two directories of that name
    :raises NodenetError: no such run, not in this network, or a journal that cannot be understood
    """
    path = os.path.join(state_dir, FOLDER, f"{run_id}.json")
    place = f"Cannot restore run {run_id!r} in network {network}"
    if not _RUN_ID.fullmatch(run_id):
        raise NodenetError(f"{place}: that is no run id")
    try:
        with open(path, "rb") as stream:
            document = json.loads(stream.read())
        if document["journal_version"] != VERSION:
            raise ValueError(f"version {document['journal_version']} of the journal is not known")
        listed = [one for one in document["networks"] if one["network"] == network]
        found = [one for one in listed if data_dir is None or os.path.realpath(data_dir) == _real(one)]
        for one in found:
            _decode(one)
    except FileNotFoundError:
        raise NodenetError(f"{place}: there is no journal {path}") from None
    except OSError as error:
        raise NodenetError(f"{place}: {path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NodenetError(f"{place}: {path} cannot be understood: {error}") from None
    if len(found) == 1:
        return found[0]
    if found:
        dirs = ", ".join(one["data_dir"] for one in found)
        raise NodenetError(f"{place}: it freed addresses in {dirs}; say which one by the option data_dir")
    freed = ", ".join(sorted({f"{one['network']} ({one['data_dir']})" for one in document["networks"]}))
    where = f" in {data_dir}" if listed else ""
    raise NodenetError(f"{place}{where}: it freed nothing there, but in {freed}")


def _real(one: dict[str, Any]) -> str:
    return os.path.realpath(one["data_dir"])


def _decode(one: dict[str, Any]) -> None:
    for entries, needed in ((one["entries"], _NEEDED), (one["cache"], _NEEDED_OF_CACHE)):
        for entry in entries:
            for key, kind in needed.items():
                if not isinstance(entry[key], kind):
                    raise ValueError(f"{key} of an entry is {entry[key]!r}")
    for entry in one["entries"]:
        if "/" in entry["name"] or "\0" in entry["name"]:
            raise ValueError(f"{entry['name']!r} is no name of a file")
        if abs(entry["mtime_ns"]) > _MOST_NS:
            raise ValueError(f"mtime_ns of an entry is {entry['mtime_ns']}")
    for entry in one["cache"]:
        if not os.path.isabs(entry["path"]) or "\0" in entry["path"]:
            raise ValueError(f"{entry['path']!r} is no path of a file")
    for entry in [*one["entries"], *one["cache"]]:
        try:
            entry["content"] = base64.b64decode(entry["content"], validate=True)
        except binascii.Error as error:
            raise ValueError(f"the content of {entry.get('name') or entry.get('path')} is no base64: {error}") from None
