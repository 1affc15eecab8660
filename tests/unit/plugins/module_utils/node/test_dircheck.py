# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import confdir, dircheck, findings


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
    return dircheck.check_dir(found, confdir.effective(found.files))


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
    assert (item["code"], item["severity"]) == ("CONF023", "warning")
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
