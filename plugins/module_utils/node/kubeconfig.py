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

#: The mode beyond which others than root read the token.
_OPEN = 0o077
#: A time that no token means, in seconds since the epoch.
_FAR = 1e12

_TOKEN = re.compile(r"^\s*(?:-\s+)?token:\s*[\"']?([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*)[\"']?\s*$", re.M)
_TOKEN_FILE = re.compile(r"^\s*(?:-\s+)?tokenFile:\s*[\"']?([^\"'\s]+)[\"']?\s*$", re.M)
_SOON_S = 600


def look(path: str, now: float | None = None) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return ``{path, age_s, mode, expires_in_s}`` of a kubeconfig, and facts; None if there is no such file.

    expires_in_s: negative when the token has expired, None if it does not say.
    """
    now = time.time() if now is None else now
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
            status = os.fstat(stream.fileno())
            age = max(0, int(now - status.st_mtime))
    except FileNotFoundError:
        return None, []
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        return None, [{"kind": "multus-kubeconfig-unreadable", "where": path, "reason": reason}]
    expires = claims_of(_token(text)).get("exp")
    left = None if expires is None else int(expires - now)
    mode = status.st_mode & 0o7777
    row = {"path": path, "age_s": age, "mode": f"{mode:04o}", "expires_in_s": left}
    facts: list[dict[str, Any]] = []
    if mode & _OPEN:
        facts.append({"kind": "multus-kubeconfig-open", "where": path, "mode": row["mode"]})
    if left is not None and left < 0:
        facts.append({"kind": "multus-token-expired", "where": path, "seconds": -left})
    elif left is not None and left < _SOON_S:
        facts.append({"kind": "multus-token-expires", "where": path, "seconds": left})
    return row, facts


def _token(text: str) -> str:
    token: Any
    named: Any
    if text.lstrip().startswith("{"):
        user = _json_user(text)
        token, named = user.get("token"), user.get("tokenFile")
    else:
        found = _TOKEN.search(text)
        token = found.group(1) if found else ""
        path = _TOKEN_FILE.search(text)
        named = path.group(1) if path else ""
    if isinstance(token, str) and token:
        return token
    if not isinstance(named, str) or not named:
        return ""
    try:
        with open(named, encoding="ascii", errors="replace") as stream:
            return stream.read().strip()
    except (OSError, ValueError):
        return ""


def _json_user(text: str) -> dict[str, Any]:
    """Return the credentials of the current context of a kubeconfig in JSON, {} if it has none."""
    try:
        document = json.loads(text)
        contexts = {one["name"]: one["context"] for one in document["contexts"]}
        users = {one["name"]: one["user"] for one in document["users"]}
        user = users[contexts[document["current-context"]]["user"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return user if isinstance(user, dict) else {}


def claims_of(token: str) -> dict[str, Any]:
    """Return the claims of a JSON web token, {} for a token of another kind; times that are no numbers are left out.

    Its signature is for the API server to judge.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        found = dict(claims)
        for key in ("exp", "iat"):
            if key in found:
                found[key] = float(found[key])
                if not abs(found[key]) < _FAR:
                    del found[key]
    except (ValueError, TypeError, OverflowError, RecursionError):
        return {}
    return found
