# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's bridge, ptp and macvlan plugins take their addresses from our host-local."""

from __future__ import annotations

import addressfiles
import needs
import pytest
from machine import PluginFailed

FOUR = {"subnet": "10.88.0.0/24", "rangeStart": "10.88.0.10", "rangeEnd": "10.88.0.13"}
SIX = {"subnet": "fd00:88::/64", "rangeStart": "fd00:88::10", "rangeEnd": "fd00:88::13"}
STATIC = {"10.88.0.11": "db-0", "fd00:88::11": "db-0"}
FREE = [("10.88.0.10/24", "fd00:88::10/64"), ("10.88.0.12/24", "fd00:88::12/64"), ("10.88.0.13/24", "fd00:88::13/64")]

MAIN = {
    "bridge": {"bridge": "cni9", "isGateway": True},
    "ptp": {},
    "macvlan": {"master": "up0"},
}


def configuration(kind, data_dir, version="1.0.0", ranges=(FOUR, SIX)):
    routes = [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}][: len(ranges)]
    ipam = {"type": "host-local", "dataDir": str(data_dir), "ranges": [[one] for one in ranges], "routes": routes}
    return dict(MAIN[kind], cniVersion=version, name="net", type=kind, ipam=ipam)


def prepare(machine, kind):
    if kind == "macvlan":
        machine.run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "up0p")
        machine.run("ip", "link", "set", "up0", "up")
        machine.run("ip", "link", "set", "up0p", "up")
        probe = machine.run("ip", "link", "add", "probe", "link", "up0", "type", "macvlan", check=False)
        if probe.returncode:
            needs.leave_out(f"this kernel has no macvlan: {probe.stderr.strip()}", mandatory=False)


@pytest.mark.parametrize("kind", sorted(MAIN))
def test_dual_stack(machine, paths, tmp_path, kind):
    prepare(machine, kind)
    config = configuration(kind, tmp_path)
    for address, owner in STATIC.items():
        addressfiles.reserve_static(tmp_path, "net", address, owner)
    reserved = addressfiles.held(tmp_path, "net")
    results = {}
    for number, pair in enumerate(FREE):
        pod = f"pod{number}"
        machine.add_pod(pod)
        results[pod] = machine.cni(paths["ours"], "ADD", config, pod)
        assert addressfiles.of_result(results[pod]) == sorted(pair)
        assert machine.addresses(pod) == sorted(pair)
        for address in addressfiles.plain(pair):
            assert addressfiles.held(tmp_path, "net")[address] == f"{pod}\r\neth0"
            assert addressfiles.written_by(tmp_path, "net", address) == "ours"

    machine.add_pod("late")
    with pytest.raises(PluginFailed, match="no IP addresses available in range set: 10.88.0.10-10.88.0.13"):
        machine.cni(paths["ours"], "ADD", config, "late")
    machine.cni(paths["ours"], "DEL", config, "late")  # as every runtime does after a failed ADD
    with pytest.raises(PluginFailed, match=r"requested IP address 10\.88\.0\.11 is not available in range set"):
        machine.cni(paths["ours"], "ADD", config, "late", arguments="IgnoreUnknown=1;IP=10.88.0.11")
    machine.cni(paths["ours"], "DEL", config, "late")

    for pod, result in results.items():
        machine.cni(paths["ours"], "CHECK", dict(config, prevResult=result), pod)
    for address in addressfiles.plain(FREE[1]):
        assert machine.reaches("pod0", address)
    if kind != "macvlan":  # nobody is the gateway of a macvlan here
        assert machine.reaches("pod0", "10.88.0.1")
        assert machine.reaches("pod0", "fd00:88::1")

    machine.cni(paths["ours"], "DEL", dict(config, prevResult=results["pod1"]), "pod1")
    machine.cni(paths["ours"], "DEL", config, "pod1")  # runtimes repeat it
    assert machine.addresses("pod1") == []
    assert not machine.reaches("pod0", addressfiles.plain(FREE[1])[0], timeout_s=0.3)
    with pytest.raises(PluginFailed, match="host-local: Failed to find address added by container pod1"):
        machine.cni(paths["ours"], "CHECK", dict(config, prevResult=results["pod1"]), "pod1")

    assert addressfiles.of_result(machine.cni(paths["ours"], "ADD", config, "late")) == sorted(FREE[1])
    assert machine.reaches("late", addressfiles.plain(FREE[0])[0])
    for pod in ("pod0", "pod2", "late"):
        machine.cni(paths["ours"], "DEL", config, pod)
    assert addressfiles.held(tmp_path, "net") == reserved


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0"])
def test_older_versions_of_the_protocol(machine, paths, tmp_path, version):
    config = configuration("ptp", tmp_path, version, ranges=(FOUR,))
    machine.add_pod("pod0")
    result = machine.cni(paths["ours"], "ADD", config, "pod0")
    assert result["cniVersion"] == version
    assert (result["ip4"]["ip"] if version < "0.3" else result["ips"][0]["address"]) == "10.88.0.10/24"
    assert machine.addresses("pod0") == ["10.88.0.10/24"]
    assert machine.reaches("pod0", "10.88.0.1")
    machine.cni(paths["ours"], "DEL", config, "pod0")
    assert addressfiles.held(tmp_path, "net") == {}


