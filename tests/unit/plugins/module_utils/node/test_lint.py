# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each plugin: a configuration without a fault, and one for each thing that is wrong."""

from __future__ import annotations

import json
import pathlib

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import confcheck, confdir, findings, plugin_keys

HOST_LOCAL = {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}
STATIC = {"type": "static", "addresses": [{"address": "10.1.0.5/24", "gateway": "10.1.0.1"}]}
MADE = {"type": "ptp", "ipam": HOST_LOCAL}
PORTMAP = {"portMappings": True}


def lint(*plugins, name="10-net.conflist", **more):
    """The facts about a list of these plugins, as (code, path) pairs."""
    content = dict({"cniVersion": "1.0.0", "name": "net", "plugins": list(plugins)}, **more)
    return facts_of(content, name)


def facts_of(content, name="10-net.conflist"):
    text = content if isinstance(content, str) else json.dumps(content)
    facts = confcheck.check_file(confdir.ConfFile(name, text.encode()), name, flannel_subnet_file="")
    assert all(fact["where"] == name for fact in facts)
    findings.from_facts(facts)  # each has what its text needs
    return [(fact["kind"], fact.get("path", "")) for fact in facts]


# type: everything that it reads, in a way that it takes
FULL = {
    "bridge": {
        "bridge": "cni0", "isGateway": True, "isDefaultGateway": True, "forceAddress": False, "ipMasq": True,
        "ipMasqBackend": "nftables", "mtu": 1450, "hairpinMode": True, "promiscMode": False, "vlan": 4094,
        "preserveDefaultVlan": False, "macspoofchk": True, "enabledad": True, "portIsolation": True,
        "capabilities": {"mac": True, "ips": True, "ipRanges": True}, "ipam": HOST_LOCAL,
        "dns": {"nameservers": ["10.1.0.1"], "domain": "d", "search": ["s"], "options": ["o"]},
        "args": {"cni": {"anything": 1}}, "runtimeConfig": {}, "vlanTrunk": [],
    },
    "ptp": {"ipMasq": False, "ipMasqBackend": "iptables", "mtu": 0, "ipam": STATIC},
    "macvlan": {
        "master": "eth1.7", "mode": "passthru", "mtu": 9000, "mac": "02-00-00-00-00-01", "linkInContainer": True,
        "bcqueuelen": 1000, "capabilities": {"mac": True},
    },
    "ipvlan": {"master": "eth0", "mode": "l3s", "mtu": 1400, "linkInContainer": False, "ipam": {"type": "dhcp"}},
    "vlan": {"master": "eth0", "vlanId": 1, "mtu": 1500, "linkInContainer": False, "ipam": HOST_LOCAL},
    "host-device": {"hwaddr": "0200.0000.0001"},
    "loopback": {},
    "dummy": {"ipam": STATIC},
    "tap": {
        "multiQueue": True, "mtu": 1500, "mac": "02:00:00:00:00:01", "owner": 0, "group": 4294967295,
        "selinuxContext": "a:b", "bridge": "br0",
    },
    "portmap": {
        "backend": "iptables", "snat": False, "conditionsV4": ["!", "-d", "192.0.2.0/24"], "conditionsV6": [],
        "masqAll": True, "markMasqBit": 13, "capabilities": PORTMAP,
    },
    "bandwidth": {
        "ingressRate": 1000, "ingressBurst": 2000, "egressRate": 18446744073709551615, "egressBurst": 8,
        "shapedSubnets": ["10.0.0.0/8", "fd00::/8"],
    },
    "tuning": {
        "dataDir": "/run/x", "sysctl": {"net.core.somaxconn": "500", "net/ipv4/conf/IFNAME/arp_filter": "1"},
        "mac": "02:00:00:00:00:01", "promisc": True, "mtu": 1280, "txQLen": 1000, "allmulti": None,
    },
    "firewall": {
        "backend": "firewalld", "iptablesAdminChainName": "A", "firewalldZone": "z", "ingressPolicy": "same-bridge",
    },
    "sbr": {"table": 100, "addSourceHints": True},
    "vrf": {"vrfname": "blue", "table": 7},
    "flannel": {"subnetFile": "/x", "dataDir": "/y", "delegate": {"hairpinMode": True, "isDefaultGateway": True}},
    "calico": {
        "log_level": "info", "datastore_type": "kubernetes", "nodename": "n", "mtu": 0, "ipam": {"type": "calico-ipam"},
        "policy": {"type": "k8s"}, "kubernetes": {"kubeconfig": "/k"}, "container_settings": {"x": True},
    },
    "kube-ovn": {"server_socket": "/run/s", "ipam": {"type": "kube-ovn", "provider": "p"}},
    "multus": {"clusterNetwork": "default", "kubeconfig": "/k", "readinessindicatorfile": "/r", "logToStderr": True},
    "sriov": {"vlan": 5, "vlanQoS": 3, "spoofchk": "on", "trust": "off", "link_state": "auto", "min_tx_rate": 0},
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(FULL))
def test_what_a_plugin_reads_is_no_finding(kind):
    plugin = dict(FULL[kind], type=kind)
    before = [MADE] if kind in plugin_keys.CHAINED else []
    assert lint(*before, plugin) == []
    shouted = {key if key == "capabilities" else key.upper(): value for key, value in plugin.items()}
    assert lint(*before, shouted) == [], "keys are matched without regard to case"
    null = {key: None for key in plugin if key not in ("type", "capabilities", "ipam")}
    assert not [one for one in lint(*before, dict(plugin, **null)) if one[0] == "conf-key-type"], "null is no type"


