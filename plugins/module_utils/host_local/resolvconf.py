# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""resolv.conf, as far as it goes into a result (host-local spec 2.6)."""

from __future__ import annotations

import errno
import posix

from ..cni.errors import INTERNAL, CniError, go_strerror
from ..cni.names import SPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LINE_MAX = 65536


def read_resolv_conf(path: str) -> dict[str, Any]:
    """Return the ``dns`` part of a result from a resolv.conf (spec 2.6)."""
    try:
        if "\0" in path:
            raise OSError(errno.EINVAL, posix.strerror(errno.EINVAL))
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        operation = "read" if isinstance(error, IsADirectoryError) else "open"
        raise CniError(INTERNAL, f"{operation} {path}: {go_strerror(error)}") from None
    dns: dict[str, Any] = {"nameservers": [], "domain": "", "search": [], "options": []}
    for raw in data.split(b"\n"):
        if len(raw) >= _LINE_MAX:
            raise CniError(INTERNAL, "bufio.Scanner: token too long")
        fields = _fields(raw.decode("utf-8", "surrogateescape"))
        if len(fields) < 2 or fields[0][0] in "#;":
            continue
        keyword = fields[0]
        if keyword == "nameserver":
            dns["nameservers"].append(fields[1])
        elif keyword == "domain":
            dns["domain"] = fields[1]
        elif keyword in ("search", "options"):
            dns[keyword] += fields[1:]
    return dns


def _fields(line: str) -> list[str]:
    for char in SPACE - {" "}:
        if char in line:
            line = line.replace(char, " ")
    return [field for field in line.split(" ") if field]
