# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""IP addresses as Go reads and prints them (host-local spec 2.3).

The standard library's ``ipaddress`` differs (IPv4-mapped addresses, zones, netmasks) and costs an executable more to
import than all of host-local.
"""

from __future__ import annotations

_DIGITS = frozenset("0123456789")
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
# the spellings of octets met so far: looking one up is quicker than judging it
_OCTETS: dict[str, int] = {}


class Address:
    """One address; hashable and ordered, IPv4 before IPv6.

    ``bits`` is 32 or 128, ``number`` the address as a number. An IPv4-mapped IPv6 address does not exist: it is the
    IPv4 address.
    """

    __slots__ = ("bits", "number")

    def __init__(self, bits: int, number: int) -> None:
        self.bits = bits
        self.number = number

    @property
    def key(self) -> tuple[int, int]:
        """What addresses are ordered by."""
        return self.bits, self.number

    @property
    def family(self) -> str:
        """``4`` or ``6``, as results spell it."""
        return "4" if self.bits == 32 else "6"

    def plus(self, count: int) -> Address:
        """Return the address *count* further on."""
        return Address(self.bits, self.number + count)

    def __str__(self) -> str:
        return _format4(self.number) if self.bits == 32 else _format6(self.number)

    def __repr__(self) -> str:
        return f"Address('{self}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and self.number == other.number and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.number)

    def __lt__(self, other: Address) -> bool:
        return self.key < other.key

    def __le__(self, other: Address) -> bool:
        return self.key <= other.key


class Cidr:
    """An address with a prefix length, host bits and all.

    ``width`` is 32 or 128 as the literal was spelled: ``::ffff:10.0.0.0/120`` is (10.0.0.0, 120, 128).
    """

    __slots__ = ("address", "prefix", "width")

    def __init__(self, address: Address, prefix: int, width: int = 0) -> None:
        self.address = address
        self.prefix = prefix
        self.width = width or address.bits

    @property
    def mapped(self) -> bool:
        """True for an IPv4 address that was written as an IPv4-mapped IPv6 address."""
        return self.width != self.address.bits

    @property
    def host_mask(self) -> int:
        """The host bits as a number."""
        return (1 << self.width - self.prefix) - 1

    @property
    def network(self) -> Address:
        """The address without host bits."""
        return Address(self.address.bits, self.address.number & ~self.host_mask)

    def __contains__(self, address: object) -> bool:
        return (
            isinstance(address, Address)
            and address.bits == self.address.bits
            and (address.number ^ self.address.number) & ~self.host_mask == 0
        )

    def __str__(self) -> str:
        return f"{self.address}/{max(self.prefix - 96, 0) if self.mapped else self.prefix}"

    def __repr__(self) -> str:
        return f"Cidr('{self}')"


def _format4(number: int) -> str:
    return "%d.%d.%d.%d" % (number >> 24, number >> 16 & 255, number >> 8 & 255, number & 255)


def _format6(number: int) -> str:
    groups = [number >> shift & 0xFFFF for shift in range(112, -16, -16)]
    best_start, best_length = 0, 1
    start = None
    for index, group in enumerate(groups + [1]):
        if group:
            if start is not None and index - start > best_length:
                best_start, best_length = start, index - start
            start = None
        elif start is None:
            start = index
    if best_length == 1:
        return ":".join("%x" % group for group in groups)
    head = ":".join("%x" % group for group in groups[:best_start])
    tail = ":".join("%x" % group for group in groups[best_start + best_length :])
    return head + "::" + tail


def parse_address(text: str) -> Address:
    """Read a plain address. Raises ValueError with Go's text."""
    address = _parse(text)
    if address is None:
        raise ValueError("invalid IP address: " + text)
    return address


def parse_cidr(text: str) -> Cidr:
    """Read ``address/prefix``; host bits stay. Raises ValueError with Go's text."""
    head, mark, tail = text.partition("/")
    address = _parse(head) if mark else None
    limit = 128 if ":" in head else 32
    # leading zeros are allowed, any number of them; int() refuses thousands of digits
    digits = tail.lstrip("0") or "0"
    if address is None or not tail or not _DIGITS.issuperset(tail) or len(digits) > 3 or int(digits) > limit:
        raise ValueError("invalid CIDR address: " + text)
    return Cidr(address, int(digits), limit)


def parse_address_or_cidr(text: str) -> Address | None:
    """Read a requested address, with or without a prefix; the empty text is None. Raises ValueError with Go's text."""
    if not text:
        return None
    try:
        return parse_cidr(text).address if "/" in text else parse_address(text)
    except ValueError:
        raise ValueError("invalid IP address " + text) from None


def _parse(text: str) -> Address | None:
    if ":" not in text:
        number = _parse4(text)
        return None if number is None else Address(32, number)
    number = _parse6(text)
    if number is None:
        return None
    if number >> 32 == 0xFFFF:
        return Address(32, number & 0xFFFFFFFF)
    return Address(128, number)


def _parse4(text: str) -> int | None:
    parts = text.split(".")
    try:
        first, second, third, fourth = parts
        return _OCTETS[first] << 24 | _OCTETS[second] << 16 | _OCTETS[third] << 8 | _OCTETS[fourth]
    except ValueError:
        return None
    except KeyError:
        return _parse4(text) if all(_learn(part) for part in parts) else None


def _learn(part: str) -> bool:
    """Add a spelling to those known, if it is one: a decimal number up to 255 without leading zeros."""
    if not 1 <= len(part) <= 3 or not _DIGITS.issuperset(part) or (part[0] == "0" and len(part) > 1) or int(part) > 255:
        return False
    _OCTETS[part] = int(part)
    return True


def _parse6(text: str) -> int | None:
    head, gap, tail = text.partition("::")
    high = _groups(head, allow_dotted=not gap)
    low = _groups(tail, allow_dotted=True) if gap else []
    if high is None or low is None:
        return None
    missing = 8 - len(high) - len(low)
    if missing < 1 if gap else missing != 0:
        return None
    number = 0
    for group in high + [0] * missing + low:
        number = number << 16 | group
    return number


def _groups(text: str, allow_dotted: bool) -> list[int] | None:
    if not text:
        return []
    parts = text.split(":")
    groups: list[int] = []
    for index, part in enumerate(parts):
        if "." in part and allow_dotted and index == len(parts) - 1:
            dotted = _parse4(part)
            if dotted is None:
                return None
            groups += [dotted >> 16, dotted & 0xFFFF]
        elif 1 <= len(part) <= 4 and _HEX_DIGITS.issuperset(part):
            groups.append(int(part, 16))
        else:
            return None
    return groups
