# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is alive by the state directories of containerd, CRI-O and podman, which need no program to be read.

What a runtime has not removed yet counts as alive whether it runs or not: a sandbox that was stopped but not torn down
still owns its addresses. A runtime whose directories are there but which does not answer on its socket is a failure: it
may not be up yet.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct

from ..host_local.idforms import SANDBOX_ID, id_form
from . import liveness_cri
from .liveness import Source, content_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

_CRI_NAMESPACE = "k8s.io"
_CRI = "io.containerd.grpc.v1.cri"
_TASKS = ("io.containerd.runtime.v2.task", "io.containerd.runtime.v1.linux")
_METADATA = "io.containerd.metadata.v1.bolt"
_CONNECT_TIMEOUT = 5.0
_SAMPLE_ID = "0" * 64
_OWN = ("root", "ns/user", "ns/net")
_PROGRAMS = ("containerd", "crio", "k3s-server", "k3s-agent")
_CREDENTIALS = struct.Struct("3i")


def read(options: Mapping[str, Any]) -> list[Source]:
    """Return a source for each runtime that was ever at work on this node, as far as the options ask for it."""
    sources: list[Source | None] = []
    if "containerd" in options["sources"]:
        sources += [_containerd(*place) for place in _places(options["containerd"])]
    if "crio" in options["sources"] or "podman" in options["sources"]:
        sources += _storage(options["storage_root"], options["crio_address"], options["sources"])
    sources += _elsewhere(options)
    return [one for one in sources if one is not None]


