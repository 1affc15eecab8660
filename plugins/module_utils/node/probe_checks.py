# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the result of ADD with what really is in the namespace, and ask the gateways."""

from __future__ import annotations

from ..cni import links, netlink, results, routes
from . import reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Checks:
    """What was looked at: ``done`` for the user, one of check, target, interface, ok (None: not checked) and detail;
    ``facts``: what is wrong."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.done: list[dict[str, Any]] = []
        self.facts: list[dict[str, Any]] = []

    def note(self, check: str, target: str, interface: str, ok: bool | None, detail: str) -> None:
        self.done.append({"check": check, "target": target, "interface": interface, "ok": ok, "detail": detail})

    def fault(self, kind: str, **params: object) -> None:
        self.facts.append(dict(params, kind=kind, where=self.where))


def verify(
    document: Mapping[str, Any],
    netns: str,
    ifname: str,
    where: str,
    gateway_timeout: float,
    stop: Callable[[], bool],
) -> Checks:
    """Look whether the result of a chain is true in the namespace at *netns*.

    :param ifname: the interface of addresses that name none
    :param where: what findings are about
    :param gateway_timeout: seconds that a gateway has for an answer
    """
    checks = Checks(where)
    result = results.parse(dict(document))
    with netlink.Netlink(netns) as kernel:
        present = {one.name: one for one in links.links(kernel)}
        names = [one.get("name") or "" for one in result.get("interfaces", [])]
        ours = [one.get("name") or "" for one in result.get("interfaces", []) if one.get("sandbox")]
        for name in ours or [ifname]:
            _interface(checks, name, present)
        if not result["ips"]:
            checks.fault("node-probe-no-address")
        for ip in result["ips"]:
            number = ip.get("interface")
            name = names[number] if isinstance(number, int) and 0 <= number < len(names) else ifname
            _address(checks, kernel, ip["address"], name, present)
        for route in result["routes"]:
            _route(checks, kernel, route)
        _gateways(checks, kernel, result, netns, present.get(ifname), gateway_timeout, stop)
    return checks


def _interface(checks: Checks, name: str, present: Mapping[str, links.Link]) -> None:
    link = present.get(name)
    state = "is not there" if link is None else "is down" if not link.up else ""
    checks.note("interface", name, name, not state, state or "up")
    if state:
        checks.fault("node-probe-interface-wrong", interface=name, state=state)


def _address(checks: Checks, kernel: netlink.Netlink, text: str, name: str, present: Mapping[str, links.Link]) -> None:
    link = present.get(name)
    held = links.addresses(kernel, link.index) if link is not None else []
    address, _slash, prefix = text.partition("/")
    wanted = (netlink.packed(address), int(prefix))
    match = [one for one in held if (netlink.packed(one.address), one.prefix) == wanted]
    shown = ", ".join(f"{one.address}/{one.prefix}" for one in held) or "none"
    ok = bool(match) and not match[0].duplicate
    detail = "present" if ok else "another machine has it" if match else f"the interface has {shown}"
    checks.note("address", text, name, ok, detail)
    if not match:
        checks.fault("node-probe-address-wrong", address=text, interface=name, found=shown)
    elif match[0].duplicate:
        checks.fault("node-probe-address-duplicate", address=text)


def _route(checks: Checks, kernel: netlink.Netlink, route: Mapping[str, Any]) -> None:
    """A route without a gateway goes over that of its address, or none; which one is the plugin's affair."""
    destination, _slash, prefix = str(route.get("dst") or "").partition("/")
    if not prefix:
        return
    length = int(prefix)
    gateway = str(route.get("gw") or "")
    wanted = _masked(netlink.packed(destination), length)
    found = ""
    for one in routes.routes(kernel, int(route.get("table") or routes.MAIN)):
        if one.prefix != length or netlink.packed(one.destination) != wanted:
            continue
        hops = [hop for hop, _index in one.hops]
        found = f"over {hops[0]}" if hops and hops[0] else "directly"
        if not gateway or _is_unspecified(gateway) or any(_same(gateway, hop) for hop in hops):
            checks.note("route", str(route["dst"]), "", True, found)
            return
    told = f"{route['dst']} over {gateway}" if gateway else str(route["dst"])
    checks.note("route", told, "", False, f"the route to it goes {found}" if found else "not there")
    checks.fault("node-probe-route-missing", route=told)


def _gateways(
    checks: Checks,
    kernel: netlink.Netlink,
    result: Mapping[str, Any],
    netns: str,
    link: links.Link | None,
    seconds: float,
    stop: Callable[[], bool],
) -> None:
    own = [one["address"].partition("/")[0] for one in result["ips"]]
    named = [one.get("gateway") for one in result["ips"]] + [one.get("gw") for one in result["routes"]]
    gateways = [one for one in dict.fromkeys(named) if one and not _is_unspecified(one)]
    gateways = [one for one in gateways if not any(_same(one, other) for other in own)]
    if not gateways:
        checks.note("gateway", "", "", None, "the result names none")
        checks.fault("node-probe-unchecked", what="reaching a gateway", reason="the result of ADD names none")
    for gateway in gateways:
        answer = reach.ask(kernel, netns, gateway, link.index if link else 0, seconds, stop)
        ok = None if answer.how == reach.UNKNOWN else answer.how != reach.SILENT
        checks.note("gateway", gateway, link.name if link else "", ok, answer.detail)
        if answer.how == reach.UNKNOWN:
            checks.fault("node-probe-unchecked", what=f"reaching gateway {gateway}", reason=answer.detail)
        elif answer.how == reach.SILENT:
            checks.fault("node-probe-gateway-silent", gateway=gateway)


def _masked(value: bytes, length: int) -> bytes:
    bits = len(value) * 8
    mask = ((1 << length) - 1) << (bits - length)
    return (int.from_bytes(value, "big") & mask).to_bytes(len(value), "big")


def _same(one: str, other: str) -> bool:
    return bool(one and other) and netlink.packed(one) == netlink.packed(other)


def _is_unspecified(address: str) -> bool:
    return not any(netlink.packed(address))
