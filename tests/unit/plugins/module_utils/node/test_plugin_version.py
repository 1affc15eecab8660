# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import plugin_version
from ansible_collections.nodenet.cni.tests.unit import plugin_files

DISTRIBUTION = "/usr/lib/cni/bridge"


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("CNI bridge plugin v1.5.1\nCNI protocol versions supported: 0.1.0, 1.0.0\n", "v1.5.1"),
        ("CNI bridge plugin version unknown\nCNI protocol versions supported: 0.1.0, 1.0.0\n", None),
        ("CNI Plugin flannel version v1.2.0 (linux/amd64) commit 6464faa built on 2023-08-02\n", "v1.2.0"),
        ("example version:v4.1.0-rc.1(clean), commit:abc\n", "v4.1.0-rc.1"),
        ("Example CNI plugin 1.14.2 abcdef go version go1.20.8 linux/amd64\n", "1.14.2"),
        ("3.27\n", "3.27"),
        ("CNI protocol versions supported: 1.0.0\n", None),
        ("", None),
        ("address 10.1.2.3 in use\n", None),
    ],
)
def test_release(text, release):
    assert plugin_version.release_in(text) == release


def plugin(tmp_path, text):
    return plugin_files.write(tmp_path / "plugin", ("#!/bin/sh\n" + text + "\n").encode())


def test_answer(tmp_path):
    answer = plugin_version.ask(plugin_files.write(tmp_path / "plugin", plugin_files.script("v1.5.1")))
    assert (answer.release, answer.cni_versions, answer.problem) == ("v1.5.1", ["0.4.0", "1.0.0"], "")


def test_number_of_starts(tmp_path):
    count = f'echo "$CNI_COMMAND" >> {tmp_path}/starts\n'
    assert plugin_version.ask(plugin(tmp_path, count + "exec /bin/sh " + talker(tmp_path))).release == "v1.5.1"
    assert (tmp_path / "starts").read_text() == "\n"
    # One that says nothing without a command is asked for what every plugin has to answer.
    answer = """[ "$CNI_COMMAND" != VERSION ] || echo '{"supportedVersions":["1.0.0"]}'"""
    assert plugin_version.ask(plugin(tmp_path, count + answer)).cni_versions == ["1.0.0"]
    assert (tmp_path / "starts").read_text() == "\n\nVERSION\n"


def talker(tmp_path):
    return plugin_files.write(tmp_path / "talker", plugin_files.script("v1.5.1"))


def test_plugin_that_waits_for_a_command(tmp_path):
    text = """[ -n "$CNI_COMMAND" ] || sleep 60\necho '{"supportedVersions":["1.0.0"]}'"""
    answer = plugin_version.ask(plugin(tmp_path, text), timeout_s=0.5)
    assert (answer.release, answer.cni_versions, answer.problem) == (None, ["1.0.0"], "")


@pytest.mark.parametrize(
    "line", ["CNI protocol versions supported: ", "CNI protocol versions supported: all", "versions supported: 1.0.0"]
)
def test_line_that_lists_no_versions_is_no_answer(tmp_path, line):
    answer = plugin_version.ask(plugin(tmp_path, f"echo '{line}'"))
    assert answer.cni_versions == []
    assert answer.problem.startswith("exit code 0, it says ")


def test_plugin_sees_the_request_and_no_foreign_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("CNI_NETNS", "/proc/1/ns/net")
    monkeypatch.setenv("CNI_ARGS", "x=y")
    text = f"""[ -n "$CNI_COMMAND" ] || exit 0
cat > {tmp_path}/stdin; env | grep CNI_ > {tmp_path}/env; pwd > {tmp_path}/cwd
echo '{{"supportedVersions":["1.0.0"]}}'"""
    assert plugin_version.ask(plugin(tmp_path, text)).problem == ""
    assert (tmp_path / "stdin").read_text() == '{"cniVersion":"1.0.0"}'
    assert (tmp_path / "env").read_text() == "CNI_COMMAND=VERSION\n"
    assert (tmp_path / "cwd").read_text() == "/\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("exit 3", "exit code 3, it says nothing"),
        ("echo oops >&2; exit 3", "exit code 3, it says 'oops'"),
        ("echo 'not json'", "exit code 0, it says 'not json'"),
        ("echo '{}'", "exit code 0, it says '{}'"),
        ("echo '[]'", "exit code 0, it says '[]'"),
        ("""echo '{"supportedVersions":[]}'""", """exit code 0, it says '{"supportedVersions":[]}'"""),
        ("""echo '{"supportedVersions":["1.0.0"]}'; exit 1""", "exit code 1, it says "),
        ("kill -SEGV $$", "signal 11, it says nothing"),
        ("printf '\\377'", "exit code 0, it says "),
    ],
)
def test_no_answer(tmp_path, text, problem):
    answer = plugin_version.ask(plugin(tmp_path, text))
    assert (answer.release, answer.cni_versions) == (None, [])
    assert answer.problem.startswith(problem)


def test_what_cannot_be_executed(tmp_path):
    for content, mode in ((b"#!/none/interpreter\n", 0o755), (plugin_files.script(), 0o644)):
        path = plugin_files.write(tmp_path / "plugin", content, mode)
        assert plugin_version.ask(path).problem.startswith("it cannot be executed (")


def test_hanging_plugin_is_ended_with_its_children(tmp_path):
    text = f"sleep 60 & echo $! > {tmp_path}/child; wait"
    started = time.monotonic()
    answer = plugin_version.ask(plugin(tmp_path, text), timeout_s=0.5)
    assert time.monotonic() - started < 5
    assert answer.problem == "no answer within 0.5 s"
    child = int((tmp_path / "child").read_text())
    assert ended(child)


def test_child_left_behind_holds_nobody_up(tmp_path):
    text = f"""echo '{{"supportedVersions":["1.0.0"]}}'; [ -n "$CNI_COMMAND" ] || exit 0
sleep 60 & echo $! > {tmp_path}/child"""
    started = time.monotonic()
    assert plugin_version.ask(plugin(tmp_path, text)).problem == ""
    assert time.monotonic() - started < 5
    assert ended(int((tmp_path / "child").read_text()))


def ended(pid):
    for _attempt in range(100):
        try:
            with open(f"/proc/{pid}/stat") as stream:
                if stream.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(not os.path.exists(DISTRIBUTION), reason="not run: needs the Go plugins in /usr/lib/cni")
def test_go_plugin_of_the_distribution():
    answer = plugin_version.ask(DISTRIBUTION)
    assert answer.problem == ""
    assert "1.0.0" in answer.cni_versions
