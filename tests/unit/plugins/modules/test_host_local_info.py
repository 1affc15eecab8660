# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import cachecheck

NAME = "host_local_info"


def as_live(listed):
    """A case's list of live ids or attachments as the option live."""
    attachments = [
        {"container_id": one["containerID"], "ifname": one["ifname"]}
        if isinstance(one, dict)
        else {"container_id": one}
        for one in listed
    ]
    return {"attachments": attachments}


@pytest.fixture
def node(tmp_path, fill):
    """A node whose conf dir and data dir can be filled; its options."""
    conf_dir, data_dir = tmp_path / "net.d", tmp_path / "data"
    conf_dir.mkdir()
    data_dir.mkdir()

    class Node:
        conf = conf_dir
        data = data_dir

        @staticmethod
        def define(name, subnet, filename="10-net.conflist", kind="bridge", **ipam):
            ipam = dict({"type": "host-local", "ranges": [[{"subnet": subnet}]], "dataDir": str(data_dir)}, **ipam)
            document = {"cniVersion": "1.0.0", "name": name, "plugins": [{"type": kind, "ipam": ipam}]}
            conf_dir.joinpath(filename).write_text(json.dumps(document))

        @staticmethod
        def fill(files):
            fill(data_dir, files)

        @staticmethod
        def options(**more):
            options = {
                "conf_dir": str(conf_dir),
                "data_dir": str(data_dir),
                "flannel_subnet_file": str(tmp_path / "subnet.env"),
                "results_dirs": [str(tmp_path / "results")],
            }
            options.update(more)
            return {key: value for key, value in options.items() if value is not None}

    return Node


def by_code(result):
    return {one["code"]: one for one in result["findings"]}


def test_the_holder_of_a_sticky_address(run_module, node):
    node.define("lan", "192.0.2.0/29", kind="macvlan")
    node.fill(
        {
            "lan/192.0.2.2": {"content": "static.shop.db-0\r\neth0", "age_s": 500},
            "lan/192.0.2.2.holder": {"content": "a" * 64 + "\r\neth0", "age_s": 500},
            "lan/192.0.2.3.holder": {"content": "def\r\neth0", "age_s": 500},
        }
    )
    result = run_module(NAME, node.options(live={"attachments": [{"container_id": "b" * 64}]}))
    (network,) = result["networks"]
    assert [one["holder"] for one in network["reservations"]] == [
        {"container_id": "a" * 64, "ifname": "eth0", "alive": False}
    ]
    assert network["foreign"] == []
    assert set(by_code(result)) == {"IPAM031", "IPAM032"}
    assert "192.0.2.3.holder" in by_code(result)["IPAM031"]["text"]
    assert "192.0.2.2.holder" in by_code(result)["IPAM032"]["text"]


def test_report(run_module, node, tree, tmp_path):
    node.define("lan", "192.0.2.0/29", kind="macvlan")
    node.fill(
        {
            "lan/192.0.2.3": {"content": "abc\r\neth0", "age_s": 100},
            "lan/192.0.2.2": {"content": "static.vip\r\neth0", "age_s": 50},
            "lan/last_reserved_ip.0": {"content": "192.0.2.3"},
            "lan/lock": {"content": ""},
        }
    )
    before = tree(tmp_path)
    result = run_module(NAME, node.options())
    assert tree(tmp_path) == before
    assert not result["changed"]
    assert result["report_version"] == 1
    assert result["findings"] == []
    (network,) = result["networks"]
    ages = [one.pop("age_s") for one in network["reservations"]]
    assert 50 <= ages[0] < 90
    assert 100 <= ages[1] < 140
    assert network == {
        "name": "lan",
        "data_dir": str(node.data),
        "source": str(node.conf / "10-net.conflist"),
        "scope": "shared",
        "range_sets": [
            {
                "ranges": ["192.0.2.1-192.0.2.6"],
                "gateways": ["192.0.2.1"],
                "usable": 5,
                "reserved": 2,
                "static": 1,
                "leaked": None,
                "free": 3,
                "last_reserved": "192.0.2.3",
            }
        ],
        "reservations": [
            {
                "address": "192.0.2.2",
                "owner": "vip",
                "container_id": "static.vip",
                "ifname": "eth0",
                "static": True,
                "range_set": 0,
            },
            {
                "address": "192.0.2.3",
                "owner": None,
                "container_id": "abc",
                "ifname": "eth0",
                "static": False,
                "range_set": 0,
            },
        ],
        "foreign": [],
    }


