# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host-local plugin: one call in process (host-local spec 5).

A command loads what it needs when it is called, because loading is most of what a call costs.
"""

from __future__ import annotations

from ..cni import goshape, skel
from ..cni.errors import INTERNAL, CniError
from .layout import DEFAULT_DATA_DIR
from .lock import call_timeout
from .store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

    from ..cni.skel import Call, Outcome
    from .snapshot import Reservation, Snapshot

_IPAM = goshape.Struct("allocator.IPAMConfig", {"dataDir": goshape.STRING}, pointer=True)
_NET = goshape.Struct("allocator.Net", {"ipam": _IPAM})


def run(environ: Mapping[str, str], stdin: bytes | Callable[[], bytes]) -> Outcome:
    """Serve one call of the plugin: the same texts, exit status and effects on disk as the executable."""
    read = (lambda: stdin) if isinstance(stdin, bytes) else stdin
    return skel.run("CNI host-local plugin nodenet.cni", _HANDLERS, environ, read)


def add(call: Call) -> dict[str, Any]:
    """Reserve one address of every range set."""
    from . import adding

    return adding.add(call)


def check(call: Call) -> None:
    """Look for any address of the attachment (spec 5.2)."""
    from .config import load_ipam_config

    config = load_ipam_config(call.config, call.args)
    with Store(config.data_dir, call.name) as store, store.lock(call_timeout(call)):
        if store.glance(call.container_id, call.ifname):
            return
        _snapshot, held = _search(call, store, lambda one: one.held_by(call.container_id, call.ifname))
        if not held:
            raise CniError(INTERNAL, f"host-local: Failed to find address added by container {call.container_id}")


def delete(call: Call) -> None:
    """Release what the attachment holds, whatever else is wrong with the configuration (H4)."""
    data_dir = _data_dir(call)
    with Store(data_dir, call.name) as store, store.lock(call_timeout(call)):
        snapshot, held = _search(call, store, lambda one: one.to_release(call.container_id, call.ifname))
        store.release(snapshot, held)
    skel.check_netns(call)


def _search(
    call: Call, store: Store, find: Callable[[Snapshot], list[Reservation]]
) -> tuple[Snapshot, list[Reservation]]:
    """Find what the attachment holds; that it is nothing is only believed after everything has been read."""
    snapshot = store.view()
    held = find(snapshot)
    if not held and not snapshot.complete:
        snapshot = store.snapshot()
        held = find(snapshot)
    store.warn_of_unreadable(snapshot)
    call.log += store.warnings
    return snapshot, held


def _data_dir(call: Call) -> str:
    """Return the data dir, all that a release needs of the configuration; without an ``ipam`` the usual error."""
    try:
        ipam = _NET.decode(call.config, None, "").get("ipam")
    except goshape.TypeFault:
        ipam = None
    if ipam is None:
        from .config import load_ipam_config

        return load_ipam_config(call.config, "").data_dir
    return ipam.get("dataDir") or DEFAULT_DATA_DIR


def collect_garbage(call: Call) -> None:
    """Release what the runtime no longer lists."""
    from . import upkeep

    upkeep.collect_garbage(call)


def status(call: Call) -> None:
    """Tell whether ADD could be served."""
    from . import upkeep

    upkeep.status(call)


_HANDLERS: dict[str, Callable[[Call], Any]] = {
    "ADD": add,
    "CHECK": check,
    "DEL": delete,
    "GC": collect_garbage,
    "STATUS": status,
}
