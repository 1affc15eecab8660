# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The wanted state of a batch of reservations: reading and judging what a user wrote, before any file is opened.

It is the reader of the option ``reservations`` and speaks in its words.
"""

from __future__ import annotations

from ..cni.errors import NodenetError
from ..cni.names import interface_fault, valid_name
from .addresses import Address, parse_address
from .rows import label
from .snapshot import STATIC_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

_OWNER_LENGTH = 241
_NAME_RULE = "must start with a letter or digit and go on with letters, digits, '_', '.' and '-'"


class Wanted:
    """What one attachment shall hold.

    ``addresses`` is None when the user named none: keep what is held, or take what is free. With ``present`` false they
    limit what is released.
    """

    __slots__ = ("container_id", "ifname", "addresses", "present")

    def __init__(self, container_id: str, ifname: str, addresses: list[Address] | None, present: bool = True) -> None:
        self.container_id = container_id
        self.ifname = ifname
        self.addresses = addresses
        self.present = present

    @property
    def key(self) -> tuple[str, str]:
        """The attachment."""
        return self.container_id, self.ifname


def read_batch(items: Iterable[Mapping[str, Any]], network: str) -> list[Wanted]:
    """Turn the elements of the option ``reservations`` into what is wanted.

    Each has ``owner`` or ``container_id``, and may have ``ifname``, ``addresses`` and ``state``. Raises NodenetError
    for a bad name, a bad address, and whatever occurs twice.
    """
    batch: list[Wanted] = []
    keys: set[tuple[str, str]] = set()
    holders: dict[Address, Wanted] = {}
    for item in items:
        present = item.get("state") != "absent"
        verb = "reserve addresses for" if present else "release addresses of"
        wanted = Wanted(_container_id(item, verb, network), item.get("ifname") or "eth0", None, present)
        who = f"{label(wanted.container_id)} in network {network}"
        fault = interface_fault(wanted.ifname)
        if fault:
            raise NodenetError(f"Cannot {verb} {who}: {fault[0]}: {wanted.ifname!r}")
        if wanted.key in keys:
            raise NodenetError(f"Cannot {verb} {who}: the reservation for interface {wanted.ifname} is listed twice")
        keys.add(wanted.key)
        if item.get("addresses") is not None:
            wanted.addresses = _addresses(item["addresses"], present, verb, who)
        for address in wanted.addresses or () if present else ():
            other = holders.setdefault(address, wanted)
            if other is not wanted:
                raise NodenetError(
                    f"Cannot reserve {address} for {who}: it is listed for {label(other.container_id)} too",
                    address=str(address),
                )
        batch.append(wanted)
    return batch


def owner_fault(owner: str) -> str | None:
    """Say what is wrong with the name of an owner, which is stored as ``static.<owner>``; None if nothing is."""
    if not valid_name(owner):
        return _NAME_RULE
    if len(owner) > _OWNER_LENGTH:
        return f"is longer than {_OWNER_LENGTH} characters"
    return None


def _container_id(item: Mapping[str, Any], verb: str, network: str) -> str:
    owner, container_id = item.get("owner"), item.get("container_id")
    if (owner is None) == (container_id is None):
        raise NodenetError(
            f"Cannot {verb} an attachment in network {network}: "
            "each element of reservations needs either owner or container_id"
        )
    if owner is not None:
        fault = owner_fault(owner)
        if fault:
            raise NodenetError(f"Cannot {verb} owner {owner!r} in network {network}: the name {fault}")
        return STATIC_PREFIX + owner
    fault = None if valid_name(str(container_id)) else _NAME_RULE
    if fault is None and str(container_id).startswith(STATIC_PREFIX):
        fault = f"may not start with {STATIC_PREFIX!r}, use owner for a static reservation"
    if fault:
        raise NodenetError(f"Cannot {verb} container_id {container_id!r} in network {network}: the id {fault}")
    return str(container_id)


def _addresses(texts: Iterable[object], present: bool, verb: str, who: str) -> list[Address]:
    addresses: dict[Address, None] = {}
    for text in texts:
        try:
            address = parse_address(str(text))
        except ValueError:
            raise NodenetError(
                f"Cannot {verb} {who}: {str(text)!r} is not an IP address (without a prefix length)"
            ) from None
        if address in addresses:
            raise NodenetError(f"Cannot {verb} {who}: address {address} is listed twice")
        addresses[address] = None
    if not addresses:
        advice = "for the lowest free address, or write 'state: absent' to release" if present else "to release all"
        raise NodenetError(f"Cannot {verb} {who}: the list of addresses is empty; leave it out {advice}")
    return list(addresses)
