# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When the index of a large directory is believed and when not, rule by rule, and that it saves reading.

The directories are as large as those that have an index on a node, the calls are those of the plugin.
"""

from __future__ import annotations

import importlib
import os
import random
import time
from pathlib import Path

import calls
import pytest
import reporting
import test_host_local_vectors as recorded
import vectors
from plugin_drivers import PACKAGE, CommandDriver

# longer than a tick of the kernel's clock, by which files are stamped
TICK_S = 0.02
# of what a directory of a thousand files has, this many may be read
HANDFUL = 3
POOL = {"ranges": [[{"subnet": "10.4.0.0/22"}]]}
FULL = {"ranges": [[{"subnet": "10.4.0.0/24"}]]}


def module(name):
    return importlib.import_module(f"{PACKAGE}.plugins.module_utils.host_local.{name}")


def address_of(number):
    return f"10.4.{number // 256}.{number % 256}"


class Node:
    """A data dir with a network of a thousand addresses, each of the container of its number."""

    def __init__(self, data_dir, driver):
        self.data_dir = data_dir
        self.driver = driver
        self.net = data_dir / "net"
        self.index = data_dir / ".nodenet-net~index"
        self.reads = 0
        self.net.mkdir(parents=True)
        for number in range(2, 1002):
            self.write(address_of(number), f"c{number}")

    def write(self, name, container):
        (self.net / name).write_bytes(f"{container}\r\neth0".encode())

    def call(self, command, container, ipam=None, driver=None):
        """Return the outcome; ``reads`` is how many address files were read for it."""
        self.reads = 0
        env = calls.environment(command, container)
        return (driver or self.driver).call(env, calls.configuration(self.data_dir, ipam or POOL))

    def well(self, command, container, *more):
        done = self.call(command, container, *more)
        assert (done.rc, done.stderr) == (0, ""), done
        return calls.address(done) if command == "ADD" else None

    def found(self, container):
        """Tell whether a CHECK finds the container."""
        return self.call("CHECK", container).rc == 0

    def refused_as_duplicate(self, container):
        done = self.call("ADD", container)
        return done.rc == 1 and "duplicate" in done.stdout

    def make_index(self, clock):
        """Let the index be written: a call that changes nothing in a quiet directory does."""
        clock.quiet()
        self.well("DEL", "nobody")
        assert self.index.exists()

    def open(self, create=True):
        return module("store").Store(str(self.data_dir), "net", create)


class Clock:
    """Our clock, which may run before the one that files are stamped by: then every directory is a quiet one."""

    def __init__(self, monkeypatch):
        self.ahead_ns = 0
        real = time.time_ns
        monkeypatch.setattr(module("index"), "_MAX_SKEW_NS", 1 << 60)
        monkeypatch.setattr(time, "time_ns", lambda: real() + self.ahead_ns)

    def quiet(self):
        """Let the tick end in which the last change was made, and an hour pass."""
        time.sleep(TICK_S)
        self.ahead_ns += 3_600_000_000_000


@pytest.fixture
def clock(monkeypatch, library):
    return Clock(monkeypatch)


@pytest.fixture
def node(tmp_path, library, monkeypatch):
    node = Node(tmp_path / "networks", library)
    read = module("store").read_address_file

    def counting(*arguments):
        node.reads += 1
        return read(*arguments)

    for name in ("store", "indexed"):
        monkeypatch.setattr(module(name), "read_address_file", counting)
    return node


# --- it saves reading -----------------------------------------------------------------------------------------------


def test_without_an_index_everything_is_read_and_counted(node):
    assert node.found("c5")
    assert node.reads == 1000
    assert node.well("ADD", "new") == "10.4.3.234"
    assert node.reads == 1000


def test_calls_read_a_handful_of_a_thousand_files(node, clock):
    node.make_index(clock)
    for _again in range(3):
        assert node.found("c5")
        assert node.reads <= HANDFUL
        address = node.well("ADD", "new")
        assert node.reads <= HANDFUL
        assert node.found("new")
        assert node.refused_as_duplicate("new")
        assert node.reads <= HANDFUL
        node.well("DEL", "new")
        assert node.reads <= HANDFUL
        assert not (node.net / address).exists()
    node.well("DEL", "c500")
    assert node.reads <= HANDFUL
    assert not (node.net / address_of(500)).exists()


def test_a_quiet_directory_is_not_even_listed(node, clock, monkeypatch):
    """Its own times prove the index, so ADD and DEL cost the same whatever the size."""
    node.make_index(clock)
    clock.quiet()
    monkeypatch.setattr(module("indexed").IndexedSnapshot, "_compare", lambda _self: pytest.fail("it was listed"))
    assert node.well("ADD", "new") == address_of(1002)
    assert node.reads == 0


def test_the_index_is_made_by_calls_alone_and_lasts(node):
    """No clock is changed here."""
    time.sleep(1.3)
    assert node.well("ADD", "one")
    assert node.index.exists()
    assert node.well("ADD", "two")
    assert node.reads <= HANDFUL
    node.well("DEL", "one")
    assert node.reads <= HANDFUL
    time.sleep(1.3)
    before = node.index.read_bytes()
    node.well("DEL", "two")
    node.well("DEL", "c7")
    assert node.reads <= HANDFUL
    assert node.index.read_bytes() == before


def test_after_calls_of_the_go_plugin_what_they_changed_is_read(node, clock):
    go = CommandDriver([reporting.require_go_plugin()], "go")
    node.make_index(clock)
    for number in range(3):
        name = f"go{number}"
        address = node.well("ADD", name, POOL, go)
        node.well("DEL", f"c{number + 10}", POOL, go)
        assert node.refused_as_duplicate(name)
        assert node.reads <= HANDFUL + number
        node.well("ADD", f"ours{number}")
        assert node.reads <= HANDFUL + 2 * number
        assert node.call("CHECK", f"ours{number}", POOL, go).rc == 0
        assert not node.found(f"c{number + 10}")
        assert (node.net / address).exists()
    node.well("DEL", "go1")
    assert node.reads <= HANDFUL + 6
    assert not node.found("go1")
    assert node.call("CHECK", "go2", POOL, go).rc == 0


# --- when it is believed --------------------------------------------------------------------------------------------


def forged(node, read_at, missing):
    """Write an index that has the directory's present times and lacks one of its files."""
    with node.open() as opened, opened.lock(5):
        index = module("index")
        times = os.fstat(opened.directory)
        entries = index.load(opened.directory, "net").entries({missing})
        assert index.save(opened.directory, "net", times.st_mtime_ns, times.st_ctime_ns, read_at, entries, [])


