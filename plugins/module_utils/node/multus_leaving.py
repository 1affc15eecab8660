# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the executable of Multus may go: pods that it attached need it for their DEL."""

from __future__ import annotations

import os

from ..multus import cache
from . import cachecount, manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHOICES = ("unused", "always", "never")


def look(bin_dir: str, state_dir: str, cache_dir: str, remove: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return ``{path, removed, reason, cached_delegates}`` of the executable, and facts.

    cached_delegates: of how many pods Multus keeps delegates, None if that cannot be read. removed: whether it goes.

    :param remove: "unused": unless pods need it; "always" or "never"
    """
    _row, facts = cachecount.count("multus", cache_dir, 0.0)
    cached = None if facts else len(cache.containers(cache_dir))
    path = os.path.join(bin_dir, "multus")
    answer = {"path": path, "removed": False, "reason": "", "cached_delegates": cached}
    if not os.path.lexists(path):
        answer["reason"] = "it is not there"
    elif os.path.isdir(path) and not os.path.islink(path):
        answer["reason"] = "it is a directory"
    elif remove == "never":
        answer["reason"] = "it was asked to stay"
    elif "multus" in manifest.Manifest(state_dir, bin_dir).plugins:
        answer["reason"] = "plugin_binaries installed it, and removes it with state absent"
    elif remove == "always":
        answer.update(removed=True, reason="it was asked to go")
    elif cached is None:
        answer["reason"] = f"{cache_dir} cannot be read, so pods may need it"
    elif cached:
        answer["reason"] = f"{cached} pod(s) in {cache_dir} need it for their end"
    else:
        answer.update(removed=True, reason="no pod needs it")
    return answer, facts