def test_nothing_there_is_created(run_module, node, tree, tmp_path):
    node.define("lan", "192.0.2.0/29", dataDir=str(tmp_path / "none"))
    before = tree(tmp_path)
    (network,) = run_module(NAME, node.options(data_dir=None, networks=["lan"]))["networks"]
    assert tree(tmp_path) == before
    assert (network["data_dir"], network["reservations"]) == (str(tmp_path / "none"), [])
    assert network["range_sets"][0]["free"] == 5


def test_lock_is_taken_shared_and_waited_for(run_module, fails, node):
    import fcntl

    node.define("lan", "192.0.2.0/29")
    node.fill({"lan/lock": {"content": ""}})
    with open(str(node.data / "lan" / "lock")) as stream:
        fcntl.flock(stream, fcntl.LOCK_SH)
        run_module(NAME, node.options(lock_timeout=0.1))
        fcntl.flock(stream, fcntl.LOCK_EX)
        text = fails(NAME, node.options(lock_timeout=0.1, networks=["lan"]))
        assert text.startswith(f"Cannot report network lan in {node.data}/lan: ")
        assert f"process {os.getpid()}" in text


def test_several_networks_and_names(run_module, fails, node):
    node.define("b", "192.0.2.0/29", "10-b.conflist")
    node.define("a", "198.51.100.0/29", "20-a.conflist")
    assert [one["name"] for one in run_module(NAME, node.options())["networks"]] == ["b", "a"]
    assert [one["name"] for one in run_module(NAME, node.options(networks=["a", "b", "a"]))["networks"]] == ["a", "b"]
    text = fails(NAME, node.options(networks=["nope"]))
    assert text.startswith(f"Cannot report network nope in {node.conf}: no file defines it")
    assert "Cannot report network '../x' in" in fails(NAME, node.options(networks=["../x"]))


def test_config(run_module, fails, node):
    node.fill({"one/192.0.2.2": {"content": "abc\r\neth0"}})
    config = {
        "name": "one",
        "cniVersion": "1.0.0",
        "type": "ptp",
        "ipam": {"type": "host-local", "subnet": "192.0.2.0/29"},
    }
    (network,) = run_module(NAME, node.options(config=config))["networks"]
    assert (network["name"], network["source"], len(network["reservations"])) == ("one", "the option config", 1)
    config["ipam"]["type"] = "dhcp"
    assert "none of its plugins uses host-local" in fails(NAME, node.options(config=config))


def test_broken_ranges_are_a_finding(run_module, node):
    node.define("lan", "usePodCidr")
    node.fill({"lan/192.0.2.2": {"content": "abc\r\neth0"}})
    result = run_module(NAME, node.options())
    assert result["networks"][0]["range_sets"] == []
    assert result["networks"][0]["reservations"][0]["range_set"] is None
    assert "invalid CIDR address: usePodCidr" in by_code(result)["CONF020"]["text"]


def test_symlinked_directory_is_a_finding(run_module, node, tmp_path):
    node.define("lan", "192.0.2.0/29")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "192.0.2.2").write_bytes(b"abc\r\neth0")
    (node.data / "lan").symlink_to(tmp_path / "real")
    result = run_module(NAME, node.options())
    assert len(result["networks"][0]["reservations"]) == 1
    assert by_code(result)["IPAM026"]["severity"] == "error"


