# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The directory of a network as these tests see it: written down here once more, not read through the library."""

from __future__ import annotations

import os
import stat


def held(data_dir: object, network: str) -> dict[str, str]:
    """Return address -> content of the address files."""
    folder = os.path.join(str(data_dir), network)
    found = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name != "lock" and not name.startswith("last_reserved_ip."):
            with open(os.path.join(folder, name), encoding="utf-8", newline="") as stream:
                found[name] = stream.read()
    return found


def written_by(data_dir: object, network: str, address: str) -> str:
    """Tell whose file it is: ours has mode 0600 as today's Go, Debian's Go plugin 1.1.1 makes 0644."""
    mode = stat.S_IMODE(os.stat(os.path.join(str(data_dir), network, address)).st_mode)
    return {0o600: "ours", 0o644: "go"}.get(mode, oct(mode))


def reserve_static(data_dir: object, network: str, address: str, owner: str) -> None:
    """Put a static reservation there as a person or the collection does, before any pod."""
    folder = os.path.join(str(data_dir), network)
    os.makedirs(folder, exist_ok=True)
    descriptor = os.open(os.path.join(folder, address), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8", newline="") as stream:
        stream.write(f"static.{owner}\r\neth0")


def plain(addresses: list[str]) -> list[str]:
    return sorted(one.split("/")[0] for one in addresses)


def of_result(result: dict) -> list[str]:
    """Return the addresses of a result of spec 0.3.0 and later with their prefixes."""
    return sorted(entry["address"] for entry in result["ips"])
