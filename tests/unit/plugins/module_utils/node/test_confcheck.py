# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import confcheck, confdir, findings


def check(content, name="10-net.conflist", **arguments):
    text = content if isinstance(content, str) else json.dumps(content)
    return confcheck.check_file(confdir.ConfFile(name, text.encode()), name, **arguments)


def kinds(facts):
    return [fact["kind"] for fact in facts]


def good(**more):
    return dict({"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "bridge"}]}, **more)


def test_a_good_file_has_no_findings():
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00::/64"}]]}
    assert check(good(plugins=[{"type": "bridge", "ipam": ipam}, {"type": "portmap"}])) == []
    assert check({"name": "net", "type": "bridge"}, "10-net.conf") == []


@pytest.mark.parametrize(
    ("content", "name", "kind", "word"),
    [
        ([], "a.conflist", "conf-structure", "not an object"),
        (good(name=""), "a.conflist", "conf-structure", "'name' is missing"),
        (good(name=7), "a.conflist", "conf-structure", "'name' is not a string"),
        (good(plugins=[]), "a.conflist", "conf-structure", "no 'plugins'"),
        (good(plugins=None), "a.conflist", "conf-structure", "no 'plugins'"),
        (good(plugins={}), "a.conflist", "conf-structure", "'plugins' is not a list"),
        (good(plugins=[{"type": "a"}, {"mtu": 1}]), "a.conflist", "conf-structure", "plugins[1] has no 'type'"),
        (good(plugins=[{"type": 1}]), "a.conflist", "conf-structure", "plugins[0] has no 'type'"),
        (good(plugins=["bridge"]), "a.conflist", "conf-structure", "plugins[0] has no 'type'"),
        ({"name": "net"}, "a.conf", "conf-structure", "'type' is missing"),
        (good(), "a.conf", "conf-list-in-conf", None),
        ({"name": "net", "type": "bridge"}, "a.conflist", "conf-single-in-conflist", None),
        (good(name="../net"), "a.conflist", "conf-name-invalid", None),
        (good(cniVersion="1.0"), "a.conflist", "conf-version-unknown", None),
        (good(plugins=[{"type": "bridge", "bridge": "{{ bridge }}"}]), "a.conflist", "conf-placeholder", None),
    ],
)
def test_faults_of_structure(content, name, kind, word):
    (fact,) = check(content, name)
    assert fact["kind"] == kind
    assert fact["where"] == name
    if word:
        assert word in fact["reason"]


def test_each_fault_of_structure_is_listed():
    facts = check({"plugins": [{"mtu": 1}, {"mtu": 2}]})
    assert len(facts) == 3


@pytest.mark.parametrize(
    ("name", "kind", "names"),
    [
        ("netconf-host-bits-set", "ipam-host-bits", "ipam.ranges[0][0].subnet"),
        ("netconf-rangestart-typo", "conf-ipam-invalid", "ipam.rangeStart"),
        ("netconf-subnet-empty-template", "conf-ipam-invalid", "ipam.subnet"),
        ("netconf-mixed-family-set", "ipam-mixed-families", "ipam.ranges[0]"),
        ("netconf-empty-range-set", "conf-ipam-invalid", "ipam.ranges[0]"),
        ("netconf-rangesets-overlap", "conf-ipam-invalid", "ipam.ranges"),
        ("netconf-rangestart-broadcast", "conf-ipam-invalid", "ipam.ranges[0][0]"),
        ("netconf-subnet-too-small", "conf-ipam-invalid", "ipam.ranges[0][0].subnet"),
    ],
)
def test_cases_of_addresses(case, name, kind, names):
    data = case(name)
    facts = check(data["input"]["stdin"], "10-net.conf")
    assert kinds(facts) == [kind]
    assert facts[0]["path"].startswith(names)
    (item,) = findings.from_facts(facts)
    assert item["severity"] == "error"
    wanted = data["check"]
    assert wanted.get("error_contains", "") in item["text"].lower()
    assert wanted.get("names_field", "") in item["text"]
    assert wanted.get("hint", "") in item["hint"]


def test_the_place_is_named_within_a_list_and_below_multus():
    bad = {"name": "inner", "plugins": [{"type": "tuning"}, {"type": "ptp", "ipam": {"type": "host-local"}}]}
    (fact,) = check(dict(bad, cniVersion="1.0.0"))
    assert fact["path"].startswith("plugins[1].ipam") or fact["path"] == "plugins[1]"
    (fact,) = check({"name": "m", "type": "multus", "delegates": [{"name": "x", "type": "y"}, bad]}, "00-multus.conf")
    assert fact["path"].startswith("delegates[1].plugins[1]")
    assert fact["reason"] == "no IP ranges specified"


def test_case_gateway_outside_the_subnet(case):
    data = case("netconf-gateway-outside-subnet")
    facts = check(data["input"]["stdin"], "10-net.conf")
    assert kinds(facts) == ["ipam-gateway-outside"]
    assert [fact["gateway"] for fact in facts] == data["check"]["warn"]
    assert findings.from_facts(facts)[0]["severity"] == "warning"


def test_a_link_local_address_is_the_only_foreign_gateway_that_is_fine():
    def facts_for(gateway):
        ipam = {"type": "host-local", "ranges": [[{"subnet": "fd00::/64", "gateway": gateway}]]}
        return kinds(check(good(plugins=[{"type": "bridge", "ipam": ipam}])))

    assert facts_for("febf::1") == []
    assert facts_for("fec0::1") == ["ipam-gateway-outside"]
    assert facts_for("169.254.0.1") == ["ipam-gateway-outside"]


def test_case_duplicate_keys(case):
    data = case("netconf-duplicate-json-keys")
    facts = check(data["input"]["raw_stdin"], "10-net.conf")
    assert kinds(facts) == ["conf-repeated-key"]
    assert facts[0]["key"] == "ipam.ranges"
    item = findings.from_facts(facts)[0]
    assert (item["severity"], item["go"]) == (data["check"]["validator"], "carries_on")


@pytest.mark.parametrize(
    "name", ["conflist-trailing-comma", "conflist-unrendered-template", "conflist-first-file-broken"]
)
def test_cases_of_syntax(case, name):
    files = case(name)["input"]["conf_dir"]
    first = next(iter(files))
    assert check(files[first]["raw"], first)


@pytest.mark.parametrize("name", ["conflist-in-conf-extension", "conflist-missing-name-plugins"])
def test_cases_of_structure(case, name):
    data = case(name)
    ((file, content),) = data["input"]["conf_dir"].items()
    assert data["check"]["valid"] is False
    assert findings.from_facts(check(content, file))[0]["severity"] == "error"


def test_flannel_without_its_subnet_file_is_a_warning(tmp_path):
    content = good(name="cbr0", plugins=[{"type": "flannel"}])
    facts = check(content, flannel_subnet_file=str(tmp_path / "none"))
    assert kinds(facts) == ["ipam-flannel-subnet-missing"]


def test_case_missing_binaries(case):
    data = case("conflist-plugin-binary-missing")
    ((name, content),) = data["input"]["conf_dir"].items()
    one = confdir.ConfFile(name, json.dumps(content).encode())
    facts = confcheck.check_binaries(one, name, "/opt/cni/bin", data["input"]["bin_dir"].__contains__)
    assert [fact["type"] for fact in facts] == data["check"]["missing"]
    without_bridge = confcheck.check_binaries(one, name, "/opt/cni/bin", ["flannel", "portmap"].__contains__)
    assert [fact["type"] for fact in without_bridge] == ["bridge", "host-local"]


def facts_of_dir(tmp_path, **files):
    for name, content in files.items():
        path = tmp_path / name.replace("__", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    found = confdir.read_conf_dir(str(tmp_path))
    return confcheck.check_dir(found, confdir.effective(found.files))


def test_a_good_directory_has_no_findings(tmp_path):
    assert facts_of_dir(tmp_path, a__conflist=good(), b__conflist=good(name="other")) == []
    assert facts_of_dir(tmp_path / "empty") == []


def test_a_broken_first_file_is_told_with_what_the_runtimes_do(tmp_path):
    facts = facts_of_dir(tmp_path, a__conflist="{", b__conflist=good())
    assert kinds(facts) == ["conf-broken", "conf-no-network"]
    assert facts[0]["where"] == str(tmp_path / "a.conflist")
    assert facts[1]["runtime"] == "containerd"


def test_case_duplicate_names(tmp_path, case):
    data = case("conflist-duplicate-names")
    files = {name.replace(".", "__"): content for name, content in data["input"]["conf_dir"].items()}
    (fact,) = facts_of_dir(tmp_path, **files)
    assert (fact["kind"], fact["first"]) == ("conf-network-twice", data["check"]["effective_file"])


def test_hidden_files_chains_and_differing_runtimes(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "20-tuning.conf").write_text('{"type": "tuning"}')
    (tmp_path / ".a.conflist").write_text(json.dumps(good()))
    found = confdir.read_conf_dir(str(tmp_path))
    chosen = {"containerd": {"network": "net"}, "crio": {"network": "other"}}
    facts = confcheck.check_dir(found, chosen)
    assert kinds(facts) == ["conf-hidden-file", "conf-subdir-plugins", "conf-runtimes-differ"]
    assert (facts[1]["count"], facts[1]["types"], facts[1]["network"]) == (1, "tuning", "net")
    assert len(findings.from_facts(facts)) == 3


def bridge(name, *subnets, **more):
    ipam = {"type": "host-local", "ranges": [[{"subnet": subnet}] for subnet in subnets]}
    return good(name=name, plugins=[dict({"type": "bridge", "isGateway": True, "ipam": ipam}, **more)])


def test_two_gateways_on_one_bridge(tmp_path):
    one = bridge("one", "10.1.0.0/24", "fd00:1::/64")
    (fact,) = facts_of_dir(tmp_path, a__conflist=one, b__conflist=bridge("two", "10.2.0.0/24"))
    assert fact["where"] == str(tmp_path / "b.conflist")
    (item,) = findings.from_facts([fact])
    assert (item["code"], item["severity"]) == ("CONF023", "warning")
    assert item["text"] == "bridge cni0 has gateway 10.2.0.1/24 in network 'two' and 10.1.0.1/24 in network 'one'"


@pytest.mark.parametrize(
    "two",
    [
        bridge("two", "10.2.0.0/24", bridge="cni1"),
        bridge("two", "10.2.0.0/24", isGateway=False),
        bridge("two", "10.2.0.0/24", vlan=7),
        bridge(
            "two", "10.1.0.0/24"
        ),  # one subnet for both: they share the data of one dataDir or not, the bridge is fine
        bridge("two", "fd00:2::/64"),
        good(name="two", plugins=[{"type": "bridge", "isGateway": True, "ipam": {"type": "dhcp"}}]),
        good(name="two", plugins=[{"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.2.0.0/24"}}]),
    ],
)
def test_bridges_that_do_not_get_in_each_others_way(tmp_path, two):
    assert facts_of_dir(tmp_path, a__conflist=bridge("one", "10.1.0.0/24"), b__conflist=two) == []


def test_flannels_bridge_is_one_too(tmp_path):
    subnet_file = tmp_path / "subnet.env"
    subnet_file.write_text("FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\n")
    flannel = good(name="cbr0", plugins=[{"type": "flannel", "subnetFile": str(subnet_file)}])
    facts = facts_of_dir(tmp_path / "net.d", a__conflist=flannel, b__conflist=bridge("podnet", "10.22.0.0/16"))
    assert kinds(facts) == ["conf-bridge-shared"]
    assert facts[0]["other_gateway"] == "10.244.1.1/24"
