# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An audit as JSON (docs/audit-schema.md), and the names of the files of its hosts."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_reports import Json

#: Name of the file of the whole fleet.
FLEET = "fleet.json"


def lines(document: Json) -> t.Iterator[str]:
    """Yield *document* as JSON, a report in a line of its own: the text of a large fleet is never in memory at once."""
    mark = "{\n"
    for key, value in sorted(document.items()):
        yield f"{mark} {json.dumps(key)}: "
        if key == "reports":
            for index, host in enumerate(sorted(value)):
                start = ",\n  " if index else "{\n  "
                yield f"{start}{json.dumps(host)}: {json.dumps(value[host], sort_keys=True)}"
            yield "\n }" if value else "{}"
        else:
            yield json.dumps(value, indent=1, sort_keys=True).replace("\n", "\n ")
        mark = ",\n"
    yield "\n}\n"


def file_names(hosts: t.Iterable[str]) -> dict[str, str]:
    """Return the name of the file of each host's report. Raises NodenetError if two would get one name."""
    names: dict[str, str] = {}
    takers = {FLEET: "the whole fleet"}
    for host in hosts:
        names[host] = host.replace("/", "_") + ".json"
        other = takers.setdefault(names[host], f"host {host}")
        if other != f"host {host}":
            raise NodenetError(
                f"Cannot write the reports of host {host} and of {other} to output_dir: both would be {names[host]}; "
                "rename the host, or write with dest and files instead"
            )
    return names
