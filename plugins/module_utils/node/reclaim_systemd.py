# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd as `reclaim_timer` asks and tells it: files in place, timers stopped and started, all of it or none."""

from __future__ import annotations

import os
import subprocess

from ..cni.errors import NodenetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from .reclaim_timer import Place

PREFIX = "nodenet-reclaim-"
#: Where systemd runs the node, this is a directory.
RUNNING = "/run/systemd/system"
_TIMEOUT_S = 30


def is_name(path: str) -> bool:
    """Tell whether a unit of ours has such a name; directories with drop-ins begin like it."""
    name = os.path.basename(path)
    return name.startswith(PREFIX) and name.endswith((".service", ".timer"))


def systemctl_program() -> str:
    """Return the program, "" if systemd does not run the node."""
    program = find_program("systemctl")
    return program if os.path.isdir(RUNNING) else ""


def find_program(name: str) -> str:
    """Return the path of a program, "" if there is none."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if os.path.isabs(path) and os.access(path, os.X_OK):
            return path
    return ""


def call(*command: str) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, whatever its exit code. Errors: NodenetError when it takes too long, OSError."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NodenetError(f"Cannot use {' '.join(command)}: no answer within {_TIMEOUT_S} s") from None


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what a program that failed has to say, on one line."""
    return " ".join(done.stdout.decode("utf-8", "replace").split())[:200] or f"exit code {done.returncode}"


def is_active(systemctl: str, unit: str) -> bool:
    """Tell whether a timer waits for its time."""
    return call(systemctl, "is-active", "--quiet", unit).returncode == 0


def is_stale(systemctl: str, places: Sequence[Place]) -> bool:
    """Tell whether systemd has other text of a unit than its file."""
    units = sorted({os.path.basename(one.path) for one in places if one.before is not None and is_name(one.path)})
    asked = ("show", "-p", "NeedDaemonReload", *units)
    return bool(units) and b"NeedDaemonReload=yes" in _demand(systemctl, *asked).stdout


def left_behind(systemctl: str) -> list[str]:
    """Return timers that run though their files are gone: systemd was not told of that, as with apply=false."""
    asked = ("show", "-p", "Id", "-p", "ActiveState", "-p", "FragmentPath", f"{PREFIX}*.timer")
    found = []
    for block in _demand(systemctl, *asked).stdout.decode("utf-8", "replace").split("\n\n"):
        one = dict(line.partition("=")[::2] for line in block.splitlines())
        if one.get("ActiveState") == "active" and not os.path.exists(one.get("FragmentPath", "")):
            found.append(one["Id"])
    return sorted(found)


def carry_out(
    changed: Sequence[Place], systemctl: str, stopping: Sequence[str], starting: Sequence[str], reload: bool
) -> None:
    """Put files in place and tell systemd, if *systemctl* is not "".

    :raises NodenetError: something was refused; everything is as it was before, or the message says what is not
    """
    done: list[Place] = []
    back: list[tuple[str, str]] = []  # what brings each timer to where it was
    reloaded = False
    try:
        for unit in stopping:
            if is_active(systemctl, unit):
                back.append(("start", unit))
            _demand(systemctl, "stop", unit)
        for one in changed:
            done.append(one)
            one.put(one.after)
        if reload:
            _demand(systemctl, "daemon-reload")
            reloaded = True
        for unit in starting:
            back.append(("restart" if is_active(systemctl, unit) else "stop", unit))
            _demand(systemctl, "restart", unit)
    except BaseException as error:
        left = _take_back(done, systemctl, back, reloaded)
        if left and isinstance(error, Exception):
            raise NodenetError(f"{error}; this could not be undone: {', '.join(left)}") from None
        if isinstance(error, NodenetError):
            raise NodenetError(f"{error}; the units are as they were before") from None
        raise
    for folder in {os.path.dirname(one.path) for one in changed if one.after is None}:
        _remove_if_empty(folder)


def _take_back(done: Sequence[Place], systemctl: str, back: Sequence[tuple[str, str]], reloaded: bool) -> list[str]:
    """Have everything as it was before; return what could not be undone."""
    left = []
    for one in reversed(done):
        try:
            one.put(one.before)
        except OSError:
            left.append(one.path)
    if systemctl and done and not succeeds(systemctl, "daemon-reload") and reloaded:
        left.append("daemon-reload")
    return left + [f"{verb} {unit}" for verb, unit in reversed(back) if not succeeds(systemctl, verb, unit)]


def succeeds(*command: str) -> bool:
    """Run a program; tell whether that went well."""
    try:
        return call(*command).returncode == 0
    except (NodenetError, OSError):
        return False


def _remove_if_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:  # something is in it
        pass


def _demand(systemctl: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    done = call(systemctl, *arguments)
    if done.returncode:
        raise NodenetError(f"Cannot {' '.join(arguments)} with systemctl: {said(done)}")
    return done
