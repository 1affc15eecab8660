# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands against a batch of reservations, for people and for machines."""

from __future__ import annotations

from ..cni.errors import NodenetError
from .rows import label, short_list
from .snapshot import EMPTY_GRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from .addresses import Address
    from .snapshot import Reservation
    from .wanted import Wanted


class Conflict:
    """An address that somebody else holds.

    ``holder`` is None when no reservation but another entry blocks it; ``error`` is what met who tried to read it.
    """

    __slots__ = ("address", "wanted", "holder", "error")

    def __init__(
        self, address: Address, wanted: Wanted, holder: Reservation | None, error: OSError | None = None
    ) -> None:
        self.address = address
        self.wanted = wanted
        self.holder = holder
        self.error = error

    def described(self) -> str:
        """Name the holder for people."""
        if self.error is not None:
            reason = (self.error.strerror or str(self.error)).lower()
            return f"blocked by an address file that cannot be read ({reason}), so its owner is unknown"
        if self.holder is None:
            return "blocked by an entry of that name which is no reservation"
        if self.holder.empty:
            return f"held by an empty address file younger than {EMPTY_GRACE:g} s, which a plugin may be about to fill"
        parts = [f"id {self.holder.container_id}"]
        if self.holder.ifname:
            parts.append(f"interface {self.holder.ifname}")
        if not self.holder.canonical:
            parts.append(f"file {self.holder.name}")
        return f"held by {label(self.holder.container_id)} ({', '.join(parts)})"

    def document(self) -> dict[str, str]:
        """Return the conflict as the modules return it."""
        held_by = "an entry that is no reservation"
        if self.error is not None:
            held_by = "an address file that cannot be read"
        elif self.holder is not None:
            held_by = label(self.holder.container_id)
        return {
            "address": str(self.address),
            "wanted_by": label(self.wanted.container_id),
            "held_by": held_by,
        }


def refusal(conflicts: Sequence[Conflict], place: str) -> NodenetError:
    """Return the error that names every holder, or the first few of many."""
    first = conflicts[0]
    if len(conflicts) == 1:
        who = label(first.wanted.container_id)
        text = f"Cannot reserve {first.address} for {who} in {place}: it is {first.described()}"
    else:
        each = [f"{one.address} for {label(one.wanted.container_id)} is {one.described()}" for one in conflicts]
        text = f"Cannot reserve {len(conflicts)} addresses in {place}: {short_list(each, limit=5)}"
    return NodenetError(text, conflicts=[one.document() for one in conflicts])
