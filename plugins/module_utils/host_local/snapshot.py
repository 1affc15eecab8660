# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A network directory as it was at one moment: who holds what (host-local spec 3.1, 3.3)."""

from __future__ import annotations

from ..cni.names import SPACE
from .addresses import Address, parse_address
from .layout import HOLDER_SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from .ranges import RangeSet

STATIC_PREFIX = "static."
# an address file without content that is older than this was left by a crash, not by an ADD at work (H18)
EMPTY_GRACE = 60.0

_SPACE = "".join(sorted(SPACE))


def strip_space(content: bytes) -> bytes:
    """Return *content* without the white space at its ends, as Go's strings.TrimSpace strips it."""
    content = content.strip()
    if content and (content[0] >= 0x80 or content[-1] >= 0x80):
        content = content.decode("utf-8", "surrogateescape").strip(_SPACE).encode("utf-8", "surrogateescape")
    return content


def owner_key(container_id: str, ifname: str) -> bytes:
    """Return the content of the address file of an attachment; without *ifname* that of an old plugin release."""
    text = container_id + "\r\n" + ifname if ifname else container_id
    return text.encode("utf-8", "surrogateescape")


def split_owner(text: str) -> tuple[str, str]:
    """Return (container id, ifname) of the content of an address file, white space stripped."""
    container_id, mark, ifname = text.partition("\r\n")
    if mark and container_id.isalnum() and ifname.isalnum():
        return container_id, ifname
    if not mark and len(container_id.split(None, 1)) > 1:
        # no file of any plugin looks like this; show it so that no id holds a blank
        container_id, ifname = container_id.split(None, 1)
    return container_id.strip(), ifname.strip()


class Reservation:
    """One address file, or the holder file beside one (a sticky address): they look the same.

    ``name`` is the file's name, which may be an odd spelling of ``address``. ``content`` are its bytes without white
    space at the ends, ``container_id`` and ``ifname`` what they say (``ifname`` is empty in files of old plugin
    releases). ``mtime`` is in seconds since the epoch.
    """

    __slots__ = ("address", "name", "content", "mtime", "container_id", "ifname")

    def __init__(self, address: Address, name: str, content: bytes, mtime: float) -> None:
        self.address = address
        self.name = name
        self.content = content
        self.mtime = mtime
        self.container_id, self.ifname = split_owner(content.decode("utf-8", "replace"))

    @property
    def static(self) -> bool:
        """True if an operator made it, not a runtime."""
        return self.container_id.startswith(STATIC_PREFIX)

    @property
    def empty(self) -> bool:
        """True for a file without content: the remains of a crash, or an ADD of the Go plugin at work."""
        return not self.content

    @property
    def canonical(self) -> bool:
        """True if the file's name is the canonical spelling, the only one that makes an address taken."""
        return self.name == str(self.address)

    @property
    def exact(self) -> bool:
        """True if the Go plugin can find it by its owner: ``<id> CRLF <ifname>`` or, in old files, the id alone."""
        return self.content == owner_key(self.container_id, self.ifname)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.container_id} {self.ifname}>"


def _address_key(reservation: Reservation) -> tuple[int, int]:
    address = reservation.address
    return address.bits, address.number


