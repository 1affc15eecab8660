# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import spawn

ENVIRON = {"PATH": os.environ["PATH"]}


def running(pid):
    """Whether the process is there and no corpse that its new parent has not yet taken away."""
    try:
        with open("/proc/%d/stat" % pid) as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(path, seconds=5):
    """Wait for the end of the process whose id stands in a file."""
    pid = int(path.read_text())
    deadline = time.monotonic() + seconds
    while running(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_input_output_environment_and_status(plugin):
    path = plugin("p", 'cat; echo "$WORD" >&2; exit 3')
    ended = spawn.run(path, dict(ENVIRON, WORD="caf\udce9"), b"hello")
    assert (ended.status, ended.stdout, ended.stderr) == (3, b"hello", b"caf\xe9\n")
    assert not ended.overdue
    assert not ended.stopped


def test_more_than_pipes_hold(plugin):
    data = os.urandom(1 << 20)
    ended = spawn.run(plugin("p", "cat"), ENVIRON, data)
    assert ended.stdout == data


def test_output_on_both_before_input_is_read(plugin):
    script = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; wc -c"
    ended = spawn.run(plugin("p", script), ENVIRON, b"x" * 300000, 20)
    assert len(ended.stderr) == 300000
    assert ended.stdout[300000:].strip() == b"300000"


def test_input_that_nobody_reads(plugin):
    ended = spawn.run(plugin("p", "exit 0"), ENVIRON, b"x" * (1 << 20))
    assert ended.status == 0


def test_a_signal_is_a_negative_status(plugin):
    assert spawn.run(plugin("p", "kill -KILL $$"), ENVIRON, b"").status == -signal.SIGKILL


def test_no_descriptor_and_no_ignored_signal_is_inherited(plugin):
    held = os.open(os.devnull, os.O_RDONLY)
    os.dup2(held, 177, inheritable=False)
    ended = spawn.run(plugin("p", "ls /proc/$$/fd | tr '\\n' ' '; grep SigIgn /proc/$$/status"), ENVIRON, b"")
    os.close(held)
    os.close(177)
    numbers, ignored = ended.stdout.decode().split("SigIgn:")
    assert {"0", "1", "2"} <= set(numbers.split())
    assert "177" not in numbers.split()
    assert int(ignored, 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_the_time_limit_ends_all_that_was_started(plugin):
    path = plugin("p", 'sleep 60 & echo $! >"$RECORD/child"; echo partly; wait')
    started = time.monotonic()
    ended = spawn.run(path, ENVIRON, b"", time_limit=0.5)
    assert ended.overdue
    assert ended.stdout == b"partly\n"
    assert 0.4 < time.monotonic() - started < 5
    assert gone(plugin.record / "child")


def test_an_endless_printer_meets_the_time_limit(plugin):
    ended = spawn.run(plugin("p", "exec yes"), ENVIRON, b"", time_limit=0.5)
    assert ended.overdue
    assert len(ended.stdout) <= 1 << 24


def test_one_that_closes_its_output_meets_the_time_limit(plugin):
    ended = spawn.run(plugin("p", "exec >&- 2>&-; exec sleep 60"), ENVIRON, b"", time_limit=0.3)
    assert ended.overdue


def test_a_stop_ends_it(plugin):
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 3

    ended = spawn.run(plugin("p", "exec sleep 60"), ENVIRON, b"", 30, stop)
    assert ended.stopped
    assert not ended.overdue


@pytest.mark.parametrize("alone", [False, True])
def test_what_it_leaves_behind_does_not_hold_us_up(plugin, alone):
    path = plugin("p", 'sleep 60 & echo $! >"$RECORD/child"; echo done')
    started = time.monotonic()
    ended = spawn.run(path, ENVIRON, b"", 30, alone=alone)
    assert (ended.status, ended.stdout) == (0, b"done\n")
    assert time.monotonic() - started < 5
    if alone:
        assert gone(plugin.record / "child")
    else:
        pid = int((plugin.record / "child").read_text())
        assert running(pid)
        os.kill(pid, signal.SIGKILL)


def test_what_cannot_be_executed(plugin, tmp_path):
    path = plugin("p", "exit 0")
    os.chmod(path, 0o644)
    with pytest.raises(PermissionError):
        spawn.run(path, ENVIRON, b"")
    with pytest.raises(FileNotFoundError):
        spawn.run(str(tmp_path / "none"), ENVIRON, b"")
    before = len(os.listdir("/proc/self/fd"))
    for _attempt in range(3):
        with pytest.raises(FileNotFoundError):
            spawn.run(str(tmp_path / "none"), ENVIRON, b"")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_program_that_is_being_written_is_tried_again(tmp_path):
    """As the executable of a plugin while somebody copies over it."""
    path = tmp_path / "p"
    path.write_bytes(Path("/bin/true").read_bytes())
    path.chmod(0o755)
    script = "import sys, time; stream = open(sys.argv[1], 'ab'); print('open', flush=True); time.sleep(0.7)"
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"open\n"
        assert spawn.run(str(path), ENVIRON, b"").status == 0
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"open\n"
        with pytest.raises(OSError, match="Text file busy"):
            spawn.run(str(path), ENVIRON, b"", time_limit=0.5)


def test_children_whose_end_a_parent_wanted_ignored(plugin):
    """Some runtimes start plugins with SIGCHLD ignored; then the kernel would keep the exit status from us."""
    path = plugin("p", "exit 3")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert spawn.run(path, ENVIRON, b"").status == 3
    finally:
        signal.signal(signal.SIGCHLD, before)