def test_the_tables_are_those_of_the_tests():
    names = {line.split()[0] for line in plugin_keys.TABLES.splitlines() if line.strip()}
    assert {name for name in names if name[0] != "." and "/" not in name} == set(FULL)
    for name in names:
        for key in plugin_keys.keys_of(name).values():
            table = key.kind.lstrip("lm")
            assert table in ("s", "b", "i", "u", "U", "*") or plugin_keys.keys_of(table) is not None, (name, key.name)


@pytest.mark.parametrize("kind", sorted(FULL))
def test_a_key_that_a_plugin_does_not_read(kind):
    before = [MADE] if kind in plugin_keys.CHAINED else []
    place = f"plugins[{len(before)}]"
    unknown = lint(*before, dict(FULL[kind], type=kind, zzz=1))
    assert unknown == ([] if kind in plugin_keys.PRODUCTS else [("conf-key-unknown", place + ".zzz")])
    assert lint(*before, dict(FULL[kind], type=kind, capabilitys={})) == [("conf-key-misspelt", place + ".capabilitys")]
    for remark in ("_comment", "//", "comment"):
        assert lint(*before, dict(FULL[kind], type=kind, **{remark: "why"})) == []


def wrong_types():
    for kind in sorted(FULL):
        for key in plugin_keys.keys_of(kind).values():
            first = key.kind[0]
            if first != "*":
                wrong = 7 if first == "s" else {"a": "string"} if first == "l" else "yes"
                yield pytest.param(kind, key.name, wrong, id=f"{kind}-{key.name}")


@pytest.mark.parametrize(("kind", "key", "wrong"), list(wrong_types()))
def test_a_value_of_another_type(kind, key, wrong):
    before = [MADE] if kind in plugin_keys.CHAINED else []
    found = lint(*before, dict(FULL[kind], type=kind, **{key: wrong}))
    assert ("conf-key-type", f"plugins[{len(before)}].{key}") in found


