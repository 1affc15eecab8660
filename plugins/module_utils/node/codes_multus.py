# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings of the family MULTUS: Multus and its delegates. See `findings`."""

from __future__ import annotations

from .findings import CARRIES_ON, FAILS, UNAFFECTED

# kind: (code, severity, go, text, hint)
# fmt: off
CODES = {
    "multus-kubeconfig-unreadable": (
        "MULTUS001", "warning", UNAFFECTED,
        "cannot be read: {reason}",
        "run the task as root",
    ),
    "multus-token-expired": (
        "MULTUS002", "error", FAILS,
        "its token expired {seconds} seconds ago, so Multus cannot ask for a pod any more",
        "see why its daemon or entrypoint did not write a new one, and restart it",
    ),
    "multus-token-expires": (
        "MULTUS003", "warning", CARRIES_ON,
        "its token expires in {seconds} seconds",
        "see that its daemon or entrypoint writes a new one in time",
    ),
    "multus-kubeconfig-open": (
        "MULTUS004", "warning", UNAFFECTED,
        "has mode {mode}, so that others than root can read the credentials",
        "give it mode 0600; multus_config does",
    ),
    "multus-no-kubeconfig": (
        "MULTUS005", "warning", CARRIES_ON,
        "names no kubeconfig, so Multus attaches pods to the master alone and sees no annotation",
        "give kubeconfig to multus_config, or see that the file exists",
    ),
    "multus-master-chained": (
        "MULTUS006", "warning", CARRIES_ON,
        "the copy of {master} does not have the plugins of its sub-directory ({types}), which runtimes with libcni "
        "1.3.0 or newer add",
        "write them into the conflist of the master",
    ),
    "multus-annotation-invalid": (
        "MULTUS007", "error", FAILS,
        "the annotation {annotation} cannot be used: {reason}",
        "correct it; the filter format_networks makes one that can be",
    ),
    "multus-annotation-doubtful": (
        "MULTUS008", "warning", CARRIES_ON,
        "the annotation {annotation}: {reason}",
        "correct it; what Multus does not know is passed over without a word",
    ),
    "multus-network-missing": (
        "MULTUS009", "error", FAILS,
        "there is no network {network}",
        "create the NetworkAttachmentDefinition, or name another one; without a namespace the pod's own counts",
    ),
    "multus-network-elsewhere": (
        "MULTUS010", "error", FAILS,
        "there is no network {network}, but there is {elsewhere}",
        "write the namespace before the name; without one the pod's own counts",
    ),
    "multus-network-unusable": (
        "MULTUS011", "error", FAILS,
        "the network {network} cannot be used: {reason}",
        "correct the NetworkAttachmentDefinition; the filter lint_conflist tells more",
    ),
    "multus-namespace-isolated": (
        "MULTUS012", "error", FAILS,
        "the network {network} is not open to pods of namespace {namespace}, only those of {allowed} are",
        "add its namespace to globalNamespaces, which takes the place of default, or switch namespaceIsolation off",
    ),
    "multus-interface-twice": (
        "MULTUS013", "error", FAILS,
        "the interface {interface} of {network} is that of {first} already",
        "give one of them another name; automatic names count all networks of the pod, named ones too",
    ),
    "multus-interface-invalid": (
        "MULTUS014", "error", FAILS,
        "{interface!r} cannot be the interface of {network}: {reason}",
        "give it a name of at most 15 characters without white space, '/' and ':'",
    ),
    "multus-capability-missing": (
        "MULTUS015", "warning", CARRIES_ON,
        "no plugin of {network} has capabilities.{capability}, so what the pod asks for is not passed on",
        "set the capability to true in the plugin that can do it",
    ),
    "multus-undecided": (
        "MULTUS016", "error", FAILS,
        "a network cannot be decided: {reason}",
        "Multus refuses the pod with that reason",
    ),
    "multus-device-unknown": (
        "MULTUS017", "info", UNAFFECTED,
        "it gets a device of {resource}, and which one only the node with the pod can tell",
        "run multus_info with api there",
    ),
    "multus-pod-unknown": (
        "MULTUS018", "error", FAILS,
        "the API server does not give it: {reason}",
        "see that it exists and that Multus' account may read it, or give its annotations",
    ),
    "multus-cache-unusable": (
        "MULTUS019", "warning", CARRIES_ON,
        "no delegates can be read from it: {reason}",
        "the end of its pod takes what configuration and API say; the Go plugin leaks its networks",
    ),
    "multus-cache-dead": (
        "MULTUS020", "warning", CARRIES_ON,
        "{count} of {entries} pod(s) with delegates here are not alive: {names}",
        "their end never came or failed, so their addresses may be reserved still; host_local_gc frees those",
    ),
    "multus-liveness-unknown": (
        "MULTUS021", "warning", UNAFFECTED,
        "who is alive cannot be told: {reason}",
        "until all sources answer, no pod is reported as dead",
    ),
    "multus-pods-left": (
        "MULTUS022", "warning", CARRIES_ON,
        "{count} pod(s) here were attached by Multus; without it their end takes down the first network only",
        "drain the node before Multus goes, or free with host_local_gc what their other networks hold",
    ),
}
# fmt: on
