# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What systemd-tmpfiles takes away at each boot (tmpfiles.d(5)).

Distributions' packages of podman have a line ``D! /var/lib/cni/networks``: right for podman, whose containers do not
outlive a boot, and the end of every static reservation.
"""

from __future__ import annotations

import fnmatch
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Sequence

#: A file hides those of its name in the directories after it.
PLACES = ("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d")
#: That these do not outlive a boot everybody knows.
TEMPORARY = ("/tmp/", "/var/tmp/", "/run/", "/var/run/")
_LARGEST = 1 << 20
# lines that make a directory; of two for one path the first counts
_MAKING = frozenset("dDvqQ")


def forgotten(documents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a fact for each data dir whose static reservations the next boot takes away.

    :param documents: networks as host_local_info returns them
    """
    static: dict[str, int] = {}
    for one in documents:
        count = sum(1 for held in one["reservations"] if held["static"])
        if count:
            static[one["data_dir"]] = static.get(one["data_dir"], 0) + count
    found = [(one, emptied_at_boot(one)) for one in static if not one.startswith(TEMPORARY)]
    return [
        {"kind": "ipam-emptied-at-boot", "where": one, "path": path, "data_dir": one, "count": static[one]}
        for one, path in found
        if path is not None
    ]


def emptied_at_boot(path: str, places: Sequence[str] = ()) -> str | None:
    """Return the file by which what lies in a directory is gone after a boot, None if it stays.

    What cannot be read is passed over.
    """
    path = os.path.normpath(path)
    above = [path]
    while above[-1] != "/" and above[-1]:
        above.append(os.path.dirname(above[-1]))
    made = set()
    for name, place in sorted(_files(places or PLACES).items()):
        for kind, target in _lines(os.path.join(place, name)):
            if kind in _MAKING:
                if target in made:
                    continue
                made.add(target)
            if (kind == "D" and target in above) or (
                kind == "R" and any(fnmatch.fnmatch(one, target) for one in above)
            ):
                return os.path.join(place, name)
    return None


def _files(places: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place in places:
        try:
            names = os.listdir(place)
        except OSError:
            continue
        for name in names:
            if name.endswith(".conf"):
                found.setdefault(name, place)
    return found


def _lines(path: str) -> list[tuple[str, str]]:
    try:
        with open(path, "rb") as stream:
            text = stream.read(_LARGEST).decode("utf-8", "replace")
    except OSError:  # a link that leads nowhere, a directory
        return []
    found = []
    for line in text.splitlines():
        words = line.split(None, 2)
        if len(words) > 1 and words[0][0] != "#":
            found.append((words[0][0], os.path.normpath(words[1].strip("\"'"))))
    return found
