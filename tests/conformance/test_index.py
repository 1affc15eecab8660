# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The index of a large directory against reading everything, while the directory is changed behind its back.

Two directories get the same changes and the same calls: one is served through the index, the other without. Answers
and files must be the same. The size from which an index is used is lowered, so that small directories have one.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import shutil
import stat
import time
from collections import Counter

import pytest
import reporting

SEED = int(os.environ.get("NODENET_SEED") or (time.time_ns() % 1_000_000 if reporting.soak_factor() > 1 else 1))
ROUNDS = 150 * min(reporting.soak_factor(), 20)
# longer than a tick of the kernel's clock, by which files are stamped
TICK_S = 0.012
SUBNETS = [[{"subnet": "10.1.0.0/25"}, {"subnet": "10.2.0.0/28"}], [{"subnet": "fd00::/121"}]]
ADDRESSES = [f"10.1.0.{n}" for n in range(1, 127)] + [f"10.2.0.{n}" for n in range(1, 15)]
ADDRESSES += [f"fd00::{n:x}" for n in range(1, 128)]
ODD_NAMES = ["FD00::1", "010.1.0.9", "10.1.0", "cafe", "10.1.0.7.holder", "fd00:0::5", "notes", "10.1.0.3.bak"]
OWNERS = [f"c{n}" for n in range(60)]


class Pair:
    """The directory served through the index, and its double that is not."""

    def __init__(self, root, modules):
        self.roots = [root / "indexed", root / "plain"]
        self.commands, self.store = modules
        for one in self.roots:
            (one / "net").mkdir(parents=True)
        self.ranges = SUBNETS
        self.seen = Counter()

    def path(self, root, name):
        return str(root / "net" / name)

    def both(self, change):
        """Do the same to both; what one cannot do, neither can."""
        done = []
        for root in self.roots:
            try:
                change(str(root / "net"))
                done.append(True)
            except OSError:
                done.append(False)
        assert done[0] == done[1]

    def call(self, command, container, ifname="eth0", args=""):
        answers = []
        for root, large in zip(self.roots, (-1, 1 << 40)):
            self.store._LARGE = large
            config = {
                "cniVersion": "1.0.0",
                "name": "net",
                "ipam": {"type": "host-local", "dataDir": str(root), "ranges": self.ranges},
            }
            environ = {
                "CNI_COMMAND": command,
                "CNI_CONTAINERID": container,
                "CNI_IFNAME": ifname,
                "CNI_NETNS": "/x/y",
                "CNI_ARGS": args,
                "CNI_PATH": "/",
            }
            done = self.commands.run(environ, json.dumps(config).encode())
            answers.append((done.rc, done.stdout, done.stderr.replace(str(root), "ROOT")))
        assert answers[0] == answers[1], (command, container, ifname, args)
        self.seen[command, answers[0][0]] += 1
        return answers[0]

    def compare(self):
        trees = []
        for root in self.roots:
            tree = {}
            for name in os.listdir(str(root / "net")):
                path = self.path(root, name)
                kind = stat.S_IFMT(os.lstat(path).st_mode)
                tree[name] = (kind, pathlib.Path(path).read_bytes() if kind == stat.S_IFREG else b"")
            trees.append(tree)
        assert trees[0] == trees[1]

    def index(self):
        return self.roots[0] / ".nodenet-net~index"


@pytest.fixture
def pair(tmp_path, monkeypatch, _collection_path):
    from ansible_collections.nodenet.cni.plugins.module_utils.host_local import commands, indexed, store

    monkeypatch.setattr(store, "_LARGE", store._LARGE)
    monkeypatch.setattr(indexed, "_WORTH_FILES", 4)
    return Pair(tmp_path, (commands, store))


class Clock:
    """Our clock, which may run before the one that files are stamped by: then every directory is a quiet one."""

    def __init__(self, monkeypatch):
        from ansible_collections.nodenet.cni.plugins.module_utils.host_local import index

        self.ahead_ns = 0
        self._real = time.time_ns
        monkeypatch.setattr(index, "_MAX_SKEW_NS", 1 << 60)
        monkeypatch.setattr(time, "time_ns", lambda: self._real() + self.ahead_ns)

    def quiet(self):
        """Let the tick end in which the last change was made, and a second pass."""
        time.sleep(TICK_S)
        self.ahead_ns += 1_100_000_000


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def _write(name, content):
    def change(directory):
        with open(os.path.join(directory, name), "xb") as stream:
            stream.write(content)

    return change


def _replace(name, content):
    def change(directory):
        os.unlink(os.path.join(directory, name))
        _write(name, content)(directory)

    return change


def _rename_over(name, content, *, staged):
    def change(directory):
        if not os.path.isfile(os.path.join(directory, name)):
            raise OSError("nothing to replace")
        outside = os.path.join(directory, "..", staged)
        with open(outside, "wb") as stream:
            stream.write(content)
        os.rename(outside, os.path.join(directory, name))

    return change