def _places(pairs: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return root, state and address of each containerd once.

    Products share directories of state, so of several roots for one state those that were never used do not count, if
    another one was.
    """
    places: dict[tuple[str, str], tuple[str, str, str]] = {}
    for one in pairs:
        root, state = one["root"], one["state"]
        address = one.get("address") or os.path.join(state, "containerd.sock")
        places.setdefault((os.path.realpath(root), os.path.realpath(state)), (root, state, address))
    used = {key for key in places if os.path.lexists(os.path.join(key[0], _METADATA))}
    with_data = {state for _root, state in used}
    return [place for key, place in places.items() if key in used or key[1] not in with_data]


def connect_fault(address: str) -> str:
    """Return why nobody answers on a unix socket, or nobody who belongs to the processes that can be seen from here;
    the empty text if all is well."""
    try:
        with liveness_cri.connect(address, _CONNECT_TIMEOUT) as client:
            server = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError as error:
        return f"{address} does not answer ({(error.strerror or str(error)).lower()})"
    if _CREDENTIALS.unpack(server)[0] == 0:
        return f"{address} is of another process namespace, whose containers cannot be seen from here"
    return ""


def _containerd(root: str, state: str, address: str) -> Source | None:
    """Read one containerd: its tasks (gone at a reboot) and the sandboxes of CRI (not removed yet)."""
    source = Source("containerd", root, authoritative=True)
    try:
        used = _exists(os.path.join(root, _METADATA))
        tasks = [os.path.join(state, name) for name in _TASKS if _exists(os.path.join(state, name))]
        if not used and not tasks and not _exists(address):
            return None
        source.failed = connect_fault(address)
        if source.failed:
            return source
        if not used:
            source.failed = f"{root} is not where it keeps its data, as there is no {_METADATA}"
            return source
        if not tasks:
            source.failed = f"{state} is not where it keeps its state, as there is no {_TASKS[0]}"
            return source
        cri = os.path.join(root, _CRI)
        if _exists(cri):
            source.forms.add(SANDBOX_ID)
            for container_id in _names(os.path.join(cri, "sandboxes")):
                source.add(container_id)
        for folder in tasks:
            for namespace in _names(folder):
                for container_id in _names(os.path.join(folder, namespace)):
                    source.add(container_id if namespace == _CRI_NAMESPACE else f"{namespace}-{container_id}")
        # the work directories survive a reboot, so they tell which namespaces there ever were
        for folder in [*tasks, *(os.path.join(root, name) for name in _TASKS)]:
            known = set(_names(folder)) - {_CRI_NAMESPACE}
            source.forms.update(id_form(f"{namespace}-{_SAMPLE_ID}") for namespace in known)
        source.up = True
    except OSError as error:
        source.failed = _reason(error)
    return source


def _elsewhere(options: Mapping[str, Any]) -> list[Source]:
    """Return a failure for each runtime of this node that works where nobody asked: a containerd by its open database,
    a CRI-O without a socket at the address that we have."""
    roots = {os.path.realpath(one["root"]) for one in options["containerd"]}
    found = []
    for pid, program in _runtimes():
        name = "crio" if program == "crio" else "containerd"
        if name not in options["sources"]:
            continue
        source = Source(name, f"process {pid}", authoritative=True)
        try:
            if name == "crio":
                if not _exists(options["crio_address"]):
                    source.failed = f"process {pid} is a CRI-O, and its socket is not {options['crio_address']}"
            else:
                targets = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
                for target in targets:
                    root = target.partition(f"/{_METADATA}/")[0]
                    if root != target and os.path.realpath(root) not in roots:
                        source.failed = (
                            f"process {pid} keeps its data in {root}, which the option containerd does not name"
                        )
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile, or closed a file
        except OSError as error:
            source.failed = _reason(error)
        if source.failed:
            found.append(source)
    return found


def _runtimes() -> list[tuple[int, str]]:
    """Return the runtimes that run with root directory and namespaces of this node: others are in containers or belong
    to users without privileges, and their networks are not those of this node."""
    found = []
    own = {name: os.stat(f"/proc/self/{name}") for name in _OWN if os.path.exists(f"/proc/self/{name}")}
    for pid in sorted(int(one) for one in os.listdir("/proc") if one.isdigit()):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as stream:
                program = stream.read().strip()
            if program not in _PROGRAMS:
                continue
            if not all(os.path.samestat(os.stat(f"/proc/{pid}/{name}"), it) for name, it in own.items()):
                continue
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        except PermissionError:
            pass  # it cannot be looked into, so it counts
        found.append((pid, program))
    return found


def _storage(root: str, crio_address: str, wanted: list[str]) -> list[Source]:
    """Read containers/storage, which CRI-O and podman share: every container that is not removed counts."""
    crio = Source("crio", root, authoritative=True)
    podman = Source("podman", root, authoritative=True)
    for one in (crio, podman):
        one.forms.add(SANDBOX_ID)
        one.up = True
    try:
        uses_podman = _exists(os.path.join(root, "libpod"))
        uses_crio = _exists(crio_address)
        for name in _names(root):
            if not name.endswith("-containers"):
                continue
            folder = os.path.join(root, name)
            for entry in _containers(folder):
                metadata = json.loads(entry.get("metadata") or "{}")
                if not isinstance(entry["id"], str) or not isinstance(metadata, dict):
                    raise ValueError(f"{entry['id']!r} is no container")
                if "pod-id" not in metadata and "pod-name" not in metadata:
                    uses_podman = True
                    podman.add(entry["id"])
                    continue
                uses_crio = True
                stopped = os.path.join(folder, entry["id"], "userdata", "network-stopped")
                if metadata.get("pod") is not False and not _exists(stopped):
                    crio.add(entry["id"])
        if uses_crio:
            crio.failed = connect_fault(crio_address)
    except OSError as error:
        uses_crio = uses_podman = True
        crio.failed = podman.failed = _reason(error)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        uses_crio = uses_podman = True
        crio.failed = podman.failed = f"a containers.json in {root} cannot be understood ({error})"
    found = [(crio, uses_crio), (podman, uses_podman)]
    return [one for one, used in found if used and one.name in wanted]


def _containers(folder: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    # a container of which the storage was not told to keep anything stands in the second file
    for name in ("containers.json", "volatile-containers.json"):
        try:
            found += json.loads(content_of(os.path.join(folder, name)) or b"[]")
        except FileNotFoundError:
            continue
    return found


def _exists(path: str) -> bool:
    """Tell whether there is something; unlike os.path.exists a directory that cannot be searched is an error."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _names(folder: str) -> list[str]:
    """Return the directories in a directory, none if there is no such directory."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return [name for name in names if not name.startswith(".") and _is_directory(os.path.join(folder, name))]


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _reason(error: OSError) -> str:
    return f"{error.filename or 'a directory'} cannot be read ({(error.strerror or str(error)).lower()})"
