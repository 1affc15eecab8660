# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a delegate is called with: interface name, CNI_ARGS, runtimeConfig (multus spec 7.1 to 7.4)."""

from __future__ import annotations

from ..cni.invoke import Attachment
from . import podargs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from .config import Config
    from .delegate import Delegate
    from .podargs import PodArgs

DEVICE_INFO_DIR = "/var/run/k8s.cni.cncf.io/devinfo"
# what the runtime says of the pod's own interface; other networks must not have it (M13)
_POD_OWN = ("portMappings", "ips", "mac")


def interface_name(index: int, delegate: Delegate, ifname: str) -> str:
    """Return the name of a delegate's interface; *index*: its position among all, *ifname*: the pod's own."""
    return delegate.request.interface or (ifname if delegate.is_master else f"net{index}")


def interface_names(delegates: Sequence[Delegate], ifname: str) -> list[str]:
    """Return the names of all delegates' interfaces."""
    return [interface_name(index, one, ifname) for index, one in enumerate(delegates)]


def device_info_file(delegate: Delegate, container_id: str, interface: str) -> str:
    """Return where the CNI plugin leaves what it knows of the device; "" for a delegate without device."""
    if not delegate.device_id:
        return ""
    name = f"{delegate.name}-{container_id}_{interface}".replace("/", "-")
    return f"{DEVICE_INFO_DIR}/cni/{name}"


def capability_args(config: Config, delegate: Delegate, container_id: str, interface: str) -> dict[str, Any]:
    """Return what plugins that switch on the capability get as runtimeConfig."""
    values = dict(config.runtime_config)
    if delegate.is_master:
        values.update(config.other_runtime_config)
    else:
        for key in _POD_OWN:
            values.pop(key, None)
        request = delegate.request
        asked = {
            "portMappings": request.port_mappings,
            "bandwidth": request.bandwidth,
            "ips": request.ips,
            "mac": request.mac,
            "infinibandGUID": request.infiniband_guid,
            "deviceID": delegate.device_id,
        }
        values.update((key, value) for key, value in asked.items() if value)
    if delegate.device_id:
        values["CNIDeviceInfoFile"] = device_info_file(delegate, container_id, interface)
    return values


def attachment(
    config: Config,
    delegate: Delegate,
    interface: str,
    pod: PodArgs,
    container_id: str,
    netns: str,
    adding: bool = False,
) -> Attachment:
    """Return what a delegate is called with; for ADD also the requested addresses are in CNI_ARGS."""
    pairs = pod.for_delegates()
    if adding:
        pairs = pairs + podargs.requested(delegate.request)
    return Attachment(container_id, netns, interface, pairs, capability_args(config, delegate, container_id, interface))
