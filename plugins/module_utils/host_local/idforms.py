# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Schemes of container ids: who lists the live containers of one scheme may know nothing of another's."""

from __future__ import annotations

_HEX = frozenset("0123456789abcdef")
_UUID = [8, 4, 4, 4, 12]
#: The form of a container or sandbox id: 64 hexadecimal digits.
SANDBOX_ID = "-hex64"


def id_form(container_id: str) -> str:
    """Return the scheme of an id.

    Two ids have one form if they agree in all before the last dash and in the length and kind of what follows:
    ``<namespace>-<id>`` of one namespace, plain ids, UUIDs.
    """
    if [len(part) for part in container_id.split("-")] == _UUID and _HEX.issuperset(container_id.replace("-", "")):
        return "uuid"
    head, _dash, tail = container_id.rpartition("-")
    return f"{head}-{'hex' if _HEX.issuperset(tail) else 'text'}{len(tail)}"
