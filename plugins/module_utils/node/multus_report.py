# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What multus_info returns: what pods would get, and of whom Multus keeps delegates. Nothing is changed."""

from __future__ import annotations

import os
import time

from ..cni.errors import NodenetError
from . import findings, multus_lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..multus.config import Config

_MOST_NAMES = 5


def report(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of the module multus_info. Raises NodenetError."""
    result: dict[str, Any] = {"config_source": None, "pods": [], "cached": []}
    facts: list[dict[str, Any]] = []
    if params["pods"]:
        config, result["config_source"] = multus_lookup.read_config(params["conf_dir"], params["config"])
        client = multus_lookup.client_of(config, params["api_timeout"]) if params["api"] else None
        try:
            lookup = multus_lookup.Lookup(params["networks"], client)
            for given in params["pods"]:
                row, more = _pod(config, given, lookup)
                result["pods"].append(row)
                facts += more
        finally:
            if client is not None:
                client.close()
    if params["cached"]:
        result["cached"], more = _cached(params)
        facts += more
    result["findings"] = findings.from_facts(_each_once(facts))
    return result


def _pod(
    config: Config, given: Mapping[str, Any], lookup: multus_lookup.Lookup
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from . import multus_predict

    namespace = given.get("namespace") or "default"
    row: dict[str, Any] = {"namespace": namespace, "name": given["name"], "uid": None, "usable": False}
    row.update(delegates=[], refusal=None, findings=[])
    where = f"pod {namespace}/{given['name']}"
    annotations = multus_lookup.annotations_of(given)
    try:
        pod = multus_lookup.pod_of(given, annotations, lookup.client)
    except NodenetError as error:
        facts = [{"kind": "multus-pod-unknown", "where": where, "reason": str(error)}]
        row["findings"] = findings.from_facts(facts)
        return row, facts
    metadata = pod.get("metadata") or {}
    row["uid"] = metadata.get("uid") or None
    unknown: list[dict[str, Any]] = []
    device = _device(pod, lookup, where, unknown)
    arguments = (given.get("ifname") or "eth0", given.get("container_id") or "")
    row["delegates"], facts = multus_predict.predict(config, pod, lookup, device, *arguments)
    facts = _each_once(facts + unknown)
    row["findings"] = findings.from_facts(facts)
    row["refusal"] = _refusal(config, pod, lookup, _device(pod, lookup, where, []), arguments[0])
    row["usable"] = row["refusal"] is None
    return row, facts


def _device(
    pod: dict[str, Any], lookup: multus_lookup.Lookup, where: str, facts: list[dict[str, Any]]
) -> Callable[[str], str]:
    """Return what hands out devices: kubelet's own, which it knows of a pod on this node, or none."""
    if lookup.client is not None:
        from ..multus.devices import Devices

        return Devices(pod, lookup.client).take

    def take(resource: str) -> str:
        facts.append({"kind": "multus-device-unknown", "where": where, "resource": resource})
        return ""

    return take


def _refusal(
    config: Config, pod: dict[str, Any], lookup: multus_lookup.Lookup, device: Callable[[str], str], ifname: str
) -> str | None:
    """Return the text with which Multus refuses the pod, as it stands in the events of the pod; None if it does not."""
    from ..multus import attachments, confdir, ifnames
    from ..multus.resolve import Resolver, Sources
    from . import multus_predict

    resolver = Resolver(config, pod, Sources(lookup.nad, device))
    try:
        delegates = resolver.default_networks()
        resolver.pod_networks(delegates)
        if config.auxiliary_chain and "/" not in config.cluster_network:
            confdir.auxiliary(config.auxiliary_chain, config.cluster_network, config.cni_version)
    except NodenetError as error:
        return str(error)
    faults = ifnames.name_faults(delegates, attachments.interface_names(delegates, ifname))
    if faults:
        return str(faults[0])
    return next((fault for fault in map(multus_predict.running_fault, delegates) if fault), None)


def _cached(params: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    from ..cni.resultcache import ResultCache
    from ..multus import attachments, cache

    directory = params["cache_dir"]
    facts: list[dict[str, Any]] = []
    try:
        os.listdir(directory)
    except FileNotFoundError:
        return [], []
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return [], [{"kind": "node-cache-unreadable", "where": directory, "reason": reason}]
    results: dict[str, list[Any]] = {}
    for entry in ResultCache(directory).entries():
        results.setdefault(entry.container_id, []).append(entry)
    judge = _judge(params, facts)
    now = time.time()
    rows = []
    for container_id in cache.containers(directory):
        path = cache.path_of(directory, container_id)
        try:
            age = int(now - os.stat(path).st_mtime)
            delegates = cache.read(directory, container_id)
        except OSError:
            continue  # its DEL came
        except NodenetError as error:
            delegates = []
            facts.append(
                {"kind": "multus-cache-unusable", "where": path, "reason": str(error).rpartition(path + ": ")[2]}
            )
        if delegates is None:
            continue
        entries = results.get(container_id, [])
        row: dict[str, Any] = {"container_id": container_id, "age_s": max(0, age), "usable": bool(delegates)}
        row.update(_pod_of(entries))
        master = next((one.ifname for one in entries if delegates and one.network == delegates[0].network), "eth0")
        row["delegates"] = [
            {"name": one.name, "network": one.network, "interface": attachments.interface_name(at, one, master),
             "attached": any(entry.network == one.network for entry in entries)}
            for at, one in enumerate(delegates)
        ]  # fmt: skip
        row["alive"] = None if judge is None else judge.judge(container_id, master)
        rows.append(row)
    dead = [row["container_id"] for row in rows if row["alive"] is False]
    if dead:
        names = ", ".join(one[:12] for one in dead[:_MOST_NAMES]) + (", ..." if len(dead) > _MOST_NAMES else "")
        facts.append(
            {"kind": "multus-cache-dead", "where": directory, "count": len(dead), "entries": len(rows), "names": names}
        )
    return rows, facts


def _judge(params: Mapping[str, Any], facts: list[dict[str, Any]]) -> Any:
    live = params["live"]
    if not live:
        return None
    from . import liveness

    options = dict(liveness.defaults(), attachments=live.get("attachments"))
    if not live.get("discover"):
        options["sources"] = []
    options["results_dirs"] = [*options["results_dirs"], os.path.join(params["cache_dir"], "results")]
    judge = liveness.Judge(liveness.gather(options))
    if judge.fault:
        facts.append({"kind": "multus-liveness-unknown", "where": "this node", "reason": judge.fault})
    return judge


def _pod_of(entries: list[Any]) -> dict[str, Any]:
    """Return whose delegates they are, as the results of the attachments tell; null where they do not."""
    values: dict[str, str] = {}
    for entry in entries:
        values.update((key, value) for key, value in entry.args if value)
    keys = {"namespace": "K8S_POD_NAMESPACE", "name": "K8S_POD_NAME", "uid": "K8S_POD_UID"}
    return {key: values.get(arg) for key, arg in keys.items()}


def _each_once(facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Several pods may meet the same network; and a fault may show on two ways."""
    seen: list[dict[str, Any]] = []
    for fact in facts:
        if fact not in seen:
            seen.append(fact)
    return seen
