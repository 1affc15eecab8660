# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A power cut at every step of ADD and DEL, a full disk and one that became read-only, on an ext4 of its own.

The file system is told to drop everything that has not reached the disk, and mounted again. What was acknowledged is
there, no address file is empty, and the next calls work. All of it happens in a mount namespace of a child process, so
nothing stays mounted whatever becomes of the test.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import signal
import struct
import subprocess
import traceback
from pathlib import Path

import calls
import faults
import pytest
import reporting
from crash_scenarios import SCENARIOS, environment, judge, steps_of
from plugin_drivers import CommandDriver

CLONE_NEWNS = 0x20000
FS_IOC_SHUTDOWN = 0x8004587D
WITHOUT_THE_JOURNAL = 2
SAMPLE = 10
USUAL = ["the first ADD", "ADD among others", "ADD over an empty file", "DEL"]
BY_NAME = {one.name: one for one in SCENARIOS}


class Disk:
    """An ext4 in a file, mounted for this process and its children only."""

    def __init__(self, image: str, mountpoint: str) -> None:
        self.image = image
        self.mountpoint = mountpoint

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", self.image, self.mountpoint], check=True, capture_output=True)

    def cut(self) -> None:
        """Drop what is not on disk yet, as a power cut does, and start again."""
        fd = os.open(self.mountpoint, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", WITHOUT_THE_JOURNAL))
        finally:
            os.close(fd)
        self.unmount()
        self.mount()

    def unmount(self) -> None:
        subprocess.run(["umount", self.mountpoint], check=True, capture_output=True)


def why_not() -> str:
    """Say why this machine cannot do it, the empty text if it can."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [tool for tool in ("mkfs.ext4", "mount", "umount") if not shutil.which(tool, path=search_path())]
    if missing:
        return "no %s on this machine" % ", ".join(missing)
    if not os.path.exists("/dev/loop-control"):
        return "no loop devices on this machine"
    return ""


def search_path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


@pytest.fixture
def on_a_disk(tmp_path):
    """Returns a function that calls another one with a fresh Disk, in a child with a mount namespace of its own."""
    why = why_not()
    image = str(tmp_path / "image")
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    if not why:
        with open(image, "wb") as stream:
            stream.truncate(32 << 20)
        subprocess.run(
            [shutil.which("mkfs.ext4", path=search_path()), "-q", "-F", image], check=True, capture_output=True
        )

    def skip(reason):
        reason = "not run: power cut: " + reason
        if reason not in reporting.LINES:
            reporting.note(reason)
        pytest.skip(reason)

    def call(function, *arguments):
        code, said = in_a_child(Disk(image, str(mountpoint)), function, arguments)
        if code == 2:
            skip("no loop device or mount to be had: " + said.strip().splitlines()[-1])
        assert code == 0, said
        return said

    if why:
        skip(why)
    return call


def in_a_child(disk, function, arguments):
    """Return the exit code and the text of a child: 0 and what *function* returned, 1 or 2 and a traceback."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        code, said = 2, ""
        try:
            os.close(reader)
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.unshare(CLONE_NEWNS):
                raise OSError(ctypes.get_errno(), "unshare")
            subprocess.run(["mount", "--make-rprivate", "/"], check=True, capture_output=True)
            disk.mount()
            code = 1
            said = function(disk, *arguments)
            code = 0
            disk.unmount()
        except BaseException as error:
            stderr = getattr(error, "stderr", None) or b""
            said = traceback.format_exc() + stderr.decode("utf-8", "replace")
        finally:
            with open(writer, "wb") as stream:
                stream.write(said.encode("utf-8", "backslashreplace"))
            os._exit(code)
    os.close(writer)
    try:
        with open(reader, "rb") as stream:
            said = stream.read().decode()
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        _pid, status = os.waitpid(pid, 0)
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), said


@pytest.mark.parametrize("name", [*USUAL, "sticky ADD", "sticky DEL"])
def test_a_power_cut_at_any_step(tmp_path, executable, library, on_a_disk, name):
    done = on_a_disk(cut_at_each, BY_NAME[name], executable, library, str(tmp_path / "log"))
    reporting.note("power cuts in %s: %s, the last after the answer" % (name, done))


