# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every recorded call of the Go host-local, against ours: equal, or equal to the decided outcome.

Against the library in this process, and against the executable. ``NODENET_HOST_LOCAL="COMMAND"`` replays the vectors
through that command in place of the executable made here.
"""

from __future__ import annotations

import os
import shlex

import pytest
import reporting
import vectors
from plugin_drivers import CommandDriver

VECTORS = 131
STEPS = 714

# What each decided difference covers: a vector, or exactly these steps of it. The numbers are those of
# docs/compatibility.md; differences without a vector are tested in test_decided_behaviour.py.
DIFFERENCES = {
    "H2": {"alloc-last-reserved-is-dir": None},
    "H3": {"alloc-rollback-wipes-previous": (1, 2)},
    "H4": {
        "config-bad-config-blocks-del": (1, 2, 4),
        "req-cniargs-break-del": (1, 3),
        "req-bad-values": (4,),
        "config-empty-range-set": (2,),
        "config-no-ranges": (2,),
        "config-old-version-two-sets": (4,),
        "config-overlap-between-sets": (4,),
        "config-routes-bad": (12,),
    },
    "H5": {
        "disk-foreign-files": None,
        "disk-subdirectories": None,
        "disk-lock-kept": None,
        "disk-dir-named-like-ip": (1,),
    },
    "H7": {"proto-netns-same-add": None, "proto-netns-override": (4, 5, 6)},
    "H8": {"req-bad-values": None, "config-routes-null-entry": None},
    "H9": {"config-start-is-broadcast": None},
    "H10": {"alloc-v6-v4compat-bug": None},
    "H11": {"disk-symlinked-network-dir": None},
    "H14": {"gc-is-noop": None, "proto-gc-versions": (3,), "proto-gc-status-skip-validation": (0, 2)},
    "H15": {"status-is-noop": None},
    "H17": {"req-two-in-one-set": None},
    "H20": {"proto-json-deep-nesting": None},
}

OUTCOME_KEYS = {"rc", "stdout", "stderr", "tree_after", "modes_after"}

decided = vectors.load_decided()
counted = {"steps": 0, "vectors": 0, "decided": 0}


def entries_of(h: str, vector: str) -> set[int]:
    """Return the steps that differ for this reason itself, without those that differ as a consequence."""
    return {
        int(key.split("#")[1])
        for key, entry in decided.items()
        if entry["h"] == h and key.split("#")[0] == vector and "follows" not in entry
    }


def run_vector(driver, name: str) -> tuple[int, int, list[str]]:
    vector = vectors.load(name)
    outcomes = vectors.replay(driver, vector)
    wrong = []
    own = 0
    for number, (step, got) in enumerate(zip(vector["steps"], outcomes)):
        entry = decided.get("%s#%d" % (name, number))
        own += entry is not None
        command = step["env"].get("CNI_COMMAND", "-")
        wrong += ["step %d (%s): %s" % (number, command, line) for line in vectors.judge(step, entry, got)]
    assert len(outcomes) == len(vector["steps"])
    return len(outcomes), own, wrong


@pytest.mark.parametrize("name", vectors.names())
def test_vector(library, name):
    steps, own, wrong = run_vector(library, name)
    counted["steps"] += steps
    counted["vectors"] += 1
    counted["decided"] += own
    assert not wrong, "\n".join(wrong)


def test_all_steps_ran(request):
    """The run above was complete: nothing was left out by an empty folder, a filter or a lost step."""
    files = vectors.names()
    assert len(files) == VECTORS
    assert sum(len(vectors.load(name)["steps"]) for name in files) == STEPS
    if counted["vectors"] != VECTORS:
        chosen = [item for item in request.session.items if item.originalname == "test_vector"]
        assert counted["vectors"] == len(chosen) < VECTORS, "vectors were lost on the way"
        pytest.skip("not run: only %d of %d vectors were selected" % (len(chosen), VECTORS))
    assert counted == {"steps": STEPS, "vectors": VECTORS, "decided": len(decided)}
    reporting.note(
        "host-local vectors: %d steps of %d vectors ran, %d with a decided outcome" % (STEPS, VECTORS, len(decided))
    )


@pytest.mark.parametrize("name", vectors.names())
def test_vector_through_the_executable(name, executable):
    command = shlex.split(os.environ.get("NODENET_HOST_LOCAL") or shlex.quote(executable))
    steps, _own, wrong = run_vector(CommandDriver(command), name)
    assert steps == len(vectors.load(name)["steps"])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("key", sorted(decided))
def test_decided_entry_is_complete_and_needed(key):
    name, number = key.split("#")
    entry = decided[key]
    step = vectors.load(name)["steps"][int(number)]
    for outcome in entry.get("alternatives", [entry]):
        assert set(outcome) >= OUTCOME_KEYS
        assert set(outcome["modes_after"]) == {k for k, v in outcome["tree_after"].items() if not is_link(v)}
    assert entry["h"] in DIFFERENCES
    assert name in DIFFERENCES[entry["h"]] or "follows" in entry
    if step["stdout_policy"] != "panic":
        recorded = [dict(outcome, stdout_policy="exact") for outcome in step.get("alternatives", [step])]
        same = [
            not vectors.differences(outcome, dict(entry, stderr=vectors.normal_stderr(entry["stderr"])))
            for outcome in recorded
        ]
        assert not all(same), "the entry says what was recorded anyway: remove it"
    if "follows" in entry:
        cause = decided[entry["follows"]]
        assert cause["h"] == entry["h"]
        assert entry["follows"].split("#")[0] == name
        assert int(entry["follows"].split("#")[1]) < int(number)
        for what in ("rc", "stdout", "stderr"):
            assert entry[what] == step[what] or entry.get("upstream_too") or name == "disk-subdirectories", (
                "a consequence may differ in what is on disk only"
            )


def is_link(value) -> bool:
    return isinstance(value, dict) and "symlink" in value


@pytest.mark.parametrize("h", sorted(DIFFERENCES, key=lambda h: int(h[1:])))
def test_every_difference_has_its_entries(h):
    for vector, steps in DIFFERENCES[h].items():
        found = entries_of(h, vector)
        assert found, "%s has no entry for %s" % (h, vector)
        if steps is not None:
            assert found == set(steps), vector


def test_every_panic_has_a_decided_outcome():
    """Where upstream crashed any failure would pass: such steps need an outcome of ours."""
    for name in vectors.names():
        for number, step in enumerate(vectors.load(name)["steps"]):
            if step["stdout_policy"] == "panic":
                assert "%s#%d" % (name, number) in decided