class Snapshot:
    """All of a network directory, read under one hold of the lock.

    ``names`` are all names in it, ``files`` the content and file time of each regular file whose name may be an
    address, ``holders`` those of each that may be a holder file, ``unreadable`` maps names to the OS error met, ``now``
    is the time of reading. ``complete`` tells whether every file was read.
    """

    complete = True

    def __init__(
        self,
        names: set[str],
        files: dict[str, tuple[bytes, float]],
        directories: set[str],
        unreadable: dict[str, OSError],
        now: float,
        holders: dict[str, tuple[bytes, float]] | None = None,
    ) -> None:
        self.names = names
        self.files = files
        self.holders = {} if holders is None else holders
        self.directories = directories
        self.unreadable = unreadable
        self.now = now
        self._reservations: list[Reservation] | None = None
        self._by_address: dict[Address, Reservation] | None = None
        self._by_content: dict[bytes, list[str]] | None = None

    @classmethod
    def nothing(cls, now: float) -> Snapshot:
        """Return the snapshot of a directory that does not exist."""
        return cls(set(), {}, set(), {}, now)

    @property
    def reservations(self) -> list[Reservation]:
        """The address files, sorted by address."""
        if self._reservations is None:
            found = []
            for name, (content, mtime) in self.files.items():
                reservation = self._read(name, content, mtime)
                if reservation is not None:
                    found.append(reservation)
            found.sort(key=_address_key)
            self._reservations = found
        return self._reservations

    @property
    def holding(self) -> list[Reservation]:
        """The holder files, sorted by address; a static reservation may have one beside it."""
        found = (self._read(name, *content) for name, content in self.holders.items())
        return sorted((one for one in found if one is not None), key=_address_key)

    @staticmethod
    def _read(name: str, content: bytes, mtime: float) -> Reservation | None:
        text = name[: -len(HOLDER_SUFFIX)] if name.endswith(HOLDER_SUFFIX) else name
        try:
            return Reservation(parse_address(text), name, content, mtime)
        except ValueError:
            return None

    def has(self, name: str) -> bool:
        """Tell whether something of this name, of whatever type, is there."""
        return name in self.names

    def is_taken(self, address: Address) -> bool:
        """Tell whether a file of any type stands where the reservation of *address*, or its holder file, would be.

        Only the canonical spelling counts, as for Go [vector disk-noncanonical-v6-name]. An empty file past its grace
        time does not count (H18).
        """
        name = str(address)
        if self.has(name) and not self.is_reclaimable(name):
            return True
        name += HOLDER_SUFFIX
        return self.has(name) and not self.is_reclaimable(name)

    def free(self, range_set: RangeSet, last: Address | None) -> Iterator[Address]:
        """Yield the addresses of *range_set* that are not taken, in the order of the round robin (spec 4.1)."""
        return (address for address in range_set.walk(last) if not self.is_taken(address))

    def is_reclaimable(self, name: str) -> bool:
        """Tell whether *name* is an empty address or holder file old enough to be nobody's (H18)."""
        found = self.files.get(name) or self.holders.get(name)
        # a file time in the future counts as young
        return found is not None and not found[0] and self.now - found[1] > EMPTY_GRACE

    def holder(self, address: Address) -> Reservation | None:
        """Return the reservation of *address*, under its canonical name."""
        if self._by_address is None:
            self._by_address = {one.address: one for one in self.reservations if one.name == str(one.address)}
        return self._by_address.get(address)

    def present_holder(self, address: Address) -> Reservation | None:
        """Return the holder file of *address*, under its canonical name; not an empty one past its grace time (H18)."""
        name = f"{address}{HOLDER_SUFFIX}"
        found = self.holders.get(name)
        return None if found is None or self.is_reclaimable(name) else Reservation(address, name, *found)

    def reserved_for(self, container_id: str, ifname: str) -> list[Reservation]:
        """Return the address files under canonical names that say exactly this, in order of names; no holder files."""
        found = self._matching(owner_key(container_id, ifname))
        return [one for one in found if one.canonical]

    def held_by(self, container_id: str, ifname: str) -> list[Reservation]:
        """Return what an attachment holds, by the exact key or the one of old plugin releases, in order of names.

        Here and in `to_release` holder files count like address files.
        """
        return self._matching(owner_key(container_id, ifname), owner_key(container_id, ""))

    def to_release(self, container_id: str, ifname: str) -> list[Reservation]:
        """Return what a DEL of the attachment gives back: the exact matches, else those of the old form (spec 3.3)."""
        exact = self._matching(owner_key(container_id, ifname))
        return exact or self._matching(owner_key(container_id, ""))

    def _matching(self, *keys: bytes) -> list[Reservation]:
        if self._by_content is None:
            self._by_content = {}
            for files in (self.files, self.holders):
                for name, (content, _mtime) in files.items():
                    self._by_content.setdefault(content, []).append(name)
        names = sorted(name for key in keys for name in self._by_content.get(key, ()))
        found = (self._read(name, *(self.files.get(name) or self.holders[name])) for name in names)
        return [one for one in found if one is not None]

    def add(self, reservation: Reservation) -> None:
        """Note a reservation made since."""
        self.names.add(reservation.name)
        files = self.holders if reservation.name.endswith(HOLDER_SUFFIX) else self.files
        files[reservation.name] = (reservation.content, reservation.mtime)
        self._forget_indexes()

    def discard(self, name: str) -> None:
        """Note that an address or holder file is gone since."""
        self.names.discard(name)
        self.files.pop(name, None)
        self.holders.pop(name, None)
        self._forget_indexes()

    def _forget_indexes(self) -> None:
        self._reservations = self._by_address = self._by_content = None
