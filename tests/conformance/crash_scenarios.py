# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Directories with a past, calls on them that meet a fault, and what must hold afterwards."""

from __future__ import annotations

import importlib
import json
import os
import time
from pathlib import Path

import calls
import faults
from plugin_drivers import PACKAGE, LibraryDriver

DUAL = {"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd00:9::/120"}]]}
V4 = {"ranges": DUAL["ranges"][:1]}
SECOND_FULL = {"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd00:9::/126", "rangeEnd": "fd00:9::2"}]]}
STICKY = dict(DUAL, stickyStatic=True)
LARGE = {"ranges": [[{"subnet": "10.9.0.0/22"}]]}
INDEX = ".nodenet-net~index"
#: after so long without a change a directory may be known by its times
QUIET_S = 1.3
RESERVED = "static.shop.victim\r\neth0"
POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME="


class Scenario:
    """A directory with a past, and one call on it by the container ``victim``, whose pod may have *reserved* addresses.

    Every container is that of a pod of its name.
    """

    def __init__(self, name, command, ipam, holders=(), empty=(), without="", next_ipam=None, reserved=()):
        self.name = name
        self.command = command
        self.ipam = ipam
        self.holders = holders
        self.empty = empty
        self.without = without
        self.next_ipam = next_ipam or ipam
        self.reserved = reserved

    def prepare(self, base, driver):
        """Make the directory; the data dir is two levels below *base*, neither of which need exist."""
        self.data_dir = Path(str(base), "cni", "networks")
        self.config = calls.configuration(self.data_dir, self.ipam)
        for name in self.reserved:
            path = self.data_dir / "net" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(RESERVED.encode())
        for container in self.holders:
            ipam = {"ranges": self.ipam["ranges"][1:]} if container == "v6only" else self.ipam
            config = calls.configuration(self.data_dir, ipam)
            assert driver.call(environment("ADD", container), config).rc == 0
        if "leaver" in self.holders:
            assert driver.call(calls.environment("DEL", "leaver"), self.config).rc == 0
        for name in self.empty:
            path = self.data_dir / "net" / name
            path.touch()
            os.utime(str(path), (time.time() - 1000,) * 2)
        self.before = calls.held(self.data_dir)

    def others(self):
        return {name: held for name, held in self.before.items() if held and not held.startswith("victim")}


class LargeScenario(Scenario):
    """A directory with an index, which it has to have been quiet for: so directories are made some at a time.

    The index is valid, or *old*: then so much has changed since that the call makes it anew.
    """

    BATCH = 16
    #: of the steps that look at one of the many address files, each of so many is tried
    THINNED = 40

    def __init__(self, name, command, old):
        super().__init__(name, command, LARGE)
        self.old = old
        self._ready = []

    def prepare(self, base, driver):
        base = Path(str(base))
        if not self._ready or self._ready[0].parent.parent != base.parent:
            shelf = base.parent / ("shelf of " + base.name)
            self._ready = [shelf / str(number) for number in range(self.BATCH)]
            for one in self._ready:
                self._fill(one / "cni" / "networks" / "net", range(2, 602))
            self._make_indexes(driver)
            if self.old:
                for one in self._ready:
                    self._fill(one / "cni" / "networks" / "net", range(602, 722), gone=range(30, 60))
                time.sleep(QUIET_S)
        # the times of what is two levels below stay as they are
        os.rename(str(self._ready.pop()), str(base))
        self.data_dir = base / "cni" / "networks"
        self.config = calls.configuration(self.data_dir, self.ipam)
        self.before = calls.held(self.data_dir)

    def _fill(self, net, numbers, gone=()):
        net.mkdir(parents=True, exist_ok=True)
        (net / "lock").touch()  # the first call would make it, and the directory be young again
        for number in numbers:
            who = "victim" if number == 500 and self.command == "DEL" else "c%d" % number
            (net / ("10.9.%d.%d" % divmod(number, 256))).write_bytes(("%s\r\neth0" % who).encode())
        for number in gone:
            (net / ("10.9.%d.%d" % divmod(number, 256))).unlink()

    def _make_indexes(self, driver):
        """By a call that changes nothing."""
        time.sleep(QUIET_S)
        for one in self._ready:
            data_dir = one / "cni" / "networks"
            config = calls.configuration(data_dir, self.ipam)
            assert driver.call(calls.environment("DEL", "nobody"), config).rc == 0
            assert (data_dir / INDEX).exists()

    def thin(self, steps):
        """Return the steps without most of those that look at an address file; assert that the index was used."""
        many = [step for step in steps if step.what and step.what[-1].rpartition("/")[2].startswith("10.9.")]
        many = [step for step in many if not step.name.startswith(("link", "unlink"))]
        written = any(INDEX + ".new" in part for step in steps for part in step.what)
        assert written == self.old, "the index was written" if written else "the index was not written"
        assert len(many) > 600 if self.old else len(many) < 40, "the index was not used as it should be"
        left_out = set(many).difference(many[:: self.THINNED] if self.old else many)
        return [step for step in steps if step not in left_out]


