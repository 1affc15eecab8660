# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What reservations and reports cost, beside the Go plugin called in a loop and an Ansible loop.

Prints medians of one run in which the ways take turns, the ratios, and whether each target is met. Ratios carry over to
other machines, seconds do not. Nothing here fails because a figure is bad.

    python tests/bench/bench_host_local.py [--quick]
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "conformance"))

import calls
from plugin_drivers import PACKAGE, CommandDriver, LibraryDriver, import_root
from reporting import GO_PLUGIN

COUNT = 1000
LOOP = 50
BIG = 50000
IPAM = {"subnet": "10.64.0.0/16"}


def module(name):
    return importlib.import_module(PACKAGE + ".plugins.module_utils." + name)


@contextlib.contextmanager
def scratch():
    path = tempfile.mkdtemp(prefix="nodenet-bench.")
    try:
        yield path
    finally:
        shutil.rmtree(path)


def seconds(function, *arguments):
    begin = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begin


def take_turns(repetitions, *ways):
    """Run several ways in turns, so that all of them see the same machine; return the median of each."""
    times = [[way() for way in ways] for _turn in range(repetitions)]
    return [statistics.median(column) for column in zip(*times)]


class Figures:
    """Prints one line for each figure, and the targets with what became of them."""

    @staticmethod
    def line(what, value, unit="s"):
        print("  %-62s %10.4f %s" % (what, value, unit))

    @staticmethod
    def target(what, ratio, wanted, at_least=True):
        met = ratio >= wanted if at_least else ratio <= wanted
        print(
            "  %-62s %9.1fx  target: at %s %gx: %s"
            % (what, ratio, "least" if at_least else "most", wanted, "met" if met else "MISSED")
        )

    @staticmethod
    def not_run(what, why):
        print("  not run: %s: %s" % (what, why))


# --- reserving -----------------------------------------------------------------------------------------------------


def batch_of(count):
    return [{"owner": "bench-%d" % number, "ifname": "eth0"} for number in range(count)]


def reserve_batch(base, count):
    """Reserve through the library as the module does: planned, checked and applied under one hold of the lock."""
    sets = module("host_local.config").load_ipam_config(calls.configuration(base, IPAM)).sets
    wanted = module("host_local.wanted").read_batch(batch_of(count), "net")

    def decide(snapshot):
        return module("host_local.reservations").make_plan(snapshot, sets, wanted, "network net")

    plan, _warnings = module("host_local.batch").run_batch(base, "net", decide, False, 30.0)
    if len(plan.add) != count or len(calls.held(base)) != count:
        raise SystemExit("the batch did not reserve %d addresses" % count)


def add_in_a_loop(driver, base, count):
    config = calls.configuration(base, IPAM)
    for number in range(count):
        calls.address(driver.call(calls.environment("ADD", "bench-%d" % number), config))


def in_scratch(function, *arguments):
    with scratch() as base:
        return seconds(function, *[base if one is BASE else one for one in arguments])


BASE = object()


def bench_reserve(library, go, quick):
    print("Reserve %d addresses into an empty directory, crash-safe" % COUNT)
    ways = [lambda: in_scratch(reserve_batch, BASE, COUNT), lambda: in_scratch(add_in_a_loop, library, BASE, COUNT)]
    if go:
        ways.append(lambda: in_scratch(add_in_a_loop, go, BASE, COUNT))
    medians = take_turns(1 if quick else 3, *ways)
    Figures.line("library, one batch", medians[0])
    Figures.line("library, %d ADDs in this process" % COUNT, medians[1])
    if go:
        Figures.line("Go, %d ADDs (not crash-safe)" % COUNT, medians[2])
        Figures.target("batch against Go", medians[2] / medians[0], 30)
    else:
        Figures.not_run("the comparison with Go", "no plugin at %s" % GO_PLUGIN)


