# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What plugins need of a node."""

from __future__ import annotations

import json

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import gojson
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import survey
from ansible_collections.nodenet.cni.plugins.module_utils.node.needs import Needs, families_of

RANGES_V6 = {"type": "host-local", "ranges": [[{"subnet": "10.22.0.0/24"}], [{"subnet": "fd00:22::/64"}]]}


def of_plugins(*types, **more):
    needs = Needs(**more)
    needs.add_plugins(types, [4])
    return needs


def of_config(*plugins, network="podnet"):
    needs = Needs()
    needs.add_config(network, [gojson.from_plain(one) for one in plugins])
    return needs


def keys(needs):
    return [key for key, _value, _users in needs.ordered_sysctls()]


@pytest.mark.parametrize(
    ("kind", "modules"),
    [
        ("bridge", ["br_netfilter", "bridge", "veth"]),
        ("ptp", ["veth"]),
        ("macvlan", ["macvlan"]),
        ("ipvlan", ["ipvlan"]),
        ("vlan", ["8021q"]),
        ("dummy", ["dummy"]),
        ("tap", ["tun"]),
        ("vrf", ["vrf"]),
        ("portmap", ["nf_conntrack", "nf_nat"]),
        ("firewall", ["nf_conntrack"]),
        ("bandwidth", ["act_mirred", "cls_u32", "ifb", "sch_htb", "sch_ingress", "sch_tbf"]),
        ("loopback", []),
        ("host-device", []),
        ("tuning", []),
        ("static", []),
        ("somebody-elses", []),
    ],
)
def test_a_plugin_needs_its_modules_and_no_others(kind, modules):
    assert sorted(of_plugins(kind).modules) == modules


@pytest.mark.parametrize("kind", ["macvlan", "ipvlan", "vlan", "host-device", "dummy", "loopback", "tuning", "vrf"])
def test_what_the_node_does_not_route_needs_no_setting(kind):
    needs = of_plugins(kind)
    assert needs.sysctls == {}
    assert needs.bridges == []
    assert needs.interfaces == []


def test_a_bridge_by_its_type_is_a_gateway_called_cni0():
    needs = of_plugins("bridge", "portmap")
    assert keys(needs) == ["net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"]
    assert needs.sysctls["net/ipv4/ip_forward"] == ("1", ["bridge", "portmap"])
    assert needs.bridges == ["cni0"]
    assert sorted(needs.interfaces) == ["cni0", "veth*"]


def test_each_family_has_its_settings():
    needs = Needs()
    needs.add_plugins(["bridge"], [6])
    assert keys(needs) == ["net/ipv6/conf/all/forwarding", "net/bridge/bridge-nf-call-ip6tables"]
    needs = of_config({"type": "bridge", "isGateway": True, "ipam": RANGES_V6})
    assert len(keys(needs)) == 4
    assert needs.families == [4, 6]


def test_a_bridge_that_only_joins_its_ports_is_not_routed():
    needs = of_config({"type": "bridge", "bridge": "lan0", "ipam": {}})
    assert keys(needs) == ["net/bridge/bridge-nf-call-iptables"]
    assert needs.bridges == ["lan0"]


def test_firewall_rules_for_bridges_can_be_left_out():
    needs = of_plugins("bridge", bridge_nf_call=False)
    assert "br_netfilter" not in needs.modules
    assert keys(needs) == ["net/ipv4/ip_forward"]


def test_a_gateway_in_a_vlan_of_the_bridge_has_an_interface_of_its_own():
    needs = of_config({"type": "bridge", "bridge": "br1", "isGateway": True, "vlan": 7, "ipMasq": True})
    assert needs.bridges == ["br1", "br1.7"]
    assert {"8021q", "nf_nat"} <= set(needs.modules)
    assert needs.modules["8021q"] == ["bridge of podnet"]


def test_multus_needs_what_its_delegates_need():
    delegates = [
        {"name": "one", "cniVersion": "1.0.0", "plugins": [{"type": "bridge", "isGateway": True}, {"type": "portmap"}]},
        {"name": "two", "type": "macvlan", "master": "eth1"},
    ]
    needs = of_config({"type": "multus", "delegates": delegates}, network="multus-cni-network")
    assert needs.modules["macvlan"] == ["macvlan of two"]
    assert needs.modules["nf_nat"] == ["portmap of one"]


def test_a_device_that_goes_into_a_pod_is_not_to_be_managed():
    assert of_config({"type": "host-device", "device": "eth7"}).interfaces == ["eth7"]


def test_ptp_is_let_through_by_its_subnets():
    needs = of_config({"type": "ptp", "ipam": RANGES_V6})
    assert needs.subnets == ["10.22.0.0/24", "fd00:22::/64"]
    assert needs.bridges == []


def test_what_is_no_subnet_never_reaches_the_firewall():
    ranges = [
        [{"subnet": "10.22.0.9/24", "rangeStart": "10.22.0.20"}],
        [{"subnet": '10.0.0.0/33"/>'}],
        [{"subnet": "x/8"}],
    ]
    needs = of_config({"type": "ptp", "ipam": {"type": "host-local", "ranges": ranges}})
    assert needs.subnets == ["10.22.0.0/24"]


def test_flannel_with_another_delegate_needs_what_that_one_needs():
    needs = of_config({"type": "flannel", "delegate": {"type": "ipvlan"}})
    assert needs.modules == {"ipvlan": ["flannel of podnet"]}
    assert needs.bridges == []


