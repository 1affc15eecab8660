# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which host-local network a task is about, and which range sets it has, whatever way the user named it."""

from __future__ import annotations

import os

from ..cni import gojson
from ..cni.errors import ConfigError, NodenetError
from ..cni.names import valid_name
from ..host_local.config import load_ipam_config
from ..host_local.store import network_dir
from . import confdir
from .networks import FLANNEL_SUBNET_FILE, Network, find_network, network_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ..host_local.ranges import RangeSet


class Source:
    """How the user names the network and what of its configuration is overridden.

    One of *network* (a name, looked up in *conf_dir*), *config* (a dict) and *conflist* (a path) is given. *ranges* and
    *data_dir* replace those of the configuration; with both of them and a name no configuration is needed.
    """

    def __init__(
        self,
        network: str | None = None,
        config: dict[str, Any] | None = None,
        conflist: str | None = None,
        conf_dir: str = "/etc/cni/net.d",
        flannel_subnet_file: str = FLANNEL_SUBNET_FILE,
        ranges: Sequence[Any] | None = None,
        data_dir: str | None = None,
    ) -> None:
        self.network = network
        self.config = config
        self.conflist = conflist
        self.conf_dir = conf_dir
        self.flannel_subnet_file = flannel_subnet_file
        self.ranges = ranges
        self.data_dir = data_dir

    @property
    def label(self) -> str:
        """What to call the network before its configuration has been read."""
        return self.network or self.conflist or str((self.config or {}).get("name") or "without a name")


def find(source: Source, only_releases: bool = False) -> Network:
    """Return the network with what the user overrides put in.

    :param only_releases: a network that no configuration names any more will do, if *data_dir* has its directory
    :raises NodenetError: unknown network, more than one definition, no host-local in it, a name that cannot be one
    """
    if source.network is not None and not valid_name(source.network):
        raise NodenetError(
            f"Cannot use network {source.network!r} in {source.conf_dir}: a network name starts with a letter or digit "
            "and goes on with letters, digits, '_', '.' and '-'"
        )
    network = _look_up(source, only_releases)
    if not valid_name(network.name):
        raise NodenetError(f"Cannot use network {network.name!r} in {network.source}: it needs a valid name")
    if source.data_dir:
        network.data_dir = source.data_dir
    if source.ranges is not None:
        ipam = {"type": "host-local", "ranges": list(source.ranges)}
        network.config = gojson.from_plain({"name": network.name, "cniVersion": "1.0.0", "ipam": ipam})
        network.source = network.source or "the option ranges"
    return network


def _look_up(source: Source, only_releases: bool) -> Network:
    if source.config is not None or source.conflist is not None:
        return _only_one(source)
    name = source.network or ""
    if source.data_dir and source.ranges is not None:
        return Network(name, "", "", "", None)
    try:
        return find_network(source.conf_dir, name, source.flannel_subnet_file)
    except NodenetError as fault:
        unknown = "known_networks" in fault.facts or not os.path.isdir(source.conf_dir)
        if unknown and only_releases and source.data_dir and os.path.isdir(network_dir(source.data_dir, name)):
            return Network(name, "", "", "", None)
        raise


def _only_one(source: Source) -> Network:
    where = source.conflist or "the option config"
    tree = gojson.from_plain(source.config) if source.conflist is None else _read(source.conflist)
    found = network_of(where, tree, source.flannel_subnet_file)
    if not found:
        raise NodenetError(f"Cannot use network {source.label} in {where}: none of its plugins uses host-local")
    if len(found) > 1:
        raise NodenetError(
            f"Cannot use network {source.label} in {where}: {len(found)} of its plugins use host-local, so name one of "
            "the networks by the option network"
        )
    return found[0]


def _read(path: str) -> Any:
    try:
        with open(path, "rb") as stream:
            one = confdir.ConfFile(os.path.basename(path), stream.read())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise NodenetError(f"Cannot use the network in {path}: {reason}") from None
    if one.error:
        raise NodenetError(f"Cannot use the network in {path}: {one.error}")
    return one.tree


def range_sets(network: Network) -> list[RangeSet]:
    """Return the network's range sets. Raises NodenetError that names the place of the fault."""
    try:
        return load_ipam_config(network.config).sets
    except ConfigError as fault:
        where = f"{network.source}, {fault.path}" if fault.path else network.source
        # flannel's configuration names no ranges; why its subnet file gave none is the better reason
        reasons = [f"{one['path']}: {one['reason']}" for one in network.facts if "path" in one and "reason" in one]
        text = f"Cannot use network {network.name} in {where}: {fault.msg}"
        raise NodenetError(" ".join([text] + [f"({one})" for one in reasons]), path=fault.path) from None


def known_range_sets(network: Network) -> tuple[list[RangeSet], list[dict[str, Any]]]:
    """Return the range sets, none of them when the configuration is missing or faulty, and the fault as a fact."""
    if network.config is None:
        return [], []
    try:
        return load_ipam_config(network.config).sets, []
    except ConfigError as fault:
        fact = {"kind": "conf-ipam-invalid", "where": network.source, "path": fault.path or "ipam", "reason": fault.msg}
        return [], [fact]
