# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operators swap the Go host-local and ours on a directory in use, in both directions, at any moment."""

from __future__ import annotations

import random

import addressfiles
import pytest
from machine import PluginFailed

RANGES = [[{"subnet": "10.89.0.0/28"}], [{"subnet": "fd00:89::/120"}]]
STATIC = ["10.89.0.4", "fd00:89::4"]
OTHER = {"ours": "go", "go": "ours"}
STICKY = ["10.89.0.6", "fd00:89::6"]
DB = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=db-0"


def configuration(data_dir):
    ipam = {"type": "host-local", "dataDir": str(data_dir), "ranges": RANGES}
    return {"cniVersion": "1.0.0", "name": "net", "type": "bridge", "bridge": "cni9", "isGateway": True, "ipam": ipam}


@pytest.fixture
def node(machine, tmp_path):
    for address in STATIC:
        addressfiles.reserve_static(tmp_path, "net", address, "db-0")
    return machine


def add(node, path, config, pod, whose):
    """Attach a pod; return the result after looking at the interface and the files."""
    result = node.cni(path, "ADD", config, pod)
    addresses = addressfiles.of_result(result)
    assert node.addresses(pod) == addresses
    for address in addressfiles.plain(addresses):
        assert addressfiles.held(config["ipam"]["dataDir"], "net")[address] == f"{pod}\r\neth0"
        assert addressfiles.written_by(config["ipam"]["dataDir"], "net", address) == whose
    return result


@pytest.mark.parametrize("first", ["go", "ours"])
def test_pods_of_one_are_checked_and_deleted_by_the_other(node, paths, tmp_path, first):
    config = configuration(tmp_path)
    second = OTHER[first]
    results = {}
    for number in range(3):
        pod = f"old{number}"
        node.add_pod(pod)
        results[pod] = add(node, paths[first], config, pod, first)
    # the swap; the round goes on where the other one stopped, past the reservation at .4
    for number in range(2):
        pod = f"new{number}"
        node.add_pod(pod)
        results[pod] = add(node, paths[second], config, pod, second)
    given = [tuple(addressfiles.of_result(result)) for result in results.values()]
    assert given == [(f"10.89.0.{last}/28", f"fd00:89::{last}/120") for last in (2, 3, 5, 6, 7)]
    for pod, result in results.items():
        for path in paths.values():
            node.cni(path, "CHECK", dict(config, prevResult=result), pod)
    assert node.reaches("old0", "10.89.0.6")
    assert node.reaches("new0", "fd00:89::2")

    node.cni(paths[second], "DEL", dict(config, prevResult=results["old1"]), "old1")
    for path in paths.values():
        with pytest.raises(PluginFailed, match="host-local: Failed to find address added by container old1"):
            node.cni(path, "CHECK", dict(config, prevResult=results["old1"]), "old1")
    # swapped back
    node.cni(paths[first], "DEL", dict(config, prevResult=results["new1"]), "new1")
    node.add_pod("last")
    assert addressfiles.of_result(add(node, paths[first], config, "last", first))[0] == "10.89.0.8/28"
    node.cni(paths[second], "DEL", config, "last")
    node.cni(paths[second], "DEL", config, "old0")
    node.cni(paths[first], "DEL", config, "new0")
    assert sorted(set(addressfiles.held(tmp_path, "net").values())) == ["old2\r\neth0", "static.db-0\r\neth0"]
    node.cni(paths[second], "DEL", config, "old2")
    assert sorted(addressfiles.held(tmp_path, "net")) == sorted(STATIC)


def test_any_order(node, paths, tmp_path):
    """Attach and detach with one or the other by chance: no address twice, none lost, the reservation stays."""
    chance = random.Random(7)
    config = configuration(tmp_path)
    pods = [f"pod{number}" for number in range(5)]
    attached: dict[str, list[str]] = {}
    calls = {(command, whose): 0 for command in ("ADD", "DEL") for whose in OTHER}
    for pod in pods:
        node.add_pod(pod)
    for _step in range(40):
        pod, whose = chance.choice(pods), chance.choice(sorted(OTHER))
        if pod in attached:
            node.cni(paths[whose], "DEL", config, pod)
            del attached[pod]
            calls["DEL", whose] += 1
        else:
            attached[pod] = addressfiles.plain(addressfiles.of_result(add(node, paths[whose], config, pod, whose)))
            calls["ADD", whose] += 1
        expected = {address: f"{pod}\r\neth0" for pod, addresses in attached.items() for address in addresses}
        expected.update(dict.fromkeys(STATIC, "static.db-0\r\neth0"))
        assert addressfiles.held(tmp_path, "net") == expected
    assert min(calls.values()) >= 5, calls


