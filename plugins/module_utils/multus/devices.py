# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The devices that the kubelet has given to a pod, handed out to its networks one by one (multus spec 8, D; M10)."""

from __future__ import annotations

from ..cni import gojson, goshape, paths, wholefile
from ..cni.errors import INTERNAL, CniError, NodenetError, go_strerror
from ..cni.goshape import STRING, List, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict
    from typing import List as Listed

    Map = Dict[str, Listed[str]]

SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
CHECKPOINT = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
_PREFIX = "getKubernetesDelegate: failed to get a ResourceClient instance: "
_DEVICE_ID, _RESOURCE_NAME = "k8s.cni.cncf.io/deviceID", "k8s.cni.cncf.io/resourceName"


class _Numa(goshape.Shape):
    """Device ids by NUMA node, or the plain list of the first kubelets."""

    name = "checkpoint.DevicesPerNUMA"

    def decode(self, node: Any, old: Any, path: str) -> Any:
        lists = [value for _key, value in node] if isinstance(node, tuple) else [node]
        return [str(one) for listed in lists if isinstance(listed, list) for one in listed]


_ENTRIES = List(
    Struct("PodDevicesEntry", {"PodUID": STRING, "ResourceName": STRING, "DeviceIDs": _Numa()}), pointers=True
)
_FILE = Struct("checkpointFileData", {"Data": Struct("checkpointData", {"PodDeviceEntries": _ENTRIES})})


class Devices:
    """The devices of one pod. They are looked up when the first is wanted, and none is handed out twice (M10).

    :param pod: the object of the API
    :param client: what asks the API for resource claims (`kube.Client`)
    """

    def __init__(self, pod: dict[str, Any], client: Any = None) -> None:
        self._pod = pod
        self._client = client
        self._map: Map | None = None

    def take(self, resource: str) -> str:
        """Return the next device of a resource, "" when all are used up. Raises NodenetError."""
        metadata = self._pod.get("metadata") or {}
        if not metadata.get("name") or not metadata.get("namespace"):
            return ""
        if self._map is None:
            self._map = _look_up(self._pod, self._client)
        left = self._map.get(resource)
        return left.pop(0) if left else ""


def _look_up(pod: dict[str, Any], client: Any) -> Map:
    metadata = pod["metadata"]
    if paths.exists(SOCKET):
        from . import podresources

        try:
            found = podresources.devices(SOCKET, metadata["namespace"], metadata["name"])
        except podresources.Unavailable:
            if not paths.exists(CHECKPOINT):
                raise
            found = from_checkpoint(CHECKPOINT, metadata.get("uid") or "")
    else:
        found = from_checkpoint(CHECKPOINT, metadata.get("uid") or "")
    try:
        _add_claims(found, pod, client)
    except NodenetError as error:
        text = f"getKubernetesDelegate: failed to get resourceMap from DRA client: {error}"
        raise CniError(INTERNAL, text) from None
    return {resource: sorted(ids) for resource, ids in found.items()}


def from_checkpoint(path: str, uid: str) -> Map:
    """Return the device ids by resource of the pod with that UID. Raises CniError (code 999) with Go's words."""
    try:
        data = wholefile.read(path)
    except OSError as error:
        reason = f"open {path}: {go_strerror(error)}"
        text = f"{_PREFIX}getPodEntries: error reading file {path}\n{reason}\n"
        raise CniError(INTERNAL, text) from None
    try:
        values = _FILE.decode(gojson.parse(data), None, "")
    except (gojson.SyntaxFault, goshape.TypeFault) as fault:
        text = f"{_PREFIX}getPodEntries: error unmarshalling file {path}\n{fault}\n"
        raise CniError(INTERNAL, text) from None
    if not uid:
        raise CniError(INTERNAL, "GetPodResourceMap: invalid Pod cannot be empty")
    found: Map = {}
    for entry in (values.get("Data") or {}).get("PodDeviceEntries") or []:
        if entry is not None and entry.get("PodUID") == uid:
            found.setdefault(entry.get("ResourceName") or "", []).extend(entry.get("DeviceIDs") or [])
    return found


def _add_claims(found: Map, pod: dict[str, Any], client: Any) -> None:
    """Add the devices of dynamic resource allocation."""
    status = pod.get("status") or {}
    claims = [one for one in status.get("resourceClaimStatuses") or [] if one and one.get("resourceClaimName")]
    extended = status.get("extendedResourceClaimStatus") or {}
    if client is None or not (claims or extended.get("resourceClaimName")):
        return
    namespace = pod["metadata"]["namespace"]
    node = (pod.get("spec") or {}).get("nodeName") or ""
    lookup = _Slices(client, node)
    for status_of in claims:
        name = status_of["resourceClaimName"]
        for result in _results(client.resource_claim(namespace, name), name):
            attributes = lookup.attributes(result)
            if attributes is not None:
                found.setdefault(attributes[1], []).append(attributes[0])
    if extended.get("resourceClaimName"):
        name = extended["resourceClaimName"]
        results = _results(client.resource_claim(namespace, name), name)
        for mapping in extended.get("requestMappings") or []:
            _add_extended(found, mapping, results, name, lookup.attributes)


def _add_extended(
    found: Map,
    mapping: dict[str, Any],
    results: list[dict[str, Any]],
    claim: str,
    attributes_of: Callable[[dict[str, Any]], tuple[str, str] | None],
) -> None:
    request, resource = mapping.get("requestName") or "", mapping.get("resourceName") or ""
    matching = [one for one in results if one.get("request") == request]
    if not matching:
        raise CniError(INTERNAL, f"request {request} not found in claim {claim}")
    for result in matching:
        device = result.get("device") or ""
        attributes = attributes_of(result)
        if attributes is None:
            raise CniError(INTERNAL, f"device {device} missing required attribute {_DEVICE_ID} or {_RESOURCE_NAME}")
        if attributes[1] != resource:
            text = (
                f'device {device}: {_RESOURCE_NAME} is "{attributes[1]}" but extended resource mapping for request '
                f'"{request}" is "{resource}"'
            )
            raise CniError(INTERNAL, text)
        found.setdefault(resource, []).append(attributes[0])


def _results(claim: dict[str, Any], name: str) -> list[dict[str, Any]]:
    allocation = (claim.get("status") or {}).get("allocation")
    if not allocation:
        raise CniError(INTERNAL, f"claim {name} has no device allocation")
    return [one for one in (allocation.get("devices") or {}).get("results") or [] if isinstance(one, dict)]


class _Slices:
    """The resource slices of each driver, asked for once."""

    def __init__(self, client: Any, node: str) -> None:
        self._client = client
        self._node = node
        self._known: dict[str, list[dict[str, Any]]] = {}

    def attributes(self, result: dict[str, Any]) -> tuple[str, str] | None:
        """Return (device id, resource name) of an allocated device, None if it does not say them."""
        driver = result.get("driver") or ""
        if driver not in self._known:
            self._known[driver] = self._client.resource_slices(driver, self._node)
        for item in self._known[driver]:
            spec = item.get("spec") or {}
            if spec.get("driver") != driver or (spec.get("pool") or {}).get("name") != result.get("pool"):
                continue
            for device in spec.get("devices") or []:
                if device.get("name") == result.get("device"):
                    attributes = device.get("attributes") or {}
                    values = [(attributes.get(key) or {}).get("string") for key in (_DEVICE_ID, _RESOURCE_NAME)]
                    return (str(values[0]), str(values[1])) if all(values) else None
        return None
