# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What names may look like: container ids, networks, interfaces (host-local spec 1.1, 1.2)."""

from __future__ import annotations

_ALPHANUMERIC = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_NAME_CHARS = _ALPHANUMERIC | frozenset("_.-")
_INTERFACE_MAX = 15
# Unicode White_Space; str.isspace also takes U+001C to U+001F
SPACE = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {
    chr(code) for code in range(0x2000, 0x200B)
}


def valid_name(text: str) -> bool:
    """Tell whether *text* may be a container id or the name of a network: ``[a-zA-Z0-9][a-zA-Z0-9_.-]*``."""
    return bool(text) and text[0] in _ALPHANUMERIC and _NAME_CHARS.issuperset(text)


def interface_fault(name: str) -> tuple[str, str] | None:
    """Return (msg, details) in Go's words if *name* may not be an interface name, else None."""
    if len(name.encode("utf-8", "surrogateescape")) > _INTERFACE_MAX:
        return "interface name is too long", f"interface name should be less than {_INTERFACE_MAX + 1} characters"
    if name in (".", ".."):
        return "interface name is . or ..", ""
    if "/" in name or ":" in name or not SPACE.isdisjoint(name):
        return "interface name contains / or : or whitespace characters", ""
    return None
