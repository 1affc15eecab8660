# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands of host-local (host-local spec 5)."""

from __future__ import annotations

import errno
import os

from ..cni import gojson, goshape, results, skel
from ..cni.errors import INTERNAL, PLUGIN_NOT_AVAILABLE, CniError, go_strerror
from ..cni.names import SPACE
from .allocator import Allocator
from .config import DEFAULT_DATA_DIR, load_ipam_config
from .idforms import SANDBOX_ID, id_form
from .lock import timeout_from_environment
from .snapshot import LOCK_NAME
from .store import Store, network_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

    from ..cni.skel import Call, Outcome
    from .addresses import Address
    from .config import IpamConfig
    from .ranges import RangeSet
    from .snapshot import Reservation, Snapshot

_DATA_DIR: dict[str, goshape.Shape] = {"dataDir": goshape.STRING}
_DIRECTORY = goshape.Struct("allocator.Net", {"ipam": goshape.Struct("allocator.IPAMConfig", _DATA_DIR, pointer=True)})
_GC_FIELDS = dict(_DATA_DIR, gcGraceSeconds=goshape.INTEGER)
_GC_IPAM = goshape.Struct("allocator.Net", {"ipam": goshape.Struct("allocator.IPAMConfig", _GC_FIELDS, pointer=True)})
_ATTACHMENT = goshape.Struct("types.GCAttachment", {"containerID": goshape.STRING, "ifname": goshape.STRING})
_VALID = goshape.Struct("types.NetConf", {"cni.dev/valid-attachments": goshape.List(_ATTACHMENT)})
_GC_GRACE = 60
_RESOLV_CONF_LINE_MAX = 65536


def run(environ: Mapping[str, str], stdin: bytes | Callable[[], bytes]) -> Outcome:
    """Serve one call of the plugin: the same texts, exit status and effects on disk as the executable."""
    read = (lambda: stdin) if isinstance(stdin, bytes) else stdin
    return skel.run("CNI host-local plugin nodenet.cni", _HANDLERS, environ, read)


def _open(call: Call, data_dir: str) -> Store:
    return Store(data_dir, call.name)


def _timeout(call: Call) -> float:
    return timeout_from_environment(call.environ.get("CNI_LOCK_TIMEOUT"))


def add(call: Call) -> dict[str, Any]:
    """Reserve one address of every range set. All of it is given back if any part of it fails (H3)."""
    config = load_ipam_config(call.config, call.args)
    dns = read_resolv_conf(config.resolv_conf) if config.resolv_conf else {}
    skel.check_netns(call)
    timeout = _timeout(call)
    with _open(call, config.data_dir) as store:
        try:
            with store.lock(timeout):
                ips, reserved = _allocate(call, store, config)
        finally:
            call.log += store.warnings
    call.undo = lambda: _give_back(call, config.data_dir, reserved)
    result = {"ips": ips, "routes": [_route(one) for one in config.routes], "dns": dns}
    return results.render(result, call.cni_version)


def _allocate(call: Call, store: Store, config: IpamConfig) -> tuple[list[dict[str, str]], list[Address]]:
    snapshot = store.snapshot()
    waiting = list(config.requested)
    reserved: list[Address] = []
    ips = []
    try:
        for index, range_set in enumerate(config.sets):
            requested = next((address for address in waiting if address in range_set), None)
            if requested is not None:
                waiting.remove(requested)
            try:
                address = Allocator(range_set, index).allocate(
                    store, snapshot, call.container_id, call.ifname, requested
                )
            except CniError as error:
                raise CniError(error.code, f"failed to allocate for range {index}: {error.msg}") from None
            reserved.append(address)
            ips.append(_ip(range_set, address))
        if waiting:
            raise CniError(
                INTERNAL, "failed to allocate all requested IPs: " + " ".join(str(address) for address in waiting)
            )
    except BaseException:
        store.release(snapshot, _own(snapshot, reserved))
        raise
    return ips, reserved


def _own(snapshot: Snapshot, reserved: list[Address]) -> list[Reservation]:
    held = (snapshot.holder(address) for address in reserved)
    return [one for one in held if one is not None]


def _ip(range_set: RangeSet, address: Address) -> dict[str, str]:
    found = range_set.range_of(address)
    if found is None:
        raise CniError(INTERNAL, f"{address} is not in range set {range_set}")
    return {"address": f"{address}/{found.subnet.prefix}", "gateway": str(found.gateway)}


def _route(route: dict[str, Any] | None) -> dict[str, Any] | None:
    if route is None:
        return None
    return {key: str(value) if key in ("dst", "gw") and value is not None else value for key, value in route.items()}


def _give_back(call: Call, data_dir: str, reserved: list[Address]) -> None:
    """Release what this very call reserved, when its result could not be printed (H16)."""
    with _open(call, data_dir) as store, store.lock(_timeout(call)):
        snapshot = store.snapshot()
        mine = snapshot.held_by(call.container_id, call.ifname)
        store.release(snapshot, [one for one in mine if one.address in reserved])


def check(call: Call) -> None:
    """Look for any address of the attachment (spec 5.2)."""
    config = load_ipam_config(call.config, call.args)
    with _open(call, config.data_dir) as store, store.lock(_timeout(call)):
        if not store.snapshot().held_by(call.container_id, call.ifname):
            raise CniError(INTERNAL, f"host-local: Failed to find address added by container {call.container_id}")


def delete(call: Call) -> None:
    """Release what the attachment holds, whatever else is wrong with the configuration (H4)."""
    data_dir = _data_dir(call)
    with _open(call, data_dir) as store, store.lock(_timeout(call)):
        snapshot = store.snapshot()
        store.release(snapshot, snapshot.to_release(call.container_id, call.ifname))
    skel.check_netns(call)


