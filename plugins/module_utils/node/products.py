# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which sources are versions of one another, so that what the older one brought and the newer one lacks can go."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

_SUFFIX = re.compile(r"\.(tgz|txz|tbz2?|zip|tar(\.(gz|xz|bz2))?)$")
_VERSION = re.compile(
    r"[-_.]?(?<![0-9A-Za-z])v?\d+(\.\d+)+([-+~.](rc|alpha|beta|pre|dev)?\.?[A-Za-z]*\d+)*(?![0-9A-Za-z])"
)


def product(source: str) -> str:
    """Return what the versions of one product have in common: the name of its archive, or the path of its directory.

    >>> product("cni-plugins-linux-amd64-v1.6.0-rc.1.tgz")
    'cni-plugins-linux-amd64'
    """
    return _VERSION.sub("", _SUFFIX.sub("", source)) or source


def outdated(
    plugins: Mapping[str, dict[str, Any]], source: str, held: Collection[str], keep: Collection[str]
) -> list[str]:
    """Return the names of the plugins that an older version of *source* brought and that it has not.

    plugins: the record of ours, by name. held: the names of the files in the source. keep: names that stay.
    A source is a newer version of another if both are named alike and share a plugin: archives of several products
    hold the same plugins, and archives of several products are called plugins.tgz.
    """
    same = product(source)
    older = [name for name, plugin in sorted(plugins.items()) if product(plugin["source"]) == same]
    lacking = [name for name in older if name not in held]
    return [name for name in lacking if name not in keep] if len(lacking) < len(older) else []
