# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decided differences that no recorded call shows (docs/compatibility.md), on real files."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import calls
import pytest
from plugin_drivers import CommandDriver
from tracing import strace_command

PLUGIN = [sys.executable, "-B", str(Path(__file__).with_name("plugin_process.py"))]
ONE = {"subnet": "10.1.2.0/30"}
POOL = {"subnet": "10.1.2.0/24"}
DUAL = {"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd00:1::/64"}], [{"subnet": "10.8.0.0/24"}]]}


def plant(data_dir, name, content, age_s=0.0):
    path = Path(str(data_dir), "net", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


@pytest.fixture
def traced(tmp_path, collection_path):
    """Runs one call of ours under strace; returns its outcome and the lines of these system calls."""

    def run(syscalls, env, stdin, inject=""):
        log = tmp_path / "strace.log"
        driver = CommandDriver([*strace_command(log, syscalls, inject), *PLUGIN, collection_path])
        # PATH is for strace's own sake; the plugin sees CNI variables only
        done = driver.call(dict(env, PATH=os.environ["PATH"]), stdin, str(tmp_path))
        return done, log.read_text("utf-8", "surrogateescape").splitlines()

    return run


# --- H1: whole files or none ---------------------------------------------------------------------------------------


def order_of(lines, *words):
    """Return the position of the first line with each word; a missing one fails."""
    found = []
    for word in words:
        at = [number for number, line in enumerate(lines) if word in line]
        assert at, "no %s in:\n%s" % (word, "\n".join(lines))
        found.append(at[0])
    return found


def test_add_syncs_the_file_before_it_gets_its_name_and_the_directory_after(tmp_path, traced):
    done, lines = traced(
        "write,fsync,fdatasync,syncfs,link,linkat,rename,renameat,renameat2",
        calls.environment("ADD"),
        calls.configuration(tmp_path, POOL),
    )
    assert calls.address(done) == "10.1.2.2"
    written, named = order_of(lines, '"' + calls.CONTAINER[:20], '10.1.2.2"')
    fd = re.search(r"write\((\d+),", lines[written]).group(1)
    synced = [
        number for number, line in enumerate(lines) if re.search(r"f(data)?sync\(%s\) |syncfs\(\d+\) " % fd, line)
    ]
    assert any(written < number < named for number in synced), "\n".join(lines)
    after = [line for line in lines[named:] if re.search(r"fsync\((?!%s\))\d+\) += 0|syncfs\(\d+\) += 0" % fd, line)]
    assert after, "the directory was not synced after the name:\n" + "\n".join(lines)


def test_del_syncs_the_directory(tmp_path, library, traced):
    config = calls.configuration(tmp_path, POOL)
    assert library.call(calls.environment("ADD"), config).rc == 0
    done, lines = traced("fsync,fdatasync,syncfs,unlink,unlinkat", calls.environment("DEL"), config)
    assert done.rc == 0
    unlinked, synced = order_of([line for line in lines if "unlink" in line or "sync" in line], "10.1.2.2", "sync")
    assert unlinked < synced


CALLS = "write,fsync,link,linkat"


def occurrence(lines, name, after=0):
    """Return which call of that name, counted from 1, is the first one at or behind a position, and where it is."""
    at = next(number for number in range(after, len(lines)) if " %s(" % name in lines[number])
    return sum(" %s(" % name in line for line in lines[: at + 1]), at


@pytest.mark.parametrize("fault", ["write", "fsync", "linkat", "second fsync"])
def test_a_failing_write_leaves_nothing(tmp_path, library, fault, traced):
    """ENOSPC and EIO at each step of a reservation: an error, and no file under the address or beside it."""
    for name in ("model", "net"):
        assert library.call(calls.environment("DEL"), calls.configuration(tmp_path, POOL, name=name)).rc == 0
    # A call in which nothing fails shows where each step comes.
    _done, lines = traced(CALLS, calls.environment("ADD"), calls.configuration(tmp_path, POOL, name="model"))
    written = next(number for number, line in enumerate(lines) if calls.CONTAINER[:20] in line)
    syscall = fault.split()[-1]
    count, at = occurrence(lines, syscall, written)
    if fault.startswith("second"):
        count, _at = occurrence(lines, syscall, at + 1)

    config = calls.configuration(tmp_path, POOL)
    inject = "%s:error=%s:when=%d" % (syscall, "EIO" if syscall == "fsync" else "ENOSPC", count)
    done, lines = traced(CALLS, calls.environment("ADD"), config, inject)
    assert sum("INJECTED" in line for line in lines) == 1, lines
    assert calls.error(done)["code"] in (5, 11, 999)
    assert calls.held(tmp_path) == {}
    assert sorted(set(os.listdir(str(tmp_path))) - {"model", "net", "strace.log"}) == []
    assert calls.address(library.call(calls.environment("ADD"), config)) == "10.1.2.2"


# --- H6: a failing unlink is reported ------------------------------------------------------------------------------


def as_nobody(function):
    """Run a function in a child without root's rights and return what it returns, by JSON."""
    reader, feed = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.chdir("/")
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            answer = function()
        except BaseException as exc:
            answer = repr(exc)
        os.write(feed, json.dumps(answer).encode())
        os._exit(0)
    os.close(feed)
    with os.fdopen(reader, "rb") as source:
        answer = source.read()
    os.waitpid(pid, 0)
    return json.loads(answer)


@pytest.fixture
def open_dir(tmp_path_factory):
    """A data directory that everybody may enter (pytest's own are private)."""
    import tempfile

    path = tempfile.mkdtemp(prefix="nodenet-open.")
    os.chmod(path, 0o755)
    yield path
    os.chmod(os.path.join(path, "net"), 0o755)
    shutil.rmtree(path)


def test_del_reports_a_file_it_cannot_remove(open_dir, library):
    config = calls.configuration(open_dir, POOL)
    assert library.call(calls.environment("ADD"), config).rc == 0
    for name in os.listdir(os.path.join(open_dir, "net")):
        os.chmod(os.path.join(open_dir, "net", name), 0o644)
    os.chmod(os.path.join(open_dir, "net"), 0o555)

    def call():
        done = library.call(calls.environment("DEL"), config)
        return [done.rc, done.stdout, done.stderr]

    rc, stdout, _stderr = as_nobody(call)
    assert rc == 1
    error = json.loads(stdout)
    assert error["code"] == 5
    assert os.path.join(open_dir, "net", "10.1.2.2") in error["msg"]
    assert "permission denied" in error["msg"]
    assert list(calls.held(open_dir)) == ["10.1.2.2"]


# --- H12: no gateway of the set is handed out ----------------------------------------------------------------------

NEIGHBOURS = {
    "ranges": [
        [
            {"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.10", "rangeEnd": "10.1.2.12", "gateway": "10.1.2.1"},
            {"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.20", "rangeEnd": "10.1.2.21", "gateway": "10.1.2.11"},
        ]
    ]
}


def test_gateway_of_another_range_is_not_handed_out(tmp_path, library):
    config = calls.configuration(tmp_path, NEIGHBOURS)
    got = [calls.address(library.call(calls.environment("ADD", "c%d" % n), config)) for n in range(4)]
    assert got == ["10.1.2.10", "10.1.2.12", "10.1.2.20", "10.1.2.21"]
    assert "no IP addresses available" in calls.error(library.call(calls.environment("ADD", "c9"), config))["msg"]


def test_gateway_of_another_range_cannot_be_requested(tmp_path, library):
    config = calls.configuration(tmp_path, NEIGHBOURS)
    outcome = library.call(calls.environment("ADD", CNI_ARGS="IP=10.1.2.11"), config)
    assert "requested ip 10.1.2.11 is subnet's gateway" in calls.error(outcome)["msg"]
    assert calls.held(tmp_path) == {}


# --- H13: the lock is not waited for for ever ----------------------------------------------------------------------


class Holder:
    """Holds the lock of a network, as a stuck process would."""

    def __init__(self, data_dir, operation=fcntl.LOCK_EX):
        self.fd = os.open(os.path.join(str(data_dir), "net", "lock"), os.O_RDONLY)
        fcntl.flock(self.fd, operation)

    def release(self):
        os.close(self.fd)


@pytest.mark.parametrize("command", ["ADD", "DEL", "CHECK"])
def test_held_lock_ends_in_code_11(tmp_path, library, command):
    config = calls.configuration(tmp_path, POOL)
    assert library.call(calls.environment("ADD"), config).rc == 0
    before = calls.held(tmp_path)
    holder = Holder(tmp_path)
    begin = time.monotonic()
    try:
        outcome = library.call(calls.environment(command, CNI_LOCK_TIMEOUT="0.5"), config)
    finally:
        holder.release()
    assert 0.4 < time.monotonic() - begin < 5
    error = calls.error(outcome)
    assert error["code"] == 11
    assert "lock" in error["msg"]
    assert calls.held(tmp_path) == before


@pytest.mark.parametrize("command", ["ADD", "DEL"])
def test_a_shared_hold_keeps_writers_out(tmp_path, library, command):
    """Our reports read under a shared lock: nobody may write meanwhile, so writers take it exclusively."""
    config = calls.configuration(tmp_path, POOL)
    assert library.call(calls.environment("ADD"), config).rc == 0
    holder = Holder(tmp_path, fcntl.LOCK_SH)
    try:
        outcome = library.call(calls.environment(command, CNI_LOCK_TIMEOUT="0.3"), config)
    finally:
        holder.release()
    assert calls.error(outcome)["code"] == 11


def test_lock_that_becomes_free_is_taken(tmp_path, library):
    config = calls.configuration(tmp_path, POOL)
    assert library.call(calls.environment("DEL"), config).rc == 0
    holder = Holder(tmp_path)
    timer = threading.Timer(0.3, holder.release)
    timer.start()
    begin = time.monotonic()
    outcome = library.call(calls.environment("ADD", CNI_LOCK_TIMEOUT="20"), config)
    timer.join()
    assert calls.address(outcome) == "10.1.2.2"
    assert 0.2 < time.monotonic() - begin < 5


def test_waiting_is_a_blocking_flock(tmp_path, library, traced):
    """Who polls starves behind waiters that block: the wait must be one flock that sleeps in the kernel."""
    config = calls.configuration(tmp_path, POOL)
    assert library.call(calls.environment("DEL"), config).rc == 0
    holder = Holder(tmp_path)
    try:
        env = calls.environment("ADD", CNI_LOCK_TIMEOUT="1")
        done, lines = traced("flock", env, config)
    finally:
        holder.release()
    assert calls.error(done)["code"] == 11
    blocking = [line for line in lines if "LOCK_EX" in line and "LOCK_NB" not in line]
    assert blocking
    assert len(lines) < 6, "\n".join(lines)


# --- H18: an empty file of a crash is reclaimed when its address is wanted -----------------------------------------


def test_old_empty_file_is_reclaimed(tmp_path, library):
    plant(tmp_path, "10.1.2.2", "", age_s=61)
    outcome = library.call(calls.environment("ADD"), calls.configuration(tmp_path, ONE))
    assert calls.address(outcome) == "10.1.2.2"
    assert calls.held(tmp_path) == {"10.1.2.2": calls.CONTAINER + "\r\neth0"}


def test_old_empty_file_is_reclaimed_on_request(tmp_path, library):
    plant(tmp_path, "10.1.2.77", "", age_s=3600)
    outcome = library.call(calls.environment("ADD", CNI_ARGS="IP=10.1.2.77"), calls.configuration(tmp_path, POOL))
    assert calls.address(outcome) == "10.1.2.77"


@pytest.mark.parametrize("age_s", [0, 50, -3600], ids=["new", "young", "from the future"])
def test_young_empty_file_is_kept(tmp_path, library, age_s):
    path = plant(tmp_path, "10.1.2.2", "", age_s=age_s)
    outcome = library.call(calls.environment("ADD"), calls.configuration(tmp_path, ONE))
    assert "no IP addresses available" in calls.error(outcome)["msg"]
    assert path.read_bytes() == b""


def test_old_file_with_any_content_is_kept(tmp_path, library):
    plant(tmp_path, "10.1.2.2", "?", age_s=100000)
    outcome = library.call(calls.environment("ADD"), calls.configuration(tmp_path, ONE))
    assert "no IP addresses available" in calls.error(outcome)["msg"]


@pytest.mark.parametrize("command", ["DEL", "CHECK"])
def test_empty_file_is_not_touched_when_nobody_wants_it(tmp_path, library, command):
    path = plant(tmp_path, "10.1.2.2", "", age_s=100000)
    library.call(calls.environment(command), calls.configuration(tmp_path, ONE))
    assert path.exists()


# --- H19: one hold of the lock per call ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["ADD", "DEL"])
def test_the_lock_is_taken_once(tmp_path, library, command, traced):
    config = calls.configuration(tmp_path, DUAL)
    if command == "DEL":
        assert library.call(calls.environment("ADD"), config).rc == 0
    done, lines = traced("flock", calls.environment(command), config)
    assert done.rc == 0
    assert len([line for line in lines if "LOCK_EX" in line]) == 1, "\n".join(lines)


def test_failing_add_rolls_back_under_the_same_hold(tmp_path, library, traced):
    config = calls.configuration(tmp_path, {"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.8.0.0/30"}]]})
    assert library.call(calls.environment("ADD", "first"), config).rc == 0
    done, lines = traced("flock", calls.environment("ADD", "second"), config)
    assert "no IP addresses available" in calls.error(done)["msg"]
    assert len([line for line in lines if "LOCK_EX" in line]) == 1, "\n".join(lines)
    assert sorted(calls.held(tmp_path)) == ["10.1.2.2", "10.8.0.2"]


