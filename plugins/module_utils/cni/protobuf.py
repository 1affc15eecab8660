# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading protocol buffers, as far as answers of runtimes and kubelets need it: nested messages, strings and bytes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (number, content) of the fields that have a length; the others are passed over.

    :raises ValueError: the message is cut off, or none
    """
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        kind = key & 7
        if kind == 0:
            _value, at = _number(message, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        elif kind == 2:
            length, at = _number(message, at)
            if at + length > len(message):
                raise ValueError("it is cut off")
            yield key >> 3, message[at : at + length]
            at += length
        else:
            raise ValueError(f"it has a field of the unknown kind {kind}")


def _number(message: bytes, at: int) -> tuple[int, int]:
    """Return a number and where the next thing begins."""
    value = shift = 0
    for position in range(at, len(message)):
        byte = message[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position + 1
    raise ValueError("it is cut off")
