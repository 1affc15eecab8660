# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which networks a conf dir defines whose addresses host-local hands out, and with what configuration.

host-local stands in a plugin's ``ipam`` of a conflist or of a single .conf, in the same below the ``delegates`` of
Multus, or nowhere at all: flannel makes its configuration from a file that flanneld leaves on the node.
"""

from __future__ import annotations

import os

from ..cni import gojson
from ..cni.errors import NodenetError
from ..cni.names import valid_name
from ..host_local import addresses
from ..host_local.layout import DEFAULT_DATA_DIR
from . import confdir
from .confdir import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

FLANNEL_SUBNET_FILE = "/run/flannel/subnet.env"

SHARED_TYPES = ("macvlan", "ipvlan", "vlan", "host-device")


class Network:
    """A network whose addresses come from host-local.

    name: of the network. source: path of the file that defines it. place: the plugin's place in the file.
    plugin: type of the plugin that calls host-local. config: what host-local gets on stdin (a gojson tree).
    scope: "shared" when one layer 2 segment reaches over nodes, else "node"; a bridge counts as "node", because its
    ports cannot be known from the configuration. data_dir: as configured, or host-local's default.
    facts: what is doubtful about it.
    """

    def __init__(self, name: str, source: str, place: str, plugin: str, config: Any) -> None:
        self.name = name
        self.source = source
        self.place = place
        self.plugin = plugin
        self.config = config
        self.scope = "shared" if plugin in SHARED_TYPES else "node"
        self.data_dir = text_of(gojson.field(gojson.field(config, "ipam"), "dataDir")) or DEFAULT_DATA_DIR
        self.facts: list[dict[str, Any]] = []


def find_network(conf_dir: str, name: str, flannel_subnet_file: str = FLANNEL_SUBNET_FILE) -> Network:
    """Return the network *name* as the conf dir defines it.

    :raises NodenetError: no file, more than one file, or a file without host-local defines it
    """
    found = confdir.read_conf_dir(conf_dir)
    files = [os.path.join(conf_dir, one.shown) for one in found.files if one.network == name and not one.error]
    networks = [one for one in _networks_of(found, flannel_subnet_file) if one.name == name]
    own = [one for one in networks if one.source in files]
    if not networks:
        raise _not_found(found, name)
    first = own[0] if own else networks[0]
    sources = list(files)
    sources += [one.source for one in networks if one.source not in files and (not own or _differ(one, first))]
    sources = list(dict.fromkeys(sources))
    if len(sources) > 1 and (own or any(_differ(one, first) for one in networks)):
        raise NodenetError(
            f"Cannot use network {name} in {conf_dir}: more than one file defines it "
            f"({', '.join(os.path.basename(path) for path in sources)}), remove all but one",
            network=name,
            files=sources,
        )
    if len(own) > 1 and any(_differ(one, first) for one in own):
        raise NodenetError(
            f"Cannot use network {name} in {first.source}: more than one of its plugins uses host-local",
            network=name,
            files=[first.source],
        )
    return first


def all_networks(
    conf_dir: str, flannel_subnet_file: str = FLANNEL_SUBNET_FILE
) -> tuple[list[Network], list[dict[str, Any]]]:
    """Return each host-local network of the conf dir once, in load order, and what is wrong with the files."""
    found = confdir.read_conf_dir(conf_dir)
    facts = [] if found.exists else [{"kind": "conf-dir-missing", "where": conf_dir}]
    facts += [one.fault(conf_dir) for one in found.files if one.error]
    networks, more = each_once(_networks_of(found, flannel_subnet_file))
    return networks, facts + more


def each_once(found: Iterable[Network]) -> tuple[list[Network], list[dict[str, Any]]]:
    """Return each network once, and what is wrong with the definitions.

    Of two definitions of a name the first one counts, as it does for the runtimes; a different second one is a fact.
    """
    facts: list[dict[str, Any]] = []
    networks: dict[str, Network] = {}
    for network in found:
        if not valid_name(network.name):  # its directory would be the data dir itself, or lie outside of it
            facts.append({"kind": "conf-name-invalid", "where": network.source, "name": network.name})
            continue
        first = networks.setdefault(network.name, network)
        if first is network:
            facts.extend(network.facts)
        elif _differ(network, first):
            where, known = network.source, os.path.basename(first.source)
            facts.append({"kind": "conf-network-twice", "where": where, "network": network.name, "first": known})
    return list(networks.values()), facts


def network_of(source: str, config: Any, flannel_subnet_file: str = FLANNEL_SUBNET_FILE) -> list[Network]:
    """Return the host-local networks of one configuration, which need not lie in a conf dir.

    :param source: what to call its origin
    :param config: gojson tree of a conflist or of a single plugin's configuration
    :param flannel_subnet_file: "" away from the node: then networks of flannel are left out
    """
    return _of_config(config, source, "", flannel_subnet_file)


def as_sent(plugin: Any, name: str, cni_version: str) -> Any:
    """Return a plugin's configuration as libcni sends it: name and version put in, repeated keys gone, keys sorted."""
    values = _last_wins(plugin)
    values["name"] = name
    values["cniVersion"] = cni_version
    return _sorted_tree(values)


def _last_wins(node: Any) -> Any:
    if isinstance(node, tuple):
        return {key: _last_wins(value) for key, value in node}
    return [_last_wins(value) for value in node] if isinstance(node, list) else node