# --- what a call must not depend on --------------------------------------------------------------------------------


def test_variables_of_the_calling_process_do_not_count(tmp_path, library, monkeypatch):
    """The library is called by modules, too: only the variables that are handed over may matter."""
    monkeypatch.setenv("CNI_COMMAND", "DEL")
    monkeypatch.setenv("CNI_ARGS", "IP=10.1.2.9")
    monkeypatch.setenv("CNI_IFNAME", "net9")
    config = calls.configuration(tmp_path, POOL)
    assert calls.address(library.call(calls.environment("ADD"), config)) == "10.1.2.2"
    assert calls.held(tmp_path)["10.1.2.2"].endswith("\r\neth0")


def test_fifo_in_the_directory_does_not_hang(tmp_path, library):
    """Go hangs in the lock for ever when somebody makes a FIFO there."""
    (tmp_path / "net").mkdir()
    os.mkfifo(str(tmp_path / "net" / "10.1.2.2"))
    os.mkfifo(str(tmp_path / "net" / "last_reserved_ip.0"))
    begin = time.monotonic()
    outcome = library.call(calls.environment("ADD"), calls.configuration(tmp_path, POOL))
    assert time.monotonic() - begin < 5
    assert calls.address(outcome) == "10.1.2.3"


def test_walk_of_a_full_big_range_is_quick(tmp_path, library):
    """Go takes seconds for a full /16, address by address; nobody may hold the lock that long."""
    folder = tmp_path / "net"
    folder.mkdir()
    third = 0
    for number in range(2, 16383):
        third, fourth = divmod(number, 256)
        (folder / ("10.4.%d.%d" % (third, fourth))).write_bytes(b"x\r\neth0")
    begin = time.monotonic()
    outcome = library.call(calls.environment("ADD"), calls.configuration(tmp_path, {"subnet": "10.4.0.0/18"}))
    assert "no IP addresses available" in calls.error(outcome)["msg"]
    assert time.monotonic() - begin < 5


def test_the_process_matches_the_library(collection_path):
    """plugin_process.py, which the tests above trace, is the same plugin."""
    done = subprocess.run(
        [*PLUGIN, collection_path], env={"CNI_COMMAND": "VERSION"}, stdout=subprocess.PIPE, check=True
    )
    assert json.loads(done.stdout)["cniVersion"] == "1.1.0"
