# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Watching and breaking system calls with strace."""

from __future__ import annotations

import os
import shutil

import pytest
import reporting


def strace_command(log: object, syscalls: str, inject: str = "") -> list[str]:
    """Return the beginning of a command line that logs these system calls, and makes some of them fail.

    Without strace the test is skipped aloud; where ``CI=true`` it fails.
    """
    if not shutil.which("strace"):
        why = "not run: no strace on this machine"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        reporting.note(why)
        pytest.skip(why)
    argv = ["strace", "-f", "-qq", "-o", str(log), "-e", "trace=" + syscalls]
    return [*argv, "-e", "inject=" + inject] if inject else argv
