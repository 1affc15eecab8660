# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan changes, line by line, for diff mode."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .reservations import Plan


def lines(plan: Plan) -> tuple[list[str], list[str]]:
    """Return the files that the plan concerns, before and after, one text line each in order of address."""
    before = {(one.address, one.name, _text(one.container_id, one.ifname)) for one in plan.remove}
    after = {(address, str(address), _text(container_id, ifname)) for address, container_id, ifname in plan.add}
    for entry in plan.entries:
        kept = {(one.address, one.name, _text(one.container_id, one.ifname)) for one in entry.keep}
        before |= kept
        after |= kept
    return (
        [f"{name} {holder}" for _address, name, holder in sorted(before)],
        [f"{name} {holder}" for _address, name, holder in sorted(after)],
    )


def _text(container_id: str, ifname: str) -> str:
    return " ".join(part for part in (container_id, ifname) if part) or "(empty)"
