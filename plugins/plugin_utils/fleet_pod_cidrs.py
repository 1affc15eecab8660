# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes that hand out addresses of another pod CIDR than the one they were assigned, as after a rejoin."""

from __future__ import annotations

import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import parse_cidr
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.rows import short_list
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_reports import Json, key_of, span_of, told


def check(
    pod_cidrs: t.Mapping[str, t.Sequence[str]],
    reports: t.Mapping[str, t.Mapping[str, t.Any]],
    pod_network: str,
    unread: t.Mapping[str, t.Iterable[str | None]],
) -> list[Json]:
    """Return the pod CIDRs of which no network of the host hands out an address.

    :param pod_cidrs: host -> the CIDRs that were assigned to it
    :param pod_network: name of the network that has to; any network of the host if empty
    :param unread: host -> the networks that it could not read, None for one without a known name: they may hand it out
    :raises ValueError: one is no CIDR
    """
    found = []
    for host, cidrs in sorted(pod_cidrs.items()):
        for text in cidrs:
            try:
                cidr = parse_cidr(text)
                first, last = (key_of(str(one)) for one in (cidr.network, cidr.network.plus(cidr.host_mask)))
            except (ValueError, AttributeError, TypeError):
                raise ValueError(f"the pod CIDR {text!r} of {host} is none") from None
            networks = reports[host]["networks"] if host in reports else []
            ranges = {
                one["name"]: [
                    text
                    for range_set in one["range_sets"]
                    for text in range_set["ranges"]
                    if len(span_of(text)[0]) == len(first)
                ]
                for one in networks
                if pod_network in ("", one["name"])
            }
            spans = [span_of(text) for found_ranges in ranges.values() for text in found_ranges]
            if any(pod_network in ("", one) or one is None for one in unread.get(host, ())):
                continue
            if host in reports and not any(first <= start and end <= last for start, end in spans):
                found.append(
                    {
                        "host": host,
                        "pod_cidr": text,
                        "networks": sorted(name for name, found_ranges in ranges.items() if found_ranges),
                        "ranges": [text for found_ranges in ranges.values() for text in found_ranges],
                    }
                )
    return found


def findings(found: t.Iterable[Json]) -> t.Iterator[Json]:
    """Yield the findings about what `check` returned."""
    for one in found:
        what = "hands out no address of that family"
        if one["networks"]:
            what = f"hands out {short_list(one['ranges'], 3)} ({short_list(one['networks'])})"
        params = {"host": one["host"], "pod_cidr": one["pod_cidr"], "what": what}
        yield told("fleet-pod-cidr-stale", one["host"], [one["host"]], one["pod_cidr"], **params)
