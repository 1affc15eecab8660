# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many writers on one directory, ours and Go's, and writers that are killed.

Every acknowledged answer is logged with the times around the call and replayed afterwards. An address is surely held
from the end of its ADD to the beginning of its DEL; no two such times may overlap.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import random
import select
import signal
import struct
import time
from pathlib import Path

import calls
import pytest
import reporting
from plugin_drivers import CommandDriver

IPAM = {"ranges": [[{"subnet": "10.9.0.0/26"}]]}
SECONDS = float(os.environ.get("NODENET_RACE_SECONDS") or 5 * reporting.soak_factor())
KILLS = 30 * reporting.soak_factor()

IN_CREATE, IN_MOVED_TO, IN_CLOSE_WRITE = 0x100, 0x80, 0x8


def start(function, *arguments):
    """Run a function in a child process and return its process id; the child exits with 0 only if it returns."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        function(*arguments)
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def finish(pid):
    """Wait for a child; return its exit code, negative for a signal."""
    _pid, status = os.waitpid(pid, 0)
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def writer(driver, prefix, base, log, until):
    """ADD, CHECK and DEL under ids of its own until a point in time; log one line for each answer."""
    chance = random.Random(prefix)
    config = calls.configuration(base, IPAM)
    mine = []
    number = 0
    with open(log, "w", encoding="ascii") as out:

        def call(command, container):
            before = time.monotonic()
            outcome = driver.call(calls.environment(command, container), config)
            after = time.monotonic()
            address = calls.address(outcome) if command == "ADD" and outcome.rc == 0 else ""
            if outcome.rc and "no IP addresses available" not in outcome.stdout:
                raise AssertionError("%s %s: %r" % (command, container, outcome))
            out.write(json.dumps([command, container, address, outcome.rc, before, after]) + "\n")
            return outcome.rc == 0

        while time.monotonic() < until:
            if len(mine) < 12 and chance.random() < 0.55:
                container = "%s-%d" % (prefix, number)
                number += 1
                if call("ADD", container):
                    mine.append(container)
            elif mine and chance.random() < 0.75:
                call("DEL", mine.pop(chance.randrange(len(mine))))
            elif mine:
                # A lost reservation shows here at once: CHECK of a holder must succeed.
                assert call("CHECK", chance.choice(mine))


def watcher(folder, ready, report, until):
    """Look at every file the moment it appears; report names and the content of those that were empty then."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_CLOEXEC)
    mask = IN_CREATE | IN_MOVED_TO
    assert libc.inotify_add_watch(watch, os.fsencode(folder), mask) >= 0
    os.write(ready, b"x")
    appeared = 0
    names = set()
    empty = []
    while time.monotonic() < until:
        if not select.select([watch], [], [], 0.1)[0]:
            continue
        events = os.read(watch, 65536)
        while events:
            _wd, _mask, _cookie, length = struct.unpack_from("iIII", events)
            name = events[16 : 16 + length].rstrip(b"\0").decode()
            events = events[16 + length :]
            if not calls.is_address_file(name):
                continue
            appeared += 1
            names.add(name)
            path = os.path.join(folder, name)
            if size_of(path) == 0:
                content = await_content(path)
                if content:
                    empty.append(content)
    Path(report).write_text(json.dumps({"appeared": appeared, "names": sorted(names), "empty": empty}), "ascii")


def size_of(path):
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None


def await_content(path):
    """Return what an empty file contains a moment later, the empty text if it is gone by then."""
    deadline = time.monotonic() + 0.2
    while time.monotonic() < deadline:
        try:
            with open(path, "rb") as source:
                content = source.read()
        except FileNotFoundError:
            return ""
        if content:
            return content.decode()
    return ""


