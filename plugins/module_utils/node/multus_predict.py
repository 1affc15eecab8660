# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a pod would get from Multus, and everything that is wrong with it at once.

The decision is the plugin's own (multus.resolve); here it goes on after a fault, with a gap in the place of what could
not be decided, so that the names of the other interfaces are those that they will have.
"""

from __future__ import annotations

from ..cni import gojson
from ..cni.errors import CniError, NodenetError
from ..cni.names import interface_fault, valid_name
from ..multus import attachments, confdir, podargs
from ..multus.delegate import Unknown
from ..multus.request import NETWORKS
from ..multus.resolve import Resolver, Sources, cause_of
from . import multus_requests
from .confdir import text_of
from .multus_lookup import Lookup, Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..multus.config import Config
    from ..multus.delegate import Delegate
    from ..multus.request import Request

#: What a request has to be declared as by a plugin, or the plugin never sees it.
_CAPABILITIES = {"port_mappings": "portMappings", "bandwidth": "bandwidth", "ips": "ips", "mac": "mac",
                 "infiniband_guid": "infinibandGUID"}  # fmt: skip
_WRAPPERS = ("GetNetworkDelegates: ", "tryLoadK8sPodDefaultNetwork: ", "GetDefaultNetworks: ")


class _Told(NodenetError):
    """A fault that is a fact already."""


class Prediction(Resolver):
    """The decision for one pod that collects facts. ``facts``: what is wrong or doubtful; ``where``: the pod."""

    def __init__(self, config: Config, pod: dict[str, Any], lookup: Lookup, device: Callable[[str], str]) -> None:
        super().__init__(config, pod, Sources(lookup.nad, device), [])
        metadata = pod.get("metadata") or {}
        self.where = f"pod {self.namespace}/{metadata.get('name') or ''}"
        self.facts: list[dict[str, Any]] = []
        self._guessing = False

    def fact(self, kind: str, **params: Any) -> None:
        self.facts.append(dict(params, kind=kind, where=self.where))

    def read(self, text: str) -> list[Request]:
        """Return the requests of the annotation; what is wrong with it becomes facts."""
        reading = multus_requests.read(text, self.namespace)
        for fault in reading.faults:
            self.fact("multus-annotation-invalid", annotation=NETWORKS, reason=fault)
        for warning in reading.warnings:
            self.fact("multus-annotation-doubtful", annotation=NETWORKS, reason=warning)
        return reading.requests

    def attempt(self, decide: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what *decide* returns, or a gap when it fails."""
        try:
            return list(decide(*arguments) or ())
        except NodenetError as error:
            if not _was_told(error):
                text = str(error)
                for wrapper in _WRAPPERS:
                    text = text.rpartition(wrapper)[2]
                self.fact("multus-undecided", reason=text)
            return [Unknown()]

    def _named(self, name: str) -> Delegate:
        self._guessing = True  # an object that is not there is no fault: a file may define the network
        try:
            return super()._named(name)
        finally:
            self._guessing = False

    def _requested(self, request: Request) -> list[Delegate]:
        if isinstance(request, multus_requests.Gap):
            gap = Unknown()
            gap.name, gap.request = request.shown, request
            return [gap]
        return super()._requested(request)

    def _check_isolation(self, request: Request, prefix: str) -> None:
        try:
            super()._check_isolation(request, prefix)
        except CniError:
            allowed = ", ".join(self.config.allowed_namespaces)
            network = f"{request.namespace}/{request.name}"
            self.fact("multus-namespace-isolated", network=network, namespace=self.namespace, allowed=allowed)
            raise _Told("") from None

    def _object(self, request: Request) -> Delegate:
        network = f"{request.namespace}/{request.name}"
        try:
            return super()._object(request)
        except NodenetError as error:
            if self._guessing:
                raise
            missing = cause_of(error, Missing)
            if missing is not None and not missing.elsewhere:
                self.fact("multus-network-missing", network=network)
            elif missing is not None:
                names = ", ".join(f"{one}/{request.name}" for one in missing.elsewhere)
                self.fact("multus-network-elsewhere", network=network, elsewhere=names)
            elif cause_of(error, gojson.SyntaxFault) is not None and self._is_no_json(request):
                text = self.sources.nad(request.namespace, request.name)["spec"]["config"]
                reasons = multus_requests.syntax_faults(text, "its configuration")
                self.fact("multus-network-unusable", network=network, reason="; ".join(reasons))
            else:
                text = str(error)
                for prefix in ("getKubernetesDelegate: ", "GetCNIConfig: ", "LoadDelegateNetConf: "):
                    text = text.replace(prefix, "")
                self.fact("multus-network-unusable", network=network, reason=text)
            raise _Told(str(error)) from None

    def _is_no_json(self, request: Request) -> bool:
        """Tell whether it is the network's own text that cannot be parsed, and not a file of confDir, for instance."""
        try:
            text = (self.sources.nad(request.namespace, request.name).get("spec") or {}).get("config")
            gojson.parse(text.encode("utf-8", "surrogateescape") if text and isinstance(text, str) else b"{}")
        except gojson.SyntaxFault:
            return True
        except NodenetError:
            return False
        return False


