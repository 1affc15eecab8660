# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ADD: reserve one address of every range set (host-local spec 5.1)."""

from __future__ import annotations

from ..cni import results, skel
from ..cni.errors import INTERNAL, CniError
from .allocator import Allocator
from .config import load_ipam_config
from .lock import call_timeout
from .store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..cni.skel import Call
    from .addresses import Address
    from .config import IpamConfig
    from .ranges import RangeSet
    from .snapshot import Snapshot


def add(call: Call) -> dict[str, Any]:
    """Reserve one address of every range set. All of it is given back if any part of it fails (H3)."""
    config = load_ipam_config(call.config, call.args)
    dns = _dns(config.resolv_conf) if config.resolv_conf else {}
    skel.check_netns(call)
    timeout = call_timeout(call)
    with Store(config.data_dir, call.name) as store:
        try:
            with store.lock(timeout):
                ips, reserved = _allocate(call, store, config)
        finally:
            call.log += store.warnings
    call.undo = lambda: _give_back(call, config.data_dir, reserved)
    result = {"ips": ips, "routes": [_route(one) for one in config.routes], "dns": dns}
    return results.render(result, call.cni_version)


def _allocate(call: Call, store: Store, config: IpamConfig) -> tuple[list[dict[str, str]], list[str]]:
    """Return the addresses as the result shows them, and the names of the files that were made."""
    snapshot = store.view()
    store.warn_of_unreadable(snapshot)
    waiting = list(config.requested)
    reserved: list[str] = []
    ips = []
    try:
        for index, range_set in enumerate(config.sets):
            requested = next((address for address in waiting if address in range_set), None)
            if requested is not None:
                waiting.remove(requested)
            try:
                address, name = _reserve(call, store, snapshot, config, index, requested)
            except CniError as error:
                raise CniError(error.code, f"failed to allocate for range {index}: {error.msg}") from None
            reserved.append(name)
            ips.append(_ip(range_set, address))
        if waiting:
            raise CniError(
                INTERNAL, "failed to allocate all requested IPs: " + " ".join(str(address) for address in waiting)
            )
    except BaseException as error:
        try:
            _release(call, store, snapshot, reserved)
        except CniError as fault:
            raise CniError(fault.code, f"{error}; {fault.msg}") from None
        raise
    return ips, reserved


def _reserve(
    call: Call, store: Store, snapshot: Snapshot, config: IpamConfig, index: int, requested: Address | None
) -> tuple[Address, str]:
    """Reserve an address of one range set; return it and the name of the file that says so."""
    range_set = config.sets[index]
    if config.static_id:
        from . import sticky

        held = sticky.take(store, snapshot, range_set, config.static_id, call.container_id, call.ifname, requested)
        if held is not None:
            return held
    address = Allocator(range_set, index).allocate(store, snapshot, call.container_id, call.ifname, requested)
    return address, str(address)


def _release(call: Call, store: Store, snapshot: Snapshot, reserved: list[str]) -> None:
    if reserved:
        mine = snapshot.held_by(call.container_id, call.ifname)
        store.release(snapshot, [one for one in mine if one.name in reserved])


def _ip(range_set: RangeSet, address: Address) -> dict[str, str]:
    found = range_set.range_of(address)
    if found is None:
        raise CniError(INTERNAL, f"{address} is not in range set {range_set}")
    return {"address": f"{address}/{found.subnet.prefix}", "gateway": str(found.gateway)}


def _route(route: dict[str, Any] | None) -> dict[str, Any] | None:
    if route is None:
        return None
    return {key: str(value) if key in ("dst", "gw") and value is not None else value for key, value in route.items()}


def _give_back(call: Call, data_dir: str, reserved: list[str]) -> None:
    """Release what this very call reserved, when its result could not be printed (H16)."""
    with Store(data_dir, call.name) as store, store.lock(call_timeout(call)):
        _release(call, store, store.view(), reserved)


def _dns(path: str) -> dict[str, Any]:
    from .resolvconf import read_resolv_conf

    return read_resolv_conf(path)
