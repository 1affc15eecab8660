# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files in a conf dir that no runtime reads, told apart by their names."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches

from .confdir import EXTENSIONS, extension

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BACKUP = re.compile(
    r"\.(?:conf|conflist|json)(?:[^A-Za-z].*|\.?(?:bak|old|orig|save|swp|disabled).*)$"
    r"|(?:~|\.(?:bak|old|orig|save|swp|rpm\w+|dpkg-\w+|ucf-\w+|cilium_bak|disabled))$",
    re.IGNORECASE,
)
_TEMPLATE = (".yaml", ".yml", ".j2", ".tmpl", ".tpl", ".template")


def facts(conf_dir: str, names: list[str]) -> list[dict[str, Any]]:
    """Return the facts about names that the runtimes pass over; what belongs to a known product is no fact."""
    backups = [name for name in names if _BACKUP.search(name) and not _misnamed(name)]
    found: list[dict[str, Any]] = [
        {"kind": "conf-extension", "where": os.path.join(conf_dir, name), "ending": extension(name)}
        for name in names
        if _misnamed(name)
    ]
    if backups:
        listed = {"count": len(backups), "names": ", ".join(backups)}
        found.append(dict(listed, kind="conf-backup-files", where=conf_dir))
    return found


def _misnamed(name: str) -> bool:
    """Tell whether a name looks as if somebody expected a runtime to read the file."""
    ending = extension(name)
    if not ending or name.endswith("~"):
        return False
    if ending.lower() in EXTENSIONS or ending in _TEMPLATE:
        return True
    return not _BACKUP.search(name) and bool(get_close_matches(ending, EXTENSIONS, 1, 0.8))
