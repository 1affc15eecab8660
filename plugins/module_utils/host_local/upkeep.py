# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GC and STATUS, which the Go plugin answers without doing anything (host-local spec 5.4; H14, H15)."""

from __future__ import annotations

import errno
import posix

from ..cni import gojson, goshape, paths
from ..cni.errors import PLUGIN_NOT_AVAILABLE, CniError, go_strerror
from .config import load_ipam_config
from .idforms import SANDBOX_ID, id_form
from .layout import DEFAULT_DATA_DIR, LOCK_NAME, network_dir
from .lock import call_timeout
from .store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..cni.skel import Call
    from .snapshot import Reservation

_IPAM = goshape.Struct(
    "allocator.IPAMConfig", {"dataDir": goshape.STRING, "gcGraceSeconds": goshape.INTEGER}, pointer=True
)
_NET = goshape.Struct("allocator.Net", {"ipam": _IPAM})
_ATTACHMENT = goshape.Struct("types.GCAttachment", {"containerID": goshape.STRING, "ifname": goshape.STRING})
_VALID = goshape.Struct("types.NetConf", {"cni.dev/valid-attachments": goshape.List(_ATTACHMENT)})
_GC_GRACE = 60


def collect_garbage(call: Call) -> None:
    """Release what ``cni.dev/valid-attachments`` does not list, as far as that can be known (H14)."""
    try:
        listed = _VALID.decode(call.config, None, "").get("cni.dev/valid-attachments")
        ipam = _NET.decode(call.config, None, "").get("ipam") or {}
    except goshape.TypeFault as fault:
        call.log.append(f"GC of network {call.name}: {fault}, nothing was released")
        return
    if listed is None:
        call.log.append(
            f"GC of network {call.name}: the configuration has no cni.dev/valid-attachments, nothing was released"
        )
        return
    data_dir = ipam.get("dataDir") or DEFAULT_DATA_DIR
    if not paths.is_directory(network_dir(data_dir, call.name)):
        return
    valid = _Valid(listed)
    grace = ipam.get("gcGraceSeconds", _GC_GRACE)
    with Store(data_dir, call.name) as store, store.lock(call_timeout(call)):
        snapshot = store.snapshot()
        everything = snapshot.reservations + snapshot.holding
        old = [one for one in everything if 0 <= grace < snapshot.now - one.mtime]
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
    with Store(config.data_dir, call.name, create=False) as store, store.lock(call_timeout(call)):
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
    while not paths.exists(here) and paths.parent(here) != here:
        here = paths.parent(here)
    try:
        posix.close(posix.open(here, posix.O_TMPFILE | posix.O_WRONLY | posix.O_CLOEXEC, 0o600))
    except OSError as error:
        unsupported = paths.is_directory(here) and error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT)
        if not unsupported or not posix.stat(here).st_mode & 0o222:
            return f"{here}: {'not writable' if unsupported else go_strerror(error)}"
    lock = f"{path}/{LOCK_NAME}"
    return f"{lock}: is a directory" if paths.is_directory(lock) else ""
