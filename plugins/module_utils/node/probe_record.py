# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a running probe, from which a later one can take down what a killed one left.

    <state dir>/probes/<id>.json                        what is needed to call DEL; locked while its probe runs
    <state dir>/probes/results/<network>-<id>-<ifname>  the result of ADD, as libcni keeps it

A record comes before anything of its probe exists and goes after everything of it is gone.
"""

from __future__ import annotations

import fcntl
import json
import os

from ..cni import netns, resultcache
from ..cni.errors import NodenetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ..host_local.rotation import Rotation

PREFIX = "nodenet-probe-"
_SUFFIX = ".json"
_UNFINISHED = ".new-"


class Record:
    """What a probe is about.

    ``netns``: path of its namespace. ``config``: text of the configuration, ``file_name``: tells whether it is a list.
    ``rotations``: where the networks' rotations stood before.
    """

    def __init__(
        self,
        container_id: str,
        netns_path: str,
        ifname: str,
        bin_dir: str,
        source: str,
        file_name: str,
        config: str,
        args: Sequence[tuple[str, str]],
        capability_args: Mapping[str, Any],
        rotations: Sequence[Rotation],
    ) -> None:
        self.container_id = container_id
        self.netns = netns_path
        self.ifname = ifname
        self.bin_dir = bin_dir
        self.source = source
        self.file_name = file_name
        self.config = config
        self.args = list(args)
        self.capability_args = dict(capability_args)
        self.rotations = list(rotations)
        self._lock = -1

    def _as_json(self) -> bytes:
        values = {key: value for key, value in vars(self).items() if key[0] != "_"}
        values["rotations"] = [one.as_plain() for one in self.rotations]
        return json.dumps(values).encode()

    @classmethod
    def _from_json(cls, data: bytes) -> Record:
        from ..host_local.rotation import Rotation  # only who finds a dead probe needs it

        values = json.loads(data.decode("utf-8"))
        rotations = [Rotation.from_plain(one) for one in values["rotations"]]
        args = [(str(key), str(value)) for key, value in values["args"]]
        return cls(
            str(values["container_id"]),
            str(values["netns"]),
            str(values["ifname"]),
            str(values["bin_dir"]),
            str(values["source"]),
            str(values["file_name"]),
            str(values["config"]),
            args,
            dict(values["capability_args"]),
            rotations,
        )


class Records:
    """The records below a state directory. Raises NodenetError where they cannot be kept."""

    def __init__(self, state_dir: str) -> None:
        self.directory = os.path.join(state_dir, "probes")
        self.cache = resultcache.ResultCache(self.directory)

    def open(self, record: Record) -> None:
        """Write a record and lock it; `close` removes it."""
        path = self._path(record.container_id)
        unfinished = os.path.join(self.directory, _UNFINISHED + record.container_id)
        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            # locked before it has its name, so that nobody ever takes it for one of a dead probe
            record._lock = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(record._lock, fcntl.LOCK_EX)
            with open(record._lock, "wb", closefd=False) as stream:
                stream.write(record._as_json())
                stream.flush()
                os.fsync(record._lock)
            os.rename(unfinished, path)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise NodenetError(f"Cannot keep the record of a probe in {self.directory}: {reason}") from None

    def close(self, record: Record, keep: bool = False) -> None:
        """Give the record up; with *keep* it stays for the next probe."""
        if not keep:
            _unlink(self._path(record.container_id))
        if record._lock >= 0:
            os.close(record._lock)
            record._lock = -1

    def dead(self, claim: bool = True) -> Iterator[tuple[str, Record | None]]:
        """Yield id and record of each probe that does not run any more; None for a record that cannot be read.

        With *claim* it is locked against other probes until the next one is asked for; without, nothing is touched.
        """
        for name in sorted(self._names()):
            path = os.path.join(self.directory, name)
            try:
                lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.path.exists(path):
                    continue  # another probe took it down meanwhile
                if name.startswith(_UNFINISHED):
                    if claim:
                        _unlink(path)
                    continue
                with open(lock, "rb", closefd=False) as stream:
                    data = stream.read()
                yield name[: -len(_SUFFIX)], _readable(data)
            except BlockingIOError:
                continue
            finally:
                os.close(lock)

    def ids(self) -> list[str]:
        """Return the ids of all probes that there is a record of, running or not."""
        return [name[: -len(_SUFFIX)] for name in self._names() if _is_record(name)]

    def forget(self, container_id: str) -> None:
        """Remove a dead probe's record and what is cached of it."""
        for entry in self.cache.entries():
            if entry.container_id == container_id:
                self.cache.remove(entry.network, container_id, entry.ifname)
        _unlink(self._path(container_id))

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self.directory)
        except OSError:
            return []
        return [name for name in names if name.startswith(_UNFINISHED) or _is_record(name)]

    def _path(self, container_id: str) -> str:
        return os.path.join(self.directory, container_id + _SUFFIX)


def new_id() -> str:
    return PREFIX + os.urandom(5).hex()


def abandoned_namespaces(folder: str, known: Sequence[str]) -> list[str]:
    """Return the namespaces of probes that do not run any more and are not *known* by a record."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    found = []
    for name in names:
        if not name.startswith(PREFIX) or name in known:
            continue
        lock = hold(os.path.join(folder, name))
        if lock is not None:
            os.close(lock)
            found.append(os.path.join(folder, name))
    return found


def hold(path: str) -> int | None:
    """Lock a namespace as a probe does that runs in it; return the descriptor, None if another one holds it.

    That works over different state directories, too.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fd
    except OSError:
        os.close(fd)
        return None


def remove_namespace(path: str) -> str:
    """Remove a namespace; return why that failed, "" if it did not."""
    try:
        netns.remove(path)
    except NodenetError as error:
        return str(error)
    return ""


def _is_record(name: str) -> bool:
    return name.startswith(PREFIX) and name.endswith(_SUFFIX)


def _readable(data: bytes) -> Record | None:
    try:
        return Record._from_json(data)
    except (ValueError, KeyError, TypeError):
        return None


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
