# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The present holders of sticky addresses in a report. Few directories have any."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

    from .addresses import Address
    from .live import LiveAttachments
    from .snapshot import Reservation, Snapshot


class Holders:
    """What the holder files of a directory say, for a report.

    ``odd`` maps kinds of facts to file names, ``alone`` are the addresses that are taken by nothing but a holder file,
    ``names`` those of all files that count as holder files.
    """

    def __init__(
        self, snapshot: Snapshot, rows: Iterable[dict[str, Any]], live: LiveAttachments | None, young: int
    ) -> None:
        """Give each static reservation among *rows* its ``holder``.

        :param young: seconds for which a file whose owner *live* does not list counts as newer than the list
        """
        self.odd: dict[str, list[str]] = {}
        self.alone: list[Address] = []
        self.names: set[str] = set()
        by_address = {one["address"]: one for one in rows}
        for one in snapshot.holding:
            self.names.add(one.name)
            if one.empty:
                self._note("ipam-empty-file", one)
                continue
            if not one.exact or not one.container_id:
                self._note("ipam-bad-content", one)
            reserved = by_address.get(str(one.address))
            if reserved is None or not reserved["static"]:
                self._note("ipam-holder-alone", one)
                if str(one.address) not in snapshot.names:
                    self.alone.append(one.address)
                continue
            holder: dict[str, Any] = {"container_id": one.container_id, "ifname": one.ifname}
            if live is not None:
                holder["alive"] = live.judge(one.container_id, one.ifname, str(one.address))
                if holder["alive"] is False and snapshot.now - one.mtime < young:
                    holder["alive"] = None
                if holder["alive"] is False:
                    self._note("ipam-holder-leaked", one)
            reserved["holder"] = holder

    def _note(self, kind: str, one: Reservation) -> None:
        self.odd.setdefault(kind, []).append(one.name)
