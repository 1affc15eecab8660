# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What only a process can show: streams that are closed or gone, signals, what is loaded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import calls
import pytest
from loading import loaded

POOL = {"subnet": "10.1.2.0/24"}


def start(executable, env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options):
    return subprocess.Popen([executable], env=env, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, **options)


def test_stdin_is_not_read_where_it_is_not_needed(executable):
    """A runtime may leave the pipe open: VERSION and a call without a command answer at once."""
    for env in ({"CNI_COMMAND": "VERSION"}, {}):
        process = start(executable, env)
        try:
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.communicate()


def test_stdin_is_read_to_its_end_through_a_slow_pipe(tmp_path, executable):
    config = calls.configuration(tmp_path, POOL)
    process = start(executable, calls.environment("ADD"))
    for start_at in range(0, len(config), 20):
        process.stdin.write(config[start_at : start_at + 20])
        process.stdin.flush()
        time.sleep(0.005)
    stdout, stderr = process.communicate(b" " * 3_000_000, 20)
    assert (process.returncode, stderr) == (0, b"")
    assert json.loads(stdout)["ips"][0]["address"] == "10.1.2.2/24"


def test_stdin_that_cannot_be_read(tmp_path, executable):
    writer = os.open(str(tmp_path / "file"), os.O_WRONLY | os.O_CREAT)
    try:
        process = start(executable, calls.environment("ADD"), stdin=writer)
        stdout, stderr = process.communicate(timeout=20)
    finally:
        os.close(writer)
    assert (process.returncode, stderr) == (1, b"")
    assert json.loads(stdout)["code"] == 5
    assert json.loads(stdout)["msg"].startswith("error reading from stdin: ")


@pytest.mark.parametrize("how", ["closed pipe", "full device", "closed"])
def test_a_result_that_cannot_be_printed_is_taken_back(tmp_path, executable, how):
    """H16: the runtime never learns of the address, so nobody would ever release it."""
    config = calls.configuration(tmp_path, {"ranges": [[POOL], [{"subnet": "fd00:1::/64"}]]})
    reader, writer = os.pipe()
    os.close(reader)
    options = {}
    if how == "full device":
        os.close(writer)
        writer = os.open("/dev/full", os.O_WRONLY)
    elif how == "closed":
        options["preexec_fn"] = lambda: os.close(1)
    try:
        process = start(executable, calls.environment("ADD"), stdout=writer, **options)
        _stdout, stderr = process.communicate(config, 20)
    finally:
        os.close(writer)
    assert process.returncode == 1
    assert b"cannot write the result: " in stderr
    assert calls.held(tmp_path) == {}
    process = start(executable, calls.environment("ADD"))
    stdout, _stderr = process.communicate(config, 20)
    assert process.returncode == 0, stdout


def test_what_an_earlier_call_reserved_is_not_taken_back(tmp_path, executable):
    config = calls.configuration(tmp_path, POOL)
    assert start(executable, calls.environment("ADD")).communicate(config, 20)[1] == b""
    before = calls.held(tmp_path)
    full = os.open("/dev/full", os.O_WRONLY)
    env = dict(calls.environment("ADD"), CNI_ARGS="IP=10.1.2.77")
    try:
        process = start(executable, env, stdout=full)
        process.communicate(config, 20)
    finally:
        os.close(full)
    assert process.returncode == 1
    assert calls.held(tmp_path) == before


def test_an_interrupt_ends_it_without_a_traceback(executable):
    process = start(executable, calls.environment("ADD"))
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout, stderr) == (-signal.SIGINT, b"", b"")


def test_it_loads_only_what_the_command_needs(tmp_path, executable):
    """Loading is what a call costs; no package of the interpreter that is large, and no part of ours for nothing."""
    config = calls.configuration(tmp_path, POOL)
    by_command = {
        command: loaded(executable, calls.environment(command), config) for command in ("ADD", "CHECK", "DEL")
    }
    for foreign, _ours in by_command.values():
        assert foreign <= {"__future__", "_json", "_signal", "_stat", "errno", "fcntl", "gc", "posix", "time"}, foreign
    ours = {command: names for command, (_foreign, names) in by_command.items()}
    assert {"adding", "allocator", "results", "newfile"} <= ours["ADD"]
    assert not {"upkeep", "resolvconf", "idforms", "args", "beside"} & ours["ADD"]
    assert not {"adding", "allocator", "results", "newfile", "upkeep"} & ours["CHECK"]
    assert not {"config", "ranges", "adding", "newfile", "upkeep"} & ours["DEL"]
    for names in ours.values():
        assert not {"sticky", "lockwait"} & names


def test_what_a_pod_costs(tmp_path, executable):
    """Where a runtime names the pod, its name is read only in a network with sticky addresses."""
    args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=db-0"
    for sticky in (False, True):
        config = calls.configuration(tmp_path, dict(POOL, stickyStatic=sticky))
        env = calls.environment("ADD", f"c{int(sticky)}", CNI_ARGS=args)
        _foreign, names = loaded(executable, env, config)
        assert "args" in names
        assert ("sticky" in names) is sticky
