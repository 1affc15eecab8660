# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Events of a pod: what `kubectl describe pod` shows of its networks (multus spec 3).

Nothing depends on them. Those of one call have a second together and one attempt each; the first that fails is the
last.
"""

from __future__ import annotations

import time

from ..cni import results
from .kube import EVENTS_LIMIT_S, KubeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ..cni.results import Document
    from .kube import Client

_SOURCE = "multus"
_LONGEST_NAME = 253
_LONGEST_MESSAGE = 1024


def addition(name: str, interface: str, result: Document) -> str:
    """Return what is said of a network that was attached, "" if nothing came of it."""
    newest = results.parse(result)
    ips = newest.get("ips") or []
    if not ips and not newest.get("interfaces"):
        return ""
    addresses = " ".join(one["address"] for one in ips)
    return f"Add {interface} [{addresses}]" + (f" from {name}" if name else "")


def tell_added(client: Client, pod: dict[str, Any], messages: Sequence[str]) -> None:
    """Say what a pod was attached to."""
    deadline = time.monotonic() + EVENTS_LIMIT_S
    for message in messages:
        if not message:
            continue
        left = deadline - time.monotonic()
        # as client-go names them; two of one pod must not have the same
        stamp = "%x" % time.time_ns()
        if left <= 0 or not _add(client, pod, stamp, "Normal", "AddedInterface", message, left):
            return


def tell_not_found(client: Client, pod: dict[str, Any], message: str) -> None:
    """Say that a network is not there. The same is said once an hour, however often the pod is tried."""
    import binascii

    uid = str((pod.get("metadata") or {}).get("uid") or "")
    stamp = "%08x" % binascii.crc32(f"{uid} {message}".encode("utf-8", "replace"))
    _add(client, pod, stamp, "Warning", "NoNetworkFound", message)


def _add(
    client: Client,
    pod: dict[str, Any],
    stamp: str,
    kind: str,
    reason: str,
    message: str,
    limit_s: float = EVENTS_LIMIT_S,
) -> bool:
    metadata = pod.get("metadata") or {}
    namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    told = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name}
    told.update((key, str(metadata[key])) for key in ("uid", "resourceVersion") if metadata.get(key))
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "name": f"{name[: _LONGEST_NAME - 1 - len(stamp)].rstrip('-.')}.{stamp}"},
        "involvedObject": told,
        "type": kind,
        "reason": reason,
        "message": message[:_LONGEST_MESSAGE],
        "source": {"component": _SOURCE},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "reportingComponent": _SOURCE,
        "reportingInstance": "",
    }
    try:
        client.add_event(namespace, event, limit_s)
    except KubeError:
        return False
    return True
