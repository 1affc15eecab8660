# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host-local state of a node: every network of the conf dir, and the directories no configuration speaks of."""

from __future__ import annotations

import os
import time

from ..cni.errors import NodenetError
from ..cni.names import valid_name
from ..host_local.foreign import foreign_contents, is_address
from ..host_local.layout import DEFAULT_DATA_DIR, network_dir
from ..host_local.lock import LockTimeout, check_timeout
from ..host_local.report import Report
from ..host_local.rows import printable
from ..host_local.store import NAME_CHARS, Store, StoreError
from .targets import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ..host_local.live import LiveAttachments

#: Version of the report's form; fleet_audit refuses one that it does not know.
REPORT_VERSION = 1
_UNREAD = "ipam-dir-unusable"


def report(
    conf_dir: str,
    flannel_subnet_file: str,
    names: Sequence[str] | None = None,
    data_dir: str | None = None,
    config: dict[str, Any] | None = None,
    live: dict[str, Any] | None = None,
    lock_timeout: float = 30.0,
    results_dirs: Sequence[str] = (),
    previous: dict[str, Any] | None = None,
    compact: bool = False,
) -> dict[str, Any]:
    """Return the report that host_local_info returns. Creates nothing.

    :param names: networks to report; None for all of them and the orphan directories
    :param data_dir: look here instead of in the directories that the configurations name
    :param config: report the networks of this configuration instead of those of *conf_dir*
    :param live: ``attachments``, the list of those that are alive, or ``discover`` to look for them on the node; None
        when nobody said
    :param results_dirs: the result caches to compare with the reservations
    :param previous: an earlier report of the node, to tell how fast the ranges fill
    :param compact: give the reservations of a network as one text, ``rows`` (see host_local.compact)
    :raises NodenetError: an unknown name; of networks that *names* or *config* name also a directory or lock that
        cannot be used, which else is a finding, and the network is left out
    """
    check_timeout(lock_timeout, "lock_timeout")
    from . import networks as definitions

    if names is not None or config is not None:
        from . import ipam_named

    if config is not None:
        found, facts = ipam_named.configured(config, flannel_subnet_file)
    else:
        found, facts = definitions.all_networks(conf_dir, flannel_subnet_file)
    networks = [Target(one.name, network=one) for one in found]
    elsewhere = {one.name for one in networks if data_dir not in (None, one.data_dir)}
    for one in networks:
        one.data_dir = data_dir or one.data_dir
    data_dirs = data_dirs_of(networks, data_dir)
    if names is not None:
        known = {one.name: one for one in networks}
        networks = [known.get(name) or ipam_named.orphan(name, data_dirs, conf_dir) for name in dict.fromkeys(names)]
        facts = [fact for fact in facts if fact.get("network") in names]
    elif config is None:
        left, more = orphans(networks, data_dirs)
        networks, facts = networks + left, facts + more

    facts = list(facts)
    judge = None
    if live is not None:
        from . import ipam_live

        judge = ipam_live.judge_of(live, facts)
    documents = []
    for one in networks:
        try:
            document, noted = _report_network(one, judge, lock_timeout)
        except (StoreError, LockTimeout, OSError) as error:
            if names is not None or config is not None:
                raise NodenetError(f"Cannot report network {one.name} in {one.path}: {error}", where=one.path) from None
            facts = [*facts, *_faulty_ranges(one)]
            facts.append({"kind": _UNREAD, "where": one.path, "reason": str(error), "network": one.name})
            continue
        documents.append(document)
        facts = facts + noted
    if judge is not None:
        ipam_live.amend(judge, documents, facts)
    if any(held["static"] for one in documents for held in one["reservations"]):
        from . import tmpfiles

        facts += tmpfiles.forgotten(documents)
    if any(os.path.isdir(one) for one in results_dirs):
        from . import cachecheck

        # whoever looks into another data dir than that of the configuration does not look at what is in use
        facts += cachecheck.check(results_dirs, [one for one in documents if one["name"] not in elsewhere], judge)
    now = time.time()
    if previous is not None:
        from . import ipam_trend

        facts += ipam_trend.compare(previous, documents, now, {one.name: one.path for one in networks})
    if compact:
        from ..host_local.compact import encode

        for document in documents:
            document["rows"] = encode(document.pop("reservations"))
    return {
        "report_version": REPORT_VERSION,
        "taken_at": int(now),
        "networks": documents,
        "unread": [_unread(fact) for fact in facts if fact["kind"] == _UNREAD],
        "findings": _findings(facts) if facts else [],
    }


def _unread(fact: dict[str, Any]) -> dict[str, str | None]:
    return {"name": fact.get("network"), "path": printable(fact["where"]), "reason": printable(fact["reason"])}


def _faulty_ranges(network: Target) -> list[dict[str, Any]]:
    """Return why the ranges of a network cannot be told; the conf dir has told the rest of its facts."""
    return [fact for fact in network.facts if fact["kind"] == "conf-ipam-invalid"]


def _findings(facts: list[dict[str, Any]]) -> list[dict[str, str]]:
    from . import findings  # the registry is long, and a healthy node has nothing to tell

    return findings.from_facts(facts)


def data_dirs_of(networks: Sequence[Target], data_dir: str | None = None) -> list[str]:
    """Return where directories of networks may lie: in *data_dir*, or where the configurations and the plugin say."""
    if data_dir:
        return [data_dir]
    return list(dict.fromkeys([one.data_dir for one in networks] + [DEFAULT_DATA_DIR]))


def orphans(networks: Sequence[Target], data_dirs: Sequence[str]) -> tuple[list[Target], list[dict[str, Any]]]:
    """Return the directories in the data dirs that belong to no network of the conf dir, and data dirs of no use."""
    known = {one.path for one in networks}
    found, facts = [], []
    for data_dir in data_dirs:
        try:
            entries = sorted(os.listdir(data_dir))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:  # a path with a NUL byte is a ValueError
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            facts.append({"kind": _UNREAD, "where": data_dir, "reason": reason})
            continue
        for name in entries:
            path = network_dir(data_dir, name)
            if valid_name(name) and path not in known and _holds_addresses(path):
                found.append(Target(name, data_dir))
    return found, facts


def _holds_addresses(path: str) -> bool:
    """Tell whether a directory is one of host-local at all, by its names: all kinds of things lie beside them.

    Nothing in it is opened and no lock is waited for, since it may be somebody else's.
    """
    try:
        with os.scandir(path) as entries:
            return any(
                not entry.name.strip(NAME_CHARS) and is_address(entry.name) and entry.is_file(follow_symlinks=False)
                for entry in entries
            )
    except OSError:
        return False


def _report_network(
    network: Target, live: LiveAttachments | None, lock_timeout: float
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    sets, path = network.known_range_sets(), network.path
    facts = _faulty_ranges(network)
    with Store(network.data_dir, network.name, create=False) as store, store.lock(lock_timeout):
        snapshot = store.snapshot()
        last_reserved = []
        for index in range(len(sets)):
            told = len(store.warnings)
            last_reserved.append(store.last_reserved_text(index))
            reasons = [one.rpartition(": ")[2] for one in store.warnings[told:]]
            facts += [dict(kind="ipam-rotation-unusable", where=path, set=index, reason=one) for one in reasons]
        report = Report(snapshot, sets, last_reserved, live, path)
        if report.foreign:
            report.add_foreign_copies(snapshot, foreign_contents(store))
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
