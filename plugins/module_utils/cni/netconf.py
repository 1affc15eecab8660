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
_PLUGIN = goshape.Struct("types.PluginConf", {"type": goshape.STRING})


class NetworkConfig:
    """One network: its ``name`` ("" if a single configuration has none), the ``cni_version`` in effect ("" if none is
    given), and the trees (`gojson.parse`) of its ``plugins`` in order."""

    __slots__ = ("filename", "name", "cni_version", "plugins")

    def __init__(self, filename: str, name: str, cni_version: str, plugins: list[Any]) -> None:
        self.filename = filename
        self.name = name
        self.cni_version = cni_version
        self.plugins = plugins


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
    return _load_list(tree, filename) if filename.endswith(".conflist") else _load_single(tree, filename)


def _fault(msg: str, path: str = "") -> ConfigError:
    return ConfigError(msg, path, INVALID_NETWORK_CONFIG)


def _load_single(tree: Any, filename: str) -> NetworkConfig:
    try:
        values = _SINGLE.decode(tree, None, "")
    except goshape.TypeFault as fault:
        raise _fault(f"error parsing configuration: {fault}", fault.path) from None
    if not values.get("type"):
        raise _fault("error parsing configuration: missing 'type'", "type")
    return NetworkConfig(filename, values.get("name") or "", values.get("cniVersion") or "", [tree])


def _load_list(tree: Any, filename: str) -> NetworkConfig:
    name = _exact(tree, "name")
    if name is None:
        raise _fault("error parsing configuration list: no name", "name")
    if not isinstance(name, str):
        raise _fault("error parsing configuration list: name is no string", "name")
    for key in _FLAGS:
        value = _exact(tree, key)
        if value is not None and value not in (True, False, "true", "false"):
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
    return NetworkConfig(filename, name, version, plugins)


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
    return max(usable, key=versions.parse) if usable else ""