def _data_dir(call: Call) -> str:
    """Return the data dir, all that a release needs of the configuration; without an ``ipam`` the usual error."""
    try:
        ipam = _DIRECTORY.decode(call.config, None, "").get("ipam")
    except goshape.TypeFault:
        ipam = None
    if ipam is None:
        return load_ipam_config(call.config, "").data_dir
    return ipam.get("dataDir") or DEFAULT_DATA_DIR


def collect_garbage(call: Call) -> None:
    """Release what ``cni.dev/valid-attachments`` does not list, as far as that can be known (H14)."""
    try:
        listed = _VALID.decode(call.config, None, "").get("cni.dev/valid-attachments")
        ipam = _GC_IPAM.decode(call.config, None, "").get("ipam") or {}
    except goshape.TypeFault as fault:
        call.log.append(f"GC of network {call.name}: {fault}, nothing was released")
        return
    if listed is None:
        call.log.append(
            f"GC of network {call.name}: the configuration has no cni.dev/valid-attachments, nothing was released"
        )
        return
    data_dir = ipam.get("dataDir") or DEFAULT_DATA_DIR
    if not os.path.isdir(network_dir(data_dir, call.name)):
        return
    valid = _Valid(listed)
    grace = ipam.get("gcGraceSeconds", _GC_GRACE)
    with _open(call, data_dir) as store, store.lock(_timeout(call)):
        snapshot = store.snapshot()
        old = [one for one in snapshot.reservations if 0 <= grace < snapshot.now - one.mtime]
        store.release(snapshot, [one for one in old if valid.rules_out(one)])


class _Valid:
    """The attachments that a runtime lists as valid."""

    def __init__(self, listed: list[dict[str, str]]) -> None:
        self._interfaces: dict[str, set[str]] = {}
        for one in listed:
            if one.get("containerID"):
                self._interfaces.setdefault(one["containerID"], set()).add(one.get("ifname", ""))
        # with an empty list only plain ids can be judged
        self._forms = {id_form(container_id) for container_id in self._interfaces} or {SANDBOX_ID}

    def rules_out(self, one: Reservation) -> bool:
        """Tell whether the list says that the owner is gone; a file without interface name belongs to any of them."""
        if one.static or not one.exact or not one.container_id:
            return False
        interfaces = self._interfaces.get(one.container_id)
        if interfaces is not None:
            return one.ifname not in interfaces and one.ifname != ""
        return id_form(one.container_id) in self._forms


def status(call: Call) -> None:
    """Tell whether ADD could be served now, creating nothing (H15)."""
    config = load_ipam_config(call.config)
    ipam = gojson.field(call.config, "ipam")
    path = network_dir(config.data_dir, call.name)
    fault = _unusable(path)
    if fault:
        raise CniError(PLUGIN_NOT_AVAILABLE, f"cannot use the data dir {config.data_dir}: {fault}")
    with Store(config.data_dir, call.name, create=False) as store, store.lock(_timeout(call)):
        snapshot = store.snapshot()
    for range_set in config.sets:
        if next((one for one in range_set.walk() if not snapshot.is_taken(one)), None) is not None:
            continue
        text = f"no IP addresses available in range set: {range_set}"
        if gojson.field(ipam, "statusExhaustion") is True:
            raise CniError(PLUGIN_NOT_AVAILABLE, text)
        call.log.append(text)


def _unusable(path: str) -> str:
    """Say why the network directory cannot be used, judged by its nearest existing parent; the empty text if it can.

    An unnamed file shows whether one could be made there, and leaves nothing.
    """
    here = path
    while not os.path.lexists(here) and os.path.dirname(here) != here:
        here = os.path.dirname(here) or "."
    try:
        os.close(os.open(here, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        unsupported = os.path.isdir(here) and error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT)
        if not unsupported or not os.stat(here).st_mode & 0o222:
            return f"{here}: {'not writable' if unsupported else go_strerror(error)}"
    lock = os.path.join(path, LOCK_NAME)
    return f"{lock}: is a directory" if os.path.isdir(lock) else ""


def read_resolv_conf(path: str) -> dict[str, Any]:
    """Return the ``dns`` part of a result from a resolv.conf (spec 2.6)."""
    try:
        if "\0" in path:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        operation = "read" if isinstance(error, IsADirectoryError) else "open"
        raise CniError(INTERNAL, f"{operation} {path}: {go_strerror(error)}") from None
    dns: dict[str, Any] = {"nameservers": [], "domain": "", "search": [], "options": []}
    for raw in data.split(b"\n"):
        if len(raw) >= _RESOLV_CONF_LINE_MAX:
            raise CniError(INTERNAL, "bufio.Scanner: token too long")
        fields = _fields(raw.decode("utf-8", "surrogateescape"))
        if len(fields) < 2 or fields[0][0] in "#;":
            continue
        keyword = fields[0]
        if keyword == "nameserver":
            dns["nameservers"].append(fields[1])
        elif keyword == "domain":
            dns["domain"] = fields[1]
        elif keyword in ("search", "options"):
            dns[keyword] += fields[1:]
    return dns


def _fields(line: str) -> list[str]:
    for char in SPACE - {" "}:
        if char in line:
            line = line.replace(char, " ")
    return [field for field in line.split(" ") if field]


_HANDLERS: dict[str, Callable[[Call], Any]] = {
    "ADD": add,
    "CHECK": check,
    "DEL": delete,
    "GC": collect_garbage,
    "STATUS": status,
}
