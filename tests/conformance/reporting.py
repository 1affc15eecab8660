# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the conformance tests print at the end of a run, and when a missing Go plugin is a failure."""

from __future__ import annotations

import os

import pytest

LINES: list[str] = []

GO_PLUGIN = os.environ.get("NODENET_GO_HOST_LOCAL", "/usr/lib/cni/host-local")


def note(line: str) -> None:
    """Print one line after the last test."""
    LINES.append(line)


def require_go_plugin() -> str:
    """Return the path of the Go host-local; without it skip aloud, or fail where it is mandatory (``CI=true``)."""
    if os.access(GO_PLUGIN, os.X_OK):
        return GO_PLUGIN
    why = "not run: no Go host-local at %s (Debian package containernetworking-plugins)" % GO_PLUGIN
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    note(why)
    pytest.skip(why)
    return ""


def soak_factor() -> int:
    """How many times longer than in ``make test`` the random tests run: 20 with ``NODENET_SOAK=1``, else its value."""
    asked = int(os.environ.get("NODENET_SOAK") or 0)
    return 20 if asked == 1 else max(1, asked)
