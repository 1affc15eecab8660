# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose reservations are alive, judged by a list of live attachments (DESIGN section 6)."""

from __future__ import annotations

from ..cni.errors import NodenetError
from .idforms import SANDBOX_ID, id_form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

_HEX = "0123456789abcdef"
_FULL_ID = 64
_UUID = id_form("00000000-0000-0000-0000-000000000000")
#: A shorter beginning of an id proves nothing; tools print 12 or 13 characters of it.
SHORTEST_PREFIX = 12


class LiveAttachments:
    """The attachments that the caller says are alive.

    Each has ``container_id``, whole or at least its first 12 characters, and may have ``ifname``; without it all
    interfaces of the container are alive.
    """

    def __init__(self, attachments: Iterable[Mapping[str, Any]]) -> None:
        # id, as listed: its interfaces; None stands for all of them
        self._listed: dict[str, set[str] | None] = {}
        for one in attachments:
            container_id, ifname = one["container_id"], one.get("ifname")
            if not container_id:
                raise NodenetError("Cannot judge who is alive in live.attachments: a container_id is empty")
            known = self._listed.setdefault(container_id, set())
            if not ifname or known is None:
                self._listed[container_id] = None
            else:
                known.add(ifname)
        self._lengths = sorted({len(one) for one in self._listed if len(one) >= SHORTEST_PREFIX})
        #: The forms of id that the list can judge; with an empty one only plain ids.
        self.forms = {form for one in self._listed for form in _listed_forms(one)} or {SANDBOX_ID}

    def judge(self, container_id: str, ifname: str, _address: str = "") -> bool | None:
        """Tell whether the holder of a reservation is alive; None if the list does not say.

        An id of a form that no listed one has (``<namespace>-<id>`` where only plain ids are listed, or free text) may
        belong to a runtime that nobody asked. A reservation without interface name is alive with any interface.
        """
        if self.is_alive(container_id, ifname):
            return True
        return False if self.lists(container_id) or id_form(container_id) in self.forms else None

    def is_alive(self, container_id: str, ifname: str) -> bool:
        """Tell whether the attachment is listed, by its whole id or the beginning of it."""
        if _covers(self._listed.get(container_id, ()), ifname):
            return True
        for length in self._lengths:
            if length >= len(container_id):
                break
            if _covers(self._listed.get(container_id[:length], ()), ifname):
                return True
        return False

    def lists(self, container_id: str) -> bool:
        """Tell whether the container is listed, with whatever interfaces."""
        return container_id in self._listed


def _covers(interfaces: Iterable[str] | None, ifname: str) -> bool:
    if interfaces is None:
        return True
    return ifname in interfaces if ifname else any(True for _one in interfaces)


def _listed_forms(container_id: str) -> set[str]:
    """Return the forms that a listed id stands for: its own, and that of the whole id of which it may be the start."""
    form = id_form(container_id)
    head, dash, tail = container_id.rpartition("-")
    if form == _UUID or tail.strip(_HEX) or not SHORTEST_PREFIX <= len(tail) < _FULL_ID:
        return {form}
    return {form, id_form(head + dash + "0" * _FULL_ID)}