def bench_single(library, go, quick):
    print("One ADD and one DEL, alone in a directory with 100 reservations")
    drivers = [driver for driver in (library, go) if driver]
    with scratch() as base:
        add_in_a_loop(library, base, 100)
        config = calls.configuration(base, IPAM)

        def way(driver, command):
            return lambda: seconds(driver.call, calls.environment(command, "one-" + driver.name), config)

        ways = [way(driver, command) for driver in drivers for command in ("ADD", "DEL")]
        medians = take_turns(20 if quick else 100, *ways)
    for driver, add, delete in zip(drivers, medians[::2], medians[1::2]):
        where = "in this process" if driver.in_process else "as a process"
        Figures.line("%s, %s: ADD" % (driver.name, where), add * 1000, "ms")
        Figures.line("%s, %s: DEL" % (driver.name, where), delete * 1000, "ms")


# --- reporting -----------------------------------------------------------------------------------------------------


def fill(base, count):
    folder = os.path.join(base, "net")
    os.mkdir(folder)
    open(os.path.join(folder, "lock"), "w").close()
    for number in range(2, count + 2):
        name = "10.64.%d.%d" % divmod(number, 256)
        with open(os.path.join(folder, name), "wb") as out:
            out.write(b"%064x\r\neth0" % number)
    return "%064x" % (count + 1)


def plain_read(folder):
    """How one reads the files of a directory in Python."""
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as source:
            source.read()


def bare_calls(folder):
    """The system calls of such a read and nothing else."""
    for name in os.listdir(folder):
        fd = os.open(os.path.join(folder, name), os.O_RDONLY)
        os.read(fd, 4096)
        os.close(fd)


def report(base):
    sets = module("host_local.config").load_ipam_config(calls.configuration(base, IPAM)).sets
    store = module("host_local.store").Store(base, "net", create=False)
    with store as opened, opened.lock(30):
        found = module("host_local.report").Report(opened.snapshot(), sets, [""])
    if len(found.reservations) != found.range_sets[0]["reserved"]:
        raise SystemExit("the report is wrong")


def bench_report(library, go, quick):
    print("Report a directory of %d reservations" % BIG)
    with scratch() as base:
        last = fill(base, BIG)
        folder = os.path.join(base, "net")
        env, config = calls.environment("CHECK", last), calls.configuration(base, IPAM)
        pairs = ((report, base), (plain_read, folder), (bare_calls, folder))
        ways = [lambda one=one, place=place: seconds(one, place) for one, place in pairs]
        if go:
            ways.append(lambda: seconds(go.call, env, config))
            ways.append(lambda: seconds(go.call, calls.environment("CHECK", "absent"), config))
        plain_read(folder)
        medians = take_turns(3 if quick else 7, *ways)
    Figures.line("library, whole report", medians[0])
    Figures.line("plain Python read of the files", medians[1])
    Figures.line("its bare system calls", medians[2])
    Figures.target("report against plain read", medians[0] / medians[1], 2, at_least=False)
    Figures.target("report against the bare system calls", medians[0] / medians[2], 2, at_least=False)
    if go:
        Figures.line("one Go CHECK of a holder (reads all files once)", medians[3])
        Figures.line("one Go CHECK of an unknown owner (reads them twice)", medians[4])
        Figures.target("one Go CHECK of a holder against the report", medians[3] / medians[0], 1)
    else:
        Figures.not_run("the comparison with Go", "no plugin at %s" % GO_PLUGIN)


# --- the executable ------------------------------------------------------------------------------------------------

SIZES = (10, 250, 1000, 10000, 50000)
AHEAD_FROM = 400
FULL = 65533  # usable addresses of IPAM but its gateway
COMMANDS = ("ADD", "CHECK", "DEL")
LOOK = """
import posix, sys
for entry in posix.scandir(sys.argv[1]):
    entry.stat(follow_symlinks=False)
posix._exit(0)
"""


