# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node's networks need of it, beside what it has: the facts that node_info and node_prerequisites share."""

from __future__ import annotations

import os
import stat

from ..cni import gojson
from ..cni.errors import NodenetError
from . import confdir, daemons, kernel, networks, sysctls
from .needs import FORWARDING, Needs, addresses_of, parse_sysctls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

MODULES_FILE = "nodenet-cni.conf"
SYSCTL_FILE = "90-nodenet-cni.conf"
NM_FILE = "90-nodenet-cni.conf"
_RP_FILTER = {"loose": "2", "strict": "1"}
_RP_FILTER_KEYS = ("net/ipv4/conf/all/rp_filter", "net/ipv4/conf/default/rp_filter")
_ROUTE_OF_RA = 0x00010000 | 0x00040000  # RTF_DEFAULT, RTF_ADDRCONF


class Places:
    """Where things are on the node. The first four are what a task can name, the others are for tests."""

    def __init__(
        self,
        modules_load_dir: str = "/etc/modules-load.d",
        sysctl_dir: str = "/etc/sysctl.d",
        networkmanager_dir: str = "/etc/NetworkManager/conf.d",
        firewalld_dir: str = "/etc/firewalld",
        sysctl_others: Sequence[str] = sysctls.OTHER_PLACES,
        proc: str = "/proc",
        sys: str = "/sys",
        modules: str = "/lib/modules",
        boot: str = "/boot",
        programs: Sequence[str] = ("/sbin", "/usr/sbin", "/bin", "/usr/bin"),
        systemd: str = "/etc/systemd/system",
        nm_vendor: Sequence[str] = ("/usr/lib/NetworkManager/conf.d", "/run/NetworkManager/conf.d"),
    ) -> None:
        self.modules_file = os.path.join(modules_load_dir, MODULES_FILE)
        self.sysctl_dir = sysctl_dir
        self.sysctl_file = os.path.join(sysctl_dir, SYSCTL_FILE)
        self.sysctl_others = tuple(sysctl_others)
        self.networkmanager_dir = networkmanager_dir
        self.networkmanager_file = os.path.join(networkmanager_dir, NM_FILE)
        self.firewalld_dir = firewalld_dir
        self.proc = proc
        self.systemd = systemd
        self.nm_vendor = tuple(nm_vendor)
        self.kernel = kernel.Kernel(proc, sys, modules, boot, programs)
        self.live = sysctls.Live(proc)
        self.firewalld = daemons.Firewalld(
            firewalld_dir, proc, [os.path.join(folder, "firewall-cmd") for folder in programs]
        )


def needs_of(
    conf_dir: str,
    flannel_subnet_file: str,
    plugins: Sequence[str] | None = None,
    families: Sequence[int] = (4,),
    configs: Sequence[Mapping[str, Any]] | None = None,
    names: Sequence[str] | None = None,
    bridge_nf_call: bool = True,
) -> tuple[Needs, list[dict[str, Any]]]:
    """Return what is needed, and facts about configurations that cannot be read.

    :param plugins: types, with *families* of addresses
    :param configs: conflists as dictionaries, which need not be on the node yet
    :param names: networks of *conf_dir*; all of them if neither *plugins* nor *configs* nor *names* are given
    :raises NodenetError: an unknown network, a configuration without plugins, or nothing at all to go by
    """
    needs = Needs(bridge_nf_call)
    needs.add_plugins(plugins or (), families)
    for config in configs or ():
        tree = gojson.from_plain(dict(config))
        listed = gojson.field(tree, "plugins")
        chain = listed if isinstance(listed, list) else [tree]
        network = confdir.text_of(gojson.field(tree, "name"))
        if not all(confdir.text_of(gojson.field(one, "type")) for one in chain):
            raise NodenetError(f"Cannot tell what network {network!r} needs: it has a plugin without a type")
        subnets = _flannel_subnets(network, tree, flannel_subnet_file)
        needs.add_config(network, chain, subnets)
    if names is None and (plugins is not None or configs is not None):
        return needs, []
    found = confdir.read_conf_dir(conf_dir)
    facts = [one.fault(conf_dir) for one in found.files if one.error]
    known = [one.network for one in found.files if not one.error]
    for name in names or ():
        if name not in known:
            raise NodenetError(
                f"Cannot tell what network {name} needs: no usable file in {conf_dir} defines it", known_networks=known
            )
    for one in found.files:
        if one.error or (names is not None and one.network not in names):
            continue
        chain = one.plugins + [plugin for more in found.chained.get(one.network, ()) for plugin in more.plugins]
        subnets = _flannel_subnets(one.shown, one.tree, flannel_subnet_file)
        needs.add_config(one.network, chain, subnets)
    return needs, facts


def _flannel_subnets(source: str, tree: Any, flannel_subnet_file: str) -> list[str]:
    found = networks.network_of(source, tree, flannel_subnet_file)
    return [text for one in found if one.plugin == "flannel" for text in addresses_of(gojson.field(one.config, "ipam"))]