def cut_at_each(disk, scenario, executable, library, log):
    # recorded here, as every file system has an order of its own for the names in a directory
    steps, _always = steps_of(scenario, executable, library, Path(disk.mountpoint))
    if reporting.soak_factor() == 1:
        changing = [step for step in steps if step.name in ("mkdir", "linkat", "unlinkat", "fsync", "ftruncate")]
        steps = changing[-SAMPLE:]
    go = CommandDriver([reporting.GO_PLUGIN], "go") if os.access(reporting.GO_PLUGIN, os.X_OK) else library
    failures = []
    for number, step in enumerate([*steps, None]):
        base = os.path.join(disk.mountpoint, "run%d" % number)
        scenario.prepare(base, library)
        if scenario.empty or scenario.reserved:
            os.sync()
        env = environment(scenario.command, "victim")
        if step is None:
            outcome = faults.run(executable, env, scenario.config, log)
            assert outcome.rc == 0, outcome
        else:
            outcome = faults.run(executable, env, scenario.config, log, step.injection(faults.KILL))
            faults.assert_fired(step, faults.KILL, log, base, outcome)
        disk.cut()
        try:
            judge(scenario, step, outcome, [library, go][number % 2])
        except AssertionError as error:
            failures.append("cut %s: %s" % ("at %s" % step if step else "after the answer", error))
    assert not failures, "\n".join(failures)
    return str(len(steps) + 1)


@pytest.mark.parametrize(
    ("which", "left"),
    [
        ("all", {}),
        ("the last", {"10.9.0.2": "victim\r\neth0"}),
        ("of files", {"10.9.0.2": "", "fd00:9::2": ""}),
        ("none", {"10.9.0.2": "victim\r\neth0", "fd00:9::2": "victim\r\neth0"}),
    ],
)
def test_the_cut_is_one(tmp_path, executable, library, on_a_disk, which, left):
    """Were a file or the directory not synced, what was acknowledged would be gone: the tests above can fail."""
    scenario = BY_NAME["the first ADD"]
    steps, _always = steps_of(scenario, executable, library, tmp_path)
    syncs = [step for step in steps if step.name == "fsync"]
    if which == "of files":
        syncs = [step for step in syncs if step.what[0].endswith("#")]
        assert len(syncs) == 2
    first, last = {"all": (1, 9), "the last": (syncs[-1].number,) * 2, "none": (99, 99)}.get(which) or [
        step.number for step in syncs
    ]
    skipped = "fsync:retval=0:when=%d..%d+%d" % (first, last, max(last - first, 1) if which == "of files" else 1)
    on_a_disk(cut_without_sync, scenario, executable, library, str(tmp_path / "log"), skipped, left)


def cut_without_sync(disk, scenario, executable, library, log, skipped, left):
    scenario.prepare(os.path.join(disk.mountpoint, "run"), library)
    outcome = faults.run(executable, calls.environment("ADD", "victim"), scenario.config, log, skipped)
    assert outcome.rc == 0, outcome
    disk.cut()
    held = calls.held(scenario.data_dir)
    assert held == left, held
    return "ok"


def test_a_full_and_a_read_only_disk(executable, library, on_a_disk):
    """ADD says why it cannot, and changes nothing; DEL works on a full disk; all is well when there is room again."""
    on_a_disk(fill_the_disk, executable, BY_NAME["DEL"], library)


def fill_the_disk(disk, executable, scenario, library):
    ours = CommandDriver([executable], "ours")
    scenario.prepare(os.path.join(disk.mountpoint, "run"), library)
    before = calls.held(scenario.data_dir)
    os.sync()
    subprocess.run(["mount", "-o", "remount,ro", disk.mountpoint], check=True, capture_output=True)
    for command, rc in (("ADD", 1), ("DEL", 1), ("CHECK", 0)):
        done = ours.call(calls.environment(command, "new" if command == "ADD" else "victim"), scenario.config)
        assert done.rc == rc, done
        assert not rc or "read-only file system" in calls.error(done)["msg"], done
    subprocess.run(["mount", "-o", "remount,rw", disk.mountpoint], check=True, capture_output=True)
    filler = os.path.join(disk.mountpoint, "filler")
    fill(filler)
    for _twice in range(2):
        done = ours.call(calls.environment("ADD", "new"), scenario.config)
        assert "no space left on device" in calls.error(done)["msg"], done
        held = calls.held(scenario.data_dir)
        assert held == before, held
    assert ours.call(calls.environment("CHECK", "victim"), scenario.config).rc == 0
    done = ours.call(calls.environment("DEL", "victim"), scenario.config)
    assert done.rc == 0, done
    os.unlink(filler)
    done = ours.call(calls.environment("ADD", "new"), scenario.config)
    assert done.rc == 0, done
    disk.cut()
    held = calls.held(scenario.data_dir)
    assert sorted(held.values()) == sorted([*scenario.others().values(), "new\r\neth0", "new\r\neth0"]), held
    return "ok"


def fill(path):
    """Write a file until the disk is full to its last block."""
    with open(path, "wb", buffering=0) as stream:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    stream.write(b"x" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                os.fsync(stream.fileno())
