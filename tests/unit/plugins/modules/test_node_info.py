# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import sys

import pytest

NAME = "node_info"
CONFLIST = {
    "cniVersion": "1.0.0",
    "name": "podnet",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni7",
            "isGateway": True,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.22.0.0/29"}]]},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}
PLUGIN = """#!/bin/sh
echo "CNI {0} plugin v9.8.7" >&2
echo "CNI protocol versions supported: 0.4.0, 1.0.0" >&2
"""
PARTS = ["binaries", "conf", "prerequisites", "caches", "addresses", "multus"]


@pytest.fixture
def options(tmp_path):
    def build(**more):
        root = str(tmp_path)
        paths = {
            "conf_dir": root + "/net.d",
            "bin_dir": root + "/bin",
            "state_dir": root + "/state",
            "cache_dir": root + "/cni",
            "multus_cache_dir": root + "/cni/multus",
            "multus_kubeconfig": root + "/net.d/multus.d/multus.kubeconfig",
            "containerd_config": "",
            "crio_config": "",
            "sysctl_dir": root + "/sysctl.d",
            "sysctl_others": [],
            "networkmanager_dir": root + "/NetworkManager/conf.d",
            "firewalld_dir": root + "/firewalld",
            "flannel_subnet_file": root + "/subnet.env",
        }
        return dict(paths, **more)

    return build


@pytest.fixture
def node(tmp_path):
    """A node with a network, three plugins, two cached results and a reservation."""
    conflist = json.loads(json.dumps(CONFLIST))
    conflist["plugins"][0]["ipam"]["dataDir"] = str(tmp_path / "networks")
    for folder in ("net.d", "bin", "cni/results", "networks/podnet"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "net.d" / "10-podnet.conflist").write_text(json.dumps(conflist))
    for name in ("bridge", "portmap", "host-local"):
        (tmp_path / "bin" / name).write_text(PLUGIN.format(name))
        (tmp_path / "bin" / name).chmod(0o755)
    for name in ("podnet-a-eth0", "podnet-b-eth0"):
        (tmp_path / "cni" / "results" / name).write_text("{}")
    (tmp_path / "networks" / "podnet" / "10.22.0.2").write_bytes(b"static.dns\r\neth0")
    return tmp_path


def codes(result):
    return [one["code"] for one in result["findings"]]


def test_the_whole_report_of_a_node(run_module, options, node, tree):
    before = tree(node)
    result = run_module(NAME, options())
    assert tree(node) == before
    assert result["changed"] is False
    assert result["report_version"] == 1
    plugins = {row["name"]: row for row in result["binaries"]["plugins"]}
    assert sorted(plugins) == ["bridge", "host-local", "portmap"]
    assert (plugins["bridge"]["version"], plugins["bridge"]["cni_versions"]) == ("v9.8.7", ["0.4.0", "1.0.0"])
    assert (plugins["bridge"]["kind"], plugins["bridge"]["mode"], plugins["bridge"]["source"]) == ("file", "0755", None)
    (row,) = result["conf"]["files"]
    assert (row["name"], row["network"], row["plugins"]) == ("10-podnet.conflist", "podnet", ["bridge", "portmap"])
    assert {one["network"] for one in result["conf"]["effective"].values()} == {"podnet"}
    assert "br_netfilter" in [one["name"] for one in result["prerequisites"]["modules"]]
    assert result["prerequisites"]["sysctls"][0]["name"] == "net.ipv4.ip_forward"
    assert [(one["kind"], one["entries"]) for one in result["caches"]] == [("results", 2), ("multus", 0)]
    (row,) = result["addresses"]
    assert (row["name"], row["usable"], row["free"], row["reservations"], row["static"]) == ("podnet", 5, 4, 1, 1)
    assert result["multus"] is None
    assert [one for one in codes(result) if not one.startswith("NODE")] == []
    assert run_module(NAME, options(), check=True) == result


@pytest.mark.parametrize("part", PARTS)
def test_a_part_alone(run_module, options, node, part):
    result = run_module(NAME, options(gather=[part]))
    assert [one for one in PARTS if result[one] is not None] == ([part] if part != "multus" else [])


def test_findings_of_all_families_come_from_one_call(run_module, options, node):
    (node / "net.d" / "05-broken.conflist").write_text('{"name": "x", "plugins": [}')
    (node / "bin" / "portmap").unlink()
    (node / "bin" / "bridge").write_text("#!/bin/sh\nexit 1\n")
    (node / "networks" / "podnet" / "10.22.0.3").write_bytes(b"")
    os.utime(str(node / "cni" / "results" / "podnet-a-eth0"), (1, 1))
    (node / "bin").chmod(0o777)
    (node / "net.d" / "multus.d").mkdir()
    (node / "net.d" / "multus.d" / "multus.kubeconfig").write_text("  token: e30.eyJleHAiOjF9.x\n")
    result = run_module(NAME, options())
    found = codes(result)
    assert {"CONF003", "CONF019", "BIN002", "IPAM011", "NODE016", "NODE018"} <= set(found)
    assert any(code.startswith("MULTUS") for code in found)
    assert len(found) == len({json.dumps(one) for one in result["findings"]})
    order = [["error", "warning", "info"].index(one["severity"]) for one in result["findings"]]
    assert order == sorted(order)
    assert result["conf"]["files"][0]["error"]
    assert result["conf"]["effective"]["containerd"]["network"] is None
    assert found.count("CONF021") == 0  # the exact cause is told, and nothing beside it


def test_a_node_with_nothing_on_it(run_module, options, tmp_path, tree):
    result = run_module(NAME, options())
    assert tree(tmp_path) == tree(tmp_path)
    assert os.listdir(str(tmp_path)) == []
    assert result["binaries"]["exists"] is False
    assert result["conf"]["exists"] is False
    assert result["binaries"]["plugins"] == []
    assert result["addresses"] == []
    assert codes(result) == ["CONF001"]


def test_what_we_installed_and_somebody_changed(run_module, options, node):
    source = node / "source"
    source.mkdir()
    for name in ("bridge", "ptp"):
        (source / name).write_text(PLUGIN.format(name) + "# new\n")
        (source / name).chmod(0o755)
    paths = {"bin_dir": str(node / "bin"), "state_dir": str(node / "state")}
    run_module("plugin_binaries", dict(paths, src=str(source), remote_src=True, include=["bridge", "ptp"]))
    result = run_module(NAME, options(gather=["binaries"]))
    rows = {row["name"]: row for row in result["binaries"]["plugins"]}
    assert rows["bridge"]["source"] == str(source)
    assert not any(row["drift"] for row in rows.values())
    assert result["findings"] == []
    (node / "bin" / "bridge").write_text(PLUGIN.format("bridge"))
    (node / "bin" / "ptp").unlink()
    result = run_module(NAME, options(gather=["binaries"]))
    rows = {row["name"]: row for row in result["binaries"]["plugins"]}
    assert rows["bridge"]["drift"] is True
    assert codes(result) == ["BIN007", "BIN007"]


def test_a_record_that_cannot_be_read_is_a_finding(run_module, options, node):
    (node / "state").mkdir()
    (node / "state" / "plugin_binaries.json").write_text("{")
    result = run_module(NAME, options(gather=["binaries"]))
    assert codes(result) == ["NODE019"]
    assert len(result["binaries"]["plugins"]) == 3


def test_what_is_no_plugin_is_not_run(run_module, options, node):
    mark = node / "mark"
    (node / "bin" / "backup.sh").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (node / "bin" / "backup.sh").chmod(0o755)
    (node / "bin" / "dangling").symlink_to("nowhere")
    (node / "bin" / "folder").mkdir()
    result = run_module(NAME, options(gather=["binaries"]))
    assert not mark.exists()
    assert [row["name"] for row in result["binaries"]["plugins"]] == ["backup.sh", "bridge", "host-local", "portmap"]


def test_embedded_executables_after_an_upgrade_of_python(run_module, options, node):
    from ansible_collections.nodenet.cni.plugins.module_utils.node import executables

    root = os.path.dirname(os.path.dirname(os.path.abspath(executables.__file__)))
    executables.build(root, str(node / "bin"), ["host-local"], os.path.realpath(sys.executable))
    result = run_module(NAME, options(gather=["binaries"]))
    assert [row["byte_code"] for row in result["binaries"]["embedded"]] == ["fresh"]
    assert result["findings"] == []
    for path in (node / "bin" / executables.STORE).rglob("*.code"):
        path.unlink()
    result = run_module(NAME, options(gather=["binaries"]))
    assert [row["byte_code"] for row in result["binaries"]["embedded"]] == ["stale"]
    assert [one["text"].startswith("its byte code is damaged or not of ") for one in result["findings"]] == [True]


def test_a_file_in_the_place_of_a_directory(run_module, fails, options, node):
    assert fails(NAME, options(conf_dir=str(node / "bin" / "bridge"))).startswith("Cannot read conf dir")
    result = run_module(NAME, options(gather=["binaries"], bin_dir=str(node / "bin" / "bridge")))
    assert (result["binaries"]["exists"], result["binaries"]["plugins"]) == (False, [])
    assert [(one["code"], one["text"]) for one in result["findings"]] == [
        ("BIN012", "the directory cannot be read: not a directory")
    ]


def test_networks_without_any_directory_of_plugins(run_module, options, node):
    there = [one["code"] for one in run_module(NAME, options(gather=["conf"]))["findings"]]
    result = run_module(NAME, options(gather=["conf"], bin_dir=str(node / "bni")))
    (told,) = (one for one in result["findings"] if one["where"] == str(node / "bni"))
    assert (told["code"], told["severity"]) == ("BIN012", "error")
    assert "BIN012" not in there


def test_what_an_audit_compares(run_module, options, node):
    from ansible_collections.nodenet.cni.plugins.module_utils.host_local.compact import reservations_of

    given = {"gather": ["conf", "addresses"], "live": {"attachments": [{"container_id": "a" * 64}]}}
    assert "networks" not in run_module(NAME, options(**given))
    result = run_module(NAME, options(audit=True, **given))
    (network,) = result["networks"]
    (one,) = reservations_of(network)
    assert (network["name"], one["address"], one["owner"]) == ("podnet", "10.22.0.2", "dns")
    assert network["range_sets"][0]["leaked"] == 0
    settings = result["conf"]["files"][0]["settings"]
    assert settings["plugins[0].bridge"] == "cni7"
    assert settings["plugins[0].isGateway"] == "true"
    assert not any("10.22.0" in path + value for path, value in settings.items())
    assert run_module(NAME, options(audit=True, networks=[], **given))["networks"] == []


def test_an_address_in_use_that_nothing_reserves(run_module, options, node):
    alive = "a" * 64
    result = {"cniVersion": "1.0.0", "ips": [{"address": "10.22.0.3/29"}]}
    entry = {"kind": "cniCacheV1", "containerId": alive, "ifName": "eth0", "networkName": "podnet", "result": result}
    path = node / "cni" / "results" / "podnet-c-eth0"
    path.write_text(json.dumps(entry))
    os.utime(path, (1e9, 1e9))
    assert codes(run_module(NAME, options(gather=["addresses"]))) == []
    live = {"attachments": [{"container_id": alive}]}
    assert codes(run_module(NAME, options(gather=["addresses"], live=live))) == ["IPAM035"]
