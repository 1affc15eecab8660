# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Batches of static reservations beside the plugins that allocate in the same directory."""

from __future__ import annotations

import importlib
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys

import calls
import pytest
import reporting
from plugin_drivers import PACKAGE, CommandDriver
from tracing import strace_command

IPAM = {"subnet": "10.1.2.0/28"}
BIG = {"ranges": [[{"subnet": "10.8.0.0/16"}], [{"subnet": "fd00:8::/64"}]]}


def module(name):
    return importlib.import_module(PACKAGE + ".plugins.module_utils." + name)


def reserve(data_dir, items, check_mode=False, ipam=None):
    """Carry out a batch as the module does; return the plan."""
    sets = module("host_local.config").load_ipam_config(calls.configuration(data_dir, ipam or IPAM)).sets
    batch = module("host_local.wanted").read_batch(items, "net")

    def decide(snapshot):
        return module("host_local.reservations").make_plan(snapshot, sets, batch, "network net")

    plan, warnings = module("host_local.batch").run_batch(str(data_dir), "net", decide, check_mode, 5.0)
    assert warnings == []
    return plan


def rotation(data_dir):
    path = os.path.join(str(data_dir), "net", "last_reserved_ip.0")
    if not os.path.exists(path):
        return None
    with open(path, "rb") as source:
        return source.read()


@pytest.fixture(params=["library", "go"])
def plugin(request, library):
    """Whichever plugin allocates on the node."""
    return library if request.param == "library" else CommandDriver([reporting.require_go_plugin()], "go")


def test_the_rotation_does_not_move(tmp_path, library):
    reserve(tmp_path, [{"owner": "vip", "addresses": ["10.1.2.9"]}])
    assert rotation(tmp_path) is None
    config = calls.configuration(tmp_path, IPAM)
    assert calls.address(library.call(calls.environment("ADD"), config)) == "10.1.2.2"
    reserve(tmp_path, [{"owner": "other", "addresses": ["10.1.2.5"]}, {"owner": "any"}])
    assert rotation(tmp_path) == b"10.1.2.2"


def test_reserved_addresses_are_never_handed_out(tmp_path, plugin):
    reserve(tmp_path, [{"owner": "a", "addresses": ["10.1.2.3"]}, {"owner": "b", "addresses": ["10.1.2.14"]}])
    config = calls.configuration(tmp_path, IPAM)
    got = [calls.address(plugin.call(calls.environment("ADD", "c%d" % n), config)) for n in range(11)]
    assert got == ["10.1.2.%d" % n for n in (2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)]
    assert "no IP addresses available" in calls.error(plugin.call(calls.environment("ADD", "c99"), config))["msg"]
    held = calls.held(tmp_path)
    assert held["10.1.2.3"] == "static.a\r\neth0"
    assert held["10.1.2.14"] == "static.b\r\neth0"


def test_the_plugin_finds_and_frees_a_reservation_by_its_owner(tmp_path, plugin):
    reserve(tmp_path, [{"owner": "a", "addresses": ["10.1.2.3"]}])
    config = calls.configuration(tmp_path, IPAM)
    assert plugin.call(calls.environment("CHECK", "static.a"), config).rc == 0
    assert plugin.call(calls.environment("DEL", "static.a"), config).rc == 0
    assert calls.held(tmp_path) == {}


def test_files_are_those_of_the_plugin(tmp_path, library):
    reserve(tmp_path, [{"owner": "a", "addresses": ["10.1.2.3"]}])
    status = os.stat(os.path.join(str(tmp_path), "net", "10.1.2.3"))
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert sorted(os.listdir(os.path.join(str(tmp_path), "net"))) == ["10.1.2.3", "lock"]
    assert os.listdir(str(tmp_path)) == ["net"]


def test_what_the_plugin_holds_is_refused_and_nothing_changes(tmp_path, plugin):
    config = calls.configuration(tmp_path, IPAM)
    assert calls.address(plugin.call(calls.environment("ADD"), config)) == "10.1.2.2"
    before = calls.held(tmp_path)
    items = [{"owner": "a", "addresses": ["10.1.2.3"]}, {"owner": "b", "addresses": ["10.1.2.2"]}]
    with pytest.raises(module("cni.errors").NodenetError, match=calls.CONTAINER):
        reserve(tmp_path, items)
    assert calls.held(tmp_path) == before


def test_check_mode_predicts_the_batch_and_creates_nothing(tmp_path):
    items = [{"owner": "a", "addresses": ["10.1.2.3"]}, {"owner": "b"}]
    foretold = reserve(tmp_path, items, check_mode=True).add
    assert os.listdir(str(tmp_path)) == []
    assert reserve(tmp_path, items).add == foretold
    assert not reserve(tmp_path, items).changed


CHANGE = [{"owner": "n%d" % number} for number in range(40)] + [
    {"owner": "gone", "state": "absent"},
    {"owner": "moved", "addresses": ["10.8.0.99", "fd00:8::99"]},
    {"owner": "taker", "addresses": ["10.8.0.5"]},
    {"owner": "giver", "addresses": ["10.8.0.6"]},
]
PROCESS = """
import sys
sys.path[:0] = [%r]
from plugin_drivers import import_root
with import_root(sys.argv[3]):
    import test_static_reservations as tests
    items = tests.CHANGE[: int(sys.argv[2])]
    tests.reserve(sys.argv[1], items, ipam=tests.BIG)
"""


