# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Batches of static reservations beside the plugins that allocate in the same directory."""

from __future__ import annotations

import importlib
import os
import stat

import calls
import pytest
import reporting
from plugin_drivers import PACKAGE, CommandDriver

IPAM = {"subnet": "10.1.2.0/28"}


def module(name):
    return importlib.import_module(PACKAGE + ".plugins.module_utils." + name)


def reserve(data_dir, items, check_mode=False):
    """Carry out a batch as the module does; return the plan."""
    sets = module("host_local.config").load_ipam_config(calls.configuration(data_dir, IPAM)).sets
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
