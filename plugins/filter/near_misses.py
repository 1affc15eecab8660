# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t
from collections.abc import Iterable

from ansible.errors import AnsibleFilterError

from ansible_collections.nodenet.cni.plugins.plugin_utils import near_names

NAME = "nodenet.cni.near_misses"


def near_misses(value: t.Any, known: t.Any = None) -> list[dict[str, str]]:
    """Return the names that are nearly known ones, each with the one that is meant."""
    names = _names(value, "the names")
    wanted = near_names.role_variables() if known is None else dict.fromkeys(_names(known, "known"), "")
    return [{"name": name, "meant": meant} for name, meant in near_names.near_misses(names, wanted).items()]


def _names(value: t.Any, what: str) -> list[str]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise AnsibleFilterError(f"{NAME}: {what} have to be a list, not {value!r}")
    return [str(one) for one in value]


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"near_misses": near_misses}
