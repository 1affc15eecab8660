# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pod's annotation for people: all that is wrong with it at once, in their words, and the text made of its elements.

What an element means is decided by the parser of the plugin itself (multus.selection); here each element is given to it
alone, so that one fault does not hide the next.
"""

from __future__ import annotations

import json
import re

from ..cni import gojson, names
from ..cni.errors import CniError, NodenetError
from ..multus import selection, trees
from ..multus.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

#: The members of an element, in the order in which they are written.
KEYS = (
    "name", "namespace", "interface", "ips", "mac", "infiniband-guid", "portMappings", "bandwidth", "deviceID",
    "cni-args", "default-route",
)  # fmt: skip
OLD_KEY = "interfaceRequest"
_MAY_BE_EMPTY = ("cni-args", "default-route")
_SHORT = ("name", "namespace", "interface")
_TYPE = re.compile(r"cannot unmarshal (?:(\w+) )?into Go value of (?:\[0\]\.?)?(\S*) ?of type (\S+)")
_ADDRESS = re.compile(r"(?:failed to parse (?:IP address|CIDR) \"([^\"]*)\"|invalid IP address: (.*))")
_GIVEN = {"string": "text", "bool": "true or false", "number": "a number", "object": "an object", "array": "a list"}
_WANTED = {"string": "text", "int": "a whole number", "map[string]interface": "an object"}


class Gap(Request):
    """An element that cannot be used. It still has its place, and maybe the interface for which it asks.

    :param shown: what people call it
    """

    __slots__ = ("shown",)

    def __init__(self, shown: str, interface: str = "") -> None:
        super().__init__(interface=interface)
        self.shown = shown


class Reading:
    """What an annotation says. requests: one for each element; faults and warnings: sentences, each with the element
    that it is about."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.faults: list[str] = []
        self.warnings: list[str] = []


def read(text: str, namespace: str = "") -> Reading:
    """Read an annotation, in either form; *namespace* is for elements that name none."""
    reading = Reading()
    if not text.strip():
        if text:
            reading.faults.append("element 1: empty network name")
        return reading
    if not any(char in text for char in '[{"'):
        items = text.split(",")
        for at, item in enumerate(items, 1):
            item = item.strip()
            shown = f"element {at} ({item})" if item else f"element {at}"
            _add(reading, item or " ", namespace, Gap(shown))
        return reading
    try:
        tree = gojson.parse(text)
    except gojson.SyntaxFault:
        reading.faults += syntax_faults(text, "the annotation")
        return reading
    if not isinstance(tree, list):
        reading.faults.append("the annotation has to be a list of objects, or text like namespace/name@interface")
        return reading
    for at, element in enumerate(tree, 1):
        name = gojson.field(element, "name")
        shown = f"element {at} ({name})" if isinstance(name, str) and name else f"element {at}"
        if not isinstance(element, tuple):
            reading.faults.append(f"{shown}: it has to be an object")
            reading.requests.append(Gap(shown))
            continue
        _warn(reading, element, shown)
        asked = gojson.field(element, "interface") or gojson.field(element, OLD_KEY)
        interface = asked if isinstance(asked, str) and names.interface_fault(asked) is None else ""
        _add(reading, trees.text([trees.document(element)]).decode(), namespace, Gap(shown, interface))
    return reading


def elements(text: str, namespace: str = "") -> list[dict[str, Any]]:
    """Return the elements of an annotation as dictionaries with its own names. Raises NodenetError with all faults."""
    reading = read(text, namespace)
    if reading.faults:
        raise NodenetError("; ".join(reading.faults))
    return [as_element(one) for one in reading.requests]


def as_element(request: Request) -> dict[str, Any]:
    """Return a request as an element of the annotation; what is not asked for is left out."""
    values = {
        "name": request.name,
        "namespace": request.namespace,
        "interface": request.interface,
        "ips": list(request.ips),
        "mac": request.mac,
        "infiniband-guid": request.infiniband_guid,
        "portMappings": [dict(one) for one in request.port_mappings],
        "bandwidth": dict(request.bandwidth) if request.bandwidth is not None else None,
        "deviceID": request.device_id,
        "cni-args": None if request.cni_args is None else gojson.plain(request.cni_args),
        "default-route": None if request.gateways is None else list(request.gateways),
    }
    # an empty default-route, and empty cni-args, mean something
    return {key: values[key] for key in KEYS if values[key] or (values[key] is not None and key in _MAY_BE_EMPTY)}


