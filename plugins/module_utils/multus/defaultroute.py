# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Default routes of a pod that a network asks for, in the kernel and in cached results (multus spec 7.1, M6)."""

from __future__ import annotations

from ..cni import netlink, results, routes
from ..cni.errors import INTERNAL, CniError, go_strerror
from .request import is_ipv4

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from ..cni.results import Document
    from .delegate import Delegate

_DESTINATION = {True: "0.0.0.0/0", False: "::/0"}
_FAMILY = {True: netlink.AF_INET, False: netlink.AF_INET6}


def to_replace(delegate: Delegate, delegates: Sequence[Delegate]) -> list[bool]:
    """Return the families (True: IPv4) whose default routes over this delegate are to go: somebody names a gateway.

    Without a network that was marked (the default network alone asks) only its own routes go.
    """
    marked = any(one.filter_ipv4 or one.filter_ipv6 for one in delegates)
    asking = delegates if marked else [delegate]
    asked = {is_ipv4(gateway) for one in asking for gateway in one.request.gateways or []}
    return sorted(asked, reverse=True)


def apply(netns: str, interface: str, delegate: Delegate, families: Sequence[bool]) -> None:
    """Remove the default routes over an interface, or make those of the delegate's gateways the only ones.

    Raises CniError (code 999) with Go's words. A gateway that cannot be set leaves its family's routes as they
    were; what was done for the ones before it stays.
    """
    from ..cni import links

    gateways = delegate.request.gateways or []
    try:
        kernel = netlink.Netlink(netns)
    except OSError as error:
        raise _fault(f"error deleting default gateway: {go_strerror(error)}") from None
    with kernel:
        try:
            link = links.find(kernel, interface)
            if link is not None:
                for family in families:
                    if not any(is_ipv4(one) is family for one in gateways):
                        for route in routes.default_routes(kernel, _FAMILY[family], link.index):
                            routes.delete(kernel, route)
        except OSError as error:
            raise _fault(f"error deleting default gateway: {go_strerror(error)}") from None
        for gateway in gateways:
            if not gateway:
                raise _fault("error setting default gateway: either Dst.IP, Src.IP or Gw must be set")
            if link is None:
                raise _fault("error setting default gateway: SetDefaultGW: Error getting link Link not found")
            try:
                routes.replace_default(kernel, gateway, link.index)
            except (OSError, ValueError) as error:
                raise _fault(f"error setting default gateway: {go_strerror(error)}") from None


def edited(result: Document, delegate: Delegate, families: Sequence[bool]) -> Document:
    """Return a result, in its own layout, with the default routes that the pod has now."""
    version = result["cniVersion"]
    newest = results.parse(result)
    kept = [one for one in newest.get("routes") or [] if one and not _is_default(one, families)]
    for gateway in delegate.request.gateways or []:
        kept.append({"dst": _DESTINATION[is_ipv4(gateway)], "gw": gateway})
    newest["routes"] = kept
    return results.render(newest, version)


def gateways(result: Document, delegate: Delegate, families: Sequence[bool]) -> list[str]:
    """Return the gateways that the pod has over this delegate now."""
    from . import netstatus

    return netstatus.default_gateways(results.parse(edited(result, delegate, families)))


def _is_default(route: Document, families: Sequence[bool]) -> bool:
    address, _slash, prefix = str(route.get("dst") or "").partition("/")
    if not address:
        return True
    return prefix == "0" and (":" not in address) in families


def _fault(message: str) -> CniError:
    return CniError(INTERNAL, message)
