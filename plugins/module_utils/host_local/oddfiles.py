# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a batch does about address files of old plugin releases and with odd names. Few directories have any."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .reservations import Entry
    from .snapshot import Reservation


def owner_of_legacy(one: Reservation, entries: list[Entry], with_own: set[tuple[str, str]]) -> Entry | None:
    """Return to which entry of its container a file without an interface name belongs (spec 3.3).

    It may be any interface's: an entry that lists its address or takes what it has gets it, and a release frees it only
    where a DEL of that interface would, which prefers files with the interface's name.
    """
    present = [entry for entry in entries if entry.wanted.present]
    absent = [entry for entry in entries if not entry.wanted.present]
    candidates = [entry for entry in present if one.address in entry.listed]
    candidates += [entry for entry in present if entry.wanted.addresses is None]
    candidates += [entry for entry in absent if one.address in entry.listed]
    candidates += [entry for entry in absent if entry.wanted.addresses is None and entry.wanted.key not in with_own]
    return candidates[0] if candidates else None


def respell(entry: Entry) -> None:
    """Give what the entry keeps under odd names its canonical name, the only one that makes an address taken."""
    odd = [one for one in entry.keep if not one.canonical]
    entry.keep = [one for one in entry.keep if one.canonical]
    entry.remove += odd
    well = {one.address for one in entry.keep}
    entry.respelled = dict.fromkeys(one.address for one in odd if one.address not in well)
    entry.add += entry.respelled
