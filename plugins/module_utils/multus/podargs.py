# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CNI_ARGS: what the kubelet says of the pod, and what delegates get (multus spec 4.1, 7.4)."""

from __future__ import annotations

from ..cni import args, resultread
from ..cni.errors import CniError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from .request import Request

_KEYS = ("K8S_POD_NAMESPACE", "K8S_POD_NAME", "K8S_POD_INFRA_CONTAINER_ID", "K8S_POD_UID")


class PodArgs:
    """The pod that a call is for, as CNI_ARGS name it; "" where they do not. ``pairs``: all pairs in order."""

    __slots__ = ("namespace", "name", "infra_container_id", "uid", "pairs")

    def __init__(self, values: dict[str, str], pairs: list[tuple[str, str]]) -> None:
        self.namespace, self.name, self.infra_container_id, self.uid = (values.get(key, "") for key in _KEYS)
        self.pairs = pairs

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}/{self.uid}"

    def for_delegates(self) -> list[tuple[str, str]]:
        """Return the pairs for delegates: ours first, then all that came in, even if they are there already."""
        own = (self.namespace, self.name, self.infra_container_id, self.uid)
        pairs = [("IgnoreUnknown", "true"), *zip(_KEYS, own)]
        for key, value in self.pairs:
            empty = next((at for at, pair in enumerate(pairs) if pair == (key, "")), None) if value else None
            if empty is None:
                pairs.append((key, value))
            else:
                pairs[empty] = (key, value)
        return pairs


def parse(text: str) -> PodArgs:
    """Return what CNI_ARGS say. Raises CniError (code 999)."""
    readers: dict[str, Callable[[str], str]] = {key: str for key in _KEYS}
    readers["IP"] = resultread.address
    try:
        values = args.parse(text, readers)
    except CniError as error:
        raise CniError(error.code, f"Multus: error getting k8s args: {error}") from None
    pairs = [(key, value) for key, _mark, value in (one.partition("=") for one in text.split(";"))] if text else []
    return PodArgs(values, pairs)


def requested(request: Request) -> list[tuple[str, str]]:
    """Return the pairs that ADD has in addition: the requested hardware address and addresses."""
    pairs = [("MAC", request.mac)] if request.mac else []
    return pairs + ([("IP", ",".join(request.ips))] if request.ips else [])
