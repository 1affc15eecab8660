# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose processes run: what the shims of containerd and conmon were started for, and whose control groups have members.

It sees containers of a runtime whose directories nobody named. It proves life only: a sandbox without a process may
still own its addresses.
"""

from __future__ import annotations

import os
import re

from .liveness import Source

_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_SHIM = "containerd-shim"


def read(proc: str = "/proc") -> Source:
    """Return the containers that have processes."""
    source = Source("processes", proc, authoritative=False)
    try:
        pids = [one for one in os.listdir(proc) if one.isdigit()]
        if "1" not in pids:
            source.failed = f"{proc} does not show the processes of others"  # its option hidepid
        for pid in pids:
            try:
                source.tails.update(_ID.findall(_text(f"{proc}/{pid}/cgroup")))
                arguments = _text(f"{proc}/{pid}/cmdline").split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
            program = os.path.basename(arguments[0])
            if program.startswith(_SHIM):
                _add_shim(source, arguments)
            elif program == "conmon":
                source.tails.update(_ID.findall("\0".join(arguments)))
    except OSError as error:
        source.failed = f"{error.filename or proc} cannot be read ({(error.strerror or str(error)).lower()})"
    return source


def _add_shim(source: Source, arguments: list[str]) -> None:
    named = dict(zip(arguments, arguments[1:]))
    namespace, container_id = named.get("-namespace", ""), named.get("-id", "")
    if container_id:
        source.add(container_id)
        if namespace:
            source.add(f"{namespace}-{container_id}")


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()