@pytest.mark.parametrize("deleter", ["go", "ours"])
@pytest.mark.parametrize("content", ["pod0", "pod0\n", "pod0\r\neth0"])
def test_files_of_older_versions(node, paths, tmp_path, deleter, content):
    """Before 0.7 the file held the container id alone: both implementations still release it."""
    config = configuration(tmp_path)
    node.add_pod("pod0")
    result = add(node, paths[OTHER[deleter]], config, "pod0", OTHER[deleter])
    for address in addressfiles.plain(addressfiles.of_result(result)):
        (tmp_path / "net" / address).write_bytes(content.encode())
    node.cni(paths[deleter], "CHECK", dict(config, prevResult=result), "pod0")
    node.cni(paths[deleter], "DEL", dict(config, prevResult=result), "pod0")
    assert sorted(addressfiles.held(tmp_path, "net")) == sorted(STATIC)


@pytest.mark.parametrize("second", ["go", "ours"])
@pytest.mark.parametrize("option", [True, False], ids=["with the option", "option gone"])
def test_sticky_pods_outlive_the_swap(node, paths, tmp_path, second, option):
    """Ours gives a pod its reserved addresses; whoever deletes it, option or no option, the reservation stays."""
    for address in STICKY:
        addressfiles.reserve_static(tmp_path, "net", address, "shop.db-0")
    reserved = addressfiles.held(tmp_path, "net")
    plain = configuration(tmp_path)
    config = dict(plain, ipam=dict(plain["ipam"], stickyStatic=True))
    afterwards = config if option else plain
    for container in ("one", "two"):
        node.add_pod(container)
        result = node.cni(paths["ours"], "ADD", config, container, arguments=DB)
        addresses = addressfiles.of_result(result)
        assert addresses == node.addresses(container) == ["10.89.0.6/28", "fd00:89::6/120"]
        holders = {address + ".holder": container + "\r\neth0" for address in STICKY}
        assert addressfiles.held(tmp_path, "net") == {**reserved, **holders}
        for path in paths.values():
            node.cni(path, "CHECK", dict(afterwards, prevResult=result), container, arguments=DB)
        node.add_pod("new" + container)
        with pytest.raises(PluginFailed, match="still held by container %s interface eth0" % container):
            node.cni(paths["ours"], "ADD", config, "new" + container, arguments=DB)
        node.cni(paths[second], "DEL", dict(afterwards, prevResult=result), "new" + container, arguments=DB)
        assert addressfiles.held(tmp_path, "net") == {**reserved, **holders}
        node.cni(paths[second], "DEL", dict(afterwards, prevResult=result), container, arguments=DB)
        assert addressfiles.held(tmp_path, "net") == reserved
        for path in paths.values():
            with pytest.raises(PluginFailed, match="Failed to find address added by container " + container):
                node.cni(path, "CHECK", dict(afterwards, prevResult=result), container, arguments=DB)


def test_a_pod_that_go_served_while_its_address_is_reserved(node, paths, tmp_path):
    """Go knows no sticky addresses: its pod gets one of the pool, and ours checks and deletes it."""
    for address in STICKY:
        addressfiles.reserve_static(tmp_path, "net", address, "shop.db-0")
    reserved = addressfiles.held(tmp_path, "net")
    config = configuration(tmp_path)
    config["ipam"]["stickyStatic"] = True
    node.add_pod("old")
    result = node.cni(paths["go"], "ADD", config, "old", arguments=DB)
    assert addressfiles.of_result(result) == ["10.89.0.2/28", "fd00:89::2/120"]
    node.cni(paths["ours"], "CHECK", dict(config, prevResult=result), "old", arguments=DB)
    # the pod moves to its own addresses when its container is replaced
    node.add_pod("new")
    result = node.cni(paths["ours"], "ADD", config, "new", arguments=DB)
    assert addressfiles.of_result(result) == ["10.89.0.6/28", "fd00:89::6/120"]
    node.cni(paths["ours"], "DEL", config, "old", arguments=DB)
    for address in STICKY:
        assert addressfiles.held(tmp_path, "net")[address + ".holder"] == "new\r\neth0"
    node.cni(paths["go"], "DEL", config, "new", arguments=DB)
    assert addressfiles.held(tmp_path, "net") == reserved
