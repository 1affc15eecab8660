# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a call of the multus executable loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys

#: what calls may load of Python that need no TLS
NO_API = {"__future__", "_ctypes", "_json", "_signal", "_socket", "_stat", "_struct", "binascii", "errno", "posix"}
NO_API |= {"fcntl", "gc", "select", "time"}


def loaded(multus, environ, config):
    """Return what a call loads besides what the interpreter starts with: (others' modules, ours by their last name)."""
    interpreter = [os.path.realpath(sys.executable), "-IBS", "-X", "importtime"]
    with open(multus, encoding="utf-8") as stream:
        starter = stream.readline()[len("#!") :].split()[0]
    bare = subprocess.run([*interpreter, "-c", "pass"], stderr=subprocess.PIPE, check=True).stderr
    call = subprocess.run(
        [*interpreter, starter],
        env=environ,
        input=json.dumps(config).encode(),
        capture_output=True,
        check=True,
    ).stderr
    lines = [
        {line.rpartition(b"|")[2].strip().decode() for line in text.splitlines() if line.startswith(b"import time:")}
        for text in (bare, call)
    ]
    names = lines[1] - lines[0]
    foreign = {name for name in names if not name.startswith("nodenet_cni")}
    return foreign, {name.rpartition(".")[2] for name in names - foreign}
