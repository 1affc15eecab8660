# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods that come and go beside a run of the gc, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import calls

_GC = """
import json, sys
sys.path.insert(0, sys.argv[1])
from module_utils.node.reclaim_run import reclaim_addresses
print(json.dumps(reclaim_addresses(json.loads(sys.argv[2]), False).result))
"""
_PLUGINS = Path(__file__).resolve().parents[2] / "plugins"


def start_gc(node, **more: object) -> subprocess.Popen:
    options = node.options(**dict({"grace": 0.0}, **more))
    return subprocess.Popen(
        [sys.executable, "-c", _GC, str(_PLUGINS), json.dumps(options)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"),
    )


def result(run: subprocess.Popen) -> dict:
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0, err.decode()
    return json.loads(out)


def call(executable: str, node, command: str, container: str, address: str = "") -> str:
    """Call the plugin as a runtime does; return the address of an ADD."""
    arguments = {"CNI_ARGS": f"IP={address}"} if address else {}
    done = subprocess.run(
        [executable],
        input=calls.configuration(node.data_dir, {"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.50"})
        if not address
        else calls.configuration(node.data_dir, {"subnet": "192.0.2.0/24"}),
        stdout=subprocess.PIPE,
        env=calls.environment(command, container, **arguments),
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)["ips"][0]["address"].split("/")[0] if command == "ADD" else ""
