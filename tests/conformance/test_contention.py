# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes that want one lock: a crowd of both kinds, a holder that dies, a holder that never lets go."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import signal
import subprocess
import time

import calls
import pytest
import reporting
from plugin_drivers import Outcome, text
from tracing import strace_command

POOL = {"ranges": [[{"subnet": "10.9.0.0/22"}]]}
CROWD = 200
#: what a process may take to start and end on a busy machine, beyond the time that is measured
SLACK_S = 10


class Crowd:
    """Processes that run at the same time; those that are left at the end are killed."""

    def __init__(self, data_dir, config):
        self.data_dir = data_dir
        self.config_file = str(data_dir) + ".config"
        with open(self.config_file, "wb") as stream:
            stream.write(config)
        self.processes = []

    def start(self, argv, command, container, **env):
        """Start a call; its input is a file and its output small, so nobody has to attend to it."""
        with open(self.config_file, "rb") as stdin:
            process = subprocess.Popen(
                argv,
                env=calls.environment(command, container, **env),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        self.processes.append(process)
        return process

    def close(self):
        for process in self.processes:
            process.kill()
            process.communicate()


@pytest.fixture
def crowd(tmp_path):
    made = Crowd(tmp_path / "data", calls.configuration(tmp_path / "data", POOL))
    yield made
    made.close()


def end(process, timeout_s=60.0):
    stdout, stderr = process.communicate(timeout=timeout_s)
    return Outcome(process.returncode, text(stdout), text(stderr))


@contextlib.contextmanager
def held_lock(data_dir):
    """Hold the lock of the network as a plugin does."""
    fd = os.open(str(data_dir / "net" / "lock"), os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd
    finally:
        os.close(fd)


def await_lock(data_dir, number, timeout_s=60.0):
    """Wait until so many processes wait for the lock, as the kernel lists them."""
    inode = ":%d" % os.stat(str(data_dir / "net" / "lock")).st_ino
    deadline = time.monotonic() + timeout_s
    while True:
        with open("/proc/locks") as stream:
            # each counts once: a long queue may be listed twice in one reading
            lines = {line.strip() for line in stream if " -> FLOCK " in line and inode + " " in line}
        waiting = len({line.split()[5] for line in lines})
        if waiting >= number:
            return
        assert time.monotonic() < deadline, "%d of %d wait for the lock" % (waiting, number)
        time.sleep(0.02)


def test_a_crowd_of_go_and_ours(library, executable, crowd):
    """200 calls that all wait for the lock when it becomes free: all succeed, and no address is lost or doubled."""
    kinds = {"go": [reporting.require_go_plugin()], "our": [executable]}
    config = calls.configuration(crowd.data_dir, POOL)
    expected = {}
    old = ["old%d" % number for number in range(CROWD // 2)]
    for container in old:
        expected[container] = calls.address(library.call(calls.environment("ADD", container), config))
    tasks = [("ADD", "new%d" % number) for number in range(CROWD // 2)]
    tasks += [("DEL", container) for container in old[::2]] + [("CHECK", container) for container in old[1::2]]
    tasks = [(kind, *task) for task, kind in zip(tasks, ["go", "our", "our", "go"] * (CROWD // 4))]
    random.Random(3).shuffle(tasks)
    begin = time.monotonic()
    with held_lock(crowd.data_dir):
        processes = [crowd.start(kinds[kind], command, container) for kind, command, container in tasks]
        await_lock(crowd.data_dir, CROWD)
    freed = time.monotonic()
    for (kind, command, container), process in zip(tasks, processes):
        outcome = end(process)
        assert (outcome.rc, outcome.stderr) == (0, ""), (kind, command, container, outcome)
        if command == "ADD":
            expected[container] = calls.address(outcome)
        elif command == "DEL":
            del expected[container]
    took = time.monotonic() - freed
    holders = {address: container + "\r\neth0" for container, address in expected.items()}
    assert len(holders) == len(expected), "an address was given to two"
    assert calls.held(crowd.data_dir) == holders
    reporting.note("crowd: %d calls of Go and ours, %.1f s to gather, %.1f s to serve" % (CROWD, freed - begin, took))


@pytest.mark.parametrize(
    ("kind", "command", "where", "holds"),
    [
        ("our", "ADD", "fsync", 0),
        ("our", "ADD", "linkat", 1),
        ("our", "DEL", "flock", 1),
        ("our", "DEL", "unlinkat", 0),
        ("go", "DEL", "flock", 1),
        ("go", "DEL", "unlinkat", 0),
    ],
)
def test_a_holder_that_is_killed(tmp_path, library, executable, crowd, kind, command, where, holds):
    """Stopped just after a system call, with the lock held, it keeps the others waiting; killed, they go on at once."""
    go = reporting.require_go_plugin()
    config = calls.configuration(crowd.data_dir, POOL)
    for container in ("first", "victim") if command == "DEL" else ("first",):
        assert library.call(calls.environment("ADD", container), config).rc == 0
    log = tmp_path / "log"
    strace = strace_command(log, where, "%s:signal=STOP:when=1" % where)
    holder = crowd.start([*strace, {"our": executable, "go": go}[kind]], command, "victim")
    pid = await_stop(log)
    try:
        waiters = [crowd.start([executable if number % 2 else go], "ADD", "w%d" % number) for number in range(6)]
        waiters.append(crowd.start([executable], "DEL", "nobody"))
        waiters.append(crowd.start([go], "DEL", "nobody"))
        await_lock(crowd.data_dir, len(waiters))
        assert all(process.poll() is None for process in waiters)
    finally:
        os.kill(pid, signal.SIGKILL)
    begin = time.monotonic()
    outcomes = [end(process) for process in waiters]
    assert time.monotonic() - begin < SLACK_S
    assert [outcome.rc for outcome in outcomes] == [0] * len(outcomes), outcomes
    assert end(holder).rc == -signal.SIGKILL
    owners = ["first", *("w%d" % number for number in range(6)), *["victim"] * holds]
    held = calls.held(crowd.data_dir)
    assert sorted(held.values()) == sorted(owner + "\r\neth0" for owner in owners)
    for number, outcome in enumerate(outcomes[:6]):
        assert held[calls.address(outcome)] == "w%d\r\neth0" % number


def await_stop(log):
    """Wait until a traced process has stopped; return its id."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        lines = log.read_text().splitlines() if log.exists() else []
        for line in lines:
            if "--- stopped by SIGSTOP ---" in line:
                with open("/proc/%s/status" % line.split()[0]) as status:
                    fields = dict(entry.split(":", 1) for entry in status.read().splitlines())
                return int(fields["Tgid"])
        time.sleep(0.01)
    raise AssertionError("it never came to the system call")


@pytest.mark.parametrize(("command", "go_waiters"), [("ADD", 0), ("ADD", 8), ("CHECK", 8), ("DEL", 8)])
def test_a_lock_that_is_never_free(tmp_path, library, executable, crowd, command, go_waiters):
    """H13: code 11 after CNI_LOCK_TIMEOUT, nothing is changed; it says who holds the lock."""
    config = calls.configuration(crowd.data_dir, POOL)
    assert library.call(calls.environment("ADD", "holder"), config).rc == 0
    before = look(crowd.data_dir)
    with held_lock(crowd.data_dir):
        go = [crowd.start([reporting.require_go_plugin()], "ADD", "go%d" % number) for number in range(go_waiters)]
        await_lock(crowd.data_dir, go_waiters)
        begin = time.monotonic()
        ours = [crowd.start([executable], command, "holder", CNI_LOCK_TIMEOUT=limit) for limit in ("0", "1")]
        for limit, process in zip((0, 1), ours):
            outcome = end(process)
            took = time.monotonic() - begin
            assert limit <= took < limit + SLACK_S
            document = calls.error(outcome)
            assert document["code"] == 11, document
            assert "within %g s: process %d (" % (limit, os.getpid()) in document["msg"], document
            assert str(crowd.data_dir / "net" / "lock") in document["msg"]
            assert outcome.stderr == ""
        assert look(crowd.data_dir) == before
        assert all(process.poll() is None for process in go)
    assert [end(process).rc for process in go] == [0] * go_waiters
    assert library.call(calls.environment("DEL", "holder"), config).rc == 0


def look(data_dir):
    folder = str(data_dir / "net")
    return sorted(os.listdir(folder)), calls.held(data_dir), os.stat(folder).st_mtime_ns


def test_ours_get_their_turn_among_go(library, executable, crowd):
    """Who waits with a time limit is served in its turn, with Go's waiters before it and after it."""
    go = reporting.require_go_plugin()
    config = calls.configuration(crowd.data_dir, POOL)
    assert library.call(calls.environment("ADD", "first"), config).rc == 0
    with held_lock(crowd.data_dir):
        before = [crowd.start([go], "ADD", "before%d" % number) for number in range(20)]
        await_lock(crowd.data_dir, 20)
        ours = [crowd.start([executable], "ADD", "our%d" % number, CNI_LOCK_TIMEOUT="30") for number in range(3)]
        await_lock(crowd.data_dir, 23)
        after = [crowd.start([go], "ADD", "after%d" % number) for number in range(20)]
        await_lock(crowd.data_dir, 43)
    assert [end(process).rc for process in before + ours + after] == [0] * 43
    held = calls.held(crowd.data_dir)
    times = {
        content.split("\r\n")[0]: os.stat(str(crowd.data_dir / "net" / name)).st_mtime_ns
        for name, content in held.items()
    }
    late = sum(times["after%d" % number] > times["our%d" % turn] for number in range(20) for turn in range(3))
    assert late >= 55, "ours came after %d of 60 that had come later" % (60 - late)
