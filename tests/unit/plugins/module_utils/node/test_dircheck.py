# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import confdir, dircheck, effective, findings


def kinds(facts):
    return [fact["kind"] for fact in facts]


def good(**more):
    return dict({"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "bridge"}]}, **more)


def facts_of_dir(tmp_path, **files):
    for name, content in files.items():
        path = tmp_path / name.replace("__", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    found = confdir.read_conf_dir(str(tmp_path))
    return dircheck.check_dir(found, effective.predict(found.files))


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
    (item,) = findings.from_facts([fact])
    assert (item["severity"], item["where"]) == ("warning", str(tmp_path / "20-net.conflist"))
    assert "never used" in item["text"]


def test_hidden_files_chains_and_differing_runtimes(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "20-tuning.conf").write_text('{"type": "tuning"}')
    (tmp_path / ".a.conflist").write_text(json.dumps(good()))
    found = confdir.read_conf_dir(str(tmp_path))
    chosen = {"containerd": {"network": "net", "known": True}, "crio": {"network": "other", "known": True}}
    facts = dircheck.check_dir(found, chosen)
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
    assert (item["code"], item["severity"]) == ("CONF023", "error")
    assert item["text"] == "bridge cni0 has gateway 10.2.0.1/24 in network 'two' and 10.1.0.1/24 in network 'one'"


@pytest.mark.parametrize(
    "two",
    [
        bridge("two", "10.2.0.0/24", bridge="cni1"),
        bridge("two", "10.2.0.0/24", isGateway=False),
        bridge("two", "10.2.0.0/24", vlan=7),
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


def test_case_two_networks_on_one_subnet(tmp_path, case):
    data = case("conflist-two-networks-one-subnet")
    files = {name.replace(".", "__"): content for name, content in data["input"]["conf_dir"].items()}
    (fact,) = facts_of_dir(tmp_path, **files)
    assert (fact["kind"], [fact["other"], fact["network"]]) == ("conf-subnets-overlap", data["check"]["overlap"][0])
    (item,) = findings.from_facts([fact])
    assert item["severity"] == "warning"
    assert "10.22.0.1-10.22.255.254" in item["text"]


def test_ranges_that_share_a_subnet_but_no_address(tmp_path):
    def half(name, bridge_name, start, end):
        one = {"subnet": "10.1.0.0/24", "rangeStart": start, "rangeEnd": end}
        ipam = {"type": "host-local", "ranges": [[one]]}
        return good(name=name, plugins=[{"type": "bridge", "bridge": bridge_name, "ipam": ipam}])

    low, high = half("one", "a0", "10.1.0.2", "10.1.0.99"), half("two", "b0", "10.1.0.100", "10.1.0.199")
    assert facts_of_dir(tmp_path, a__conflist=low, b__conflist=high) == []
    high = half("two", "b0", "10.1.0.99", "10.1.0.199")
    assert kinds(facts_of_dir(tmp_path, b__conflist=high)) == ["conf-subnets-overlap"]


def test_a_network_below_multus_is_no_second_one(tmp_path):
    net = bridge("podnet", "10.1.0.0/24")
    multus = {"cniVersion": "1.0.0", "name": "multus", "type": "multus", "delegates": [net]}
    assert facts_of_dir(tmp_path, a__conf=multus, b__conflist=net) == []


def test_twins(tmp_path):
    single = {"cniVersion": "1.0.0", "name": "net", "type": "bridge"}
    facts = facts_of_dir(tmp_path, **{"10-net__conf": single, "10-net__conflist": good(), "10-nett__conf": good()})
    assert ("conf-twin", str(tmp_path / "10-net.conf")) in [(fact["kind"], fact["where"]) for fact in facts]
    assert kinds(facts).count("conf-twin") == 1


def test_files_that_nobody_reads(tmp_path):
    backups = [
        "10-a.conflist.bak",
        "10-a.conflist~",
        "a.conf.orig",
        "b.conflist.12.2026-11-29@10:00:00~",
        "c.json.20261129T",
    ]
    backups += ["a.conflist.rpmsave", "x.cilium_bak", ".10-a.conflist.swp", "old.save", "a.conflist.dpkg-old"]
    wrong = ["20-b.CONFLIST", "30-c.yaml", "40-d.conflists", "50-e.conflist.j2", "60-f.Conf"]
    fine = ["cni.lock", ".nerdctl.lock", "calico-kubeconfig", "multus.kubeconfig", "README", "notes.txt", "ca.crt"]
    for name in backups + wrong + fine:
        (tmp_path / name).write_text("x")
    (tmp_path / "dir.conflist.bak").mkdir()
    facts = facts_of_dir(tmp_path, a__conflist=good())
    assert [fact["where"] for fact in facts if fact["kind"] == "conf-extension"] == [
        str(tmp_path / one) for one in wrong
    ]
    (listed,) = [fact for fact in facts if fact["kind"] == "conf-backup-files"]
    assert listed["names"].split(", ") == sorted(backups)
    assert len(facts) == len(wrong) + 1
    assert {item["go"] for item in findings.from_facts(facts)} == {"unaffected"}


def test_sub_directories(tmp_path):
    for name, content in (
        ("10-a.conf", {"type": "tuning", "mtu": "1"}),
        ("20-b.conf", {}),
        ("30-c.conf", {"type": "ptp"}),
    ):
        (tmp_path / "net").mkdir(exist_ok=True)
        (tmp_path / "net" / name).write_text(json.dumps(content))
    (tmp_path / "two").write_text("a file")
    (tmp_path / "three").write_text("a file")
    three = good(name="three", loadOnlyInlinedPlugins=True)
    facts = facts_of_dir(tmp_path, a__conflist=good(), b__conflist=good(name="two"), c__conflist=three)
    found = [(fact["kind"], fact["where"][len(str(tmp_path)) + 1 :]) for fact in facts]
    assert found == [
        ("conf-subdir-plugins", "net"),
        ("conf-key-type", "net/10-a.conf"),
        ("conf-subdir-broken", "net/20-b.conf"),
        ("conf-chain-interface", "net/30-c.conf"),
        ("conf-key-needed", "net/30-c.conf"),
        ("conf-subdir-file", "two"),
    ]
    assert len(findings.from_facts(facts)) == len(facts)
