# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that are killed at random points: what is in the bin directory is whole, and the next run comes to the end."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import embedded, executables, files
from ansible_collections.nodenet.cni.tests.unit import plugin_files
from ansible_collections.nodenet.cni.tests.unit.plugin_files import Node

SOAK = bool(os.environ.get("NODENET_SOAK"))
KILLS = 30 if SOAK else 5
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(executables.__file__)))

# Dies before the operation on files of that number, as Python reports them to audit hooks; prints how many there were.
PROGRAM = """
import json, os, signal, sys
from ansible_collections.nodenet.cni.plugins.module_utils.node import binaries, executables, put_back
function, places, options, last = json.loads(sys.argv[1])
executables.node_python = lambda: os.path.realpath(sys.executable)
if "own" in options and function == "install":
    with open(options["sources"]) as stream:
        options["sources"] = stream.read()
seen = 0


def hook(event, _arguments):
    global seen
    if event == "open" or event.startswith("os."):
        seen += 1
        if seen == last:
            os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(hook)
calls = {"install": binaries.install, "remove": binaries.remove, "put_back": put_back.put_back}
calls[function](*places, **options)
print(seen)
"""


class Killed(Node):
    """A node whose runs are processes of their own."""

    def run(self, function, last=0, **options):
        """Run to the end, or until killed before operation number *last*; returns the number of operations or None."""
        arguments = json.dumps([function, [str(self.bin), str(self.state)], options, last])
        done = subprocess.run([sys.executable, "-c", PROGRAM, arguments], stdout=subprocess.PIPE, check=False)
        assert done.returncode in (0, -signal.SIGKILL if last else 0)
        return int(done.stdout) if done.returncode == 0 else None

    def look(self):
        """What a runtime can find: {name: content or target of a link}, without the code of embedded plugins."""
        found = {}
        for name in os.listdir(str(self.bin)) if self.bin.exists() else ():
            path = self.bin / name
            if path.is_symlink():
                found[name] = os.readlink(str(path))
            elif path.is_file():
                found[name] = (path.read_bytes(), path.stat().st_mode & 0o7777)
        return found

    def kept(self):
        folder = self.state / "previous"
        return sorted(os.listdir(str(folder))) if folder.exists() else []

    def age_links(self):
        """Let the temporary links of a killed run be old enough to be taken for that."""
        for path in self.bin.iterdir():
            if path.is_symlink() and path.name.startswith(files.TEMPORARY_PREFIX):
                os.utime(str(path), (time.time() - 3600,) * 2, follow_symlinks=False)

    def save(self, place):
        shutil.copytree(str(self.top), str(place), symlinks=True)

    def restore(self, place):
        shutil.rmtree(str(self.top))
        shutil.copytree(str(place), str(self.top), symlinks=True)


def own(node, more):
    """Options for the embedded plugin; its sources as they are now, and another release of them with *more*."""
    sources = executables.collect_sources(ROOT, ["host-local"])
    sources["cni/versions.py"] += f"# {more}\n"
    (node.out / more).write_text(embedded.pack(sources))
    return {"own": ["host-local"], "sources": str(node.out / more)}


def prepare(node):
    """The state before: somebody's link and file, our first version, and what the scenarios install."""
    node.bin.mkdir()
    (node.bin / "ptp").symlink_to("../../elsewhere")
    node.put("calico", "1")
    first = node.archive({"bridge": "1", "sbr": "1", "vlan": "1"}, "cni-v1.0.0.tgz")
    second = node.archive({"bridge": "2", "ptp": "2", "tap": "2", "vlan": "1"}, "cni-v2.0.0.tgz")
    return dict(own(node, "first"), src=first), dict(own(node, "second"), src=second)


SCENARIOS = {
    # what is run before, what is killed and run again, what stays when all is removed in the end
    "first": ([], "install", {"calico", "ptp"}),
    "upgrade": (["first"], "install", {"calico"}),
    "back": (["first", "second"], "put_back", {"calico", "ptp"}),
    "absent": (["first", "second"], "remove", {"calico"}),
}


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
def test_killed_run_leaves_whole_files_and_the_next_one_finishes(tmp_path, scenario):
    before, function, foreign = SCENARIOS[scenario]
    node, saved = Killed(tmp_path), tmp_path / "saved"
    installs = dict(zip(("first", "second"), prepare(node)))
    for name in before:
        node.run("install", **installs[name])
    options = installs["second" if before else "first"] if function == "install" else {}
    node.save(saved)
    old = node.look()
    steps = node.run(function, **options)
    new, kept = node.look(), node.kept()
    assert new != old
    seed = random.randrange(1 << 30) if SOAK else 4
    points = random.Random(seed)
    reached = 0
    for last in [points.randint(1, steps) for _number in range(KILLS)]:
        where = f"seed {seed}, operation {last} of {steps}"
        node.restore(saved)
        events = plugin_files.Events(node.bin)
        reached += node.run(function, last, **options) is None
        between = node.look()
        for name in set(old) | set(new) | set(between):
            if not name.startswith(files.TEMPORARY_PREFIX):
                assert between.get(name) in (old.get(name), new.get(name)), (where, name)
        node.age_links()
        node.run(function, **options)
        check_events(events, old, new, where)
        assert (node.look(), node.kept()) == (new, kept), where
        if function == "install":
            node.run("put_back")
            assert node.look() == old, where
            node.run("install", **options)
            assert node.look() == new, where
        node.run("remove")
        assert set(node.look()) == foreign, where
    assert reached == KILLS


def check_events(events, old, new, where):
    """No plugin was ever created under its name or written to: each took it whole, by a rename."""
    for name, event in events.read():
        if name.startswith(files.TEMPORARY_PREFIX) or name == executables.STORE:
            continue
        if event == "delete":
            assert name in old, where
            assert name not in new, where
        else:
            assert event == "moved to", (where, name, event)
    events.close()
