# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How full the caches of libcni and Multus are. Every ADD writes an entry and its DEL removes it; others leak."""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def count(kind: str, path: str, boot_time: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return ``{kind, path, entries, before_boot, oldest_age_s}`` of a cache directory, and facts.

    A missing directory is an empty cache. boot_time: seconds since the epoch, 0 if it is not known.
    """
    row: dict[str, Any] = {"kind": kind, "path": path, "entries": 0, "before_boot": 0, "oldest_age_s": None}
    oldest = None
    try:
        with os.scandir(path) as found:
            for entry in found:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # its DEL came
                if not stat.S_ISREG(status.st_mode):
                    continue
                row["entries"] += 1
                row["before_boot"] += status.st_mtime < boot_time
                oldest = status.st_mtime if oldest is None else min(oldest, status.st_mtime)
    except FileNotFoundError:
        return row, []
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        return row, [{"kind": "node-cache-unreadable", "where": path, "reason": reason}]
    if oldest is not None:
        row["oldest_age_s"] = max(0, int(time.time() - oldest))
    facts = []
    if row["before_boot"]:
        params = {"count": row["before_boot"], "entries": row["entries"]}
        facts.append(dict(params, kind="node-cache-old", where=path))
    return row, facts


def boot_time(proc: str = "/proc") -> float:
    """Return when the node was booted, in seconds since the epoch; 0 if nothing tells."""
    try:
        with open(os.path.join(proc, "stat"), encoding="ascii", errors="replace") as stream:
            for line in stream:
                if line.startswith("btime "):
                    return float(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0.0
