# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writing the report files of an audit, each whole or not at all."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_csv import addresses_csv, findings_csv, pools_csv
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_html import html
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_prometheus import prometheus
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_rows import Audit, Json

#: kind of a file -> its name in a directory of reports, what makes its text
KINDS: dict[str, tuple[str, t.Callable[[Audit], str | t.Iterable[str]]]] = {
    "html": ("fleet.html", html),
    "prometheus": ("fleet.prom", prometheus),
    "findings_csv": ("findings.csv", findings_csv),
    "pools_csv": ("pools.csv", pools_csv),
    "addresses_csv": ("addresses.csv", addresses_csv),
}
#: format -> the kinds of files that it is
FORMATS = {
    "html": ("html",),
    "csv": ("findings_csv", "pools_csv", "addresses_csv"),
    "prometheus": ("prometheus",),
}
#: Reports tell which workload runs where. Figures do not, and the exporter that reads them is another user.
_PRIVATE, _PUBLIC = 0o600, 0o644
#: Lines that tell when the audit was made: they alone are no change.
_TIMES = (b' "taken_at": ', b'<p class="soft">Taken ', b"<title>", b"nodenet_cni_audit_timestamp_seconds ")


def write_files(
    document: Json, paths: t.Sequence[tuple[str, str]], check_mode: bool = False, mode: int | None = None
) -> bool:
    """Write the report files; tell whether more than their time changes.

    :param document: what fleet_audit returns, with ``reports``
    :param paths: the files to write, each as its kind, one of KINDS, and its path
    :param check_mode: write nothing
    :param mode: of the files; None for one that only their owner can read, figures apart
    :raises NodenetError: a file cannot be written; those before it in *paths* are
    """
    if not paths:
        return False
    audit = Audit(document)
    changed = False
    for kind, path in paths:
        text = KINDS[kind][1](audit)
        pieces = [text] if isinstance(text, str) else text
        wanted = mode if mode is not None else _PUBLIC if kind == "prometheus" else _PRIVATE
        changed = write(path, pieces, check_mode, mode=wanted) or changed
    return changed


def paths_in(directory: str, formats: t.Iterable[str]) -> list[tuple[str, str]]:
    """Return for `write_files` the files that *formats*, of FORMATS, are in a directory of reports."""
    kinds = dict.fromkeys(kind for one in formats for kind in FORMATS[one])
    return [(kind, os.path.join(directory, KINDS[kind][0])) for kind in kinds]


def write(
    path: str, pieces: t.Iterable[str], check_mode: bool = False, sync: bool = True, mode: int | None = None
) -> bool:
    """Write a file beside *path* and move it there; tell whether more than its time changes, or its mode.

    :param pieces: the text, in pieces of any size, so that a large one need not be in memory at once
    :param check_mode: write nothing
    :param sync: have it on disk before it takes the place of the old one
    :param mode: of the file; None for one that only its owner can read
    :raises NodenetError: it cannot be written; what was there stays
    """
    mode = _PRIVATE if mode is None else mode
    before = _digest_of(path)
    if before is not None and stat.S_IMODE(os.stat(path).st_mode) != mode:
        before = b""  # another one than any digest
    digest = _Digest()
    if check_mode:
        for piece in pieces:
            digest.add(piece.encode())
        return before != digest.value()
    temporary = ""
    try:
        # a name that no collector of *.prom would read
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=os.path.dirname(path) or ".")
        with open(handle, "wb") as stream:
            for piece in pieces:
                data = piece.encode()
                digest.add(data)
                stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            if sync:
                os.fsync(stream.fileno())
        os.replace(temporary, path)
        temporary = ""
    except OSError as error:
        raise NodenetError(f"Cannot write the report to {path}: {error.strerror}") from error
    finally:
        if temporary:
            os.unlink(temporary)
    return before != digest.value()


class _Digest:
    """A digest of a text without the lines that say when the audit was made."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._line: list[bytes] = []

    def add(self, data: bytes) -> None:
        """Go on with the next piece of the text."""
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._end(line + b"\n")
        if rest:
            self._line.append(rest)

    def _end(self, line: bytes) -> None:
        line = b"".join([*self._line, line])
        self._line = []
        if not line.startswith(_TIMES):
            self._digest.update(line)

    def value(self) -> bytes:
        """Return the digest; the text ends here."""
        if self._line:
            self._end(b"")
        return self._digest.digest()


def _digest_of(path: str) -> bytes | None:
    digest = _Digest()
    try:
        with open(path, "rb") as stream:
            while piece := stream.read(1 << 20):
                digest.add(piece)
    except OSError:  # not there, or no file
        return None
    return digest.value()
