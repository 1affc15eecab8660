# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which address an attachment gets from a range set (host-local spec 4)."""

from __future__ import annotations

from ..cni.errors import INTERNAL, CniError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .addresses import Address
    from .ranges import RangeSet
    from .snapshot import Snapshot
    from .store import Store


class Allocator:
    """The allocator of one range set; *index* is the set's number, which names its last_reserved_ip file."""

    def __init__(self, range_set: RangeSet, index: int) -> None:
        self.range_set = range_set
        self.index = index

    def allocate(
        self, store: Store, snapshot: Snapshot, container_id: str, ifname: str, requested: Address | None = None
    ) -> Address:
        """Reserve an address for an attachment and move the rotation. Raises CniError with Go's text."""
        if requested is None:
            address = self._next(store, snapshot, container_id, ifname)
        else:
            address = self._requested(store, snapshot, container_id, ifname, requested)
        store.set_last_reserved(self.index, address)
        return address

    def _requested(
        self, store: Store, snapshot: Snapshot, container_id: str, ifname: str, requested: Address
    ) -> Address:
        if requested in self.range_set.gateways:
            raise CniError(INTERNAL, f"requested ip {requested} is subnet's gateway")
        if snapshot.is_taken(requested) or not store.reserve(snapshot, requested, container_id, ifname):
            raise CniError(INTERNAL, f"requested IP address {requested} is not available in range set {self.range_set}")
        return requested

    def _next(self, store: Store, snapshot: Snapshot, container_id: str, ifname: str) -> Address:
        refuse_duplicate(snapshot, self.range_set, container_id, ifname)
        for address in snapshot.free(self.range_set, store.last_reserved(self.index)):
            if store.reserve(snapshot, address, container_id, ifname):
                return address
        raise CniError(INTERNAL, f"no IP addresses available in range set: {self.range_set}")


def refuse_duplicate(snapshot: Snapshot, range_set: RangeSet, container_id: str, ifname: str) -> None:
    """Raise CniError if the attachment holds an address of the set already."""
    for held in snapshot.held_by(container_id, ifname):
        if held.address in range_set:
            raise CniError(
                INTERNAL,
                f"{held.address} has been allocated to {container_id}, duplicate allocation is not allowed",
            )
