# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which network a probe is about: by its name in the conf dir, by a file, or as given in the task."""

from __future__ import annotations

import json
import os

from ..cni import gojson, links, netconf
from ..cni.errors import CniError, NodenetError
from ..cni.names import interface_fault, valid_name
from . import confdir, networks
from .confdir import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

#: Besides the plugins whose host-local network spans nodes: what takes part in a segment that is not the node's own.
SHARED_TYPES = (*networks.SHARED_TYPES, "sriov", "ib-sriov", "ovs", "infiniband-guid", "bond")
_OF_THIS_NODE = ("veth", "tun", "dummy")
#: What these make goes with the namespace, but for addresses and the rules of ipMasq.
_TRACELESS = ("loopback", "bridge", "ptp", "macvlan", "ipvlan", "vlan", "dummy", "tap", "tuning", "sbr", "vrf")


class Target:
    """The network to probe. ``source``: file or option that defines it. ``network``: the configuration.

    ``data``: its text, as the record of the probe keeps it. ``file_name``: its name or one that tells what it is.
    ``types``: the plugins of the chain in order, ``executables``: those, their delegates and the ones of their ipam.
    ``host_local``: (data dir, network name) of each host-local network in it. ``facts``: what is doubtful about it.
    """

    def __init__(self, source: str, file_name: str, data: bytes, flannel_subnet_file: str) -> None:
        self.source = source
        self.file_name = file_name
        self.data = data
        try:
            self.network = netconf.load_config(data, file_name)
        except CniError as fault:
            raise NodenetError(f"Cannot probe the network in {source}: {fault}", source=source) from None
        if not valid_name(self.network.name):
            name = repr(self.network.name) if self.network.name else "no name"
            raise NodenetError(f"Cannot probe the network in {source}: it has {name}, which no runtime takes")
        tree = gojson.parse(data)
        self.types = [text_of(gojson.field(plugin, "type")) for plugin in self.network.plugins]
        self._trees = list(_with_delegates(self.network.plugins))
        self.executables = list(dict.fromkeys(_executables(self._trees)))
        found = networks.network_of(source, tree, flannel_subnet_file)
        self.host_local = list(dict.fromkeys((one.data_dir, one.name) for one in found if valid_name(one.name)))
        self.facts: list[dict[str, Any]] = [fact for one in found for fact in one.facts]

    def shared(self, host: Sequence[links.Link]) -> str:
        """Tell why a probe would take part in a segment that reaches beyond the node, "" if it would not.

        A bridge does if one of its ports on the *host* is hardware or leads out in another way.
        """
        for tree in self._trees:
            kind = text_of(gojson.field(tree, "type"))
            if kind in SHARED_TYPES:
                return f"plugin {kind} puts it on a segment that reaches beyond this node"
            if text_of(gojson.field(gojson.field(tree, "ipam"), "type")) == "dhcp":
                return "its addresses come from a DHCP server beyond this node"
            if kind in ("bridge", "ovs-cni"):
                port = _port_outwards(host, text_of(gojson.field(tree, "bridge")) or "cni0")
                if port:
                    return f"{port} is a port of its bridge, which therefore reaches beyond this node"
        return ""

    def bridges(self) -> list[str]:
        """Return the names of the bridges that its plugins make where there are none."""
        bridges = [tree for tree in self._trees if text_of(gojson.field(tree, "type")) == "bridge"]
        return [text_of(gojson.field(tree, "bridge")) or "cni0" for tree in bridges]

    def is_traceless(self, plugins: Iterable[str]) -> bool:
        """Tell whether nothing of what these plugins of the chain made can outlive the namespace, reservations of
        host-local left out."""
        ran = set(plugins)
        for tree in self._trees:
            kind = text_of(gojson.field(tree, "type"))
            ipam = text_of(gojson.field(gojson.field(tree, "ipam"), "type"))
            if kind in ran and (ipam not in ("", "host-local", "static") or gojson.field(tree, "ipMasq") is True):
                return False
        return ran <= set(_TRACELESS)


