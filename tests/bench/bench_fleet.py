# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the audit of a large fleet costs on the controller: time, memory, and how time grows with the number of nodes.

Each size is audited by a process of its own, which reads the reports, compares them with a plan, with the pod CIDRs
and with the audit before, and writes fleet.json and the history. Prints a row for each size, the exponent of the
growth, and whether the targets are met. Seconds are those of the processor. Nothing here fails because a figure is bad.

    python tests/bench/bench_fleet.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / ".dev"), str(ROOT / "tests" / "unit" / "plugins" / "plugin_utils")]

SIZES = (100, 250, 500, 1000, 2000, 4000)
QUICK = (100, 250, 1000)
RESERVATIONS = 250
SHARED = 200
ROUNDS = 3
TARGET_NODES, TARGET_S, TARGET_MIB = 1000, 10.0, 1024
TARGET_EXPONENT = 1.15


def generate(folder, count):
    """Write the reports of a fleet to a file, a line each, and the audit's question about it."""
    import fleets

    with open(os.path.join(folder, "reports"), "w", encoding="utf-8") as stream:
        for number in range(count):
            report = fleets.node(number, RESERVATIONS - SHARED, SHARED - 1)
            stream.write(json.dumps([f"n{number:04}", report]) + "\n")


def audit(folder, count):
    """One audit as the action makes it; prints its seconds and the memory of this process."""
    import fleets

    from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet import Question, merge
    from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_history import History
    from ansible_collections.nodenet.cni.plugins.plugin_utils.report_files import write
    from ansible_collections.nodenet.cni.plugins.plugin_utils.report_json import lines

    def used():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    begin = time.process_time()
    with open(os.path.join(folder, "reports"), encoding="utf-8") as stream:
        reports = dict(json.loads(line) for line in stream)
    read, with_reports = time.process_time(), used()
    question = Question(
        plan={f"n{number:04}": fleets.plan_of(number) for number in range(count)},
        pod_cidrs={f"n{number:04}": [f"10.{64 + number // 256}.{number % 256}.0/24"] for number in range(count)},
        now=fleets.NOW,
    )
    with History(os.path.join(folder, "history.sqlite")) as history:
        begin_merge = time.process_time()
        question = question._replace(before=history.before(fleets.NOW))
        merged = merge(reports, question)
        merged["history"] = history.compare(merged, question.before)
        compared = time.process_time()
        write(os.path.join(folder, "fleet.json"), lines(dict(merged, reports=reports)))
        history.append(merged)
    end = time.process_time()
    assert merged["summary"]["reservations"] == RESERVATIONS * count, merged["summary"]
    assert merged["findings"] == [], merged["findings"][:3]
    times = {"read": read - begin, "merge": compared - begin_merge, "write": end - compared, "all": end - begin}
    size = os.path.getsize(os.path.join(folder, "fleet.json"))
    print(json.dumps({"times": times, "reports_mib": with_reports, "mib": used(), "bytes": size}))


def measure(count):
    """Return the best of some audits of a fleet of that size."""
    found = []
    with tempfile.TemporaryDirectory(prefix="nodenet-bench.") as folder:
        for command in ["generate"] + ["audit"] * ROUNDS:
            arguments = [sys.executable, __file__, command, folder, str(count)]
            done = subprocess.run(arguments, stdout=subprocess.PIPE, check=True)
            if command == "audit":
                found.append(json.loads(done.stdout))
    return min(found, key=lambda one: one["times"]["all"])


def exponent(sizes, values):
    """Return the slope of values over sizes, both as logarithms: 1 is linear, 2 quadratic."""
    xs, ys = [math.log(one) for one in sizes], [math.log(one) for one in values]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys))
    return above / sum((x - middle_x) ** 2 for x in xs)


def verdict(holds):
    return "met" if holds else "MISSED"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    options, _others = parser.parse_known_args()
    sizes = QUICK if options.quick else SIZES
    print(
        f"Audit of a fleet, {RESERVATIONS} reservations a node ({SHARED} of them on a shared network), best of {ROUNDS}"
    )
    print("nodes   read s  merge s  write s    all s   reports MiB   peak MiB   fleet.json MB")
    rows = {}
    for count in sizes:
        row = rows[count] = measure(count)
        times = "".join(f"{row['times'][key]:9.2f}" for key in ("read", "merge", "write", "all"))
        megabytes = row["bytes"] / 1e6
        print(f"{count:5}{times}{row['reports_mib']:14.0f}{row['mib']:11.0f}{megabytes:16.1f}", flush=True)
    target = rows[TARGET_NODES]
    seconds, mib = target["times"]["all"], target["mib"]
    print(f"{TARGET_NODES} nodes: {seconds:.1f} s, target under {TARGET_S:.0f} s: {verdict(seconds < TARGET_S)}")
    print(f"{TARGET_NODES} nodes: {mib:.0f} MiB, target under {TARGET_MIB} MiB: {verdict(mib < TARGET_MIB)}")
    grown = exponent(sizes, [rows[count]["times"]["all"] for count in sizes])
    merged = exponent(sizes, [rows[count]["times"]["merge"] for count in sizes])
    print(
        f"growth from {sizes[0]} to {sizes[-1]} nodes: exponent {grown:.2f} (merge alone {merged:.2f}), "
        f"target at most {TARGET_EXPONENT}: {verdict(grown <= TARGET_EXPONENT)}"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["generate"]:
        generate(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["audit"]:
        audit(sys.argv[2], int(sys.argv[3]))
    else:
        main()
