# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with a configuration file before any runtime has read it."""

from __future__ import annotations

import os

from ..cni import gojson, versions
from ..cni.errors import ConfigError
from ..cni.names import valid_name
from ..host_local.config import load_ipam_config
from . import jsonfaults, networks
from .confdir import RUNTIMES, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import confdir

_SUPPORTED = ", ".join(versions.SUPPORTED)


def check_file(
    one: confdir.ConfFile, where: str, flannel_subnet_file: str = networks.FLANNEL_SUBNET_FILE
) -> list[dict[str, Any]]:
    """Return the facts about one file: its syntax, structure, version and host-local configurations.

    Nothing is looked up on the node but the subnet file of flannel. *where* is what to call the file.
    """
    if one.data is None:
        return [{"kind": "conf-unreadable", "where": where, "reason": one.error}]
    text = one.data.decode("utf-8", "replace")
    if one.tree is None and one.error:
        return jsonfaults.explain(text, where)
    # in a valid document they stand in strings, which no runtime looks into
    facts = [dict(fact, kind="conf-placeholder") for fact in jsonfaults.leftovers(text, where)]
    facts += [{"kind": "conf-repeated-key", "where": where, "key": key} for key in gojson.repeated_keys(one.tree)]
    facts += _structure(one, where) or _content(one, where, flannel_subnet_file)
    return facts


def check_dir(
    found: confdir.ConfDir,
    effective: dict[str, dict[str, Any]],
    flannel_subnet_file: str = networks.FLANNEL_SUBNET_FILE,
) -> list[dict[str, Any]]:
    """Return the facts about the files of a conf dir together: order, names, and what the runtimes make of them.

    :param effective: what confdir.effective says about these files
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
    facts += _shared_bridges(found, flannel_subnet_file)
    for network, chained in found.chained.items():
        types = [kind or "?" for one in chained for kind in one.types]
        where = os.path.join(found.path, network)
        facts.append(
            {
                "kind": "conf-subdir-plugins",
                "where": where,
                "network": network,
                "count": len(types),
                "types": ", ".join(types),
            }
        )
    if found.files:
        chosen = {runtime: one["network"] for runtime, one in effective.items()}
        for runtime, title in RUNTIMES.items():
            if chosen[runtime] is None:
                reason = effective[runtime]["reason"]
                facts.append({"kind": "conf-no-network", "where": found.path, "runtime": title, "reason": reason})
        if chosen["containerd"] != chosen["crio"] and None not in chosen.values():
            facts.append({"kind": "conf-runtimes-differ", "where": found.path, **chosen})
    return facts


def check_binaries(
    one: confdir.ConfFile, where: str, bin_dir: str, installed: Callable[[str], bool]
) -> list[dict[str, Any]]:
    """Return a fact for each plugin that the file needs and *bin_dir* lacks, those of delegates and ipam too."""
    needed: list[str] = []
    for plugin in one.plugins:
        needed.append(text_of(gojson.field(plugin, "type")))
        delegate = gojson.field(plugin, "delegate")
        if needed[-1] == "flannel":
            needed += [text_of(gojson.field(delegate, "type")) or "bridge", "host-local"]
        needed.append(text_of(gojson.field(gojson.field(plugin, "ipam"), "type")))
    return [
        {"kind": "conf-plugin-missing", "where": where, "type": name, "bin_dir": bin_dir}
        for name in dict.fromkeys(needed)
        if name and not installed(name)
    ]


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


def _structure(one: confdir.ConfFile, where: str) -> list[dict[str, Any]]:
    """Return the faults of the document's form; with one of these nobody reads further."""
    if not isinstance(one.tree, tuple):
        return [{"kind": "conf-structure", "where": where, "reason": "the document is not an object"}]
    listed = gojson.field(one.tree, "plugins")
    if not one.is_list and listed is not None and gojson.field(one.tree, "type") is None:
        return [{"kind": "conf-list-in-conf", "where": where}]
    if one.is_list and listed is None and gojson.field(one.tree, "type") is not None:
        return [{"kind": "conf-single-in-conflist", "where": where}]
    missing = []
    name = gojson.field(one.tree, "name")
    if name is None or name == "":
        missing.append("'name' is missing")
    elif not text_of(name):
        missing.append("'name' is not a string")
    if one.is_list:
        if not isinstance(listed, list) or not listed:
            missing.append("no 'plugins'" if listed is None or listed == [] else "'plugins' is not a list")
        else:
            missing += [
                f"plugins[{index}] has no 'type'"
                for index, plugin in enumerate(listed)
                if not text_of(gojson.field(plugin, "type"))
            ]
    elif not text_of(gojson.field(one.tree, "type")):
        missing.append("'type' is missing")
    if not missing and one.error:
        missing.append(one.error)
    return [{"kind": "conf-structure", "where": where, "reason": reason} for reason in missing]


def _content(one: confdir.ConfFile, where: str, flannel_subnet_file: str) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = []
    if not valid_name(one.network):
        facts.append({"kind": "conf-name-invalid", "where": where, "name": one.network})
    if one.cni_version and one.cni_version not in versions.SUPPORTED:
        facts.append(
            {"kind": "conf-version-unknown", "where": where, "version": one.cni_version, "supported": _SUPPORTED}
        )
    for network in networks.network_of(where, one.tree, flannel_subnet_file):
        facts += network.facts
        if not network.facts:
            facts += _ipam(network, where)
    return facts


def _ipam(network: networks.Network, where: str) -> list[dict[str, Any]]:
    try:
        config = load_ipam_config(network.config)
    except ConfigError as fault:
        path = ".".join(part for part in (network.place, fault.path) if part)
        kind = f"ipam-{fault.kind}" if fault.kind in ("host-bits", "mixed-families") else "conf-ipam-invalid"
        return [{"kind": kind, "where": where, "path": path, "reason": fault.msg, "network": fault.wanted}]
    return [
        {
            "kind": "ipam-gateway-outside",
            "where": where,
            "gateway": str(one.gateway),
            "subnet": str(one.subnet),
        }
        for range_set in config.sets
        for one in range_set.ranges
        if one.gateway not in one.subnet and not _link_local(one.gateway)
    ]


def _link_local(address: Any) -> bool:
    return address.bits == 128 and address.number >> 118 == 0xFE80 >> 6
