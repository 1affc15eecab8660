# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Upgrades of plugins that are being executed and looked at without pause."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import embedded, executables, files
from ansible_collections.nodenet.cni.tests.unit import plugin_files
from ansible_collections.nodenet.cni.tests.unit.plugin_files import Node

ROUNDS = 10 if os.environ.get("NODENET_SOAK") else 1
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(executables.__file__)))
PYTHON = os.path.realpath(sys.executable)
NAME = "host-local"

WATCH = """
import hashlib, json, os, subprocess, sys, threading
path, known, stop = sys.argv[1], set(sys.argv[2].split(",")), sys.argv[3]
wrong, seen, counts = [], set(), {"looks": 0, "runs": 0}


def look():
    while not os.path.exists(stop):
        try:
            with open(path, "rb") as stream:
                digest = hashlib.sha256(stream.read()).hexdigest()
            seen.add(digest)
            if digest not in known:
                wrong.append("neither the old nor the new file: " + digest)
        except OSError as exc:
            wrong.append("look: %s" % exc)
        counts["looks"] += 1


thread = threading.Thread(target=look)
thread.start()
while not os.path.exists(stop):
    try:
        done = subprocess.run([path, "0"], env={"CNI_COMMAND": "VERSION"}, capture_output=True)
        if done.returncode:
            wrong.append("run: %d %r" % (done.returncode, done.stderr[-300:]))
    except OSError as exc:
        wrong.append("run: %s" % exc)
    counts["runs"] += 1
    if counts["runs"] == 1:
        print("ready", flush=True)
thread.join()
print(json.dumps([wrong[:5], len(wrong), len(seen), counts]))
"""


@pytest.fixture
def node(monkeypatch):
    monkeypatch.setattr(executables, "node_python", lambda: PYTHON)
    # a path as short as on a node: a launcher whose path is too long for a first line is read by Python itself
    with tempfile.TemporaryDirectory(prefix="cni-") as top:
        yield Node(Path(top))


def sources(more):
    texts = executables.collect_sources(ROOT, [NAME])
    texts["cni/versions.py"] += more
    return texts


def test_no_call_fails_and_no_look_finds_less_than_all_of_it(node):
    # Real programs, told apart by what stands behind their end; they end with 0, as embedded ones do for VERSION.
    program = Path("/bin/sleep").read_bytes()
    contents = [program + b"1", program + b"2"]
    archives = [
        plugin_files.tar(node.out / f"cni-v{number}.0.0.tgz", {NAME: content})
        for number, content in enumerate(contents)
    ]
    own = [sources("# one\n"), sources("# two\n")]
    for texts in own:
        version = executables.version_hash(texts, PYTHON)
        contents.append(executables.launcher(NAME, PYTHON, str(node.bin), version))
    known = [hashlib.sha256(content).hexdigest() for content in contents]
    node.install(archives[0])
    steps = [
        lambda: node.install(archives[1]),
        node.put_back,
        lambda: node.install(own=[NAME], sources=embedded.pack(own[0])),
        lambda: node.install(own=[NAME], sources=embedded.pack(own[1])),
        node.put_back,
        lambda: node.install(archives[0]),
    ]
    stop = node.out / "stop"
    command = [sys.executable, "-c", WATCH, str(node.bin / NAME), ",".join(known), str(stop)]
    events = plugin_files.Events(node.bin)
    # A process of its own: a child of this one would inherit the files that are being written, which makes them busy.
    with subprocess.Popen(command, stdout=subprocess.PIPE, universal_newlines=True) as watch:
        try:
            assert watch.stdout.readline() == "ready\n"
            for _round in range(ROUNDS):
                for step in steps:
                    assert step()["changed"] is True
                    # calls in flight are promised the code of one run before, not of two
                    time.sleep(0.5)
        finally:
            stop.write_text("")
        wrong, count, seen, counts = json.loads(watch.stdout.read())
    happened = [event for name, event in events.read() if name == NAME]
    events.close()
    assert (wrong, count) == ([], 0)
    assert happened == ["moved to"] * len(steps) * ROUNDS
    assert seen == len(known)
    assert counts["looks"] > 200 * ROUNDS
    assert counts["runs"] > 20 * ROUNDS
    assert not [name for name in os.listdir(str(node.bin)) if name.startswith(files.TEMPORARY_PREFIX)]


@pytest.mark.parametrize("change", ["absent", "replaced"])
def test_call_in_flight_ends_well_when_its_plugin_goes(node, change):
    node.install(own=[NAME], sources=embedded.pack(sources("")))
    names = ("CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH")
    environment = dict(zip(names, ("ADD", "example", "/none", "eth0", str(node.bin))))
    ipam = {"type": NAME, "dataDir": str(node.out / "data"), "ranges": [[{"subnet": "10.1.2.0/24"}]]}
    config = json.dumps({"cniVersion": "1.0.0", "name": "example", "type": "bridge", "ipam": ipam})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([str(node.bin / NAME)], env=environment, **pipes) as call:
        # More than a pipe holds: when it is written, the plugin runs and reads. Most of its code it imports afterwards.
        call.stdin.write(b" " * 500000)
        call.stdin.flush()
        if change == "absent":
            assert node.remove()["removed"] == [NAME]
        else:
            assert node.install(node.archive({NAME: "1"}), keep_previous=False)["changed"] is True
        assert len(executables.versions(str(node.bin))) == 1
        call.stdin.write(config.encode())
        call.stdin.close()
        answer = json.loads(call.stdout.read())
        assert call.wait(20) == 0
    assert answer["ips"][0]["address"] == "10.1.2.2/24"
    if change == "absent":
        assert node.remove()["changed"] is False
        assert os.listdir(str(node.bin)) == []
