# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the plugins of a configuration against what each plugin reads: keys, types, values.

Go ignores an unknown key without a word and fails on a wrong type or value, but only when the first pod comes.
"""

from __future__ import annotations

from ..cni import gojson, names
from ..host_local import addresses
from . import plugin_keys, plugin_rules
from .confdir import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WANTED = {
    "s": "a string",
    "b": "true or false",
    "i": "a whole number",
    "u": "a whole number of 0 or more",
    "U": "a whole number of 0 or more",
    "l": "a list",
    "m": "an object",
    ".": "an object",
}
_DEEPEST = 8  # delegates within delegates, which nobody has, and our stack ends somewhere
_LIMITS = {"i": (-(1 << 63), 1 << 63), "u": (0, 1 << 32), "U": (0, 1 << 64)}


def check_config(tree: Any, version: str, where: str, place: str = "") -> list[dict[str, Any]]:
    """Return the facts about the plugins of one configuration, a list of plugins or a single one.

    :param version: its cniVersion, "" if it names none
    :param place: what to put before the paths of keys
    """
    if place.count("delegate") > _DEEPEST:
        return []
    listed = gojson.field(tree, "plugins")
    if not isinstance(listed, list):
        return check_plugins([tree], version, where, [place.rstrip(".")])
    walk = _Walk(where, "the list")
    for key, _value in tree:
        if not _known_to_the_list(key):
            walk.unknown(key, place + key, plugin_keys.keys_of(".list") or {}, True)
    return walk.facts + check_plugins(listed, version, where, [f"{place}plugins[{at}]" for at in range(len(listed))])


def check_plugins(
    plugins: list[Any], version: str, where: str, places: list[str], behind: list[str] | None = None
) -> list[dict[str, Any]]:
    """Return the facts about a chain of plugins.

    :param places: the path of each plugin
    :param behind: types of the plugins that run before these
    """
    facts: list[dict[str, Any]] = []
    before = list(behind or [])
    for plugin, place in zip(plugins, places):
        kind = text_of(gojson.field(plugin, "type"))
        facts += check_keys(plugin, kind, where, place)
        facts += check_types(plugin, kind, where, place)
        facts += plugin_rules.check(plugin, kind, where, place, version, before)
        for at, inner in enumerate(_delegates(plugin, kind)):
            label = "delegate" if kind == "flannel" else f"delegates[{at}]"
            path = f"{place}.{label}" if place else label
            if kind == "flannel":
                inner = _as_flannel_sends(inner)
            inner_version = text_of(gojson.field(inner, "cniVersion")) or version
            facts += check_config(inner, inner_version, where, path + ".")
        before.append(kind)
    return facts


def check_types(plugin: Any, kind: str, where: str, place: str) -> list[dict[str, Any]]:
    """Return a fact for the plugin and for its ipam if the type is no known one, but nearly so."""
    facts = []
    for name, path in ((kind, "type"), (text_of(gojson.field(gojson.field(plugin, "ipam"), "type")), "ipam.type")):
        prefix = "" if path == "type" else "ipam/"
        if not name or "/" in name or plugin_keys.keys_of(prefix + name) is not None or _is_leftover(name):
            continue
        from difflib import get_close_matches  # as for keys

        near = get_close_matches(name.lower().replace("_", "-"), plugin_keys.known_types(), 1, 0.8)
        if near and near[0] != name:
            path = f"{place}.{path}" if place else path
            facts.append({"kind": "conf-type-misspelt", "where": where, "path": path, "type": name, "near": near[0]})
    return facts


def check_keys(plugin: Any, kind: str, where: str, place: str) -> list[dict[str, Any]]:
    """Return the facts about the keys of one plugin and of its ipam; none about a plugin that nobody described."""
    own = plugin_keys.keys_of(kind) if kind[:1].isalpha() and "/" not in kind else None
    walk = _Walk(where, kind)
    if own is not None:
        walk.object(plugin, dict(plugin_keys.keys_of(".plugin") or {}, **own), place)
    ipam = gojson.field(plugin, "ipam")
    if isinstance(ipam, tuple):
        name = text_of(gojson.field(ipam, "type"))
        known = plugin_keys.keys_of("ipam/" + name) if name else None
        if known is not None and (kind, name) != ("calico", "host-local"):  # which calico reads with words of its own
            inner = _Walk(where, name, types=name != "host-local")  # whose types and values are checked elsewhere
            inner.object(ipam, known, f"{place}.ipam" if place else "ipam")
            walk.facts += inner.facts
    return walk.facts


def _known_to_the_list(key: str) -> bool:
    """Tell whether libcni reads the key of a list's outer object, or a comment was meant; its case matters there."""
    known = (plugin_keys.keys_of(".list") or {}).get(gojson.fold(key))
    return plugin_rules.is_remark(key) or (known is not None and known.name == key)


def _delegates(plugin: Any, kind: str) -> list[Any]:
    if kind == "flannel":
        delegate = gojson.field(plugin, "delegate")
        return [delegate] if isinstance(delegate, tuple) else []
    listed = gojson.field(plugin, "delegates") if kind.startswith("multus") else None
    return [one for one in listed if isinstance(one, tuple)] if isinstance(listed, list) else []


