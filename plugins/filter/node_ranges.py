# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import ipaddress
import typing as t
from collections.abc import Mapping, Sequence

from ansible.errors import AnsibleFilterError

NAME = "nodenet.cni.node_ranges"


def node_ranges(
    value: t.Any,
    hosts: t.Any,
    prefix: t.Any,
    held: t.Any = None,
    shared: t.Any = False,
    skip: t.Any = 0,
) -> dict[str, dict[str, str]]:
    """Return the part of a subnet that each host gets, by host."""
    subnet = _subnet(value)
    # host-local takes no subnet of less than four addresses
    length = _number(prefix, "prefix", subnet.prefixlen, subnet.max_prefixlen - (1 if shared else 2))
    count = 1 << (length - subnet.prefixlen)
    first = _number(skip, "skip", 0, count - 1)
    names = _names(hosts)
    taken: dict[int, str] = {}
    given: dict[str, int] = {}
    for name, part in _held(held).items():
        number = _part_number(subnet, length, name, part)
        if number in taken:
            raise AnsibleFilterError(f"{NAME}: held gives {taken[number]} and {name} the same part of {subnet}")
        taken[number] = name
        given[name] = number
    free = count - first - sum(1 for number in taken if number >= first)
    wanted = [name for name in names if name not in given]
    if len(wanted) > free:
        raise AnsibleFilterError(
            f"{NAME}: {subnet} has {free} free parts of /{length} for {len(wanted)} hosts; use a longer prefix, a"
            " larger subnet, or take hosts that are gone out of held"
        )
    # In the order of their names: whoever calls, and in whichever order, comes to the same.
    for name in sorted(wanted):
        number = first + _place(name) % (count - first)
        while number in taken:
            number = number + 1 if number + 1 < count else first
        taken[number] = name
        given[name] = number
    listed = [*names, *sorted(set(given) - set(names))]
    return {name: _part(subnet, length, given[name], bool(shared)) for name in listed}


def _subnet(value: t.Any) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(str(value))
    except ValueError as error:
        raise AnsibleFilterError(f"{NAME}: {error}") from error


def _number(value: t.Any, what: str, least: int, most: int) -> int:
    try:
        number = int(str(value).lstrip("/"))
    except ValueError:
        number = -1
    if not least <= number <= most:
        raise AnsibleFilterError(f"{NAME}: {what} has to be a number from {least} to {most}, not {value!r}")
    return number


def _names(hosts: t.Any) -> list[str]:
    if isinstance(hosts, (str, bytes, Mapping)) or not isinstance(hosts, Sequence):
        raise AnsibleFilterError(f"{NAME}: wants the hosts as a list of names, such as groups['nodes']")
    return list(dict.fromkeys(str(name) for name in hosts))


def _held(held: t.Any) -> dict[str, t.Any]:
    if not held:
        return {}
    if not isinstance(held, Mapping):
        raise AnsibleFilterError(f"{NAME}: held has to be a dictionary by host, as this filter returns it")
    return {str(name): part for name, part in held.items()}


def _part_number(subnet: t.Any, length: int, name: str, part: t.Any) -> int:
    """Return which part a host holds: told by its number, its subnet or an earlier result of this filter."""
    count = 1 << (length - subnet.prefixlen)
    if isinstance(part, Mapping):
        part = part.get("range_start") or part.get("subnet")
    text = str(part)
    try:
        if text.isdigit():
            number = int(text)
        else:
            address = ipaddress.ip_interface(text).ip
            if address.version != subnet.version or address not in subnet:
                raise ValueError
            number = (int(address) - int(subnet.network_address)) >> (subnet.max_prefixlen - length)
    except ValueError:
        number = -1
    if not 0 <= number < count:
        raise AnsibleFilterError(
            f"{NAME}: held says {text} for {name}, which is no part of {subnet}; take it out, or name one"
        )
    return number


def _place(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")


def _part(subnet: t.Any, length: int, number: int, shared: bool) -> dict[str, str]:
    start = int(subnet.network_address) + (number << (subnet.max_prefixlen - length))
    end = start + (1 << (subnet.max_prefixlen - length)) - 1
    make = type(subnet.network_address)
    if not shared:
        return {"subnet": f"{make(start)}/{length}"}
    # The first address of a subnet is nobody's, neither is the last one of IPv4.
    if start == int(subnet.network_address):
        start += 1
    if subnet.version == 4 and end == int(subnet.broadcast_address):
        end -= 1
    return {"subnet": str(subnet), "range_start": str(make(start)), "range_end": str(make(end))}


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"node_ranges": node_ranges}
