# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import multus_requests

NAME = "nodenet.cni.parse_networks"


def parse_networks(value: t.Any, namespace: str = "") -> list[dict[str, t.Any]]:
    """Return the networks that a pod's annotation asks for."""
    if value is None:
        return []
    if not isinstance(value, str):
        kind = next((one.__name__ for one in type(value).__mro__ if one.__module__ == "builtins"), "object")
        raise AnsibleFilterError(f"{NAME}: wants the text of an annotation, not {kind}")
    try:
        return multus_requests.elements(str(value), str(namespace or ""))
    except NodenetError as error:
        raise AnsibleFilterError(f"{NAME}: {error}") from error


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"parse_networks": parse_networks}
