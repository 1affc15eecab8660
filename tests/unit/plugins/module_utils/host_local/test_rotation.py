# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.host_local import rotation


class Network:
    def __init__(self, root):
        self.root = root
        self.path = root / "net"
        self.path.mkdir()

    def reserve(self, address, container_id="somebody", age=0.0):
        path = self.path / address
        path.write_bytes(container_id.encode() + b"\r\neth0")
        moment = time.time() - age
        os.utime(str(path), (moment, moment))

    def stand(self, number, text):
        (self.path / ("last_reserved_ip.%d" % number)).write_text(text)

    def standing(self):
        return {path.name[-1]: path.read_text() for path in self.path.glob("last_reserved_ip.*")}

    def remember(self):
        return rotation.remember(str(self.root), "net", 5)

    def put_back(self, before):
        return rotation.put_back(rotation.Rotation.from_plain(before.as_plain()), 5)


@pytest.fixture
def network(tmp_path):
    return Network(tmp_path)


def test_what_only_the_trial_moved_goes_back(network):
    network.stand(0, "10.1.0.5")
    network.stand(2, "10.1.0.9")
    network.reserve("10.1.0.5", age=60)
    before = network.remember()
    network.stand(0, "10.1.0.6")
    network.stand(1, "fd00::2")
    assert network.put_back(before)
    assert network.standing() == {"0": "10.1.0.5", "2": "10.1.0.9"}
    assert not network.put_back(before)


def test_it_stays_when_somebody_else_was_given_an_address(network):
    network.stand(0, "10.1.0.5")
    before = network.remember()
    network.stand(0, "10.1.0.7")
    network.reserve("10.1.0.7")
    assert not network.put_back(before)
    assert network.standing() == {"0": "10.1.0.7"}


def test_an_allocation_before_it_that_the_clock_of_files_shows_late_counts_too(network):
    before = network.remember()
    network.stand(0, "10.1.0.7")
    network.reserve("10.1.0.6", age=time.time() - before.taken + 0.005)
    assert not network.put_back(before)


def test_what_stood_there_and_was_no_address_stays(network):
    network.stand(0, "rubbish")
    before = network.remember()
    network.stand(0, "10.1.0.6")
    assert not network.put_back(before)
    assert network.standing() == {"0": "10.1.0.6"}


def test_a_network_without_a_directory(tmp_path):
    before = rotation.remember(str(tmp_path), "net", 5)
    assert before.stood == {}
    assert not rotation.put_back(before, 5)
    assert os.listdir(str(tmp_path)) == []
    network = Network(tmp_path)
    network.stand(0, "10.1.0.2")
    assert network.put_back(before)
    assert network.standing() == {}


@pytest.mark.parametrize("values", [{}, {"data_dir": "", "network": "", "taken": "x", "stood": {}}, {"stood": 3}])
def test_rubbish_is_no_rotation(values):
    with pytest.raises((ValueError, KeyError, TypeError)):
        rotation.Rotation.from_plain(values)