@pytest.mark.parametrize(
    ("ipam", "families"),
    [
        ({"type": "host-local", "subnet": "10.0.0.0/8"}, [4]),
        ({"type": "host-local", "subnet": "fd00::/8"}, [6]),
        (RANGES_V6, [4, 6]),
        ({"type": "static", "addresses": [{"address": "10.0.0.9/24"}, {"address": "fd00::9/64"}]}, [4, 6]),
        ({"type": "whereabouts", "ipRanges": [{"range": "fd00:1::/64"}]}, [6]),
        ({"type": "dhcp"}, [4]),
        ({"type": "host-local", "subnet": "10.0.0.0/8", "routes": [{"dst": "::/0"}]}, [4]),
        ({}, [4]),
    ],
)
def test_a_network_tells_its_families_by_its_addresses(ipam, families):
    needs = of_config({"type": "ptp", "ipam": ipam})
    assert needs.families == families
    assert families_of([]) == [4]


def test_forwarding_comes_before_what_it_resets_and_after_what_keeps_routes():
    needs = of_plugins("bridge")
    needs.add_plugins(["ptp"], [6])
    survey.add_wishes(needs, [], {"net.ipv6.conf.eth0.accept_ra": 2, "net.ipv4.conf.all.log_martians": 1}, "loose", [])
    order = keys(needs)
    assert order[0] == "net/ipv6/conf/eth0/accept_ra"
    assert order[1:3] == ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"]
    assert "net/ipv4/conf/all/rp_filter" in order[3:]


def test_what_the_task_says_of_a_setting_counts():
    needs = of_plugins("bridge")
    survey.add_wishes(needs, ["nf-tables"], {"net.bridge.bridge-nf-call-iptables": False}, "strict", ["tap*"])
    assert needs.sysctls["net/bridge/bridge-nf-call-iptables"] == ("0", ["the task"])
    assert needs.sysctls["net/ipv4/conf/default/rp_filter"] == ("1", ["the task"])
    assert needs.modules["nf_tables"] == ["the task"]
    assert "tap*" in needs.interfaces


@pytest.mark.parametrize(
    ("modules", "settings", "interfaces", "words"),
    [
        (["../evil"], {}, [], "no name of a module"),
        (["a b"], {}, [], "no name of a module"),
        ([], {"ip_forward": 1}, [], "no name like"),
        ([], {"net.ipv4.conf.*.rp_filter": 1}, [], "patterns"),
        ([], {"net/../../etc/passwd": 1}, [], "no name like"),
        ([], {"net.ipv4.ip_forward": "1\n0"}, [], None),
        ([], {"net.ipv4.ip_forward": ""}, [], "give a number"),
        ([], {"net.ipv4.ip_forward": {"a": 1}}, [], "give a number"),
        ([], {}, ["eth0;type:ethernet"], "no name or pattern"),
        ([], {}, [""], "no name or pattern"),
    ],
)
def test_wishes_that_are_none_are_refused(modules, settings, interfaces, words):
    needs = Needs()
    if words is None:
        survey.add_wishes(needs, modules, settings, "keep", interfaces)
        assert list(needs.sysctls.values())[0][0] == "1 0"
        return
    with pytest.raises(NodenetError, match=words) as failure:
        survey.add_wishes(needs, modules, settings, "keep", interfaces)
    assert str(failure.value).startswith("Cannot ")


# --- from the node


def conf(node, name, network, *plugins):
    node.write("net.d/" + name, json.dumps({"cniVersion": "1.0.0", "name": network, "plugins": list(plugins)}))


def read(node, **more):
    return survey.needs_of(str(node.root / "net.d"), str(node.root / "subnet.env"), **more)


def test_all_networks_of_the_conf_dir_count_unless_something_else_is_given(node):
    conf(node, "10-a.conflist", "a", {"type": "macvlan"})
    conf(node, "20-b.conflist", "b", {"type": "vrf"})
    assert sorted(read(node)[0].modules) == ["macvlan", "vrf"]
    assert sorted(read(node, names=["b"])[0].modules) == ["vrf"]
    assert sorted(read(node, plugins=["dummy"])[0].modules) == ["dummy"]
    assert sorted(read(node, plugins=["dummy"], names=["a"])[0].modules) == ["dummy", "macvlan"]
    config = {"name": "later", "cniVersion": "1.0.0", "plugins": [{"type": "ipvlan"}]}
    assert read(node, configs=[config])[0].modules == {"ipvlan": ["ipvlan of later"]}


def test_an_unknown_network_is_refused_and_a_broken_file_is_a_fact(node):
    node.write("net.d/10-a.conflist", "{")
    conf(node, "20-b.conflist", "b", {"type": "vrf"})
    needs, facts = read(node)
    assert sorted(needs.modules) == ["vrf"]
    assert [fact["kind"] for fact in facts] == ["conf-broken"]
    with pytest.raises(NodenetError, match="no usable file in .* defines it"):
        read(node, names=["a"])


def test_a_config_without_types_is_refused(node):
    with pytest.raises(NodenetError, match="a plugin without a type"):
        read(node, configs=[{"name": "x", "plugins": [{"ipam": {}}]}])


def test_plugins_of_the_sub_directory_count(node):
    conf(node, "10-a.conflist", "a", {"type": "macvlan"})
    node.write("net.d/a/50-more.conf", json.dumps({"type": "vrf"}))
    assert sorted(read(node)[0].modules) == ["macvlan", "vrf"]


def test_flannel_has_its_families_from_the_node(node):
    conf(node, "10-flannel.conflist", "cbr0", {"type": "flannel", "delegate": {"isDefaultGateway": True}})
    assert read(node)[0].families == [4]
    node.write(
        "subnet.env", "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_IPV6_SUBNET=fd00:1::1/64\n"
    )
    needs = read(node)[0]
    assert needs.families == [4, 6]
    assert needs.bridges == ["cni0"]
    assert "flannel*" in needs.interfaces
