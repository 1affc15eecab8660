# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links of a network namespace with their addresses and neighbours, by rtnetlink."""

from __future__ import annotations

import _struct
import errno

from . import netlink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .netlink import Netlink

_NEWLINK, _DELLINK, _GETLINK, _GETADDR, _GETNEIGH = 16, 17, 18, 22, 30
_LINK = _struct.Struct("=BxHiII")
_ADDRESS = _struct.Struct("=BBBBI")
_NEIGHBOUR = _struct.Struct("=BxxxiHBB")
_UP, _LOWER_UP = 0x1, 0x10000
_TENTATIVE, _DAD_FAILED = 0x40, 0x08
_ANSWERED = 0x02 | 0x04 | 0x08 | 0x10  # reachable, stale, delay, probe; not what somebody has written there


class Link:
    """An interface. ``kind``: veth, bridge, macvlan, "" for hardware. ``up``: switched on; ``running``: it also has a
    carrier. ``master``: index of the bridge that it is a port of, 0 if of none."""

    __slots__ = ("index", "name", "kind", "mac", "mtu", "up", "running", "master")

    def __init__(self, index: int, name: str, kind: str, mac: str, mtu: int, flags: int, master: int) -> None:
        self.index = index
        self.name = name
        self.kind = kind
        self.mac = mac
        self.mtu = mtu
        self.up = bool(flags & _UP)
        self.running = bool(flags & _LOWER_UP)
        self.master = master


class LinkAddress:
    """An address of a link: ``address`` as text, ``prefix`` length. ``tentative``: the kernel still looks whether
    another machine has it, ``duplicate``: another one has."""

    __slots__ = ("index", "address", "prefix", "tentative", "duplicate")

    def __init__(self, index: int, address: str, prefix: int, flags: int) -> None:
        self.index = index
        self.address = address
        self.prefix = prefix
        self.tentative = bool(flags & _TENTATIVE)
        self.duplicate = bool(flags & _DAD_FAILED)


def links(kernel: Netlink) -> list[Link]:
    """Return all links of the namespace."""
    found = []
    for payload in kernel.dump(_GETLINK, _LINK.pack(0, 0, 0, 0, 0)):
        _family, _type, index, flags, _change = _LINK.unpack_from(payload)
        values = netlink.attributes(payload, _LINK.size)
        info = netlink.attributes(values.get(18, b""), 0)
        mac = ":".join(f"{byte:02x}" for byte in values.get(1, b""))
        name, kind = netlink.text(values.get(3)), netlink.text(info.get(1))
        found.append(Link(index, name, kind, mac, netlink.number(values.get(4)), flags, netlink.number(values.get(10))))
    return found


def find(kernel: Netlink, name: str) -> Link | None:
    """Return the link of that name, None if there is none."""
    return next((one for one in links(kernel) if one.name == name), None)


def set_up(kernel: Netlink, index: int) -> None:
    """Switch a link on."""
    kernel.change(_NEWLINK, _LINK.pack(0, 0, index, _UP, _UP))


def delete(kernel: Netlink, index: int) -> None:
    """Delete a link, and with it the other end of a veth pair. One that is gone already is no error."""
    try:
        kernel.change(_DELLINK, _LINK.pack(0, 0, index, 0, 0))
    except OSError as error:
        if error.errno != errno.ENODEV:
            raise


def addresses(kernel: Netlink, index: int = 0) -> list[LinkAddress]:
    """Return the addresses of a link, or of all."""
    found = []
    for payload in kernel.dump(_GETADDR, _ADDRESS.pack(0, 0, 0, 0, 0)):
        _family, prefix, flags, _scope, owner = _ADDRESS.unpack_from(payload)
        values = netlink.attributes(payload, _ADDRESS.size)
        value = values.get(2) or values.get(1)  # between two ends, the second is the other end's
        if value is not None and index in (0, owner):
            found.append(LinkAddress(owner, netlink.printed(value), prefix, netlink.number(values.get(8), flags)))
    return found


def resolved(kernel: Netlink, address: str) -> str:
    """Return the hardware address that *address* answered with of late, "" if it did not."""
    family = netlink.family_of(address)
    wanted = netlink.packed(address)
    for payload in kernel.dump(_GETNEIGH, _NEIGHBOUR.pack(family, 0, 0, 0, 0)):
        _family, _index, state, _flags, _type = _NEIGHBOUR.unpack_from(payload)
        values = netlink.attributes(payload, _NEIGHBOUR.size)
        if values.get(1) == wanted and state & _ANSWERED:
            return ":".join(f"{byte:02x}" for byte in values.get(2, b""))
    return ""