SCENARIOS = [
    Scenario("the first ADD", "ADD", DUAL),
    Scenario("ADD among others", "ADD", DUAL, ("a", "leaver", "b")),
    Scenario("ADD over an empty file", "ADD", DUAL, ("a",), ("10.9.0.3",)),
    Scenario("ADD that has to be undone", "ADD", SECOND_FULL, ("v6only",), next_ipam=V4),
    Scenario("ADD without unnamed files", "ADD", V4, ("a",), without="O_TMPFILE"),
    Scenario("DEL", "DEL", DUAL, ("a", "victim", "b")),
    Scenario("DEL before any ADD", "DEL", DUAL),
    Scenario("sticky ADD", "ADD", STICKY, ("a",), ("10.9.0.7.holder",), reserved=("10.9.0.7", "fd00:9::7")),
    Scenario("sticky ADD of one set", "ADD", STICKY, ("a",), reserved=("10.9.0.7",)),
    Scenario("sticky DEL", "DEL", STICKY, ("a", "victim"), reserved=("10.9.0.7", "fd00:9::7")),
    LargeScenario("ADD by an index", "ADD", old=False),
    LargeScenario("ADD by an old index", "ADD", old=True),
    LargeScenario("DEL by an index", "DEL", old=False),
    LargeScenario("DEL by an old index", "DEL", old=True),
]


def environment(command, container, pod=None):
    return calls.environment(command, container, CNI_ARGS=POD + (pod or container))


def steps_of(scenario, executable, library, tmp_path):
    """Record the scenario undisturbed; return its steps and the injections that belong to the scenario itself."""
    base = tmp_path / "recorded"
    always = []
    log = tmp_path / "recorded.log"
    if scenario.without:
        # any step but this one may be hit: two injections into one kind of call exclude each other
        trial = tmp_path / "trial"
        scenario.prepare(trial, library)
        faults.run(executable, environment("ADD", "victim"), scenario.config, log)
        number = open_of_unnamed(log, trial)
        always = ["openat:error=EOPNOTSUPP:when=%d" % number]
    scenario.prepare(base, library)
    outcome = faults.run(executable, environment(scenario.command, "victim"), scenario.config, log, *always)
    assert outcome.rc == (1 if scenario.name == "ADD that has to be undone" else 0), outcome
    steps = faults.read_steps(log, base)
    if scenario.without:
        assert any("~" in part for step in steps for part in step.what), "it did not do without"
        steps = [step for step in steps if step.name != "openat"]
    if isinstance(scenario, LargeScenario):
        steps = scenario.thin(steps)
    return steps, always


def open_of_unnamed(log, base):
    opened = [line for line in Path(log).read_text().splitlines() if " openat(" in line]
    return next(number for number, line in enumerate(opened, 1) if "O_TMPFILE" in line and str(base) in line)


