# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Take down what a probe has made: its own at its end, that of killed ones before the next."""

from __future__ import annotations

import os
import signal
import time

from ..cni import chain, gojson, invoke, links, netconf, netlink, netns, resultcache, results
from ..cni.errors import CniError, NodenetError
from . import probe_record
from .confdir import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..host_local.rotation import Rotation
    from ..host_local.snapshot import Reservation

_GRACE_AGE = 600.0  # a reservation without a record may be of a probe that keeps its records elsewhere
_VETH_GRACE = 3.0  # the kernel removes a namespace and what is in it when it finds the time
_SBIN = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


class Node:
    """How plugins are called on this node: ``bin_dir``, ``timeout`` in seconds for each call, ``lock_timeout`` for the
    data dirs of host-local."""

    def __init__(self, bin_dir: str, timeout: float, lock_timeout: float) -> None:
        self.bin_dir = bin_dir
        self.timeout = timeout
        self.lock_timeout = lock_timeout

    def plugins(
        self,
        bin_dirs: Sequence[str] = (),
        stop: Callable[[], bool] | None = None,
        told: Callable[[invoke.Called], None] | None = None,
    ) -> invoke.Plugins:
        """Return the plugins as a runtime calls them, which has the administrator's programs in its PATH."""
        path = os.environ.get("PATH", "").split(":")
        path += [one for one in _SBIN if one not in path]
        environ = dict(os.environ, PATH=":".join(one for one in path if one))
        directories = list(dict.fromkeys(one for one in (*bin_dirs, self.bin_dir) if one))
        return invoke.Plugins(directories, environ, self.timeout, stop, True, told)


def host_links() -> list[links.Link]:
    """Return the links of the node's own namespace."""
    with netlink.Netlink() as kernel:
        return links.links(kernel)


def named_on_host(document: dict[str, Any]) -> list[str]:
    """Return the interfaces that a result names outside of the container."""
    listed = results.parse(document).get("interfaces", [])
    return [one["name"] for one in listed if one.get("name") and not one.get("sandbox")]


def wait_for_veths(names: Sequence[str]) -> list[str]:
    """Wait until the ends on the node of the container's veths are gone; remove those that stay, and return their
    names."""

    def left() -> list[links.Link]:
        return [one for one in host_links() if one.name in names and one.kind == "veth"]

    if not names or netns.wait_until(lambda: not left(), _VETH_GRACE):
        return []
    stayed = left()
    with netlink.Netlink() as kernel:
        for one in stayed:
            links.delete(kernel, one.index)
    return [one.name for one in stayed]


def reservations(data_dir: str, network: str, test: Callable[[str], bool]) -> list[Reservation]:
    """Return the reservations of host-local whose container id passes the test. Raises CniError."""
    from ..host_local.store import Store  # for the networks of host-local alone

    with Store(data_dir, network, create=False) as store:
        return [one for one in store.snapshot().reservations if test(one.container_id)]


