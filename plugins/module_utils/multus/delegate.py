# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One network to attach: its configuration, what is asked of it, its place in the order (multus spec 2.1, 6.1, 7)."""

from __future__ import annotations

from ..cni import goprint, goshape, netconf, versions
from ..cni.errors import INTERNAL, CniError
from ..cni.goshape import BOOLEAN, STRING, List, Struct
from . import trees
from .request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..cni.netconf import NetworkConfig

_FLAGS = ("disableCheck", "disableGC", "loadOnlyInlinedPlugins")


class _Booleans(goshape.Shape):
    name = "map[string]bool"

    def decode(self, node: Any, old: Any, path: str) -> Any:
        if node is None:
            return old
        if not isinstance(node, tuple):
            raise goshape.mismatch(node, path, self.name)
        values = dict(old or {})
        for key, value in node:
            values[key] = BOOLEAN.decode(value, values.get(key, False), f"{path}.{key}")
        return values


_IPAM = Struct("types.IPAM", {"type": STRING})
_DNS = Struct(
    "types.DNS",
    {"nameservers": List(STRING), "domain": STRING, "search": List(STRING), "options": List(STRING)},
)
_PLUGIN = Struct(
    "types.PluginConf",
    {
        "cniVersion": STRING,
        "name": STRING,
        "type": STRING,
        "capabilities": _Booleans(),
        "ipam": _IPAM,
        "dns": _DNS,
    },
)
_LIST = Struct(
    "types.NetConfList",
    {
        "cniVersion": STRING,
        "name": STRING,
        "disableCheck": BOOLEAN,
        "disableGC": BOOLEAN,
        "plugins": List(_PLUGIN, pointers=True),
    },
)


class Delegate:
    """One network to attach.

    ``tree`` is its configuration, ``data`` the text of it that plugins and caches get; ``values`` and ``list_values``
    are the parts of it that have a type. ``name`` is shown to people: that of the configuration, or
    ``<namespace>/<object>``. ``is_master``: its result is that of the whole call. ``device_id``: given by
    *resource_name* or asked for. ``filter_ipv4`` and ``filter_ipv6``: another network takes the default route.
    """

    def __init__(self, tree: Any, data: bytes, values: dict[str, Any], list_values: dict[str, Any] | None) -> None:
        self.tree = tree
        self.data = data
        self.values = values
        self.list_values = list_values
        self.name = str((list_values or values).get("name") or "")
        self.request = Request()
        self.is_master = False
        self.device_id = ""
        self.resource_name = ""
        self.filter_ipv4 = False
        self.filter_ipv6 = False

    @property
    def is_list(self) -> bool:
        return self.list_values is not None

    @property
    def kind(self) -> str:
        """The plugin's type, "" for a list of plugins."""
        return "" if self.is_list else str(self.values.get("type") or "")

    @property
    def network(self) -> str:
        """The network's name in its configuration."""
        return str((self.values if self.list_values is None else self.list_values).get("name") or "")

    @property
    def cni_version(self) -> str:
        return str((self.values if self.list_values is None else self.list_values).get("cniVersion") or "")

    def set_version(self, version: str) -> None:
        """Give a list that names no version that of the Multus configuration (multus spec 11.5)."""
        values = trees.document(self.tree)
        values["cniVersion"] = version
        self.replace(values)

    def replace(self, values: dict[str, Any]) -> None:
        """Take a changed configuration."""
        fresh = load_document(values)
        self.tree, self.data, self.values, self.list_values = fresh.tree, fresh.data, fresh.values, fresh.list_values

    def plugins(self) -> list[Any]:
        """Return the trees of the plugins."""
        if self.list_values is None:
            return [self.tree]
        listed = _exact(self.tree, "plugins")
        return listed if isinstance(listed, list) else []

    def load(self) -> NetworkConfig:
        """Return the network as the runtime runs it. Raises CniError (code 999) with libcni's words."""
        if self.list_values is None:
            config = netconf.NetworkConfig("", self.network, self.cni_version, [self.tree])
            config.data = self.data
            return config
        return load_list(self.tree, self.data)


class Unknown(Delegate):
    """In the place of a network of which nothing is known any more, so that the others keep their interfaces."""

    def __init__(self) -> None:
        super().__init__((), b"", {}, None)


