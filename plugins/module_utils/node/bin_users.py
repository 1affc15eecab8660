# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which networks of a conf dir need which plugins, so that a removal leaves these where they are."""

from __future__ import annotations

import re

from . import confcheck, confdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_TYPE = re.compile(r'"type"\s*:\s*"([^"\\]+)"', re.IGNORECASE)


def find(conf_dir: str, leaving: Collection[str] = ()) -> dict[str, list[str]]:
    """Return the networks that need a plugin, by its name, both sorted; a missing directory has none.

    A network needs the plugins of its chain, those of its sub-directory, and what these call: ipam and delegates. A
    file that no runtime can load counts with the types in its text, since one comma may be all that is wrong with it;
    it stands for its network.

    :param leaving: names of networks that do not count
    :raises OSError: the directory cannot be read
    """
    needed: dict[str, set[str]] = {}
    found = confdir.read_conf_dir(conf_dir)
    for one in found.files:
        if one.network in leaving:
            continue
        if one.error:
            types = _TYPE.findall((one.data or b"").decode("utf-8", "replace"))
        else:
            chained = [plugin for more in found.chained.get(one.network, ()) for plugin in more.plugins]
            types = confcheck.needed_types([*one.plugins, *chained])
        for name in types:
            needed.setdefault(name, set()).add(one.network or one.shown)
    return {name: sorted(users) for name, users in sorted(needed.items())}
