# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration of Multus itself (multus spec 2)."""

from __future__ import annotations

from ..cni import gojson, goprint, goshape, versions
from ..cni.errors import INTERNAL, CniError
from ..cni.goshape import BOOLEAN, INTEGER, STRING, List, Struct
from . import trees
from .delegate import in_struct, load_delegate
from .request import BANDWIDTH, PORT_MAPPINGS, bandwidth, port_mappings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .delegate import Delegate

CONF_DIR = "/etc/cni/multus/net.d"
CNI_DIR = "/var/lib/cni/multus"
BIN_DIR = "/opt/cni/bin"
API_TIMEOUT_S = 10
SYSTEM_NAMESPACE = "kube-system"


class _Object(goshape.Shape):
    name = "map[string]interface {}"

    def decode(self, node: Any, old: Any, path: str) -> Any:
        if node is not None and not isinstance(node, tuple):
            raise goshape.mismatch(node, path, self.name)
        return node


_RUNTIME = Struct(
    "types.RuntimeConfig",
    {
        "portMappings": PORT_MAPPINGS,
        "bandwidth": BANDWIDTH,
        "ips": List(STRING),
        "mac": STRING,
        "infinibandGUID": STRING,
        "deviceID": STRING,
        "CNIDeviceInfoFile": STRING,
    },
    pointer=True,
)
_LOG_OPTIONS = Struct(
    "logging.LogOptions",
    {"maxAge": INTEGER, "maxSize": INTEGER, "maxBackups": INTEGER, "compress": BOOLEAN},
    pointer=True,
)
_TEXTS = (
    "cniVersion",
    "name",
    "type",
    "kubeconfig",
    "clusterNetwork",
    "confDir",
    "cniDir",
    "binDir",
    "multusNamespace",
    "globalNamespaces",
    "readinessindicatorfile",
    "auxiliaryCNIChainName",
    "logFile",
    "logLevel",
)
_CONFIG = Struct(
    "types.NetConf",
    {
        **{key: STRING for key in _TEXTS},
        "delegates": List(_Object()),
        "defaultNetworks": List(STRING),
        "systemNamespaces": List(STRING),
        "namespaceIsolation": BOOLEAN,
        "retryDeleteOnError": BOOLEAN,
        "logToStderr": BOOLEAN,
        "logOptions": _LOG_OPTIONS,
        "runtimeConfig": _RUNTIME,
        "prevResult": _Object(),
        "capabilities": _Object(),
        "apiTimeoutSeconds": INTEGER,
    },
)
# what a result of each layout may call itself; the first of them is the version without a name
_LAYOUTS = (("", "0.1.0", "0.2.0"), ("0.3.0", "0.3.1", "0.4.0"), ("1.0.0", "1.1.0"))


class Config:
    """What Multus is told. Names are those of the keys; lists and texts are empty, not None, where nothing is set.

    ``cni_version`` is as it is written, maybe "". ``allowed_namespaces``: what `namespaceIsolation` leaves open besides
    the pod's own. ``runtime_config``: known keys as plugins get them, ``other_runtime_config``: the rest.
    ``api_timeout_s``: seconds for the Kubernetes API in one call.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        text = values.get
        self.name: str = text("name", "")
        self.cni_version: str = text("cniVersion", "")
        self.kubeconfig: str = text("kubeconfig", "")
        self.cluster_network: str = text("clusterNetwork", "")
        self.default_networks: list[str] = [one or "" for one in text("defaultNetworks") or []]
        self.conf_dir: str = text("confDir", CONF_DIR)
        self.cni_dir: str = text("cniDir", CNI_DIR)
        self.bin_dir: str = text("binDir", BIN_DIR)
        self.multus_namespace: str = text("multusNamespace", SYSTEM_NAMESPACE)
        self.system_namespaces: list[str] = [one or "" for one in text("systemNamespaces", [SYSTEM_NAMESPACE])]
        self.namespace_isolation: bool = text("namespaceIsolation", False)
        listed = text("globalNamespaces", "")
        self.allowed_namespaces = [one.strip() for one in listed.split(",")] if listed else ["default"]
        self.readiness_indicator_file: str = text("readinessindicatorfile", "")
        self.auxiliary_chain: str = text("auxiliaryCNIChainName", "")
        self.log_file: str = text("logFile", "")
        self.log_level: str = text("logLevel", "")
        self.log_to_stderr: bool = text("logToStderr", True)
        self.log_options: dict[str, Any] = text("logOptions") or {}
        self.runtime_config: dict[str, Any] = _runtime_config(text("runtimeConfig") or {})
        self.other_runtime_config: dict[str, Any] = {}
        self.api_timeout_s: float = max(1, text("apiTimeoutSeconds", API_TIMEOUT_S))
        self.delegates: list[Delegate] = []


def load_config(tree: Any) -> Config:
    """Return the configuration of a tree (`gojson.parse`). Raises CniError (code 999) with Go's words."""
    try:
        values = _CONFIG.decode(tree, None, "")
    except goshape.TypeFault as fault:
        raise _fault(f"failed to load netconf: {in_struct(fault, 'NetConf')}") from None
    config = Config(values)
    config.other_runtime_config = _other_runtime_config(gojson.field(tree, "runtimeConfig"))
    if values.get("prevResult") is not None:
        _check_previous_result(values["prevResult"], config.cni_version)
    delegates = values.get("delegates") or []
    if config.cluster_network:
        return config
    if not delegates:
        raise _fault("at least one delegate/clusterNetwork must be specified")
    for index, delegate in enumerate(delegates):
        try:
            ordered = goprint.in_order(trees.document(delegate or ()))
            loaded = load_delegate(delegate or (), trees.text(ordered))
        except CniError as error:
            raise _fault(f"failed to load delegate {index} config: {error}") from None
        config.delegates.append(loaded)
    config.delegates[0].is_master = True
    return config


def _fault(message: str) -> CniError:
    return CniError(INTERNAL, f"LoadNetConf: {message}")


def _check_previous_result(tree: Any, version: str) -> None:
    """Refuse a prevResult that is none; it is not used (multus spec 2)."""
    from ..cni import resultread

    layout = next((one for one in _LAYOUTS if version in one), ())
    named = gojson.field(tree, "cniVersion") or version
    if isinstance(named, str) and named not in layout:
        known = " ".join(layout)
        text = f'result type supports [{known}] but unmarshalled CNIVersion is "{named}"'
        raise _fault(f"could not parse prevResult: {text}")
    try:
        resultread.from_tree(tree, version or versions.DEFAULT)
    except CniError as error:
        raise _fault(f"could not parse prevResult: {error}") from None


def _runtime_config(values: dict[str, Any]) -> dict[str, Any]:
    """Return the known keys of runtimeConfig in the form in which plugins get them, empty ones left out."""
    shown: dict[str, Any] = {
        "portMappings": port_mappings([one or {} for one in values.get("portMappings") or []]),
        "bandwidth": bandwidth(values.get("bandwidth")),
        "ips": [one or "" for one in values.get("ips") or []],
    }
    shown.update((key, values.get(key)) for key in ("mac", "infinibandGUID", "deviceID", "CNIDeviceInfoFile"))
    return {key: value for key, value in shown.items() if value}


def _other_runtime_config(tree: Any) -> dict[str, Any]:
    if not isinstance(tree, tuple):
        return {}
    known = _RUNTIME.fields
    return {key: gojson.plain(value) for key, value in tree if gojson.fold(key) not in known and value is not None}
