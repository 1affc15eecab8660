# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The versions of the CNI specification: which we speak, how they compare (host-local spec 1.3)."""

from __future__ import annotations

from .errors import DECODING_FAILURE, INCOMPATIBLE_VERSION, CniError

SUPPORTED = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
DEFAULT = "0.1.0"
CURRENT = SUPPORTED[-1]
_INT64 = 1 << 63


def parse(version: str) -> tuple[int, int, int]:
    """Return (major, minor, micro); missing parts are 0. Raises CniError (code 6) on anything but numbers."""
    parts = version.split(".")
    if len(parts) > 3:
        raise CniError(DECODING_FAILURE, f'invalid version "{version}": too many parts')
    numbers = [0, 0, 0]
    for index, (what, part) in enumerate(zip(("major", "minor", "micro"), parts)):
        digits = part[1:] if part[:1] in ("+", "-") else part
        fault = ""
        if not (digits.isascii() and digits.isdigit()):
            fault = "invalid syntax"
        else:
            digits = digits.lstrip("0") or "0"
            numbers[index] = -int(digits[:20]) if part[0] == "-" else int(digits[:20])
            if len(digits) > 19 or not -_INT64 <= numbers[index] < _INT64:
                fault = "value out of range"
        if fault:
            raise CniError(
                DECODING_FAILURE,
                f'failed to convert {what} version part "{part}": strconv.Atoi: parsing "{part}": {fault}',
            )
    return numbers[0], numbers[1], numbers[2]


def at_least(version: str, minimum: str) -> bool:
    """Tell whether *version* is *minimum* or newer."""
    return parse(version) >= parse(minimum)


def require_supported(version: str) -> None:
    """Raise CniError (code 1) unless *version* is spelled exactly like one of SUPPORTED."""
    if version not in SUPPORTED:
        known = " ".join(f'"{one}"' for one in SUPPORTED)
        raise CniError(
            INCOMPATIBLE_VERSION,
            "incompatible CNI versions",
            f'config is "{version}", plugin supports [{known}]',
        )


def require_range(version: str, minimum: str, command: str) -> None:
    """Raise CniError unless *version* lies between the first one that knows *command* and ours."""
    if not at_least(version, minimum):
        raise CniError(INCOMPATIBLE_VERSION, f"config version does not allow {command}")
    if not at_least(CURRENT, version):
        raise CniError(INCOMPATIBLE_VERSION, f"plugin version does not allow {command}")
