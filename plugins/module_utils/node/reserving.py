# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task of host_local_reservation: from what the user wrote to what is on disk."""

from __future__ import annotations

from ..cni.errors import NodenetError
from ..host_local import batch, reservations
from ..host_local.wanted import read_batch
from . import targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from ..host_local.reservations import Plan
    from ..host_local.snapshot import Snapshot


class Outcome:
    """What became of the task: ``result`` for the user, text lines ``before`` and ``after``, ``path``, ``warnings``."""

    def __init__(self, result: dict[str, Any], plan: Plan, path: str, warnings: list[str]) -> None:
        self.result = result
        self.before, self.after = reservations.lines(plan)
        self.path = path
        self.warnings = warnings


def reserve(options: Mapping[str, Any], check_mode: bool) -> Outcome:
    """Bring the reservations of a network to what *options* (those of the module) say.

    :raises NodenetError: something is refused or cannot be done; nothing is changed then
    """
    name = targets.label(options)
    if options["purge_prefix"] is not None and not options["purge"]:
        raise NodenetError(f"Cannot change reservations of network {name}: purge_prefix needs purge=true")
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

    plan, warnings = batch.run_batch(target.data_dir, target.name, decide, check_mode, options["lock_timeout"])
    facts = target.facts + plan.facts
    result = reservations.outcome(plan, sets, now)
    result.update(network=target.name, data_dir=target.data_dir, findings=_findings(facts) if facts else [])
    return Outcome(result, plan, target.path, warnings)


def _findings(facts: list[dict[str, Any]]) -> list[dict[str, str]]:
    from . import findings  # the registry is long, and most tasks have nothing to tell

    return findings.from_facts(facts)
