# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routes of a network namespace, by rtnetlink: list them, and replace the default ones (multus spec 7.1, M6)."""

from __future__ import annotations

import _struct
import errno

from . import netlink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from .netlink import Netlink

MAIN = 254
_NEWROUTE, _DELROUTE, _GETROUTE = 24, 25, 26
_ROUTE = _struct.Struct("=BBBBBBBBI")
_NEXT_HOP = _struct.Struct("=HBBi")
_UNICAST, _BOOT, _UNIVERSE, _CLONED = 1, 3, 0, 0x200
_DST, _OIF, _GATEWAY, _PRIORITY, _MULTIPATH, _TABLE, _VIA = 1, 4, 5, 6, 9, 15, 18
_LENGTH = {netlink.AF_INET: 4, netlink.AF_INET6: 16}


class Route:
    """A unicast route. ``destination``: as text, ``prefix``: its length, 0 for a default route. ``hops``: of each next
    hop the gateway ("" for none) and the index of the link. ``metric``: 0 if it has none."""

    __slots__ = ("family", "destination", "prefix", "hops", "table", "metric", "message")

    def __init__(
        self,
        family: int,
        destination: str,
        prefix: int,
        hops: Sequence[tuple[str, int]],
        table: int,
        metric: int,
        message: bytes,
    ) -> None:
        self.family = family
        self.destination = destination
        self.prefix = prefix
        self.hops = list(hops)
        self.table = table
        self.metric = metric
        self.message = message


def routes(kernel: Netlink, table: int = MAIN) -> list[Route]:
    """Return the unicast routes of a table, 0 for those of all tables."""
    found = []
    for family in (netlink.AF_INET, netlink.AF_INET6):
        try:
            payloads = kernel.dump(_GETROUTE, _ROUTE.pack(family, 0, 0, 0, 0, 0, 0, 0, 0))
        except OSError as error:
            if error.errno in (errno.EAFNOSUPPORT, errno.EOPNOTSUPP):  # a kernel without IPv6
                continue
            raise
        for payload in payloads:
            route = _parse(payload)
            if route is not None and table in (0, route.table):
                found.append(route)
    return found


def default_routes(kernel: Netlink, family: int = 0, index: int = 0) -> list[Route]:
    """Return the default routes of the main table: of one family, of those with a next hop on one link, or of all."""
    return [
        one
        for one in routes(kernel)
        if one.prefix == 0 and family in (0, one.family) and (not index or any(hop[1] == index for hop in one.hops))
    ]


def delete(kernel: Netlink, route: Route) -> None:
    """Delete a route that `routes` returned. One that is gone already is no error."""
    try:
        kernel.change(_DELROUTE, route.message)
    except OSError as error:
        if error.errno not in (errno.ESRCH, errno.ENODEV):
            raise


def add_default(kernel: Netlink, gateway: str, index: int) -> None:
    """Add a default route over *gateway* on a link. Raises OSError, also if there is one with the same metric."""
    family = netlink.family_of(gateway)
    header = _ROUTE.pack(family, 0, 0, 0, MAIN, _BOOT, _UNIVERSE, _UNICAST, 0)
    values = [(_GATEWAY, netlink.packed(gateway)), (_OIF, netlink.u32(index))]
    kernel.change(_NEWROUTE, header + netlink.pack(values), netlink.CREATE | netlink.EXCL)


def replace_default(kernel: Netlink, gateway: str, index: int) -> None:
    """Make *gateway* on a link the only default route of its family.

    What cannot be added leaves the routes as they were. Raises OSError, ValueError for a text that is no address.
    """
    netlink.packed(gateway)
    before = default_routes(kernel, netlink.family_of(gateway))
    try:
        for route in before:
            delete(kernel, route)
        add_default(kernel, gateway, index)
    except BaseException:
        for route in before:
            restore(kernel, route)
        raise


def restore(kernel: Netlink, route: Route) -> None:
    """Add a route again that was deleted; one that is there is no error."""
    try:
        kernel.change(_NEWROUTE, route.message, netlink.CREATE)
    except FileExistsError:
        pass


def _parse(payload: bytes) -> Route | None:
    family, prefix, _source, _tos, table, _protocol, _scope, kind, flags = _ROUTE.unpack_from(payload)
    if kind != _UNICAST or flags & _CLONED or family not in _LENGTH:
        return None
    values = netlink.attributes(payload, _ROUTE.size)
    destination = values.get(_DST) or bytes(_LENGTH[family])
    return Route(
        family,
        netlink.printed(destination),
        prefix,
        _hops(values),
        netlink.number(values.get(_TABLE), table),
        netlink.number(values.get(_PRIORITY)),
        payload,
    )


def _hops(values: dict[int, bytes]) -> list[tuple[str, int]]:
    several = values.get(_MULTIPATH)
    if several is None:
        return [(_gateway(values), netlink.number(values.get(_OIF)))]
    hops = []
    start = 0
    while start + _NEXT_HOP.size <= len(several):
        length, _flags, _weight, index = _NEXT_HOP.unpack_from(several, start)
        if length < _NEXT_HOP.size:
            break
        hops.append((_gateway(netlink.attributes(several[: start + length], start + _NEXT_HOP.size)), index))
        start += (length + 3) & ~3
    return hops


def _gateway(values: dict[int, bytes]) -> str:
    if _GATEWAY in values:
        return netlink.printed(values[_GATEWAY])
    via = values.get(_VIA)  # a gateway of the other family, after its number
    return netlink.printed(via[2:]) if via is not None and len(via) > 2 else ""
