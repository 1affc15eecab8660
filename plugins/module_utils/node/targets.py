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
from ..host_local.layout import DEFAULT_DATA_DIR, network_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from ..host_local.ranges import RangeSet
    from .networks import Network


class Target:
    """A network to work on.

    ``source`` is the file or option that defines it, empty when nothing does; ``config`` is its configuration (a gojson
    tree) or None, ``data_dir`` where its directory lies, ``facts`` what is doubtful about it.
    """

    def __init__(self, name: str, data_dir: str = DEFAULT_DATA_DIR, network: Network | None = None) -> None:
        self.name = name
        self.data_dir = network.data_dir if network else data_dir
        self.source = network.source if network else ""
        self.scope = network.scope if network else None
        self.config: Any = network.config if network else None
        self.facts: list[dict[str, Any]] = list(network.facts) if network else []

    @property
    def path(self) -> str:
        """The directory of the network."""
        return network_dir(self.data_dir, self.name)

    def range_sets(self) -> list[RangeSet]:
        """Return the range sets. Raises NodenetError that names the place of the fault."""
        try:
            return load_ipam_config(self.config).sets
        except ConfigError as fault:
            where = f"{self.source}, {fault.path}" if fault.path else self.source
            # flannel's configuration names no ranges; why its subnet file gave none is the better reason
            reasons = [f" ({one['path']}: {one['reason']})" for one in self.facts if "path" in one and "reason" in one]
            text = f"Cannot use network {self.name} in {where}: {fault.msg}"
            raise NodenetError(text + "".join(reasons), where=where) from None

    def known_range_sets(self) -> list[RangeSet]:
        """Return the range sets, none when the configuration is missing or faulty; a fault becomes one of ``facts``."""
        if self.config is None:
            return []
        try:
            return load_ipam_config(self.config).sets
        except ConfigError as fault:
            fact = {"kind": "conf-ipam-invalid", "where": self.source, "path": fault.path or "ipam"}
            self.facts.append(dict(fact, reason=fault.msg))
            return []


def label(options: Mapping[str, Any]) -> str:
    """Return what to call the network before its configuration has been read."""
    return options["network"] or options["conflist"] or str((options["config"] or {}).get("name") or "without a name")


def find(options: Mapping[str, Any], only_releases: bool = False) -> Target:
    """Return the network that the options name, with what they override put in.

    :param options: one of ``network`` (a name, looked up in ``conf_dir``), ``config`` (a dict), ``conflist`` (a path);
        ``ranges`` and ``data_dir`` replace those of the configuration, and with both a name needs none;
        ``flannel_subnet_file``
    :param only_releases: a network that no configuration names any more will do, if ``data_dir`` has its directory
    :raises NodenetError: unknown network, more than one definition, no host-local in it, a name that cannot be one
    """
    name, data_dir, ranges = options["network"], options["data_dir"], options["ranges"]
    if name is not None and not valid_name(name):
        raise NodenetError(
            f"Cannot use network {name!r} in {options['conf_dir']}: a network name starts with a letter or digit and "
            "goes on with letters, digits, '_', '.' and '-'"
        )
    if name is not None and data_dir and ranges is not None:
        target = Target(name)
    else:
        target = _look_up(options, only_releases)
    if not valid_name(target.name):
        raise NodenetError(f"Cannot use network {target.name!r} in {target.source}: it needs a valid name")
    target.data_dir = data_dir or target.data_dir
    if "\0" in target.data_dir:
        raise NodenetError(f"Cannot use network {target.name} in {target.data_dir!r}: a path holds no NUL byte")
    if ranges is not None:
        ipam = {"type": "host-local", "ranges": ranges}
        target.config = gojson.from_plain({"name": target.name, "cniVersion": "1.0.0", "ipam": ipam})
        target.source = "the option ranges"
    return target


def _look_up(options: Mapping[str, Any], only_releases: bool) -> Target:
    from . import networks

    name, flannel = options["network"], options["flannel_subnet_file"]
    if name is None:
        where = options["conflist"] or "the option config"
        tree = _read(options["conflist"]) if options["conflist"] else gojson.from_plain(options["config"])
        found = networks.network_of(where, tree, flannel)
        if len(found) == 1:
            return Target(found[0].name, network=found[0])
        reason = (
            f"{len(found)} of its plugins use host-local; give the configuration of one of them, by the option config"
        )
        if not found:
            reason = "none of its plugins uses host-local"
        raise NodenetError(f"Cannot use network {label(options)} in {where}: {reason}")
    try:
        return Target(name, network=networks.find_network(options["conf_dir"], name, flannel))
    except NodenetError as fault:
        orphan = Target(name, options["data_dir"] or "")
        if only_releases and orphan.data_dir and "known_networks" in fault.facts and os.path.isdir(orphan.path):
            return orphan
        raise


def _read(path: str) -> Any:
    from . import confdir

    try:
        one = confdir.ConfFile(os.path.basename(path), confdir.read_regular(path))
    except OSError as error:
        raise NodenetError(f"Cannot use the network in {path}: {(error.strerror or str(error)).lower()}") from None
    if one.error:
        raise NodenetError(f"Cannot use the network in {path}: {one.error}")
    return one.tree