@pytest.mark.parametrize(
    ("plugin", "fact"),
    [
        ({"type": "bridge", "vlan": 4095}, ("conf-value-refused", "plugins[0].vlan")),
        ({"type": "bridge", "vlan": -1}, ("conf-value-refused", "plugins[0].vlan")),
        ({"type": "bridge", "mtu": 1e3}, ("conf-key-type", "plugins[0].mtu")),
        ({"type": "bridge", "mtu": 65536}, ("conf-value-refused", "plugins[0].mtu")),
        ({"type": "bridge", "mtu": 67}, ("conf-value-refused", "plugins[0].mtu")),
        ({"type": "bridge", "mtu": -1}, ("conf-value-default", "plugins[0].mtu")),
        ({"type": "macvlan", "mtu": -1}, ("conf-value-refused", "plugins[0].mtu")),
        ({"type": "bridge", "bridge": "a-name-of-16-chr"}, ("conf-value-refused", "plugins[0].bridge")),
        ({"type": "bridge", "bridge": "a b"}, ("conf-value-refused", "plugins[0].bridge")),
        (
            {"type": "bridge", "hairpinMode": True, "promiscMode": True},
            ("conf-keys-conflict", "plugins[0].hairpinMode"),
        ),
        ({"type": "bridge", "vlan": 1, "vlanTrunk": [{"id": 2}]}, ("conf-keys-conflict", "plugins[0].vlan")),
        (
            {"type": "bridge", "disableContainerInterface": True, "ipam": HOST_LOCAL},
            ("conf-keys-conflict", "plugins[0].disableContainerInterface"),
        ),
        ({"type": "bridge", "vlanTrunk": [{"id": 0}]}, ("conf-value-refused", "plugins[0].vlanTrunk[0].id")),
        ({"type": "bridge", "vlanTrunk": [{"minID": 1}]}, ("conf-key-needed", "plugins[0].vlanTrunk[0].maxID")),
        ({"type": "bridge", "vlanTrunk": [{"maxID": 1}]}, ("conf-key-needed", "plugins[0].vlanTrunk[0].minID")),
        (
            {"type": "bridge", "vlanTrunk": [{"minID": 3, "maxID": 2}]},
            ("conf-value-refused", "plugins[0].vlanTrunk[0].maxID"),
        ),
        ({"type": "bridge", "isGateway": True}, ("conf-key-idle", "plugins[0].isGateway")),
        ({"type": "bridge", "ipMasq": True, "ipam": HOST_LOCAL}, ("conf-masquerade-idle", "plugins[0].ipMasq")),
        ({"type": "ptp"}, ("conf-key-needed", "plugins[0].ipam.type")),
        ({"type": "dummy", "ipam": {}}, ("conf-key-needed", "plugins[0].ipam.type")),
        ({"type": "macvlan", "mode": "Bridge"}, ("conf-value-refused", "plugins[0].mode")),
        ({"type": "macvlan", "mac": "02:00:00:00:00"}, ("conf-value-refused", "plugins[0].mac")),
        ({"type": "macvlan", "mac": "02:00:00:00:00:0g"}, ("conf-value-refused", "plugins[0].mac")),
        ({"type": "macvlan", "linkInContainer": True}, ("conf-link-in-container", "plugins[0].linkInContainer")),
        ({"type": "ipvlan", "mode": "l4", "ipam": HOST_LOCAL}, ("conf-value-refused", "plugins[0].mode")),
        ({"type": "ipvlan"}, ("conf-key-needed", "plugins[0].ipam.type")),
        ({"type": "vlan", "vlanId": 7, "ipam": HOST_LOCAL}, ("conf-key-needed", "plugins[0].master")),
        (
            {"type": "vlan", "master": "e", "vlanId": 4095, "ipam": HOST_LOCAL},
            ("conf-value-refused", "plugins[0].vlanId"),
        ),
        ({"type": "vlan", "master": "e", "ipam": HOST_LOCAL}, ("conf-vlan-zero", "plugins[0].vlanId")),
        ({"type": "vlan", "master": "e", "vlanId": 7}, ("conf-key-needed", "plugins[0].ipam.type")),
        ({"type": "host-device"}, ("conf-device-needed", "plugins[0]")),
        ({"type": "host-device", "kernelpath": "/sys/class/net/x"}, ("conf-value-refused", "plugins[0].kernelpath")),
        ({"type": "host-device", "device": "a", "hwaddr": "02:00:00:00:00:01"}, ("conf-key-idle", "plugins[0].hwaddr")),
        ({"type": "tap", "owner": -1}, ("conf-key-type", "plugins[0].owner")),
        ({"type": "tap", "owner": 1 << 32}, ("conf-key-type", "plugins[0].owner")),
        ({"type": "portmap", "capabilities": PORTMAP}, ("conf-chain-first", "plugins[0]")),
        ({"type": "sbr"}, ("conf-chain-first", "plugins[0]")),
        ({"type": "bridge", "capabilities": PORTMAP}, ("conf-capability-idle", "plugins[0].capabilities.portMappings")),
        ({"type": "bridge", "capabilities": {"ips": True}}, ("conf-capability-idle", "plugins[0].capabilities.ips")),
        ({"type": "flannel", "delegate": {"ipam": {}}}, ("conf-delegate-key", "plugins[0].delegate.ipam")),
        ({"type": "flannel", "delegate": {"mtu": "1450"}}, ("conf-key-type", "plugins[0].delegate.mtu")),
        ({"type": "flannel", "delegate": {"brigde": "x"}}, ("conf-key-misspelt", "plugins[0].delegate.brigde")),
        ({"type": "multus"}, ("conf-key-needed", "plugins[0].delegates")),
        (
            {"type": "multus", "delegates": [{"type": "multus", "clusterNetwork": "a"}]},
            ("conf-delegate-itself", "plugins[0].delegates[0]"),
        ),
        (
            {"type": "multus", "delegates": [{"name": "a", "plugins": [{"type": "bridge", "mtu": "1"}]}]},
            ("conf-key-type", "plugins[0].delegates[0].plugins[0].mtu"),
        ),
        ({"type": "sriov", "vlanQoS": 3}, ("conf-key-needed", "plugins[0].vlan")),
        ({"type": "sriov", "spoofchk": True}, ("conf-key-type", "plugins[0].spoofchk")),
        ({"type": "calico", "mtu": "1450"}, ("conf-key-type", "plugins[0].mtu")),
        ({"type": "calico", "nodname": "x"}, ("conf-key-misspelt", "plugins[0].nodname")),
        (
            {"type": "macvlan", "ipam": {"type": "whereabouts", "rnage": "x"}},
            ("conf-key-misspelt", "plugins[0].ipam.rnage"),
        ),
        (
            {"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/8", "range_start": "10.0.0"}},
            ("conf-value-refused", "plugins[0].ipam.range_start"),
        ),
        (
            {"type": "macvlan", "ipam": {"type": "dhcp", "request": [{"option": 6}]}},
            ("conf-key-type", "plugins[0].ipam.request[0].option"),
        ),
        ({"type": "ptp", "ipam": {"type": "static"}}, ("conf-static-empty", "plugins[0].ipam.addresses")),
        (
            {"type": "ptp", "ipam": {"type": "static", "addresses": [{"address": "10.1.0.5"}]}},
            ("conf-value-refused", "plugins[0].ipam.addresses[0].address"),
        ),
        (
            {"type": "ptp", "ipam": {"type": "static", "addresses": [{"gateway": "10.1.0.5"}]}},
            ("conf-key-needed", "plugins[0].ipam.addresses[0].address"),
        ),
        (
            {
                "type": "ptp",
                "ipam": {"type": "static", "addresses": [{"address": "10.1.0.5/24", "gateway": "10.2.0.1"}]},
            },
            ("ipam-gateway-outside", "plugins[0].ipam.addresses[0].gateway"),
        ),
        ({"type": "ptp", "ipam": dict(HOST_LOCAL, datadirr="/x")}, ("conf-key-misspelt", "plugins[0].ipam.datadirr")),
        (
            {"type": "ptp", "mtu": 1279, "ipam": {"type": "host-local", "ranges": [[{"subnet": "fd00::/64"}]]}},
            ("conf-mtu-ipv6", "plugins[0].mtu"),
        ),
    ],
)
def test_one_fault_in_one_plugin(plugin, fact):
    assert lint(plugin) == [fact]


