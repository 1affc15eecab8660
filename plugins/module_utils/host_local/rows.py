# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a reservation is shown to people and machines, the same words everywhere."""

from __future__ import annotations

from .snapshot import STATIC_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Sequence

    from .addresses import Address
    from .ranges import RangeSet


def printable(name: str) -> str:
    r"""Return a file name as text that every result can carry: a byte that is no UTF-8 as ``\xff``."""
    if name.isascii() and "\0" not in name:
        return name
    escaped = (f"\\x{ord(one) & 0xFF:02x}" if one == "\0" or "\udc80" <= one <= "\udcff" else one for one in name)
    return "".join(escaped).encode("utf-8", "backslashreplace").decode()


def owner_of(container_id: str) -> str | None:
    """Return the owner of a static reservation, None for one of a runtime."""
    return container_id[len(STATIC_PREFIX) :] if container_id.startswith(STATIC_PREFIX) else None


def label(container_id: str) -> str:
    """Name a holder for people: the owner of a static reservation, else the container id."""
    return owner_of(container_id) or container_id or "an empty address file"


def row(address: str, container_id: str, ifname: str, range_set: int | None, age_s: int) -> dict[str, Any]:
    """Return one reservation as the modules return it; *age_s* is in seconds, *range_set* an index or None."""
    static = container_id.startswith(STATIC_PREFIX)  # not owner_of(): this is done for 50,000 rows
    return {
        "address": address,
        "owner": container_id[len(STATIC_PREFIX) :] if static else None,
        "container_id": container_id,
        "ifname": ifname,
        "static": static,
        "range_set": range_set,
        "age_s": age_s,
    }


def set_index(sets: Sequence[RangeSet], address: Address) -> int | None:
    """Return the index of the range set that contains *address*, None if no set does."""
    for index, one in enumerate(sets):
        if address in one:
            return index
    return None


def short_list(names: Iterable[object], limit: int = 8) -> str:
    """Return *names* as one text that stays readable whatever their number."""
    texts = [str(name) for name in names]
    if len(texts) > limit:
        return f"{', '.join(texts[:limit])} and {len(texts) - limit} more"
    return ", ".join(texts)