def test_what_flannel_leaves_on_a_node(run_module, node, tmp_path):
    (tmp_path / "subnet.env").write_text(
        "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.0.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n"
    )
    document = {
        "name": "cbr0",
        "cniVersion": "0.3.1",
        "plugins": [
            {"type": "flannel", "delegate": {"hairpinMode": True, "isDefaultGateway": True}},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
    node.conf.joinpath("10-flannel.conflist").write_text(json.dumps(document))
    node.fill(
        {
            "cbr0/10.244.0.4": {"content": "a" * 64 + "\r\neth0"},
            "cbr0/10.244.0.5": {"content": "b" * 64 + "\r\neth0"},
            "cbr0/last_reserved_ip.0": {"content": "10.244.0.5"},
            "cbr0/lock": {"content": ""},
        }
    )
    (network,) = run_module(NAME, node.options())["networks"]
    assert (network["name"], network["scope"]) == ("cbr0", "node")
    (range_set,) = network["range_sets"]
    assert range_set["ranges"] == ["10.244.0.1-10.244.0.254"]
    assert (range_set["usable"], range_set["reserved"], range_set["free"]) == (253, 2, 251)
    assert range_set["last_reserved"] == "10.244.0.5"
    assert [(one["address"], one["container_id"]) for one in network["reservations"]] == [
        ("10.244.0.4", "a" * 64),
        ("10.244.0.5", "b" * 64),
    ]


def test_flannel_without_its_file(run_module, node):
    document = {"name": "cbr0", "cniVersion": "0.3.1", "plugins": [{"type": "flannel", "delegate": {}}]}
    node.conf.joinpath("10-flannel.conflist").write_text(json.dumps(document))
    result = run_module(NAME, node.options())
    assert "IPAM002" in by_code(result)
    assert result["networks"][0]["range_sets"] == []


def test_other_directories_beside_the_networks_are_no_orphans(run_module, node):
    node.fill({"results/cbr0-abc-eth0": {"content": "{}"}, "old/10.1.2.3": {"content": "abc\r\neth0"}})
    (node.data / "empty").mkdir()
    assert [one["name"] for one in run_module(NAME, node.options())["networks"]] == ["old"]


class TestCases:
    def test_crlf_parse(self, run_module, node, case):
        given = case("datadir-crlf-parse")
        node.define(given["input"]["network"], given["input"]["range"]["subnet"])
        node.fill(given["input"]["data_dir"])
        (network,) = run_module(NAME, node.options())["networks"]
        rows = {one["address"]: [one["container_id"], one["ifname"]] for one in network["reservations"]}
        assert rows == given["check"]["rows"]

    def test_custom_datadir(self, run_module, node, case, fill, tmp_path):
        given = json.loads(json.dumps(case("datadir-custom-datadir")).replace("$ROOT", str(tmp_path)))
        for name, document in given["input"]["conf_dir"].items():
            node.conf.joinpath(name).write_text(json.dumps(document))
        fill(given["input"]["data_dir_root"], given["input"]["data_dir"])
        options = node.options(data_dir=None, networks=["antrea"], live=as_live(given["input"]["live"]))
        (network,) = run_module(NAME, options)["networks"]
        leaked = [one["address"] for one in network["reservations"] if one["alive"] is False]
        assert leaked == given["check"]["leaked"]
        assert network["range_sets"][0]["leaked"] == 1

    def test_empty_ip_files(self, run_module, node, case):
        given = case("datadir-empty-ip-files")
        node.define(given["input"]["network"], given["input"]["range"]["subnet"])
        node.fill(given["input"]["data_dir"])
        result = run_module(NAME, node.options(live=as_live(given["input"]["live"])))
        rows = result["networks"][0]["reservations"]
        assert [one["address"] for one in rows if not one["container_id"]] == given["check"]["empty"]
        assert ", ".join(given["check"]["empty"]) in by_code(result)["IPAM011"]["text"]
        assert {one["alive"] for one in rows if not one["container_id"]} == {None}
        assert result["networks"][0]["range_sets"][0]["leaked"] == 0

    def test_foreign_files(self, run_module, node, case):
        given = case("datadir-foreign-files")
        node.define(given["input"]["network"], given["input"]["range"]["subnet"])
        node.fill(given["input"]["data_dir"])
        result = run_module(NAME, node.options())
        (network,) = result["networks"]
        assert [one["address"] for one in network["reservations"]] == given["check"]["reservations"]
        assert network["foreign"] == given["check"]["foreign"]
        assert "10.244.1.2.bak" in by_code(result)["IPAM013"]["text"]
        assert by_code(result)["IPAM012"]["severity"] == "info"

    def test_legacy_id_only(self, run_module, node, case):
        given = case("datadir-legacy-id-only")
        node.define(given["input"]["network"], given["input"]["range"]["subnet"])
        node.fill(given["input"]["data_dir"])
        result = run_module(NAME, node.options(live=as_live(given["input"]["live"])))
        rows = result["networks"][0]["reservations"]
        assert [one["address"] for one in rows if not one["ifname"]] == given["check"]["legacy"]
        assert [one["address"] for one in rows if one["alive"] is False] == given["check"]["gc_removed"]
        assert [one["address"] for one in rows if one["alive"]] == given["check"]["kept"]
        assert rows[1]["container_id"].endswith("089")
        assert by_code(result)["IPAM014"]["text"].endswith(", ".join(given["check"]["legacy"]))

    def test_orphan_network(self, run_module, node, case):
        given = case("datadir-orphan-network")
        for name, document in given["input"]["conf_dir"].items():
            node.conf.joinpath(name).write_text(json.dumps(document))
        node.fill(given["input"]["data_dir"])
        result = run_module(NAME, node.options(live=as_live(given["input"]["live"])))
        assert [one["name"] for one in result["networks"]] == ["newnet", "cbr0"]
        orphans = {one["name"]: len(one["reservations"]) for one in result["networks"] if one["source"] is None}
        assert orphans == given["check"]["orphan_networks"]
        assert by_code(result)["IPAM010"]["where"] == str(node.data / "cbr0")

    def test_short_id_prefix(self, run_module, node, case):
        given = case("datadir-short-id-prefix")
        node.fill(given["input"]["data_dir"])
        (network,) = run_module(NAME, node.options(live=as_live(given["input"]["live"])))["networks"]
        leaked = [one["address"] for one in network["reservations"] if one["alive"] is False]
        assert leaked == given["check"]["gc_removed"]

    def test_two_attachments_of_one_container(self, run_module, node, case):
        given = case("datadir-gc-two-attachments-one-container")
        node.fill(given["input"]["data_dir"])
        (network,) = run_module(NAME, node.options(live=as_live(given["input"]["valid_attachments"])))["networks"]
        leaked = [one["address"] for one in network["reservations"] if one["alive"] is False]
        assert leaked == given["check"]["gc_removed"]

    def test_two_runtimes_one_network(self, run_module, node, case):
        given = case("datadir-two-runtimes-one-network")
        node.fill(given["input"]["data_dir"])
        by_runtime = given["input"]["live_by_runtime"]

        def report(listed):
            (network,) = run_module(NAME, node.options(live=as_live(listed)))["networks"]
            return {one["address"]: one["alive"] for one in network["reservations"]}

        everybody = report(by_runtime["cri"] + ["default-" + one for one in by_runtime["containerd:default"]])
        assert [address for address, alive in everybody.items() if alive is False] == given["check"]["gc_removed"]
        half = report(by_runtime["cri"])
        expected = given["check"]["with_cri_only"]
        assert [address for address, alive in half.items() if alive is False] == expected["gc_removed"]
        assert [address for address, alive in half.items() if alive is None] == expected["unknown_owner"]

    def test_young_entry_is_not_called_leaked(self, run_module, node, case):
        given = case("datadir-gc-race-young-entry")
        node.fill(given["input"]["data_dir"])
        (network,) = run_module(NAME, node.options(live=as_live(given["input"]["live"])))["networks"]
        assert [one["alive"] for one in network["reservations"]] == [True, None]

    def test_slash30(self, run_module, node, case):
        given = case("datadir-slash30")
        node.define(given["input"]["network"], given["input"]["range"]["subnet"])
        (network,) = run_module(NAME, node.options())["networks"]
        assert network["range_sets"][0]["usable"] == given["check"]["usable"]

    def test_exhausted_vs_leaked(self, run_module, node, case):
        given = case("netconf-exhausted-vs-leaked")
        config = given["input"]["stdin"]
        config["ipam"].pop("dataDir")
        node.fill(given["input"]["data_dir"])
        result = run_module(NAME, node.options(config=config, live=as_live(given["input"]["live"])))
        (range_set,) = result["networks"][0]["range_sets"]
        assert (range_set["usable"], range_set["reserved"], range_set["free"]) == (given["check"]["usable"], 5, 0)
        rows = result["networks"][0]["reservations"]
        assert [one["address"] for one in rows if one["alive"] is False] == given["check"]["leaked"]
        assert range_set["leaked"] == len(given["check"]["leaked"])
        # clean up, do not enlarge
        assert "IPAM021" in by_code(result)
        assert "IPAM020" not in by_code(result)
        assert by_code(result)["IPAM022"]["go"] == "fails"


def test_who_is_alive_is_discovered_on_the_node(run_module, fails, node, monkeypatch, tmp_path):
    """A storage of podman knows one owner; without any runtime nobody is called leaked."""
    from ansible_collections.nodenet.cni.plugins.module_utils.node import liveness

    alive, dead = "a" * 64, "b" * 64
    node.define("lan", "192.0.2.0/24")
    node.fill({"lan/192.0.2.2": {"content": alive + "\r\neth0"}, "lan/192.0.2.3": {"content": dead + "\r\neth0"}})
    monkeypatch.setattr(liveness, "CONTAINERD", ())
    monkeypatch.setattr(liveness, "SOURCES", ("podman", "caches"))
    monkeypatch.setattr(liveness, "STORAGE_ROOT", str(tmp_path / "storage"))
    monkeypatch.setattr(liveness, "CRIO_ADDRESS", str(tmp_path / "crio.sock"))
    monkeypatch.setattr(liveness, "RESULTS_DIRS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    options = node.options(live={"discover": True})
    result = run_module("host_local_info", options)
    assert [one["alive"] for one in result["networks"][0]["reservations"]] == [None, None]
    assert result["networks"][0]["range_sets"][0]["leaked"] is None
    # nobody was asked, so no id is unknown to those who were
    assert [one["code"] for one in result["findings"]] == ["IPAM030"]
    (tmp_path / "storage" / "vfs-containers").mkdir(parents=True)
    listed = json.dumps([{"id": alive, "metadata": "{}"}])
    (tmp_path / "storage" / "vfs-containers" / "containers.json").write_text(listed)
    result = run_module("host_local_info", options)
    assert [one["alive"] for one in result["networks"][0]["reservations"]] == [True, False]
    assert result["networks"][0]["range_sets"][0]["leaked"] == 1
    assert "give live.attachments" in fails("host_local_info", node.options(live={"discover": False}))


def cache_entry(network, container_id, *addresses, netns="/run/netns/gone"):
    return {
        "kind": "cniCacheV1",
        "containerId": container_id,
        "ifName": "eth0",
        "networkName": network,
        "netns": netns,
        "result": {"cniVersion": "1.0.0", "ips": [{"address": one} for one in addresses]},
    }


@pytest.fixture
def results(tmp_path):
    """Call results({name: content}, age): fill a result cache."""

    def write(files, age=9000):
        folder = tmp_path / "results"
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            path = folder / name
            path.write_text(content if isinstance(content, str) else json.dumps(content))
            os.utime(path, (time.time() - age,) * 2)

    return write


@pytest.fixture(autouse=True)
def settle(monkeypatch):
    monkeypatch.setattr(cachecheck, "SETTLE", 0.05)


def test_an_entry_that_a_del_removes_is_nothing(run_module, node, results, tmp_path, monkeypatch):
    """The address is free already, its container has still its namespace, and the entry goes while we look."""
    node.define("lan", "192.0.2.0/29")
    results({"lan-a-eth0": cache_entry("lan", "a" * 64, "192.0.2.2/29"), "lan-b-eth0": cache_entry("lan", "b" * 64)})
    live = as_live(["a" * 64])
    assert set(by_code(run_module(NAME, node.options(live=live)))) == {"IPAM034", "IPAM035"}
    monkeypatch.setattr(cachecheck, "SETTLE", 2)
    script = f"sleep 0.7; rm {tmp_path}/results/lan-a-eth0 {tmp_path}/results/lan-b-eth0"
    with subprocess.Popen(["sh", "-c", script]):
        assert run_module(NAME, node.options(live=live))["findings"] == []


def test_another_data_dir_is_not_compared_with_what_is_in_use(run_module, node, results, tmp_path):
    node.define("lan", "192.0.2.0/29")
    results({"lan-a-eth0": cache_entry("lan", "a" * 64, "192.0.2.2/29")})
    options = node.options(live=as_live(["a" * 64]), data_dir=str(tmp_path / "copy"))
    assert run_module(NAME, options)["findings"] == []


def test_case_of_the_result_cache(run_module, node, case, results):
    """audit-results-cache: an empty entry, one of a dead container, one of a live one."""
    given = case("audit-results-cache")
    n1 = given["input"]["nodes"]["n1"]
    node.define("cbr0", "10.244.1.0/24")
    node.fill({name: {"content": content} for name, content in n1["data_dir"].items()})
    results(n1["results"])
    found = by_code(run_module(NAME, node.options(live=as_live(n1["live"]))))
    assert set(found) == {"IPAM023", "IPAM033", "IPAM034"}
    for code, key in (("IPAM033", "empty"), ("IPAM034", "stale")):
        names = [f"cbr0-{one}-eth0" for one in given["check"][key]]
        assert found[code]["text"].endswith(": " + ", ".join(names))
    assert not any(one in str(found) for one in given["check"]["ok"])


def test_young_cache_entries_may_be_half_written(run_module, node, results):
    node.define("lan", "192.0.2.0/29")
    results({"lan-a-eth0": "", "lan-b-eth0": cache_entry("lan", "b" * 64)}, age=5)
    assert run_module(NAME, node.options(live=as_live(["c" * 64])))["findings"] == []


@pytest.mark.parametrize(
    ("held_by", "codes"),
    [(None, ["IPAM035"]), ("a" * 64, []), ("b" * 64, ["IPAM036"]), ("static.vip", ["IPAM036"])],
)
def test_an_address_in_use_and_who_holds_it(run_module, node, results, held_by, codes):
    alive = "a" * 64
    node.define("lan", "192.0.2.0/29")
    node.fill({"lan/192.0.2.2": {"content": f"{held_by}\r\neth0"}} if held_by else {})
    results(
        {
            "lan-a-eth0": cache_entry("lan", alive, "192.0.2.2/29"),
            "other-a-eth0": cache_entry("other", alive, "1.1.1.1/8"),
        }
    )
    result = run_module(NAME, node.options(live=as_live([alive, "b" * 64])))
    assert [one["code"] for one in result["findings"]] == codes
    if codes:
        assert "192.0.2.2 (" in result["findings"][0]["text"]


@pytest.fixture
def namespace():
    """The path of a network namespace of another process."""
    how = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-r", "-n"]
    with subprocess.Popen(
        [*how, "sh", "-c", "echo in; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout.readline() == b"in\n"
        yield f"/proc/{child.pid}/ns/net"
        child.stdin.close()


def test_without_live_a_namespace_proves_life(run_module, node, results, namespace):
    node.define("lan", "192.0.2.0/29")
    results(
        {
            "lan-a-eth0": cache_entry("lan", "a" * 64, "192.0.2.2/29", netns=namespace),
            "lan-b-eth0": cache_entry("lan", "b" * 64, "192.0.2.3/29"),
        }
    )
    (one,) = run_module(NAME, node.options())["findings"]
    assert (one["code"], "192.0.2.2" in one["text"], "192.0.2.3" in one["text"]) == ("IPAM035", True, False)


def test_the_holder_of_a_sticky_address_uses_it_rightly(run_module, node, results):
    node.define("lan", "192.0.2.0/29")
    node.fill(
        {
            "lan/192.0.2.2": {"content": "static.shop.db-0\r\neth0"},
            "lan/192.0.2.2.holder": {"content": "a" * 64 + "\r\neth0"},
        }
    )
    results({"lan-a-eth0": cache_entry("lan", "a" * 64, "192.0.2.2/29")})
    assert run_module(NAME, node.options(live=as_live(["a" * 64])))["findings"] == []


def test_compact_says_the_same(run_module, node):
    from ansible_collections.nodenet.cni.plugins.module_utils.host_local.compact import reservations_of

    node.define("lan", "192.0.2.0/29")
    node.fill(
        {
            "lan/192.0.2.2": {"content": "static.shop.db-0\r\neth0", "age_s": 400},
            "lan/192.0.2.2.holder": {"content": "a" * 64 + "\r\neth0", "age_s": 400},
            "lan/192.0.2.3": {"content": "a\tb\\nc\r\neth0", "age_s": 400},
            "lan/198.51.100.1": {"content": "b" * 64, "age_s": 400},
        }
    )
    live = as_live(["a" * 64])
    full = run_module(NAME, node.options(live=live))["networks"]
    compact = run_module(NAME, node.options(live=live, compact=True))["networks"]
    assert "reservations" not in compact[0]
    for now, then in zip(reservations_of(compact[0]), full[0]["reservations"]):
        then["age_s"] = now["age_s"]
        then.get("holder", {}).pop("alive", None)
        assert now == then
    assert list(reservations_of(compact[0])) == list(reservations_of(full[0]))


def test_two_reports_tell_when_a_pool_is_full(run_module, node):
    node.define("lan", "192.0.2.0/27")  # 29 addresses
    files = [f"lan/192.0.2.{number}" for number in range(2, 20)]
    node.fill({one: {"content": f"{one:a>64}\r\neth0".replace("/", "")} for one in files[:12]})
    before = run_module(NAME, node.options(compact=True))
    node.fill({one: {"content": f"{one:a>64}\r\neth0".replace("/", "")} for one in files[12:]})
    assert run_module(NAME, node.options(previous=before))["findings"] == []  # they lie seconds apart
    before["taken_at"] -= 86400
    (one,) = run_module(NAME, node.options(previous=before))["findings"]
    assert one["code"] == "IPAM037"
    assert one["text"].startswith(
        "range set 0: 18 of 29 addresses are reserved, 6 more than 24 hours ago; full in 44 hours"
    )


@pytest.mark.parametrize("previous", [{}, {"networks": "x", "taken_at": 1}, {"failed": True, "msg": "no"}])
def test_what_is_no_earlier_report_is_refused(fails, node, previous):
    node.define("lan", "192.0.2.0/29")
    assert fails(NAME, node.options(previous=previous)).startswith("Cannot compare with the option previous: ")


def test_two_reports_tell_that_the_range_changed(run_module, node):
    node.define("lan", "192.0.2.0/29")
    before = run_module(NAME, node.options())
    node.define("lan", "198.51.100.0/29")
    (one,) = run_module(NAME, node.options(previous=before))["findings"]
    assert (one["code"], "192.0.2.1-192.0.2.6" in one["text"]) == ("IPAM038", True)


def test_a_rotation_that_cannot_be_used(run_module, node):
    node.define("lan", "192.0.2.0/29")
    (node.data / "lan" / "last_reserved_ip.0").mkdir(parents=True)
    (one,) = run_module(NAME, node.options())["findings"]
    assert (one["code"], one["go"]) == ("IPAM039", "fails")
    assert one["text"] == "last_reserved_ip.0 cannot be used: is a directory"


def test_an_owner_with_two_addresses_of_a_set(run_module, node):
    node.define("lan", "192.0.2.0/28", ranges=[[{"subnet": "192.0.2.0/28"}], [{"subnet": "fd00::/120"}]])
    owner = {"content": "a" * 64 + "\r\neth0"}
    other = {"content": "a" * 64 + "\r\nnet1"}
    node.fill({"lan/192.0.2.2": owner, "lan/fd00::2": owner, "lan/192.0.2.3": other, "lan/198.51.100.1": owner})
    assert set(by_code(run_module(NAME, node.options()))) == {"IPAM017"}
    node.fill({"lan/192.0.2.4": owner, "lan/192.0.2.5": {"content": ""}, "lan/192.0.2.6": {"content": ""}})
    found = by_code(run_module(NAME, node.options()))
    assert set(found) == {"IPAM011", "IPAM017", "IPAM040"}
    assert found["IPAM040"]["text"].endswith(": 192.0.2.4")
