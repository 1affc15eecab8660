# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration of one host-local network (host-local spec 2)."""

from __future__ import annotations

from ..cni import gojson, goshape, versions
from ..cni.errors import CniError, ConfigError
from .addresses import parse_address, parse_address_or_cidr, parse_cidr
from .layout import DEFAULT_DATA_DIR
from .ranges import RangeFault, RangeSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .addresses import Address


def _optional_address(text: str) -> Address | None:
    return parse_address(text) if text else None


_ADDRESS = goshape.Text("net.IP", _optional_address)
_CIDR = goshape.Text("types.IPNet", parse_cidr, null_is_empty=True)
_REQUESTED = goshape.Text("ip.IP", parse_address_or_cidr)
_RANGE_FIELDS: dict[str, goshape.Shape] = {
    "rangeStart": _ADDRESS,
    "rangeEnd": _ADDRESS,
    "subnet": _CIDR,
    "gateway": _ADDRESS,
}
_RANGES = goshape.List(goshape.List(goshape.Struct("allocator.Range", _RANGE_FIELDS)))
_ROUTE = goshape.Struct(
    "types.Route",
    {
        "dst": _CIDR,
        "gw": _ADDRESS,
        "mtu": goshape.INTEGER,
        "advmss": goshape.INTEGER,
        "priority": goshape.INTEGER,
        "table": goshape.Integer(pointer=True),
        "scope": goshape.Integer(pointer=True),
    },
)
_IPAM = goshape.Struct(
    "allocator.IPAMConfig",
    dict(
        _RANGE_FIELDS,
        name=goshape.STRING,
        type=goshape.STRING,
        routes=goshape.List(_ROUTE, pointers=True),
        dataDir=goshape.STRING,
        resolvConf=goshape.STRING,
        ranges=_RANGES,
        stickyStatic=goshape.BOOLEAN,
    ),
    pointer=True,
)
_REQUESTS = goshape.List(_REQUESTED, pointers=True)
_NET = goshape.Struct(
    "allocator.Net",
    {
        "name": goshape.STRING,
        "cniVersion": goshape.STRING,
        "ipam": _IPAM,
        "runtimeConfig": goshape.Struct("runtimeConfig", {"ipRanges": _RANGES, "ips": _REQUESTS}),
        "args": goshape.Struct(
            "args", {"cni": goshape.Struct("args.cni", {"ips": _REQUESTS}, pointer=True)}, pointer=True
        ),
    },
)


class IpamConfig:
    """What host-local needs to know of a network.

    ``sets`` are the range sets in the order that numbers them everywhere, ``requested`` the addresses this call asks
    for, ``routes`` the decoded routes (a dict each, None for a JSON null), ``data_dir`` and ``resolv_conf`` paths.
    ``static_id`` is the id of the static reservations that are the calling pod's: empty unless the network has
    ``stickyStatic`` and the call names a pod.
    """

    __slots__ = ("name", "cni_version", "data_dir", "sets", "routes", "resolv_conf", "requested", "static_id")

    def __init__(self, name: str, cni_version: str) -> None:
        self.name = name
        self.cni_version = cni_version
        self.data_dir = DEFAULT_DATA_DIR
        self.sets: list[RangeSet] = []
        self.routes: list[dict[str, Any] | None] = []
        self.resolv_conf = ""
        self.requested: list[Address] = []
        self.static_id = ""


