# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trees of configurations (`gojson.parse`) as documents that can be changed and printed again.

Numbers keep their literals on the way, so that integers beyond 2^53 survive (M11).
"""

from __future__ import annotations

from ..cni import goprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def document(tree: Any) -> Any:
    """Return a tree with its objects as dicts in document order; of repeated keys the last one counts."""
    if isinstance(tree, tuple):
        return {key: document(value) for key, value in tree}
    return [document(one) for one in tree] if isinstance(tree, list) else tree


def tree(value: Any) -> Any:
    """Return a document as a tree again."""
    if isinstance(value, dict):
        return tuple((key, tree(one)) for key, one in value.items())
    return [tree(one) for one in value] if isinstance(value, list) else value


def text(value: Any) -> bytes:
    """Return a document as compact JSON."""
    return goprint.dumps(value, indent=0).encode()
