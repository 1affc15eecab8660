# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mutated calls on odd directories: an answer is always a valid one, and the directory comes to no harm.

Calls come in groups on one directory; a group is made from the seed that a failure names.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import tempfile
import time

import pytest
import reporting
from fuzzing import Box, Mutator, recorded_calls
from plugin_drivers import PACKAGE, CommandDriver

SEED = int(os.environ.get("NODENET_SEED") or (time.time_ns() % 1_000_000 if reporting.soak_factor() > 1 else 1))
GROUP = 25
IN_PROCESS = 100_000 if reporting.soak_factor() > 1 else 4_000
WITH_INDEX = 100_000 if reporting.soak_factor() > 1 else 8_000
PROCESSES = 2_000 if reporting.soak_factor() > 1 else 100
#: no call may hang over an input: none of these waits for anybody
LONGEST_S = 10


@pytest.fixture
def memory():
    """A directory in memory if there is one: a hundred thousand calls sync a lot of files."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = tempfile.mkdtemp(prefix="nodenet-fuzz.", dir=base)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def default_data_dir(monkeypatch, memory):
    """Let the default data dir be in the box."""
    for name in ("commands", "config"):
        module = importlib.import_module(PACKAGE + ".plugins.module_utils.host_local." + name)
        monkeypatch.setattr(module, "DEFAULT_DATA_DIR", os.path.join(memory, "box", "data"))


class Fuzz:
    """Runs groups of calls; counts what came of them."""

    def __init__(self, driver, base, index=None):
        self.driver = driver
        self.box = Box(os.path.join(base, "box"), index)
        self.envs, self.inputs = recorded_calls()
        self.commands = importlib.import_module(PACKAGE + ".plugins.module_utils.host_local.commands")
        self.counts = {}
        self.sticky = 0
        self.skipped = 0

    def run(self, total, seed):
        """Make at least so many calls, in groups with seeds from *seed* on."""
        while sum(self.counts.values()) < total:
            self.group(seed)
            seed += 1
        assert self.skipped < total / 5

    def group(self, seed):
        chance = random.Random(seed)
        shutil.rmtree(self.box.root, ignore_errors=True)
        os.mkdir(self.box.root)
        self.box.fill(chance)
        mutator = Mutator(chance, self.box, self.envs, self.inputs)
        before = self.box.look()
        for number in range(GROUP):
            env, stdin = mutator.environment(), mutator.stdin()
            if not self.stays_in_the_box(stdin):
                self.skipped += 1
                continue
            if self.box.index and chance.random() < 0.3:
                self.box.spoil_an_index(chance)
            begin = time.monotonic()
            try:
                outcome = self.driver.call(env, stdin, self.box.root)
                after = self.box.look()
                kind = judge(self.box, env, outcome, before, after)
                self.sticky += any(path.endswith(".holder") for path in after.keys() - before.keys())
                assert time.monotonic() - begin < LONGEST_S, "it took too long"
            except Exception as error:
                raise AssertionError(
                    "group %d, call %d: %s: %s\nenv = %r\nstdin = %r"
                    % (seed, number, type(error).__name__, error, env, stdin)
                ) from error
            before = after
            self.counts[kind] = self.counts.get(kind, 0) + 1

    def stays_in_the_box(self, stdin):
        """Tell whether the data dir is in the box, so that nothing else on this machine is touched."""
        gojson = self.commands.skel.gojson
        try:
            tree = gojson.parse(stdin)
            ipam = self.commands._NET.decode(tree, None, "").get("ipam")
        except (gojson.SyntaxFault, self.commands.goshape.TypeFault):
            return True
        except Exception:
            return True  # the call will meet it again
        data_dir = (ipam or {}).get("dataDir") or self.commands.DEFAULT_DATA_DIR
        return self.box.holds(data_dir)


def judge(box, env, outcome, before, after):
    """Assert that answer and directory are sound; return the kind of answer."""
    command = env.get("CNI_COMMAND", "")
    assert outcome.rc in (0, 1), outcome
    assert "Traceback" not in outcome.stderr, outcome
    told = None
    if outcome.rc == 1:
        document = json.loads(outcome.stdout)
        assert isinstance(document["code"], int), document
        assert isinstance(document["msg"], str), document
        assert document["msg"], document
        assert set(document) <= {"code", "msg", "details", "cniVersion"}, document
        assert not document["msg"].startswith("internal error"), document
        kind = document["code"]
    else:
        kind = command
        if command == "ADD":
            told = {one.split("/")[0] for one in addresses(json.loads(outcome.stdout))}
            assert told
        elif command == "VERSION":
            assert json.loads(outcome.stdout)["cniVersion"]
        else:
            assert outcome.stdout == "", outcome
    judge_directory(box, env, command, told, before, after)
    return kind


def addresses(document):
    if "ips" in document:
        return [one["address"] for one in document["ips"]]
    return [document[key]["ip"] for key in ("ip4", "ip6") if key in document]


def judge_directory(box, env, command, told, before, after):
    """Assert that nothing but the address and holder files of this call came or went."""
    key = (env.get("CNI_CONTAINERID", "") + "\r\n" + env.get("CNI_IFNAME", "")).encode("utf-8", "surrogateescape")
    legacy = env.get("CNI_CONTAINERID", "").encode("utf-8", "surrogateescape")
    new = set()
    for path in after.keys() - before.keys():
        name = os.path.basename(path)
        if after[path] == ("directory",) or name == "lock" and after[path][1] == b"":
            continue
        assert command == "ADD", "%s came with %s" % (path, command)
        assert after[path][0] == "file", path
        if name.startswith("last_reserved_ip."):
            continue
        assert after[path][1] == key, (path, after[path])
        new.add(held_address(path, after))
    for path in before.keys() - after.keys():
        kind = before[path]
        assert kind[0] == "file", "%s is gone" % path
        if kind[1].strip() == b"" and command in ("ADD", "GC"):
            continue
        assert command in ("DEL", "GC"), "%s went with %s" % (path, command)
        assert command == "GC" or kind[1].strip() in (key.strip(), legacy.strip()), (path, kind)
    for path in before.keys() & after.keys():
        if before[path] == after[path]:
            continue
        name = os.path.basename(path)
        if name.startswith("last_reserved_ip."):
            assert command == "ADD", "%s changed with %s" % (path, command)
            continue
        assert before[path][1].strip() == b"", "%s was changed from %r to %r" % (path, before[path], after[path])
        assert after[path][1] == key, (path, after[path])
        new.add(held_address(path, after))
    assert not new or told is not None, "failed, and holds %s" % new
    if told is not None:
        assert new == told, "told %s, holds %s" % (told, new)


def held_address(path, after):
    """Return the address that a new file is about; a holder file stands beside the reservation of the calling pod."""
    reserved, mark, rest = path.rpartition(".holder")
    if mark and not rest:
        assert after[reserved][1].strip() == b"static.default.web\r\neth0", (path, after.get(reserved))
        path = reserved
    return os.path.basename(path)


def test_mutated_calls_in_process(library, memory, default_data_dir):
    fuzz = Fuzz(library, memory)
    fuzz.run(IN_PROCESS, SEED * 1_000_000)
    report(fuzz, IN_PROCESS, "in process")


def test_mutated_calls_with_a_mutated_index(library, memory, default_data_dir, monkeypatch):
    """Every directory counts as large. An index that lies costs an address at worst, and never somebody else's."""
    index, indexed, store = (
        importlib.import_module(PACKAGE + ".plugins.module_utils.host_local." + name)
        for name in ("index", "indexed", "store")
    )
    monkeypatch.setattr(store, "_LARGE", -1)
    monkeypatch.setattr(indexed, "_WORTH_FILES", 0)
    # made and believed without any wait: what may be wrong then is what the lies are for
    monkeypatch.setattr(index, "SETTLED_NS", 0)
    believed = []
    is_valid = index.Index.is_valid
    monkeypatch.setattr(
        index.Index, "is_valid", lambda self, *times: is_valid(self, *times) and not believed.append(len(self))
    )
    fuzz = Fuzz(library, memory, index)
    fuzz.run(WITH_INDEX, SEED * 1_000_000 + 250_000)
    assert len(believed) > WITH_INDEX / 100, len(believed)
    report(fuzz, WITH_INDEX, "with a mutated index, believed %d times" % len(believed))


def test_mutated_calls_as_processes(executable, memory):
    fuzz = Fuzz(CommandDriver([executable], "executable"), memory)
    fuzz.run(PROCESSES, SEED * 1_000_000 + 500_000)
    report(fuzz, PROCESSES, "as processes")


def report(fuzz, total, how):
    counts = fuzz.counts
    # mutations must not all die at the first gate
    assert counts.get("ADD", 0) > total / 100, counts
    assert counts.get("DEL", 0) > total / 100, counts
    assert fuzz.sticky >= total // 1000, "%d holder files were made" % fuzz.sticky
    errors = sum(number for kind, number in counts.items() if isinstance(kind, int))
    assert errors > total / 5, counts
    reporting.note(
        "fuzz %s: %d calls (seed %d), %d errors, %d ADD (%d sticky) and %d DEL that succeeded"
        % (how, sum(counts.values()), SEED, errors, counts["ADD"], fuzz.sticky, counts["DEL"])
    )
