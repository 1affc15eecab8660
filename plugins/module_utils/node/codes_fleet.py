# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings of the family FLEET: what only shows when nodes are compared. See `findings`."""

from __future__ import annotations

from .findings import CARRIES_ON, FAILS, UNAFFECTED

# kind: (code, severity, go, text, hint)
# fmt: off
CODES = {
    "fleet-address-twice": (
        "FLEET001", "error", CARRIES_ON,
        "address {address} of network {network!r} is held by {holders}",
        "two nodes use one address on one segment; release it on all but one",
    ),
    "fleet-ranges-overlap": (
        "FLEET002", "error", CARRIES_ON,
        "network {network!r}: {first} on {first_host} overlaps {second} on {second_host}",
        "give each node its own part of the subnet; sooner or later both hand out one address",
    ),
    "fleet-pool-high": (
        "FLEET003", "warning", CARRIES_ON,
        "network {network!r} on {host}: {reserved} of {usable} addresses of range set {set} are reserved",
        "enlarge the range before it runs out",
    ),
    "fleet-pool-leaked": (
        "FLEET004", "warning", CARRIES_ON,
        "network {network!r} on {host}: {reserved} of {usable} addresses of range set {set} reserved, {leaked} leaked",
        "give the leaked addresses back with the playbook nodenet.cni.reclaim; the range need not grow",
    ),
    "fleet-host-missing": (
        "FLEET005", "error", UNAFFECTED,
        "no report of host {host}: {reason}",
        "see why, and ask again; until then the result is incomplete, an address may be held there too",
    ),
    "fleet-pool-unknown": (
        "FLEET006", "warning", CARRIES_ON,
        "network {network!r} on {host}: {reserved} of {usable} addresses of range set {set} are reserved",
        "see whether addresses leaked before the range is enlarged, with the playbook nodenet.cni.reclaim, which only "
        "shows what it would free; this node was not told who is alive",
    ),
    "fleet-pool-full": (
        "FLEET007", "error", FAILS,
        "network {network!r} on {host}: no address of range set {set} is free, {reserved} of {usable} are reserved",
        "enlarge the range; until then no further attachment gets an address",
    ),
    "fleet-pool-full-leaked": (
        "FLEET008", "error", FAILS,
        "network {network!r} on {host}: no address of range set {set} is free, {leaked} of {usable} leaked",
        "give the leaked addresses back with the playbook nodenet.cni.reclaim, the range need not grow; until then no "
        "further attachment gets an address",
    ),
    "fleet-pool-full-unknown": (
        "FLEET009", "error", FAILS,
        "network {network!r} on {host}: no address of range set {set} is free, {reserved} of {usable} are reserved",
        "see whether addresses leaked before the range is enlarged, with the playbook nodenet.cni.reclaim, which only "
        "shows what it would free; this node was not told who is alive",
    ),
    "fleet-pod-cidr-stale": (
        "FLEET010", "error", CARRIES_ON,
        "{host} was assigned {pod_cidr}, but {what}",
        "write the conflist anew with the subnet of now, then drain the node: its pods have addresses of another one",
    ),
    "fleet-plan-twice": (
        "FLEET011", "error", UNAFFECTED,
        "{address} of network {network!r} is planned more than once: {owners}",
        "plan another address for all but one of them",
    ),
    "fleet-plan-gateway": (
        "FLEET012", "error", UNAFFECTED,
        "{address} of network {network!r} is planned for {owners}, and is a gateway",
        "plan another address; the gateway and its holder would be in each other's way",
    ),
    "fleet-plan-foreign-range": (
        "FLEET013", "error", CARRIES_ON,
        "{address} of network {network!r} is planned for {owners}, and lies in a range of {other_hosts}",
        "reserve it there too for the same owner, or plan another one: that node may hand it out to a pod",
    ),
    "fleet-plan-outside": (
        "FLEET014", "error", UNAFFECTED,
        "{address} of network {network!r} is planned for {owners}, and lies in no range there",
        "plan an address of the range; one outside is refused",
    ),
    "fleet-plan-held": (
        "FLEET015", "error", CARRIES_ON,
        "{address} of network {network!r} is planned for {owners}, and held by {holder}",
        "free it there, or plan another one",
    ),
    "fleet-plan-missing": (
        "FLEET016", "warning", UNAFFECTED,
        "{address} of network {network!r} is planned for {owners}, and not reserved",
        "run the playbook nodenet.cni.reserve",
    ),
    "fleet-plan-unplanned": (
        "FLEET017", "info", UNAFFECTED,
        "{address} of network {network!r} is reserved for {owners}, which is not in the plan",
        "put it into the plan, or release it",
    ),
    "fleet-plan-invalid": (
        "FLEET018", "error", UNAFFECTED,
        "the plan of {owners} for network {network!r} holds {address!r}, which is no address",
        "correct the inventory",
    ),
    "fleet-conflist-drift": (
        "FLEET019", "warning", CARRIES_ON,
        "network {name!r} on {hosts} is not as on {others} other node(s): {differences}",
        "bring the nodes to one state with the playbook nodenet.cni.bootstrap; ranges are not compared, each node has "
        "its own",
    ),
    "fleet-multus-drift": (
        "FLEET020", "warning", CARRIES_ON,
        "the configuration of Multus on {hosts} is not as on {others} other node(s): {differences}",
        "bring the nodes to one state with multus_config",
    ),
    "fleet-plugin-drift": (
        "FLEET021", "warning", CARRIES_ON,
        "plugin {name} on {hosts} is not as on {others} other node(s): {differences}",
        "bring the nodes to one release with plugin_binaries",
    ),
    "fleet-effective-drift": (
        "FLEET022", "warning", CARRIES_ON,
        "with {name}, a new pod on {hosts} gets another network than on {others} other node(s): {differences}",
        "see which file comes first in the conf dir there",
    ),
    "fleet-pool-filling": (
        "FLEET023", "warning", CARRIES_ON,
        "network {network!r} on {host}: {reserved} of {usable} addresses of range set {set} are reserved, full in "
        "{left} at the rate of {per_day} a day",
        "see whether addresses leak (playbook nodenet.cni.reclaim), else enlarge the range in time",
    ),
    "fleet-range-changed": (
        "FLEET024", "info", UNAFFECTED,
        "network {network!r} on {host}: range set {set} was {before} in the audit before, and is {ranges}",
        "nothing, if that was intended; reservations outside of the new ranges stay until their owners give them back",
    ),
}
# fmt: on