class Leftovers:
    """Earlier probes that did not end: what was ``removed``, and ``facts`` about what could not be."""

    def __init__(self, records: probe_record.Records, node: Node, netns_dir: str, where: str) -> None:
        self.records = records
        self.node = node
        self.netns_dir = netns_dir
        self.where = where
        self.removed: list[str] = []
        self.facts: list[dict[str, Any]] = []

    def pending(self) -> list[str]:
        """Return the ids of what `remove` would take down; touches nothing."""
        dead = [container_id for container_id, _record in self.records.dead(claim=False)]
        spaces = probe_record.abandoned_namespaces(self.netns_dir, self.records.ids())
        return sorted(dead + [os.path.basename(path) for path in spaces])

    def remove(self, network: netconf.NetworkConfig, host_local: Sequence[tuple[str, str]]) -> None:
        """Take down all dead probes: by their records, their namespaces, and what *host_local* holds for them.

        :param network: the configuration with which addresses are released that no record speaks of
        :param host_local: (data dir, network name) of that configuration
        """
        for container_id, record in self.records.dead():
            end_plugins(container_id)
            if record is not None:
                self._tell(container_id, self._take_down(record))
            else:  # its namespace goes below, its addresses by the present configuration
                self.records.forget(container_id)
        for path in probe_record.abandoned_namespaces(self.netns_dir, self.records.ids()):
            container_id = os.path.basename(path)
            end_plugins(container_id)
            self._tell(container_id, probe_record.remove_namespace(path))
        running: list[str] = []
        try:
            running = [name for name in os.listdir(self.netns_dir) if name.startswith(probe_record.PREFIX)]
        except OSError:
            pass
        for data_dir, name in host_local:
            self._release(network, data_dir, name, running)

    def _tell(self, container_id: str, reason: str) -> None:
        if reason:
            self.facts.append(
                {"kind": "node-probe-leftover-kept", "where": self.where, "id": container_id, "reason": reason}
            )
        elif container_id not in self.removed:
            self.removed.append(container_id)

    def _take_down(self, record: probe_record.Record) -> str:
        """Return why a probe could not be taken down, "" if it could."""
        try:
            network = netconf.load_config(record.config.encode("utf-8", "surrogateescape"), record.file_name)
        except CniError as error:
            return str(error)
        runtime = chain.Runtime(self.node.plugins([record.bin_dir]), self.records.cache)
        reason, _left = take_down(runtime, network, record)
        if not reason:
            for one in record.rotations:
                put_back(one, self.node.lock_timeout)
            self.records.forget(record.container_id)
        return reason

    def _release(self, network: netconf.NetworkConfig, data_dir: str, name: str, running: Sequence[str]) -> None:
        """Release the addresses of dead probes whose records are lost."""

        def is_dead(container_id: str) -> bool:
            return container_id.startswith(probe_record.PREFIX) and container_id not in running

        recorded = self.records.ids()
        oldest = time.time() - _GRACE_AGE
        try:
            held = reservations(data_dir, name, is_dead)
        except NodenetError:
            return  # ADD says the same in a moment, and better
        lost = [one for one in held if one.container_id not in recorded and one.mtime < oldest]
        for owner in sorted({(one.container_id, one.ifname) for one in lost}):
            try:
                runtime = chain.Runtime(self.node.plugins())
                runtime.delete(network, invoke.Attachment(owner[0], "", owner[1] or "eth0"))
                self._tell(owner[0], "")
            except CniError as error:
                self._tell(owner[0], str(error))


def take_down(
    runtime: chain.Runtime, network: netconf.NetworkConfig, record: probe_record.Record
) -> tuple[str, list[str]]:
    """Call DEL and remove the namespace; return why that failed ("" if it did not), and what is left nonetheless.

    A runtime stops at a plugin that is not there. Here the others still take down what they made: a plugin that is gone
    will not come back for a configuration that may have been corrected meanwhile.
    """
    path = record.netns if netns.is_namespace(record.netns) else ""
    attachment = invoke.Attachment(record.container_id, path, record.ifname, record.args, record.capability_args)
    try:
        entry = runtime.cache.find(network.name, record.container_id, record.ifname) if runtime.cache else None
        host = named_on_host(resultcache.cached_result(entry, "1.0.0")) if entry is not None else []
    except CniError:
        host = []
    reason = ""
    try:
        runtime.delete(network, attachment)
    except CniError as error:
        reason = str(error)
        there = [one for one in network.plugins if _is_there(runtime, one)]
        if 0 < len(there) < len(network.plugins):
            reason = ""
            rest = netconf.NetworkConfig(network.filename, network.name, network.cni_version, there, network.is_list)
            try:
                runtime.delete(rest, attachment)
            except CniError as fault:
                reason = str(fault)
    kept = probe_record.remove_namespace(record.netns)
    return reason or kept, wait_for_veths(host)


def _is_there(runtime: chain.Runtime, plugin: Any) -> bool:
    try:
        return bool(runtime.plugins.find(text_of(gojson.field(plugin, "type"))))
    except CniError:
        return False


def end_plugins(container_id: str) -> None:
    """Kill plugins that still work for a probe, and what they started: all who have its id in their environment.

    A plugin that hangs outlives a probe that is killed, and a process group can be left.
    """
    mark = f"CNI_CONTAINERID={container_id}\0".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as stream:
                found = mark in stream.read() + b"\0"
            if found:
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            continue


def put_back(before: Rotation, lock_timeout: float) -> bool:
    """Put a rotation back; it is a hint, so that a failure does not matter."""
    from ..host_local import rotation  # for the networks of host-local alone

    try:
        return rotation.put_back(before, lock_timeout)
    except (NodenetError, OSError):
        return False


def elapsed(started: float) -> float:
    return round(time.monotonic() - started, 3)