def add_wishes(
    needs: Needs,
    modules: Sequence[str],
    settings: Mapping[str, Any],
    rp_filter: str,
    interfaces: Sequence[str],
) -> None:
    """Add what the task asks for beside what plugins need. Errors: NodenetError."""
    for module in modules:
        if not module.replace("-", "").replace("_", "").isalnum():
            raise NodenetError(f"Cannot load kernel module {module!r} on this node: that is no name of a module")
        needs.add_module(module, "the task")
    if rp_filter in _RP_FILTER:
        for key in _RP_FILTER_KEYS:
            needs.add_sysctl(key, _RP_FILTER[rp_filter], "the task")
    for key, value in parse_sysctls(dict(settings)):
        needs.sysctls.pop(key, None)  # what the task says of a key counts
        needs.add_sysctl(key, value, "the task")
    needs.interfaces += [one for one in interfaces if one not in needs.interfaces]
    for one in needs.interfaces:
        if not one or not one.isprintable() or any(char in one for char in " ;,/"):
            raise NodenetError(f"Cannot exempt interface {one!r} on this node: that is no name or pattern of one")


def add_router_advertisements(needs: Needs, places: Places) -> list[dict[str, Any]]:
    """Keep default routes that come from router advertisements, which a forwarding node would lose at once.

    What our drop-in has kept already stays kept while the interface is there, whether it has the route or not.
    """
    if needs.sysctls.get(FORWARDING[6], ("", []))[0] != "1":
        return []
    facts = []
    try:
        kept = {one.key for one in sysctls.read_file(places.sysctl_file) if one.key.endswith("/accept_ra")}
    except OSError:
        kept = set()
    for interface in _interfaces_by_ra(places.proc):
        key = f"net/ipv6/conf/{interface}/accept_ra"
        if places.live.get(key) in ("1", "2"):  # with 0 a program handles the advertisements, not the kernel
            kept.add(key)
            facts.append({"kind": "node-ra-kept", "where": sysctls.shown(key), "interface": interface})
    for key in sorted(kept):
        if key not in needs.sysctls and places.live.get(key) is not None:
            needs.add_sysctl(key, "2", "IPv6 forwarding")
    return facts


def _interfaces_by_ra(proc: str) -> list[str]:
    try:
        with open(os.path.join(proc, "net/ipv6_route"), encoding="ascii", errors="replace") as stream:
            rows = [line.split() for line in stream]
    except OSError:
        return []
    found = [row[9] for row in rows if len(row) == 10 and int(row[8], 16) & _ROUTE_OF_RA == _ROUTE_OF_RA]
    return sorted(set(found))


def module_rows(needs: Needs, places: Places) -> list[dict[str, Any]]:
    """Return ``{name, state, needed_by}`` of each kernel module, by name."""
    return [
        {"name": name, "state": places.kernel.state(name), "needed_by": needs.modules[name]}
        for name in sorted(needs.modules)
    ]


def module_facts(rows: Sequence[Mapping[str, Any]], places: Places) -> list[dict[str, Any]]:
    """Return a fact for each module that is not at work."""
    kinds = {
        kernel.ABSENT: "node-module-missing",
        kernel.AVAILABLE: "node-module-not-loaded",
        kernel.UNKNOWN: "node-module-unknown",
    }
    where = f"kernel {places.kernel.release}"
    return [
        {"kind": kinds[row["state"]], "where": where, "module": row["name"], "needed_by": ", ".join(row["needed_by"])}
        for row in rows
        if row["state"] in kinds
    ]


def sysctl_facts(needs: Needs, places: Places) -> list[dict[str, Any]]:
    """Return facts about other files that set our keys differently."""
    wanted = {key: value for key, (value, _users) in needs.sysctls.items()}
    ours = places.sysctl_file
    before, after = sysctls.contradictions(wanted, places.sysctl_dir, places.sysctl_others, ours)
    facts = []
    for kind, found in (("node-sysctl-overridden", after), ("node-sysctl-overrides", before)):
        facts += [
            {
                "kind": kind,
                "where": one.path,
                "key": sysctls.shown(one.key),
                "value": one.value,
                "wanted": wanted[one.key],
                "ours": ours,
            }
            for one in found
        ]
    return facts


def condition_facts(needs: Needs, places: Places) -> list[dict[str, Any]]:
    """Return facts about what stands in the way of the networks and is not for us to change."""
    facts = []
    if 6 in needs.families:
        for key in ("net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6"):
            if places.live.get(key) == "1":
                facts.append({"kind": "node-ipv6-off", "where": sysctls.shown(key)})
    if daemons.cloud_setup_enabled(places.systemd):
        facts.append({"kind": "node-cloud-setup", "where": places.systemd})
    return facts


def networkmanager_facts(needs: Needs, places: Places, data: bytes | None, pid: int) -> list[dict[str, Any]]:
    """Return facts about interfaces that NetworkManager would manage. data: what our drop-in holds, or will hold."""
    devices, forgotten_by = daemons.nm_unmanaged(
        places.networkmanager_dir, places.networkmanager_file, data, places.nm_vendor
    )
    managed = daemons.nm_managed(needs.interfaces, devices)
    if not managed:
        return []
    named = ", ".join(managed)
    if forgotten_by:
        ours = places.networkmanager_file
        return [{"kind": "node-nm-overridden", "where": forgotten_by, "interfaces": named, "ours": ours}]
    where = places.networkmanager_dir
    return [{"kind": "node-nm-manages", "where": where, "interfaces": named}] if pid else []


def directory_facts(paths: Sequence[str]) -> list[dict[str, Any]]:
    """Return facts about directories to which others than root can write: root runs what lies there."""
    facts = []
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if writable & stat.S_IWOTH or (writable and status.st_gid != 0):
            mode = f"{stat.S_IMODE(status.st_mode):04o}"
            facts.append({"kind": "node-dir-writable", "where": path, "mode": mode})
    return facts
