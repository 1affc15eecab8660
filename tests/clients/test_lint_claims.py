# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a finding says of the Go plugin, "fails" or "carries_on", is what Debian's plugin does.

Each configuration is wrong in one way. It is linted, and then a pod is attached with it.
"""

from __future__ import annotations

import json

import needs
import pytest
from machine import GO_PLUGINS, PluginFailed

from ansible_collections.nodenet.cni.plugins.module_utils.node import confcheck, confdir, findings

RANGE = {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24"}]]}
STATIC = {"type": "static", "addresses": [{"address": "10.88.0.5/24"}]}
BRIDGE = {"type": "bridge", "bridge": "cni9"}
PTP = {"type": "ptp", "ipam": RANGE}
PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}

FAILS = {
    "CONF026": [
        dict(BRIDGE, isGateway="true"),
        dict(BRIDGE, mtu="1450"),
        dict(BRIDGE, mtu=1450.5),
        dict(BRIDGE, args=None, bridge=7),
        dict(PTP, ipMasq="yes"),
        {"type": "macvlan", "master": ["up0"]},
        {"type": "ipvlan", "master": "up0", "mode": 2, "ipam": RANGE},
        {"type": "vlan", "master": "up0", "vlanId": "7", "ipam": RANGE},
        {"type": "host-device", "device": 1},
        [PTP, {"type": "tuning", "sysctl": {"net.core.somaxconn": 500}}],
        [PTP, dict(PORTMAP, snat="true")],
        [PTP, {"type": "bandwidth", "ingressRate": "1000", "ingressBurst": 1000}],
        [PTP, {"type": "bandwidth", "ingressRate": -1, "ingressBurst": 1000}],
        [PTP, {"type": "firewall", "backend": True}],
        [PTP, {"type": "vrf", "vrfname": "blue", "table": -1}],
        {"type": "ptp", "ipam": dict(STATIC, routes={"dst": "0.0.0.0/0"})},
    ],
    "CONF027": [
        dict(BRIDGE, vlan=4095),
        dict(BRIDGE, vlan=-1),
        dict(BRIDGE, bridge="a-name-of-16-chr"),
        dict(PTP, mtu=67),
        dict(PTP, mtu=65536),
        dict(BRIDGE, mtu=65536),
        dict(BRIDGE, mtu=67),
        {"type": "macvlan", "master": "up0", "mtu": -1},
        [PTP, {"type": "tuning", "mtu": -1}],
        {"type": "macvlan", "master": "up0", "mode": "Bridge"},
        {"type": "macvlan", "master": "up0", "mac": "02:00"},
        {"type": "ipvlan", "master": "up0", "mode": "l4", "ipam": RANGE},
        {"type": "vlan", "master": "up0", "vlanId": 4095, "ipam": RANGE},
        {"type": "host-device", "hwaddr": "02:00"},
        {"type": "host-device", "kernelpath": "/sys/class/net/up0"},
        [PTP, dict(PORTMAP, markMasqBit=32)],
        [PTP, {"type": "tuning", "sysctl": {"kernel.msgmax": "8192"}}],
        [PTP, {"type": "tuning", "mac": "02:00"}],
        [PTP, {"type": "bandwidth", "ingressRate": 8, "ingressBurst": 8 * 4294967295}],
        [PTP, {"type": "firewall", "ingressPolicy": "closed"}],
        {"type": "ptp", "ipam": {"type": "static", "addresses": [{"address": "10.88.0.5"}]}},
    ],
    "CONF029": [
        dict(BRIDGE, hairpinMode=True, promiscMode=True),
        [PTP, dict(PORTMAP, markMasqBit=1, externalSetMarkChain="K")],
    ],
    "CONF030": [
        {"type": "ptp"},
        {"type": "ipvlan", "master": "up0"},
        {"type": "vlan", "master": "up0", "vlanId": 7},
        {"type": "vlan", "vlanId": 7, "ipam": RANGE},
        [PTP, {"type": "bandwidth", "ingressRate": 1000}],
        [PTP, {"type": "vrf"}],
        {"type": "ptp", "ipam": {"type": "static", "addresses": [{"gateway": "10.88.0.1"}]}},
        {"type": "ptp", "ipam": dict(STATIC, routes=[{"gw": "10.88.0.1"}])},
    ],
    "CONF031": [PORTMAP, {"type": "tuning"}, {"type": "firewall"}, {"type": "sbr"}, {"type": "vrf", "vrfname": "blue"}],
    "CONF032": [[PTP, BRIDGE], [BRIDGE, {"type": "macvlan", "master": "up0"}]],
    "CONF037": [[PTP, {"type": "firewall"}], [PTP, {"type": "vrf", "vrfname": "blue"}]],
    "CONF046": [{"type": "host-device"}],
    "CONF057": [{"type": "ptp", "ipam": {"type": "static"}}],
    "CONF047": [
        [
            {"type": "macvlan", "master": "up0", "ipam": RANGE},
            {"type": "bandwidth", "ingressRate": 8000, "ingressBurst": 8000},
        ]
    ],
    "CONF020": [{"type": "ptp", "ipam": {"type": "host-local", "ranges": [[]]}}],
    "IPAM003": [{"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.88.0.7/24"}}],
    "IPAM004": [
        {
            "type": "ptp",
            "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24"}, {"subnet": "fd00::/64"}]]},
        }
    ],
    "IPAM008": [dict(PTP, ipam=dict(RANGE, routes=[{"gw": "10.88.0.1"}]))],
    "IPAM007": [dict(PTP, ipam=dict(RANGE, routes=[{"dst": "192.0.2.0/24", "gw": "10.89.0.1"}]))],
}
CARRIES_ON = {
    "CONF024": [dict(BRIDGE, zzz=1), [PTP, dict(PORTMAP, zzz=1)], dict(PTP, ipam=dict(RANGE, zzz=1))],
    "CONF025": [dict(BRIDGE, isGatway=True), dict(PTP, ipam=dict(RANGE, datadirr="/x"))],
    "CONF028": [[PTP, {"type": "firewall", "backend": "nft"}], dict(PTP, mtu=-1), dict(BRIDGE, mtu=-1)],
    "CONF033": [[PTP, {"type": "portmap"}], [PTP, {"type": "bandwidth"}]],
    "CONF034": [dict(BRIDGE, capabilities={"portMappings": True})],
    "CONF041": [dict(BRIDGE, isGateway=True), dict(BRIDGE, ipMasq=True)],
    "CONF042": [dict(BRIDGE, ipMasq=True, ipam=RANGE)],
    "CONF044": [{"type": "vlan", "master": "up0", "ipam": RANGE}],
    "IPAM001": [
        {
            "type": "ptp",
            "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24", "gateway": "10.89.0.1"}]]},
        }
    ],
    "IPAM005": [
        dict(BRIDGE, ipam={"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24", "rangeEnd": "10.88.0.255"}]]})
    ],
    "IPAM006": [
        dict(BRIDGE, ipam={"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24", "rangeStart": "10.88.0.255"}]]})
    ],
}
OLD = {"CONF037": "0.3.0"}
# where all failures of a kind have the same reason
WORDS = {"CONF026": "cannot unmarshal", "CONF032": "exists", "CONF037": "incompatible CNI versions"}


def claims():
    for go, table in (("fails", FAILS), ("carries_on", CARRIES_ON)):
        for code, chains in table.items():
            for number, chain in enumerate(chains):
                yield pytest.param(code, go, chain if isinstance(chain, list) else [chain], id=f"{code}-{number}")


def attach(machine, data_dir, version, chain):
    """Add a pod as libcni does: each plugin gets the result of the one before it."""
    result = None
    for plugin in chain:
        config = dict(plugin, cniVersion=version, name="net")
        if config.get("ipam", {}).get("type") == "host-local":
            config["ipam"] = dict(config["ipam"], dataDir=data_dir)
        if result is not None:
            config["prevResult"] = result
        result = machine.cni(GO_PLUGINS, "ADD", config, "pod0")


@pytest.mark.parametrize(("code", "go", "chain"), list(claims()))
def test_the_plugin_does_what_the_finding_says(machine, tmp_path, code, go, chain):
    version = OLD.get(code, "1.0.0")
    text = json.dumps({"cniVersion": version, "name": "net", "plugins": chain})
    facts = confcheck.check_file(confdir.ConfFile("10-net.conflist", text.encode()), "10-net.conflist")
    found = {one["code"]: one["go"] for one in findings.from_facts(facts)}
    assert found.get(code) == go
    if go == "carries_on":
        assert "fails" not in found.values()
    machine.run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "up0p")
    machine.run("ip", "link", "set", "up0", "up")
    machine.add_pod("pod0")
    message = ""
    try:
        attach(machine, str(tmp_path), version, chain)
    except PluginFailed as failed:
        message = str(failed)
    if "operation not supported" in message:
        needs.leave_out(f"this kernel has no {chain[0]['type']}: {message}", mandatory=False)
    assert bool(message) == (go == "fails"), message
    assert WORDS.get(code, "") in message
