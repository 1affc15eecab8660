# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host-local state of a node: every network of the conf dir, and the directories no configuration speaks of."""

from __future__ import annotations

import os

from ..cni import gojson
from ..cni.errors import NodenetError
from ..cni.names import valid_name
from ..host_local.config import DEFAULT_DATA_DIR
from ..host_local.lock import LockTimeout
from ..host_local.report import Report
from ..host_local.store import Store, StoreError, network_dir
from . import findings
from .networks import Network, all_networks, network_of
from .targets import known_range_sets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ..host_local.live import LiveAttachments

#: Version of the report's form; fleet_audit refuses one that it does not know.
REPORT_VERSION = 1


def report(
    conf_dir: str,
    flannel_subnet_file: str,
    names: Sequence[str] | None = None,
    data_dir: str | None = None,
    config: dict[str, Any] | None = None,
    live: LiveAttachments | None = None,
    lock_timeout: float = 30.0,
) -> dict[str, Any]:
    """Return the report that host_local_info returns. Creates nothing.

    :param names: networks to report; None for all of them and the orphan directories
    :param data_dir: look here instead of in the directories that the configurations name
    :param config: report the networks of this configuration instead of those of *conf_dir*
    :raises NodenetError: an unknown name, or a directory or lock that cannot be used
    """
    if config is not None:
        networks, facts = network_of("the option config", gojson.from_plain(config), flannel_subnet_file), []
        if not networks:
            raise NodenetError("Cannot report the networks of the option config: none of its plugins uses host-local")
    else:
        networks, facts = all_networks(conf_dir, flannel_subnet_file)
    for one in networks:
        one.data_dir = data_dir or one.data_dir
    data_dirs = [data_dir] if data_dir else list(dict.fromkeys([one.data_dir for one in networks] + [DEFAULT_DATA_DIR]))
    if names is not None:
        known = {one.name: one for one in networks}
        networks = [known.get(name) or _orphan(name, data_dirs, conf_dir) for name in dict.fromkeys(names)]
        facts = [fact for fact in facts if fact.get("network") in names]
    elif config is None:
        networks = networks + _orphans(networks, data_dirs)

    documents = []
    for one in networks:
        document, found = _report_network(one, live, lock_timeout)
        if names is None and not one.source and not _worth_reporting(document):
            continue
        documents.append(document)
        facts = facts + found
    return {"report_version": REPORT_VERSION, "networks": documents, "findings": findings.from_facts(facts)}


def _orphan(name: str, data_dirs: Sequence[str], conf_dir: str) -> Network:
    if not valid_name(name):
        raise NodenetError(f"Cannot report network {name!r} in {conf_dir}: that is no network name")
    for data_dir in data_dirs:
        if os.path.isdir(network_dir(data_dir, name)):
            return _without_config(name, data_dir)
    raise NodenetError(
        f"Cannot report network {name} in {conf_dir}: no file defines it with host-local, and there is no directory of "
        f"that name in {', '.join(data_dirs)}"
    )


def _orphans(networks: Sequence[Network], data_dirs: Sequence[str]) -> list[Network]:
    """Return the directories in the data dirs that belong to no network of the conf dir."""
    known = {network_dir(one.data_dir, one.name) for one in networks}
    found = []
    for data_dir in data_dirs:
        try:
            entries = sorted(os.listdir(data_dir))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for name in entries:
            path = network_dir(data_dir, name)
            if valid_name(name) and path not in known and os.path.isdir(path):
                found.append(_without_config(name, data_dir))
    return found


def _without_config(name: str, data_dir: str) -> Network:
    network = Network(name, "", "", "", None)
    network.data_dir = data_dir
    return network


def _worth_reporting(document: dict[str, Any]) -> bool:
    """Tell whether a directory without configuration is one of host-local at all: other things lie beside them."""
    return bool(document["reservations"])


def _report_network(
    network: Network, live: LiveAttachments | None, lock_timeout: float
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    sets, facts = known_range_sets(network)
    path = network_dir(network.data_dir, network.name)
    try:
        with Store(network.data_dir, network.name, create=False) as store, store.lock(lock_timeout):
            snapshot = store.snapshot()
            last_reserved = [store.last_reserved_text(index) for index in range(len(sets))]
            report = Report(snapshot, sets, last_reserved, live, path)
            if report.foreign:
                report.add_foreign_copies(snapshot, store.foreign_contents())
    except (StoreError, LockTimeout) as error:
        raise NodenetError(f"Cannot report network {network.name} in {path}: {error}", path=path) from None
    facts = facts + report.facts
    if os.path.islink(path):
        facts.append({"kind": "ipam-symlinked-dir", "where": path, "network": network.name})
    if not network.source:
        count = len(report.reservations)
        facts.append({"kind": "ipam-orphan-network", "where": path, "network": network.name, "count": count})
    document = {
        "name": network.name,
        "data_dir": network.data_dir,
        "source": network.source or None,
        "scope": network.scope if network.source else None,
        "range_sets": report.range_sets,
        "reservations": report.reservations,
        "foreign": report.foreign,
    }
    return document, facts
