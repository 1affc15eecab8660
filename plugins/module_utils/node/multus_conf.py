# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The document of Multus' configuration: what goes into 00-multus.conf or 00-multus.conflist (multus spec 2, 14.4)."""

from __future__ import annotations

from ..cni import gojson, goprint, versions
from ..cni.errors import NodenetError
from ..cni.names import valid_name
from ..multus import trees
from .confdir import ConfFile
from .multus_master import STEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DEFAULT_NAME = "multus-cni-network"

#: From this version on a list is written, before it a single plugin's configuration.
LIST_SINCE = "1.0.0"

LOG_LEVELS = ("debug", "verbose", "error", "panic")

#: Members that follow from the master or have an option of their own; settings may not name them.
_OWN = (
    "cniVersion", "name", "type", "capabilities", "delegates", "clusterNetwork", "defaultNetworks", "kubeconfig",
    "plugins", "prevResult", "runtimeConfig", "confDir", "cniDir", "binDir", "namespaceIsolation", "globalNamespaces",
    "logLevel", "logFile", "logToStderr", "readinessindicatorfile",
)  # fmt: skip

#: Where Multus looks when its configuration does not tell.
DEFAULT_DIRS = {"binDir": "/opt/cni/bin", "cniDir": "/var/lib/cni/multus", "confDir": "/etc/cni/multus/net.d"}


class Wishes:
    """What the user wants of the file: the options of the module, by the names of Multus' members where they have one.

    name: of the network, "" for the master's. version: "" for the master's. force: rewrite a master of another version.
    settings: further members. members: those with an option of their own; None and "" leave one out.
    """

    def __init__(
        self,
        name: str = DEFAULT_NAME,
        version: str = "",
        force: bool = False,
        members: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.force = force
        self.members = dict(members or {})
        self.settings = dict(settings or {})


def build(master: ConfFile, wishes: Wishes, verb: str) -> ConfFile:
    """Return the file of Multus for a master, under the name that belongs to its version.

    :param verb: how a message begins
    :raises NodenetError: versions do not agree, or something asked for cannot be written
    """
    if not master.network:
        raise NodenetError(f"Cannot {verb}: the master {master.shown} has no name, and Multus would fail for every pod")
    version = _version(master, wishes, verb)
    name = wishes.name or master.network
    if not valid_name(name):
        raise NodenetError(f"Cannot {verb}: {name!r} cannot be the name of a network")
    delegate = trees.document(master.tree)
    if wishes.force and wishes.version:
        for key in [key for key in delegate if gojson.fold(key) in ("cniversion", "cniversions")]:
            del delegate[key]
        delegate = {"cniVersion": version, **delegate}
    plugin: dict[str, Any] = {"type": "multus"}
    capabilities = united_capabilities(master)
    if capabilities:
        plugin["capabilities"] = capabilities
    plugin.update(_members(wishes, verb))
    plugin["delegates"] = [delegate]
    is_list = versions.at_least(version, LIST_SINCE)
    document: dict[str, Any] = {"cniVersion": version, "name": name}
    document.update({"plugins": [plugin]} if is_list else plugin)
    text = goprint.dumps(document, 2) + "\n"
    return ConfFile(STEM + (".conflist" if is_list else ".conf"), text.encode("utf-8", "replace"))


def united_capabilities(master: ConfFile) -> dict[str, bool]:
    """Return the capabilities of all plugins of a chain, the later plugin's word counting, sorted by name.

    A runtime passes hostPort, bandwidth and the like to Multus only when Multus' own configuration has them.
    """
    united: dict[str, bool] = {}
    for plugin in master.plugins:
        for key, value in gojson.field(plugin, "capabilities") or ():
            united[key] = value is True
    return {key: united[key] for key in sorted(united)}


def plugin_of(one: ConfFile | None) -> Any:
    """Return the tree of the Multus plugin in its file, () if there is none."""
    return one.plugins[0] if one is not None and one.plugins else ()


def delegates_of(one: ConfFile | None) -> list[Any]:
    """Return the delegates of Multus' file, [] if it has none."""
    listed = gojson.field(plugin_of(one), "delegates")
    return listed if isinstance(listed, list) else []


def drift(before: ConfFile | None, after: ConfFile) -> list[str]:
    """Return the places in which the delegates of the file differ from what they are copied from.

    Places look like ``delegates.0.plugins.0.mtu``. Nothing has drifted where there was no usable file.
    """
    if before is None or not before.plugins:
        return []
    found: list[str] = []
    _differ(trees.document(delegates_of(before)), trees.document(delegates_of(after)), "delegates", found)
    return found


def _differ(one: Any, other: Any, place: str, found: list[str]) -> None:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            here = f"{place}.{key}"
            if key in one and key in other:
                _differ(one[key], other[key], here, found)
            else:
                found.append(here)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (mine, theirs) in enumerate(zip(one, other)):
            _differ(mine, theirs, f"{place}.{index}", found)
    elif one.__class__ is not other.__class__ or gojson.plain(one) != gojson.plain(other):
        found.append(place)


def _version(master: ConfFile, wishes: Wishes, verb: str) -> str:
    if wishes.version and wishes.version not in versions.SUPPORTED:
        raise NodenetError(
            f"Cannot {verb}: Multus does not speak CNI version {wishes.version!r}, only {', '.join(versions.SUPPORTED)}"
        )
    if wishes.force and wishes.version:
        return wishes.version
    if not master.cni_version:
        raise NodenetError(f"Cannot {verb}: the master {master.shown} has no cniVersion; Multus' has to be the same")
    if wishes.version and wishes.version != master.cni_version:
        raise NodenetError(
            f"Cannot {verb}: cni_version is {wishes.version}, but the master {master.shown} has {master.cni_version}; "
            "leave cni_version out to follow the master (roles: multus_cni_version)",
            cni_version=wishes.version,
            master_cni_version=master.cni_version,
        )
    if master.cni_version not in versions.SUPPORTED:
        raise NodenetError(
            f"Cannot {verb}: the master {master.shown} has cniVersion {master.cni_version!r}, which Multus does not "
            f"speak, only {', '.join(versions.SUPPORTED)}"
        )
    return master.cni_version


def _members(wishes: Wishes, verb: str) -> dict[str, Any]:
    own = {gojson.fold(key) for key in _OWN}
    for key in wishes.settings:
        if gojson.fold(str(key)) in own:
            raise NodenetError(f"Cannot {verb}: settings cannot have {key}, which has an option or follows the master")
    members = {key: value for key, value in wishes.members.items() if value not in (None, "", [])}
    for key, value in DEFAULT_DIRS.items():
        if key != "confDir" and members.get(key) == value:
            del members[key]
    level = members.get("logLevel")
    if level is not None and level not in LOG_LEVELS:
        raise NodenetError(f"Cannot {verb}: log_level {level!r} is none of {', '.join(LOG_LEVELS)}")
    members.update(wishes.settings)
    return {str(key): trees.document(gojson.from_plain(value)) for key, value in members.items()}