class Executables:
    """Ours, the bare interpreter that runs it, and Go's if it is there, on one directory."""

    def __init__(self, imports, base, go):
        python = os.path.realpath("/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable)
        root = os.path.join(imports, *PACKAGE.split("."), "plugins", "module_utils")
        self.ours = CommandDriver(
            module("node.executables").build(root, os.path.join(base, "bin"), ["host-local"], python)
        )
        self.go = go
        self._bare = [python, "-IBS", "-c"]
        self._base = base

    def directory(self, count):
        """Make a directory of *count* reservations; return the configuration that leads to it."""
        data = os.path.join(self._base, "data%d" % count)
        os.mkdir(data)
        fill(data, count)
        return calls.configuration(data, IPAM)

    def start(self):
        return seconds(subprocess.run, [*self._bare, "pass"])

    def look(self, count):
        """The least that a call in Python can do in a directory that has just changed: it looks at each file once."""
        folder = os.path.join(self._base, "data%d" % count, "net")
        return seconds(subprocess.run, [*self._bare, LOOK, folder])

    @staticmethod
    def call(driver, config, command, owner="bench", rc=0):
        begin = time.perf_counter()
        done = driver.call(calls.environment(command, owner), config)
        elapsed = time.perf_counter() - begin
        if done.rc != rc:
            raise SystemExit("%s: %r" % (command, done))
        return elapsed

    def settle(self, config):
        """Let the directory be quiet for a second, and have a call find it so, as runtimes repeat their DEL."""
        time.sleep(1.1)
        self.call(self.ours, config, "DEL", "gone")


def bench_executable(imports, go, quick):
    """Wall time of whole processes, beside the start of the bare interpreter that runs ours."""
    with scratch() as base:
        them = Executables(imports, base, go)
        for size in SIZES:
            bench_calls(them, them.directory(size), size, quick)
        bench_full(them, them.directory(FULL), quick)


def bench_calls(them, config, size, quick):
    print("One call of the executable, %d reservations" % size)
    drivers = [them.ours, them.go] if them.go else [them.ours]
    turns = (15 if quick else 60) if size <= 1000 else (3 if quick else 7)
    ways = [them.start, lambda: them.look(size)]
    for driver in drivers:
        ways += [lambda c=command, d=driver: them.call(d, config, c) for command in COMMANDS]
    them.settle(config)
    start, look, *medians = take_turns(turns, *ways)
    Figures.line("bare interpreter", 1000 * start, "ms")
    Figures.line("bare interpreter that looks at each file once", 1000 * look, "ms")
    show_calls("in a burst of both", start, medians, size, 5)
    before = [None, "DEL", None]  # an ADD has to find a directory that a DEL of before has left a second ago
    quiet = []
    for _turn in range(2 if quick else 5):
        them.settle(config)  # the processor has slept before each of the calls, too
        row = [them.start()]
        for driver in drivers:
            for command, undo in zip(COMMANDS, before):
                if undo:
                    them.call(driver, config, undo)
                    them.call(driver, config, "ADD")
                them.settle(config)
                row.append(them.call(driver, config, command))
        quiet.append(row)
    start, *medians = [statistics.median(column) for column in zip(*quiet)]
    show_calls("in a directory quiet for a second", start, medians, size, 20)


def show_calls(when, start, medians, size, wanted):
    """Print the medians of our commands and of Go's, beside the *start* of the bare interpreter."""
    print(" " + when)
    for command, ours, theirs in itertools.zip_longest(COMMANDS, medians[:3], medians[3:]):
        Figures.line("ours, " + command, 1000 * ours, "ms")
        if size <= 1000:
            Figures.target(command + " against the bare interpreter", ours / start, 1.5, False)
        if theirs is not None:
            Figures.line("Go, " + command, 1000 * theirs, "ms")
            if size == BIG:
                Figures.target("Go's %s against ours" % command, theirs / ours, wanted)
            elif size >= AHEAD_FROM:
                Figures.target("Go's %s against ours" % command, theirs / ours, 1)


def bench_full(them, config, quick):
    print("A failing ADD of the executable in a full /16")
    first = them.call(them.ours, config, "ADD", rc=1)
    time.sleep(1.1)
    second = them.call(them.ours, config, "ADD", rc=1)
    ways = [lambda d=driver: them.call(d, config, "ADD", rc=1) for driver in (them.ours, them.go) if driver]
    medians = take_turns(3 if quick else 7, *ways)
    Figures.line("ours, the first without an index", 1000 * first, "ms")
    Figures.line("ours, the first in a quiet directory", 1000 * second, "ms")
    Figures.line("ours, the others", 1000 * medians[0], "ms")
    if them.go:
        Figures.line("Go", 1000 * medians[1], "ms")
        Figures.target("Go's against ours", medians[1] / medians[0], 40)


# --- the whole play ------------------------------------------------------------------------------------------------

PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks: %s
"""


def task(**more):
    return {
        "nodenet.cni.host_local_reservation": dict(
            {"network": "net", "ranges": [[IPAM]], "data_dir": "{{ base }}"}, **more.pop("options")
        ),
        **more,
    }


def play(ansible, imports, base, tasks):
    path = os.path.join(base, "play.yml")
    Path(path).write_text(PLAY % json.dumps(tasks), "utf-8")
    env = dict(os.environ, ANSIBLE_COLLECTIONS_PATH=str(imports), ANSIBLE_LOCALHOST_WARNING="false")
    env.update(ANSIBLE_INVENTORY_UNPARSED_WARNING="false", ANSIBLE_NOCOLOR="1", ANSIBLE_HOME=os.path.join(base, "home"))
    done = subprocess.run(
        [ansible, path, "-e", "base=%s/data" % base, "-e", "ansible_python_interpreter=" + sys.executable],
        env=env, cwd=base, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit("the play failed:\n" + done.stdout)


def play_seconds(ansible, imports, tasks, count):
    with scratch() as base:
        elapsed = seconds(play, ansible, imports, base, tasks)
        if len(calls.held(os.path.join(base, "data"))) != count:
            raise SystemExit("the play did not reserve %d addresses" % count)
    return elapsed


def bench_play(imports, quick):
    print("A play with %d reservations" % COUNT)
    beside = os.path.join(os.path.dirname(sys.executable), "ansible-playbook")
    ansible = beside if os.path.exists(beside) else shutil.which("ansible-playbook")
    if not ansible:
        Figures.not_run("the play", "no ansible-playbook beside %s" % sys.executable)
        return
    batch = [task(name="Reserve all", options={"reservations": batch_of(COUNT)})]
    loop = [
        task(
            name="Reserve one by one",
            options={"reservations": [{"owner": "{{ item.owner }}", "ifname": "eth0"}]},
            loop=batch_of(LOOP),
        )
    ]
    nothing, whole, looped = take_turns(
        1 if quick else 3,
        lambda: play_seconds(ansible, imports, [], 0),
        lambda: play_seconds(ansible, imports, batch, COUNT),
        lambda: play_seconds(ansible, imports, loop, LOOP),
    )
    extrapolated = nothing + (looped - nothing) * COUNT / LOOP
    Figures.line("empty play", nothing)
    Figures.line("one task with a list of %d" % COUNT, whole)
    Figures.line("loop of %d" % LOOP, looped)
    Figures.line("loop of %d, extrapolated" % COUNT, extrapolated)
    Figures.target("one task against the loop, start-up of ansible included", extrapolated / whole, 100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    quick = parser.parse_args().quick
    print("%s, Python %s, %d cores" % (platform.platform(), platform.python_version(), os.cpu_count() or 0))
    with import_root() as imports:
        library = LibraryDriver()
        go = CommandDriver([GO_PLUGIN], "Go") if os.access(GO_PLUGIN, os.X_OK) else None
        bench_reserve(library, go, quick)
        bench_single(library, go, quick)
        bench_report(library, go, quick)
        bench_executable(imports, go, quick)
        bench_play(imports, quick)


if __name__ == "__main__":
    main()
