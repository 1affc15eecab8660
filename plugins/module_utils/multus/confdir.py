# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks that lie in files: by name in a directory, by path, with the plugins of a sub-directory (spec 5.5, 6)."""

from __future__ import annotations

import posix
from _stat import S_ISREG

from ..cni import gojson, goshape, paths, wholefile
from ..cni.errors import INTERNAL, CniError, go_strerror
from ..cni.goshape import STRING
from ..cni.names import valid_name
from . import trees
from .delegate import Delegate, load_delegate, load_document, load_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CONF = goshape.Struct("types.PluginConf", {"name": STRING, "type": STRING})


def find_by_name(directory: str, name: str) -> Delegate:
    """Return the first network of that name among the files of *directory*. Raises CniError (code 999)."""
    files = _files(directory, (".conf", ".json", ".conflist"))
    if not files:
        raise _fault(f"No networks found in {directory}")
    for path in files:
        tree, data = _load(path)
        if gojson.field(tree, "name") == name:
            return load_delegate(tree, data)
    raise _fault(f"no network available in the name {name} in cni dir {directory}")


def from_path(path: str) -> Delegate:
    """Return the network of a file, or of the first file of a directory. Raises CniError (code 999)."""
    try:
        status = posix.stat(path)
    except (OSError, ValueError) as error:
        raise _fault(f"stat {path}: {go_strerror(error)}") from None
    if paths.is_directory(path):
        if not _files(path, (".conf", ".conflist")):
            raise _fault(f"No networks found in {path}")
        path = _files(path, (".conf", ".json", ".conflist"))[0]
        status = posix.stat(path)
    if not path.endswith(".conflist"):
        tree, data = _conf(path)
        if not gojson.field(tree, "type"):
            raise _fault(
                f"error loading CNI config file {path}: no 'type'; perhaps this is supposed to be a .conflist?"
            )
        return load_delegate(tree, data)
    if not S_ISREG(status.st_mode):
        raise _fault(f"error loading CNI conflist file {path}: not a regular file")
    return _with_directory(path)


def auxiliary(name: str, cluster_network: str, cni_version: str) -> Delegate | None:
    """Return the chain of `auxiliaryCNIChainName`; None if its directory adds no plugin (multus spec 6.3).

    Raises CniError (code 999) when *cluster_network* is no path.
    """
    if "/" not in cluster_network:
        raise _fault("auxiliary chain used but ClusterNetwork must be a path, and it is not a path: " + cluster_network)
    added = _plugins_of(f"{paths.parent(cluster_network)}/{name}")
    if not added:
        return None
    own = (("name", "passthru-cni"), ("type", "passthru"))
    return _joined((("cniVersion", cni_version), ("name", name)), [own, *added])


def _with_directory(path: str) -> Delegate:
    """Load a list with what lies in the directory of its name beside it."""
    tree, data = _read(path)
    outer = tree if isinstance(tree, tuple) else ()  # what else it may be load_list words
    listed = next((value for key, value in reversed(outer) if key == "plugins"), None)
    plugins = listed if isinstance(listed, list) else []
    try:
        config = load_list(tree, data, plugins)
    except CniError as error:
        raise _fault(f"error loading CNI conflist file {path}: {error}") from None
    if not valid_name(config.name):
        raise _fault(f"error loading CNI conflist file {path}: invalid network config name: {config.name}")
    inlined = next((value for key, value in reversed(outer) if key == "loadOnlyInlinedPlugins"), None)
    added = [] if inlined in (True, "true") else _plugins_of(f"{paths.parent(path)}/{config.name}")
    if not plugins and not added:
        raise _fault(f"error loading CNI conflist file {path}: no plugin configs found")
    delegate = _joined(tree, plugins + added) if added else load_delegate(tree, data)
    delegate.values = {}  # as upstream caches it
    return delegate


def _joined(tree: Any, plugins: list[Any]) -> Delegate:
    values = trees.document(tree)
    values["plugins"] = [trees.document(one) for one in plugins]
    return load_document(values)


def _plugins_of(directory: str) -> list[Any]:
    found = []
    for path in _files(directory, (".conf",)):
        tree, _data = _conf(path)
        if not gojson.field(tree, "type"):
            raise _fault(f"error loading CNI config file {path}: error parsing configuration: missing 'type'")
        found.append(tree)
    return found


def _load(path: str) -> tuple[Any, bytes]:
    """Read one file of a directory that is searched; one that cannot be read ends the search."""
    if path.endswith(".conflist"):
        tree, data = _read(path)
        try:
            load_list(tree, data)
        except CniError as error:
            raise _fault(f"Error loading CNI conflist file {path}: {error}") from None
        return tree, data
    try:
        tree, data = _conf(path)
        if not gojson.field(tree, "type"):
            raise _fault("error parsing configuration: missing 'type'")
    except CniError as error:
        raise _fault(f"Error loading CNI config file {path}: {error}") from None
    return tree, data


def _conf(path: str) -> tuple[Any, bytes]:
    tree, data = _read(path)
    try:
        _CONF.decode(tree, None, "")
    except goshape.TypeFault as fault:
        raise _fault(f"error parsing configuration: {fault}") from None
    return tree, data


def _read(path: str) -> tuple[Any, bytes]:
    try:
        data = wholefile.read(path)
    except OSError as error:
        raise _fault(f"error reading {path}: open {path}: {go_strerror(error)}") from None
    try:
        tree = gojson.parse(data)
    except gojson.SyntaxFault as fault:
        kind = "configuration list" if path.endswith(".conflist") else "configuration"
        raise _fault(f"error parsing {kind}: {fault}") from None
    return tree, data


def _files(directory: str, suffixes: tuple[str, ...]) -> list[str]:
    try:
        names = sorted(posix.listdir(directory))
    except (OSError, ValueError):
        return []
    found = [f"{directory.rstrip('/')}/{name}" for name in names if name.endswith(suffixes)]
    return [path for path in found if not paths.is_directory(path)]


def _fault(message: str) -> CniError:
    return CniError(INTERNAL, message)