@pytest.mark.parametrize(
    ("plugin", "fact"),
    [
        ({"type": "portmap"}, ("conf-capability-missing", "plugins[1]")),
        ({"type": "portmap", "capabilities": {"portMappings": False}}, ("conf-capability-missing", "plugins[1]")),
        (
            {"type": "portmap", "capabilities": PORTMAP, "markMasqBit": 32},
            ("conf-value-refused", "plugins[1].markMasqBit"),
        ),
        (
            {"type": "portmap", "capabilities": PORTMAP, "markMasqBit": 0, "externalSetMarkChain": "K"},
            ("conf-keys-conflict", "plugins[1].markMasqBit"),
        ),
        ({"type": "bandwidth"}, ("conf-capability-missing", "plugins[1]")),
        ({"type": "bandwidth", "ingressRate": 8}, ("conf-key-needed", "plugins[1].ingressBurst")),
        (
            {"type": "bandwidth", "egressRate": 8, "egressBurst": 8 * 4294967295},
            ("conf-value-refused", "plugins[1].egressBurst"),
        ),
        (
            {"type": "bandwidth", "capabilities": {"bandwidth": True}, "unshapedSubnets": ["10.0.0.0"]},
            ("conf-value-refused", "plugins[1].unshapedSubnets[0]"),
        ),
        (
            {"type": "tuning", "sysctl": {"net.core.somaxconn": 500}},
            ("conf-key-type", "plugins[1].sysctl.net.core.somaxconn"),
        ),
        (
            {"type": "tuning", "sysctl": {"kernel.msgmax": "1"}},
            ("conf-value-refused", "plugins[1].sysctl.kernel.msgmax"),
        ),
        ({"type": "firewall", "backend": "nft"}, ("conf-value-default", "plugins[1].backend")),
        ({"type": "firewall", "ingressPolicy": "closed"}, ("conf-value-refused", "plugins[1].ingressPolicy")),
        ({"type": "vrf"}, ("conf-key-needed", "plugins[1].vrfname")),
        ({"type": "bridge"}, ("conf-chain-interface", "plugins[1]")),
    ],
)
def test_one_fault_in_a_plugin_that_stands_second(plugin, fact):
    assert lint(MADE, plugin) == [fact]