def check_wishes(ifname: str, args: Mapping[str, object]) -> None:
    """Refuse what no plugin could take, ADD and DEL alike. Raises NodenetError."""
    fault = interface_fault(ifname)
    if fault or ifname in ("", "lo"):
        reason = fault[0] if fault else "the pod's first interface needs a name of its own"
        raise NodenetError(f"Cannot probe with interface {ifname!r}: {reason}")
    for key, value in args.items():
        if not key or any(mark in f"{key}{value}" for mark in ";=\0"):
            raise NodenetError(f"Cannot probe with {key!r} in args: a name and its value hold no ';' and no '='")


def find(options: Mapping[str, Any]) -> Target:
    """Return the network that the module's options name. Raises NodenetError."""
    flannel = options["flannel_subnet_file"]
    if options["config"] is not None:
        data = json.dumps(options["config"]).encode()
        is_list = "plugins" in options["config"]
        return Target("config", "config.conflist" if is_list else "config.conf", data, flannel)
    if options["conflist"]:
        path = options["conflist"]
        try:
            return Target(path, os.path.basename(path), confdir.read_regular(path), flannel)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise NodenetError(f"Cannot probe the network in {path}: {reason}", source=path) from None
    return _by_name(options["conf_dir"], options["network"], flannel)


def _by_name(conf_dir: str, name: str, flannel: str) -> Target:
    found = confdir.read_conf_dir(conf_dir)
    files = [one for one in found.files if one.network == name and not one.error]
    if len(files) > 1:
        shown = ", ".join(one.shown for one in files)
        raise NodenetError(
            f"Cannot probe network {name} in {conf_dir}: more than one file defines it ({shown}), remove all but one",
            network=name,
        )
    if not files:
        known = sorted({one.network for one in found.files if one.network and not one.error})
        broken = [f"{one.shown} ({one.error})" for one in found.files if one.error]
        reason = f"no file defines it; defined are {', '.join(known)}" if known else "no file there defines a network"
        if not found.exists:
            reason = "there is no such directory"
        if broken:
            reason += f"; not usable: {', '.join(broken)}"
        raise NodenetError(f"Cannot probe network {name} in {conf_dir}: {reason}", network=name, known_networks=known)
    one = files[0]
    target = Target(os.path.join(conf_dir, one.shown), one.name, one.data or b"", flannel)
    chained = found.chained.get(name)
    if chained:
        types = ", ".join(kind for plugin in chained for kind in plugin.types)
        fact = {"kind": "conf-subdir-plugins", "where": os.path.join(conf_dir, name), "network": name}
        target.facts.append(dict(fact, count=len(chained), types=types))
    return target


def _with_delegates(plugins: Iterable[Any]) -> Iterable[Any]:
    """Yield the configurations of plugins and of those that they call."""
    for plugin in plugins:
        yield plugin
        listed = gojson.field(plugin, "delegates")
        for delegate in listed if isinstance(listed, list) else []:
            inner = gojson.field(delegate, "plugins")
            yield from _with_delegates(inner if isinstance(inner, list) else [delegate])
        if text_of(gojson.field(plugin, "type")) == "flannel":
            delegate = gojson.field(plugin, "delegate")
            values = dict(delegate) if isinstance(delegate, tuple) else {}
            values.setdefault("type", "bridge")
            values.setdefault("ipam", (("type", "host-local"),))
            yield tuple(values.items())


def _executables(trees: Iterable[Any]) -> Iterable[str]:
    for tree in trees:
        for kind in (text_of(gojson.field(tree, "type")), text_of(gojson.field(gojson.field(tree, "ipam"), "type"))):
            if kind:
                yield kind


def _port_outwards(host: Sequence[links.Link], bridge: str) -> str:
    index = next((one.index for one in host if one.name == bridge and one.kind == "bridge"), 0)
    ports = [one.name for one in host if index and one.master == index and one.kind not in _OF_THIS_NODE]
    return ports[0] if ports else ""
