# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a node stands against what its networks need, looked at and not changed: the prerequisites of node_info."""

from __future__ import annotations

from ..cni.errors import NodenetError
from . import daemons, survey, sysctls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .needs import Needs

#: what to show whether a network needs it or not
_ALWAYS = ("net/ipv4/conf/all/rp_filter", "net/ipv4/conf/default/rp_filter")
#: types whose pods often have another interface beside that of the node's main network
_SECONDARY = ("macvlan", "ipvlan", "vlan", "host-device", "sriov")


def look(needs: Needs, places: survey.Places) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the live values of what is needed, and facts."""
    rows = survey.module_rows(needs, places)
    facts = survey.module_facts(rows, places)
    settings, more = _settings(needs, places)
    facts += more
    facts += survey.sysctl_facts(needs, places)
    facts += survey.condition_facts(needs, places)
    facts += _rp_filter(needs, places)
    exemptions, more = _exemptions(needs, places)
    document = {"kernel": places.kernel.release, "modules": rows, "sysctls": settings, "exemptions": exemptions}
    return document, facts + more


def _settings(needs: Needs, places: survey.Places) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    wanted = needs.ordered_sysctls() + [(key, "", []) for key in _ALWAYS if key not in needs.sysctls]
    keys = [key for key, _value, _users in wanted]
    at_boot = sysctls.set_at_boot(keys, places.sysctl_dir, places.sysctl_others, places.sysctl_file)
    rows, facts = [], []
    for key, value, users in wanted:
        live = places.live.get(key)
        boot = at_boot.get(key)
        row = {"name": sysctls.shown(key), "value": live, "wanted": value or None, "needed_by": users}
        row.update(set_by=boot.path if boot else None, at_boot=boot.value if boot else None)
        rows.append(row)
        if not value:
            continue
        params = {"where": row["name"], "wanted": value, "needed_by": ", ".join(users)}
        if live is None:
            facts.append(dict(params, kind="node-sysctl-missing"))
        elif live != value:
            facts.append(dict(params, kind="node-sysctl-wrong", value=live))
        elif boot is None:
            facts.append(dict(params, kind="node-sysctl-not-kept"))
    return rows, facts


def _rp_filter(needs: Needs, places: survey.Places) -> list[dict[str, Any]]:
    multihomed = any(kind.startswith("multus") or kind in _SECONDARY for kind in needs.types)
    values = [places.live.get(key) or "0" for key in _ALWAYS]
    if not multihomed or max(values) != "1":  # the greater one of an interface and of "all" counts
        return []
    return [{"kind": "node-rp-filter", "where": sysctls.shown(_ALWAYS[values.index("1")]), "value": "1"}]


def _exemptions(needs: Needs, places: survey.Places) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rows, facts = [], []
    if daemons.nm_installed(places.networkmanager_dir):
        pid = daemons.running("NetworkManager", places.proc)
        data = _read(places.networkmanager_file)
        devices, _forgotten = daemons.nm_unmanaged(
            places.networkmanager_dir, places.networkmanager_file, data, places.nm_vendor
        )
        row = {"service": "NetworkManager", "running": bool(pid)}
        facts += survey.networkmanager_facts(needs, places, data, pid)
        rows.append(dict(row, missing=daemons.nm_managed(sorted(needs.interfaces), devices)))
    firewalld = places.firewalld
    if firewalld.installed:
        missing = []
        names = [*sorted(needs.bridges), *sorted(needs.subnets)]
        elsewhere = firewalld.bound_elsewhere()
        ours = _read(firewalld.path) or b""
        for what in names:
            zone = elsewhere.get(what, "")
            if not zone and firewalld.running:
                try:
                    zone = firewalld.zone_of(what)
                except NodenetError as exc:
                    params = {"where": places.firewalld_dir, "what": what, "reason": str(exc)}
                    facts.append(dict(params, kind="node-firewalld-unknown"))
                    continue
            elif not zone and f'"{what}"'.encode() in ours:
                zone = daemons.ZONE
            if daemons.is_trusted(zone):
                continue
            missing.append(what)
            if not firewalld.running:
                continue
            params = {"where": places.firewalld_dir, "what": what}
            kind = "node-firewalld" if zone else "node-firewalld-unbound"
            facts.append(dict(params, kind=kind, **({"zone": zone} if zone else {})))
        rows.append({"service": "firewalld", "running": firewalld.running, "missing": missing})
    return rows, facts


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return None
