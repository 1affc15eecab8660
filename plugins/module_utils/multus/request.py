# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an element of a pod's annotation asks for one network, and what comes of it (multus spec 5.2, 7.3, 9.1)."""

from __future__ import annotations

from ..cni.goshape import INTEGER, STRING, List, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The pod's annotations that ask for networks.
NETWORKS = "k8s.v1.cni.cncf.io/networks"
DEFAULT_NETWORK = "v1.multus-cni.io/default-network"

PORT_MAPPING = Struct(
    "types.PortMapEntry",
    {"hostPort": INTEGER, "containerPort": INTEGER, "protocol": STRING, "hostIP": STRING},
)
PORT_MAPPINGS = List(PORT_MAPPING)
BANDWIDTH_KEYS = ("ingressRate", "ingressBurst", "egressRate", "egressBurst")
BANDWIDTH = Struct("types.BandwidthEntry", {key: INTEGER for key in BANDWIDTH_KEYS}, pointer=True)


class Request:
    """One requested network.

    ``namespace`` and ``name`` of the NetworkAttachmentDefinition; ``interface``: "" for the automatic name; ``mac``,
    ``infiniband_guid``, ``ips``, ``port_mappings``, ``bandwidth``, ``device_id``: what is asked for, empty if nothing
    is; ``gateways``: of ``default-route``, None if the key is absent, "" for an address that was left empty;
    ``cni_args``: a `gojson` tree of an object, None if absent.
    """

    __slots__ = (
        "namespace",
        "name",
        "interface",
        "mac",
        "infiniband_guid",
        "ips",
        "port_mappings",
        "bandwidth",
        "device_id",
        "gateways",
        "cni_args",
    )

    def __init__(self, namespace: str = "", name: str = "", interface: str = "") -> None:
        self.namespace = namespace
        self.name = name
        self.interface = interface
        self.mac = ""
        self.infiniband_guid = ""
        self.ips: list[str] = []
        self.port_mappings: list[dict[str, Any]] = []
        self.bandwidth: dict[str, int] | None = None
        self.device_id = ""
        self.gateways: list[str] | None = None
        self.cni_args: Any = None


def port_mappings(entries: list[Any]) -> list[dict[str, Any]]:
    """Return port mappings as plugins get them: ports always, protocol and host address where they are set."""
    shown = []
    for entry in entries:
        values: dict[str, Any] = {key: entry.get(key, 0) for key in ("hostPort", "containerPort")}
        values.update((key, entry[key]) for key in ("protocol", "hostIP") if entry.get(key))
        shown.append(values)
    return shown


def bandwidth(entry: dict[str, int] | None) -> dict[str, int] | None:
    """Return a bandwidth limit as plugins get it, always with all four numbers."""
    return None if entry is None else {key: entry.get(key, 0) for key in BANDWIDTH_KEYS}


def is_ipv4(gateway: str) -> bool:
    """Tell whether a requested gateway is of IPv4; an empty one counts as IPv6 (multus spec 7.1)."""
    return bool(gateway) and ":" not in gateway
