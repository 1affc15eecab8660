# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a prediction gets its objects from: the pods and networks that a playbook gives, and the API server."""

from __future__ import annotations

import json
import os

from ..cni import gojson
from ..cni.errors import CniError, NodenetError
from ..multus import trees
from ..multus.config import load_config
from . import confdir, multus_master, networks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..multus.config import Config
    from ..multus.kube import Client

_MISSING = 'network-attachment-definitions.k8s.cni.cncf.io "{}" not found'


class Missing(NodenetError):
    """There is no such network; ``elsewhere``: the namespaces that have one of that name."""

    def __init__(self, name: str, elsewhere: list[str], reason: str = "") -> None:
        super().__init__(reason or _MISSING.format(name))
        self.elsewhere = elsewhere


class Lookup:
    """The networks that were given, by namespace and name, and the API server's if there is a client."""

    def __init__(self, given: Sequence[Mapping[str, Any]], client: Client | None = None) -> None:
        self.client = client
        self._given = {}
        for at, one in enumerate(given):
            namespace, name, document = _network(one, at)
            self._given[namespace, name] = document
        self._fetched: dict[tuple[str, str], dict[str, Any] | NodenetError] = {}

    def nad(self, namespace: str, name: str) -> dict[str, Any]:
        """Return the NetworkAttachmentDefinition. Raises Missing, or NodenetError when the API does not answer."""
        found = self._given.get((namespace, name))
        if found is not None:
            return found
        if self.client is None or not name:
            if not name:
                raise NodenetError("resource name may not be empty")
            raise Missing(name, sorted(one[0] for one in self._given if one[1] == name))
        return self._fetch(self.client, namespace, name)

    def _fetch(self, client: Client, namespace: str, name: str) -> dict[str, Any]:
        from ..multus.kube import NotFound

        if (namespace, name) not in self._fetched:
            try:
                self._fetched[namespace, name] = client.nad(namespace, name)
            except NotFound as error:
                self._fetched[namespace, name] = Missing(name, self._elsewhere(client, namespace, name), str(error))
            except NodenetError as error:
                self._fetched[namespace, name] = error
        found = self._fetched[namespace, name]
        if isinstance(found, NodenetError):
            raise found
        return found

    def _elsewhere(self, client: Client, namespace: str, name: str) -> list[str]:
        found = [one[0] for one in self._given if one[1] == name]
        if namespace != "default":
            try:
                client.nad("default", name)
                found.append("default")
            except NodenetError:
                pass  # it was a guess
        return sorted(set(found))


def annotations_of(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations that a playbook gives for a pod. Raises NodenetError for one that Kubernetes refuses."""
    annotations = dict(given.get("annotations") or {})
    for option, key in (("networks", "k8s.v1.cni.cncf.io/networks"),
                        ("default_network", "v1.multus-cni.io/default-network")):  # fmt: skip
        if given.get(option) is not None:
            annotations[key] = str(given[option])
    pod = f"{given.get('namespace') or 'default'}/{given['name']}"
    for key, value in annotations.items():
        if not isinstance(value, str):
            raise NodenetError(
                f"Cannot use the annotations of pod {pod}: the value of {key} is no text; "
                "make it one with the filter nodenet.cni.format_networks"
            )
    return annotations


def pod_of(given: Mapping[str, Any], annotations: Mapping[str, str], client: Client | None) -> dict[str, Any]:
    """Return a pod as the API has it: asked for unless *annotations* are given for it. Raises NodenetError."""
    namespace, name = given.get("namespace") or "default", given["name"]
    if client is None or annotations or given.get("annotations") is not None:
        metadata = {"namespace": namespace, "name": name, "uid": given.get("uid") or "", "annotations": annotations}
        return {"metadata": metadata}
    return client.pod(namespace, name)


def read_config(conf_dir: str, given: Mapping[str, Any] | None) -> tuple[Config, str]:
    """Return the configuration of Multus and where it comes from. Raises NodenetError.

    :param given: a document, a single plugin's or a list with Multus in it; None for that of the conf dir
    """
    if given is not None:
        name = "config.conflist" if "plugins" in given else "config.conf"
        where, one = "the option config", confdir.ConfFile(name, json.dumps(given).encode("utf-8", "replace"))
        files = [one]
    else:
        files = [one for one in confdir.read_conf_dir(conf_dir).files if multus_master.of_multus(one)]
        if not files:
            raise NodenetError(
                f"Cannot read Multus' configuration in {conf_dir}: no file there is of Multus; give config"
            )
        one = files[0]
        where = os.path.join(conf_dir, one.shown)
    if one.error:
        raise NodenetError(f"Cannot read Multus' configuration in {where}: {one.error}")
    plugin = next(
        (each for each in one.plugins if multus_master.is_multus(confdir.text_of(gojson.field(each, "type")))), None
    )
    if plugin is None:
        raise NodenetError(f"Cannot read Multus' configuration in {where}: none of its plugins is multus")
    try:
        return load_config(networks.as_sent(plugin, one.network, one.cni_version)), where
    except CniError as error:
        raise NodenetError(f"Cannot use Multus' configuration in {where}: {error}") from None


def client_of(config: Config, timeout: float) -> Client:
    """Return the client of the API server that Multus itself would ask. Raises NodenetError."""
    from ..multus import kube

    try:
        client = kube.Client.from_config(config, timeout)
    except NodenetError as error:
        raise NodenetError(f"Cannot ask the API server: {error}") from None
    if client is None:
        raise NodenetError("Cannot ask the API server: the configuration of Multus names no kubeconfig")
    return client


def _network(given: Mapping[str, Any], at: int) -> tuple[str, str, dict[str, Any]]:
    """Return namespace, name and document of a network in either form: the object of the API, or name and config."""
    shown = f"Cannot use networks[{at}]"
    if isinstance(given.get("metadata"), dict):
        metadata, spec = given["metadata"], given.get("spec")
        config = spec.get("config") if isinstance(spec, dict) else None
    else:
        unknown = [str(key) for key in given if key not in ("name", "namespace", "config", "annotations")]
        if unknown:
            raise NodenetError(
                f"{shown}: there is no {', '.join(unknown)}; it has name, namespace, config, annotations"
            )
        metadata, config = given, given.get("config")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise NodenetError(f"{shown}: it has no name")
    if isinstance(config, dict):
        config = trees.text(trees.document(gojson.from_plain(config))).decode("utf-8", "replace")
    if config is not None and not isinstance(config, str):
        raise NodenetError(f"{shown}: config has to be a dictionary or text")
    annotations = metadata.get("annotations")
    kept = {"name": name, "annotations": dict(annotations) if isinstance(annotations, dict) else {}}
    return str(metadata.get("namespace") or "default"), name, {"metadata": kept, "spec": {"config": config or ""}}
