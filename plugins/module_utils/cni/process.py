# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Being the process of a plugin: environment and standard input in, result, log and exit status out (spec 1.1, 1.4)."""

from __future__ import annotations

import _signal
import posix
import sys

from . import goprint
from .errors import INTERNAL, IO_FAILURE, CniError, go_strerror

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Mapping, NoReturn

    from .skel import Outcome

    Plugin = Callable[[Mapping[str, str], Callable[[], bytes]], Outcome]

_CHUNK = 1 << 16
_VERSION_OPTIONS = frozenset(("--version", "-version", "--v", "-v"))


def run_and_exit(plugin: Plugin, about: str = "") -> NoReturn:
    """Serve the call that this process was started for.

    :param about: what to print if the process was started with an option that asks for the version, "": it takes none

    Whatever goes wrong ends in one error document and exit status 1. A reader of the result who has gone is an error
    as well, and the call is taken back (H16); an interrupt ends the process as it ends every other.
    """
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    if about and _VERSION_OPTIONS.intersection(sys.argv[1:]):  # the kernel puts the launcher's path before them
        posix._exit(1 if _write(1, about) else 0)
    environ = {_text(key): _text(value) for key, value in posix.environ.items()}
    try:
        outcome = plugin(environ, _read_stdin)
        rc, stdout, stderr, undo = outcome.rc, outcome.stdout, outcome.stderr, outcome.undo
    except Exception as error:  # a defect; runtimes understand nothing but an error document
        document = CniError(INTERNAL, f"internal error: {type(error).__name__}: {error}").document()
        rc, stdout, stderr, undo = 1, goprint.dumps(document), "", None
    _write(2, stderr)
    reason = _write(1, stdout)
    if reason and rc == 0:
        rc = 1
        if undo is not None:
            reason = _take_back(undo, reason)
    if reason:
        _write(2, f"{sys.argv[0]}: cannot write the result: {reason}\n")
    posix._exit(rc)


def _take_back(undo: Callable[[], None], reason: str) -> str:
    try:
        undo()
    except Exception as error:
        return f"{reason}; what was reserved could not be given back: {error}"
    return reason


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _read_stdin() -> bytes:
    pieces: list[bytes] = []
    try:
        while True:
            piece = posix.read(0, _CHUNK)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
    except OSError as error:
        raise CniError(IO_FAILURE, f"error reading from stdin: read /dev/stdin: {go_strerror(error)}") from None


def _write(fd: int, text: str) -> str:
    """Write all of *text*; return why that failed, the empty text if it did not."""
    view = memoryview(text.encode("utf-8", "surrogateescape"))
    try:
        while view:
            view = view[posix.write(fd, view) :]
    except OSError as error:
        return go_strerror(error)
    return ""