def in_a_process(strace, imports, base, count=100):
    """Carry out the first elements of CHANGE in a process of its own, under strace."""
    code = PROCESS % os.path.dirname(os.path.abspath(__file__))
    argv = [*strace, sys.executable, "-B", "-c", code, str(base), str(count), imports]
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


@pytest.mark.parametrize("count", [1, 40])
def test_a_batch_is_on_disk_before_it_shows(tmp_path, collection_path, count):
    """Every file is synced before it gets its name, and the directory when all have theirs."""
    done = in_a_process(
        strace_command(tmp_path / "log", "write,fsync,syncfs,linkat"), collection_path, tmp_path / "data", count
    )
    assert done.returncode == 0, done.stdout
    not_synced = set()
    linked = 0
    for line in (tmp_path / "log").read_text().splitlines():
        fd = re.search(r"(?:write|fsync)\((\d+)", line)
        if '"static.' in line:
            not_synced.add(fd.group(1))
        elif " fsync(" in line:
            not_synced.discard(fd.group(1))
        elif " syncfs(" in line:
            not_synced.clear()
        elif " linkat(" in line:
            linked += 1
            assert re.search(r"/fd/(\d+)", line).group(1) not in not_synced, line
            not_synced.add("the directory")
        if re.search(r" fsync\(\d+\) += 0", line) and linked == 2 * count:
            not_synced.discard("the directory")
    assert linked == 2 * count
    assert not not_synced


def tree(base):
    found = {}
    for folder, _folders, names in os.walk(str(base)):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as source:
                found[os.path.relpath(path, str(base))] = (os.stat(path).st_mode, source.read())
    return found


@pytest.mark.parametrize(
    "fault",
    ["linkat:error=ENOSPC:when=1", "linkat:error=ENOSPC:when=60", "linkat:error=EIO:when=82",
     "rename,renameat,renameat2:error=EIO:when=1", "rename,renameat,renameat2:error=EROFS:when=2",
     "fsync:error=EIO:when=1"],
)  # fmt: skip
def test_a_batch_that_fails_in_its_midst_is_undone(tmp_path, collection_path, fault):
    """All or nothing: after an error the directory is what it was, byte for byte."""
    base = tmp_path / "data"
    reserve(base, [{"owner": "gone"}, {"owner": "moved"}], ipam=BIG)
    reserve(base, [{"owner": "taker", "addresses": ["10.8.0.6"]}], ipam=BIG)
    reserve(base, [{"owner": "giver", "addresses": ["10.8.0.5"]}], ipam=BIG)
    # As an old release or a person may have left it.
    with open(str(base / "net" / "10.8.0.2"), "ab") as out:
        out.write(b"\n")
    os.chmod(str(base / "net" / "10.8.0.2"), 0o640)
    before = tree(base)
    done = in_a_process(
        strace_command(tmp_path / "log", "linkat,rename,renameat,renameat2,syncfs,fsync", fault), collection_path, base
    )
    assert "INJECTED" in (tmp_path / "log").read_text()
    assert done.returncode != 0
    assert b"Cannot change reservations of network net" in done.stdout, done.stdout
    assert tree(base) == before
    assert os.listdir(str(base)) == ["net"]
    reserve(base, CHANGE, ipam=BIG)
    assert not reserve(base, CHANGE, ipam=BIG).changed


def test_a_killed_batch_leaves_whole_files_and_the_next_one_finishes_it(tmp_path, collection_path):
    """kill -9 in the midst of a batch: what exists is a part of the plan, and the same batch completes it."""
    chance = random.Random(11)
    begin = tmp_path / "begin"
    reserve(begin, [{"owner": "gone"}, {"owner": "moved"}], ipam=BIG)
    before = calls.held(begin)
    whole = tmp_path / "whole"
    shutil.copytree(str(begin), str(whole))
    reserve(whole, CHANGE, ipam=BIG)
    after = calls.held(whole)
    partial = 0
    for number in range(10 * reporting.soak_factor()):
        base = tmp_path / ("run%d" % number)
        shutil.copytree(str(begin), str(base))
        renames, unlinks = "rename,renameat,renameat2", "unlink,unlinkat"
        syscall, count = chance.choice([("linkat", 84), ("linkat", 84), (renames, 3), (unlinks, 3), ("write", 84)])
        fault = "%s:signal=KILL:when=%d" % (syscall, chance.randint(1, count))
        strace = strace_command(tmp_path / "log", f"linkat,{renames},{unlinks},write,fsync", fault)
        done = in_a_process(strace, collection_path, base)
        assert done.returncode == -signal.SIGKILL, (fault, done)
        held = calls.held(base)
        assert set(held.items()) <= set(before.items()) | set(after.items())
        partial += held not in (before, after)
        reserve(base, CHANGE, ipam=BIG)
        assert calls.held(base) == after
        assert not reserve(base, CHANGE, ipam=BIG).changed
        # what the killed one left beside the directory goes with the next change
        reserve(base, [{"owner": "later"}], ipam=BIG)
        assert os.listdir(str(base)) == ["net"]
    assert partial, "no batch was hit in its midst"
