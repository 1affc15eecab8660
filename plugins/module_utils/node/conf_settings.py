# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a network configuration as flat text, to be compared with those of other nodes.

What each node has for itself is left out: the ranges that host-local hands out there, and its name. Secrets, and values
that are long, stand as a digest.
"""

from __future__ import annotations

import hashlib

from ..cni import gojson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OWN_TO_THE_NODE = ("subnet", "rangeStart", "rangeEnd", "gateway", "ranges")
# Calico and its like
_NAMES_OF_NODES = ("nodename", "nodeName", "podCidr")
_SECRETS = ("token", "secret", "passw", "auth", "credential", "private")
_LONGEST = 80
_MOST = 400


def settings(tree: Any) -> dict[str, str]:
    """Return path -> value of a configuration (a gojson tree), such as ``plugins[0].mtu``: ``1450``.

    Of a configuration with more than 400 values the rest stands as one digest, under the path ``...``.
    """
    found: dict[str, str] = {}
    _walk(tree, "", False, found)
    if len(found) > _MOST:
        paths = sorted(found)
        rest = "".join(f"{path}={found.pop(path)}\n" for path in paths[_MOST:])
        found["..."] = _digest(rest)
    return found


def _walk(node: Any, path: str, secret: bool, found: dict[str, str]) -> None:
    if isinstance(node, tuple):
        ranges = gojson.field(node, "type") == "host-local"
        own = _NAMES_OF_NODES + (_OWN_TO_THE_NODE if ranges else ())
        for key, value in node:
            if key not in own:
                hidden = secret or any(word in key.lower() for word in _SECRETS)
                _walk(value, f"{path}.{key}" if path else key, hidden, found)
        if not node and path:
            found[path] = "{}"
    elif isinstance(node, list):
        for index, value in enumerate(node):
            _walk(value, f"{path}[{index}]", secret, found)
        if not node:
            found[path] = "[]"
    else:
        text = node if isinstance(node, str) else "null" if node is None else str(node)
        if isinstance(node, bool):
            text = text.lower()
        found[path] = _digest(text) if secret or len(text) > _LONGEST else text


def _digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
