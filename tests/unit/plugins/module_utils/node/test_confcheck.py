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
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    assert check(good(plugins=[{"type": "bridge", "ipam": ipam}, portmap])) == []
    assert check({"cniVersion": "0.4.0", "name": "net", "type": "bridge"}, "10-net.conf") == []


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
        ("netconf-rangestart-broadcast", "ipam-range-start-late", "ipam.ranges[0][0]"),
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
    bad = {"name": "inner", "plugins": [{"type": "loopback"}, {"type": "ptp", "ipam": {"type": "host-local"}}]}
    (fact,) = check(dict(bad, cniVersion="1.0.0"))
    assert fact["path"].startswith("plugins[1].ipam") or fact["path"] == "plugins[1]"
    (fact,) = check(
        {"cniVersion": "1.0.0", "name": "m", "type": "multus", "delegates": [{"name": "x", "type": "y"}, bad]},
        "00-multus.conf",
    )
    assert fact["path"].startswith("delegates[1].plugins[1]")
    assert fact["reason"] == "no IP ranges specified"


def test_case_gateway_outside_the_subnet(case):
    data = case("netconf-gateway-outside-subnet")
    facts = check(json.dumps(data["input"]["stdin"]).replace("$DIR", "/data"), "10-net.conf")
    assert kinds(facts) == ["ipam-gateway-outside"]
    assert [fact["gateway"] for fact in facts] == data["check"]["warn"]
    assert findings.from_facts(facts)[0]["severity"] == "warning"


def test_a_data_dir_that_depends_on_where_a_process_runs():
    def facts_for(data_dir):
        ipam = {"type": "host-local", "dataDir": data_dir, "ranges": [[{"subnet": "10.1.0.0/24"}]]}
        return check(good(plugins=[{"type": "bridge", "ipam": ipam}]))

    assert facts_for("/run/cni") == facts_for("") == []
    (fact,) = facts_for("run/cni")
    (item,) = findings.from_facts([fact])
    assert (item["code"], item["severity"]) == ("IPAM041", "warning")
    assert "plugins[0].ipam.dataDir: 'run/cni' is no absolute path" in item["text"]


def test_a_link_local_address_is_the_only_foreign_gateway_that_is_fine():
    def facts_for(gateway):
        ipam = {"type": "host-local", "ranges": [[{"subnet": "fd00::/64", "gateway": gateway}]]}
        return kinds(check(good(plugins=[{"type": "bridge", "ipam": ipam}])))

    assert facts_for("febf::1") == []
    assert facts_for("fec0::1") == ["ipam-gateway-outside"]
    assert facts_for("169.254.0.1") == ["ipam-gateway-outside"]


def test_case_duplicate_keys(case):
    data = case("netconf-duplicate-json-keys")
    facts = check(data["input"]["raw_stdin"].replace("$DIR", "/data"), "10-net.conf")
    assert kinds(facts) == ["conf-repeated-key"]
    assert facts[0]["key"] == "ipam.ranges"
    item = findings.from_facts(facts)[0]
    assert (item["severity"], item["go"]) == (data["check"]["validator"], "carries_on")


@pytest.mark.parametrize(
    "name", ["conflist-trailing-comma", "conflist-unrendered-template", "conflist-first-file-broken"]
)
def test_cases_of_syntax(case, name):
    data = case(name)
    files = data["input"]["conf_dir"]
    first = next(iter(files))
    built = findings.from_facts(check(files[first]["raw"], first))
    assert {(one["severity"], one["go"]) for one in built} == {("error", "fails")}
    assert not data["check"].get("valid", False)


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
    for item in findings.from_facts(facts):
        assert item["severity"] == "error"
        assert "each failed attempt of a pod may leave one address reserved" in item["hint"]
    without_bridge = confcheck.check_binaries(one, name, "/opt/cni/bin", ["flannel", "portmap"].__contains__)
    assert [fact["type"] for fact in without_bridge] == ["bridge", "host-local"]
