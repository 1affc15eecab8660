# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide which networks a pod gets: configuration, annotations and NetworkAttachmentDefinitions in, delegates out.

Nothing is attached here, and nothing but what `Sources` offers is asked (multus spec 5, 6, 7.1, 8).
"""

from __future__ import annotations

from ..cni import gojson
from ..cni.errors import INTERNAL, CniError, NodenetError
from . import confdir, selection, trees
from .delegate import load_delegate, load_document
from .request import DEFAULT_NETWORK, NETWORKS, Request, is_ipv4

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    from .config import Config
    from .delegate import Delegate

    T = TypeVar("T")

RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"


class NoNetwork(CniError):
    """A NetworkAttachmentDefinition is not there, or the API does not give it."""


class Sources:
    """Where the decision gets what it does not have.

    :param nad: returns the NetworkAttachmentDefinition of a namespace and name, raises NodenetError
    :param device: returns the next device id of a resource, "" when all are used up; raises NodenetError
    :param find_by_name: as `confdir.find_by_name`
    :param from_path: as `confdir.from_path`
    """

    def __init__(
        self,
        nad: Callable[[str, str], dict[str, Any]],
        device: Callable[[str], str] | None = None,
        find_by_name: Callable[[str, str], Delegate] = confdir.find_by_name,
        from_path: Callable[[str], Delegate] = confdir.from_path,
    ) -> None:
        self.nad = nad
        self.device = device
        self.find_by_name = find_by_name
        self.from_path = from_path


class Resolver:
    """The decision for one pod.

    *pod* is the object of the API. With *faults* given, what fails is appended there and the decision goes on: for
    people who want to know all that is wrong; without it the first fault is raised.
    """

    def __init__(
        self, config: Config, pod: dict[str, Any], sources: Sources, faults: list[NodenetError] | None = None
    ) -> None:
        self.config = config
        self.sources = sources
        self.faults = faults
        metadata = pod.get("metadata") or {}
        self.namespace: str = metadata.get("namespace") or ""
        self.annotations: dict[str, str] = metadata.get("annotations") or {}

    def default_networks(self) -> list[Delegate]:
        """Return the delegates that every pod gets. Raises CniError (code 999)."""
        if not self.config.cluster_network:
            return list(self.config.delegates)
        delegates = self.attempt(self.cluster_network)
        if self.namespace not in self.config.system_namespaces:
            for name in self.config.default_networks:
                delegates += self.attempt(self._named_only, name)
        return delegates

    def pod_networks(self, delegates: list[Delegate]) -> None:
        """Replace the first of *delegates*, and add to them, as the pod's annotations say. Raises CniError (999)."""
        self.attempt(self._default_network, delegates)
        text = self.annotations.get(NETWORKS)
        if not text:
            return
        for request in self.read(text):
            delegates += self.attempt(self._requested, request)
        if any(one.request.gateways is not None for one in delegates):
            self.attempt(_mark, delegates)

    def read(self, text: str) -> list[Request]:
        """Return what an annotation asks for. Raises CniError (code 999) unless faults are collected."""
        return self.attempt(selection.parse_networks, text, self.namespace)

    def attempt(self, decide: Callable[..., list[T]], *arguments: Any) -> list[T]:
        """Return what *decide* returns; nothing if it fails and faults are collected."""
        try:
            return decide(*arguments)
        except NodenetError as error:
            if self.faults is None:
                raise
            self.faults.append(error)
            return []

    def cluster_network(self) -> list[Delegate]:
        """Return the network that the configuration names in place of delegates. Raises CniError (code 999)."""
        name = self.config.cluster_network
        try:
            delegate = self._named(name)
        except CniError as error:
            text = (
                f"GetDefaultNetworks: failed to get clusterNetwork {name} in namespace {self.config.multus_namespace}"
            )
            raise CniError(INTERNAL, text if self.faults is None else f"{text}: {error}") from None
        delegate.is_master = True
        return [delegate]

    def _named(self, name: str) -> Delegate:
        """Find a network of the configuration: a path, an object in multusNamespace, or a file by its network."""
        if "/" in name:
            return self.sources.from_path(name)
        try:
            return self._object(Request(self.config.multus_namespace, name))
        except NodenetError:
            pass
        try:
            return self.sources.find_by_name(self.config.conf_dir, name)
        except CniError:
            raise CniError(INTERNAL, f"getNetDelegate: cannot find network: {name}") from None

    def _named_only(self, name: str) -> list[Delegate]:
        return [self._named(name)]

    def _default_network(self, delegates: list[Delegate]) -> list[Delegate]:
        if DEFAULT_NETWORK not in self.annotations:
            return []
        prefix = (
            "TryLoadPodDelegates: error in loading K8s cluster default network from pod annotation: "
            "tryLoadK8sPodDefaultNetwork: "
        )
        text = self.annotations[DEFAULT_NETWORK]
        try:
            requests = selection.parse_networks(text, self.config.multus_namespace)
        except CniError as error:
            raise CniError(INTERNAL, f"{prefix}failed to parse CRD object: {error}") from None
        if not requests:  # upstream crashes (M1)
            raise CniError(INTERNAL, f"{prefix}no default network is specified: {text}")
        if len(requests) > 1:
            raise CniError(INTERNAL, f"{prefix}more than one default network is specified: {text}")
        try:
            if requests[0].namespace != self.config.multus_namespace:
                self._check_isolation(requests[0], "")  # M2
            delegate = self._object(requests[0])
        except NodenetError as error:
            raise CniError(INTERNAL, f"{prefix}failed getting the delegate: {error}") from None
        delegate.is_master = True
        delegates[:1] = [delegate]
        return [delegate]

    def _requested(self, request: Request) -> list[Delegate]:
        prefix = "TryLoadPodDelegates: error in getting k8s network for pod: GetNetworkDelegates: "
        self._check_isolation(request, prefix)
        try:
            return [self._object(request)]
        except NodenetError as error:
            raise CniError(INTERNAL, f"{prefix}failed getting the delegate: {error}") from None

    def _check_isolation(self, request: Request, prefix: str) -> None:
        allowed = self.config.allowed_namespaces
        if not self.config.namespace_isolation or request.namespace in (self.namespace, *allowed):
            return
        raise CniError(
            INTERNAL,
            f"{prefix}namespace isolation enabled, annotation violates permission, pod is in namespace "
            f"{self.namespace} but refers to target namespace {request.namespace}",
        )

    def _object(self, request: Request) -> Delegate:
        """Return the delegate of a NetworkAttachmentDefinition (multus spec 5.3)."""
        try:
            nad = self.sources.nad(request.namespace, request.name)
        except NodenetError as error:
            text = (
                f"getKubernetesDelegate: cannot find a network-attachment-definition ({request.name}) "
                f"in namespace ({request.namespace}): {error}"
            )
            raise NoNetwork(INTERNAL, text) from None
        resource = ((nad.get("metadata") or {}).get("annotations") or {}).get(RESOURCE_NAME) or ""
        device_id = self.sources.device(resource) if resource and self.sources.device is not None else ""
        delegate = self._configured(request.name, (nad.get("spec") or {}).get("config") or "")
        if device_id:
            _inject(delegate, lambda plugin: plugin.update(deviceID=device_id, pciBusID=device_id))
        if request.cni_args is not None:
            given = trees.document(request.cni_args)
            _inject(delegate, lambda plugin: _merge_args(plugin, given))
        delegate.request = request
        delegate.name = f"{request.namespace}/{request.name}"
        delegate.resource_name = resource if device_id else ""
        delegate.device_id = device_id or request.device_id
        return delegate

    def _configured(self, name: str, text: str) -> Delegate:
        if not text:
            try:
                return self.sources.find_by_name(self.config.conf_dir, name)
            except CniError as error:
                raise CniError(INTERNAL, f"GetCNIConfig: err in GetCNIConfigFromFile: {error}") from None
        data = text.encode("utf-8", "surrogateescape")
        prefix = "GetCNIConfig: err in getCNIConfigFromSpec: failed to unmarshal Spec.Config: "
        try:
            tree = gojson.parse(data)
        except gojson.SyntaxFault as fault:
            raise CniError(INTERNAL, f"{prefix}{fault}") from None
        if not isinstance(tree, tuple):
            kind = {list: "array", str: "string", gojson.Number: "number", bool: "bool"}.get(tree.__class__, "null")
            text = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            raise CniError(INTERNAL, prefix + text)
        values = trees.document(tree)
        if values.get("name") in (None, ""):
            values["name"] = name
            return load_document(values)
        return load_delegate(tree, data)