def load_ipam_config(config: Any, arguments: str = "") -> IpamConfig:
    """Read a network configuration with an ``ipam`` block, and the CNI_ARGS of the call.

    *config* is the document (bytes or str), its tree (`gojson.parse`), or a dict. Raises ConfigError for the first
    fault in the order of spec 2.2; its ``msg`` is Go's text, its ``path`` names the place.
    """
    if isinstance(config, (bytes, str)):
        try:
            config = gojson.parse(config)
        except gojson.SyntaxFault as fault:
            raise ConfigError(str(fault)) from None
    elif isinstance(config, dict):
        config = gojson.from_plain(config)
    try:
        values = _NET.decode(config, None, "")
    except goshape.TypeFault as fault:
        raise ConfigError(str(fault), fault.path) from None
    ipam = values.get("ipam")
    if ipam is None:
        raise ConfigError("IPAM config missing 'ipam' key", "ipam")

    result = IpamConfig(values.get("name") or "", values.get("cniVersion") or "")
    result.data_dir = ipam.get("dataDir") or DEFAULT_DATA_DIR
    result.resolv_conf = ipam.get("resolvConf") or ""
    result.routes = ipam.get("routes") or []
    from_args = _arguments(arguments, bool(ipam.get("stickyStatic"))) if arguments else {}
    result.static_id = from_args.get("static_id", "")
    result.requested = _requested(values, from_args.get("IP"))
    result.sets = _range_sets(values, ipam, result.cni_version)
    if None in result.routes and (result.cni_version or versions.DEFAULT) in ("0.1.0", "0.2.0"):
        # Go reserves an address and then crashes while it converts the result (H8)
        index = result.routes.index(None)
        raise ConfigError("route %d is null" % index, "ipam.routes[%d]" % index)
    return result


def _arguments(text: str, sticky: bool) -> dict[str, Any]:
    """Read CNI_ARGS: ``IP``, and where addresses are sticky the ``static_id`` of the pod."""
    from ..cni import args

    if not sticky:
        return args.parse(text, {"IP": parse_address_or_cidr})
    from . import sticky as sticky_addresses

    values = args.parse(text, dict(sticky_addresses.ARGUMENTS, IP=parse_address_or_cidr))
    return dict(values, static_id=sticky_addresses.static_id(values))


def _requested(values: dict[str, Any], from_args: Address | None) -> list[Address]:
    """Collect what CNI_ARGS, args.cni.ips and runtimeConfig.ips ask for, each address once."""
    wanted: dict[Address, None] = {}
    if from_args is not None:
        wanted[from_args] = None
    lists = (
        ("args.cni.ips", ((values.get("args") or {}).get("cni") or {}).get("ips")),
        ("runtimeConfig.ips", (values.get("runtimeConfig") or {}).get("ips")),
    )
    for path, addresses in lists:
        for index, address in enumerate(addresses or []):
            if address is None:
                # an empty string, for Go; a null makes it crash (H8), and the same sentence fits
                raise ConfigError("cannot understand ip: IP <nil> not v4 nor v6", "%s[%d]" % (path, index))
            wanted[address] = None
    return list(wanted)


def _range_sets(values: dict[str, Any], ipam: dict[str, Any], cni_version: str) -> list[RangeSet]:
    raw: list[tuple[str, Any]] = []
    for index, one in enumerate((values.get("runtimeConfig") or {}).get("ipRanges") or []):
        raw.append(("runtimeConfig.ipRanges[%d]" % index, one))
    if ipam.get("subnet") is not None:
        raw.append(("ipam", [ipam]))
    for index, one in enumerate(ipam.get("ranges") or []):
        raw.append(("ipam.ranges[%d]" % index, one))
    if not raw:
        raise ConfigError("no IP ranges specified", "ipam.ranges")

    sets: list[RangeSet] = []
    for index, (path, one) in enumerate(raw):
        try:
            sets.append(RangeSet.from_values(one))
        except RangeFault as fault:
            where = fault.where.partition("]")[2] if path == "ipam" else fault.where
            msg = f"invalid range set {index}: {fault}"
            raise ConfigError(msg, path + where, kind=fault.kind, wanted=fault.wanted) from None
    families = [one.family for one in sets]
    try:
        one_each = not versions.at_least(cni_version or versions.DEFAULT, "0.3.0")
    except CniError as fault:
        raise ConfigError(fault.msg, "cniVersion", fault.code) from None
    if one_each and max(families.count("4"), families.count("6")) > 1:
        raise ConfigError("CNI version %s does not support more than 1 address per family" % cni_version, "cniVersion")
    for index, one_set in enumerate(sets):
        for later in range(index + 1, len(sets)):
            if one_set.overlaps(sets[later]):
                raise ConfigError("range set %d overlaps with %d" % (index, later), raw[later][0])
    return sets