def text_of(elements_: Sequence[Any], form: str = "auto") -> str:
    """Return the text of an annotation.

    :param elements_: dictionaries with the annotation's own names, or texts like ``namespace/name@interface``
    :param form: "json", "short", or "auto" for the short form wherever it can say all
    :raises NodenetError: an element is none, or cannot be told in the short form
    """
    found: list[dict[str, Any]] = []
    faults: list[str] = []
    for at, one in enumerate(elements_, 1):
        try:
            found += [_checked(one)]
        except NodenetError as fault:
            faults.append(str(fault).replace("element 1", f"element {at}", 1))
    if faults:
        raise NodenetError("; ".join(faults))
    if form != "json":
        try:
            return ",".join(_short(one, at) for at, one in enumerate(found, 1))
        except NodenetError:
            if form == "short":
                raise
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def _checked(one: Any) -> dict[str, Any]:
    """Return an element as it is read back, or say what is wrong with it."""
    if isinstance(one, str):
        listed = elements(one) if not any(char in one for char in '[{",') else []
        if len(listed) != 1:
            raise NodenetError(f"element 1 ({one}): it has to be like namespace/name@interface, one network each")
        return listed[0]
    if not isinstance(one, dict):
        raise NodenetError("element 1: it has to be a dictionary, or text like namespace/name@interface")
    unknown = [str(key) for key in one if key not in KEYS]
    if unknown:
        raise NodenetError(f"element 1 ({one.get('name')}): there is no {', '.join(unknown)}, only {', '.join(KEYS)}")
    try:
        text = json.dumps([{key: value for key, value in one.items() if value is not None}])
    except (TypeError, ValueError) as fault:
        raise NodenetError(f"element 1 ({one.get('name')}): it cannot be written as JSON: {fault}") from None
    (element,) = elements(text)
    return element


def _short(element: dict[str, Any], at: int) -> str:
    more = [key for key in element if key not in _SHORT]
    shown = f"element {at} ({element['name']})"
    if more:
        raise NodenetError(f"{shown}: the short form cannot tell {', '.join(more)}")
    text = f"{element['namespace']}/" if element.get("namespace") else ""
    text += element["name"] + (f"@{element['interface']}" if element.get("interface") else "")
    try:
        same = elements(text) == [element]
    except NodenetError:
        same = False
    if not same:
        raise NodenetError(f"{shown}: the short form cannot tell such names")
    return text


def _add(reading: Reading, text: str, namespace: str, gap: Gap) -> None:
    """Read one element; *gap* is what stays of it if it cannot be used."""
    try:
        (request,) = selection.parse_networks(text, namespace)
    except CniError as fault:
        reading.faults.append(f"{gap.shown}: {_words(str(fault))}")
        reading.requests.append(gap)
        return
    if not request.name:
        reading.faults.append(f"{gap.shown}: empty network name")
    elif request.interface and names.interface_fault(request.interface) is not None:
        reading.faults.append(f"{gap.shown}: {_interface(request.interface)}")
    else:
        reading.requests.append(request)
        return
    reading.requests.append(gap)


def _warn(reading: Reading, element: Any, shown: str) -> None:
    known = {gojson.fold(key) for key in KEYS}
    for key, _value in element:
        if gojson.fold(key) == gojson.fold(OLD_KEY):
            reading.warnings.append(f"{shown}: {OLD_KEY} is the old name of interface, use that")
        elif gojson.fold(key) not in known:
            reading.warnings.append(f"{shown}: Multus does not know {key} and passes over it")


def syntax_faults(text: str, what: str) -> list[str]:
    """Return why a text, which people know as *what*, is no JSON."""
    from . import findings, jsonfaults

    told = findings.from_facts(jsonfaults.explain(text, what))
    return [f"{what} is {one['text']}" if one["text"].startswith("not ") else one["text"] for one in told]


def _words(text: str) -> str:
    """Return the reason of a fault as its reader would put it; the parser has Go's words."""
    found = _TYPE.search(text)
    if found:
        given, path, wanted = found.groups()
        kind = "a list" if wanted.startswith("[]") else _WANTED.get(wanted, "an object")
        given = _GIVEN.get(given, "")
        return f"{path or 'it'} has to be {kind}" + (f", not {given}" if given else "")
    if "cannot unmarshal number" in text:
        return f"{text.split('cannot unmarshal number ')[1].split(' ')[0]} has to be a whole number"
    found = _ADDRESS.search(text)
    if found:
        return f"{(found.group(1) or found.group(2))!r} is no IP address" + (
            " with a prefix length" if "CIDR" in text else ""
        )
    if "invalid MAC address" in text:
        what = "infiniband-guid" if "GUID" in text else "mac"
        return f"{what} {text.split('address ')[1].rpartition(':')[0]!r} is no hardware address"
    if "failed at '" in text:
        return f"more than one {text.split('failed at ')[1][:3]}; it has to be like namespace/name@interface"
    if "mismatch @" in text:
        return f"{text.split('mismatch @ ')[1]} has to consist of lower case letters, digits and '-' in between"
    if "interface name '" in text:
        return _interface(text.split("interface name '")[1][:-1])
    return text.split(": ")[-1]


def _interface(name: str) -> str:
    length = len(name.encode("utf-8", "surrogateescape"))
    if length > 15:
        return f"the interface name {name!r} has {length} characters, at most 15 are allowed"
    return f"{name!r} cannot be the name of an interface, which has no white space, '/' or ':'"