def test_a_directory_that_had_not_settled_is_looked_at(node, clock):
    """The index was made in the tick of a change, and another one came in the same tick: all times are equal."""
    node.make_index(clock)
    node.write(address_of(1002), "second")
    changed = os.stat(str(node.net)).st_ctime_ns
    for age_ns in (0, 1_000_000, 999_999_999, 1_000_000_000):
        forged(node, changed + age_ns, address_of(1002))
        assert node.refused_as_duplicate("second"), age_ns
    # if no change can have had these times, the index is believed: what it lacks is not there
    forged(node, changed + 1_100_000_000, address_of(1002))
    assert not node.refused_as_duplicate("second")


def test_times_that_are_put_back_prove_nothing(node, clock):
    node.make_index(clock)
    before = os.stat(str(node.net))
    node.write(address_of(1002), "second")
    os.utime(str(node.net), ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.stat(str(node.net)).st_mtime_ns == before.st_mtime_ns
    assert node.refused_as_duplicate("second")


def test_a_young_file_is_looked_at_again(node):
    """A file may change twice in a tick. No clock is changed here."""
    young = address_of(7)
    time.sleep(1.3)
    node.write(young, "c7")
    node.well("DEL", "nobody")
    with node.open() as opened:
        index = module("index").load(opened.directory, "net")
    times = index.change_times()
    assert times.pop(young) == 0
    assert len(times) == 999
    assert min(times.values()) > 0
    assert not index.is_valid(*os.stat(str(node.net))[8:10])
    assert index.mtime == -1
    node.write(young, "other")
    assert node.refused_as_duplicate("other")


@pytest.mark.parametrize("valid", [True, False], ids=["valid", "compared"])
class TestWhatItNames:
    """An owner was written into a file in place: the directory's times do not show it."""

    @pytest.fixture
    def rewritten(self, node, clock, valid):
        node.make_index(clock)
        node.write(address_of(9), "other")
        if not valid:
            (node.net / address_of(1001)).unlink()
        return node

    def test_is_read_before_it_is_removed(self, rewritten):
        rewritten.well("DEL", "c9")
        assert (rewritten.net / address_of(9)).read_bytes() == b"other\r\neth0"

    def test_is_read_before_it_is_confirmed(self, rewritten):
        assert not rewritten.found("c9")
        assert not rewritten.refused_as_duplicate("c9")

    def test_is_not_all_that_a_release_looks_for(self, rewritten):
        rewritten.well("DEL", "other")
        assert not (rewritten.net / address_of(9)).exists()

    def test_is_not_all_that_a_check_looks_for(self, rewritten):
        assert rewritten.found("other")


def test_a_changed_file_is_read(node, clock):
    """Another owner was written into it in place, which its own change time shows, and then a name went."""
    node.make_index(clock)
    node.write(address_of(9), "other")
    (node.net / address_of(1001)).unlink()
    assert node.refused_as_duplicate("other")
    assert node.reads <= HANDFUL
    assert node.well("ADD", "c9")


def test_what_is_gone_is_free(node, clock):
    for number in (0, 1, 255):
        node.write(address_of(number), f"c{number}")
    node.make_index(clock)
    assert "no IP addresses available" in node.call("ADD", "new", FULL).stdout
    (node.net / address_of(77)).unlink()
    assert node.well("ADD", "new", FULL) == address_of(77)
    assert "no IP addresses available" in node.call("ADD", "newer", FULL).stdout
    clock.quiet()
    node.well("DEL", "nobody")
    assert "no IP addresses available" in node.call("ADD", "newer", FULL).stdout


STICKY = dict(POOL, stickyStatic=True)
HOLDERS = {
    "nobody": (None, 0, "10.4.0.50"),
    "a container": ("c50\r\neth0", 0, "still held by container c50 interface eth0"),
    "a crash of late": ("", 5, "held by an empty file"),
    "a crash long ago": ("", 3600, "10.4.0.50"),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_sticky_addresses(node, clock, holder):
    content, age_s, answer = HOLDERS[holder]
    path = node.net / "10.4.0.50.holder"
    node.write("10.4.0.50", "static.shop.web")
    if content is not None:
        path.write_bytes(content.encode())
        then = time.time() - age_s
        os.utime(str(path), (then, then))
    node.make_index(clock)
    env = calls.environment("ADD", "new", CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web")
    node.reads = 0
    done = node.driver.call(env, calls.configuration(node.data_dir, STICKY))
    assert answer in done.stdout, done
    assert node.reads <= HANDFUL
    if answer != "10.4.0.50":
        assert calls.error(done)["code"] == 11
        return
    assert path.read_bytes() == b"new\r\neth0"
    for _twice in range(2):
        assert node.found("new")
        assert node.reads <= HANDFUL
        done = node.driver.call(dict(env, CNI_CONTAINERID="newer"), calls.configuration(node.data_dir, STICKY))
        assert "still held by container new" in done.stdout, done
        clock.quiet()
        node.well("DEL", "nobody")
    node.well("DEL", "new")
    assert not path.exists()
    assert (node.net / "10.4.0.50").read_bytes() == b"static.shop.web\r\neth0"


def test_an_emptied_directory_has_no_old_index_for_ever(node, clock):
    """An ext4 directory stays as large as it was."""
    node.make_index(clock)
    for number in range(2, 1000):
        (node.net / address_of(number)).unlink()
    clock.quiet()
    node.well("DEL", "nobody")
    assert not node.index.exists() or node.index.stat().st_size < 1000
    assert node.found("c1000")
    assert not node.found("c3")


# --- the order of the free addresses --------------------------------------------------------------------------------

SETS = [
    [{"subnet": "10.6.0.0/28"}],
    [{"subnet": "10.6.0.0/28", "rangeStart": "10.6.0.4", "rangeEnd": "10.6.0.9", "gateway": "10.6.0.6"}],
    [{"subnet": "10.6.0.0/29"}, {"subnet": "10.6.1.0/29", "gateway": "10.6.0.3"}, {"subnet": "10.6.0.8/29"}],
    [{"subnet": "10.6.0.8/29", "rangeStart": "10.6.0.10"}, {"subnet": "10.6.0.0/29"}],
    [{"subnet": "255.255.255.240/28", "rangeEnd": "255.255.255.255"}],
    [{"subnet": "0.0.0.0/28", "rangeStart": "0.0.0.0"}],
    [{"subnet": "fd00:6::/124"}],
    [{"subnet": "fd00:6::/125"}, {"subnet": "fd00:6::8/125", "gateway": "fd00:6::5"}],
    [{"subnet": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0/124"}],
]


def range_sets():
    addresses, ranges = module("addresses"), module("ranges")
    for one_set in SETS:
        yield ranges.RangeSet.from_values(
            [
                {key: (addresses.parse_cidr if key == "subnet" else addresses.parse_address)(one[key]) for key in one}
                for one in one_set
            ]
        )


def scatter(draw, folder, addresses):
    """Put some of everything there is into a directory."""
    for path in folder.iterdir():
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    chance = draw.choice([0.1, 0.5, 0.9, 1])
    for address in addresses:
        for suffix in ("", ".holder"):
            if draw.random() > (chance if not suffix else 0.1):
                continue
            path = folder / f"{address}{suffix}"
            kind = draw.choice(["owner"] * 12 + ["empty", "empty", "blank", "directory", "link", "fifo"])
            if kind in ("directory", "link", "fifo"):
                {"directory": os.mkdir, "link": lambda one: os.symlink("x", one), "fifo": os.mkfifo}[kind](str(path))
                continue
            path.write_bytes({"owner": f"c{address}".encode(), "empty": b"", "blank": b" \r\n"}[kind])
            then = time.time() + draw.choice([-3600, -61, -30, 3600])
            os.utime(str(path), (then, then))


def test_free_addresses_come_in_the_same_order(tmp_path, clock, monkeypatch):
    store, indexed = module("store"), module("indexed")
    monkeypatch.setattr(store, "_LARGE", -1)
    monkeypatch.setattr(indexed, "_WORTH_FILES", 0)
    draw = random.Random(6)
    compared = {"valid": 0, "changed": 0, "none": 0}
    sets = list(range_sets())
    net = tmp_path / "net"
    net.mkdir()
    for number in range(40):
        one_set = sets[number % len(sets)]
        inside = [module("addresses").Address(b, n) for b, low, high in one_set.spans() for n in range(low, high + 1)]
        scatter(draw, net, inside)
        (tmp_path / ".nodenet-net~index").unlink() if number % 3 == 0 and number else None
        for step in ("none", "valid", "changed"):
            if step == "changed":
                for address in draw.sample(inside, 3):
                    path = net / str(address)
                    if path.is_file():
                        path.unlink()
                    elif not path.exists() and not path.is_symlink():
                        path.write_bytes(draw.choice([b"", b"new"]))
            clock.quiet()
            for last in [None, inside[0], inside[-1], draw.choice(inside), module("addresses").Address(32, 99)]:
                with store.Store(str(tmp_path), "net") as opened, opened.lock(5):
                    plain, view = opened.snapshot(), opened.view()
                    assert isinstance(view, indexed.IndexedSnapshot)
                    view.now = plain.now
                    compared["valid" if view._valid else "changed" if len(view._index) else "none"] += 1
                    assert list(view.free(one_set, last)) == list(plain.free(one_set, last)), (number, step, last)
                    assert [view.is_taken(one) for one in inside] == [plain.is_taken(one) for one in inside]
    assert min(compared["valid"], compared["changed"]) > 50, compared


# --- recorded calls -------------------------------------------------------------------------------------------------


class Indexed:
    """The library; before every other call the directories have time to settle, and their indexes are made."""

    def __init__(self, library):
        self.library = library
        self.number = 0

    def call(self, env, stdin, cwd):
        self.number += 1
        data = Path(cwd).parent / "data"
        if self.number % 2 and data.is_dir():
            time.sleep(TICK_S + 0.003)
            for entry in os.scandir(str(data)):
                if entry.is_dir():
                    with module("store").Store(str(data), entry.name, create=False) as opened:
                        module("indexed").IndexedSnapshot(opened).keep()
        return self.library.call(env, stdin, cwd)


def test_recorded_calls_through_an_index(library, monkeypatch):
    """The answers are those of a plugin that knows no index."""
    store, indexed, index = module("store"), module("indexed"), module("index")
    monkeypatch.setattr(store, "_LARGE", -1)
    monkeypatch.setattr(indexed, "_WORTH_FILES", 0)
    monkeypatch.setattr(indexed, "_WORTH_PART", 1 << 40)
    # still more than a tick
    monkeypatch.setattr(index, "SETTLED_NS", int(TICK_S * 1e9))
    # the indexes are no part of what is compared
    tree = vectors.Sandbox.tree
    monkeypatch.setattr(
        vectors.Sandbox,
        "tree",
        lambda self: tuple(
            {name: one for name, one in each.items() if not name.endswith("~index")} for each in tree(self)
        ),
    )
    used = {"valid": 0, "compared": 0, "none": 0}
    is_valid = index.Index.is_valid

    def counting(self, *times):
        found = is_valid(self, *times)
        used["valid" if found else "compared" if len(self) else "none"] += 1
        return found

    monkeypatch.setattr(index.Index, "is_valid", counting)
    driver = Indexed(library)
    wrong = []
    steps = 0
    for name in vectors.names():
        ran, _own, found = recorded.run_vector(driver, name)
        steps += ran
        wrong += [f"{name}: {line}" for line in found]
    assert not wrong, "\n".join(wrong)
    assert steps == recorded.STEPS
    assert min(used["valid"], used["compared"]) > 20, used
    reporting.note("host-local vectors through an index: %d steps, %s" % (steps, used))
