# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node below a directory, with the trees that runtimes leave, for tests of what is freed on it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
from pathlib import Path

import calls

OLD = 90000.0
CRI = "io.containerd.grpc.v1.cri"
TASKS = "io.containerd.runtime.v2.task"
METADATA = "io.containerd.metadata.v1.bolt"


def sandbox(number: int) -> str:
    """Return an id of the form that sandboxes have."""
    return "%064x" % (0xABC0000 + number)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


class Runtime:
    """What answers on a runtime's socket: CRI's ListPodSandbox, and nothing else.

    ``sandboxes`` are the ids that it lists, or the bytes that it sends instead of an answer; None stands for a server
    that does not know CRI. ``before`` is called when it was asked.
    """

    def __init__(self, path: Path, sandboxes) -> None:
        self.sandboxes = sandboxes
        self.before = lambda: None
        self._server = socket.socket(socket.AF_UNIX)
        path.parent.mkdir(parents=True, exist_ok=True)
        here = os.open(str(path.parent), os.O_PATH)
        try:
            self._server.bind(f"/proc/self/fd/{here}/{path.name}")
        finally:
            os.close(here)
        self._server.listen(64)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _address = self._server.accept()
            except OSError:
                return
            with client:
                client.settimeout(5)
                try:
                    self._answer(client)
                except OSError:
                    pass

    def _answer(self, client: socket.socket) -> None:
        asked = b""
        while b"ListPodSandbox" not in asked or not asked.endswith(bytes(5)):
            piece = client.recv(4096)
            if not piece:
                return
            asked += piece
        self.before()
        found = self.sandboxes
        if isinstance(found, bytes):
            client.sendall(found)
            return
        answer = _frame(4, 0, 0, b"") + _frame(6, 0, 0, bytes(8)) + _frame(1, 4, 1, b"\x88")
        if found is not None:
            # id, a state, and a time stamp of fixed length, as protocol buffers write them
            items = [b"\x0a\x40" + one.encode() + b"\x18\x01\x21" + bytes(8) for one in found]
            message = b"".join(b"\x0a" + bytes([len(one)]) + one for one in items)
            body = b"\0" + len(message).to_bytes(4, "big") + message
            # split, and one part padded, as a server may do it
            answer += _frame(0, 0, 1, body[:3]) + _frame(0, 8, 1, b"\x02" + body[3:] + bytes(2))
        client.sendall(answer + _frame(1, 5, 1, b"\0\x0bgrpc-status\x010"))

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()


class Node:
    """conf dir, data dir, state dir of the collection, a containerd, a storage and a results cache."""

    def __init__(self, base) -> None:
        self.base = Path(str(base))
        self.conf_dir = self.base / "net.d"
        self.data_dir = self.base / "data"
        self.state_dir = self.base / "state"
        self.root, self.state = self.base / "croot", self.base / "crun"
        self.storage = self.base / "storage"
        self.results = self.base / "results"
        self.crio = self.base / "crio.sock"
        self.runtime: Runtime | None = None
        self.conf_dir.mkdir()

    # --- what is on it

    def network(self, name: str = "net", subnet: str = "192.0.2.0/24", data_dir: object = None) -> None:
        ipam = {"type": "host-local", "dataDir": str(data_dir or self.data_dir), "subnet": subnet}
        document = {"cniVersion": "1.0.0", "name": name, "plugins": [{"type": "bridge", "ipam": ipam}]}
        (self.conf_dir / f"{name}.conflist").write_text(json.dumps(document))

    def hold(self, name: str, content: bytes | str, age_s: float = OLD, network: str = "net") -> Path:
        """Plant an address file; a text is an id, held on eth0."""
        path = self.data_dir / network / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode() + b"\r\neth0")
        when = time.time() - age_s
        os.utime(str(path), (when, when))
        return path

    def containerd(self, *sandboxes: str, tasks: dict[str, list[str]] | None = None, up: bool = True) -> None:
        """Make the trees of a containerd with CRI, and answer on its socket."""
        for folder in (self.root / METADATA, self.root / CRI / "sandboxes", self.root / TASKS, self.state / TASKS):
            folder.mkdir(parents=True, exist_ok=True)
        for one in sandboxes:
            (self.root / CRI / "sandboxes" / one).mkdir()
        for namespace, ids in (tasks or {}).items():
            (self.root / TASKS / namespace).mkdir(exist_ok=True)
            for one in ids:
                (self.state / TASKS / namespace / one).mkdir(parents=True)
        if up:
            self.runtime = Runtime(self.state / "containerd.sock", list(sandboxes))

    def cache(self, container_id: str, network: str = "net", ifname: str = "eth0", netns: str = "") -> Path:
        """Leave an entry of the results cache as libcni 1.2 writes it."""
        self.results.mkdir(exist_ok=True)
        path = self.results / f"{network}-{container_id}-{ifname}"
        entry = {"kind": "cniCacheV1", "containerId": container_id, "ifName": ifname, "networkName": network}
        path.write_text(json.dumps(dict(entry, netns=netns)))
        return path

    def reboot(self) -> None:
        """Take away what a reboot does, and what else a runtime forgets when its data are wiped."""
        self.close()
        shutil.rmtree(str(self.state))
        shutil.rmtree(str(self.root / CRI / "sandboxes"))

    # --- what is done to it

    def options(self, **more: object) -> dict:
        """Return the options of a run that is told of this node's trees alone."""
        options = {
            "networks": None,
            "all": True,
            "orphans": False,
            "conf_dir": str(self.conf_dir),
            "data_dir": None,
            "flannel_subnet_file": str(self.base / "subnet.env"),
            "state_dir": str(self.state_dir),
            "live": None,
            "sources": ["containerd", "crio", "podman", "caches"],
            "grace": 600.0,
            "force_empty": False,
            "containerd": [{"root": str(self.root), "state": str(self.state), "address": None}],
            "storage_root": str(self.storage),
            "crio_address": str(self.crio),
            "results_dirs": [str(self.results)],
            "command_timeout": 10.0,
            "lock_timeout": 10.0,
        }
        options.update(more)
        return options

    def gc(self, check_mode: bool = False, **more: object) -> dict:
        from ansible_collections.nodenet.cni.plugins.module_utils.node.reclaim_run import reclaim_addresses

        return reclaim_addresses(self.options(**more), check_mode).result

    def restore(self, run_id: str, network: str = "net", check_mode: bool = False, **more: object) -> dict:
        from ansible_collections.nodenet.cni.plugins.module_utils.node.reclaim_restore import restore

        options = {"network": network, "restore": run_id, "state_dir": str(self.state_dir), "lock_timeout": 10.0}
        return restore(dict(dict(options, data_dir=None), **more), check_mode).result

    def held(self, network: str = "net") -> list[str]:
        return sorted(calls.held(self.data_dir, network))

    def close(self) -> None:
        if self.runtime is not None:
            self.runtime.close()
            self.runtime = None


def live(*ids: str | dict, age: float = 0.0) -> dict:
    """Return the option live with a list of ids, or of attachments."""
    listed = [{"container_id": one} if isinstance(one, str) else one for one in ids]
    return {"attachments": listed, "age": age}


def addresses(rows: list[dict]) -> list[str]:
    return [one["address"] for one in rows]


def reasons(rows: list[dict]) -> dict[str, str]:
    return {one["address"]: one["reason"] for one in rows}