def test_bandwidth_wants_a_veth():
    limit = {"type": "bandwidth", "capabilities": {"bandwidth": True}}
    assert lint({"type": "macvlan", "ipam": HOST_LOCAL}, limit) == [("conf-needs-veth", "plugins[1]")]
    assert lint({"type": "bridge", "ipam": HOST_LOCAL}, limit) == []
    assert lint({"type": "somebody-elses"}, limit) == []


def test_addresses_may_come_from_elsewhere():
    empty = {"type": "ptp", "ipam": {"type": "static"}}
    assert lint(dict(empty, capabilities={"ips": True})) == []
    assert lint(dict(empty, args={"cni": {"ips": ["10.1.0.5/24"]}})) == []
    assert lint({"type": "host-device", "capabilities": {"deviceID": True}}) == []


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("02:00:00:00:00:01", True),
        ("02-AA-00-00-00-01", True),
        ("0200.0000.0001", True),
        (":".join(["00"] * 8), True),
        (":".join(["80"] * 20), True),
        (":".join(["00"] * 7), False),
        ("02:00-00:00:00:01", False),
        ("020000000001", False),
        ("2:00:00:00:00:01", False),
        ("02:00:00:00:00:+1", False),
    ],
)
def test_hardware_addresses(text, good):
    assert (
        lint({"type": "host-device", "hwaddr": text}) == [] if good else [("conf-value-refused", "plugins[0].hwaddr")]
    )


def test_an_interface_that_is_there_may_have_a_long_second_name():
    assert lint({"type": "macvlan", "master": "enx0123456789abcdef"}) == []


def test_flannel_makes_its_bridge_a_gateway():
    assert lint({"type": "flannel", "delegate": {"ipMasq": True}}) == []
    found = lint({"type": "flannel", "delegate": {"ipMasq": True, "isGateway": False}})
    assert found == [("conf-masquerade-idle", "plugins[0].delegate.ipMasq")]


def test_odd_documents_are_no_trouble():
    nest = {"type": "bridge", "mtu": "1"}
    for _level in range(200):
        nest = {"type": "multus", "delegates": [nest, {"plugins": [1, None, "x", []]}, 7]}
    assert {kind for kind, _path in lint(nest)} == {"conf-key-type", "conf-delegate-itself"}
    huge = '{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"bridge","mtu":%s,"vlanTrunk":[1,{"id":%s}]}]}'
    assert ("conf-key-type", "plugins[0].mtu") in facts_of(huge % ("9" * 5000, "9" * 5000))
    for odd in ([], {}, 1, "x", None, True, [[]], [{}], {"type": 1}):
        for key in (
            "ipam",
            "vlanTrunk",
            "delegates",
            "sysctl",
            "delegate",
            "runtimeConfig",
            "args",
            "dns",
            "capabilities",
        ):
            for kind in ("bridge", "multus", "flannel", "tuning", "calico", "bandwidth", "nobodys"):
                facts_of({"cniVersion": "1.0.0", "name": "n", "plugins": [MADE, {"type": kind, key: odd}]})
        facts_of(
            {"cniVersion": "1.0.0", "name": "n", "plugins": [dict(MADE, ipam={"type": "static", "addresses": [odd]})]}
        )


