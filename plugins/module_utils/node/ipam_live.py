# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is alive, for the report of a node."""

from __future__ import annotations

from ..cni.errors import NodenetError
from ..host_local.live import LiveAttachments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable


def judge_of(live: dict[str, Any], facts: list[dict[str, Any]]) -> LiveAttachments:
    """Return who tells of each reservation whether its owner is alive; why nobody can is added to *facts*.

    :param live: ``attachments``, a list, or ``discover``
    :raises NodenetError: neither was given
    """
    if live.get("discover"):
        from . import liveness

        judge = liveness.Judge(liveness.gather(dict(liveness.defaults(), attachments=live.get("attachments"))))
        if judge.fault:
            facts.append({"kind": "ipam-liveness-unknown", "where": "this node", "reason": judge.fault})
        return judge
    if live["attachments"] is None:
        raise NodenetError("Cannot tell who is alive: give live.attachments, or set live.discover=true")
    return LiveAttachments(live["attachments"])


def amend(judge: LiveAttachments, documents: Iterable[dict[str, Any]], facts: list[dict[str, Any]]) -> None:
    """Where nobody could be asked, take out of a report how many leaked and whose owners are not known."""
    if not getattr(judge, "fault", ""):
        return
    for one in documents:
        for range_set in one["range_sets"]:
            range_set["leaked"] = None
    facts[:] = [one for one in facts if one["kind"] != "ipam-unknown-owner"]
