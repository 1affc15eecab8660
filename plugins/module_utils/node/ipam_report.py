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
from ..host_local.foreign import foreign_contents
from ..host_local.lock import LockTimeout
from ..host_local.report import Report
from ..host_local.store import Store, StoreError, network_dir
from .targets import Target

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
    live: dict[str, Any] | None = None,
    lock_timeout: float = 30.0,
) -> dict[str, Any]:
    """Return the report that host_local_info returns. Creates nothing.

    :param names: networks to report; None for all of them and the orphan directories
    :param data_dir: look here instead of in the directories that the configurations name
    :param config: report the networks of this configuration instead of those of *conf_dir*
    :param live: ``attachments``, the list of those that are alive; None when nobody said
    :raises NodenetError: an unknown name, or a directory or lock that cannot be used
    """
    from . import networks as definitions

    if config is not None:
        found = definitions.network_of("the option config", gojson.from_plain(config), flannel_subnet_file)
        facts = [fact for one in found for fact in one.facts]
        if not found:
            raise NodenetError("Cannot report the networks of the option config: none of its plugins uses host-local")
    else:
        found, facts = definitions.all_networks(conf_dir, flannel_subnet_file)
    networks = [Target(one.name, network=one) for one in found]
    for one in networks:
        one.data_dir = data_dir or one.data_dir
    data_dirs = [data_dir] if data_dir else list(dict.fromkeys([one.data_dir for one in networks] + [DEFAULT_DATA_DIR]))
    if names is not None:
        known = {one.name: one for one in networks}
        networks = [known.get(name) or _orphan(name, data_dirs, conf_dir) for name in dict.fromkeys(names)]
        facts = [fact for fact in facts if fact.get("network") in names]
    elif config is None:
        networks = networks + _orphans(networks, data_dirs)

    judge = _judge(live) if live is not None else None
    documents = []
    for one in networks:
        document, noted = _report_network(one, judge, lock_timeout)
        if names is None and not one.source and not _worth_reporting(document):
            continue
        documents.append(document)
        facts = facts + noted
    return {"report_version": REPORT_VERSION, "networks": documents, "findings": _findings(facts) if facts else []}


def _findings(facts: list[dict[str, Any]]) -> list[dict[str, str]]:
    from . import findings  # the registry is long, and a healthy node has nothing to tell

    return findings.from_facts(facts)


def _judge(live: dict[str, Any]) -> LiveAttachments:
    from ..host_local.live import LiveAttachments

    return LiveAttachments(live["attachments"])


def _orphan(name: str, data_dirs: Sequence[str], conf_dir: str) -> Target:
    if not valid_name(name):
        raise NodenetError(f"Cannot report network {name!r} in {conf_dir}: that is no network name")
    for data_dir in data_dirs:
        if os.path.isdir(network_dir(data_dir, name)):
            return Target(name, data_dir)
    raise NodenetError(
        f"Cannot report network {name} in {conf_dir}: no file defines it with host-local, and there is no directory of "
        f"that name in {', '.join(data_dirs)}"
    )


def _orphans(networks: Sequence[Target], data_dirs: Sequence[str]) -> list[Target]:
    """Return the directories in the data dirs that belong to no network of the conf dir."""
    known = {one.path for one in networks}
    found = []
    for data_dir in data_dirs:
        try:
            entries = sorted(os.listdir(data_dir))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for name in entries:
            path = network_dir(data_dir, name)
            if valid_name(name) and path not in known and os.path.isdir(path):
                found.append(Target(name, data_dir))
    return found


def _worth_reporting(document: dict[str, Any]) -> bool:
    """Tell whether a directory without configuration is one of host-local at all: other things lie beside them."""
    return bool(document["reservations"])


def _report_network(
    network: Target, live: LiveAttachments | None, lock_timeout: float
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    sets, path = network.known_range_sets(), network.path
    # the conf dir has told the rest of the network's facts
    facts = [fact for fact in network.facts if fact["kind"] == "conf-ipam-invalid"]
    try:
        with Store(network.data_dir, network.name, create=False) as store, store.lock(lock_timeout):
            snapshot = store.snapshot()
            last_reserved = [store.last_reserved_text(index) for index in range(len(sets))]
            report = Report(snapshot, sets, last_reserved, live, path)
            if report.foreign:
                report.add_foreign_copies(snapshot, foreign_contents(store))
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
        "scope": network.scope,
        "range_sets": report.range_sets,
        "reservations": report.reservations,
        "foreign": report.foreign,
    }
    return document, facts