def _swap(one, other):
    def change(directory):
        paths = [os.path.join(directory, name) for name in (one, other)]
        if one == other or not all(os.path.isfile(path) for path in paths):
            raise OSError("nothing to swap")
        aside = os.path.join(directory, "..", "aside")
        os.rename(paths[0], aside)
        os.rename(paths[1], paths[0])
        os.rename(aside, paths[1])

    return change


def _rewrite(name, content):
    """Write another owner into a file in place. The directory's times do not show it, so something else must."""

    def change(directory):
        if not stat.S_ISREG(os.lstat(os.path.join(directory, name)).st_mode):
            raise OSError("nothing to write into")
        with open(os.path.join(directory, name), "r+b") as stream:
            stream.truncate()
            stream.write(content)
        os.utime(directory)

    return change


def _turn_into(name, make):
    def change(directory):
        path = os.path.join(directory, name)
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        elif os.path.lexists(path):
            os.unlink(path)
        make(path)

    return change


def _with_old_times(change):
    """Put the directory's times back after a change, as a restore from a backup does."""

    def changed(directory):
        before = os.stat(directory)
        change(directory)
        os.utime(directory, ns=(before.st_atime_ns, before.st_mtime_ns))

    return changed


def _remove(name):
    return lambda directory: os.unlink(os.path.join(directory, name))


def _age(name, seconds):
    def change(directory):
        then = time.time() - seconds
        os.utime(os.path.join(directory, name), (then, then))

    return change


def _new_directory(directory):
    aside = directory + ".aside"
    shutil.copytree(directory, aside, symlinks=True)
    shutil.rmtree(directory)
    os.rename(aside, directory)


def _tidy(directory):
    """Take away what is no address file: with too many of those there is no index."""
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if name in ODD_NAMES or not stat.S_ISREG(os.lstat(path).st_mode):
            (os.rmdir if stat.S_ISDIR(os.lstat(path).st_mode) else os.unlink)(path)


def random_change(draw):
    """One change as Go plugins, operators, backups and crashes make them."""
    name = draw.choice(ADDRESSES if draw.random() < 0.9 else ODD_NAMES)
    owner = draw.choice(OWNERS).encode()
    content = draw.choice(
        [owner + b"\r\neth0", owner + b"\r\neth0", owner + b"\r\nnet1", owner, b"", b" " + owner + b"\n"]
    )
    change = draw.choice(
        [
            _write(name, content),
            _write(name, content),
            _write(name, content),
            _remove(name),
            _remove(name),
            _replace(name, content),
            _rename_over(name, content, staged="staged"),
            _swap(name, draw.choice(ADDRESSES)),
            _rewrite(name, content),
            _age(name, draw.choice([30, 90, -90])),
            _turn_into(name, os.mkdir),
            _turn_into(name, lambda path: os.symlink("10.1.0.1", path)),
            _turn_into(name, os.mkfifo),
        ]
    )
    return _with_old_times(change) if draw.random() < 0.2 else change


def random_call(draw, pair):
    command = draw.choice(["ADD", "ADD", "DEL", "CHECK"])
    args = f"IP={draw.choice(ADDRESSES)}" if command == "ADD" and draw.random() < 0.2 else ""
    pair.call(command, draw.choice(OWNERS), draw.choice(["eth0", "eth0", "net1"]), args)


@pytest.mark.parametrize("mode", ["quiet", "burst", "mixed"])
def test_the_answer_is_the_same_whatever_happened_to_the_directory(pair, clock, mode, monkeypatch):
    from ansible_collections.nodenet.cni.plugins.module_utils.host_local.index import Index

    believed = Counter()
    is_valid = Index.is_valid

    def counting(self, *times):
        found = is_valid(self, *times)
        believed["valid" if found else "compared" if len(self) else "none"] += 1
        return found

    monkeypatch.setattr(Index, "is_valid", counting)
    draw = random.Random(f"{SEED} {mode}")
    changes = 0
    for _round in range(ROUNDS):
        for _change in range(draw.choice([0, 1, 3, 10, 25])):
            changes += 1
            pair.both(random_change(draw))
        if draw.random() < 0.02:
            pair.both(_new_directory)
        if draw.random() < 0.1:
            pair.both(_tidy)
        if draw.random() < 0.05:
            pair.index().write_bytes(
                draw.choice([b"", pair.index().read_bytes()[:100]]) if pair.index().exists() else b"x"
            )
        for _call in range(draw.choice([1, 2, 6])):
            if mode == "quiet" or (mode == "mixed" and draw.random() < 0.3):
                clock.quiet()
            random_call(draw, pair)
        pair.compare()
    reporting.LINES.append(
        f"index, {mode}: {changes} changes behind it (seed {SEED}), {dict(believed)}, "
        + ", ".join(
            f"{command} {'failed' if rc else 'succeeded'} {n}" for (command, rc), n in sorted(pair.seen.items())
        )
    )
    assert changes > 5 * ROUNDS
    assert min(pair.seen[command, rc] for command in ("ADD", "CHECK") for rc in (0, 1)) > ROUNDS / 20
    assert mode == "burst" or min(believed["valid"], believed["compared"]) > ROUNDS / 20
