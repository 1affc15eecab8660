# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import gojson, goprint
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.config import load_ipam_config
from ansible_collections.nodenet.cni.plugins.module_utils.node import networks

FLANNEL = {
    "name": "cbr0",
    "cniVersion": "0.3.1",
    "plugins": [
        {"type": "flannel", "delegate": {"hairpinMode": True, "isDefaultGateway": True}},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}


def host_local(*subnets, **more):
    return dict({"type": "host-local", "ranges": [[{"subnet": subnet}] for subnet in subnets]}, **more)


def conflist(name, ipam, kind="bridge", **more):
    return dict({"cniVersion": "1.0.0", "name": name, "plugins": [{"type": kind, "ipam": ipam}]}, **more)


@pytest.fixture
def conf_dir(tmp_path):
    path = tmp_path / "net.d"
    path.mkdir()

    def write(**files):
        for name, content in files.items():
            (path / name.replace("__", ".")).write_text(
                content if isinstance(content, str) else json.dumps(content), encoding="utf-8"
            )
        return str(path)

    return write


@pytest.fixture
def subnet_env(tmp_path):
    path = tmp_path / "subnet.env"

    def write(text):
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def ranges(network):
    return [str(one) for one in load_ipam_config(network.config).sets[0].ranges]


def test_a_network_of_a_conflist(conf_dir):
    path = conf_dir(a__conflist=conflist("net", host_local("10.1.0.0/24", dataDir="/data")))
    network = networks.find_network(path, "net")
    assert (network.name, network.source, network.plugin) == ("net", path + "/a.conflist", "bridge")
    assert (network.data_dir, network.scope, network.place) == ("/data", "node", "plugins[0]")
    config = load_ipam_config(network.config)
    assert (config.name, config.cni_version, config.data_dir) == ("net", "1.0.0", "/data")
    assert ranges(network) == ["10.1.0.1-10.1.0.254"]


def test_a_network_of_a_single_conf(conf_dir):
    path = conf_dir(a__conf={"name": "one", "type": "ptp", "cniVersion": "0.3.1", "ipam": host_local("10.1.0.0/24")})
    network = networks.find_network(path, "one")
    assert (network.plugin, network.data_dir) == ("ptp", "/var/lib/cni/networks")
    assert load_ipam_config(network.config).cni_version == "0.3.1"


@pytest.mark.parametrize(
    ("kind", "scope"),
    [
        ("bridge", "node"),
        ("ptp", "node"),
        ("macvlan", "shared"),
        ("ipvlan", "shared"),
        ("vlan", "shared"),
        ("host-device", "shared"),
    ],
)
def test_scope(conf_dir, kind, scope):
    path = conf_dir(a__conflist=conflist("net", host_local("10.1.0.0/24"), kind))
    assert networks.find_network(path, "net").scope == scope


def test_the_last_of_repeated_keys_counts_and_case_does_not_matter(conf_dir, case, tmp_path):
    data = case("netconf-duplicate-json-keys")
    path = conf_dir(a__conf=data["input"]["raw_stdin"].replace("$DIR", str(tmp_path)))
    network = networks.find_network(path, "lan")
    assert network.data_dir == str(tmp_path)
    assert ranges(network) == ["198.51.100.1-198.51.100.254"]


def test_what_libcni_sends(conf_dir):
    plugin = gojson.parse('{"type": "bridge", "name": "inner", "b": {"y": 1.50, "x": 1}, "a": 1, "a": 2}')
    sent = networks.as_sent(plugin, "net", "1.0.0")
    assert goprint.dumps(gojson.plain(sent), 0) == (
        '{"a":2,"b":{"x":1,"y":1.5},"cniVersion":"1.0.0","name":"net","type":"bridge"}'
    )


def test_two_files_that_define_a_network_are_an_error_that_names_both(conf_dir, case):
    data = case("conflist-duplicate-names")
    path = conf_dir(**{name.replace(".", "__"): content for name, content in data["input"]["conf_dir"].items()})
    with pytest.raises(NodenetError) as caught:
        networks.find_network(path, "net")
    assert str(caught.value) == (
        f"Cannot use network net in {path}: more than one file defines it (10-net.conflist, 20-net.conflist), "
        "remove all but one"
    )
    found, facts = networks.all_networks(path)
    assert [one.source for one in found] == [path + "/" + data["check"]["effective_file"]]
    assert facts == [
        {"kind": "conf-network-twice", "where": path + "/20-net.conflist", "network": "net", "first": "10-net.conflist"}
    ]


def test_a_second_file_without_host_local_counts_too(conf_dir):
    path = conf_dir(
        a__conflist=conflist("net", {"type": "dhcp"}), b__conflist=conflist("net", host_local("10.1.0.0/24"))
    )
    with pytest.raises(NodenetError, match=r"more than one file defines it \(a.conflist, b.conflist\)"):
        networks.find_network(path, "net")


def test_an_unknown_network_error_lists_what_there_is(conf_dir):
    path = conf_dir(
        a__conflist=conflist("one", host_local("10.1.0.0/24")), b__conflist=conflist("two", {}), c__conflist="{"
    )
    with pytest.raises(NodenetError) as caught:
        networks.find_network(path, "three")
    text = str(caught.value)
    assert text.startswith(
        f"Cannot use network three in {path}: no file defines it; defined are one, two; not usable: c"
    )
    assert caught.value.facts["known_networks"] == ["one", "two"]


def test_an_unknown_network_in_an_empty_or_missing_directory(conf_dir):
    path = conf_dir()
    with pytest.raises(NodenetError, match="no file there defines a network"):
        networks.find_network(path, "net")
    with pytest.raises(NodenetError, match="there is no such directory"):
        networks.find_network(path + "/none", "net")


def test_a_network_without_host_local_names_its_plugins(conf_dir):
    content = {"name": "net", "plugins": [{"type": "calico", "ipam": {"type": "calico-ipam"}}, {"type": "portmap"}]}
    path = conf_dir(a__conflist=content)
    with pytest.raises(NodenetError) as caught:
        networks.find_network(path, "net")
    assert str(caught.value) == (
        f"Cannot use network net in {path}/a.conflist: none of its plugins (calico, portmap) uses host-local"
    )
    assert networks.all_networks(path) == ([], [])


def test_two_plugins_of_one_network_with_different_ranges_are_an_error(conf_dir):
    content = conflist("net", host_local("10.1.0.0/24"))
    content["plugins"].append({"type": "macvlan", "ipam": host_local("10.2.0.0/24")})
    with pytest.raises(NodenetError, match="more than one of its plugins uses host-local"):
        networks.find_network(conf_dir(a__conflist=content), "net")


def test_a_configuration_that_host_local_refuses_is_still_found(conf_dir, case):
    data = case("netconf-podcidr-literal")
    path = conf_dir(a__conf=data["input"]["stdin"])
    network = networks.find_network(path, "k8s-pod-network")
    assert network.data_dir == "$DIR"
    assert network.plugin == "calico"


def test_flannel_gets_its_subnet_from_the_file(conf_dir, subnet_env):
    env = subnet_env(
        "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.0.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n"
    )
    path = conf_dir(**{"10-flannel__conflist": FLANNEL})
    (network,), facts = networks.all_networks(path, env)
    assert facts == []
    assert (network.name, network.plugin, network.scope) == ("cbr0", "flannel", "node")
    assert network.data_dir == "/var/lib/cni/networks"
    assert gojson.plain(network.config) == {
        "cniVersion": "0.3.1",
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": "10.244.0.0/24"}]],
            "routes": [{"dst": "10.244.0.0/16"}],
        },
        "isDefaultGateway": True,
        "name": "cbr0",
        "type": "bridge",
    }
    assert ranges(network) == ["10.244.0.1-10.244.0.254"]


