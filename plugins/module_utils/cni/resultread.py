# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what a plugin prints for ADD, as libcni does: types and addresses are checked (multus spec 7.7, B)."""

from __future__ import annotations

import _socket

from . import gojson, goshape, results, versions
from .errors import INTERNAL, CniError
from .goshape import INTEGER, STRING, List, Struct, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .results import Document


def address(text: str) -> str:
    """Return an IP address as it is. Raises ValueError with Go's words."""
    if not is_address(text):
        raise ValueError(f"invalid IP address: {text}")
    return text


def _network(text: str) -> str:
    host, _slash, prefix = text.partition("/")
    if not (is_address(host) and prefix.isascii() and prefix.isdigit() and len(prefix) < 5):
        raise ValueError(f"invalid CIDR address: {text}")
    if int(prefix) > (128 if ":" in host else 32):
        raise ValueError(f"invalid CIDR address: {text}")
    return text


def is_address(text: str) -> bool:
    """Tell whether *text* is an IP address as Go reads it (multus spec C)."""
    try:
        _socket.inet_pton(_socket.AF_INET6 if ":" in text else _socket.AF_INET, text)
    except (OSError, ValueError):
        return False
    return True


_IP = Text("*net.IP", address)
_CIDR = Text("*net.IPNet", _network)
_NAMES = List(STRING)
_DNS = Struct("types.DNS", {"nameservers": _NAMES, "domain": STRING, "search": _NAMES, "options": _NAMES})
_NUMBER = goshape.Integer(pointer=True)
_ROUTES = List(
    Struct(
        "types.Route",
        {
            "dst": _CIDR,
            "gw": _IP,
            "mtu": INTEGER,
            "advmss": INTEGER,
            "priority": INTEGER,
            "table": _NUMBER,
            "scope": _NUMBER,
        },
    ),
    pointers=True,
)
_INTERFACES = List(
    Struct(
        "types100.Interface",
        {"name": STRING, "mac": STRING, "mtu": INTEGER, "sandbox": STRING, "socketPath": STRING, "pciID": STRING},
    ),
    pointers=True,
)
_IPS = List(
    Struct("types100.IPConfig", {"version": STRING, "interface": _NUMBER, "address": _CIDR, "gateway": _IP}),
    pointers=True,
)
_CONFIGURATION = Struct("types020.IPConfig", {"ip": _CIDR, "gateway": _IP, "routes": _ROUTES}, pointer=True)
_OLD = Struct("types020.Result", {"cniVersion": STRING, "ip4": _CONFIGURATION, "ip6": _CONFIGURATION, "dns": _DNS})
_NEW = Struct(
    "types100.Result",
    {"cniVersion": STRING, "interfaces": _INTERFACES, "ips": _IPS, "routes": _ROUTES, "dns": _DNS},
)
_VERSION = Struct("", {"cniVersion": STRING})


def read(output: bytes, config_version: str) -> Document:
    """Return a plugin's result in the layout of its own version, members that no version knows left out.

    One that names no version has that of the configuration. Raises CniError (code 999) with libcni's words.
    """
    try:
        tree = gojson.parse(output)
    except gojson.SyntaxFault as fault:
        raise CniError(INTERNAL, f"failed to unmarshal raw result: {fault}") from None
    return from_tree(tree, config_version)


def from_tree(tree: object, config_version: str) -> Document:
    """Return what `read` returns, of a document that is parsed already."""
    if tree is None:
        tree = ()
    if not isinstance(tree, tuple):
        kind = {list: "array", str: "string", gojson.Number: "number", bool: "bool"}.get(tree.__class__, "value")
        text = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise CniError(INTERNAL, f"failed to unmarshal raw result: {text}")
    named = next((value for key, value in reversed(tree) if key == "cniVersion"), None)
    version = named if isinstance(named, str) and named else config_version or versions.DEFAULT
    if version not in versions.SUPPORTED:
        raise CniError(INTERNAL, f'unsupported CNI result version "{version}"')
    shape = _NEW if versions.at_least(version, "0.3.0") else _OLD
    try:
        values = shape.decode(tree, None, "")
    except goshape.TypeFault as fault:
        raise CniError(INTERNAL, str(fault)) from None
    for key in ("interfaces", "ips", "routes"):
        if values.get(key) is not None:
            values[key] = [one for one in values[key] if one is not None]
    with_address = [(one, "address") for one in values.get("ips") or []]
    with_address += [(values[key], "ip") for key in ("ip4", "ip6") if key in values]
    if not all(key in one for one, key in with_address):
        raise CniError(INTERNAL, "invalid CIDR address: <nil>")  # what libcni hands on, and the next plugin refuses
    values["cniVersion"] = version
    parsed = results.parse(values)
    if shape is _OLD and not parsed["ips"]:  # `render` refuses what has no address, a result of 0.2.0 may have none
        return {"cniVersion": version, "dns": parsed["dns"]}
    return results.render(parsed, version)


def plain(output: bytes) -> object:
    """Return output as plain values, as text where it is no JSON document: for people."""
    try:
        return gojson.plain(gojson.parse(output))
    except (gojson.SyntaxFault, ValueError):
        return output.decode("utf-8", "replace")
