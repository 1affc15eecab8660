# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network configuration files as libcni loads them (runtimes spec 2.1)."""

from __future__ import annotations

from . import gojson, goshape, versions
from .errors import DECODING_FAILURE, INVALID_NETWORK_CONFIG, CniError, ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SINGLE = goshape.Struct("types.PluginConf", {key: goshape.STRING for key in ("cniVersion", "name", "type")})
_FLAGS = ("disableCheck", "disableGC", "loadOnlyInlinedPlugins")
_DNS = goshape.Struct(
    "types.DNS",
    {"domain": goshape.STRING, **{key: goshape.List(goshape.STRING) for key in ("nameservers", "search", "options")}},
)
_PLUGIN = goshape.Struct("types.PluginConf", {"type": goshape.STRING})


class NetworkConfig:
    """One network: its ``name`` ("" if a single configuration has none), the ``cni_version`` in effect ("" if none is
    given), and the trees (`gojson.parse`) of its ``plugins`` in order.

    ``data`` is the text that it was read from, ``is_list`` whether that is a list of plugins; ``disable_check`` and
    ``disable_gc`` tell the runtime to leave these commands out.
    """

    __slots__ = ("filename", "name", "cni_version", "plugins", "data", "is_list", "disable_check", "disable_gc")

    def __init__(self, filename: str, name: str, cni_version: str, plugins: list[Any], is_list: bool = False) -> None:
        self.filename = filename
        self.name = name
        self.cni_version = cni_version
        self.plugins = plugins
        self.data = b""
        self.is_list = is_list
        self.disable_check = False
        self.disable_gc = False


def load_config(data: bytes, filename: str) -> NetworkConfig:
    """Load the content of a file; a name that ends in ``.conflist`` makes it a list of plugins.

    Raises CniError (code 6) for what is no JSON document, ConfigError (code 7) for what libcni refuses in it.
    """
    prefix = "error parsing configuration list: " if filename.endswith(".conflist") else "error parsing configuration: "
    try:
        tree = gojson.parse(data)
    except gojson.SyntaxFault as fault:
        raise CniError(DECODING_FAILURE, prefix + str(fault)) from None
    if not isinstance(tree, tuple):
        raise _fault(prefix + "not an object")
    config = _load_list(tree, filename) if filename.endswith(".conflist") else _load_single(tree, filename)
    config.data = data
    return config


def _fault(msg: str, path: str = "") -> ConfigError:
    return ConfigError(msg, path, INVALID_NETWORK_CONFIG)


def _load_single(tree: Any, filename: str) -> NetworkConfig:
    try:
        values = _SINGLE.decode(tree, None, "")
    except goshape.TypeFault as fault:
        raise _fault(f"error parsing configuration: {fault}", fault.path) from None
    if not values.get("type"):
        raise _fault("error parsing configuration: missing 'type'", "type")
    _check_common(tree, "error parsing configuration: ", "")
    return NetworkConfig(filename, values.get("name") or "", values.get("cniVersion") or "", [tree])


def _load_list(tree: Any, filename: str) -> NetworkConfig:
    name = _exact(tree, "name")
    if name is None:
        raise _fault("error parsing configuration list: no name", "name")
    if not isinstance(name, str):
        raise _fault("error parsing configuration list: name is no string", "name")
    for key in _FLAGS:
        value = _exact(tree, key)
        if value is not None and (value.lower() if isinstance(value, str) else value) not in (
            True,
            False,
            "true",
            "false",
        ):
            raise _fault(f"error parsing configuration list: {key} is neither true nor false", key)
    version = _list_version(tree)
    plugins = _exact(tree, "plugins")
    if plugins is None:
        raise _fault("error parsing configuration list: no 'plugins' key", "plugins")
    if not isinstance(plugins, list):
        raise _fault("error parsing configuration list: plugins is no list", "plugins")
    if not plugins:
        raise _fault("error parsing configuration list: no plugins in list", "plugins")
    for index, plugin in enumerate(plugins):
        _check_plugin(plugin, index)
    config = NetworkConfig(filename, name, version, plugins, is_list=True)
    config.disable_check = _exact(tree, "disableCheck") in (True, "true")
    config.disable_gc = _exact(tree, "disableGC") in (True, "true")
    return config


def _check_plugin(plugin: Any, index: int) -> None:
    where = f"plugins[{index}]"
    if not isinstance(plugin, tuple):
        raise _fault(f"error parsing configuration list: plugin {index} is no object", where)
    try:
        values = _PLUGIN.decode(plugin, None, where)
    except goshape.TypeFault as fault:
        raise _fault(f"error parsing configuration list: plugin {index}: {fault}", fault.path) from None
    if not values.get("type"):
        raise _fault(f"error parsing configuration list: plugin {index}: missing 'type'", where + ".type")
    _check_common(plugin, f"error parsing configuration list: plugin {index}: ", where + ".")


def _check_common(plugin: Any, prefix: str, place: str) -> None:
    """Refuse what libcni itself cannot decode in a plugin: without its capabilities, ipam and dns no file loads."""
    capabilities, ipam, dns = (gojson.field(plugin, key) for key in ("capabilities", "ipam", "dns"))
    for key, value in (("capabilities", capabilities), ("ipam", ipam), ("dns", dns)):
        if value is not None and not isinstance(value, tuple):
            raise _fault(f"{prefix}{key} is no object", place + key)
    for key, value in capabilities or ():
        if value is not None and not isinstance(value, bool):
            raise _fault(f"{prefix}capability {key} is neither true nor false", f"{place}capabilities.{key}")
    kind = gojson.field(ipam, "type")
    if kind is not None and not isinstance(kind, str):
        raise _fault(f"{prefix}ipam.type is no string", place + "ipam.type")
    try:
        _DNS.decode(dns, None, place + "dns")
    except goshape.TypeFault as fault:
        raise _fault(f"{prefix}{fault}", fault.path) from None


def _exact(tree: Any, key: str) -> Any:
    """Return a member of a list's outer object, which libcni reads as a map: by its exact name, the last one wins."""
    found = None
    for name, value in tree:
        if name == key:
            found = value
    return found


def _list_version(tree: Any) -> str:
    version = _exact(tree, "cniVersion")
    if version is not None and not isinstance(version, str):
        raise _fault("error parsing configuration list: cniVersion is no string", "cniVersion")
    offered = _exact(tree, "cniVersions")
    if offered is None:
        return version or ""
    if not isinstance(offered, list) or not all(isinstance(one, str) for one in offered):
        raise _fault("error parsing configuration list: cniVersions is no list of strings", "cniVersions")
    candidates = [one for one in [version, *offered] if one]
    usable = [one for one in candidates if versions.at_least(versions.CURRENT, one)]
    return max(usable, key=versions.parse) if usable else version or ""
