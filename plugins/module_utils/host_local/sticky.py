# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sticky addresses: a pod gets the address that is statically reserved under its name, again and again.

    <address>          static.<namespace>.<pod> CRLF ifname: the reservation, which stays
    <address>.holder   <container id> CRLF ifname: who has the address at present

The Go plugin knows nothing of it, and yet its CHECK finds the container in the holder file and its DEL removes that
file alone (host-local spec 3.3, Search). So the reservation outlives a swap of the two.
"""

from __future__ import annotations

from ..cni.errors import INTERNAL, TRY_AGAIN_LATER, CniError
from .allocator import refuse_duplicate
from .layout import HOLDER_SUFFIX
from .snapshot import STATIC_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

    from .addresses import Address
    from .ranges import RangeSet
    from .snapshot import Reservation, Snapshot
    from .store import Store

#: What Kubernetes runtimes say in CNI_ARGS about the pod, with its readers (`args.parse`).
ARGUMENTS: dict[str, Callable[[str], Any]] = {"K8S_POD_NAMESPACE": str, "K8S_POD_NAME": str}


def static_id(arguments: Mapping[str, Any]) -> str:
    """Return the id of the static reservations of the pod that CNI_ARGS name, the empty text if they name none.

    The namespace ends at the first dot of an owner, so one with a dot has no reservations.
    """
    namespace, pod = arguments.get("K8S_POD_NAMESPACE"), arguments.get("K8S_POD_NAME")
    if not namespace or not pod or "." in namespace:
        return ""
    return f"{STATIC_PREFIX}{namespace}.{pod}"


def take(
    store: Store,
    snapshot: Snapshot,
    range_set: RangeSet,
    pod: str,
    container_id: str,
    ifname: str,
    requested: Address | None = None,
) -> tuple[Address, str] | None:
    """Give the attachment the address of *range_set* that is reserved for its pod; None if none is.

    A requested address that is not the pod's own is left to the allocator. The rotation does not move: a static
    reservation takes no part in it. Returns the address and the name of the holder file, which is all that was made.

    :param pod: id of the pod's static reservations, see `static_id`
    :raises CniError: the attachment has an address of this set already (the text of every duplicate); or another
        container has the address, code 11, since a runtime tries again when the old container is gone
    """
    own = [
        one.address
        for one in snapshot.reserved_for(pod, ifname)
        if one.address in range_set and one.address not in range_set.gateways
    ]
    if requested is not None:
        own = [one for one in own if one == requested]
    if not own:
        return None
    refuse_duplicate(snapshot, range_set, container_id, ifname)
    address = min(own)
    name = f"{address}{HOLDER_SUFFIX}"
    reserved = f"{address} is reserved for {pod[len(STATIC_PREFIX) :]}"
    present = snapshot.present_holder(address)
    if present is not None:
        raise CniError(TRY_AGAIN_LATER, f"{reserved} and still {described(present)}")
    if not store.reserve(snapshot, address, container_id, ifname, HOLDER_SUFFIX):
        raise CniError(INTERNAL, f"{reserved}, but whether somebody has it cannot be told: see {store.path}/{name}")
    return address, name


def described(present: Reservation) -> str:
    """Name the present holder of a reserved address for people."""
    if present.empty:
        return f"held by an empty file {present.name}, which a call may be about to fill"
    interface = f" interface {present.ifname}" if present.ifname else ""
    return f"held by container {present.container_id}{interface}"
