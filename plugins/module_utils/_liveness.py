# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules that ask who is alive; the doc fragment _options.liveness describes them.

Private to the collection, may change at any time.
"""

from __future__ import annotations

import typing as t

from .cni.paths import RESULTS_DIRS
from .node import liveness

_CONTAINERD = {
    "root": {"type": "path", "required": True},
    "state": {"type": "path", "required": True},
    "address": {"type": "path"},
}
OPTIONS: dict[str, t.Any] = {
    "sources": {
        "type": "list",
        "elements": "str",
        "choices": list(liveness.SOURCES),
        "default": list(liveness.SOURCES),
    },
    "grace": {"type": "float", "default": 600.0},
    "containerd": {
        "type": "list",
        "elements": "dict",
        "options": _CONTAINERD,
        "default": [dict(one) for one in liveness.CONTAINERD],
    },
    "storage_root": {"type": "path", "default": liveness.STORAGE_ROOT},
    "crio_address": {"type": "path", "default": liveness.CRIO_ADDRESS},
    "results_dirs": {"type": "list", "elements": "path", "default": list(RESULTS_DIRS)},
    "command_timeout": {"type": "float", "default": liveness.COMMAND_TIMEOUT},
}
