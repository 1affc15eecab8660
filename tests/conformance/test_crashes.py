# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The executable killed at, or failing in, every system call of ADD and DEL that touches the data directory.

Whatever the step: no address is held by two, no address file is empty, nothing that was acknowledged is lost, a call
that reported an error has left nothing behind, and the next calls, ours and Go's, just work. A sample of the steps in a
usual run, all of them with ``NODENET_SOAK``.
"""

from __future__ import annotations

import os

import faults
import pytest
import reporting
from crash_scenarios import SCENARIOS, environment, judge, steps_of
from plugin_drivers import CommandDriver

ERRORS = [faults.KILL, "error=ENOSPC", "error=EIO"]
# what changes the directory is hit in every run, of the rest a sample
CHANGING = ("mkdir", "write", "fsync", "linkat", "unlinkat", "renameat", "renameat2", "ftruncate")
SAMPLE = 8


def chosen(steps):
    """Return the pairs of step and fault to try, and how many there are: all of them in a long run."""
    pairs = [(step, fault) for step in steps for fault in ERRORS]
    # a file system that is full or broken stays so; writes are left out, as the answer is one too
    pairs += [(step, "error=EIO+") for step in steps if step.name in CHANGING and step.name != "write"]
    if reporting.soak_factor() > 1:
        return pairs, len(pairs)
    changing = [(step, fault) for step, fault in pairs if step.name in CHANGING]
    rest = [pair for pair in pairs if pair not in changing]
    # strides that are no multiples of three meet every kind of fault
    return changing[::2] + rest[:: max(1, len(rest) // SAMPLE)], len(pairs)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name.replace(" ", "-"))
def test_a_fault_at_any_step(tmp_path, executable, library, scenario):
    steps, always = steps_of(scenario, executable, library, tmp_path)
    assert len(steps) > 10
    go = CommandDriver([reporting.GO_PLUGIN], "go") if os.access(reporting.GO_PLUGIN, os.X_OK) else library
    failures = []
    pairs, total = chosen(steps)
    for number, (step, fault) in enumerate(pairs):
        base = tmp_path / ("run%d" % number)
        scenario.prepare(base, library)
        log = tmp_path / "log"
        env = environment(scenario.command, "victim")
        outcome = faults.run(executable, env, scenario.config, log, *always, step.injection(fault))
        faults.assert_fired(step, fault, log, base, outcome)
        try:
            judge(scenario, step, outcome, [library, go][number % 2])
        except AssertionError as error:
            failures.append(
                "%s at %s #%d: %s\n    %r" % (fault, step, step.number, str(error).splitlines()[0], outcome)
            )
    reporting.note("faults in %s: %d of %d, each fired" % (scenario.name, len(pairs), total))
    assert not failures, "%d of %d\n%s" % (len(failures), len(pairs), "\n".join(failures))


@pytest.mark.parametrize("command", ["ADD", "DEL"])
def test_an_address_file_that_cannot_be_looked_at_fails_no_call(tmp_path, executable, library, command):
    """An old index has every file looked at; a broken one among them is dealt with like without an index."""
    scenario = next(one for one in SCENARIOS if one.name == command + " by an old index")
    scenario.prepare(tmp_path / "recorded", library)
    log, env = tmp_path / "log", environment(command, "victim")
    assert faults.run(executable, env, scenario.config, log).rc == 0
    steps = faults.read_steps(log, tmp_path / "recorded")
    looks = [step for step in steps if "stat" in step.name and step.what[-1].startswith("10.9.")]
    assert len(looks) > 600
    for name in ("10.9.0.2", "10.9.1.244", "10.9.2.100"):
        step = next(one for one in looks if one.what[-1] == name)
        base = tmp_path / name
        scenario.prepare(base, library)
        outcome = faults.run(executable, env, scenario.config, log, step.injection("error=EIO"))
        faults.assert_fired(step, "error=EIO", log, base, outcome)
        assert outcome.rc == 0, outcome
        judge(scenario, step, outcome, library)
