# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names on disk (host-local spec 3.1)."""

from __future__ import annotations

from ..cni import paths

DEFAULT_DATA_DIR = "/var/lib/cni/networks"
LOCK_NAME = "lock"
LAST_RESERVED_PREFIX = "last_reserved_ip."
#: ``<address>.holder`` beside a static reservation names the container that has its address at present.
HOLDER_SUFFIX = ".holder"


def beside_prefix(network: str) -> str:
    """Return how our files for *network* begin that lie beside its directory, where no Go plugin reads them.

    "~" cannot stand in a network name, so no network's files look like another one's.
    """
    return f".nodenet-{network}~"


def index_name(network: str) -> str:
    """Return the name, beside the directory of *network*, of the index of a large one."""
    return beside_prefix(network) + "index"


def network_dir(data_dir: str, network: str) -> str:
    """Return the directory of *network*, lexically clean as Go's filepath.Join makes it."""
    return paths.clean(f"{data_dir}/{network}")
