# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ranges and range sets (host-local spec 2.4)."""

from __future__ import annotations

from .addresses import Address, Cidr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Mapping, Sequence


class RangeFault(ValueError):
    """A rule of spec 2.4 is broken; ``str()`` is Go's text, ``where`` the place below the set (``[1].subnet``).

    ``kind`` and ``wanted`` are those of the ConfigError that it becomes.
    """

    def __init__(self, message: str, where: str = "", kind: str = "", wanted: str = "") -> None:
        super().__init__(message)
        self.where = where
        self.kind = kind
        self.wanted = wanted


class Range:
    """The addresses from ``start`` to ``end`` of one subnet, both included."""

    __slots__ = ("subnet", "start", "end", "gateway")

    def __init__(self, subnet: Cidr, start: Address, end: Address, gateway: Address) -> None:
        self.subnet = subnet
        self.start = start
        self.end = end
        self.gateway = gateway

    @classmethod
    def from_values(cls, values: Mapping[str, Any] | None) -> Range:
        """Build a range from decoded ``subnet`` (Cidr), ``rangeStart``, ``rangeEnd``, ``gateway`` (Address or None)."""
        values = values or {}
        subnet: Cidr | None = values.get("subnet")
        if subnet is None:
            raise RangeFault("IP <nil> not v4 nor v6", ".subnet")
        if subnet.prefix > subnet.width - 2:
            raise RangeFault("Network %s too small to allocate from" % subnet, ".subnet")
        if subnet.mapped:
            raise RangeFault("IPNet IP and Mask version mismatch", ".subnet")
        if subnet.address != subnet.network:
            raise RangeFault(
                "Network has host bits set. For a subnet mask of length %d the network address is %s"
                % (subnet.prefix, subnet.network),
                ".subnet",
                "host-bits",
                f"{subnet.network}/{subnet.prefix}",
            )
        first = subnet.address.plus(1)
        given_end: Address | None = values.get("rangeEnd")
        start: Address = values.get("rangeStart") or first
        if start not in subnet or (given_end is not None and given_end.bits == start.bits and start > given_end):
            # a default start fails only behind a given end, and Go then blames the end
            where = "RangeStart" if values.get("rangeStart") else "RangeEnd"
            blamed = start if where == "RangeStart" else given_end
            raise RangeFault("%s %s not in network %s" % (where, blamed, subnet), ".r" + where[1:])
        end = given_end or subnet.address.plus(subnet.host_mask - (1 if subnet.width == 32 else 0))
        if end not in subnet or end < start:
            # Go does not compare a default end with a given start and then hands out foreign addresses (H9)
            raise RangeFault("RangeEnd %s not in network %s" % (end, subnet), ".rangeEnd")
        return cls(subnet, start, end, values.get("gateway") or first)

    def __contains__(self, address: object) -> bool:
        return isinstance(address, Address) and address.bits == self.start.bits and self.start <= address <= self.end

    def overlaps(self, other: Range) -> bool:
        """Tell whether the two have an address in common."""
        return self.start in other or self.end in other or other.start in self or other.end in self

    def size(self) -> int:
        """Return the number of addresses, gateways included."""
        return self.end.number - self.start.number + 1

    def __str__(self) -> str:
        return "%s-%s" % (self.start, self.end)


class RangeSet:
    """The ranges from which an attachment gets one address."""

    __slots__ = ("ranges", "gateways")

    def __init__(self, ranges: Sequence[Range]) -> None:
        self.ranges = tuple(ranges)
        # Go passes over the own range's gateway only, and so hands out those of its neighbours (H12)
        self.gateways = frozenset(one.gateway for one in ranges)

    @classmethod
    def from_values(cls, values: Sequence[Mapping[str, Any] | None] | None) -> RangeSet:
        """Build a set from decoded ranges. Raises RangeFault for the first fault, in Go's order."""
        if not values:
            raise RangeFault("empty range set")
        ranges: list[Range] = []
        for index, one in enumerate(values):
            try:
                ranges.append(Range.from_values(one))
            except RangeFault as fault:
                raise RangeFault(str(fault), f"[{index}]{fault.where}", fault.kind, fault.wanted) from None
            if ranges[index].start.bits != ranges[0].start.bits:
                raise RangeFault("mixed address families", f"[{index}].subnet", "mixed-families")
        for index, one_range in enumerate(ranges):
            for other in ranges[index + 1 :]:
                if one_range.overlaps(other):
                    raise RangeFault("subnets %s and %s overlap" % (one_range, other))
        return cls(ranges)

    @property
    def family(self) -> str:
        """``4`` or ``6``."""
        return self.ranges[0].start.family

    def range_of(self, address: Address) -> Range | None:
        """Return the range that contains *address*."""
        for one in self.ranges:
            if address in one:
                return one
        return None

    def __contains__(self, address: object) -> bool:
        return isinstance(address, Address) and self.range_of(address) is not None

    def overlaps(self, other: RangeSet) -> bool:
        """Tell whether the two have an address in common."""
        return any(mine.overlaps(theirs) for mine in self.ranges for theirs in other.ranges)

    def usable(self) -> int:
        """Return how many addresses can be handed out: all of the ranges but the gateways among them."""
        return sum(one.size() for one in self.ranges) - sum(gateway in self for gateway in self.gateways)

    def walk(self, last: Address | None = None) -> Iterator[Address]:
        """Yield every usable address once, in the order of Go's round robin: behind *last* first (spec 4.1)."""
        for bits, start, end in self.spans(last):
            for number in range(start, end + 1):
                address = Address(bits, number)
                if address not in self.gateways:
                    yield address

    def spans(self, last: Address | None = None) -> Iterator[tuple[int, int, int]]:
        """Yield what `walk` goes through, gateways included: width in bits, first and last number."""
        ranges = self.ranges
        begin = next((index for index, one in enumerate(ranges) if last is not None and last in one), None)
        if last is None or begin is None:
            yield from (_span(one) for one in ranges)
            return
        yield last.bits, last.number + 1, ranges[begin].end.number
        yield from (_span(one) for one in ranges[begin + 1 :] + ranges[:begin])
        yield last.bits, ranges[begin].start.number, last.number

    def __str__(self) -> str:
        return ",".join(str(one) for one in self.ranges)


def _span(one: Range) -> tuple[int, int, int]:
    return one.start.bits, one.start.number, one.end.number
