# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The libcni of the CNI project calls the plugins: with its cache of results, capabilities and CHECK."""

from __future__ import annotations

import os

import addressfiles
import pytest
from libcni_calls import ClientFailed

RANGES = [[{"subnet": "10.93.0.0/24"}], [{"subnet": "fd00:93::/64"}]]


def conflist(data_dir, *plugins, version="1.0.0"):
    ipam = {"type": "host-local", "dataDir": str(data_dir), "ranges": RANGES}
    first = plugins[0] if plugins else {"type": "bridge", "bridge": "cni9", "isGateway": True}
    first = dict(first, ipam=ipam, capabilities={"ips": True})
    return {"cniVersion": version, "name": "net", "plugins": [first, *plugins[1:]]}


@pytest.mark.parametrize("version", ["0.4.0", "1.0.0"])
def test_add_check_del(machine, libcni, tmp_path, version):
    network = conflist(tmp_path / "data", version=version)
    addressfiles.reserve_static(tmp_path / "data", "net", "10.93.0.2", "db-0")
    results = {}
    for pod in ("pod0", "pod1"):
        machine.add_pod(pod)
        results[pod] = libcni("add", network, pod)
        assert machine.addresses(pod) == addressfiles.of_result(results[pod])
        assert libcni("cached", network, pod) == results[pod]
        libcni("check", network, pod)
    assert addressfiles.of_result(results["pod0"]) == ["10.93.0.3/24", "fd00:93::2/64"]
    assert addressfiles.written_by(tmp_path / "data", "net", "10.93.0.3") == "ours"
    assert machine.reaches("pod0", "10.93.0.4")

    os.unlink(tmp_path / "data" / "net" / "10.93.0.4")
    os.unlink(tmp_path / "data" / "net" / "fd00:93::3")
    with pytest.raises(ClientFailed, match="host-local: Failed to find address added by container pod1"):
        libcni("check", network, "pod1")
    libcni("check", network, "pod0")

    for pod in ("pod0", "pod1", "pod1"):  # with the cached result, without an address, without anything
        libcni("del", network, pod)
        assert machine.addresses(pod) == []
    assert sorted(addressfiles.held(tmp_path / "data", "net")) == ["10.93.0.2"]
    assert libcni("cached", network, "pod0") is None


def test_capabilities_and_a_chain(machine, libcni, tmp_path):
    """The capability "ips" through libcni; a chained plugin gets our result as prevResult."""
    bridge = {"type": "bridge", "bridge": "cni9", "isGateway": True}
    network = conflist(tmp_path / "data", bridge, {"type": "tuning", "mac": "02:00:00:00:00:93"})
    machine.add_pod("pod0")
    result = libcni("add", network, "pod0", capabilities={"ips": ["10.93.0.77/24", "fd00:93::77/64"]})
    assert addressfiles.of_result(result) == ["10.93.0.77/24", "fd00:93::77/64"] == machine.addresses("pod0")
    libcni("check", network, "pod0")
    machine.add_pod("pod1")
    with pytest.raises(ClientFailed, match=r"requested IP address 10\.93\.0\.77 is not available in range set"):
        libcni("add", network, "pod1", capabilities={"ips": ["10.93.0.77/24"]})
    for pod in ("pod0", "pod1"):
        libcni("del", network, pod)
    assert addressfiles.held(tmp_path / "data", "net") == {}


def test_our_plugin_alone(machine, libcni, tmp_path):
    """With nothing between libcni and us: VERSION is asked, the result is parsed, CHECK and DEL get it back."""
    for version in ("0.2.0", "0.3.1", "0.4.0", "1.0.0"):
        network = conflist(tmp_path / "data", {"type": "host-local"}, version=version)
        if version == "0.2.0":
            network["plugins"][0]["ipam"]["ranges"] = RANGES[:1]
        assert libcni("validate", network, "pod0") == ["ips"]
        machine.add_pod("pod0")
        result = libcni("add", network, "pod0")
        given = [result["ip4"]["ip"]] if version == "0.2.0" else addressfiles.of_result(result)
        assert addressfiles.plain(given) == sorted(addressfiles.held(tmp_path / "data", "net"))
        if version >= "0.4":
            libcni("check", network, "pod0")
        libcni("del", network, "pod0")
        assert addressfiles.held(tmp_path / "data", "net") == {}
        machine.run("ip", "netns", "delete", "pod0")


@pytest.mark.parametrize(("first", "second"), [("go", "ours"), ("ours", "go")])
def test_swap_under_a_cached_result(machine, libcni, tmp_path, first, second):
    """The result in libcni's cache is of one implementation, CHECK and DEL are of the other."""
    network = conflist(tmp_path / "data")
    machine.add_pod("pod0")
    result = libcni("add", network, "pod0", first)
    for address in addressfiles.plain(addressfiles.of_result(result)):
        assert addressfiles.written_by(tmp_path / "data", "net", address) == first
    libcni("check", network, "pod0", second)
    libcni("del", network, "pod0", second)
    assert addressfiles.held(tmp_path / "data", "net") == {}