def load_delegate(tree: Any, data: bytes) -> Delegate:
    """Return the delegate of a configuration, a single plugin or a list. Raises CniError (code 999)."""
    try:
        values = _PLUGIN.decode(tree, None, "")
    except goshape.TypeFault as fault:
        raise _fault(f"LoadDelegateNetConf: error unmarshalling delegate config: {in_struct(fault)}") from None
    if values.get("type"):
        return Delegate(tree, data, values, None)
    prefix = "LoadDelegateNetConf: failed with: LoadDelegateNetConfList: "
    try:
        list_values = _LIST.decode(tree, None, "")
    except goshape.TypeFault as fault:
        text = in_struct(fault, "NetConfList")
        raise _fault(f"{prefix}error unmarshalling delegate conflist: {text}") from None
    if list_values.get("plugins") is None:
        raise _fault(f"{prefix}delegate must have the 'type' or 'plugin' field")
    plugins = list_values["plugins"]
    # upstream crashes on a list without a first plugin (M1)
    if not plugins or plugins[0] is None or not plugins[0].get("type"):
        raise _fault(f"{prefix}a plugin delegate must have the 'type' field")
    return Delegate(tree, data, values, list_values)


def load_document(values: dict[str, Any]) -> Delegate:
    """Return the delegate of a configuration that was put together here; its text is as Go prints a map.

    Raises CniError (code 999).
    """
    ordered = goprint.in_order(values)
    return load_delegate(trees.tree(ordered), trees.text(ordered))


def load_list(tree: Any, data: bytes, own_plugins: list[Any] | None = None) -> NetworkConfig:
    """Return a list of plugins as libcni reads it; *own_plugins* takes the place of those in it.

    Raises CniError (code 999) with libcni's words.
    """
    prefix = "error parsing configuration list: "
    if not isinstance(tree, tuple):
        raise _list_fault(f"{prefix}json: cannot unmarshal into Go value of type map[string]interface {{}}")
    name = _exact(tree, "name")
    if not isinstance(name, str):
        raise _list_fault(prefix + ("no name" if name is None else "invalid name type"))
    flags = {}
    for key in _FLAGS:
        value = _exact(tree, key)
        value = value.lower() if isinstance(value, str) else value
        if value not in (None, True, False, "true", "false"):
            raise _list_fault(f"{prefix}invalid value {value!r} for {key}")
        flags[key] = value in (True, "true")
    plugins = own_plugins if own_plugins is not None else _exact(tree, "plugins")
    if not isinstance(plugins, list):
        raise _list_fault(f"{prefix}invalid 'plugins' type" if plugins is not None else f"{prefix}no 'plugins' key")
    for index, plugin in enumerate(plugins):
        try:
            values = _PLUGIN.decode(plugin, None, "") if isinstance(plugin, tuple) else None
        except goshape.TypeFault as fault:
            text = f"failed to parse plugin config {index}: error parsing configuration: {fault}"
            raise _list_fault(text) from None
        if not values or not values.get("type"):
            raise _list_fault(f"failed to parse plugin config {index}: error parsing configuration: missing 'type'")
    config = netconf.NetworkConfig("", name, _list_version(tree), plugins, is_list=True)
    config.data = data
    config.disable_check = flags["disableCheck"]
    config.disable_gc = flags["disableGC"]
    return config


def _list_version(tree: Any) -> str:
    """Return the version of a list: the highest that it offers and we speak (multus spec 6.1)."""
    version = _exact(tree, "cniVersion")
    offered = _exact(tree, "cniVersions")
    named = [one for one in offered if isinstance(one, str)] if isinstance(offered, list) else []
    candidates = [one for one in [version, *named] if isinstance(one, str) and one]
    usable = [one for one in candidates if versions.at_least(versions.CURRENT, one)]
    if named and usable:
        return max(usable, key=versions.parse)
    return version if isinstance(version, str) else ""


def in_struct(fault: goshape.TypeFault, struct: str = "PluginConf") -> str:
    """Return a fault's text as Go words it for a member of a struct."""
    return str(fault).replace(f"Go value of {fault.path} ", f"Go struct field {struct}.{fault.path} ")


def _exact(tree: Any, key: str) -> Any:
    """Return a member of a list's outer object by its exact name, the last one wins."""
    return next((value for name, value in reversed(tree) if name == key), None)


def _fault(message: str) -> CniError:
    return CniError(INTERNAL, message)


class ListFault(CniError):
    """libcni cannot read a list of plugins."""


def _list_fault(message: str) -> ListFault:
    return ListFault(INTERNAL, message)
