# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What node_info says of the prerequisites: live values against what is needed."""

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import bringing, findings, prerequisites, standing
from ansible_collections.nodenet.cni.plugins.module_utils.node.needs import Needs


def needs_of(*types, families=(4,)):
    needs = Needs()
    needs.add_plugins(types, families)
    return needs


def look(node, needs, **more):
    document, facts = standing.look(needs, node.places(**more))
    return document, [(one["code"], one["where"]) for one in findings.from_facts(facts)]


def setting(document, name):
    return next(row for row in document["sysctls"] if row["name"] == name)


@pytest.fixture
def ready(node):
    node.builtin("bridge", "br_netfilter", "veth", "macvlan", "nf_conntrack", "nf_nat")
    node.setting("net/bridge/bridge-nf-call-iptables", "1")
    node.setting("net/ipv4/conf/all/rp_filter", "0")
    node.setting("net/ipv4/conf/default/rp_filter", "0")
    return node


def test_what_is_wrong_and_what_is_not_kept(ready):
    document, found = look(ready, needs_of("bridge"))
    assert found == [("NODE004", "net.ipv4.ip_forward"), ("NODE008", "net.bridge.bridge-nf-call-iptables")]
    row = setting(document, "net.ipv4.ip_forward")
    assert (row["value"], row["wanted"], row["set_by"], row["needed_by"]) == ("0", "1", None, ["bridge"])
    assert setting(document, "net.ipv4.conf.all.rp_filter")["wanted"] is None


def test_nothing_is_wrong_once_the_module_has_run(ready):
    needs, places = needs_of("bridge"), ready.places()
    bringing.carry_out(prerequisites.make_plan(needs, places), places)
    document, found = look(ready, needs)
    assert found == []
    assert setting(document, "net.ipv4.ip_forward")["set_by"] == places.sysctl_file


def test_what_the_next_boot_brings_is_told_by_file(ready):
    path = ready.write("etc/sysctl.d/99-x.conf", "net.ipv4.ip_forward = 0\n")
    ready.setting("net/ipv4/ip_forward", "1")
    document, found = look(ready, needs_of("ptp"))
    assert found == [("NODE006", str(path))]
    row = setting(document, "net.ipv4.ip_forward")
    assert (row["at_boot"], row["set_by"]) == ("0", str(path))


def test_modules_and_settings_that_are_missing(node):
    node.module_files("veth", "bridge")
    document, found = look(node, needs_of("bridge", "vrf"))
    assert [code for code, _where in found if code != "NODE004"] == [
        "NODE001",
        "NODE001",
        "NODE005",
        "NODE002",
        "NODE002",
    ]
    assert {row["name"]: row["state"] for row in document["modules"]} == {
        "br_netfilter": "absent",
        "bridge": "available",
        "veth": "available",
        "vrf": "absent",
    }


@pytest.mark.parametrize(
    ("types", "values", "wanted"),
    [
        (["macvlan"], ("1", "0"), True),
        (["macvlan"], ("0", "1"), True),
        (["multus"], ("1", "1"), True),
        (["macvlan"], ("2", "1"), False),
        (["macvlan"], ("0", "0"), False),
        (["portmap"], ("1", "1"), False),
    ],
)
def test_a_strict_way_back_where_pods_have_several_interfaces(ready, types, values, wanted):
    ready.setting("net/ipv4/ip_forward", "1")
    for name, value in zip(("all", "default"), values):
        ready.setting(f"net/ipv4/conf/{name}/rp_filter", value)
    _document, found = look(ready, needs_of(*types))
    assert ("NODE017" in [code for code, _where in found]) == wanted


def test_daemons_that_do_not_run_are_told_and_no_finding(ready):
    (ready.root / "etc/NetworkManager").mkdir()
    (ready.root / "etc/firewalld/zones").mkdir(parents=True)
    document, found = look(ready, needs_of("bridge"))
    assert not {"NODE009", "NODE011", "NODE012"} & {code for code, _where in found}
    assert document["exemptions"] == [
        {"service": "NetworkManager", "running": False, "missing": ["cni0", "veth*"]},
        {"service": "firewalld", "running": False, "missing": ["cni0"]},
    ]
    places = ready.places()
    bringing.carry_out(prerequisites.make_plan(needs_of("bridge"), places), places)
    document, _found = look(ready, needs_of("bridge"))
    assert [row["missing"] for row in document["exemptions"]] == [[], []]


def test_daemons_that_run_and_know_nothing_of_us(in_namespace, tmp_path):
    """Stand-ins under the daemons' names, in a network namespace where no real one is."""
    for name in ("sbin", "NetworkManager", "firewalld"):
        (tmp_path / name).mkdir()
    for name, text in (
        ("NetworkManager", "sleep 30 & wait"),
        ("firewalld", "sleep 30 & wait"),
        ("firewall-cmd", f"cat {tmp_path}/zone 2>/dev/null || {{ echo no zone; exit 2; }}"),
    ):
        (tmp_path / "sbin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "sbin" / name).chmod(0o755)
    code = """
import os, signal, subprocess, sys, time
from ansible_collections.nodenet.cni.plugins.module_utils.node import findings, standing, survey
from ansible_collections.nodenet.cni.plugins.module_utils.node.needs import Needs
root = sys.argv[1]
needs = Needs()
needs.interfaces, needs.bridges = ["cni0"], ["cni0"]
started = [subprocess.Popen([root + "/sbin/" + name], start_new_session=True) for name in sys.argv[2:]]
try:
    time.sleep(0.3)
    for zone in (None, "public", "trusted"):
        if zone:
            with open(root + "/zone", "w") as stream:
                stream.write(zone)
        places = survey.Places(
            sysctl_dir=root, sysctl_others=[], networkmanager_dir=root + "/NetworkManager/conf.d",
            firewalld_dir=root + "/firewalld", systemd=root, nm_vendor=[], programs=[root + "/sbin"])
        document, facts = standing.look(needs, places)
        print([one["code"] for one in findings.from_facts(facts)], [row["running"] for row in document["exemptions"]])
    os.unlink(root + "/sbin/firewall-cmd")
    places = survey.Places(
        sysctl_dir=root, networkmanager_dir=root + "/x/y", firewalld_dir=root + "/firewalld", programs=[])
    document, facts = standing.look(needs, places)
    print([one["code"] for one in findings.from_facts(facts)], document["exemptions"][0]["running"])
finally:
    for one in started:
        os.killpg(one.pid, signal.SIGKILL)
        one.wait()
"""
    lines = in_namespace(code, tmp_path, "NetworkManager", "firewalld").splitlines()
    assert lines[:3] == [
        "['NODE009', 'NODE012'] [True, True]",
        "['NODE009', 'NODE011'] [True, True]",
        "['NODE009'] [True, True]",
    ]
    assert lines[3] == "['NODE033'] True"