def test_an_ipvlan_may_stand_behind_another_plugin():
    assert lint({"type": "somebody-elses"}, {"type": "ipvlan"}) == []


def test_what_nobody_described_is_left_alone():
    assert lint({"type": "cilium-cni", "enable-debug": "yes", "ipam": {"type": "delegated", "x": 1}}) == []
    assert lint({"type": "list"}, {"type": "ipam/static"}, {"type": ".dns"}, {"type": "plugin"}) == []


def test_the_outer_object_of_a_list_is_read_with_regard_to_case():
    assert lint(MADE, cniversions=["1.1.0"]) == [("conf-key-misspelt", "cniversions")]
    assert lint(MADE, capabilities={}) == [("conf-key-unknown", "capabilities")]
    assert lint(MADE, args={}, nerdctlID="x", nerdctlLabels={}, disableGC=False, _why="x") == []
    found = facts_of({"cniversion": "1.0.0", "name": "net", "plugins": [MADE]})
    assert found == [("conf-version-missing", ""), ("conf-key-misspelt", "cniversion")]


def test_versions():
    assert lint(MADE, cniVersions=["0.4.0", "1.1.0"]) == []
    assert facts_of({"cniVersions": ["1.0.0"], "name": "net", "plugins": [MADE]}) == [("conf-version-only-list", "")]
    assert facts_of({"name": "net", "type": "loopback"}, "a.conf") == [("conf-version-missing", "")]
    assert lint(MADE, disableGC=True, loadOnlyInlinedPlugins="TRUE") == [("conf-flag-newer", "")] * 2
    assert lint(MADE, disableCheck="True") == [("conf-flag-text", "")]
    assert lint(MADE, disableCheck="yes")[0][0] == "conf-structure"
    assert lint(MADE, {"type": "firewall"}, cniVersion="0.3.1") == [("conf-version-below-plugin", "plugins[1]")]
    assert (
        lint(MADE, dict(FULL["bandwidth"], type="bandwidth"), cniVersion="0.2.0")[0][0] == "conf-version-below-plugin"
    )
    two = {"type": "static", "addresses": [{"address": "10.1.0.5/24"}, {"address": "10.1.0.6/24"}]}
    assert lint({"type": "ptp", "ipam": two}) == []
    assert lint({"type": "ptp", "ipam": two}, cniVersion="0.2.0") == [
        ("conf-value-refused", "plugins[0].ipam.addresses")
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"capabilities": {"mac": "true"}},
        {"capabilities": ["mac"]},
        {"ipam": "host-local"},
        {"ipam": {"type": ["host-local"]}},
        {"dns": "10.0.0.1"},
        {"dns": {"nameservers": "10.0.0.1"}},
    ],
)
def test_what_libcni_itself_reads_makes_the_file_unloadable(more):
    one = confdir.ConfFile("a.conflist", json.dumps({"name": "n", "plugins": [dict({"type": "x"}, **more)]}).encode())
    assert one.error
    assert confdir.ConfFile("a.conf", json.dumps(dict({"name": "n", "type": "x"}, **more)).encode()).error
    assert lint(dict({"type": "x"}, **more))[0][0] == "conf-structure"


def test_a_placeholder_is_told_once():
    assert (
        lint({"type": "bridge", "mtu": "{{ mtu }}", "bridge": "${BRIDGE_OF_THE_NODE}", "vlan": "__VLAN__"})
        == [("conf-placeholder", "")] * 3
    )


def test_calico_reads_the_block_of_host_local_with_words_of_its_own():
    ipam = {"type": "host-local", "subnet": "usePodCidr"}
    assert lint({"type": "calico", "ipam": ipam}) == []
    assert lint({"type": "bridge", "ipam": ipam}) == [("conf-ipam-invalid", "plugins[0].ipam.subnet")]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"assign_ipv4": "true", "assign_ipv6": "false"}, []),
        ({"assign_ipv4": True}, [("conf-key-type", "plugins[0].ipam.assign_ipv4")]),
        ({"assign_ipv6": "True"}, [("conf-value-default", "plugins[0].ipam.assign_ipv6")]),
        ({"ipv4_pools": "10.0.0.0/8"}, [("conf-key-type", "plugins[0].ipam.ipv4_pools")]),
        ({"asign_ipv4": "true"}, [("conf-key-misspelt", "plugins[0].ipam.asign_ipv4")]),
        ({"a_key_of_another_release": 1}, []),
    ],
)
def test_the_ipam_of_calico(more, told):
    assert lint({"type": "calico", "ipam": dict(more, type="calico-ipam")}) == told


