# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program that frees leaked addresses at its times, as `reclaim_timer` installs it.

    python3 -IBS reclaim-HASH.pyz SETTINGS.json

The file of settings has ``options``, those of host_local_gc, with the names of networks; ``with_static``, whether also
networks that hold static reservations; and ``wait_s``, for how long to ask again when a runtime does not answer yet.
A line is printed for each address that goes, for what is left alone, and for the whole. Exit code 1: nothing was freed,
for the reason that is printed; or not all, then that says what was.
"""

from __future__ import annotations

import json
import sys
import time

from ..cni.errors import NodenetError
from ..host_local.rows import short_list
from . import reclaim, reclaim_journal, reclaim_run
from .ipam_trend import span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Sequence

_PAUSE_S = 2.0


def main(arguments: Sequence[str]) -> int:
    """Free what leaked by the settings in the file that is named; return the exit code."""
    try:
        (path,) = arguments
        with open(path, encoding="utf-8") as stream:
            settings = json.load(stream)
        return _run(settings)
    except NodenetError as error:
        reason = str(error)
    except OSError as error:
        reason = f"Cannot free addresses: {error.filename}: {(error.strerror or str(error)).lower()}"
    except (ValueError, KeyError, TypeError) as error:
        reason = f"Cannot free addresses by the settings {' '.join(arguments)!r}: {type(error).__name__}: {error}"
    _say(reason, sys.stderr)
    return 1


def _run(settings: Mapping[str, Any]) -> int:
    options = dict(settings["options"], networks=list(settings["options"]["networks"]), all=None, orphans=False)
    options.update(live=None, force_empty=False, unattended=True)
    deadline = time.monotonic() + settings["wait_s"]
    if not settings["with_static"]:
        looked = _patiently(lambda: reclaim_run.reclaim_addresses(options, check_mode=True), deadline)
        options["networks"] = _without_static(options["networks"], looked.result["kept"])
        if not options["networks"]:
            return 0
    outcome = _patiently(lambda: reclaim_run.reclaim_addresses(options, check_mode=False), deadline)
    result = outcome.result
    for one in result["removed"]:
        holder = " ".join(part for part in (one["container_id"], one["ifname"]) if part) or "nobody"
        _say(f"{one['network']}: freed {one['address']}, was held by {holder} for {span(one['age_s'])}")
    restored = [one for one in result["kept"] if one["reason"] == reclaim.RESTORED]
    if restored:
        shown = short_list(one["address"] for one in restored)
        _say(f"{', '.join(options['networks'])}: left alone, restored by hand: {shown}")
    kept: dict[str, int] = {}
    for one in result["kept"]:
        kept[one["reason"]] = kept.get(one["reason"], 0) + 1
    reasons = ", ".join(f"{kept[reason]} {reason}" for reason in sorted(kept))
    where = f"; restore with run id {result['run_id']}" if result["run_id"] else ""
    _say(
        f"{', '.join(options['networks'])}: freed {len(result['removed'])}, kept {len(result['kept'])}"
        + (f" ({reasons})" if reasons else "")
        + where
    )
    if result["run_id"]:
        reclaim_journal.prune(options["state_dir"], time.time())
    for one in reclaim_run.findings_of(outcome.facts):  # after what was done is said: a failure here hides nothing
        _say(f"{one['code']} {one['severity']} {one['where']}: {one['text']}; {one['hint']}")
    return 0


def _without_static(networks: Sequence[str], kept: Sequence[Mapping[str, Any]]) -> list[str]:
    owners: dict[str, list[str]] = {}
    for one in kept:
        if one["reason"] == reclaim.STATIC:
            owners.setdefault(one["network"], []).append(f"{one['address']} of {one['owner']}")
    for name, found in sorted(owners.items()):
        _say(f"{name}: left alone, it holds static reservations: {short_list(found)}")
    return [name for name in networks if name not in owners]


def _patiently(ask: Callable[[], reclaim_run.Outcome], deadline: float) -> reclaim_run.Outcome:
    """Ask again while who would know does not answer: after a boot a runtime needs a moment."""
    while True:
        try:
            return ask()
        except NodenetError as error:
            if not _may_be_silent(error.facts.get("sources")) or time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE_S)


def _may_be_silent(sources: Any) -> bool:
    """Tell whether a refusal is for what a source failed to say; *sources* are as the refusal has them."""
    if sources is None:
        return False
    return any(one["state"] == "failed" for one in sources) or not any(one["authoritative"] for one in sources)


def _say(text: str, stream: Any = None) -> None:
    """Write a line to the log. Ids and names are chosen by whoever can write an address file: none makes a line."""
    line = text if text.isascii() and text.isprintable() else ascii(text)[1:-1]
    out = stream or sys.stdout
    out.write(line + "\n")
    out.flush()
