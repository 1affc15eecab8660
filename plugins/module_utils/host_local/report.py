# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of one network's directory: who holds what, how full the ranges are, and what is odd about it.

Pure. Directories of 50,000 files are real, so what is done for each file is little: addresses stay packed bytes
(``_socket`` parses and prints them in C), and only odd files take the slow way.
"""

from __future__ import annotations

import _socket
import gc
from operator import itemgetter

from .addresses import parse_address
from .layout import LAST_RESERVED_PREFIX, LOCK_NAME
from .rows import printable, row, short_list
from .snapshot import Reservation, split_owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Sequence

    from .addresses import Address
    from .holders import Holders
    from .live import LiveAttachments
    from .ranges import RangeSet
    from .snapshot import Snapshot

#: Share of reserved addresses from which a range set is worth a finding.
HIGH = 0.8
#: Seconds before a reservation whose owner is not listed counts as leaked: its ADD may be younger than the list.
YOUNG = 60

# what ids and interface names are made of: a content of nothing else but one CR LF is an ordinary one
_PLAIN = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.-"
_V4, _V6 = b"\x04", b"\x06"
_EIGHT_ZEROS = bytes(8)


class Report:
    """What is known of one network; ``document`` is what the modules return, ``facts`` what is odd.

    :param sets: the network's range sets, empty when they are not known
    :param last_reserved: the text of each set's last_reserved_ip file, empty where there is none
    :param live: who is alive, None when nobody said
    """

    def __init__(
        self,
        snapshot: Snapshot,
        sets: Sequence[RangeSet],
        last_reserved: Sequence[str] = (),
        live: LiveAttachments | None = None,
        where: str = "",
    ) -> None:
        self.facts: list[dict[str, Any]] = []
        collecting = gc.isenabled()
        gc.disable()  # 50,000 live dicts and no cycles: its runs would take a third of the time
        try:
            self._fill(snapshot, sets, last_reserved, live, where)
        finally:
            if collecting:
                gc.enable()

    def _fill(
        self,
        snapshot: Snapshot,
        sets: Sequence[RangeSet],
        last_reserved: Sequence[str],
        live: LiveAttachments | None,
        where: str,
    ) -> None:
        self._where = where
        self._now = snapshot.now
        self._names: dict[str, list[str]] = {}
        entries = self._read(snapshot.files)
        self._taken = {key for key, _name, _row in entries}
        self.reservations = [one for _key, _name, one in entries]
        self._holders = self._read_holders(snapshot, live) if snapshot.holders else None
        self.foreign = _foreign(snapshot, self._no_addresses, self._holders.names if self._holders else ())
        self._place(entries, sets)
        if live is not None:
            self._judge(live)
        self._find_doubles(entries)
        if sets:
            self._find_owners_twice()
        self._note("ipam-unreadable-file", sorted(snapshot.unreadable))
        self._note("ipam-foreign-entry", self.foreign)
        self._blocked = _other_entries(snapshot) - self._taken
        if self._holders:
            self._blocked.update(_key(address) for address in self._holders.alone)
        self.range_sets = [
            self._range_set(index, one, last_reserved[index] if index < len(last_reserved) else "", live is not None)
            for index, one in enumerate(sets)
        ]
        for kind, names in self._names.items():
            if names:
                self._fact(kind, count=len(names), names=short_list(names))

    def add_foreign_copies(self, snapshot: Snapshot, contents: Iterable[tuple[str, bytes]]) -> None:
        """Find files beside the reservations that the Go plugin's DEL would take for one of them (spec 3.3).

        :param contents: what `foreign.foreign_contents` yields
        """
        owned = {content for content, _mtime in snapshot.files.values()}
        holding = self._holders.names if self._holders else set()
        owned.update(snapshot.holders[name][0] for name in holding)
        owned.discard(b"")
        copies = [printable(name) for name, content in contents if content in owned and name not in holding]
        if copies:
            self._fact("ipam-foreign-copy", count=len(copies), names=short_list(copies))

    def _fact(self, kind: str, **params: object) -> None:
        self.facts.append(dict(params, kind=kind, where=self._where))

    def _note(self, kind: str, names: Iterable[str]) -> None:
        self._names.setdefault(kind, []).extend(names)

    def _read(self, files: Mapping[str, tuple[bytes, float]]) -> list[tuple[bytes, str, dict[str, Any]]]:
        """Return (sort key, file name, reservation) of every address file, sorted by address."""
        entries: list[tuple[bytes, str, dict[str, Any]]] = []
        self._no_addresses: list[str] = []
        parse, family4 = _socket.inet_pton, _socket.AF_INET
        now = self._now
        for name, (content, mtime) in files.items():
            try:
                key = _V4 + parse(family4, name)
                address = name
            except (OSError, ValueError):
                packed = _packed6(name)
                if packed is None:
                    self._no_addresses.append(name)
                    continue
                key, address = packed
                if address != name:
                    self._note("ipam-odd-name", [name])
            age = int(now - mtime)
            if content.translate(None, _PLAIN) == b"\r\n" and b"\r\n" in content:
                container_id, ifname = split_owner(content.decode())
            else:
                container_id, ifname = self._odd_content(name, content)
            entries.append((key, name, row(address, container_id, ifname, None, age if age > 0 else 0)))
        entries.sort(key=itemgetter(0, 1))
        if self._names:
            order = {name: position for position, (_sort_key, name, _row) in enumerate(entries)}
            for names in self._names.values():
                names.sort(key=order.__getitem__)
        return entries

    def _read_holders(self, snapshot: Snapshot, live: LiveAttachments | None) -> Holders:
        from .holders import Holders

        holders = Holders(snapshot, self.reservations, live, YOUNG)
        for kind, names in holders.odd.items():
            self._note(kind, names)
        return holders

    def _odd_content(self, name: str, content: bytes) -> tuple[str, str]:
        one = Reservation(_NOWHERE, name, content, 0.0)
        if one.empty:
            self._note("ipam-empty-file", [name])
        elif not one.exact or not one.container_id:
            self._note("ipam-bad-content", [name])
        elif not one.ifname:
            self._note("ipam-legacy-entry", [name])
        return one.container_id, one.ifname

    def _place(self, entries: list[tuple[bytes, str, dict[str, Any]]], sets: Sequence[RangeSet]) -> None:
        """Say to which range set each reservation belongs. Ranges do not overlap, so one pass over both will do."""
        if not sets:
            return
        spans = sorted((_key(one.start), _key(one.end), index) for index, s in enumerate(sets) for one in s.ranges)
        spans.append((b"\xff", b"\xff", -1))
        position = 0
        start, end, index = spans[0]
        outside = []
        for key, name, one in entries:
            while key > end:
                position += 1
                start, end, index = spans[position]
            if key >= start:
                one["range_set"] = index
            else:
                outside.append(name)
        gateways = {_key(gateway) for s in sets for gateway in s.gateways} & self._taken
        self._note("ipam-outside-ranges", outside)
        if gateways:
            self._note("ipam-gateway-reserved", [one["address"] for key, _name, one in entries if key in gateways])

    def _judge(self, live: LiveAttachments) -> None:
        leaked, unknown = [], []
        for one in self.reservations:
            container_id = one["container_id"]
            alive: bool | None = None
            if container_id and not one["static"]:
                alive = live.judge(container_id, one["ifname"], one["address"])
                if alive is None:
                    unknown.append(one["address"])
                elif not alive and one["age_s"] < YOUNG:
                    alive = None
                elif not alive:
                    leaked.append(one["address"])
            one["alive"] = alive
        self._note("ipam-leaked", leaked)
        self._note("ipam-unknown-owner", unknown)

    def _find_doubles(self, entries: list[tuple[bytes, str, dict[str, Any]]]) -> None:
        self._has_doubles = len(self._taken) < len(entries)
        if not self._has_doubles:
            return
        before = b""
        doubles: list[str] = []
        for key, _name, one in entries:
            if key == before and one["address"] not in doubles[-1:]:
                doubles.append(one["address"])
            before = key
        self._note("ipam-held-twice", doubles)

    def _find_owners_twice(self) -> None:
        """Note who has more than one address of a range set: an attachment gets one (host-local spec 4)."""
        seen: set[tuple[str, str, int]] = set()
        for one in self.reservations:
            if one["range_set"] is not None and one["container_id"]:
                owner = (one["container_id"], one["ifname"], one["range_set"])
                if owner in seen:
                    self._note("ipam-owner-twice", [one["address"]])
                seen.add(owner)

    def _range_set(self, index: int, one_set: RangeSet, last_reserved: str, judged: bool) -> dict[str, Any]:
        mine = [one for one in self.reservations if one["range_set"] == index]
        usable = one_set.usable()
        spans = [(_key(one.start), _key(one.end)) for one in one_set.ranges]
        gateways = {_key(one) for one in one_set.gateways}
        # no gateway counts as usable, so a reserved one takes nothing away
        taken = len({one["address"] for one in mine}) if self._has_doubles else len(mine)
        taken += sum(any(a <= key <= b for a, b in spans) for key in self._blocked - gateways)
        taken -= sum(any(a <= key <= b for a, b in spans) for key in self._taken & gateways)
        document = {
            "ranges": [str(one) for one in one_set.ranges],
            "gateways": [str(one) for one in sorted(one_set.gateways)],
            "usable": usable,
            "reserved": len(mine),
            "static": sum(1 for one in mine if one["static"]),
            "leaked": sum(1 for one in mine if one["alive"] is False) if judged else None,
            "free": max(usable - taken, 0),
            "last_reserved": last_reserved or None,
        }
        params = {
            "set": index,
            "ranges": str(one_set),
            "reserved": taken,
            "usable": usable,
            "leaked": document["leaked"] or 0,
        }
        if taken >= HIGH * usable and taken:
            self._fact("ipam-pool-leaked" if document["leaked"] else "ipam-pool-high", **params)
        if taken >= usable:
            self._fact("ipam-pool-full", **params)
        if last_reserved and not _is_in(last_reserved, one_set):
            self._fact("ipam-rotation-odd", set=index, text=last_reserved)
        return document


_NOWHERE = parse_address("::")


def _key(address: Address) -> bytes:
    return _V4 + address.number.to_bytes(4, "big") if address.bits == 32 else _V6 + address.number.to_bytes(16, "big")


def _packed6(name: str) -> tuple[bytes, str] | None:
    """Return (sort key, canonical text) of a name that is no plain IPv4 address, None if it is no address at all."""
    if ":" in name:
        try:
            packed = _socket.inet_pton(_socket.AF_INET6, name)
        except (OSError, ValueError):
            return None
        # the C library has its own ways with IPv4 addresses in IPv6 form
        if packed[:8] != _EIGHT_ZEROS:
            return _V6 + packed, _socket.inet_ntop(_socket.AF_INET6, packed)
    try:
        address = parse_address(name)
    except ValueError:
        return None
    return _key(address), str(address)


def _is_in(text: str, one_set: RangeSet) -> bool:
    try:
        return parse_address(text) in one_set
    except ValueError:
        return False


def _foreign(snapshot: Snapshot, no_addresses: Sequence[str], holding: Iterable[str]) -> list[str]:
    """Return the names that are none of the plugin's, a directory with a slash at its end."""
    names = (snapshot.names - snapshot.files.keys() - snapshot.unreadable.keys()).union(no_addresses)
    names.difference_update(holding)
    return sorted(
        printable(name) + "/" if name in snapshot.directories else printable(name)
        for name in names
        if name != LOCK_NAME and not name.startswith(LAST_RESERVED_PREFIX)
    )


def _other_entries(snapshot: Snapshot) -> set[bytes]:
    """Return the keys of entries that block an address although they are no readable address files."""
    keys = set()
    for name in snapshot.names - snapshot.files.keys():
        if "." in name or ":" in name:
            try:
                address = parse_address(name)
            except ValueError:
                continue
            if str(address) == name:
                keys.add(_key(address))
    return keys
