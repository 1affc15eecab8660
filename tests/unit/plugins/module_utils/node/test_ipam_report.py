# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a node as a whole. More of it is tested with the module."""

from __future__ import annotations

import fcntl
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


def spoil_file(node):
    """The network's directory is a file."""
    path = node / "data-lan" / "lan"
    path.joinpath("10.0.0.2").unlink()
    path.rmdir()
    path.write_text("x")


def spoil_lock(node):
    """The lock is a directory."""
    (node / "data-lan" / "lan" / "lock").mkdir()


def spoil_data_dir(node):
    """The configured data dir is no path at all."""
    path = node / "net.d" / "0.conflist"
    path.write_text(path.read_text().replace("data-lan", "data\\u0000lan"))


@pytest.mark.parametrize("spoil", [spoil_file, spoil_lock, spoil_data_dir])
def test_one_network_that_cannot_be_used_does_not_hide_the_others(node, spoil):
    spoil(node)
    result = look(node)
    assert [one["name"] for one in result["networks"] if str(node) in one["data_dir"]] == ["wan", "old"]
    found = [one for one in result["findings"] if one["code"] == "IPAM028"]
    places = {str(node / "data-lan" / "lan")}
    if spoil is spoil_data_dir:
        places = {f"{node}/data\\x00lan", f"{node}/data\\x00lan/lan"}
    assert {one["where"] for one in found} == places
    assert {(one["severity"], one["go"]) for one in found} == {("error", "fails")}
    # who asks for it by its name has to learn it
    with pytest.raises(NodenetError, match="Cannot report network lan in "):
        look(node, names=["wan", "lan"])
    assert [one["name"] for one in look(node, names=["wan"])["networks"]] == ["wan"]


def test_a_version_that_is_none_does_not_hide_the_others(node):
    path = node / "net.d" / "0.conflist"
    path.write_text(path.read_text().replace("1.0.0", "1.x"))
    result = look(node)
    assert {"lan", "wan", "old"} <= {one["name"] for one in result["networks"]}
    (fault,) = [one for one in result["findings"] if one["severity"] == "error"]
    assert (fault["code"], fault["where"]) == ("CONF020", str(path))
    assert fault["text"].startswith("cniVersion: ")


def test_a_lock_that_hangs_does_not_hide_the_others(node):
    for path in ("data-lan/lan/lock", "data-wan/old/lock"):
        (node / path).touch()
    with open(str(node / "data-lan/lan/lock")) as one, open(str(node / "data-wan/old/lock")) as other:
        fcntl.flock(one, fcntl.LOCK_EX)
        fcntl.flock(other, fcntl.LOCK_EX)
        result = look(node, lock_timeout=0.1)
        assert [one["name"] for one in result["networks"] if str(node) in one["data_dir"]] == ["wan"]
        found = {one["where"]: one["text"] for one in result["findings"] if one["code"] == "IPAM028"}
        assert set(found) == {str(node / "data-lan" / "lan"), str(node / "data-wan" / "old")}
        assert all(f"process {os.getpid()}" in text for text in found.values())
        for names in (["lan"], ["old"]):
            with pytest.raises(NodenetError, match=r"within 0\.1 s"):
                look(node, names=names, lock_timeout=0.1)


def test_directories_of_others_are_neither_read_nor_locked(node):
    """A data dir such as /var/lib has all kinds of directories beside the networks'."""
    other = node / "data-wan" / "database"
    (other / "10.0.0.0").mkdir(parents=True)
    for name in ("lock", "10.0.0.1.", "cafe", "1.2.3"):
        (other / name).touch()
    os.mkfifo(str(other / "10.0.0.7"))
    with open(str(other / "lock")) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        started = time.monotonic()
        result = look(node, lock_timeout=30.0)
        assert time.monotonic() - started < 10
    assert "database" not in json.dumps(result)


def test_a_broken_lock_time_out(node):
    for seconds in (float("nan"), -1.0, 86401.0, float("inf")):
        with pytest.raises(NodenetError, match="lock_timeout must be a number of seconds from 0 to 86400, not "):
            look(node, lock_timeout=seconds)
        with pytest.raises(NodenetError, match="lock_timeout must be a number of seconds from 0 to 86400, not "):
            reserve(options_of(node, lock_timeout=seconds), check_mode=False)


@pytest.mark.parametrize("name", ["", None, ".", "..", "../data-lan/lan", "lan/..", "l n"])
def test_a_configuration_whose_name_leads_elsewhere(node, name):
    ipam = {"type": "host-local", "subnet": "10.0.0.0/24", "dataDir": str(node / "data-wan")}
    config = {"cniVersion": "1.0.0", "name": name, "plugins": [{"type": "bridge", "ipam": ipam}]}
    if name is None:
        del config["name"]
    with pytest.raises(NodenetError) as caught:
        look(node, config=config)
    assert str(caught.value) == f"Cannot report network {name or ''!r} of the option config: it needs a valid name"


def test_a_configuration_with_two_plugins_of_one_network(node):
    ipams = [
        {"type": "host-local", "subnet": subnet, "dataDir": str(node / "data-lan")}
        for subnet in ("10.0.0.0/24", "10.7.0.0/24")
    ]
    plugins = [{"type": "bridge", "ipam": ipam} for ipam in ipams]
    result = look(node, config={"cniVersion": "1.0.0", "name": "lan", "plugins": plugins})
    assert [one["range_sets"][0]["ranges"] for one in result["networks"]] == [["10.0.0.1-10.0.0.254"]]
    assert [one["code"] for one in result["findings"]] == ["CONF014"]


def test_names_that_are_no_text_can_be_sent(node):
    document = (node / "net.d" / "1.conflist").read_bytes()
    for name, content in (
        ("net.d/2\udcff.conflist", document.replace(b'"wan"', b'"third"')),
        ("net.d/3\udcfe.conflist", b"{"),
        ("data-lan/lan/\udcff\udcfe", b"x"),
    ):
        with open(os.fsencode(f"{node}/{name}"), "wb") as stream:
            stream.write(content)
    result = look(node)
    json.dumps(result, ensure_ascii=False).encode()
    by_name = {one["name"]: one for one in result["networks"]}
    assert by_name["lan"]["foreign"] == ["\\xff\\xfe"]
    assert by_name["third"]["source"] == str(node / "net.d" / "2\\xff.conflist")
    assert str(node / "net.d" / "3\\xfe.conflist") in {one["where"] for one in result["findings"]}
    with pytest.raises(NodenetError) as caught:
        reserve(options_of(node, network="nope"), check_mode=True)
    str(caught.value).encode()


def options_of(node, **more):
    options = dict.fromkeys(("config", "conflist", "ranges", "data_dir", "purge_prefix"))
    options.update(network="lan", conf_dir=str(node / "net.d"), flannel_subnet_file="/nonexistent", purge=False)
    options.update(on_conflict="fail", lock_timeout=5.0, reservations=[{"owner": "vip", "addresses": ["10.0.0.9"]}])
    return dict(options, **more)


def test_what_is_reserved_is_reported(node):
    options = options_of(node)
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
