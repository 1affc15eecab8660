# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is refused of conflists that are sound by themselves: networks that cannot work, and addresses that move."""

from __future__ import annotations

import os

from ..cni.errors import NodenetError
from . import findings, rangemoves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .confdir import ConfDir, ConfFile
    from .conflists import Options


def check(
    found: ConfDir,
    written: Sequence[ConfFile],
    later: ConfDir,
    effective: Mapping[str, Mapping[str, Any]],
    facts: Sequence[Mapping[str, Any]],
    options: Options,
) -> list[dict[str, Any]]:
    """Refuse what would leave pods without a network, or could give an address to two; return what else is doubtful.

    :param later: the conf dir as it would be; *effective* and *facts* are what is known of it
    :raises NodenetError: facts carry the findings
    """
    if options.validate != "none":
        _refuse_nothing(later, effective["containerd"], facts, options)
        _refuse_clashes(found.path, {one.network for one in written}, facts)
    moves = rangemoves.check(found.path, found.files, later.files, written, options.flannel_subnet_file)
    grave = [item for item in findings.from_facts(moves) if item["severity"] == "error"]
    if grave and not options.move_ranges:
        raise NodenetError(f"Cannot write conflist {grave[0]['where']}: {_reasons(grave)}", findings=grave)
    return moves


def _refuse_nothing(
    later: ConfDir, chosen: Mapping[str, Any], facts: Sequence[Mapping[str, Any]], options: Options
) -> None:
    """Refuse to write beside a file for which containerd loads no network at all."""
    if chosen["network"] is None and chosen["known"] and "containerd" not in options.runtimes.notes:
        broken = next(one for one in later.files if one.error)
        path = os.path.join(later.path, broken.shown)
        told = findings.from_facts([dict(fact) for fact in facts if fact["where"] == path])
        reason = "; ".join(item["text"] for item in told) or broken.error
        raise NodenetError(
            f"Cannot write conflists in {later.path}: containerd would have no network for any pod, since it loads "
            f"none beside {broken.shown}, which is broken ({reason}); repair or remove that file",
            file=path,
        )


def _refuse_clashes(conf_dir: str, written: set[str], facts: Sequence[Mapping[str, Any]]) -> None:
    """Refuse two networks of which only one can work, if either is to be written."""
    clashes = [
        dict(fact)
        for fact in facts
        if fact["kind"] == "conf-bridge-shared" and {fact["network"], fact["other"]} & written
    ]
    if clashes:
        found = findings.from_facts(clashes)
        raise NodenetError(f"Cannot write conflists in {conf_dir}: {_reasons(found)}", findings=found)


def _reasons(found: Sequence[Mapping[str, str]]) -> str:
    return "; ".join(f"{item['text']} ({item['hint']})" for item in found)