def _sorted_tree(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((key, _sorted_tree(value[key])) for key in sorted(value))
    return [_sorted_tree(one) for one in value] if isinstance(value, list) else value


def _not_found(found: confdir.ConfDir, name: str) -> NodenetError:
    for one in found.files:
        if one.network == name and not one.error:
            path, types = os.path.join(found.path, one.shown), ", ".join(one.types)
            return NodenetError(
                f"Cannot use network {name} in {path}: none of its plugins ({types}) uses host-local",
                network=name,
                files=[path],
            )
    names = sorted({one.network for one in found.files if one.network and one.network != name})
    broken = [f"{one.shown} ({one.error})" for one in found.files if one.error]
    reason = f"no file defines it; defined are {', '.join(names)}" if names else "no file there defines a network"
    if not found.exists:
        reason = "there is no such directory"
    if broken:
        reason += f"; not usable: {', '.join(broken)}"
    return NodenetError(f"Cannot use network {name} in {found.path}: {reason}", network=name, known_networks=names)


def _differ(one: Network, other: Network | None) -> bool:
    """Tell whether two definitions of a name disagree; a copy below the delegates of Multus is no second one."""
    if other is None or one is other:
        return False
    return _ipam(one) != _ipam(other)


def _ipam(network: Network) -> Any:
    return gojson.field(network.config, "ipam")


def _networks_of(found: confdir.ConfDir, flannel_subnet_file: str) -> list[Network]:
    """Return all host-local networks; those that stand in a file of their own come before copies for Multus."""
    networks: list[Network] = []
    for one in found.files:
        source = os.path.join(found.path, one.shown)
        for index, plugin in enumerate(one.plugins):
            place = f"plugins[{index}]" if one.is_list else ""
            networks.extend(_of_plugin(plugin, one.network, one.cni_version, source, place, flannel_subnet_file))
    return sorted(networks, key=lambda network: network.place.startswith("delegates"))


def _of_config(config: Any, source: str, place: str, flannel_file: str) -> list[Network]:
    name = text_of(gojson.field(config, "name"))
    version = text_of(gojson.field(config, "cniVersion"))
    listed = gojson.field(config, "plugins")
    plugins = listed if isinstance(listed, list) else [config]
    networks: list[Network] = []
    for index, plugin in enumerate(plugins):
        where = f"{place}plugins[{index}]" if isinstance(listed, list) else place
        networks.extend(_of_plugin(plugin, name, version, source, where, flannel_file))
    return networks


def _of_plugin(plugin: Any, name: str, version: str, source: str, place: str, flannel_file: str) -> list[Network]:
    kind = text_of(gojson.field(plugin, "type"))
    delegates = gojson.field(plugin, "delegates")
    if isinstance(delegates, list) and kind.startswith("multus"):
        networks: list[Network] = []
        for index, delegate in enumerate(delegates):
            networks.extend(_of_config(delegate, source, f"delegates[{index}].", flannel_file))
        return networks
    if kind == "flannel":
        return [] if not flannel_file else _of_flannel(plugin, name, version, source, place, flannel_file)
    if text_of(gojson.field(gojson.field(plugin, "ipam"), "type")) == "host-local":
        return [Network(name, source, place, kind, as_sent(plugin, name, version))]
    return []


def _of_flannel(plugin: Any, name: str, version: str, source: str, place: str, flannel_file: str) -> list[Network]:
    """Return what flannel hands to its delegate: its own ``ipam``, with ranges and routes from the subnet file."""
    ipam = gojson.field(plugin, "ipam")
    values = dict(ipam) if isinstance(ipam, tuple) else {}
    if values.setdefault("type", "host-local") != "host-local":
        return []
    path = text_of(gojson.field(plugin, "subnetFile")) or flannel_file
    facts = []
    try:
        subnets, routes = read_flannel_subnets(path)
    except (OSError, ValueError) as fault:
        subnets, routes = [], []
        reason = (fault.strerror or str(fault)).lower() if isinstance(fault, OSError) else str(fault)
        facts = [
            {"kind": "ipam-flannel-subnet-missing", "where": source, "network": name, "path": path, "reason": reason}
        ]
    given = values.get("routes")
    values["ranges"] = [[(("subnet", subnet),)] for subnet in subnets]
    values["routes"] = (given if isinstance(given, list) else []) + [(("dst", dst),) for dst in routes]
    delegate = gojson.field(plugin, "delegate")
    config = dict(delegate) if isinstance(delegate, tuple) else {}
    config.setdefault("type", "bridge")
    config["ipam"] = tuple(values.items())
    network = Network(name, source, place, "flannel", as_sent(tuple(config.items()), name, version))
    network.facts = facts
    return [network]


def read_flannel_subnets(path: str) -> tuple[list[str], list[str]]:
    """Return the node's subnets (v4, v6) and flannel's networks from the file that flanneld writes.

    The subnet stands there as the address of the gateway with a prefix length (10.244.0.1/24); what counts is the
    network (10.244.0.0/24). Raises OSError, or ValueError when the file names no subnet.
    """
    found: dict[str, str] = {}
    for line in confdir.read_regular(path).decode("utf-8", "replace").splitlines():
        key, _equals, value = line.partition("=")
        found[key] = value
    subnets = [found[key] for key in ("FLANNEL_SUBNET", "FLANNEL_IPV6_SUBNET") if key in found]
    networks = [found[key] for key in ("FLANNEL_NETWORK", "FLANNEL_IPV6_NETWORK") if key in found]
    if not subnets:
        raise ValueError("it names no FLANNEL_SUBNET")
    routes = [part for network in networks for part in network.split(",") if part]
    return [_masked(subnet) for subnet in subnets], [_masked(route) for route in routes]


def _masked(text: str) -> str:
    cidr = addresses.parse_cidr(text.strip())
    return f"{cidr.network}/{cidr.prefix}"
