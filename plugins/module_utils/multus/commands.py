# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The multus plugin: one call in process (multus spec 1).

A command loads what it needs when it is called, because loading is most of what a call costs.
"""

from __future__ import annotations

from ..cni import skel
from .journal import Journal, write_stderr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

    from ..cni.skel import Call, Outcome

ABOUT = "meta-plugin that delegates to other CNI plugins"


def run(
    environ: Mapping[str, str],
    stdin: bytes | Callable[[], bytes],
    tell: Callable[[str], None] = write_stderr,
) -> Outcome:
    """Serve one call of the plugin: the same texts, exit status and effects as the executable.

    :param tell: takes what goes to standard error while the call runs: the log, and what delegates say
    """
    read = (lambda: stdin) if isinstance(stdin, bytes) else stdin
    journal = Journal(tell)
    handlers = {command: _bound(load, journal) for command, load in _COMMANDS.items()}
    return skel.run(ABOUT, handlers, environ, read)


def _bound(load: Callable[[], Callable[[Call, Journal], Any]], journal: Journal) -> Callable[[Call], Any]:
    def handle(call: Call) -> Any:
        try:
            return load()(call, journal)
        except Exception as error:
            journal.error(str(error))
            raise

    return handle


def _add() -> Callable[[Call, Journal], Any]:
    from . import adding

    return adding.add


def _delete() -> Callable[[Call, Journal], Any]:
    from . import deleting

    return deleting.delete


def _check() -> Callable[[Call, Journal], Any]:
    from . import upkeep

    return upkeep.check


def _status() -> Callable[[Call, Journal], Any]:
    from . import upkeep

    return upkeep.status


def _collect_garbage() -> Callable[[Call, Journal], Any]:
    from . import upkeep

    return upkeep.collect_garbage


_COMMANDS: dict[str, Callable[[], Callable[[Call, Journal], Any]]] = {
    "ADD": _add,
    "CHECK": _check,
    "DEL": _delete,
    "GC": _collect_garbage,
    "STATUS": _status,
}
