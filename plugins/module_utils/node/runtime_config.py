# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the configurations of containerd and CRI-O say about CNI: which directory, how many networks, which default.

A missing file means the runtime's defaults. What cannot be read or is not understood is unknown, never a guess; so are
drop-ins of containerd that touch its CRI plugin, because releases before 2.0 replace the whole table by theirs. Command
lines are not looked at.
"""

from __future__ import annotations

import glob
import os

from . import toml
from .confdir import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_CONF_DIR = "/etc/cni/net.d"
DEFAULT_BIN_DIR = "/opt/cni/bin"
#: configuration version of containerd: the plugin that has the table cni
_CRI_PLUGINS = {1: "cri", 2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}


class RuntimeConfig:
    """What one runtime is told. ``unknown``: why nobody can tell, "" if one can; then the rest is the defaults.

    conf_dir, bin_dirs: its directories. max_networks: how many files containerd loads, 0 for all. default_network:
    CRI-O's ``cni_default_network``. found: whether there is a configuration file at all. disabled: whether containerd
    runs without its CRI plugin, and so without CNI.
    """

    def __init__(self) -> None:
        self.unknown = ""
        self.found = False
        self.conf_dir = DEFAULT_CONF_DIR
        self.bin_dirs = [DEFAULT_BIN_DIR]
        self.max_networks = 1
        self.default_network = ""
        self.disabled = False


def containerd(path: str) -> RuntimeConfig:
    """Read containerd's configuration."""
    config = RuntimeConfig()
    try:
        document = _document(path)
        if document is None:
            return config
        config.found = True
        version = document.get("version", 1)
        plugin = _CRI_PLUGINS.get(version) if isinstance(version, int) else None
        if plugin is None:
            raise toml.Unreadable(f"{path} has version {version}")
        tables = [name for name in _table(document, "plugins") if name in _CRI_PLUGINS.values()]
        if version == 2 and plugin not in tables and "cri" in tables:
            plugin = "cri"  # the short name of a version 1 file still counts
        for extra in _imports(path, document):
            added = _document(extra)
            if added and set(_table(added, "plugins")) & set(_CRI_PLUGINS.values()):
                raise toml.Unreadable(f"{extra} changes the CRI plugin as well, and its release decides how they merge")
        switched_off = {str(one) for one in _get(document, "disabled_plugins", list, [])}
        config.disabled = bool(switched_off & {"cri", "io.containerd.grpc.v1.cri"})
        cni = _table(_table(_table(document, "plugins"), plugin), "cni")
        config.conf_dir = _get(cni, "conf_dir", str, config.conf_dir)
        listed = _get(cni, "bin_dirs", list, []) or [_get(cni, "bin_dir", str, DEFAULT_BIN_DIR)]
        config.bin_dirs = [str(one) for one in listed]
        config.max_networks = _get(cni, "max_conf_num", int, config.max_networks)
    except toml.Unreadable as fault:
        config.unknown = str(fault)
    return config


def crio(path: str) -> RuntimeConfig:
    """Read CRI-O's configuration, and all files below the directory of the same name with ``.d`` behind it."""
    config = RuntimeConfig()
    names = [path]
    try:
        for here, folders, files in os.walk(path + ".d", onerror=_raise):
            folders.sort()
            names += [os.path.join(here, name) for name in files]
        for name in names[:1] + sorted(names[1:]):
            document = _document(name)
            if document is None:
                continue
            config.found = True
            network = _table(_table(document, "crio"), "network")
            config.conf_dir = _get(network, "network_dir", str, config.conf_dir)
            config.default_network = _get(network, "cni_default_network", str, config.default_network)
            config.bin_dirs = [str(one) for one in _get(network, "plugin_dirs", list, config.bin_dirs)]
    except toml.Unreadable as fault:
        config.unknown = str(fault)
    return config


def _raise(fault: OSError) -> None:
    if not isinstance(fault, FileNotFoundError):
        raise toml.Unreadable(f"{fault.filename} cannot be read: {fault.strerror}")


def _document(path: str) -> dict[str, Any] | None:
    try:
        return toml.parse(read_regular(path).decode("utf-8"))
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except (OSError, UnicodeDecodeError) as fault:
        reason = (fault.strerror or str(fault)).lower() if isinstance(fault, OSError) else "it is no UTF-8"
        raise toml.Unreadable(f"{path} cannot be read: {reason}") from None
    except toml.Unreadable as fault:
        raise toml.Unreadable(f"{path}: {fault}") from None


def _imports(path: str, document: dict[str, Any]) -> list[str]:
    names: list[str] = []
    for pattern in _get(document, "imports", list, []):
        names += sorted(glob.glob(os.path.join(os.path.dirname(path), str(pattern))))
    return [name for name in names if os.path.realpath(name) != os.path.realpath(path)]


def _table(node: dict[str, Any], name: str) -> dict[str, Any]:
    return _get(node, name, dict, {})


def _get(node: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = node.get(name, default)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise toml.Unreadable(f"the value of {name} is of the wrong type")
    return value
