# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the steps of a target, as many at once as there are cores, and say what ran, what failed and what could not run.

Usage: python3 tests/tools/run.py TARGET [ARGUMENT...]; the arguments go to the one tool of a single-step target.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
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
# these come first and alone: others need what they install
ALONE = ("system", "ruff")
# the longest rows of a target begin first, so that none is left over at the end
LONGEST = ("coverage", "fleet", "integration", "mutants", "clients", "molecule", "library", "units-newest", "sanity")


class Aside:
    """A row in a process of its own; its output is shown when it has ended."""

    def __init__(self, name: str, action) -> None:
        self._place = os.path.join(venvs.ROOT, "build", "row-%d-%x" % (os.getpid(), id(self)))
        self.name = name
        print("\n--- %s: begun, its output comes when it has ended" % name, flush=True)
        self.pid = os.fork()
        if not self.pid:
            self._serve(action)

    def _serve(self, action) -> None:
        code = 1
        try:
            with open(self._place + ".log", "wb") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            summary = Summary()
            summary.run(self.name, action)
            with open(self._place + ".json", "w", encoding="utf-8") as stream:
                json.dump(summary.rows, stream)
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)

    def rows(self) -> list[tuple[str, str, str, float]]:
        """Show the output of the ended row; return its outcome."""
        try:
            with open(self._place + ".log", encoding="utf-8", errors="replace") as output:
                print(output.read(), flush=True)
            with open(self._place + ".json", encoding="utf-8") as stream:
                found = [tuple(row) for row in json.load(stream)]
        except (OSError, ValueError):
            found = [(self.name, "FAILED", "it ended before its outcome was known", 0.0)]
        for end in (".log", ".json"):
            if os.path.exists(self._place + end):
                os.unlink(self._place + end)
        return found


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

    def run_at_once(self, waiting: list, most: int) -> None:
        """Run rows (name, action), *most* of them at the same time."""
        running: dict[int, Aside] = {}
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    one = Aside(*waiting.pop(0))
                    running[one.pid] = one
                pid, _status = os.wait()
                if pid in running:
                    self.rows += running.pop(pid).rows()
        except BaseException:
            for pid in running:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGINT)
                    os.waitpid(pid, 0)
            raise

    def close(self, tally: list[dict]) -> int:
        """Print the table, what did not run, and the totals; the exit code."""
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
    try:
        alone = [name for name in names if name in ALONE or len(names) == 1]
        for name in alone:
            for row, action in steps.rows(name, arguments[1:] if len(names) == 1 else []):
                summary.run(row, action)
        others = sorted(
            (name for name in names if name not in alone),
            key=lambda name: LONGEST.index(name) if name in LONGEST else len(LONGEST),
        )
        summary.run_at_once([row for name in others for row in steps.rows(name, [])], min(os.cpu_count() or 1, 4))
        counts = []
        if os.path.exists(tally):
            with open(tally, encoding="utf-8") as stream:
                counts = [json.loads(line) for line in stream]
        return summary.close(counts)
    finally:
        if os.path.exists(tally):
            os.unlink(tally)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