@pytest.mark.parametrize("rate", ["100M", "{{ rate }}", [1]])
def test_a_rate_that_is_no_number_is_told_once(rate):
    found = lint(MADE, {"type": "bandwidth", "ingressRate": rate, "ingressBurst": 1})
    assert len(found) == 1
    assert found[0][0] in ("conf-key-type", "conf-placeholder")


@pytest.mark.parametrize("plugin", ["antrea", "a-plugin-that-nobody-described"])
def test_a_plugin_of_another_product_may_put_the_ranges_there_itself(plugin):
    for ipam in (
        {},
        {"ranges": []},
        {"subnet": ""},
        {"subnet": "usePodCidr"},
        {"ranges": [[{"subnet": "usePodCidr"}]]},
    ):
        assert lint({"type": plugin, "ipam": dict(ipam, type="host-local")}) == []
    wrong = {"type": "host-local", "subnet": "10.1.0.1/24"}
    assert lint({"type": plugin, "ipam": wrong}) == [("ipam-host-bits", "plugins[0].ipam.subnet")]
    for passes_on in ("bridge", "sriov", "macvlan"):
        assert "conf-ipam-invalid" in dict(lint({"type": passes_on, "ipam": {"type": "host-local"}}))
    assert "conf-ipam-invalid" in dict(lint({"type": "calico", "ipam": {"type": "host-local"}}))


IN_USE = json.loads(pathlib.Path(__file__).with_name("conflists_in_use.json").read_text())


@pytest.mark.parametrize("product", IN_USE)
def test_what_products_write_has_no_findings_but_true_ones(product):
    row = IN_USE[product]
    facts = confcheck.check_file(confdir.ConfFile(row["file"], json.dumps(row["config"]).encode()), row["file"], "")
    told = [[findings.finding(**fact)["code"], fact.get("path", "")] for fact in facts]
    assert told == row["expect"]


def addresses(*ranges, **more):
    return {"type": "ptp", "ipam": dict({"type": "host-local", "ranges": [list(ranges)]}, **more)}


@pytest.mark.parametrize(
    ("plugin", "kinds"),
    [
        (addresses({"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.0", "rangeEnd": "10.1.0.9"}), ["ipam-range-edge"]),
        (addresses({"subnet": "10.1.0.0/24", "rangeEnd": "10.1.0.255"}), ["ipam-range-edge"]),
        (addresses({"subnet": "fd00::/120", "rangeStart": "fd00::", "rangeEnd": "fd00::ff"}), []),
        (addresses({"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.255"}), ["ipam-range-start-late"]),
        (
            addresses({"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.9", "rangeEnd": "10.1.0.8"}),
            ["conf-ipam-invalid"],
        ),
        (
            {"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.1.0.0/24", "rangeStart": "10.1.0.255"}},
            ["ipam-range-start-late"],
        ),
        (addresses({"subnet": "10.1.0.0/24"}, routes=[{"dst": "0.0.0.0/0", "gw": "10.2.0.1"}]), ["ipam-route-gateway"]),
        (addresses({"subnet": "10.1.0.0/24"}, routes=[{"dst": "0.0.0.0/0", "gw": "10.1.0.7"}]), []),
        (addresses({"subnet": "10.1.0.0/24"}, routes=[{"gw": "10.1.0.1"}]), ["ipam-route-dst"]),
        (addresses({"subnet": "10.1.0.0/24"}, routes=[None]), []),
        (addresses({"subnet": "fd00::/64"}, routes=[{"dst": "::/0", "gw": "fe80::1"}]), []),
    ],
)
def test_what_host_local_takes_but_should_not(plugin, kinds):
    assert [kind for kind, _path in lint(plugin)] == kinds