def predict(
    config: Config, pod: dict[str, Any], lookup: Lookup, device: Callable[[str], str], ifname: str, container_id: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what Multus would call for a pod, in order, and the facts about it. Nothing is called.

    :param device: as `Sources.device`
    """
    resolver = Prediction(config, pod, lookup, device)
    delegates = resolver.default_networks()
    resolver.pod_networks(delegates)
    if config.auxiliary_chain:
        try:
            chain = confdir.auxiliary(config.auxiliary_chain, config.cluster_network, config.cni_version)
            delegates += [chain] if chain is not None else []
        except CniError as error:
            resolver.fact("multus-undecided", reason=str(error))
    names = attachments.interface_names(delegates, ifname)
    seen: dict[str, str] = {}
    for delegate, name in zip(delegates, names):
        invalid = interface_fault(name)
        if isinstance(delegate, Unknown) and not delegate.request.interface:
            seen.setdefault(name, delegate.name or "a network that cannot be decided")
        elif invalid is not None:
            resolver.fact("multus-interface-invalid", network=delegate.name, interface=name, reason=invalid[0])
        elif name in seen:
            resolver.fact("multus-interface-twice", network=delegate.name, interface=name, first=seen[name])
        else:
            seen[name] = delegate.name
    args = _pod_args(pod, container_id)
    rows = []
    for index, (delegate, name) in enumerate(zip(delegates, names)):
        if isinstance(delegate, Unknown):
            continue
        fault = running_fault(delegate)
        if fault:
            resolver.fact("multus-network-unusable", network=delegate.name, reason=fault)
        row = _row(config, delegate, index, name, args, container_id)
        rows.append(row)
        _check_capabilities(resolver, delegate, row)
        if not delegate.is_master:
            from . import lint

            # a network that lies in the cluster is read by no runtime, so nobody has looked at it
            resolver.facts += lint.check_config(delegate.tree, delegate.cni_version, f"network {delegate.name}")
    return rows, resolver.facts


def running_fault(delegate: Delegate) -> str:
    """Return why a network that is decided cannot be run (multus spec 7.2), "" if nothing tells so."""
    try:
        delegate.load()
    except CniError as error:
        return str(error)
    for plugin in delegate.plugins():
        kind = text_of(gojson.field(plugin, "type"))
        if "/" in kind:
            return f"invalid plugin name: {kind}"
    if not delegate.network:
        return "it has no name"
    return "" if valid_name(delegate.network) else f"{delegate.network!r} cannot be the name of a network"


def _row(
    config: Config, delegate: Delegate, index: int, name: str, args: podargs.PodArgs, container_id: str
) -> dict[str, Any]:
    called = attachments.attachment(config, delegate, name, args, container_id, "", adding=True)
    plugins = []
    for plugin in delegate.plugins():
        switched_on = gojson.field(plugin, "capabilities")
        values = {
            key: value
            for key, value in called.capability_args.items()
            if isinstance(switched_on, tuple) and dict(switched_on).get(key) is True
        }
        plugins.append({"type": text_of(gojson.field(plugin, "type")), "runtime_config": values})
    return {
        "index": index,
        "name": delegate.name,
        "network": delegate.network,
        "cni_version": delegate.cni_version,
        "master": delegate.is_master,
        "interface": name,
        "cni_args": ";".join(f"{key}={value}" for key, value in called.args),
        "plugins": plugins,
        "default_route": delegate.request.gateways or [],
        "device_id": delegate.device_id or None,
        "config": gojson.plain(delegate.tree),
    }


def _pod_args(pod: Mapping[str, Any], container_id: str) -> podargs.PodArgs:
    """Return what kubelet and runtime say of the pod."""
    metadata = pod.get("metadata") or {}
    pairs = [
        ("IgnoreUnknown", "1"),
        ("K8S_POD_NAMESPACE", metadata.get("namespace") or ""),
        ("K8S_POD_NAME", metadata.get("name") or ""),
        ("K8S_POD_INFRA_CONTAINER_ID", container_id),
        ("K8S_POD_UID", metadata.get("uid") or ""),
    ]
    return podargs.parse(";".join(f"{key}={value}" for key, value in pairs))


def _check_capabilities(resolver: Prediction, delegate: Delegate, row: Mapping[str, Any]) -> None:
    """Tell of requests that no plugin of the network takes: they are dropped without a word."""
    if delegate.is_master:
        return
    given = {key for plugin in row["plugins"] for key in plugin["runtime_config"]}
    for name, capability in _CAPABILITIES.items():
        if getattr(delegate.request, name) and capability not in given:
            resolver.fact("multus-capability-missing", network=delegate.name, capability=capability)


def _was_told(error: BaseException) -> bool:
    return cause_of(error, _Told) is not None
