# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What multus_info tells of a pod, beside what the recorded Go plugin did for it.

Of each scenario the first call counts, if it is an ADD for a pod that is there. Where Multus called all delegates,
their interfaces, arguments and runtimeConfig have to be those that are told; where it refused the pod, that has to be.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

VECTORS = Path(__file__).resolve().parent / "vectors" / "multus"
TOKENS = ("CONFDIR", "CNIDIR", "BINDIR2", "BINDIR", "TMP")

# What only shows when it is done: in a namespace, on the node, by the API server or by a plugin.
ONLY_WHEN_DONE = {
    "add-netns-bad", "cnidir-unusable", "default-route-no-interface", "default-route-odd", "default-route-unreachable",
    "device-no-kubelet", "in-cluster-env", "kubeconfig-bad", "kubeconfig-https-unknown-ca",
    "nad-conflist-second-plugin-fails", "netns-own", "plugin-failure-forms", "readiness-never",
    "rollback-second-delegate", "status-forbidden", "status-pod-vanished", "status-pod-vanished-on-put",
    "status-pod-vanished-second-get",
}  # fmt: skip
# Devices are the kubelet's, other arguments the runtime's.
NOT_KNOWN_HERE = {"cni-args-composition", "device-checkpoint", "device-info-file", "device-request-and-map"}
# What we decided otherwise (docs/compatibility.md): M2, M13. The first step of netconf-errors is no configuration.
DECIDED = {"isolation-not-for-defnet", "runtimeconfig-passthrough", "netconf-errors"}


def scenarios():
    found = []
    for path in sorted(VECTORS.glob("*.json")):
        vector = json.loads(path.read_text(encoding="utf-8"))
        step = vector["steps"][0]
        if step["env"].get("CNI_COMMAND") != "ADD" or step.get("before") or "stdin_raw" in step:
            continue
        if pod_of(vector, step) is not None and vector["name"] not in ONLY_WHEN_DONE | NOT_KNOWN_HERE | DECIDED:
            found.append(vector)
    return found


def arguments(step):
    return dict(one.split("=", 1) for one in step["env"].get("CNI_ARGS", "").split(";") if "=" in one)


def pod_of(vector, step):
    wanted = [arguments(step).get(key) for key in ("K8S_POD_NAMESPACE", "K8S_POD_NAME")]
    pods = [one["metadata"] for one in vector.get("pods") or []]
    return next((one for one in pods if [one.get("namespace"), one["name"]] == wanted), None)


SCENARIOS = scenarios()


def told(vector, root):
    from ansible_collections.nodenet.cni.plugins.module_utils.node import multus_report

    def placed(value):
        text = json.dumps(value)
        for token in TOKENS:
            text = text.replace(f"@{token}@", f"{root}/{token}")
        return json.loads(text)

    for path, content in (vector.get("files") or {}).items():
        path, content = placed(path), placed(content)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_text(content if isinstance(content, str) else json.dumps(content))
    step = vector["steps"][0]
    metadata, args = pod_of(vector, step), arguments(step)
    pod = {
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": args.get("K8S_POD_UID"),
        "annotations": metadata.get("annotations") or {},
        "container_id": step["env"]["CNI_CONTAINERID"],
        "ifname": step["env"]["CNI_IFNAME"],
    }
    options = {"conf_dir": "/nonexistent", "cache_dir": "/nonexistent", "api": False, "cached": False, "live": None}
    config = dict(placed(step.get("stdin", vector.get("config"))), type="multus")
    return multus_report.report(dict(options, pods=[pod], networks=vector.get("nads") or [], config=config))["pods"][0]


def pairs(text, container):
    """The arguments as a set: each is there twice, and the recorded sandbox has two ids."""
    found = {one for one in text.split(";") if not one.startswith(("IgnoreUnknown", "K8S_POD_INFRA_CONTAINER_ID"))}
    return found | {f"K8S_POD_INFRA_CONTAINER_ID={container}"}


@pytest.mark.parametrize("vector", SCENARIOS, ids=[one["name"] for one in SCENARIOS])
def test_what_is_told_is_what_was_done(vector, tmp_path):
    step = vector["steps"][0]
    container = step["env"]["CNI_CONTAINERID"]
    pod = told(vector, tmp_path)
    assert pod["usable"] is (step["rc"] == 0), pod["refusal"]
    if not pod["usable"]:
        return
    expected = [
        (plugin["type"], delegate["interface"], plugin["runtime_config"], pairs(delegate["cni_args"], container))
        for delegate in pod["delegates"]
        for plugin in delegate["plugins"]
    ]
    done = [
        (
            one["plugin"],
            one["env"]["CNI_IFNAME"],
            one["stdin"].get("runtimeConfig", {}),
            pairs(one["env"]["CNI_ARGS"], container),
        )
        for one in step["delegate_calls"]
        if one["env"]["CNI_COMMAND"] == "ADD"
    ]
    assert expected == done


def test_all_scenarios_are_here():
    assert len(SCENARIOS) == 79
    names = {path.stem for path in VECTORS.glob("*.json")}
    assert names >= ONLY_WHEN_DONE | NOT_KNOWN_HERE | DECIDED
