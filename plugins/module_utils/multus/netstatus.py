# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a delegate's result says for the pod's network-status annotation (multus spec 10, M6)."""

from __future__ import annotations

from ..cni import goprint, results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ..cni.results import Document

_DNS_KEYS = ("nameservers", "domain", "search", "options")


def entries(
    name: str, is_master: bool, result: Document, device_info: Any = None, gateways: Sequence[str] | None = None
) -> list[Document]:
    """Return the entries of one delegate, empty when nothing of its result lies in the pod.

    :param result: a result in the layout of any version
    :param device_info: what the plugin left of the device
    :param gateways: those that took the place of the result's default routes, None if none did
    """
    newest = results.parse(result)
    interfaces: list[Document] = newest.get("interfaces") or []
    ips: list[Document] = newest.get("ips") or []
    if gateways is None:
        gateways = default_gateways(newest)
    common: Document = {"dns": {key: newest["dns"][key] for key in _DNS_KEYS if newest["dns"].get(key)}}
    if device_info is not None:
        common["device-info"] = device_info
    if gateways:
        common["gateway"] = list(gateways)
    if len(interfaces) == 1:
        inside = interfaces[0] if interfaces[0].get("sandbox") else {}
        return [_entry(name, inside, [one["address"] for one in ips], is_master, common)]
    found = [(at, one) for at, one in enumerate(interfaces) if one.get("sandbox")]
    default = _default_interface(ips, [at for at, _one in found]) if is_master else None
    addresses = _addresses(ips, [at for at, _one in found])
    return [_entry(name, one, addresses[at], at == default, common) for at, one in found]


def default_gateways(newest: Document) -> list[str]:
    """Return the gateways of a result's default routes; one without gateway has none to name (M6)."""
    found = []
    for route in newest.get("routes") or []:
        address = str((route or {}).get("dst") or "").partition("/")[0]
        if address in ("0.0.0.0", "::") and route.get("gw"):
            found.append(route["gw"])
    return found


def text(listed: Sequence[Document]) -> str:
    """Return the annotation's value in the layout in which Multus writes it."""
    return "[" + ",".join(goprint.dumps(one) for one in listed) + "]"


def _entry(name: str, interface: Document, addresses: list[str], default: bool, common: Document) -> Document:
    entry: Document = {"name": name}
    shown = {
        "interface": interface.get("name"),
        "ips": [one.partition("/")[0] for one in addresses],
        "mac": interface.get("mac"),
        "mtu": interface.get("mtu"),
        "default": default,
    }
    entry.update((key, value) for key, value in shown.items() if value)
    entry.update(common)
    return entry


def _addresses(ips: list[Document], inside: list[int]) -> dict[int, list[str]]:
    """Return the addresses of each interface in the pod; those without an interface go to the last one."""
    found: dict[int, list[str]] = {at: [] for at in inside}
    for ip in ips:
        at = ip.get("interface")
        if at is None and inside:
            at = inside[-1]
        if at in found:
            found[at].append(ip["address"])
    return found


def _default_interface(ips: list[Document], inside: list[int]) -> int | None:
    for ip in ips:
        if ip.get("gateway") and ip.get("interface") is not None:
            return int(ip["interface"])
    return inside[0] if inside else None
