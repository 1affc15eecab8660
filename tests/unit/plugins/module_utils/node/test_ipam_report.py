# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a node as a whole. More of it is tested with the module."""

from __future__ import annotations

import json
import os
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node.ipam_report import report
from ansible_collections.nodenet.cni.plugins.module_utils.node.reserving import reserve

A, B = "a" * 64, "b" * 64


@pytest.fixture
def node(tmp_path):
    """Networks lan and wan, which have data dirs of their own, and a left-over of a former network in one of them."""
    (tmp_path / "net.d").mkdir()
    for number, name in enumerate(("lan", "wan")):
        ipam = {"type": "host-local", "subnet": f"10.{number}.0.0/24", "dataDir": str(tmp_path / ("data-" + name))}
        document = {"name": name, "cniVersion": "1.0.0", "plugins": [{"type": "bridge", "ipam": ipam}]}
        (tmp_path / "net.d" / f"{number}.conflist").write_text(json.dumps(document))
    old = time.time() - 1000
    for path, holder in (("data-lan/lan/10.0.0.2", A), ("data-wan/wan/10.1.0.2", B), ("data-wan/old/10.9.0.2", B)):
        target = tmp_path / path
        target.parent.mkdir(parents=True)
        target.write_bytes(holder.encode() + b"\r\neth0")
        os.utime(str(target), (old, old))
    return tmp_path


def look(node, **more):
    return report(str(node / "net.d"), "/nonexistent", **more)


def test_data_dirs_come_from_the_configurations(node):
    found = [one for one in look(node)["networks"] if str(node) in one["data_dir"]]
    assert [(one["name"], one["data_dir"], one["source"]) for one in found] == [
        ("lan", str(node / "data-lan"), str(node / "net.d" / "0.conflist")),
        ("wan", str(node / "data-wan"), str(node / "net.d" / "1.conflist")),
        ("old", str(node / "data-wan"), None),
    ]


def test_named_networks_only(node):
    assert [one["name"] for one in look(node, names=["old", "lan"])["networks"]] == ["old", "lan"]


def test_live(node):
    result = look(node, names=["lan", "wan"], live={"attachments": [{"container_id": A}]})
    assert [one["reservations"][0]["alive"] for one in result["networks"]] == [True, False]
    assert [one["code"] for one in result["findings"]] == ["IPAM023"]


def test_a_conf_dir_that_is_missing_is_a_finding(node, tmp_path):
    result = report(str(tmp_path / "nope"), "/nonexistent", data_dir=str(node / "data-wan"))
    assert [one["name"] for one in result["networks"]] == ["old", "wan"]
    assert {one["code"] for one in result["findings"]} == {"CONF001", "IPAM010"}


def test_an_unknown_name(node):
    with pytest.raises(NodenetError, match="Cannot report network nope in "):
        look(node, names=["nope"])


def test_what_is_reserved_is_reported(node):
    options = dict.fromkeys(("config", "conflist", "ranges", "data_dir", "purge_prefix"))
    options.update(network="lan", conf_dir=str(node / "net.d"), flannel_subnet_file="/nonexistent", purge=False)
    options.update(on_conflict="fail", lock_timeout=5.0, reservations=[{"owner": "vip", "addresses": ["10.0.0.9"]}])
    done = reserve(options, check_mode=False)
    assert done.result["changed"]
    assert done.difference() == ([], ["10.0.0.9 static.vip eth0"])
    (network,) = look(node, names=["lan"])["networks"]
    assert [(one["address"], one["owner"]) for one in network["reservations"]] == [
        ("10.0.0.2", None),
        ("10.0.0.9", "vip"),
    ]
    assert network["range_sets"][0]["static"] == 1
    assert not reserve(options, check_mode=False).result["changed"]
