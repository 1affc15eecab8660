# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The networks that a pod's annotation selects (multus spec 5.1, 5.2)."""

from __future__ import annotations

import _socket

from ..cni import gojson, goshape, resultread
from ..cni.errors import INTERNAL, CniError
from ..cni.goshape import STRING, List, Struct, Text
from .request import BANDWIDTH, PORT_MAPPING, Request, bandwidth, port_mappings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LABEL_ENDS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_LABEL = _LABEL_ENDS | {"-"}
_HEX = frozenset("0123456789abcdefABCDEF")
_NO_INTERFACE = frozenset(" \t\n\v\f\r/")
_INTERFACE_MAX = 15
_MAPPED = b"\0" * 10 + b"\xff\xff"
_PREFIX = "parsePodNetworkAnnotation: "
_OBJECT = _PREFIX + "parsePodNetworkObjectName: "


def parse_networks(text: str, namespace: str) -> list[Request]:
    """Return the networks of an annotation's text; *namespace* is for elements that name none.

    Raises CniError (code 999) with Go's words.
    """
    if not text:
        raise _fault('pod annotation does not have "network" as key')
    if any(char in text for char in '[{"'):
        requests = _from_json(text)
    else:
        requests = [_from_item(item.strip()) for item in text.split(",")]
    for request in requests:
        request.namespace = request.namespace or namespace
        _check(request)
    return requests


def _fault(message: str) -> CniError:
    return CniError(INTERNAL, _PREFIX + message)


def _from_item(item: str) -> Request:
    """Read ``[namespace/]name[@interface]``."""
    parts = item.split("/")
    if len(parts) > 2:
        raise CniError(INTERNAL, _OBJECT + "Invalid network object (failed at '/')")
    namespace = parts[0].strip() if len(parts) == 2 else ""
    parts = parts[-1].split("@")
    if len(parts) > 2:
        raise CniError(INTERNAL, _OBJECT + "Invalid network object (failed at '@')")
    name = parts[0].strip()
    interface = parts[1].strip() if len(parts) == 2 else ""
    for label in (namespace, name):
        if label and not _is_label(label):
            raise CniError(
                INTERNAL,
                _OBJECT + "Failed to parse: one or more items did not match comma-delimited format (must consist of "
                "lower case alphanumeric characters). Must start and end with an alphanumeric character), "
                f"mismatch @ '{label}'",
            )
    if len(interface.encode("utf-8", "surrogateescape")) > _INTERFACE_MAX or not _NO_INTERFACE.isdisjoint(interface):
        raise CniError(
            INTERNAL,
            _OBJECT + "Failed to parse interface name: must be less than 15 chars and not contain '/' or spaces. "
            f"interface name '{interface}'",
        )
    return Request(namespace, name, interface)


def _is_label(text: str) -> bool:
    return text[0] in _LABEL_ENDS and text[-1] in _LABEL_ENDS and _LABEL.issuperset(text)


def _address(text: str) -> str:
    """Return an address as Go prints it, an IPv4-mapped one as IPv4; "" stays."""
    if not text:
        return ""
    resultread.address(text)
    family = _socket.AF_INET6 if ":" in text else _socket.AF_INET
    packed = _socket.inet_pton(family, text)
    if packed[:12] == _MAPPED:
        family, packed = _socket.AF_INET, packed[12:]
    return _socket.inet_ntop(family, packed)


class _Arguments(goshape.Shape):
    """A map: anything but an object is refused."""

    name = "map[string]interface {}"

    def decode(self, node: Any, old: Any, path: str) -> Any:
        if node is None:
            return old
        if not isinstance(node, tuple):
            raise goshape.mismatch(node, path, self.name)
        return (old or ()) + node


_ELEMENT = Struct(
    "types.NetworkSelectionElement",
    {
        "name": STRING,
        "namespace": STRING,
        "ips": List(STRING),
        "mac": STRING,
        "infiniband-guid": STRING,
        "interface": STRING,
        "interfaceRequest": STRING,
        "portMappings": List(PORT_MAPPING, pointers=True),
        "bandwidth": BANDWIDTH,
        "deviceID": STRING,
        "cni-args": _Arguments(),
        "default-route": List(Text("net.IP", _address, null_is_empty=True)),
    },
)


def _from_json(text: str) -> list[Request]:
    prefix = "failed to parse pod Network Attachment Selection Annotation JSON format: "
    try:
        tree = gojson.parse(text)
    except gojson.SyntaxFault as fault:
        raise _fault(f"{prefix}{fault}") from None
    if tree is None:
        return []
    if not isinstance(tree, list):
        kind = {tuple: "object", str: "string", gojson.Number: "number", bool: "bool"}[tree.__class__]
        raise _fault(f"{prefix}json: cannot unmarshal {kind} into Go value of type []*types.NetworkSelectionElement")
    requests = []
    for index, node in enumerate(tree):
        if node is None:
            raise _fault(f"{prefix}element {index} is null")  # M1
        try:
            values = _ELEMENT.decode(node, None, f"[{index}]")
        except goshape.TypeFault as fault:
            raise _fault(f"{prefix}{fault}") from None
        requests.append(_request(values))
    return requests


def _request(values: dict[str, Any]) -> Request:
    request = Request(values.get("namespace", ""), values.get("name", ""), values.get("interface", ""))
    if not request.interface and values.get("interfaceRequest"):
        request.interface = values["interfaceRequest"]
    request.mac = values.get("mac", "")
    request.infiniband_guid = values.get("infiniband-guid", "")
    request.ips = [one or "" for one in values.get("ips") or []]
    request.port_mappings = port_mappings([one for one in values.get("portMappings") or [] if one is not None])
    request.bandwidth = bandwidth(values.get("bandwidth"))
    request.device_id = values.get("deviceID", "")
    request.gateways = values.get("default-route")
    request.cni_args = values.get("cni-args")
    return request


def _check(request: Request) -> None:
    """Refuse addresses that are none."""
    if request.mac and not is_mac(request.mac):
        raise _fault(f"failed to mac: address {request.mac}: invalid MAC address")
    if request.infiniband_guid and not is_mac(request.infiniband_guid):
        raise _fault(f"failed to validate infiniband GUID: address {request.infiniband_guid}: invalid MAC address")
    for text in request.ips:
        address, slash, prefix = text.partition("/")
        if not slash:
            if not resultread.is_address(address):
                raise _fault(f'failed to parse IP address "{text}"')
        elif not (resultread.is_address(address) and _is_prefix(prefix, 128 if ":" in address else 32)):
            raise _fault(f'failed to parse CIDR "{text}": invalid CIDR address: {text}')


def _is_prefix(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 5 and int(text) <= most


def is_mac(text: str) -> bool:
    """Tell whether *text* is a hardware address as Go reads it: 6, 8 or 20 octets (multus spec C)."""
    for separator, digits in ((":", 2), ("-", 2), (".", 4)):
        if separator in text:
            groups = text.split(separator)
            octets = len(groups) * digits // 2
            return octets in (6, 8, 20) and all(len(one) == digits and _HEX.issuperset(one) for one in groups)
    return False
