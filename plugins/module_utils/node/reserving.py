# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task of host_local_reservation: from what the user wrote to what is on disk."""

from __future__ import annotations

from ..cni.errors import NodenetError
from ..host_local import batch, reservations
from ..host_local.lock import check_timeout
from ..host_local.outcome import outcome
from ..host_local.wanted import read_batch
from . import targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from ..host_local.reservations import Plan
    from ..host_local.snapshot import Snapshot
    from .reclaim_restore import Restored


class Outcome:
    """What became of the task: ``result`` for the user, the network's directory ``path``, ``warnings``."""

    def __init__(self, result: dict[str, Any], plan: Plan, path: str, warnings: list[str]) -> None:
        self.result = result
        self._plan = plan
        self.path = path
        self.warnings = warnings

    def difference(self) -> tuple[list[str], list[str]]:
        """Return the files that the task concerns, before and after, one text line each."""
        from ..host_local.difference import lines

        return lines(self._plan)


def reserve(options: Mapping[str, Any], check_mode: bool) -> Outcome | Restored:
    """Bring the reservations of a network to what *options* (those of the module) say, or take a run of the gc back.

    :raises NodenetError: something is refused or cannot be done; nothing is changed then
    """
    if options.get("restore") is not None:
        from . import reclaim_restore

        return reclaim_restore.restore(options, check_mode)
    name = targets.label(options)
    if options["reservations"] is None:
        raise NodenetError(f"Cannot change reservations of network {name}: give a list by the option reservations")
    if options["purge_prefix"] is not None and not options["purge"]:
        raise NodenetError(f"Cannot change reservations of network {name}: purge_prefix needs purge=true")
    lock_timeout = check_timeout(options["lock_timeout"], "lock_timeout")
    wanted = read_batch(options["reservations"], name)
    only_releases = not any(one.present for one in wanted)
    target = targets.find(options, only_releases and not options["purge"])
    sets = target.known_range_sets() if only_releases else target.range_sets()
    place = f"network {target.name} ({target.path})"
    purge = (options["purge_prefix"] or "") if options["purge"] else None
    now = 0.0

    def decide(snapshot: Snapshot) -> Plan:
        nonlocal now
        now = snapshot.now
        return reservations.make_plan(snapshot, sets, wanted, place, purge, options["on_conflict"] == "keep")

    plan, warnings = batch.run_batch(target.data_dir, target.name, decide, check_mode, lock_timeout)
    facts = target.facts + plan.facts
    result = outcome(plan, sets, now)
    result.update(network=target.name, data_dir=target.data_dir, findings=_findings(facts) if facts else [])
    return Outcome(result, plan, target.path, warnings)


def _findings(facts: list[dict[str, Any]]) -> list[dict[str, str]]:
    from . import findings  # the registry is long, and most tasks have nothing to tell

    return findings.from_facts(facts)
