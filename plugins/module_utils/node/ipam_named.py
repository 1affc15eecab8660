# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The networks of a report that the caller names or defines, instead of all those of a node."""

from __future__ import annotations

import os

from ..cni import gojson
from ..cni.errors import NodenetError
from ..cni.names import valid_name
from ..host_local.layout import network_dir
from . import networks as definitions
from .targets import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from .networks import Network


def configured(config: dict[str, Any], flannel_subnet_file: str) -> tuple[list[Network], list[dict[str, Any]]]:
    """Return the networks of a configuration, and facts. Raises NodenetError: there is none, or one has no name."""
    where = "the option config"
    found = definitions.network_of(where, gojson.from_plain(config), flannel_subnet_file)
    if not found:
        raise NodenetError(f"Cannot report the networks of {where}: none of its plugins uses host-local")
    for one in found:
        if not valid_name(one.name):
            raise NodenetError(f"Cannot report network {one.name!r} of {where}: it needs a valid name")
    return definitions.each_once(found)


def orphan(name: str, data_dirs: Sequence[str], conf_dir: str) -> Target:
    """Return the network that no configuration names, by its directory. Raises NodenetError if there is none."""
    if not valid_name(name):
        raise NodenetError(f"Cannot report network {name!r} in {conf_dir}: that is no network name")
    for data_dir in data_dirs:
        if os.path.isdir(network_dir(data_dir, name)):
            return Target(name, data_dir)
    raise NodenetError(
        f"Cannot report network {name} in {conf_dir}: no file defines it with host-local, and there is no directory of "
        f"that name in {', '.join(data_dirs)}"
    )
