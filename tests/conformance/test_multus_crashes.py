# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The multus executable killed at, or failing in, every system call of ADD and DEL by which it does anything.

That is what touches its caches, a socket, a pipe of a delegate, a process or the result. Delegates go on when multus is
killed. Whatever the step: after the next DEL no address is held, no interface is left and no file of a cache, and the
pod can be attached again; an ADD that reported an error has left nothing attached. A sample of the steps in a usual
run, all of them with ``NODENET_SOAK``.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess

import pytest
import reporting
from multus_node import Node
from tracing import strace_command

KILL = "signal=KILL"
CALL = re.compile(r"^(\w+)\((.*)$")
PROCESS = ("clone3", "clone", "vfork", "fork", "wait4", "pipe2", "setns", "exit_group")
#: how often these are called depends on how fast the other side is
TIMED = ("poll", "wait4", "read", "recvfrom")
#: what changes something, here or elsewhere
CHANGING = ("mkdir", "write", "rename", "unlink", "clone3", "clone", "vfork", "sendto", "exit_group")
FAILING = ("mkdir", "openat", "write", "fsync", "rename", "unlink", "clone3", "clone", "vfork")
HELD = ["cid-eth0", "cid-net1", "cid-net2"]
SAMPLE = 6
PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture
def node(_collection_path, tmp_path):
    made = Node(tmp_path)
    yield made
    made.close()


@pytest.fixture
def orphans():
    """Wait for delegates that have lost multus: they become children of this process."""
    libc = ctypes.CDLL(None, use_errno=True)

    def adopt(flag: int) -> None:
        assert libc.prctl(PR_SET_CHILD_SUBREAPER, flag, 0, 0, 0) == 0

    def wait() -> None:
        try:
            while True:
                os.waitpid(-1, 0)
        except ChildProcessError:
            return

    adopt(1)
    yield wait
    wait()
    adopt(0)


class Step:
    """The *number*-th system call *name* of multus; ``text`` shows it."""

    def __init__(self, name: str, number: int, text: str) -> None:
        self.name = name
        self.number = number
        self.text = text

    def __str__(self) -> str:
        return "%s #%d (%s)" % (self.name, self.number, self.text[:100])

    @property
    def changes(self) -> bool:
        return self.name in CHANGING or (self.name == "openat" and "O_CREAT" in self.text)


def run(multus, node, command, log, step=None, fault=""):
    """Call the executable, with the fault at the step; return exit status and the document that it printed."""
    argv = strace_command(log, "all")
    argv.remove("-f")  # the delegates are left alone
    argv.insert(1, "-y")
    if step is not None:
        argv += ["-e", "inject=%s:%s:when=%d" % (step.name, fault, step.number)]
    done = subprocess.run(
        [*argv, multus],
        env=node.environment(command),
        input=json.dumps(node.config).encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def steps_of(node, log):
    """Return the steps of a recorded call: what it does after it has read its configuration."""
    counts: dict = {}
    found: list = []
    started = False
    for line in log.read_text(errors="replace").splitlines():
        matched = CALL.match(line)
        if not matched:
            continue
        name, arguments = matched.groups()
        counts[name] = counts.get(name, 0) + 1
        # its sources may lie below the same directory
        ours = str(node.root) in arguments and not arguments.startswith("0<")
        started = started or (name == "read" and arguments.startswith("0<"))
        if started and (ours or "<socket:" in arguments or "<pipe:" in arguments or name in PROCESS):
            found.append(Step(name, counts[name], arguments))
    return found


def chosen(steps, kind):
    """Return the pairs of step and fault to try, and how many there are: all of them in a long run."""
    if kind == "kill":
        pairs = [(step, KILL) for step in steps]
    else:
        failing = [step for step in steps if step.name in FAILING and "O_RDONLY" not in step.text]
        errors = {step: ["EAGAIN"] if step.name in PROCESS else ["ENOSPC", "EIO"] for step in failing}
        pairs = [(step, "error=" + one) for step in failing for one in errors[step]]
    if reporting.soak_factor() > 1:
        return pairs, len(pairs)
    changing = [pair for pair in pairs if pair[0].changes]
    rest = [pair for pair in pairs if not pair[0].changes]
    return changing[::5] + rest[:: max(1, len(rest) // SAMPLE)], len(pairs)


def fired(log, step, fault) -> bool:
    """Tell whether the fault came; what depends on the time may come less often than when it was recorded."""
    lines = log.read_text(errors="replace").splitlines()
    came = lines[-1].endswith("+++ killed by SIGKILL +++") if fault == KILL else any("(INJECTED)" in x for x in lines)
    assert came or step.name in TIMED, "the fault never came: %s" % step
    return came


def judge(node, command, step, fault, outcome, number, orphans):
    """Assert what must hold after the fault, and that the next calls put everything right."""
    rc, document = outcome
    if fault == KILL:
        assert rc in (-signal.SIGKILL, 0), outcome
    elif rc == 0:
        assert node.left()[0] == (HELD if command == "ADD" else []), "it said that all is well"
    else:
        assert rc == 1, outcome
        if not step.text.startswith("1<"):  # the result itself
            assert document, outcome
            assert document["msg"], outcome
            assert "internal error" not in document["msg"], outcome
        if command == "ADD":
            assert node.left()[:2] == ([], []), "an ADD that failed has left something"
    node.make_old()
    kept = node.config["kubeconfig"]
    node.config["kubeconfig"] = kept if number % 2 else ""  # with the API, and without it
    rc, document, stderr = node.call("DEL")
    assert (rc, document) == (0, None), (document, stderr)
    node.config["kubeconfig"] = kept
    orphans()
    assert node.left() == ([], [], [])


@pytest.mark.parametrize("kind", ["kill", "error"])
@pytest.mark.parametrize("command", ["ADD", "DEL"])
def test_a_fault_at_any_step(multus, node, orphans, tmp_path, command, kind):
    log = tmp_path / "log"
    if command == "DEL":
        assert node.call("ADD")[0] == 0
    assert run(multus, node, command, log)[0] == 0
    steps = steps_of(node, log)
    assert len(steps) > 60
    assert {"clone3", "clone", "vfork"} & {one.name for one in steps}
    assert node.call("DEL")[0] == 0
    pairs, total = chosen(steps, kind)
    failures = []
    came = 0
    for number, (step, fault) in enumerate(pairs):
        shutil.rmtree(node.root / "cni", ignore_errors=True)  # every call begins as the recorded one did
        if command == "DEL":
            assert node.call("ADD")[0] == 0
        outcome = run(multus, node, command, log, step, fault)
        # a DEL comes when nobody is left, or at once: then it has to wait itself for what an ADD has left running
        if command == "DEL" or fault != KILL or number % 4 < 2:
            orphans()
        came += fired(log, step, fault)
        try:
            judge(node, command, step, fault, outcome, number, orphans)
        except AssertionError as error:
            failures.append("%s at %s: %s\n    %r" % (fault, step, str(error).splitlines()[0], outcome))
            node.call("DEL")
            if node.left() != ([], [], []):
                break
    assert node.call("ADD")[0] == 0, "the pod cannot be attached any more"
    assert node.left()[0] == HELD
    assert node.call("DEL")[0] == 0
    reporting.note("%s in %s of multus: %d of %d, %d came" % (kind, command, len(pairs), total, came))
    assert came > 0.8 * len(pairs)
    assert not failures, "%d of %d\n%s" % (len(failures), len(pairs), "\n".join(failures))