def cause_of(error: BaseException | None, kind: type[Any]) -> Any:
    """Return the cause of that kind, None if there is none: a decision words errors anew and hides their causes."""
    while error is not None:
        if isinstance(error, kind):
            return error
        error = error.__cause__ or error.__context__
    return None


def _inject(delegate: Delegate, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the configuration, or that of every plugin of a list."""
    values = trees.document(delegate.tree)
    listed = values.get("plugins") if delegate.is_list else [values]  # by its exact name, as libcni finds it
    for plugin in listed if isinstance(listed, list) else []:
        if isinstance(plugin, dict):
            change(plugin)
    delegate.replace(values)


def _merge_args(plugin: dict[str, Any], given: dict[str, Any]) -> None:
    args = plugin.setdefault("args", {})
    cni = args.setdefault("cni", {}) if isinstance(args, dict) else None
    if not isinstance(cni, dict):  # upstream crashes (M1)
        raise CniError(INTERNAL, "getKubernetesDelegate: cannot add cni-args: args.cni of the network is no object")
    cni.update(given)


def _mark(delegates: list[Delegate]) -> list[Delegate]:
    """Mark whose default routes are to go since another network asks for them (multus spec 7.1)."""
    families = [is_ipv4(one) for delegate in delegates for one in delegate.request.gateways or []]
    if families.count(True) > 1 or families.count(False) > 1:
        raise CniError(INTERNAL, "multus does not support ECMP for default-route")
    for delegate in delegates:
        own = [is_ipv4(one) for one in delegate.request.gateways or []]
        delegate.filter_ipv4 = True not in own
        delegate.filter_ipv6 = False not in own
    return delegates