def lock_holder(folder, until):
    """Take the lock now and then for a while: nobody may change the directory meanwhile."""
    while time.monotonic() < until - 0.5:
        time.sleep(0.4)
        fd = os.open(os.path.join(folder, "lock"), os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        before = look(folder)
        time.sleep(0.15)
        after = look(folder)
        os.close(fd)
        assert before == after, "somebody wrote without the lock"


def look(folder):
    status = os.stat(folder)
    return sorted(os.listdir(folder)), status.st_mtime_ns, calls.held(os.path.dirname(folder), os.path.basename(folder))


def replay(records):
    """Check all acknowledged answers against each other; return who holds what at the end."""
    added = {}
    times = {}
    for command, container, address, rc, before, after in sorted(records, key=lambda record: record[5]):
        if rc:
            continue
        if command == "ADD":
            assert container not in added, "the same ADD was acknowledged twice"
            added[container] = (address, after)
        elif command == "DEL":
            where, since = added.pop(container)
            times.setdefault(where, []).append((since, before, container))
    for container, (address, since) in added.items():
        times.setdefault(address, []).append((since, float("inf"), container))
    for address, spans in times.items():
        spans.sort()
        for (_since, until, holder), (since, _until, other) in zip(spans, spans[1:]):
            assert until <= since, "%s was held by %s and %s at once" % (address, holder, other)
    return {address: container + "\r\neth0" for container, (address, _since) in added.items()}


def race(library, base, go_path, writers):
    """Let 8 writers work on one directory for a while; return their answers and what the watcher saw."""
    folder = os.path.join(base, "net")
    go = CommandDriver([go_path], "go") if go_path else None
    # The directory and the lock have to be there for the watcher and the lock holder.
    assert library.call(calls.environment("DEL"), calls.configuration(base, IPAM)).rc == 0
    until = time.monotonic() + SECONDS
    report = os.path.join(base, "watcher.json")
    seen, ready = os.pipe()
    extra = [start(watcher, folder, ready, report, until + 0.5), start(lock_holder, folder, until)]
    os.read(seen, 1)
    os.close(seen)
    os.close(ready)
    logs = [os.path.join(base, "%s%d.log" % (kind, number)) for number, kind in enumerate(writers)]
    pids = [
        start(writer, library if kind == "our" else go, os.path.basename(log)[:-4], base, log, until)
        for kind, log in zip(writers, logs)
    ]
    codes = [finish(pid) for pid in pids + extra]
    assert codes == [0] * len(codes), "a writer, the watcher or the lock holder failed"
    records = [json.loads(line) for log in logs for line in Path(log).read_text("ascii").splitlines()]
    return records, json.loads(Path(report).read_text("ascii"))


def judge(records, report, base):
    """Assert what must hold after a race, whoever took part."""
    holders = replay(records)
    assert calls.held(base) == holders, "lost or invented reservations"
    ours_empty = [content for content in report["empty"] if content.startswith("our")]
    assert not ours_empty, "a file of ours was seen empty: %s" % ours_empty
    assert report["appeared"] > 0
    strange = [name for name in report["names"] if not name.startswith("10.9.0.")]
    assert not strange, "temporary names in the directory: %s" % strange


def test_ours_and_go_together(library, tmp_path):
    go_path = reporting.require_go_plugin()
    records, report = race(library, str(tmp_path), go_path, ["our", "go"] * 4)
    judge(records, report, str(tmp_path))
    counts = {
        kind: sum(1 for record in records if record[1].startswith(kind) and record[3] == 0) for kind in ("our", "go")
    }
    line = "race of 8 writers for %g s: %d answers of ours, %d of Go's; %d files seen at birth, empty: %d of Go's" % (
        SECONDS,
        counts["our"],
        counts["go"],
        report["appeared"],
        len(report["empty"]),
    )
    reporting.note(line)
    assert min(counts.values()) >= sum(counts.values()) / 20, line


def test_ours_alone(library, tmp_path):
    """The same without Go's slow start between calls: far more contention among ours."""
    records, report = race(library, str(tmp_path), "", ["our"] * 8)
    judge(records, report, str(tmp_path))
    assert report["empty"] == []
    reporting.note("race of 8 writers of ours for %g s: %d answers" % (SECONDS, len(records)))


def test_replay_sees_faults():
    """The judge is not blind."""
    add = ["ADD", "a", "10.9.0.2", 0, 1.0, 2.0]
    assert replay([add, ["DEL", "a", "", 0, 3.0, 4.0], ["ADD", "b", "10.9.0.2", 0, 2.5, 3.5]]) == {
        "10.9.0.2": "b\r\neth0"
    }
    with pytest.raises(AssertionError, match="at once"):
        replay([add, ["ADD", "b", "10.9.0.2", 0, 2.0, 2.5], ["DEL", "a", "", 0, 3.0, 4.0]])
    with pytest.raises(AssertionError, match="at once"):
        replay([add, ["ADD", "b", "10.9.0.2", 0, 5.0, 6.0]])


def victim(driver, base, acknowledge, number):
    """ADD and DEL for ever, telling what is acknowledged and what is begun, until killed."""
    config = calls.configuration(base, {"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd00:9::/120"}]]})
    turn = 0
    while True:
        container = "victim%d-%d" % (number, turn)
        turn += 1
        assert driver.call(calls.environment("ADD", container), config).rc == 0
        os.write(acknowledge, ("+%s\n" % container).encode())
        if turn % 3 == 0:
            os.write(acknowledge, ("-%s\n" % container).encode())
            assert driver.call(calls.environment("DEL", container), config).rc == 0


def test_killed_writers_leave_whole_files(library, tmp_path):
    """kill -9 at random points: no empty or partial file, nothing acknowledged is lost, the next call just works."""
    chance = random.Random(7)
    config = calls.configuration(tmp_path, {"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd00:9::/120"}]]})
    landed = 0
    for number in range(KILLS):
        told, tell = os.pipe()
        pid = start(victim, library, str(tmp_path), tell, number)
        os.close(tell)
        assert os.read(told, 1) == b"+"
        time.sleep(chance.uniform(0, 0.03))
        os.kill(pid, signal.SIGKILL)
        assert finish(pid) == -signal.SIGKILL
        lines = (b"+" + read_all(told)).decode().splitlines()
        os.close(told)
        landed += len(lines)
        held = calls.held(tmp_path)
        for name, content in held.items():
            container, mark, ifname = content.partition("\r\n")
            assert mark, "%s is not whole: %r" % (name, content)
            assert container.startswith("victim")
            assert ifname == "eth0"
            assert name.startswith(("10.9.0.", "fd00:9::")), "a strange name in the directory"
        owners = [content.split("\r\n")[0] for content in held.values()]
        begun = {line[1:] for line in lines if line.startswith("-")}
        for line in lines:
            if line.startswith("+") and line[1:] not in begun:
                assert owners.count(line[1:]) == 2, "acknowledged and lost: " + line[1:]
        begin = time.monotonic()
        assert library.call(calls.environment("ADD", "after%d" % number), config).rc == 0
        for container in set(owners) | {"after%d" % number}:
            assert library.call(calls.environment("DEL", container), config).rc == 0
        assert time.monotonic() - begin < 5
        assert calls.held(tmp_path) == {}
    leftovers = sorted(set(os.listdir(tmp_path)) - {"net"})
    assert not leftovers, leftovers
    assert landed >= KILLS
    reporting.note("kills: %d writers killed after %d acknowledged steps" % (KILLS, landed))


def read_all(fd):
    data = b""
    while True:
        more = os.read(fd, 65536)
        if not more:
            return data
        data += more
