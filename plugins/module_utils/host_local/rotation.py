# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put the rotation of a network back where it was before an allocation that was only a trial."""

from __future__ import annotations

import posix
import time

from .addresses import Address, parse_address
from .layout import LAST_RESERVED_PREFIX
from .store import NAME_CHARS, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

_CLOCK_GRAIN = 0.02  # file times lag behind the clock by one tick of the kernel


class Rotation:
    """Where the rotation of a network stood at a moment: ``stood`` maps the number of a range set to the text of its
    file. `as_plain` and `from_plain` let it outlive the process."""

    def __init__(self, data_dir: str, network: str, taken: float, stood: Mapping[int, str]) -> None:
        self.data_dir = data_dir
        self.network = network
        self.taken = taken
        self.stood = dict(stood)

    def as_plain(self) -> dict[str, Any]:
        stood = {str(index): text for index, text in self.stood.items()}
        return {"data_dir": self.data_dir, "network": self.network, "taken": self.taken, "stood": stood}

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> Rotation:
        """Raises ValueError, KeyError or TypeError for what `as_plain` did not make."""
        stood = {int(index): str(text) for index, text in dict(values["stood"]).items()}
        return cls(str(values["data_dir"]), str(values["network"]), float(values["taken"]), stood)


def remember(data_dir: str, network: str, lock_timeout: float) -> Rotation:
    """Return where the rotation stands now; a network without a directory has none. Raises CniError."""
    with Store(data_dir, network, create=False) as store, store.lock(lock_timeout):
        return Rotation(data_dir, network, time.time(), _standing(store))


def put_back(before: Rotation, lock_timeout: float) -> bool:
    """Put the rotation back if nobody but the trial has moved it meanwhile; tell whether something was changed.

    To be called after the trial's reservations are released. Somebody else allocated meanwhile if there is an address
    file that is younger than *before*; then everything stays. Raises CniError.
    """
    with Store(before.data_dir, before.network, create=False) as store:
        if not _moved(store, before):
            return False
    with Store(before.data_dir, before.network) as store, store.lock(lock_timeout):
        moved = _moved(store, before)
        if not moved or _allocated_since(store, before.taken - _CLOCK_GRAIN):
            return False
        changed = False
        for index in moved:
            address = _address(before.stood.get(index, ""))
            if address is not None:
                store.set_last_reserved(index, address)
                changed = True
            elif index not in before.stood:
                posix.unlink(f"{LAST_RESERVED_PREFIX}{index}", dir_fd=store.directory)
                changed = True
        return changed


def _moved(store: Store, before: Rotation) -> list[int]:
    return [index for index, text in _standing(store).items() if before.stood.get(index) != text]


def _standing(store: Store) -> dict[int, str]:
    if not store.exists:
        return {}
    found = {}
    for name in posix.listdir(store.directory):
        number = name[len(LAST_RESERVED_PREFIX) :]
        if name.startswith(LAST_RESERVED_PREFIX) and number.isascii() and number.isdigit():
            found[int(number)] = store.last_reserved_text(int(number))
    return found


def _allocated_since(store: Store, moment: float) -> bool:
    with posix.scandir(store.directory) as entries:
        for entry in entries:
            if entry.name.strip(NAME_CHARS):
                continue
            try:
                if entry.stat(follow_symlinks=False).st_mtime >= moment:
                    return True
            except FileNotFoundError:
                continue
    return False


def _address(text: str) -> Address | None:
    try:
        return parse_address(text)
    except ValueError:
        return None