def _as_flannel_sends(delegate: Any) -> Any:
    """Return a delegate of flannel with what flannel adds: its type unless given, and an ipam."""
    added: list[tuple[str, Any]] = [("ipam", (("type", "host-local"),))]
    if gojson.field(delegate, "type") is None:
        added.append(("type", "bridge"))
    if gojson.field(delegate, "type") in (None, "bridge") and gojson.field(delegate, "isGateway") is None:
        added.append(("isGateway", True))
    return (*delegate, *added)


class _Walk:
    """Collects the facts about one plugin. types: False if only its keys count."""

    def __init__(self, where: str, plugin: str, types: bool = True) -> None:
        self.where = where
        self.plugin = plugin
        self.types = types
        self.facts: list[dict[str, Any]] = []

    def fact(self, kind: str, path: str, **params: Any) -> None:
        self.facts.append(dict(params, kind=kind, where=self.where, path=path, plugin=self.plugin))

    def object(self, node: Any, keys: dict[str, plugin_keys.Key], path: str) -> None:
        given = set()
        for name, value in node:
            here = f"{path}.{name}" if path else name
            key = keys.get(gojson.fold(name))
            if key is None:
                self.unknown(name, here, keys, self.plugin not in plugin_keys.PRODUCTS)
            elif value is not None:
                if value != "":
                    given.add(key.name)
                self.value(value, key.kind, key.rule, here)
        for key in keys.values() if self.types else ():
            if key.needed and key.name not in given:
                self.fact("conf-key-needed", f"{path}.{key.name}" if path else key.name)

    def unknown(self, name: str, path: str, keys: dict[str, plugin_keys.Key], always: bool) -> None:
        if plugin_rules.is_remark(name):
            return
        from difflib import get_close_matches  # few files have a key that nobody knows

        near = get_close_matches(gojson.fold(name), list(keys), 1, 0.8)
        if near:
            self.fact("conf-key-misspelt", path, near=keys[near[0]].name)
        elif always:
            self.fact("conf-key-unknown", path)

    def value(self, value: Any, kind: str, rule: str, path: str) -> None:
        """Check a value against a type and a rule; null is fine for Go everywhere."""
        if value is None or kind == "*" or (isinstance(value, str) and _is_leftover(value)):
            return
        if not _fits(value, kind[0]):
            if self.types:
                self.fact("conf-key-type", path, wanted=_WANTED[kind[0]], found=_shown(value))
        elif kind[0] == "l":
            for at, one in enumerate(value):
                self.value(one, kind[1:], rule, f"{path}[{at}]")
        elif kind[0] == "m":
            for name, one in value:
                self.value(one, kind[1:], rule, f"{path}.{name}")
        elif kind[0] == ".":
            self.object(value, plugin_keys.keys_of(kind) or {}, path)
        elif rule and self.types and value != "":
            wanted = _broken_rule(value, rule.lstrip("?"))
            if wanted:
                doubtful = "conf-value-default" if rule[0] == "?" else "conf-value-refused"
                self.fact(doubtful, path, value=str(value), wanted=wanted)


def _is_leftover(value: str) -> bool:
    """Tell whether a value is what a template left, which is told as such and once."""
    if not any(mark in value for mark in ("{", "__", "<", "$", "@")):
        return False
    from .jsonfaults import leftovers

    return bool(leftovers(value, ""))


def _fits(value: Any, kind: str) -> bool:
    if kind in _LIMITS:
        low, high = _LIMITS[kind]
        literal = value.literal if isinstance(value, gojson.Number) else "?"
        digits = literal[1:] if literal[0] == "-" else literal
        return digits.isdigit() and len(digits) <= 20 and low <= int(literal) < high
    wanted = {"s": str, "b": bool, "l": list}.get(kind, tuple)
    return isinstance(value, wanted)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"the string {value!r}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, gojson.Number):
        return f"the number {value}"
    return "a list" if isinstance(value, list) else "an object"


def _broken_rule(value: Any, rule: str) -> str:
    """Return what the rule wants if the value breaks it, else ""."""
    if ".." in rule:
        low, high = rule.split("..")
        return "" if int(low) <= int(value.literal) <= int(high) else f"a number from {low} to {high}"
    if "|" in rule:
        choices = rule.split("|")
        return "" if value in choices else "one of " + ", ".join(choices)
    if rule == "mac":
        return "" if _is_mac(value) else "a MAC address"
    if rule == "ifname":
        return "the name of an interface" if names.interface_fault(value) else ""
    try:
        (addresses.parse_cidr if rule == "cidr" else addresses.parse_address)(value)
        return ""
    except ValueError:
        return "an address with a prefix length, such as 192.0.2.1/24" if rule == "cidr" else "an IP address"


def _is_mac(text: str) -> bool:
    """Tell whether Go reads a hardware address in it: 6, 8 or, for InfiniBand, 20 octets."""
    mark = "." if "." in text else text[2:3]
    groups = text.split(mark) if mark in (":", "-", ".") else []
    width, counts = (4, (3, 4, 10)) if mark == "." else (2, (6, 8, 20))
    return len(groups) in counts and all(
        len(one) == width and not one.strip("0123456789abcdefABCDEF") for one in groups
    )
