# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the Go plugin of Debian 12 (1.1.1) differs from the recorded one, for comparing with it all the same.

It makes files with mode 0644, speaks spec 1.0.0 at most, knows only ``dst`` and ``gw`` of a route, and prints an
empty ``dns`` in 1.0.0 results. Names, contents, exit codes and error texts are the same.
"""

from __future__ import annotations

import json

NEWER_ROUTE_KEYS = ("mtu", "advmss", "priority", "table", "scope")


def result(stdout: str):
    """Return stdout for comparing: a parsed result without what 1.1.1 prints differently, or the text itself."""
    try:
        document = json.loads(stdout)
    except ValueError:
        return stdout
    if not isinstance(document, dict) or "code" in document:
        return stdout
    if not document.get("dns"):
        document.pop("dns", None)
    for holder in (document, document.get("ip4") or {}, document.get("ip6") or {}):
        for route in holder.get("routes") or []:
            for key in NEWER_ROUTE_KEYS if isinstance(route, dict) else ():
                route.pop(key, None)
    return document


def tolerant(outcome: dict) -> dict:
    """Return an outcome in which what 1.1.1 does differently is levelled out."""
    modes = {
        name: "0600" if mode == "0644" and "/" in name.rstrip("/") and not name.endswith("/") else mode
        for name, mode in outcome["modes_after"].items()
    }
    return dict(outcome, stdout=result(outcome["stdout"]), modes_after=modes)
