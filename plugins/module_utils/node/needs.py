# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What plugins need of a node before they can give a pod a network: only that, by plugin and address family.

Nothing is looked up on the node here. The tables say what the plugins of the CNI project do in the kernel, and what the
projects of the others ask for in their documentation.
"""

from __future__ import annotations

from ..cni import gojson
from ..host_local import addresses
from . import sysctls
from .confdir import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MODULES = {
    "bridge": ("bridge", "veth"),
    "ptp": ("veth",),
    "flannel": ("bridge", "veth"),
    "macvlan": ("macvlan",),
    "ipvlan": ("ipvlan",),
    "vlan": ("8021q",),
    "dummy": ("dummy",),
    "tap": ("tun",),
    "vrf": ("vrf",),
    # it shapes with tbf, later releases with htb
    "bandwidth": ("ifb", "sch_ingress", "cls_u32", "act_mirred", "sch_tbf", "sch_htb"),
    "portmap": ("nf_conntrack", "nf_nat"),
    "firewall": ("nf_conntrack",),
}
#: types whose packets the node routes
ROUTED = ("bridge", "ptp", "flannel", "portmap", "calico", "cilium-cni", "kube-ovn")
#: types with a bridge whose packets have to pass the node's firewall rules, or services are not reached from beside
BRIDGED = ("bridge", "flannel")
#: names of the interfaces that a type makes in the node's own namespace
INTERFACES = {
    "bridge": ("veth*",),
    "ptp": ("veth*",),
    "flannel": ("flannel*", "veth*"),
    "bandwidth": ("bwp*",),
    "calico": ("cali*", "tunl*", "vxlan.calico", "vxlan-v6.calico", "wireguard.cali", "wg-v6.cali"),
    "cilium-cni": ("cilium_*", "lxc*"),
}
DEFAULT_BRIDGE = "cni0"  # of the plugin bridge, and of flannel's delegate
FORWARDING = {4: "net/ipv4/ip_forward", 6: "net/ipv6/conf/all/forwarding"}
BRIDGE_CALL = {4: "net/bridge/bridge-nf-call-iptables", 6: "net/bridge/bridge-nf-call-ip6tables"}
_ADDRESS_KEYS = ("subnet", "range", "rangeStart", "address", "addresses", "ranges", "ipRanges")


class Needs:
    """What is needed, each with the plugins or networks that need it.

    types: of the plugins. modules: kernel modules. sysctls: (value, for what) by key in slash form, see sysctls.py.
    interfaces: names and patterns that a network manager has to leave alone. bridges, subnets: what a firewall has to
    let through.
    """

    def __init__(self, bridge_nf_call: bool = True) -> None:
        self.modules: dict[str, list[str]] = {}
        self.sysctls: dict[str, tuple[str, list[str]]] = {}
        self.interfaces: list[str] = []
        self.bridges: list[str] = []
        self.subnets: list[str] = []
        self.families: list[int] = []
        self.types: list[str] = []
        self._bridge_nf_call = bridge_nf_call

    def add_plugins(self, types: Iterable[str], families: Iterable[int]) -> None:
        """Add what these types need, whatever their configuration will be (a bridge as gateway, called cni0)."""
        families = sorted(set(families))
        for kind in types:
            self._add_type(kind, families, kind, gateway=True)
            if kind in BRIDGED:
                self._add_bridge(DEFAULT_BRIDGE)

    def add_config(self, network: str, plugins: Iterable[Any], subnets: Iterable[str] = ()) -> None:
        """Add what a network's plugins need.

        :param plugins: gojson trees, in order
        :param subnets: that flannel or another source outside of the configuration gives to the network
        """
        plugins = list(plugins)
        given = [*subnets, *(one for plugin in plugins for one in addresses_of(gojson.field(plugin, "ipam")))]
        families = families_of(given)
        for plugin in plugins:
            kind = text_of(gojson.field(plugin, "type"))
            delegates = gojson.field(plugin, "delegates")
            if kind.startswith("multus") and isinstance(delegates, list):
                for delegate in delegates:
                    listed = gojson.field(delegate, "plugins")
                    inner = listed if isinstance(listed, list) else [delegate]
                    self.add_config(text_of(gojson.field(delegate, "name")) or network, inner)
                continue
            needed_by = f"{kind} of {network}" if network else kind
            delegate = text_of(gojson.field(gojson.field(plugin, "delegate"), "type"))
            if kind == "flannel" and delegate not in ("", "bridge"):
                self._add_type(delegate, families, needed_by, gateway=True)
                continue
            self._add_type(kind, families, needed_by, _is_gateway(plugin, kind))
            self._add_names(plugin, kind, needed_by)
            if kind == "ptp":
                self.subnets += [one for one in _subnets(given) if one not in self.subnets]

    def add_module(self, module: str, needed_by: str) -> None:
        users = self.modules.setdefault(module.replace("-", "_"), [])
        if needed_by not in users:
            users.append(needed_by)

    def add_sysctl(self, key: str, value: str, needed_by: str) -> None:
        """Add a setting; of two values for one key the later call counts."""
        users = self.sysctls.get(key, ("", []))[1]
        self.sysctls[key] = (value, users + [needed_by] if needed_by not in users else users)

    def ordered_sysctls(self) -> list[tuple[str, str, list[str]]]:
        """Return (key, value, for what) in the order in which they have to be written.

        A change of ip_forward resets other IPv4 settings, so it comes before them; one of IPv6 forwarding drops routes
        that came from router advertisements unless accept_ra is 2 by then.
        """

        def rank(key: str) -> tuple[int, str]:
            if key.endswith("/accept_ra"):
                return 0, key
            return (1 if key in FORWARDING.values() else 2), key

        return [(key, *self.sysctls[key]) for key in sorted(self.sysctls, key=rank)]

    def _add_type(self, kind: str, families: list[int], needed_by: str, gateway: bool) -> None:
        if kind not in self.types:
            self.types.append(kind)
        for module in MODULES.get(kind, ()):
            self.add_module(module, needed_by)
        self.interfaces += [name for name in INTERFACES.get(kind, ()) if name not in self.interfaces]
        self.families = sorted({*self.families, *families})
        if kind in ROUTED and gateway:
            for family in families:
                self.add_sysctl(FORWARDING[family], "1", needed_by)
        if kind in BRIDGED and self._bridge_nf_call:
            self.add_module("br_netfilter", needed_by)
            for family in families:
                self.add_sysctl(BRIDGE_CALL[family], "1", needed_by)

    def _add_names(self, plugin: Any, kind: str, needed_by: str) -> None:
        if kind in BRIDGED:
            owner = gojson.field(plugin, "delegate") if kind == "flannel" else plugin
            name = text_of(gojson.field(owner, "bridge")) or DEFAULT_BRIDGE
            vlan = str(gojson.field(owner, "vlan") or 0)
            self._add_bridge(name)
            if vlan != "0" and _is_gateway(plugin, kind):
                self.add_module("8021q", needed_by)
                self._add_bridge(f"{name}.{vlan}")
        if gojson.field(plugin, "ipMasq") is True:
            for module in ("nf_conntrack", "nf_nat"):
                self.add_module(module, needed_by)
        device = text_of(gojson.field(plugin, "device"))
        if kind == "host-device" and device and device not in self.interfaces:
            self.interfaces.append(device)

    def _add_bridge(self, name: str) -> None:
        if name not in self.bridges:
            self.bridges.append(name)
        if name not in self.interfaces:
            self.interfaces.append(name)


def _is_gateway(plugin: Any, kind: str) -> bool:
    """Tell whether the node routes for the plugin; a bridge may also just join its ports."""
    if kind == "bridge":
        return gojson.field(plugin, "isGateway") is True or gojson.field(plugin, "isDefaultGateway") is True
    if kind == "flannel":
        return gojson.field(gojson.field(plugin, "delegate"), "isGateway") is not False  # flannel sets it
    return True


def addresses_of(node: Any) -> list[str]:
    """Return the addresses, subnets and ranges that an ``ipam`` block names, however its plugin nests them."""
    found: list[str] = []
    if isinstance(node, list):
        for one in node:
            found += addresses_of(one)
    elif isinstance(node, tuple):
        for key, value in node:
            if not any(gojson.fold(key) == gojson.fold(name) for name in _ADDRESS_KEYS):
                continue
            found += [value] if isinstance(value, str) else addresses_of(value)
    return found


def _subnets(given: Iterable[str]) -> list[str]:
    """Return those of the texts that are subnets or addresses with a prefix, without host bits."""
    found = []
    for text in given:
        try:
            cidr = addresses.parse_cidr(text)
        except ValueError:
            continue  # a lone address, or nothing that a plugin would take either
        found.append(f"{cidr.network}/{cidr.prefix}")
    return list(dict.fromkeys(found))


def families_of(given: Iterable[str]) -> list[int]:
    """Return the families of addresses; [4] if none tells."""
    return sorted({6 if ":" in one else 4 for one in given}) or [4]


def parse_sysctls(given: dict[str, Any]) -> list[tuple[str, str]]:
    """Return further settings of a task as (key in slash form, value). Errors: NodenetError."""
    return [(sysctls.parse_key(name), sysctls.parse_value(name, value)) for name, value in sorted(given.items())]
