# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sticky addresses (docs/compatibility.md) as a program that shares its directory with the Go plugin."""

from __future__ import annotations

import json
import random

import calls
import pytest
import reporting
from plugin_drivers import CommandDriver
from test_contention import Crowd, await_lock, end, held_lock

PLAIN = {"ranges": [[{"subnet": "10.9.0.0/27"}], [{"subnet": "fd00:9::/120"}]]}
STICKY = dict(PLAIN, stickyStatic=True)
POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME="
#: pod: its reserved address of each range set
RESERVED = {"db-0": ["10.9.0.5", None], "db-1": ["10.9.0.6", "fd00:9::6"], "web": [None, None]}
STEPS = 400 * reporting.soak_factor()
CROWD = 12


def environment(command, container, pod):
    return calls.environment(command, container, CNI_ARGS=POD + pod)


@pytest.fixture
def reserved(tmp_path):
    """The data dir with the static reservations; returns what lies there."""
    folder = tmp_path / "data" / "net"
    folder.mkdir(parents=True)
    files = {one: "static.shop.%s\r\neth0" % pod for pod, own in RESERVED.items() for one in own if one}
    for name, content in files.items():
        (folder / name).write_bytes(content.encode())
    return files


class Model:
    """What must lie in the directory: the reservations, and the files of the containers that are attached."""

    def __init__(self, reserved):
        self.reserved = reserved
        self.files = {}

    def all(self):
        return dict(self.reserved, **self.files)

    def holds(self, container):
        return [name for name, content in self.files.items() if content == container + "\r\neth0"]

    def judge_add(self, done, container, pod, sticky):
        """Judge the answer to an ADD, and note what it made."""
        own = RESERVED[pod] if sticky else [None, None]
        waiting = [one for one in own if one and one + ".holder" in self.files]
        if self.holds(container):
            assert calls.error(done)["code"] == 999
            assert "duplicate allocation is not allowed" in calls.error(done)["msg"]
            return "duplicate"
        if waiting:
            holder = self.files[waiting[0] + ".holder"].split("\r\n")[0]
            assert calls.error(done)["code"] == 11
            assert "still held by container %s interface eth0" % holder in calls.error(done)["msg"]
            return "waits"
        assert done.rc == 0, done
        given = [one["address"].split("/")[0] for one in json.loads(done.stdout)["ips"]]
        for address, wanted in zip(given, own):
            assert address == wanted if wanted else address not in self.all()
            self.files[address + ".holder" if wanted else address] = container + "\r\neth0"
        return "sticky" if any(own) else "pool"


def test_any_order_of_go_and_ours(tmp_path, library, reserved):
    """Containers of three pods come and go by chance, the option comes and goes, and so do the two plugins."""
    drivers = {"ours": library, "go": CommandDriver([reporting.require_go_plugin()], "go")}
    configs = {sticky: calls.configuration(tmp_path / "data", STICKY if sticky else PLAIN) for sticky in (True, False)}
    chance = random.Random(reporting.soak_factor())
    model = Model(reserved)
    pods = {"c%d" % number: sorted(RESERVED)[number % 3] for number in range(9)}
    seen = {}
    for step in range(STEPS):
        container = chance.choice(sorted(pods))
        whose, sticky = chance.choice(["ours", "ours", "go"]), chance.random() < 0.8
        has = model.holds(container)
        command = chance.choice(["ADD", "DEL", "DEL", "CHECK"] if has else ["ADD", "ADD", "ADD", "DEL", "CHECK"])
        if command == "ADD" and whose == "go" and has:
            # Go sees no holder file in its search for duplicates, and would give a second address
            command = "CHECK"
        done = drivers[whose].call(environment(command, container, pods[container]), configs[sticky])
        kind = command
        if command == "ADD":
            kind = model.judge_add(done, container, pods[container], sticky and whose == "ours")
        elif command == "DEL":
            assert (done.rc, done.stdout) == (0, "")
            for name in has:
                del model.files[name]
        else:
            assert (done.rc == 0) is bool(has), done
        assert calls.held(tmp_path / "data") == model.all(), (step, whose, command, container)
        seen[whose, kind] = seen.get((whose, kind), 0) + 1
    wanted = [("ours", kind) for kind in ("duplicate", "waits", "sticky", "pool", "DEL", "CHECK")]
    wanted += [("go", kind) for kind in ("pool", "DEL", "CHECK")]
    assert min(seen.get(one, 0) for one in wanted) >= 5, seen
    reporting.note("sticky: %d calls of Go and ours, %d waited for a holder" % (STEPS, seen["ours", "waits"]))


def test_one_of_a_crowd_gets_the_address(tmp_path, executable, reserved):
    """Containers of one pod that all wait for the lock: one gets the address, the others may try again."""
    config = calls.configuration(tmp_path / "data", STICKY)
    (tmp_path / "data" / "net" / "lock").touch()
    crowd = Crowd(tmp_path / "data", config)
    try:
        with held_lock(crowd.data_dir):
            waiting = [
                crowd.start([executable], "ADD", "c%d" % number, CNI_ARGS=POD + "db-1") for number in range(CROWD)
            ]
            await_lock(crowd.data_dir, CROWD)
        outcomes = [end(one) for one in waiting]
    finally:
        crowd.close()
    winners = [number for number, outcome in enumerate(outcomes) if outcome.rc == 0]
    assert len(winners) == 1, outcomes
    assert {calls.error(one)["code"] for one in outcomes if one.rc} == {11}
    holder = "c%d\r\neth0" % winners[0]
    held = calls.held(tmp_path / "data")
    assert held == dict(reserved, **{"10.9.0.6.holder": holder, "fd00:9::6.holder": holder})


def test_a_second_container_waits_until_the_first_is_deleted(tmp_path, library, reserved):
    config = calls.configuration(tmp_path / "data", STICKY)
    assert calls.address(library.call(environment("ADD", "c1", "db-0"), config)) == "10.9.0.5"
    held = calls.held(tmp_path / "data")
    assert held["10.9.0.5.holder"] == "c1\r\neth0"
    assert calls.error(library.call(environment("ADD", "c2", "db-0"), config))["code"] == 11
    assert calls.held(tmp_path / "data") == held
    assert library.call(environment("DEL", "c1", "db-0"), config).rc == 0
    assert calls.held(tmp_path / "data") == reserved
    assert calls.address(library.call(environment("ADD", "c2", "db-0"), config)) == "10.9.0.5"


def test_an_add_that_fails_gives_the_address_back_to_its_reservation(tmp_path, library, reserved):
    ranges = [PLAIN["ranges"][0], [{"subnet": "fd00:9::/126", "rangeEnd": "fd00:9::2"}]]
    (tmp_path / "data" / "net" / "fd00:9::2").write_bytes(b"c0\r\neth0")
    before = calls.held(tmp_path / "data")
    config = calls.configuration(tmp_path / "data", dict(STICKY, ranges=ranges))
    assert "no IP addresses available" in calls.error(library.call(environment("ADD", "c1", "db-0"), config))["msg"]
    assert calls.held(tmp_path / "data") == before
