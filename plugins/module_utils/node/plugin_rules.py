# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the keys of a plugin mean together: what needs what, what excludes what, what does nothing.

Where Go fails, it was read in the plugins' sources, and tried where a plugin could be had.
"""

from __future__ import annotations

from ..cni import gojson, versions
from ..cni.errors import CniError
from ..host_local import addresses
from . import plugin_keys
from .confdir import text_of
from .ipam_rules import is_link_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LONGEST_NUMBER = 21
_BURST_LIMIT = 8 * 0xFFFFFFFF
_SMALLEST_MTU, _SMALLEST_MTU_FOR_V6, _LARGEST_MTU = 68, 1280, 65535


def is_remark(key: str) -> bool:
    """Tell whether a key is how people write a comment into JSON."""
    return key.startswith(("_", "#", "//")) or key.lower() in ("comment", "description")


def check(plugin: Any, kind: str, where: str, place: str, version: str, before: list[str]) -> list[dict[str, Any]]:
    """Return the facts about one plugin.

    :param kind: its type
    :param version: cniVersion of the network, "" if it names none
    :param before: types of the plugins that run before it
    """
    rules = _Rules(plugin, kind, where, place)
    rules.in_chain(version, before)
    rules.capabilities()
    rules.mtu()
    special = getattr(rules, "for_" + kind.replace("-", "_"), None)
    if special is not None:
        special(before)
    if rules.text("type", rules.get("ipam")) == "static":
        rules.static(version)
    return rules.facts


class _Rules:
    def __init__(self, plugin: Any, kind: str, where: str, place: str) -> None:
        self.plugin = plugin
        self.kind = kind
        self.where = where
        self.place = place
        self.facts: list[dict[str, Any]] = []

    def fact(self, kind: str, path: str = "", **params: Any) -> None:
        path = ".".join(part for part in (self.place, path) if part) or self.kind
        self.facts.append(dict(params, kind=kind, where=self.where, path=path, plugin=self.kind))

    def get(self, key: str) -> Any:
        return gojson.field(self.plugin, key)

    def text(self, key: str, node: Any = None) -> str:
        return text_of(gojson.field(self.plugin if node is None else node, key))

    def number(self, key: str, node: Any = None) -> int:
        value = gojson.field(self.plugin if node is None else node, key)
        literal = value.literal if isinstance(value, gojson.Number) else ""
        return int(literal) if literal.lstrip("-").isdigit() and len(literal) <= _LONGEST_NUMBER else 0

    def on(self, key: str) -> bool:
        return self.get(key) is True

    def needs_ipam(self) -> None:
        if not self.text("type", self.get("ipam") or ()):
            self.fact("conf-key-needed", "ipam.type")

    def conflict(self, first: str, second: str) -> None:
        self.fact("conf-keys-conflict", first, first=first, second=second)

    def refused(self, path: str, value: Any, wanted: str) -> None:
        self.fact("conf-value-refused", path, value=str(value), wanted=wanted)

    # --- every plugin

    def in_chain(self, version: str, before: list[str]) -> None:
        oldest = plugin_keys.OLDEST.get(self.kind)
        if oldest is not None and not _at_least(version or versions.DEFAULT, oldest):
            self.fact("conf-version-below-plugin", oldest=oldest, version=version or versions.DEFAULT)
        idle = self.kind == "bandwidth" and not any(self.number(key + "Rate") for key in ("ingress", "egress"))
        if self.kind in plugin_keys.CHAINED and not before and not idle:
            self.fact("conf-chain-first")
        makers = [one for one in before if one in plugin_keys.MAKERS]
        if self.kind in plugin_keys.MAKERS and makers:
            self.fact("conf-chain-interface", first=makers[0])

    def capabilities(self) -> None:
        given = self.get("capabilities")
        wanted = {name for name, value in given if value is True} if isinstance(given, tuple) else set()
        used = plugin_keys.CAPABILITIES.get(self.kind)
        if used is None:
            return  # a plugin of another product
        ipam = self.text("type", self.get("ipam") or ())
        more = plugin_keys.IPAM_CAPABILITIES.get(ipam, None)
        for name in sorted(wanted - set(used.split())):
            if more is not None and name not in more.split():
                self.fact("conf-capability-idle", f"capabilities.{name}", capability=name)
        inline = self.kind == "bandwidth" and any(self.get(key + "Rate") for key in ("ingress", "egress"))
        if self.kind in ("portmap", "bandwidth") and used not in wanted and not inline:
            self.fact("conf-capability-missing", capability=used)

    def mtu(self) -> None:
        mtu = self.number("mtu") if self.kind in plugin_keys.WITH_MTU else 0
        if mtu < 0 and self.kind in ("bridge", "ptp", "ipvlan"):
            self.fact("conf-value-default", "mtu", value=str(mtu), wanted="a number of 0 or more")
        elif mtu < 0 or 0 < mtu < _SMALLEST_MTU or mtu > _LARGEST_MTU:
            self.refused("mtu", mtu, f"0 or a number from {_SMALLEST_MTU} to {_LARGEST_MTU}")
        elif 0 < mtu < _SMALLEST_MTU_FOR_V6 and any(":" in one for one in _subnets(self.get("ipam"))):
            self.fact("conf-mtu-ipv6", "mtu", mtu=mtu)

    # --- single plugins

    def for_bridge(self, _before: list[str]) -> None:
        with_ipam = bool(self.text("type", self.get("ipam") or ()))
        if self.on("hairpinMode") and self.on("promiscMode"):
            self.conflict("hairpinMode", "promiscMode")
        if self.number("vlan") and self.get("vlanTrunk"):
            self.conflict("vlan", "vlanTrunk")
        if with_ipam and self.on("disableContainerInterface"):
            self.conflict("disableContainerInterface", "ipam")
        for key in ("isGateway", "isDefaultGateway", "ipMasq") if not with_ipam else ():
            if self.on(key):
                self.fact("conf-key-idle", key, without="ipam")
        if with_ipam and self.on("ipMasq") and not self.on("isGateway") and not self.on("isDefaultGateway"):
            self.fact("conf-masquerade-idle", "ipMasq")
        trunk = self.get("vlanTrunk")
        for at, one in enumerate(trunk if isinstance(trunk, list) else []):
            low, high = gojson.field(one, "minID"), gojson.field(one, "maxID")
            if (low is None) != (high is None):
                path = f"vlanTrunk[{at}]." + ("minID" if low is None else "maxID")
                self.fact("conf-key-needed", path)
            elif self.number("minID", one) > self.number("maxID", one):
                self.refused(f"vlanTrunk[{at}].maxID", high, f"minID ({low}) or more")

    def for_ptp(self, _before: list[str]) -> None:
        self.needs_ipam()

    def for_dummy(self, _before: list[str]) -> None:
        self.needs_ipam()

    def for_vlan(self, before: list[str]) -> None:
        self.needs_ipam()
        if not self.number("vlanId"):
            self.fact("conf-vlan-zero", "vlanId")

    def for_ipvlan(self, before: list[str]) -> None:
        if not before:
            self.needs_ipam()
        self.for_macvlan(before)

    def for_macvlan(self, _before: list[str]) -> None:
        if self.on("linkInContainer") and not self.text("master"):
            self.fact("conf-link-in-container", "linkInContainer")

    def for_host_device(self, _before: list[str]) -> None:
        ways = [key for key in ("device", "hwaddr", "kernelpath", "pciBusID") if self.text(key)]
        capability = gojson.field(self.get("capabilities"), "deviceID") is True
        if not ways and not capability:
            self.fact("conf-device-needed")
        for second in ways[1:]:
            self.fact("conf-key-idle", second, without=f"the place of {ways[0]}, which counts")
        path = self.text("kernelpath")
        if path and not path.startswith("/sys/devices/"):
            self.refused("kernelpath", path, "a path below /sys/devices/")

    def for_portmap(self, _before: list[str]) -> None:
        if self.get("markMasqBit") is not None and self.get("externalSetMarkChain") is not None:
            self.conflict("markMasqBit", "externalSetMarkChain")

    def for_bandwidth(self, before: list[str]) -> None:
        for way in ("ingress", "egress"):
            rate, burst = self.number(way + "Rate"), self.number(way + "Burst")
            given = [self.get(way + key) for key in ("Rate", "Burst")]
            if any(one is not None and not isinstance(one, gojson.Number) for one in given):
                continue  # told as a wrong type
            if bool(rate) != bool(burst):
                self.fact("conf-key-needed", way + ("Burst" if rate else "Rate"))
            elif burst >= _BURST_LIMIT:
                self.refused(way + "Burst", burst, f"less than {_BURST_LIMIT} bits")
        if self.get("unshapedSubnets") and self.get("shapedSubnets"):
            self.conflict("unshapedSubnets", "shapedSubnets")
        makers = [one for one in before if one in (*plugin_keys.MAKERS, "ipvlan")]
        if makers and makers[-1] not in ("bridge", "ptp"):
            self.fact("conf-needs-veth", first=makers[-1])

    def for_tuning(self, _before: list[str]) -> None:
        sysctl = self.get("sysctl")
        for key, _value in sysctl if isinstance(sysctl, tuple) else ():
            if not key.replace(".", "/").startswith("net/") or "/../" in key.replace(".", "/"):
                self.refused(f"sysctl.{key}", key, "a sysctl below net.")

    def for_flannel(self, _before: list[str]) -> None:
        delegate = self.get("delegate")
        for key in ("name", "ipam"):
            if gojson.field(delegate, key) is not None:
                self.fact("conf-delegate-key", f"delegate.{key}", key=key)

    def for_multus(self, _before: list[str]) -> None:
        if not self.get("delegates") and not self.text("clusterNetwork"):
            self.fact("conf-key-needed", "delegates")
        delegates = self.get("delegates")
        for at, one in enumerate(delegates if isinstance(delegates, list) else []):
            if text_of(gojson.field(one, "type")).startswith("multus"):
                self.fact("conf-delegate-itself", f"delegates[{at}]")

    def for_sriov(self, _before: list[str]) -> None:
        if self.number("vlanQoS") and not self.number("vlan"):
            self.fact("conf-key-needed", "vlan")

    def static(self, version: str) -> None:
        """Check the ipam plugin static."""
        ipam = self.get("ipam")
        listed = gojson.field(ipam, "addresses")
        rows = listed if isinstance(listed, list) else []
        asked = gojson.field(gojson.field(self.get("args"), "cni"), "ips")
        if not rows and not asked and gojson.field(self.get("capabilities"), "ips") is not True:
            self.fact("conf-static-empty", "ipam.addresses")
        families = []
        for at, row in enumerate(rows):
            try:
                subnet = addresses.parse_cidr(text_of(gojson.field(row, "address")))
            except ValueError:
                continue  # told as a value that is refused
            families.append(subnet.address.bits)
            try:
                gateway = addresses.parse_address(text_of(gojson.field(row, "gateway")))
            except ValueError:
                continue
            if gateway not in subnet and not is_link_local(gateway):
                params = {"gateway": str(gateway), "subnet": f"{subnet.network}/{subnet.prefix}"}
                self.fact("ipam-gateway-outside", f"ipam.addresses[{at}].gateway", **params)
        if len(families) != len(set(families)) and not _at_least(version or versions.DEFAULT, "0.3.0"):
            self.refused("ipam.addresses", len(families), "one address of each family below cniVersion 0.3.0")


def _subnets(ipam: Any) -> list[str]:
    """Return the texts of the subnets of host-local and the addresses of static."""
    found = [text_of(gojson.field(ipam, "subnet"))]
    for key, inner in (("ranges", "subnet"), ("addresses", "address")):
        rows = gojson.field(ipam, key)
        for row in rows if isinstance(rows, list) else []:
            found += [text_of(gojson.field(one, inner)) for one in (row if isinstance(row, list) else [row])]
    return found


def _at_least(version: str, minimum: str) -> bool:
    try:
        return versions.at_least(version, minimum)
    except CniError:
        return True  # no version at all, and told as that
