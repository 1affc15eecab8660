# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Results of ADD and their layouts in every version of the CNI specification (host-local spec 6).

In between, a result is kept in the newest layout as ordinary dicts: ``interfaces``, ``ips`` (address, gateway,
interface), ``routes``, ``dns``.
"""

from __future__ import annotations

from .errors import INTERNAL, CniError
from .versions import DEFAULT, SUPPORTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Sequence

    Document = Dict[str, Any]

_ROUTE_KEYS = ("dst", "gw", "mtu", "advmss", "priority", "table", "scope")
_INTERFACE_KEYS = ("mac", "mtu", "name", "pciID", "sandbox", "socketPath")
_DNS_KEYS = ("nameservers", "domain", "search", "options")
_IP4_IP6 = ("0.1.0", "0.2.0")
_WITH_IP_VERSION = ("0.3.0", "0.3.1", "0.4.0")
_EXACT = 1 << 53


def family(address: str) -> str:
    """Return ``4`` or ``6`` for an address with or without prefix.

    An IPv4-mapped one is ``4``; what is no address, such as the target of a route that names none, is ``6`` (host-local
    spec 6).
    """
    mapped = address.lower().startswith("::ffff:") and "." in address
    return "4" if mapped or (address[:1].isdigit() and ":" not in address) else "6"


def render(result: Document, version: str) -> Document:
    """Return *result* in the layout of *version*, keys in the order in which Go prints them."""
    version = version or DEFAULT
    if version in _IP4_IP6:
        return _render_ip4_ip6(result, version)
    if version in _WITH_IP_VERSION:
        return _render_with_ip_version(result, version)
    if version in SUPPORTED:
        return _render_newest(result, version)
    raise CniError(INTERNAL, f"no converter for CNI result version {SUPPORTED[-1]} to {version}")


def parse(document: Document) -> Document:
    """Return a printed result of any version in the newest layout; members that no version knows are dropped."""
    version = document.get("cniVersion") or DEFAULT
    if version not in SUPPORTED:
        raise CniError(INTERNAL, f"no converter for CNI result version {version} to {SUPPORTED[-1]}")
    result: Document = {"ips": [], "routes": [], "dns": _pick(document.get("dns") or {}, _DNS_KEYS)}
    if version in _IP4_IP6:
        for key in ("ip4", "ip6"):
            part = document.get(key)
            if part:
                result["ips"].append(_without_empty({"address": part.get("ip"), "gateway": part.get("gateway")}))
                result["routes"] += [_pick(route, ("dst", "gw")) for route in part.get("routes") or []]
        return result
    if document.get("interfaces"):
        keys = ("name", "mac", "sandbox") if version in _WITH_IP_VERSION else _INTERFACE_KEYS
        result["interfaces"] = [_pick(one, keys) for one in document["interfaces"]]
    result["ips"] = [_pick(one, ("interface", "address", "gateway")) for one in document.get("ips") or []]
    result["routes"] = [_pick(route, _ROUTE_KEYS) for route in document.get("routes") or []]
    return result


def convert(document: Document, version: str) -> Document:
    """Return a printed result in the layout of another version."""
    return render(parse(document), version)


def _pick(values: Document, keys: Sequence[str]) -> Document:
    return {key: values[key] for key in keys if key in values}


def _without_empty(values: Document) -> Document:
    return {key: value for key, value in values.items() if value not in ("", None)}


def _route(route: Document | None, keys: Sequence[str]) -> Document | None:
    """Leave out what Go leaves out: zero mtu, advmss and priority, but not a zero table or scope (spec 2.7)."""
    if route is None:
        return None
    shown = {}
    for key in keys:
        value = route.get(key)
        if key in ("mtu", "advmss", "priority") and not value:
            continue
        if key == "gw" and value is None:
            continue
        if key in ("table", "scope") and value is None:
            continue
        shown[key] = "<nil>" if value is None else value
    return shown


def _render_newest(result: Document, version: str) -> Document:
    document: Document = {"cniVersion": version}
    dns = _dns(result)
    if dns:
        document["dns"] = {key: dns[key] for key in sorted(dns)}
    if result.get("interfaces"):
        document["interfaces"] = [_interface(one, version) for one in result["interfaces"]]
    if result.get("ips"):
        document["ips"] = [_pick(one, ("address", "gateway", "interface")) for one in result["ips"]]
    if result.get("routes"):
        document["routes"] = [_rounded(_route(one, sorted(_ROUTE_KEYS))) for one in result["routes"]]
    return document


def _interface(interface: Document, version: str) -> Document:
    return _pick(interface, ("mac", "name", "sandbox") if version == "1.0.0" else _INTERFACE_KEYS)


def _rounded(route: Document | None) -> Document | None:
    """Let integers pass through a double, as Go does in this layout [vector config-routes-big-numbers]."""
    if route is None:
        return None
    return {
        key: float(value) if isinstance(value, int) and abs(value) > _EXACT else value for key, value in route.items()
    }


def _render_with_ip_version(result: Document, version: str) -> Document:
    document: Document = {"cniVersion": version}
    if result.get("interfaces"):
        document["interfaces"] = [_pick(one, ("name", "mac", "sandbox")) for one in result["interfaces"]]
    if result.get("ips"):
        document["ips"] = [
            dict(version=family(one["address"]), **_pick(one, ("interface", "address", "gateway")))
            for one in result["ips"]
        ]
    if result.get("routes"):
        document["routes"] = [_route(one, _ROUTE_KEYS) for one in result["routes"]]
    document["dns"] = _dns(result)
    return document


def _render_ip4_ip6(result: Document, version: str) -> Document:
    document: Document = {"cniVersion": version}
    for wanted, key in (("4", "ip4"), ("6", "ip6")):
        ip = next((one for one in result.get("ips") or [] if family(one["address"]) == wanted), None)
        if ip is None:
            continue
        part: Document = {"ip": ip["address"]}
        if ip.get("gateway"):
            part["gateway"] = ip["gateway"]
        routes = [
            _route(one, ("dst", "gw"))
            for one in result.get("routes") or []
            if family(str(one.get("dst") or "")) == wanted
        ]
        if routes:
            part["routes"] = routes
        document[key] = part
    if "ip4" not in document and "ip6" not in document:
        raise CniError(INTERNAL, "cannot convert: no valid IP addresses")
    document["dns"] = _dns(result)
    return document


def _dns(result: Document) -> Document:
    dns = result.get("dns") or {}
    return {key: dns[key] for key in _DNS_KEYS if dns.get(key)}