def test_an_address_that_the_runtime_asks_for(machine, paths, tmp_path):
    """By CNI_ARGS, by the capability "ips" and by the convention args.cni.ips."""
    config = configuration("bridge", tmp_path)
    asked = [
        (config, "IgnoreUnknown=1;IP=10.88.0.12", "10.88.0.12/24"),
        (dict(config, runtimeConfig={"ips": ["10.88.0.13/24", "fd00:88::13/64"]}), "", "10.88.0.13/24"),
        (dict(config, args={"cni": {"ips": ["10.88.0.11"]}}), "", "10.88.0.11/24"),
    ]
    for number, (one, arguments, expected) in enumerate(asked):
        machine.add_pod(f"pod{number}")
        result = machine.cni(paths["ours"], "ADD", one, f"pod{number}", arguments=arguments)
        assert expected in addressfiles.of_result(result)
        assert machine.addresses(f"pod{number}") == addressfiles.of_result(result)
        assert machine.reaches(f"pod{number}", "10.88.0.1")
    for number, (one, arguments, _expected) in enumerate(asked):
        machine.cni(paths["ours"], "DEL", one, f"pod{number}", arguments=arguments)
    assert addressfiles.held(tmp_path, "net") == {}


def test_an_add_of_the_main_plugin_that_fails_leaves_nothing(machine, paths, tmp_path):
    """The bridge plugin has an address and cannot go on, for its bridge has another gateway: it calls DEL itself."""
    machine.run("ip", "link", "add", "cni9", "type", "bridge")
    machine.run("ip", "addr", "add", "10.99.0.1/24", "dev", "cni9")
    machine.add_pod("pod0")
    with pytest.raises(PluginFailed, match="already has an IP address different from 10.88.0.1/24"):
        machine.cni(paths["ours"], "ADD", configuration("bridge", tmp_path), "pod0")
    assert (tmp_path / "net" / "last_reserved_ip.0").read_text() == "10.88.0.10"
    assert addressfiles.held(tmp_path, "net") == {}


def test_two_interfaces_of_one_pod(machine, paths, tmp_path):
    config = configuration("bridge", tmp_path)
    machine.add_pod("pod0")
    for ifname in ("eth0", "eth1"):
        machine.cni(paths["ours"], "ADD", config if ifname == "eth0" else without_routes(config), "pod0", ifname)
    assert machine.addresses("pod0", "eth1") == sorted(["10.88.0.11/24", "fd00:88::11/64"])
    machine.cni(paths["ours"], "DEL", config, "pod0", "eth0")
    assert addressfiles.held(tmp_path, "net") == {"10.88.0.11": "pod0\r\neth1", "fd00:88::11": "pod0\r\neth1"}
    machine.cni(paths["ours"], "DEL", config, "pod0", "eth1")
    assert addressfiles.held(tmp_path, "net") == {}


def without_routes(config):
    return dict(config, ipam=dict(config["ipam"], routes=[]))
