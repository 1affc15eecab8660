# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writing the report files of an audit, each whole or not at all."""

from __future__ import annotations

import io
import itertools
import os
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
#: Lines that tell when the audit was made: they alone are no change.
_TIMES = ('<p class="soft">Taken ', "<title>", "nodenet_cni_audit_timestamp_seconds ")


def write_files(document: Json, paths: t.Sequence[tuple[str, str]], check_mode: bool = False) -> bool:
    """Write the report files; tell whether more than their time changes.

    :param document: what fleet_audit returns, with ``reports``
    :param paths: the files to write, each as its kind, one of KINDS, and its path
    :param check_mode: write nothing
    :raises NodenetError: a file cannot be written; those before it in *paths* are
    """
    if not paths:
        return False
    audit = Audit(document)
    changed = False
    for kind, path in paths:
        text = KINDS[kind][1](audit)
        changed = _write(path, [text] if isinstance(text, str) else text, check_mode) or changed
    return changed


def paths_in(directory: str, formats: t.Iterable[str]) -> list[tuple[str, str]]:
    """Return for `write_files` the files that *formats*, of FORMATS, are in a directory of reports."""
    kinds = dict.fromkeys(kind for one in formats for kind in FORMATS[one])
    return [(kind, os.path.join(directory, KINDS[kind][0])) for kind in kinds]


def _write(path: str, pieces: t.Iterable[str], check_mode: bool) -> bool:
    """Write a file beside *path* and move it there; its name is none that a collector of ``*.prom`` would read."""
    temporary = ""
    try:
        if check_mode:
            return _differs(path, io.StringIO("".join(pieces), newline="\n"))
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=os.path.dirname(path) or ".")
        with open(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fchmod(stream.fileno(), 0o644)
            os.fsync(stream.fileno())
        with open(temporary, encoding="utf-8", newline="\n") as stream:
            changed = _differs(path, stream)
        os.replace(temporary, path)
        temporary = ""
    except OSError as error:
        raise NodenetError(f"Cannot write the report to {path}: {error.strerror}") from error
    finally:
        if temporary:
            os.unlink(temporary)
    return changed


def _differs(path: str, lines: t.Iterable[str]) -> bool:
    try:
        with open(path, encoding="utf-8", newline="\n") as stream:
            pairs = itertools.zip_longest(stream, lines, fillvalue="")
            return any(a != b and not (a.startswith(_TIMES) and b.startswith(_TIMES)) for a, b in pairs)
    except (OSError, ValueError):  # not there, or no text
        return True