def judge(scenario, step, outcome, driver):
    """Assert what must hold after a fault, then let the next calls come."""
    held = calls.held(scenario.data_dir)
    mine = {name for name, content in held.items() if content == "victim\r\neth0"}
    empty = {name for name, content in held.items() if not content}
    assert empty <= set(scenario.empty), "empty address files: %s" % empty
    rest = {name: content for name, content in held.items() if name not in mine | empty}
    assert rest == scenario.others(), "reservations of others changed: %s" % rest
    judge_answer(scenario, step, outcome, mine)
    judge_index(scenario)

    config = calls.configuration(scenario.data_dir, scenario.next_ipam)
    done = driver.call(calls.environment("ADD", "next"), config)
    assert done.rc == 0, "the next ADD failed: %r" % done
    fresh = {one["address"].split("/")[0] for one in json.loads(done.stdout)["ips"]}
    assert not fresh & (addresses(mine) | set(rest)), "given to two: %s" % fresh
    for _twice in range(2):
        done = driver.call(calls.environment("DEL", "victim"), scenario.config)
        assert done.rc == 0, "the next DEL failed: %r" % done
    assert driver.call(calls.environment("CHECK", "next"), config).rc == 0
    assert driver.call(calls.environment("DEL", "next"), config).rc == 0
    sweep(scenario.data_dir)
    if scenario.reserved:
        done = LibraryDriver().call(environment("ADD", "again", "victim"), scenario.config)
        assert done.rc == 0, "the next ADD of the pod failed: %r" % done
        given = {one["address"].split("/")[0] for one in json.loads(done.stdout)["ips"]}
        assert given >= set(scenario.reserved), "the pod lost its reservation: %s" % given
        assert driver.call(calls.environment("DEL", "again"), scenario.config).rc == 0
    left = {name: content for name, content in calls.held(scenario.data_dir).items() if content}
    assert left == scenario.others(), "left over: %s" % left


def judge_index(scenario):
    """Assert that the directory looks the same with its index as without."""
    if not isinstance(scenario, LargeScenario):
        return
    module = importlib.import_module(PACKAGE + ".plugins.module_utils.host_local.store")
    config = importlib.import_module(PACKAGE + ".plugins.module_utils.host_local.config")
    with module.Store(str(scenario.data_dir), "net", create=False) as store:
        plain, view = store.snapshot(), store.view()
        indexed = importlib.import_module(PACKAGE + ".plugins.module_utils.host_local.indexed")
        assert isinstance(view, indexed.IndexedSnapshot)
        (one_set,) = config.load_ipam_config(scenario.config).sets
        assert list(view.free(one_set, None)) == list(plain.free(one_set, None))
        for container in ("victim", "nobody", "c2", "c45", "c601", "c700"):
            found = [[one.name for one in each.held_by(container, "eth0")] for each in (view, plain)]
            assert found[0] == found[1], "%s holds %s" % (container, found)


def addresses(names):
    """Return which addresses the files of these names are about."""
    return {name[: -len(".holder")] if name.endswith(".holder") else name for name in names}


def judge_answer(scenario, step, outcome, mine):
    """Assert that the directory agrees with what the caller was told."""
    had = {name for name, content in scenario.before.items() if content.startswith("victim")}
    if outcome.rc == 0 and scenario.command == "ADD":
        told = {one["address"].split("/")[0] for one in json.loads(outcome.stdout)["ips"]}
        assert addresses(mine) == told, "acknowledged %s, holds %s" % (told, mine)
    elif outcome.rc == 0:
        # an address file that cannot be read might be anybody's: it stays, and is named
        said = {name for name in mine if name in step.what[-1] and name in outcome.stderr}
        assert mine == said, "released and still there: %s" % mine
    elif outcome.rc == 1:
        document = json.loads(outcome.stdout) if outcome.stdout else None
        assert document is None or document["msg"], outcome
        assert document or "cannot write the result" in outcome.stderr, "no error document"
        assert "Traceback" not in outcome.stderr, outcome
        assert "internal error" not in outcome.stdout, outcome
        # what cannot be undone because that is the very step that fails is named
        named = {name for name in mine if step.name == "unlinkat" and name in step.what and name in outcome.stdout}
        if scenario.command == "ADD":
            assert mine == had | named, "an ADD that failed keeps %s" % mine
        assert mine - named <= had
    else:
        assert scenario.command == "ADD" or mine <= had


def sweep(data_dir):
    """Let ours come to where its temporary files are: those of a killed call must go."""
    store = importlib.import_module(PACKAGE + ".plugins.module_utils.host_local.store").Store(str(data_dir), "net")
    with store, store.lock(5):
        store.beside()
    left = [name for name in os.listdir(str(data_dir)) if name.startswith(".nodenet-net~") and name != INDEX]
    assert not left, "temporary files left: %s" % left
