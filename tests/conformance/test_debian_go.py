# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The replay itself, proved on Debian's Go plugin: it passes what is the same and sees every difference.

A comparison that cannot fail would pass anything of ours. Debian's plugin is older than the recorded one in known
ways, and it has every behaviour that we decided against.
"""

from __future__ import annotations

import debian_go
import pytest
import reporting
import vectors
from plugin_drivers import CommandDriver

# Vectors with steps in which 1.1.1 really differs from the recorded release.
OLDER = {
    "config-routes-all-fields": "new route fields",
    "config-routes-bad": "new route fields",
    "config-routes-big-numbers": "new route fields",
    "gc-is-noop": "spec 1.1.0",
    "lifecycle-1.1.0": "spec 1.1.0",
    "proto-bad-network-names": "short escapes of control characters",
    "proto-check-versions": "spec 1.1.0",
    "proto-cniversion-wrong-type": "spec 1.1.0",
    "proto-gc-status-skip-validation": "spec 1.1.0",
    "proto-gc-versions": "spec 1.1.0",
    "proto-json-escaping-in-output": "short escapes of control characters",
    "proto-missing-env": "validation order",
    "proto-netns-override": "no netns test",
    "proto-netns-same-add": "no netns test",
    "proto-no-command": "spec 1.1.0",
    "proto-unknown-command": "validation order",
    "proto-validation-order": "validation order",
    "proto-version": "spec 1.1.0",
    "proto-version-unsupported-add": "spec 1.1.0",
    "proto-version-unsupported-del": "spec 1.1.0",
    "status-is-noop": "spec 1.1.0",
}


@pytest.fixture(scope="module")
def go():
    return CommandDriver([reporting.require_go_plugin()], "go")


def tolerant_judge(step, entry, got):
    wanted = [debian_go.tolerant(outcome) for outcome in vectors.accepted(step, entry)]
    return min((vectors.differences(one, debian_go.tolerant(got)) for one in wanted), key=len)


@pytest.mark.parametrize("name", vectors.names())
def test_go_replays_as_recorded(go, name):
    vector = vectors.load(name)
    outcomes = vectors.replay(go, vector)
    wrong = [line for step, got in zip(vector["steps"], outcomes) for line in tolerant_judge(step, None, got)]
    assert bool(wrong) == (name in OLDER), "\n".join(wrong)


def test_go_fails_every_decided_outcome(go):
    decided = vectors.load_decided()
    seen = 0
    for name in sorted({key.split("#")[0] for key in decided}):
        vector = vectors.load(name)
        for number, (step, got) in enumerate(zip(vector["steps"], vectors.replay(go, vector))):
            entry = decided.get("%s#%d" % (name, number))
            if entry is None or entry.get("upstream_too") or "alternatives" in step:
                continue
            seen += 1
            assert tolerant_judge(step, entry, got), "%s#%d passes for Go: the comparison is blind" % (name, number)
    assert seen > 50
