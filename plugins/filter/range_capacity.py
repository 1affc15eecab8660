# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import typing as t
from collections.abc import Mapping, Sequence

from ansible.errors import AnsibleFilterError

from ansible_collections.nodenet.cni.plugins.module_utils.cni import gojson
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.config import load_ipam_config

NAME = "nodenet.cni.range_capacity"
_SPELLED = {"range_start": "rangeStart", "range_end": "rangeEnd"}


def range_capacity(value: t.Any) -> int:
    """Return how many containers get an address of these ranges: one each of every range set."""
    config = {"cniVersion": "1.0.0", "name": "capacity", "ipam": {"type": "host-local", "ranges": _range_sets(value)}}
    try:
        tree = gojson.parse(json.dumps(config).encode())
        return min(one.usable() for one in load_ipam_config(tree).sets)
    except (TypeError, ValueError) as error:
        raise AnsibleFilterError(f"{NAME}: the ranges cannot be read: {error}") from error
    except NodenetError as error:
        raise AnsibleFilterError(f"{NAME}: {error}") from error


def _range_sets(value: t.Any) -> list[t.Any]:
    """Return the range sets that are meant: a subnet, a range, a set, sets, an ipam, a plugin's or a network's."""
    if isinstance(value, str):
        return [[{"subnet": value}]]
    if isinstance(value, Mapping):
        if isinstance(value.get("plugins"), Sequence):
            with_ipam = [one for one in value["plugins"] if isinstance(one, Mapping) and "ipam" in one]
            if not with_ipam:
                raise AnsibleFilterError(f"{NAME}: no plugin of the network has an ipam")
            return _range_sets(with_ipam[0])
        if isinstance(value.get("ipam"), Mapping):
            return _range_sets(value["ipam"])
        sets = [[_range(value)]] if "subnet" in value else []
        # what a preset of the role networks spells beside its subnet
        sets += [[_range(one)] for one in value.get("subnets") or []]
        sets += [[_range(one) for one in each] for each in value.get("ranges") or []]
        if not sets:
            raise AnsibleFilterError(f"{NAME}: there is neither a subnet nor ranges in it")
        return sets
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        if all(isinstance(one, Sequence) and not isinstance(one, (str, bytes)) for one in value):
            return [[_range(one) for one in each] for each in value]
        return [[_range(one) for one in value]]
    raise AnsibleFilterError(f"{NAME}: wants a subnet, a range, a list of these, or a network's configuration")


def _range(value: t.Any) -> dict[str, t.Any]:
    if isinstance(value, str):
        return {"subnet": value}
    if not isinstance(value, Mapping):
        raise AnsibleFilterError(f"{NAME}: a range is a subnet or a dictionary with one, not {value!r}")
    wanted = ("subnet", "rangeStart", "rangeEnd", "gateway")
    found = {_SPELLED.get(key, key): one for key, one in value.items()}
    return {key: found[key] for key in wanted if found.get(key) is not None}


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"range_capacity": range_capacity}
