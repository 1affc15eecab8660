# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings of the family BIN: plugin executables. See `findings`."""

from __future__ import annotations

from .findings import CARRIES_ON, FAILS, UNAFFECTED

# kind: (code, severity, go, text, hint)
# fmt: off
CODES = {
    "bin-noexec": (
        "BIN001", "error", FAILS,
        "{mount} is mounted with noexec, so no plugin below it can run",
        "remount it with exec, or put the plugins into a directory on another file system",
    ),
    "bin-silent": (
        "BIN002", "warning", FAILS,
        "does not answer VERSION: {reason}",
        "run it by hand with CNI_COMMAND=VERSION; a plugin that cannot say its versions cannot be used by a runtime",
    ),
    "bin-wrong-architecture": (
        "BIN003", "error", FAILS,
        "is built for {found}, this node runs {wanted}",
        "install the build for {wanted}",
    ),
    "bin-truncated": (
        "BIN004", "error", FAILS,
        "is incomplete: {reason}",
        "a former copy broke off; install it again",
    ),
    "bin-not-executable": (
        "BIN005", "error", FAILS,
        "cannot be executed: {reason}",
        "give it mode 0755, or install it again",
    ),
    "bin-changed-since": (
        "BIN006", "warning", UNAFFECTED,
        "was changed by somebody else since it was installed from {source}, so it stays",
        "name it in include to remove it all the same (roles: plugin_binaries_include)",
    ),
    "bin-drift": (
        "BIN007", "warning", UNAFFECTED,
        "had been {what} by somebody else since it was installed from {source}",
        "find out who writes to the directory: two that install the same plugin undo each other's work",
    ),
    "bin-label": (
        "BIN008", "warning", FAILS,
        "has the SELinux type {label}, its directory has {directory}: it was moved there from somewhere else",
        "run restorecon on it, or a confined runtime may not execute it",
    ),
    "bin-embedded-python": (
        "BIN009", "error", FAILS,
        "is made to run with {python}, which does not: {reason}",
        "run plugin_binaries again with the Python that the node has now",
    ),
    "bin-embedded-code": (
        "BIN010", "error", FAILS,
        "its code is not in {code}, where it looks for it",
        "run plugin_binaries again; something removed the directory, or moved the bin directory",
    ),
    "bin-embedded-stale": (
        "BIN011", "warning", CARRIES_ON,
        "its byte code is damaged or not of {python}, which is {version} now, so each call compiles the code anew",
        "run plugin_binaries again; until then calls take several times as long",
    ),
    "bin-dir-unreadable": (
        "BIN012", "error", FAILS,
        "the directory cannot be read: {reason}",
        "make it a directory with mode 0755, or run the task as root",
    ),
}
# fmt: on
