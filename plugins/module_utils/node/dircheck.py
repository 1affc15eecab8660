# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with the files of a conf dir together: order, names, twins, strays, subnets and bridges in common."""

from __future__ import annotations

import os

from ..cni import gojson
from ..cni.errors import ConfigError
from ..host_local.config import load_ipam_config
from . import networks
from .confdir import text_of
from .effective import RUNTIMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..host_local.ranges import Range
    from . import confdir


def check_dir(
    found: confdir.ConfDir,
    effective: dict[str, dict[str, Any]],
    flannel_subnet_file: str = networks.FLANNEL_SUBNET_FILE,
) -> list[dict[str, Any]]:
    """Return the facts about the files of a conf dir together: order, names, and what the runtimes make of them.

    :param effective: what effective.predict says about these files
    """
    facts: list[dict[str, Any]] = []
    first: dict[str, str] = {}
    for one in found.files:
        where = os.path.join(found.path, one.name)
        if one.error:
            facts.append(one.fault(found.path))
        elif one.network in first:
            facts.append(
                {"kind": "conf-network-twice", "where": where, "network": one.network, "first": first[one.network]}
            )
        else:
            first[one.network] = one.name
        if one.name.startswith("."):
            facts.append({"kind": "conf-hidden-file", "where": where})
    facts += _twins(found) + _shared_bridges(found, flannel_subnet_file)
    if len(found.files) > 1:
        facts += _overlaps(found, flannel_subnet_file)
    facts += _subdirectories(found) + _strays(found)
    if found.files:
        chosen = {runtime: one["network"] for runtime, one in effective.items()}
        for runtime, title in RUNTIMES.items():
            if chosen[runtime] is None:
                reason, kind = effective[runtime]["reason"], "conf-no-network"
                if not effective[runtime]["known"]:
                    reason, kind = reason.partition(": ")[2], "conf-runtime-unknown"
                facts.append({"kind": kind, "where": found.path, "runtime": title, "reason": reason})
        if chosen["containerd"] != chosen["crio"] and None not in chosen.values():
            facts.append({"kind": "conf-runtimes-differ", "where": found.path, **chosen})
    return facts


def _twins(found: confdir.ConfDir) -> list[dict[str, Any]]:
    """Return a fact for each file that stands before one of the same name with another ending."""
    facts = []
    stems: dict[str, str] = {}
    for one in found.files:
        stem = one.name[: one.name.rindex(".")]
        other = stems.setdefault(stem, one.name)
        if other != one.name:
            facts.append({"kind": "conf-twin", "where": os.path.join(found.path, other), "other": one.shown})
    return facts


def _strays(found: confdir.ConfDir) -> list[dict[str, Any]]:
    """Return facts about files that no runtime reads: backups, and those that somebody may think are read."""
    if not found.others:
        return []
    from . import confstray  # most directories hold nothing else

    return confstray.facts(found.path, found.others)


def _subdirectories(found: confdir.ConfDir) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = []
    networks_of_files = {one.network: one for one in found.files if not one.error and one.is_list}
    for network, chained in found.chained.items():
        types = [kind or "?" for one in chained for kind in one.types]
        where = os.path.join(found.path, network)
        params = {"network": network, "count": len(types), "types": ", ".join(types)}
        facts.append(dict(params, kind="conf-subdir-plugins", where=where))
        owner = networks_of_files.get(network)
        for one in chained:
            path = os.path.join(where, one.shown)
            if one.error:
                reason = {"network": network, "reason": one.error}
                facts.append(dict(reason, kind="conf-subdir-broken", where=path))
            elif owner is not None:
                from . import lint

                facts += lint.check_plugins(one.plugins, owner.cni_version, path, [""], owner.types)
    for one in networks_of_files.values():
        if one.network in found.others and not one.inline_only:
            where = os.path.join(found.path, one.network)
            facts.append({"kind": "conf-subdir-file", "where": where, "network": one.network})
    return facts


def _overlaps(found: confdir.ConfDir, flannel_subnet_file: str) -> list[dict[str, Any]]:
    """Return a fact for each pair of networks that hand out the same addresses from stores of their own."""
    facts = []
    known: list[tuple[str, list[Range]]] = []
    for one in found.files:
        where = os.path.join(found.path, one.shown)
        for network in networks.network_of(where, one.tree, flannel_subnet_file) if not one.error else []:
            try:
                ranges = [each for row in load_ipam_config(network.config).sets for each in row.ranges]
            except ConfigError:
                continue
            for other, theirs in known:
                common = [mine for mine in ranges if any(mine.overlaps(each) for each in theirs)]
                if common and other != network.name:
                    params = {"network": network.name, "other": other, "range": str(common[0])}
                    facts.append(dict(params, kind="conf-subnets-overlap", where=where))
            known.append((network.name, ranges))
    return facts


def _shared_bridges(found: confdir.ConfDir, flannel_subnet_file: str) -> list[dict[str, Any]]:
    """Return a fact for each network whose bridge has another network's gateway.

    The plugin bridge gives the gateway's address to the bridge and fails when that has another IPv4 address already,
    so the network whose pod comes first wins. Several IPv6 addresses may stand side by side.
    """
    facts = []
    first: dict[tuple[str, str], tuple[str, set[str]]] = {}
    for one in found.files:
        where = os.path.join(found.path, one.name)
        for network in networks.network_of(where, one.tree, flannel_subnet_file) if _has_bridge(one) else []:
            bridge, vlan, gateways = _bridge_of(network)
            if not gateways:
                continue
            other, known = first.setdefault((bridge, vlan), (network.name, gateways))
            if other != network.name and known != gateways:
                params = {"network": network.name, "other": other, "bridge": bridge}
                params.update(gateway=", ".join(sorted(gateways)), other_gateway=", ".join(sorted(known)))
                facts.append(dict(params, kind="conf-bridge-shared", where=where))
    return facts


def _has_bridge(one: confdir.ConfFile) -> bool:
    return not one.error and bool({"bridge", "flannel"} & set(one.types))


def _bridge_of(network: networks.Network) -> tuple[str, str, set[str]]:
    """Return the bridge, its VLAN and the IPv4 addresses that the plugin gives to it; none if it is no gateway."""

    def value(key: str) -> Any:
        return gojson.field(network.config, key)

    gateway = value("isGateway") is True or value("isDefaultGateway") is True
    if network.plugin == "flannel":
        gateway = value("isGateway") is not False  # flannel sets it
    if value("type") != "bridge" or not gateway:
        return "", "", set()
    try:
        sets = load_ipam_config(network.config).sets
    except ConfigError:
        return "", "", set()
    ranges = [one for range_set in sets for one in range_set.ranges if one.gateway.bits == 32]
    return (
        text_of(value("bridge")) or "cni0",
        str(value("vlan") or 0),
        {f"{one.gateway}/{one.subnet.prefix}" for one in ranges},
    )
