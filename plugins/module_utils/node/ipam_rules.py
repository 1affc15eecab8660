# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with the addresses of a network: what host-local refuses, and what it takes but should not."""

from __future__ import annotations

import re

from ..cni import gojson
from ..cni.errors import ConfigError
from ..host_local.config import load_ipam_config
from .confdir import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..host_local.addresses import Address
    from ..host_local.ranges import Range
    from .networks import Network

_INDICES = re.compile(r"\[(\d+)\]\[(\d+)\]")


def check(network: Network, where: str) -> list[dict[str, Any]]:
    """Return the facts about a network's host-local configuration."""
    try:
        config = load_ipam_config(network.config)
    except ConfigError as fault:
        if _filled_in(network, str(fault)):
            return []
        path = ".".join(part for part in (network.place, fault.path) if part)
        kind = f"ipam-{fault.kind}" if fault.kind in ("host-bits", "mixed-families") else "conf-ipam-invalid"
        if fault.path.endswith(".rangeEnd") and _end_by_default(network.config, fault.path):
            kind = "ipam-range-start-late"
        return [{"kind": kind, "where": where, "path": path, "reason": fault.msg, "network": fault.wanted}]
    facts: list[dict[str, Any]] = []
    data_dir = text_of(gojson.field(gojson.field(network.config, "ipam"), "dataDir"))
    if data_dir and data_dir[0] != "/":
        path = ".".join(part for part in (network.place, "ipam.dataDir") if part)
        facts.append({"kind": "ipam-data-dir-relative", "where": where, "path": path, "value": data_dir})
    ranges = [one for range_set in config.sets for one in range_set.ranges]
    for one in ranges:
        subnet = str(one.subnet)
        if one.gateway not in one.subnet and not is_link_local(one.gateway):
            facts.append(
                {"kind": "ipam-gateway-outside", "where": where, "gateway": str(one.gateway), "subnet": subnet}
            )
        for address, what in _edges(one):
            facts.append(
                {"kind": "ipam-range-edge", "where": where, "address": address, "what": what, "subnet": subnet}
            )
    for at, route in enumerate(config.routes):
        if route is not None and route.get("dst") is None:
            path = ".".join(part for part in (network.place, f"ipam.routes[{at}].dst") if part)
            facts.append({"kind": "ipam-route-dst", "where": where, "path": path})
        gateway = route.get("gw") if route else None
        if gateway is not None and not is_link_local(gateway) and not any(gateway in one.subnet for one in ranges):
            facts.append({"kind": "ipam-route-gateway", "where": where, "gateway": str(gateway)})
    return facts


def _filled_in(network: Network, fault: str) -> bool:
    """Tell whether the plugin itself gives host-local the ranges that the file lacks, as calico and Antrea do.

    Both put the node's subnet there. Of a plugin that nobody described it may be so; what it writes out is checked.
    """
    from . import plugin_keys

    if network.plugin != "calico" and plugin_keys.keys_of(network.plugin) is not None:
        return False
    ipam = gojson.field(network.config, "ipam")
    empty = gojson.field(ipam, "subnet") in (None, "") and gojson.field(ipam, "ranges") in (None, [])
    return "usePodC" in fault or (empty and network.plugin != "calico")


def is_link_local(address: Address) -> bool:
    """Tell whether the address is an IPv6 one that is valid on its link only, as gateways may be."""
    return address.bits == 128 and address.number >> 118 == 0xFE80 >> 6


def _edges(one: Range) -> list[tuple[str, str]]:
    """Return the addresses of an IPv4 range that no host of the subnet may have, and what they are."""
    if one.start.bits != 32:
        return []
    network = one.subnet.network
    broadcast = network.plus(one.subnet.host_mask)
    edges = ((network, "network"), (broadcast, "broadcast"))
    return [(str(address), what) for address, what in edges if address in one and address != one.gateway]


def _end_by_default(config: Any, path: str) -> bool:
    """Tell whether the range at *path* names no end of its own: Go does not compare the default with the start."""
    node = gojson.field(config, "ipam")
    match = _INDICES.search(path)
    if match:
        try:
            node = gojson.field(node, "ranges")[int(match.group(1))][int(match.group(2))]
        except (IndexError, TypeError):
            return False
    return gojson.field(node, "rangeEnd") in (None, "")