@pytest.mark.parametrize(
    ("plugin", "path", "near"),
    [
        ({"type": "brigde"}, "plugins[0].type", "bridge"),
        ({"type": "Bridge"}, "plugins[0].type", "bridge"),
        ({"type": "host_device", "device": "eth1"}, "plugins[0].type", "host-device"),
        ({"type": "macvaln"}, "plugins[0].type", "macvlan"),
        ({"type": "flanel"}, "plugins[0].type", "flannel"),
        ({"type": "ptp", "ipam": {"type": "hostlocal"}}, "plugins[0].ipam.type", "host-local"),
        ({"type": "ptp", "ipam": {"type": "whereabout"}}, "plugins[0].ipam.type", "whereabouts"),
        ({"type": "flannel", "delegate": {"type": "brige"}}, "plugins[0].delegate.type", "bridge"),
    ],
)
def test_a_type_that_is_nearly_one_we_know(plugin, path, near):
    text = json.dumps({"cniVersion": "1.0.0", "name": "net", "plugins": [plugin]}).encode()
    one = confdir.ConfFile("10-net.conflist", text)
    found = [fact for fact in confcheck.check_file(one, one.name) if fact["kind"] == "conf-type-misspelt"]
    assert [(fact["path"], fact["near"]) for fact in found] == [(path, near)]
    (item,) = findings.from_facts(found)
    assert item["severity"] == "warning"
    assert f"write {near}, if that is meant" in item["hint"]
    # a plugin that the node has is no slip
    there = confcheck.check_file(one, one.name, installed=[found[0]["type"]].__contains__)
    assert "conf-type-misspelt" not in [fact["kind"] for fact in there]


@pytest.mark.parametrize(
    "kind", ["multus-shim", "ovs", "cnv-bridge", "ib-sriov", "win-bridge", "mine", "../x", "{{ x }}"]
)
def test_types_of_others_are_no_slips(kind):
    assert "conf-type-misspelt" not in [fact for fact, _path in lint({"type": kind})]


# --- the public cases


def test_case_portmap_without_its_capability(case):
    data = case("conflist-portmap-without-capability")
    ((name, content),) = data["input"]["conf_dir"].items()
    found = findings.from_facts(confcheck.check_file(confdir.ConfFile(name, json.dumps(content).encode()), name))
    assert [one["severity"] for one in found] == ["warning"] * data["check"]["warnings"]
    assert data["check"]["valid"] is not any(one["severity"] == "error" for one in found)
    assert "portMappings" in found[0]["text"]


def test_case_strings_for_booleans_and_numbers(case):
    data = case("conflist-string-for-bool-number")
    ((name, content),) = data["input"]["conf_dir"].items()
    found = facts_of(content, name)
    assert [(kind, path.replace("[0]", ".0")) for kind, path in found] == [
        ("conf-key-type", path) for path in data["check"]["fields"]
    ]
    built = findings.from_facts(confcheck.check_file(confdir.ConfFile(name, json.dumps(content).encode()), name))
    assert {(one["severity"], one["go"]) for one in built} == {("error", "fails")}
    assert data["check"]["valid"] is False


def test_case_a_plugin_that_does_not_speak_the_version(case):
    data = case("conflist-cniversion-unsupported")
    ((name, content),) = data["input"]["conf_dir"].items()
    one = confdir.ConfFile(name, json.dumps(content).encode())
    facts = confcheck.check_versions(one, name, lambda kind: data["input"]["plugin_versions"].get(kind, []))
    assert [fact["type"] for fact in facts] == ["oldcni"]
    (item,) = findings.from_facts(facts)
    assert (item["severity"] != "error") is data["check"]["valid"]
    assert "0.4.0" in item["text"]
    assert "set cniVersion to %s," % data["check"]["suggest"] in item["hint"]
    assert confcheck.check_versions(one, name, lambda kind: []) == []
    spoken = {"oldcni": ["0.1.0"], "portmap": ["1.0.0"]}
    (fact,) = confcheck.check_versions(one, name, lambda kind: spoken[kind])
    assert fact["kind"] == "conf-version-no-common"


def test_the_plugins_of_delegates_are_needed_too():
    delegate = {"name": "a", "plugins": [{"type": "macvlan", "ipam": {"type": "dhcp"}}, {"type": "tuning"}]}
    multus = {"cniVersion": "1.0.0", "name": "m", "type": "multus", "delegates": [delegate, {"type": "flannel"}]}
    one = confdir.ConfFile("00-multus.conf", json.dumps(multus).encode())
    assert confcheck.needed_types(one.plugins) == [
        "multus", "macvlan", "dhcp", "tuning", "flannel", "bridge", "host-local"
    ]  # fmt: skip
