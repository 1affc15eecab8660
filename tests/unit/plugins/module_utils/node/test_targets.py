# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which network a task is about. What the modules make of it is tested with them."""

from __future__ import annotations

import contextlib
import json
import os
import socket

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import targets


def options(**given):
    names = ("network", "config", "conflist", "ranges", "data_dir")
    return dict(dict.fromkeys(names), conf_dir="/nonexistent", flannel_subnet_file="/nonexistent", **given)


def config(name="lan", **ipam):
    return {"cniVersion": "1.0.0", "name": name, "type": "macvlan", "ipam": dict(ipam, type="host-local")}


def test_configuration():
    target = targets.find(options(config=config(subnet="192.0.2.0/24", dataDir="/d")))
    assert (target.name, target.data_dir, target.path) == ("lan", "/d", "/d/lan")
    assert (target.source, target.scope) == ("the option config", "shared")
    assert [str(one) for one in target.range_sets()] == ["192.0.2.1-192.0.2.254"]


def test_default_data_dir():
    assert targets.find(options(config=config(subnet="192.0.2.0/24"))).path == "/var/lib/cni/networks/lan"


def test_overrides():
    given = config(subnet="192.0.2.0/24", dataDir="/d")
    target = targets.find(options(config=given, data_dir="/e", ranges=[[{"subnet": "198.51.100.0/29"}]]))
    assert target.path == "/e/lan"
    assert [str(one) for one in target.range_sets()] == ["198.51.100.1-198.51.100.6"]


def test_a_name_with_both_overrides_needs_no_configuration():
    target = targets.find(options(network="new", data_dir="/e", ranges=[[{"subnet": "198.51.100.0/29"}]]))
    assert (target.name, target.path, target.source) == ("new", "/e/new", "the option ranges")


def test_a_name_with_one_override_needs_it():
    for given in ({"data_dir": "/e"}, {"ranges": [[{"subnet": "198.51.100.0/29"}]]}):
        with pytest.raises(NodenetError, match="Cannot use network new in /nonexistent: "):
            targets.find(options(network="new", **given))


def test_an_orphan_will_do_for_releases_where_its_directory_is(tmp_path):
    given = options(network="old", data_dir=str(tmp_path))
    with pytest.raises(NodenetError):
        targets.find(given, only_releases=True)
    (tmp_path / "old").mkdir()
    with pytest.raises(NodenetError):
        targets.find(given)
    target = targets.find(given, only_releases=True)
    assert (target.path, target.source, target.known_range_sets(), target.facts) == (str(tmp_path / "old"), "", [], [])


@pytest.mark.parametrize("name", ["../lan", "", ".lan", "lan/x", "l n"])
def test_names_that_cannot_be_one(name):
    with pytest.raises(NodenetError, match="a network name starts with a letter or digit"):
        targets.find(options(network=name, data_dir="/d", ranges=[]))


@pytest.mark.parametrize("name", ["../lan", "", ".lan"])
def test_a_configuration_with_such_a_name(name):
    with pytest.raises(NodenetError, match="it needs a valid name"):
        targets.find(options(config=config(name, subnet="192.0.2.0/24")))


def test_two_plugins_with_host_local():
    plugins = [config(subnet="192.0.2.0/24"), config(subnet="198.51.100.0/24")]
    words = "2 of its plugins use host-local; give the configuration of one of them, by the option config"
    with pytest.raises(NodenetError, match=words):
        targets.find(options(config={"name": "lan", "cniVersion": "1.0.0", "plugins": plugins}))


def test_faulty_ranges_name_their_place():
    target = targets.find(options(config=config(ranges=[[{"subnet": "192.0.2.0/24"}], [{"subnet": "192.0.2.0/25"}]])))
    with pytest.raises(NodenetError) as caught:
        target.range_sets()
    text = "Cannot use network lan in the option config, ipam.ranges[1]: range set 0 overlaps with 1"
    assert str(caught.value) == text
    assert target.known_range_sets() == []
    assert [(one["kind"], one["path"]) for one in target.facts] == [("conf-ipam-invalid", "ipam.ranges[1]")]


def test_why_flannel_gave_no_ranges(tmp_path):
    flannel = {"name": "cbr0", "cniVersion": "1.0.0", "plugins": [{"type": "flannel", "delegate": {}}]}
    target = targets.find(options(config=flannel))
    with pytest.raises(NodenetError) as caught:
        target.range_sets()
    assert str(caught.value).endswith("no IP ranges specified (/nonexistent: no such file or directory)")


def test_a_conflist_by_its_path(tmp_path):
    path = tmp_path / "x.conflist"
    document = {"name": "lan", "cniVersion": "1.0.0", "plugins": [config(subnet="192.0.2.0/24")]}
    path.write_text(json.dumps(document))
    assert targets.find(options(conflist=str(path))).source == str(path)
    path.write_text('{"name": ')
    with pytest.raises(NodenetError) as caught:
        targets.find(options(conflist=str(path)))
    assert str(caught.value).startswith(f"Cannot use the network in {path}: ")


@pytest.mark.parametrize("kind", ["fifo", "directory", "missing", "socket", "nul"])
def test_a_conflist_that_is_no_file(tmp_path, kind):
    """One clear error at once; a FIFO would be waited for till the end of days."""
    path = tmp_path / "x.conflist"
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
        if kind == "fifo":
            os.mkfifo(str(path))
        elif kind == "directory":
            path.mkdir()
        elif kind == "socket":
            listening.bind(str(path))
        name = str(path) + "\0" if kind == "nul" else str(path)
        with pytest.raises(NodenetError) as caught:
            targets.find(options(conflist=name))
    assert str(caught.value).startswith(f"Cannot use the network in {name}: ")


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_a_flannel_file_that_is_no_file(tmp_path, kind):
    path = tmp_path / "subnet.env"
    os.mkfifo(str(path)) if kind == "fifo" else path.mkdir()
    flannel = {"name": "cbr0", "cniVersion": "1.0.0", "plugins": [{"type": "flannel", "delegate": {}}]}
    given = options(config=flannel)
    given["flannel_subnet_file"] = str(path)
    target = targets.find(given)
    assert [one["kind"] for one in target.facts] == ["ipam-flannel-subnet-missing"]
    with pytest.raises(NodenetError, match="no IP ranges specified"):
        target.range_sets()


def test_a_data_dir_that_no_path_can_be():
    with pytest.raises(NodenetError) as caught:
        targets.find(options(config=config(subnet="192.0.2.0/24", dataDir="/d\0e")))
    assert str(caught.value) == "Cannot use network lan in '/d\\x00e': a path holds no NUL byte"


def test_label():
    assert targets.label(options(network="a")) == "a"
    assert targets.label(options(conflist="/p")) == "/p"
    assert targets.label(options(config={"name": "b"})) == "b"
    assert targets.label(options(config={})) == "without a name"
