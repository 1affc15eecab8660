# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How old the credentials of Multus on this node are. Nothing of the token itself leaves this module."""

from __future__ import annotations

import base64
import json
import os
import re
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TOKEN = re.compile(r"^\s*(?:-\s+)?token:\s*[\"']?([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*)[\"']?\s*$", re.M)
_TOKEN_FILE = re.compile(r"^\s*(?:-\s+)?tokenFile:\s*[\"']?([^\"'\s]+)[\"']?\s*$", re.M)
_SOON_S = 600


def look(path: str, now: float | None = None) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return ``{path, age_s, expires_in_s}`` of a kubeconfig, and facts; None if there is no such file.

    expires_in_s: negative when the token has expired, None if it does not say.
    """
    now = time.time() if now is None else now
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
            age = max(0, int(now - os.fstat(stream.fileno()).st_mtime))
    except FileNotFoundError:
        return None, []
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        return None, [{"kind": "multus-kubeconfig-unreadable", "where": path, "reason": reason}]
    expires = _expiry(_token(text))
    left = None if expires is None else int(expires - now)
    row = {"path": path, "age_s": age, "expires_in_s": left}
    if left is not None and left < 0:
        return row, [{"kind": "multus-token-expired", "where": path, "seconds": -left}]
    if left is not None and left < _SOON_S:
        return row, [{"kind": "multus-token-expires", "where": path, "seconds": left}]
    return row, []


def _token(text: str) -> str:
    found = _TOKEN.search(text)
    if found:
        return found.group(1)
    named = _TOKEN_FILE.search(text)
    if not named:
        return ""
    try:
        with open(named.group(1), encoding="ascii", errors="replace") as stream:
            return stream.read().strip()
    except (OSError, ValueError):
        return ""


def _expiry(token: str) -> float | None:
    """Return the time in the claims of a JSON web token; its signature is for the API server to judge."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, KeyError, TypeError):
        return None
