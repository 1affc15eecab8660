# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One call of the executable that is killed at, or fails in, a system call of our choice.

A first run is recorded; its steps are the system calls that touch the data directory, and the printing of the result.
A later run from the same beginning is then hit at one of them. A kill comes before the system call is carried out.
"""

from __future__ import annotations

import re
import signal
import subprocess

from plugin_drivers import Outcome, text
from tracing import strace_command

KILL = "signal=KILL"
_CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
_PLACE = re.compile(r'<([^<>]*)>|"([^"]*)"')


class Step:
    """The *number*-th system call *name* of a process; ``what`` tells which files it is about."""

    def __init__(self, name: str, number: int, what: tuple[str, ...]) -> None:
        self.name = name
        self.number = number
        self.what = what

    def __str__(self) -> str:
        return "%s(%s)" % (self.name, ", ".join(self.what))

    def injection(self, fault: str) -> str:
        """Return what strace is to inject; a fault with ``+`` at its end hits every later call of the same name too."""
        return "%s:%s:when=%d%s" % (self.name, fault.rstrip("+"), self.number, "+" if fault.endswith("+") else "")


def read_steps(log: object, place: object) -> list[Step]:
    """Return the steps of a recorded run: what touches the directory *place*, and the printing of the result."""
    counts: dict[str, int] = {}
    found = []
    with open(str(log), encoding="utf-8", errors="replace") as lines:
        for line in lines:
            matched = _CALL.match(line)
            if not matched:
                continue
            name, arguments = matched.groups()
            counts[name] = counts.get(name, 0) + 1
            if touches(name, arguments, place):
                found.append(Step(name, counts[name], _about(name, arguments, place)))
    return found


def touches(name: str, arguments: str, place: object) -> bool:
    if name in ("execve", "exit_group") or arguments.startswith(("0<", "2<")):
        return False
    return (name == "write" and arguments.startswith("1<")) or str(place) in arguments


def _about(name: str, arguments: str, place: object) -> tuple[str, ...]:
    """Return the files of a call, so that it can be known again in another run below another directory."""
    arguments = arguments.partition(" <unfinished")[0].partition(") = ")[0]
    pairs = _PLACE.findall(arguments)
    of_data = name in ("read", "pread64", "write", "pwrite64")
    names = [path if of_data else path or string for path, string in pairs]
    if name == "write" and arguments.startswith("1<"):
        return ("the result",)
    names = [re.sub(r"(#|~)\d+", r"\1", one.replace(str(place), "@")) for one in names]
    return tuple(one for one in names if one and not one.startswith("/"))


def run(executable: str, env: dict, config: bytes, log: object, *injections: str) -> Outcome:
    """Run one call under strace; the exit code is negative for a signal."""
    argv = strace_command(log, "all")
    argv.insert(1, "-y")
    for one in injections:
        argv += ["-e", "inject=" + one]
    process = subprocess.Popen(
        [*argv, executable], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        stdout, stderr = process.communicate(config, 30)
    finally:
        process.kill()
    return Outcome(process.returncode, text(stdout), text(stderr))


def assert_fired(step: Step, fault: str, log: object, place: object, outcome: Outcome) -> None:
    """Assert that the fault hit the very call that was meant."""
    with open(str(log), encoding="utf-8", errors="replace") as stream:
        lines = stream.read().splitlines()
    if fault == KILL:
        assert outcome.rc == -signal.SIGKILL, (str(step), outcome)
        assert lines[-1].endswith("+++ killed by SIGKILL +++"), lines[-2:]
        hit = lines[-2]
    else:
        hits = [line for line in lines if line.endswith("(INJECTED)")]
        hits = [line for line in hits if _CALL.match(line) and _CALL.match(line).group(1) == step.name] or hits
        assert hits, "the fault was never injected: %s" % step
        hit = hits[0 if fault.endswith("+") else -1]
    name, arguments = _CALL.match(hit).groups()
    assert touches(name, arguments, place), "hit something else: " + hit
    assert (name, _about(name, arguments, place)) == (step.name, step.what), "hit another step than %s: %s" % (
        step,
        hit,
    )