def test_flannel_with_ipv6_own_routes_data_dir_and_file(conf_dir, subnet_env):
    env = subnet_env(
        "FLANNEL_NETWORK=10.244.0.0/16,10.245.0.0/16\nFLANNEL_SUBNET=10.244.3.1/24\n"
        "FLANNEL_IPV6_NETWORK=fd00:1::/56\nFLANNEL_IPV6_SUBNET=fd00:1:0:3::1/64\n"
    )
    plugin = {
        "type": "flannel",
        "subnetFile": env,
        "ipam": {"dataDir": "/data", "ranges": [[{"subnet": "1.2.3.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    path = conf_dir(a__conf=dict(plugin, name="f"))
    network = networks.find_network(path, "f", "/does/not/exist")
    config = load_ipam_config(network.config)
    assert (network.data_dir, network.facts) == ("/data", [])
    assert [str(one) for one_set in config.sets for one in one_set.ranges] == [
        "10.244.3.1-10.244.3.254",
        "fd00:1:0:3::1-fd00:1:0:3:ffff:ffff:ffff:ffff",
    ]
    routes = gojson.plain(gojson.field(gojson.field(network.config, "ipam"), "routes"))
    assert [route["dst"] for route in routes] == ["0.0.0.0/0", "10.244.0.0/16", "10.245.0.0/16", "fd00:1::/56"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "no such file"),
        ("", "names no FLANNEL_SUBNET"),
        ("FLANNEL_SUBNET=10.244.0.1\n", "invalid CIDR address: 10.244.0.1"),
        ("FLANNEL_SUBNET\n", "invalid CIDR address"),
    ],
)
def test_flannel_without_a_subnet_is_a_network_with_a_fact(conf_dir, subnet_env, tmp_path, text, reason):
    env = str(tmp_path / "none") if text is None else subnet_env(text)
    path = conf_dir(a__conflist=FLANNEL)
    network = networks.find_network(path, "cbr0", env)
    assert network.data_dir == "/var/lib/cni/networks"
    (fact,) = network.facts
    assert (fact["kind"], fact["path"]) == ("ipam-flannel-subnet-missing", env)
    assert reason in fact["reason"]
    assert networks.all_networks(path, env)[1] == [fact]


def test_flannel_that_delegates_to_another_ipam_is_none_of_ours(conf_dir, subnet_env):
    env = subnet_env("FLANNEL_SUBNET=10.244.0.1/24\n")
    content = {"name": "f", "plugins": [{"type": "flannel", "ipam": {"type": "dhcp"}}]}
    assert networks.all_networks(conf_dir(a__conflist=content), env) == ([], [])


def multus(*delegates):
    return {"cniVersion": "0.3.1", "name": "multus-cni-network", "type": "multus", "delegates": list(delegates)}


def test_networks_below_the_delegates_of_multus(conf_dir, subnet_env):
    env = subnet_env("FLANNEL_SUBNET=10.244.0.1/24\n")
    single = {"name": "single", "type": "macvlan", "ipam": host_local("10.3.0.0/24")}
    path = conf_dir(a__conf=multus(conflist("listed", host_local("10.2.0.0/24")), single, FLANNEL))
    found, facts = networks.all_networks(path, env)
    assert facts == []
    assert [(one.name, one.place, one.scope) for one in found] == [
        ("listed", "delegates[0].plugins[0]", "node"),
        ("single", "delegates[1].", "shared"),
        ("cbr0", "delegates[2].plugins[0]", "node"),
    ]
    assert ranges(networks.find_network(path, "single")) == ["10.3.0.1-10.3.0.254"]


def test_the_copy_that_multus_makes_of_a_conflist_is_no_second_definition(conf_dir):
    original = conflist("net", host_local("10.1.0.0/24"))
    path = conf_dir(**{"00-multus__conf": multus(original), "10-net__conflist": original})
    assert networks.find_network(path, "net").source.endswith("/10-net.conflist")
    found, facts = networks.all_networks(path)
    assert [one.source for one in found] == [path + "/10-net.conflist"]
    assert facts == []


def test_a_copy_that_disagrees_is_one(conf_dir):
    path = conf_dir(
        **{
            "00-multus__conf": multus(conflist("net", host_local("10.9.0.0/24"))),
            "10-net__conflist": conflist("net", host_local("10.1.0.0/24")),
        }
    )
    with pytest.raises(NodenetError, match=r"more than one file defines it \(10-net.conflist, 00-multus.conf\)"):
        networks.find_network(path, "net")
    assert [fact["kind"] for fact in networks.all_networks(path)[1]] == ["conf-network-twice"]


def test_case_custom_data_dir(conf_dir, case):
    data = case("datadir-custom-datadir")
    content = json.dumps(data["input"]["conf_dir"]["10-antrea.conflist"]).replace("$ROOT", "/root-of-test")
    ((network,), _facts) = networks.all_networks(conf_dir(**{"10-antrea__conflist": content}))
    assert network.data_dir == data["input"]["data_dir_root"].replace("$ROOT", "/root-of-test")


def test_a_broken_file_is_a_fact_and_hides_nothing(conf_dir):
    path = conf_dir(a__conflist="{", b__conflist=conflist("net", host_local("10.1.0.0/24")))
    found, facts = networks.all_networks(path)
    assert [one.name for one in found] == ["net"]
    assert [(fact["kind"], fact["where"]) for fact in facts] == [("conf-broken", path + "/a.conflist")]
    assert networks.find_network(path, "net").name == "net"


def test_a_missing_directory_is_a_fact(tmp_path):
    path = str(tmp_path / "none")
    assert networks.all_networks(path) == ([], [{"kind": "conf-dir-missing", "where": path}])


@pytest.mark.parametrize("name", [None, "", "..", "a/b"])
def test_case_nameless_network_is_none(conf_dir, case, name):
    content = dict(case("netconf-nameless-network")["input"]["stdin"])
    if name is not None:
        content["name"] = name
    found, facts = networks.all_networks(conf_dir(a__conf=content))
    assert found == []
    assert [(fact["kind"], fact["name"]) for fact in facts] == [("conf-name-invalid", name or "")]
