# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the steps of a target and say at the end what ran, what failed and what could not run.

Steps run one after another; the longest that disturbs no other runs beside those that follow it.

Usage: python3 tests/tools/run.py TARGET [ARGUMENT...]; the arguments go to the one tool of a single-step target.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback

import steps
import venvs

# targets of several steps; any other step is a target of its own
TARGETS = {
    "lint": ["ruff", "format", "mypy", "yamllint", "ansible-lint", "changelog", "docs-lint", "importer"],
    "check": ["ruff", "format", "mypy", "yamllint", "ansible-lint", "changelog", "docs-lint", "import-lines", "unit"],
    "test": [
        "system",
        "ruff",
        "format",
        "mypy",
        "yamllint",
        "ansible-lint",
        "changelog",
        "docs-lint",
        "importer",
        "docs",
        "import-lines",
        "sanity",
        "integration",
        "molecule",
        "demo",
        "library",
        "units-newest",
        "mutants",
        "clients",
        "browser",
        "fleet",
        "coverage",
    ],
}
# what runs beside the steps that follow it
BESIDE = ("integration",)
OUTCOMES = "NODENET_OUTCOMES"


class Beside:
    """A step in a process of its own, beside others; its output is shown when it has ended."""

    def __init__(self, name: str) -> None:
        print("\n--- %s: begun, its output comes at the end" % name, flush=True)
        where = os.path.join(venvs.ROOT, "build", "%s-%d" % (name, os.getpid()))
        self._name, self._output, self._outcomes = name, where + ".log", where + ".json"
        with open(self._output, "wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), name],
                env=dict(os.environ, **{OUTCOMES: self._outcomes}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def rows(self) -> list[tuple[str, str, str, float]]:
        """Wait for the end, show the output, return the outcomes."""
        self._process.wait()
        with open(self._output, encoding="utf-8", errors="replace") as output:
            print(output.read(), flush=True)
        try:
            with open(self._outcomes, encoding="utf-8") as stream:
                return [tuple(row) for row in json.load(stream)]
        except (OSError, ValueError):
            return [(self._name, "FAILED", "it ended with code %d before its summary" % self._process.returncode, 0.0)]

    def close(self) -> None:
        """End it if it still runs."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            self._process.wait()
        for path in (self._output, self._outcomes):
            if os.path.exists(path):
                os.unlink(path)


class Summary:
    """Outcomes of rows: (name, "ok" | "FAILED" | "not run", detail, seconds)."""

    def __init__(self) -> None:
        self.started = time.time()
        self.rows: list[tuple[str, str, str, float]] = []

    def run(self, name: str, action) -> None:
        print("\n--- %s" % name, flush=True)
        started = time.time()
        outcome, detail = "ok", ""
        try:
            detail = action() or ""
        except steps.NotRun as exc:
            outcome, detail = "not run", str(exc)
        except steps.Failed as exc:
            outcome, detail = "FAILED", str(exc)
        except SystemExit as exc:
            outcome, detail = "FAILED", str(exc.code)
        except Exception as exc:
            traceback.print_exc()
            outcome, detail = "FAILED", "%s: %s" % (type(exc).__name__, exc)
        seconds = time.time() - started
        self.rows.append((name, outcome, detail, seconds))
        print("--- %s: %s (%.1f s)%s" % (name, outcome, seconds, ", " + detail if detail else ""), flush=True)

    def close(self, tally: list[dict]) -> int:
        """Print the table, what did not run, and the totals; the exit code."""
        if os.environ.get(OUTCOMES):
            with open(os.environ[OUTCOMES], "w", encoding="utf-8") as stream:
                json.dump(self.rows, stream)
        print("\n=== summary")
        for name, outcome, detail, seconds in self.rows:
            if outcome == "not run":
                print("%-34s not run: %s" % (name, detail))
            else:
                print("%-34s %-7s %7.1f s  %s" % (name, outcome, seconds, detail))
        failed = sum(outcome == "FAILED" for _name, outcome, _detail, _seconds in self.rows)
        for row in tally:
            for reason, number in row["not_run"].items():
                print("%-34s %s (%d tests)" % ("pytest, Python %s" % row["python"], reason, number))
        print("%.0f s in all" % (time.time() - self.started))
        if tally:
            red = sum(row["failed"] for row in tally)
            totals = (sum(row["passed"] for row in tally), max(red, failed), sum(row["skipped"] for row in tally))
            print("%d passed, %d failed, %d skipped" % totals)
        elif failed:
            print("%d of %d steps failed" % (failed, len(self.rows)))
        return 1 if failed else 0


def main(arguments: list[str]) -> int:
    known = [*TARGETS, *steps.SINGLE, *steps.SEVERAL]
    if not arguments or arguments[0] not in known:
        print(__doc__ + "\nTargets: %s" % " ".join(known), file=sys.stderr)
        return 2
    names = TARGETS.get(arguments[0]) or [arguments[0]]
    os.chdir(venvs.ROOT)
    tally = os.path.join(venvs.ROOT, "build", "tally-%d.jsonl" % os.getpid())
    os.makedirs(os.path.dirname(tally), exist_ok=True)
    os.environ["NODENET_TALLY"] = tally
    summary = Summary()
    beside: list[Beside] = []
    try:
        for name in names:
            if name in BESIDE and len(names) > 1:
                beside.append(Beside(name))
                continue
            for row, action in steps.rows(name, arguments[1:] if len(names) == 1 else []):
                summary.run(row, action)
        for one in beside:
            summary.rows += one.rows()
        counts = []
        if os.path.exists(tally):
            with open(tally, encoding="utf-8") as stream:
                counts = [json.loads(line) for line in stream]
        return summary.close(counts)
    finally:
        for one in beside:
            one.close()
        if os.path.exists(tally):
            os.unlink(tally)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
