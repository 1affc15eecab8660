# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every pytest run of the collection obeys: nothing is skipped in silence, and fixed random data.

A test may only be skipped with a reason that starts with "not run: ". Where CI=true, what speaks of the Go plugins must
run. The runs of bare interpreters load this file too, so it needs nothing but pytest.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time

import pytest

ALLOWED = "not run: "
MANDATORY_IN_CI = re.compile(r"\bGo\b|containernetworking|/cni/")

try:
    from hypothesis import HealthCheck, settings
except ImportError:
    pass
else:
    # the same examples each time: a red run is about the change, not about luck; make soak draws new ones
    settings.register_profile(
        "fixed",
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.register_profile(
        "soak",
        deadline=None,
        max_examples=1000,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("soak" if os.environ.get("NODENET_SOAK") else "fixed")


class Tally:
    """Counts outcomes, judges the reasons of skips, and leaves the totals for the summary of the entry point."""

    def __init__(self):
        self.started = time.time()
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.skips = {}
        self.failed = False

    def count(self, report):
        if report.outcome == "failed":
            self.counts["failed"] += 1
        elif report.outcome == "skipped":
            self.counts["skipped"] += 1
            self.judge(report)
        elif report.when == "call":
            self.counts["passed"] += 1

    def judge(self, report):
        reason = getattr(report, "wasxfail", None)
        if reason is None:
            text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            reason = text[len("Skipped: ") :] if text.startswith("Skipped: ") else text
        self.skips.setdefault(reason, []).append(report.nodeid)

    def unexpected(self):
        """The skips that turn the run red, as (reason, test ids)."""
        in_ci = os.environ.get("CI") == "true"
        return [
            (reason, nodeids)
            for reason, nodeids in sorted(self.skips.items())
            if not reason.startswith(ALLOWED) or (in_ci and MANDATORY_IN_CI.search(reason))
        ]

    def write(self, path):
        row = {"python": "%d.%d" % sys.version_info[:2], "seconds": round(time.time() - self.started, 1)}
        row.update(self.counts)
        row["not_run"] = {reason: len(nodeids) for reason, nodeids in sorted(self.skips.items())}
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.stash[TALLY] = Tally()


def pytest_runtest_logreport(report):
    if CURRENT:
        CURRENT[0].count(report)


def pytest_collectreport(report):
    if CURRENT and report.outcome == "skipped":
        CURRENT[0].count(report)


def pytest_sessionstart(session):
    CURRENT[:] = [session.config.stash[TALLY]] if TALLY in session.config.stash else []


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    if not CURRENT:
        return
    if exitstatus == 0 and CURRENT[0].unexpected():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    path = os.environ.get("NODENET_TALLY")
    if path:
        CURRENT[0].write(path)


def pytest_terminal_summary(terminalreporter):
    if not CURRENT or not CURRENT[0].unexpected():
        return
    terminalreporter.section("skips that count as failures", red=True)
    for reason, nodeids in CURRENT[0].unexpected():
        terminalreporter.line("%d x %s" % (len(nodeids), reason))
        for nodeid in nodeids[:5]:
            terminalreporter.line("    %s" % nodeid)
    terminalreporter.line(
        "a reason must start with %r and, in CI, nothing that needs the Go plugins may be left out" % ALLOWED
    )


TALLY = pytest.StashKey()
CURRENT = []
