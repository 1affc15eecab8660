# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cache of delegates, `<cniDir>/<container id>`: what a DEL undoes (multus spec 9.1, M3, M7).

The Go plugin reads and writes the same files; what it does not know (port mappings, bandwidth) it skips.
"""

from __future__ import annotations

import posix
import time

from ..cni import folders, gojson, goprint, goshape, paths, wholefile
from ..cni.errors import INTERNAL, CniError, NodenetError, go_strerror
from ..cni.goshape import BOOLEAN, STRING, List, Struct
from .delegate import load_delegate
from .request import BANDWIDTH, PORT_MAPPINGS, Request, bandwidth, port_mappings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from .delegate import Delegate

_UNFINISHED = ".nodenet-"  # as in cni/resultcache
_UNFINISHED_AGE_S = 60
_SAVING = "saveDelegates: error in saving the delegates : saveScratchNetConf: failed to "
_ENTRY = Struct(
    "types.DelegateNetConf",
    {
        "Name": STRING,
        "ifnameRequest": STRING,
        "macRequest": STRING,
        "infinibandGUIDRequest": STRING,
        "ipRequest": List(STRING),
        "default-route": List(STRING),
        "IsFilterV4Gateway": BOOLEAN,
        "IsFilterV6Gateway": BOOLEAN,
        "deviceID": STRING,
        "resourceName": STRING,
        "portMappingsRequest": PORT_MAPPINGS,
        "bandwidthRequest": BANDWIDTH,
        "Bytes": STRING,
    },
)
_ENTRIES = List(_ENTRY)


class Unusable(NodenetError):
    """There is a cache file, but not one from which a DEL could be done."""


def path_of(directory: str, container_id: str) -> str:
    """Return the path of a container's cache file."""
    return f"{directory.rstrip('/')}/{container_id}" if directory else container_id


def write(
    directory: str,
    container_id: str,
    delegates: Sequence[Delegate],
    prepare: Callable[[str], object] | None = None,
) -> None:
    """Write the file, whole or not at all. Raises CniError (code 999) with Go's words.

    :param prepare: called with the path that the file has before it gets its name
    """
    path = path_of(directory, container_id)
    data = goprint.dumps([_entry(one) for one in delegates], indent=0).encode("utf-8", "surrogateescape")
    try:
        folders.make(paths.parent(path), 0o700)
    except OSError as error:
        text = f'create the multus data directory("{directory}"): mkdir {error.filename}: {go_strerror(error)}'
        raise CniError(INTERNAL, _SAVING + text) from None
    try:
        wholefile.write(path, data, f"{paths.parent(path)}/{_UNFINISHED}", sync=True, prepare=prepare)
    except OSError as error:
        text = f'write container data in the path("{path}"): open {path}: {go_strerror(error)}'
        raise CniError(INTERNAL, _SAVING + text) from None


def read(directory: str, container_id: str) -> list[Delegate] | None:
    """Return the delegates of a container, None if there is no file. Raises Unusable."""
    path = path_of(directory, container_id)
    try:
        data = wholefile.read(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Unusable(f"open {path}: {go_strerror(error)}") from None
    try:
        values = _ENTRIES.decode(gojson.parse(data), None, "")
        delegates = [_delegate(one or {}) for one in values or []]
    except (gojson.SyntaxFault, goshape.TypeFault, NodenetError, ValueError) as fault:
        raise Unusable(f"{path}: {fault}") from None
    if not delegates:  # upstream crashes (M1)
        raise Unusable(f"{path}: it names no delegate")
    delegates[0].is_master = True
    return delegates


def remove(directory: str, container_id: str) -> None:
    """Remove the file; whether there is one does not matter."""
    try:
        posix.unlink(path_of(directory, container_id))
    except OSError:
        pass


def sweep(directory: str) -> None:
    """Remove unfinished files that a call left which was killed while it wrote one."""
    try:
        names = [one for one in posix.listdir(directory) if one.startswith(_UNFINISHED)]
        for name in names:
            path = f"{directory}/{name}"
            if time.time() - posix.stat(path).st_mtime > _UNFINISHED_AGE_S:
                posix.unlink(path)
    except OSError:
        return


def set_aside(directory: str, container_id: str) -> str:
    """Rename a file that cannot be used, so that nothing stumbles over it again; return its new path (M3)."""
    path = path_of(directory, container_id)
    try:
        posix.rename(path, path + ".corrupt")
    except OSError:
        return path
    return path + ".corrupt"


def containers(directory: str) -> list[str]:
    """Return the ids of all containers that have a file."""
    try:
        names = posix.listdir(directory)
    except OSError:
        return []
    return sorted(
        one
        for one in names
        if one[:1] != "." and not one.endswith(".corrupt") and not paths.is_directory(path_of(directory, one))
    )


def _entry(delegate: Delegate) -> dict[str, Any]:
    import binascii

    request = delegate.request
    entry: dict[str, Any] = {
        "Conf": _typed(delegate.values),
        "ConfList": {} if delegate.list_values is None else _typed_list(delegate.list_values),
        "Name": delegate.name,
    }
    texts = {
        "ifnameRequest": request.interface,
        "macRequest": request.mac,
        "infinibandGUIDRequest": request.infiniband_guid,
        "ipRequest": request.ips,
    }
    entry.update((key, value) for key, value in texts.items() if value)
    if request.gateways is not None:
        entry["default-route"] = request.gateways
    entry["IsFilterV4Gateway"] = delegate.filter_ipv4
    entry["IsFilterV6Gateway"] = delegate.filter_ipv6
    more = {
        "deviceID": delegate.device_id,
        "resourceName": delegate.resource_name,
        "portMappingsRequest": request.port_mappings,
        "bandwidthRequest": request.bandwidth,
    }
    entry.update((key, value) for key, value in more.items() if value)
    entry["Bytes"] = binascii.b2a_base64(delegate.data, newline=False).decode("ascii")
    return entry


def _delegate(values: dict[str, Any]) -> Delegate:
    import binascii

    data = binascii.a2b_base64((values.get("Bytes") or "").encode("ascii", "replace"))
    delegate = load_delegate(gojson.parse(data), data)
    delegate.name = values.get("Name") or ""
    delegate.device_id = values.get("deviceID") or ""
    delegate.resource_name = values.get("resourceName") or ""
    request = Request("", "", values.get("ifnameRequest") or "")
    request.mac = values.get("macRequest") or ""
    request.infiniband_guid = values.get("infinibandGUIDRequest") or ""
    request.ips = [one or "" for one in values.get("ipRequest") or []]
    request.gateways = values.get("default-route")
    request.port_mappings = port_mappings([one or {} for one in values.get("portMappingsRequest") or []])
    request.bandwidth = bandwidth(values.get("bandwidthRequest"))
    delegate.request = request
    return delegate


def _typed(values: dict[str, Any]) -> dict[str, Any]:
    """Return the typed part of a plugin's configuration as Go prints it."""
    shown = {key: values[key] for key in ("cniVersion", "name", "type", "capabilities", "dns") if values.get(key)}
    ipam = values.get("ipam") or {}
    shown["ipam"] = {"type": ipam["type"]} if ipam.get("type") else {}
    return goprint.in_order(shown)


def _typed_list(values: dict[str, Any]) -> dict[str, Any]:
    shown = {key: values[key] for key in ("cniVersion", "name", "disableCheck", "disableGC") if values.get(key)}
    shown["plugins"] = [None if one is None else _typed(one) for one in values["plugins"]]
    return shown
