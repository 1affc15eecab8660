# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The static addresses that the inventory plans, against each other and against what the nodes have.

A plan is what the role reservations takes for a host: a list of networks, each with its reservations.
"""

from __future__ import annotations

import contextlib
import heapq
import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.compact import reservations_of
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.rows import label, short_list
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.snapshot import STATIC_PREFIX
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_reports import (
    Json,
    chosen,
    key_of,
    order,
    short,
    span_of,
    statics,
    text_of,
    told,
)

#: problem: the kind of its finding
KINDS = {
    "invalid": "fleet-plan-invalid",
    "twice": "fleet-plan-twice",
    "gateway": "fleet-plan-gateway",
    "foreign_range": "fleet-plan-foreign-range",
    "held": "fleet-plan-held",
    "outside": "fleet-plan-outside",
    "missing": "fleet-plan-missing",
    "unplanned": "fleet-plan-unplanned",
}
#: How many hosts are named into whose ranges an address is planned: all of them may have one range.
_MOST_HOSTS = 50

Reports = t.Mapping[str, t.Mapping[str, t.Any]]
Members = t.Sequence[tuple[str, t.Mapping[str, t.Any]]]


class Wanted(t.NamedTuple):
    """One planned address."""

    host: str
    network: str
    owner: str  # a container id as the address file has it
    address: str


class Plan:
    """The plans of all hosts; ``wanted`` are the addresses, ``listed`` what networks each host plans for."""

    def __init__(self, plans: t.Mapping[str, t.Any]) -> None:
        """Raises ValueError that names the host whose plan has not the form of reservations_networks."""
        self.wanted: list[Wanted] = []
        self.listed: dict[str, set[str]] = {}
        #: by host and network the owners without an address of their own, who take any, and addresses with owners
        self.any: dict[tuple[str, str], dict[str, None]] = {}
        self.of_host: dict[tuple[str, str], set[tuple[bytes, str]]] = {}
        for host, networks in sorted(plans.items()):
            try:
                for one in networks or ():
                    self._add(host, one)
            except (TypeError, AttributeError, KeyError):
                raise ValueError(f"the plan of {host} is no list of networks with reservations") from None

    def _add(self, host: str, network: t.Mapping[str, t.Any]) -> None:
        name = network.get("network") or (network.get("config") or {}).get("name")
        if not name:
            return  # of a conflist on the node, whose network only the node knows
        self.listed.setdefault(host, set()).add(name)
        for one in network["reservations"]:
            if one.get("state", "present") != "present":
                continue
            owner = STATIC_PREFIX + one["owner"] if one.get("owner") else one["container_id"]
            if not one.get("addresses"):
                self.any.setdefault((host, name), {})[owner] = None
            for address in one.get("addresses") or ():
                self.wanted.append(Wanted(host, name, owner, str(address)))
                with contextlib.suppress(OSError, ValueError):
                    self.of_host.setdefault((host, name), set()).add((key_of(str(address)), owner))


class _Network:
    """What the nodes say of one network: ranges and gateways by host, and who holds the addresses that are planned."""

    def __init__(self, members: Members, planned: t.AbstractSet[bytes], reported: t.AbstractSet[str]) -> None:
        self.reported = reported
        self.spans: dict[str, list[tuple[bytes, bytes]]] = {}
        self.gateways: dict[str, set[bytes]] = {}
        self.holders: dict[bytes, list[tuple[str, str]]] = {}
        for host, network in members:
            sets = network["range_sets"]
            self.spans[host] = [span_of(text) for one in sets for text in one["ranges"]]
            self.gateways[host] = {key_of(text) for one in sets for text in one.get("gateways", ())}
            for key, one in chosen(network, planned):
                self.holders.setdefault(key, []).append((host, one["container_id"]))
        self.all_gateways = {key for found in self.gateways.values() for key in found}
        self.in_ranges = self._hosts_in_range(planned)

    def _hosts_in_range(self, planned: t.Iterable[bytes]) -> dict[bytes, dict[str, None]]:
        """Return for each planned address the hosts in whose ranges it lies: at most so many, as all may have one."""
        spans = sorted((order(start), order(end), host) for host, found in self.spans.items() for start, end in found)
        running: list[tuple[tuple[int, bytes], str]] = []  # a heap by the end
        position = 0
        found: dict[bytes, dict[str, None]] = {}
        for key in sorted(planned, key=order):
            while position < len(spans) and spans[position][0] <= order(key):
                heapq.heappush(running, spans[position][1:])
                position += 1
            while running and running[0][0] < order(key):
                heapq.heappop(running)
            found[key] = dict.fromkeys(host for _end, host in running[: _MOST_HOSTS + 1])
        return found

    def in_range(self, host: str, key: bytes) -> bool:
        return any(len(key) == len(start) and start <= key <= end for start, end in self.spans.get(host, ()))


def check(
    plan: Plan, reports: Reports, scopes: t.Mapping[str, str], unread: t.Mapping[str, t.Container[str | None]]
) -> list[Json]:
    """Return where the plan contradicts itself or the nodes, as docs/audit-schema.md describes ``plan``.

    An address has one problem at most: the first of invalid, twice, gateway, foreign_range, held, outside, missing.

    :param scopes: network name -> ``shared`` or ``node``; a network that no report knows counts as ``node``
    :param unread: host -> the networks that it could not read, None for one without a known name: of these it is not
        known what is there
    """
    found: list[Json] = []
    by_network: dict[str, dict[bytes, list[Wanted]]] = {}
    for one in plan.wanted:
        try:
            by_network.setdefault(one.network, {}).setdefault(key_of(one.address), []).append(one)
        except (OSError, ValueError):
            found.append(_problem("invalid", one.network, one.address, [one]))
    by_name: dict[str, list[tuple[str, t.Mapping[str, t.Any]]]] = {}
    for host, report in reports.items():
        for network in report["networks"]:
            by_name.setdefault(network["name"], []).append((host, network))
    for name in sorted({name for listed in plan.listed.values() for name in listed}):
        wanted = by_network.get(name, {})
        members = by_name.get(name, [])
        read = {host for host in reports if not any(one in unread.get(host, ()) for one in (name, None))}
        known = _Network(members, wanted.keys(), read)
        for key in sorted(wanted, key=order):
            found += _check_address(name, key, wanted[key], known, scopes.get(name, "node") == "shared")
        found += _unplanned(plan, name, [one for one in members if one[0] in read])
    return found


def _check_address(name: str, key: bytes, wanted: list[Wanted], network: _Network, shared: bool) -> t.Iterator[Json]:
    address = text_of(key)
    groups = [wanted] if shared else [[one for one in wanted if one.host == host] for host in _hosts(wanted)]
    for group in groups:
        owners = {one.owner for one in group}
        if len(owners) > 1 or len(set(group)) < len(group):
            yield _problem("twice", name, address, group)
            continue
        hosts = _hosts(group)
        if key in network.all_gateways if shared else any(key in network.gateways.get(host, ()) for host in hosts):
            yield _problem("gateway", name, address, group)
            continue
        holders = [one for one in network.holders.get(key, ()) if shared or one[0] in hosts]
        safe = {*hosts, *(host for host, owner in holders if owner in owners)}
        foreign = [host for host in network.in_ranges[key] if host not in safe] if shared else []
        others = [one for one in holders if one[1] not in owners]
        if others and all((one.host, one.owner) in holders for one in group):
            continue  # the address is held twice, which is told as such
        if foreign and not others:
            yield _problem("foreign_range", name, address, group, foreign)
        elif others:
            yield _problem("held", name, address, group, [host for host, _owner in others], others[0][1])
        else:
            known = [one for one in group if one.host in network.reported]
            yield from _on_the_node(name, key, known, network, holders)


def _on_the_node(
    name: str, key: bytes, group: list[Wanted], network: _Network, holders: list[tuple[str, str]]
) -> t.Iterator[Json]:
    """Compare what hosts that reported plan with what they have."""
    missing = [one for one in group if (one.host, one.owner) not in holders]
    outside = [one for one in missing if network.spans.get(one.host) and not network.in_range(one.host, key)]
    rest = [one for one in missing if one not in outside]
    if outside:
        yield _problem("outside", name, text_of(key), outside)
    if rest:
        yield _problem("missing", name, text_of(key), rest)


def _unplanned(plan: Plan, name: str, members: Members) -> t.Iterator[Json]:
    """Yield what the hosts that plan for the network have and do not plan, and owners that have no address at all."""
    for host, network in members:
        if name not in plan.listed.get(host, ()):
            continue
        planned, anywhere = plan.of_host.get((host, name), set()), plan.any.get((host, name), {})
        for one in statics(network):
            owner = one["container_id"]
            if owner not in anywhere and (key_of(one["address"]), owner) not in planned:
                yield _problem("unplanned", name, text_of(key_of(one["address"])), [Wanted(host, name, owner, "")])
        if anywhere:
            held = {one["container_id"] for one in reservations_of(network)}
            for owner in sorted(anywhere.keys() - held):
                yield _problem("missing", name, "", [Wanted(host, name, owner, "")])


def _hosts(wanted: t.Iterable[Wanted]) -> list[str]:
    return sorted({one.host for one in wanted})


def _problem(
    problem: str, name: str, address: str, wanted: t.Sequence[Wanted], others: t.Sequence[str] = (), holder: str = ""
) -> Json:
    return {
        "problem": problem,
        "network": name,
        "address": address,
        "hosts": [one.host for one in wanted],
        "owners": [label(one.owner) for one in wanted],
        "other_hosts": sorted(set(others)),
        "holder": label(holder) if others and problem == "held" else None,
    }


def findings(found: t.Iterable[Json]) -> t.Iterator[Json]:
    """Yield the findings about what `check` returned."""
    for one in found:
        owners = short_list(f"{short(owner)} on {host}" for host, owner in zip(one["hosts"], one["owners"]))
        others = short_list(one["other_hosts"], limit=4)
        params: Json = {"address": one["address"] or "an address", "owners": owners, "other_hosts": others}
        if one["holder"] is not None:
            params["holder"] = f"{short(one['holder'])} on {others}"
        about = [*one["hosts"], *one["other_hosts"]]
        kind = KINDS[one["problem"]]
        where, subject = f"network {one['network']}", one["address"] or ", ".join(one["owners"])
        yield told(kind, where, dict.fromkeys(about), subject, network=one["network"], **params)
