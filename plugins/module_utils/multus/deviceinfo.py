# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files in which device plugins and CNI plugins tell of a device (multus spec 8)."""

from __future__ import annotations

import posix

from ..cni import folders, gojson, paths, wholefile
from . import trees
from .attachments import DEVICE_INFO_DIR, device_info_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .delegate import Delegate

_MOST_BYTES = 1 << 20
_PCI = ("pci-address", "vhost-net", "rdma-device", "pf-pci-address", "representor-device")
_KINDS = {
    "pci": _PCI,
    "vdpa": ("parent-device", "driver", "path", "pci-address", "pf-pci-address", "representor-device"),
    "vhost-user": ("mode", "path"),
    "memif": ("role", "path", "mode"),
}
_NEW = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC


def hand_over(delegate: Delegate, container_id: str, interface: str) -> None:
    """Copy what the device plugin says of a device to where the CNI plugin looks; what is there already stays.

    Nothing depends on it: what fails is left.
    """
    if not delegate.resource_name:
        return
    name = f"{delegate.resource_name}-{delegate.device_id}-device.json".replace("/", "-")
    path = device_info_file(delegate, container_id, interface)
    try:
        data = wholefile.read(f"{DEVICE_INFO_DIR}/dp/{name}", _MOST_BYTES)
        folders.make(paths.parent(path))
        fd = posix.open(path, _NEW, 0o444)
        try:
            posix.fchmod(fd, 0o444)
            posix.write(fd, data)
        finally:
            paths.close(fd)
    except (OSError, ValueError):
        return


def read(delegate: Delegate, container_id: str, interface: str) -> Any:
    """Return what is known of a delegate's device as a document, None if nothing is."""
    path = device_info_file(delegate, container_id, interface)
    if not path:
        return None
    try:
        found = trees.document(gojson.parse(wholefile.read(path, _MOST_BYTES)))
    except (OSError, ValueError, gojson.SyntaxFault):
        return None
    return _known(found) if isinstance(found, dict) else None


def _known(found: dict[str, Any]) -> dict[str, Any]:
    """Return the members that the specification of device information names, in its order."""
    shown = {key: found[key] for key in ("type", "version") if found.get(key)}
    for kind, keys in _KINDS.items():
        part = found.get(kind)
        if isinstance(part, dict):
            shown[kind] = {key: part[key] for key in keys if part.get(key)}
    return shown


def remove(delegate: Delegate, container_id: str, interface: str) -> None:
    """Remove the file of an interface that is gone."""
    remove_file(device_info_file(delegate, container_id, interface))


def remove_file(path: Any) -> None:
    """Remove the file that a cached result names, if it is one of these at all."""
    if not isinstance(path, str) or paths.parent(path) != f"{DEVICE_INFO_DIR}/cni":
        return
    try:
        posix.unlink(path)
    except (OSError, ValueError):
        pass
