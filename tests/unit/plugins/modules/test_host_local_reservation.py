# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

NAME = "host_local_reservation"


def conflist(name="lan", subnet="192.0.2.0/24", **ipam):
    ipam = dict({"type": "host-local", "ranges": [[{"subnet": subnet}]]}, **ipam)
    return {"cniVersion": "1.0.0", "name": name, "plugins": [{"type": "bridge", "ipam": ipam}]}


@pytest.fixture
def node(tmp_path):
    """A node with one network: its options, and the places."""
    conf_dir = tmp_path / "net.d"
    conf_dir.mkdir()
    data_dir = tmp_path / "data"
    (conf_dir / "10-lan.conflist").write_text(json.dumps(conflist(dataDir=str(data_dir))))

    class Node:
        conf = conf_dir
        data = data_dir
        directory = data_dir / "lan"

        @staticmethod
        def options(*reservations, **more):
            options = {
                "network": "lan",
                "conf_dir": str(conf_dir),
                "flannel_subnet_file": str(tmp_path / "subnet.env"),
                "reservations": list(reservations),
            }
            options.update(more)
            return options

        @staticmethod
        def files():
            return sorted(os.listdir(str(Node.directory))) if Node.directory.exists() else []

    return Node


def test_reserve_twice_and_release(run_module, node):
    options = node.options({"owner": "vip-db", "addresses": ["192.0.2.50"]}, {"owner": "printer"})
    first = run_module(NAME, options)
    assert first["changed"]
    assert (first["network"], first["data_dir"]) == ("lan", str(node.data))
    assert [one["address"] for one in first["added"]] == ["192.0.2.2", "192.0.2.50"]
    assert first["reservations"] == first["added"]
    assert first["reservations"][1] == {
        "address": "192.0.2.50",
        "owner": "vip-db",
        "container_id": "static.vip-db",
        "ifname": "eth0",
        "static": True,
        "range_set": 0,
        "age_s": 0,
    }
    second = run_module(NAME, options)
    assert not second["changed"]
    assert second["added"] == second["removed"] == second["moved"] == second["conflicts"] == second["findings"] == []
    assert len(second["reservations"]) == 2
    third = run_module(NAME, node.options({"owner": "vip-db", "state": "absent"}))
    assert third["changed"]
    assert [one["address"] for one in third["removed"]] == ["192.0.2.50"]
    assert third["reservations"] == []
    assert node.files() == ["192.0.2.2", "lock"]


def test_check_mode_and_diff(run_module, node, tree, tmp_path):
    options = node.options({"owner": "vip-db", "addresses": ["192.0.2.50"]}, {"owner": "printer"})
    before = tree(tmp_path)
    predicted = run_module(NAME, options, check=True, diff=True)
    assert tree(tmp_path) == before
    assert predicted["diff"] == {
        "before": "",
        "after": "192.0.2.2 static.printer eth0\n192.0.2.50 static.vip-db eth0\n",
        "before_header": str(node.directory),
        "after_header": str(node.directory),
    }
    assert run_module(NAME, options, diff=True) == predicted
    assert "diff" not in run_module(NAME, options, diff=True)


def test_check_mode_on_a_directory_in_use(run_module, node, tree, tmp_path):
    run_module(NAME, node.options({"owner": "a", "addresses": ["192.0.2.50"]}))
    before = tree(tmp_path)
    options = node.options({"owner": "a", "addresses": ["192.0.2.51"]})
    predicted = run_module(NAME, options, check=True)
    assert tree(tmp_path) == before
    done = run_module(NAME, options)
    assert done == predicted
    assert done["moved"] == [
        {"owner": "a", "container_id": "static.a", "ifname": "eth0", "from": "192.0.2.50", "to": "192.0.2.51"}
    ]


def test_a_thousand_in_one_task(run_module, node):
    node.conf.joinpath("10-lan.conflist").write_text(json.dumps(conflist(subnet="10.1.0.0/16", dataDir=str(node.data))))
    options = node.options(*({"owner": f"o{number}"} for number in range(1000)))
    assert len(run_module(NAME, options, check=True)["added"]) == 1000
    assert len(run_module(NAME, options)["added"]) == 1000
    assert not run_module(NAME, options)["changed"]
    assert len(node.files()) == 1001


def test_on_conflict_keep(run_module, node):
    run_module(NAME, node.options({"owner": "vip-db", "addresses": ["192.0.2.50"]}))
    options = node.options(
        {"owner": "vip-web", "addresses": ["192.0.2.50"]},
        {"owner": "other", "addresses": ["192.0.2.51"]},
        on_conflict="keep",
    )
    done = run_module(NAME, options)
    assert done["conflicts"] == [{"address": "192.0.2.50", "wanted_by": "vip-web", "held_by": "vip-db"}]
    assert [one["owner"] for one in done["added"]] == ["other"]
    assert not run_module(NAME, options)["changed"]


def test_purge(run_module, node):
    run_module(NAME, node.options({"owner": "web-1"}, {"owner": "web-2"}, {"owner": "db"}, {"container_id": "abc"}))
    done = run_module(NAME, node.options({"owner": "web-2"}, purge=True, purge_prefix="web-"))
    assert [one["owner"] for one in done["removed"]] == ["web-1"]
    done = run_module(NAME, node.options(purge=True))
    assert [one["owner"] for one in done["removed"]] == ["web-2", "db"]
    assert node.files() == ["192.0.2.5", "lock"]


def test_ranges_and_data_dir_need_no_configuration(run_module, tmp_path):
    options = {
        "network": "new",
        "conf_dir": str(tmp_path / "none"),
        "data_dir": str(tmp_path / "data"),
        "ranges": [[{"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.10"}], [{"subnet": "2001:db8::/64"}]],
        "reservations": [{"owner": "a"}],
    }
    done = run_module(NAME, options)
    assert [one["address"] for one in done["added"]] == ["192.0.2.10", "2001:db8::2"]
    assert (tmp_path / "data" / "new" / "192.0.2.10").read_bytes() == b"static.a\r\neth0"


def test_config_and_conflist(run_module, node, tmp_path):
    single = {"cniVersion": "1.0.0", "name": "one", "type": "macvlan"}
    single["ipam"] = {"type": "host-local", "subnet": "192.0.2.0/24", "dataDir": str(tmp_path / "d")}
    for config in (conflist("one", dataDir=str(tmp_path / "d")), single):
        options = node.options({"owner": "a"}, config=config)
        del options["network"]
        run_module(NAME, options)
        assert (tmp_path / "d" / "one" / "192.0.2.2").exists()
    options = node.options({"owner": "b"}, conflist=str(node.conf / "10-lan.conflist"))
    del options["network"]
    assert run_module(NAME, options)["network"] == "lan"
    assert node.files() == ["192.0.2.2", "lock"]


def test_held_outside_the_ranges_is_kept_with_a_finding(run_module, node):
    run_module(NAME, node.options({"owner": "a", "addresses": ["192.0.2.50"]}))
    changed = conflist(subnet="198.51.100.0/24", dataDir=str(node.data))
    node.conf.joinpath("10-lan.conflist").write_text(json.dumps(changed))
    done = run_module(NAME, node.options({"owner": "a", "addresses": ["192.0.2.50"]}))
    assert not done["changed"]
    assert [one["code"] for one in done["findings"]] == ["IPAM017"]
    assert done["reservations"][0]["range_set"] is None


def test_release_with_broken_ranges(run_module, node):
    run_module(NAME, node.options({"owner": "a"}))
    node.conf.joinpath("10-lan.conflist").write_text(json.dumps(conflist(subnet="nonsense", dataDir=str(node.data))))
    done = run_module(NAME, node.options({"owner": "a", "state": "absent"}))
    assert done["changed"]
    assert [one["code"] for one in done["findings"]] == ["CONF020"]
    assert node.files() == ["lock"]


def test_release_in_an_orphan_directory(run_module, node, fails):
    run_module(NAME, node.options({"owner": "a"}, {"owner": "b"}))
    node.conf.joinpath("10-lan.conflist").unlink()
    release = node.options({"owner": "a", "state": "absent"})
    assert "no file there defines a network" in fails(NAME, release)
    assert run_module(NAME, dict(release, data_dir=str(node.data)))["changed"]
    assert "Cannot use network lan in" in fails(NAME, dict(release, data_dir=str(node.data), purge=True))


def test_flannel(run_module, node, tmp_path):
    (tmp_path / "subnet.env").write_text("FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\n")
    flannel = {"type": "flannel", "delegate": {"isDefaultGateway": True}, "dataDir": str(tmp_path / "flannel")}
    config = {"name": "cbr0", "cniVersion": "0.3.1", "plugins": [flannel, {"type": "portmap"}]}
    node.conf.joinpath("10-flannel.conflist").write_text(json.dumps(config))
    options = node.options({"owner": "a"}, network="cbr0", data_dir=str(node.data))
    assert [one["address"] for one in run_module(NAME, options)["added"]] == ["10.244.1.2"]


def test_a_sticky_address_in_use_stays(run_module, node, fill):
    fill(node.directory, {"192.0.2.5": {"content": "static.shop.db-0\r\neth0"}})
    fill(node.directory, {"192.0.2.5.holder": {"content": "abc\r\neth0"}})
    release = {"owner": "shop.db-0", "state": "absent"}
    for check in (True, False):
        result = run_module(NAME, node.options(release), check=check)
        assert result["failed"]
        assert "192.0.2.5 of shop.db-0" in result["msg"]
        assert "in use by container abc interface eth0" in result["msg"]
        assert result["conflicts"] == [{"address": "192.0.2.5", "wanted_by": "shop.db-0", "held_by": "abc"}]
    result = run_module(NAME, node.options(release, on_conflict="keep"))
    assert not result["changed"]
    assert len(result["conflicts"]) == 1
    result = run_module(NAME, node.options({"container_id": "abc", "state": "absent"}))
    assert [(one["address"], one["container_id"]) for one in result["removed"]] == [("192.0.2.5", "abc")]
    assert "192.0.2.5.holder" not in node.files()
    assert run_module(NAME, node.options(release))["changed"]
    assert node.files() == ["lock"]


def test_an_odd_name_is_put_right(run_module, node, fill):
    fill(node.data, {"lan/::ffff:192.0.2.50": {"content": "static.a\r\neth0"}})
    options = node.options({"owner": "a", "addresses": ["192.0.2.50"]})
    predicted = run_module(NAME, options, check=True, diff=True)
    done = run_module(NAME, options, diff=True)
    assert done == predicted
    assert [(one["from"], one["to"]) for one in done["moved"]] == [("::ffff:192.0.2.50", "192.0.2.50")]
    assert done["diff"]["before"] == "::ffff:192.0.2.50 static.a eth0\n"
    assert done["diff"]["after"] == "192.0.2.50 static.a eth0\n"
    assert node.files() == ["192.0.2.50", "lock"]
    assert not run_module(NAME, options)["changed"]


def test_a_release_leaves_the_other_interfaces_of_an_old_release_alone(run_module, node, fill):
    fill(node.data, {"lan/192.0.2.50": {"content": "abc"}, "lan/192.0.2.51": {"content": "abc\r\neth0"}})
    done = run_module(NAME, node.options({"container_id": "abc", "state": "absent"}))
    assert [one["address"] for one in done["removed"]] == ["192.0.2.51"]
    assert node.files() == ["192.0.2.50", "lock"]


class TestBadInput:
    """One clear message each, and nothing changed on disk."""

    @pytest.fixture(autouse=True)
    def _nothing_changes(self, run_module, node, tree, tmp_path):
        run_module(NAME, node.options({"owner": "vip-db", "addresses": ["192.0.2.50"]}))
        before = tree(tmp_path)
        yield
        assert tree(tmp_path) == before

    @pytest.mark.parametrize("check", [False, True])
    @pytest.mark.parametrize(
        ("reservation", "message"),
        [
            (
                {"owner": "a", "addresses": ["198.51.100.7"]},
                "Cannot reserve 198.51.100.7 for a in {}: it is outside every range (192.0.2.1-192.0.2.254)",
            ),
            ({"owner": "a", "addresses": ["192.0.2.1"]}, "Cannot reserve 192.0.2.1 for a in {}: it is the gateway"),
            (
                {"owner": "a", "addresses": ["192.0.2.50"]},
                "Cannot reserve 192.0.2.50 for a in {}: it is held by vip-db (id static.vip-db, interface eth0)",
            ),
            (
                {"owner": "a b", "addresses": ["192.0.2.7"]},
                "Cannot reserve addresses for owner 'a b' in network lan: the name must start with a letter or digit "
                "and go on with letters, digits, '_', '.' and '-'",
            ),
            (
                {"container_id": "static.vip-db"},
                "Cannot reserve addresses for container_id 'static.vip-db' in network lan: the id may not start with "
                "'static.', use owner for a static reservation",
            ),
            (
                {"owner": "a", "ifname": "eth 0"},
                "Cannot reserve addresses for a in network lan: "
                "interface name contains / or : or whitespace characters: 'eth 0'",
            ),
            (
                {"owner": "a", "addresses": ["192.0.2.300"]},
                "Cannot reserve addresses for a in network lan: '192.0.2.300' is not an IP address "
                "(without a prefix length)",
            ),
        ],
    )
    def test_reservation(self, fails, node, reservation, message, check):
        expected = message.format(f"network lan ({node.directory})")
        assert fails(NAME, node.options({"owner": "ok"}, reservation), check=check) == expected

    def test_conflict_is_there_for_machines_too(self, run_module, node):
        result = run_module(NAME, node.options({"owner": "a", "addresses": ["192.0.2.50"]}))
        assert result["conflicts"] == [{"address": "192.0.2.50", "wanted_by": "a", "held_by": "vip-db"}]

    def test_duplicate_entries(self, fails, node):
        same = {"owner": "a", "addresses": ["192.0.2.7"]}
        assert "is listed twice" in fails(NAME, node.options(same, same))
        assert "it is listed for a too" in fails(NAME, node.options(same, dict(same, owner="b")))

    def test_unknown_network(self, fails, node):
        text = fails(NAME, node.options({"owner": "a"}, network="wan"))
        assert text == f"Cannot use network wan in {node.conf}: no file defines it; defined are lan"

    def test_bad_network_name(self, fails, node):
        assert "Cannot use network '../x' in " in fails(NAME, node.options({"owner": "a"}, network="../x"))

    def test_no_such_conf_dir(self, fails, node, tmp_path):
        text = fails(NAME, node.options({"owner": "a"}, conf_dir=str(tmp_path / "nope")))
        assert text == f"Cannot use network lan in {tmp_path}/nope: there is no such directory"

    @pytest.mark.parametrize(
        ("ipam", "reason"),
        [
            ({"subnet": "192.0.2.0"}, "invalid CIDR address: 192.0.2.0"),
            ({"subnet": "192.0.2.1/24"}, "Network has host bits set"),
            ({"subnet": "192.0.2.0/24", "rangeStart": "192.0.3.1"}, "RangeStart 192.0.3.1 not in network 192.0.2.0/24"),
            ({"subnet": "192.0.2.0/24", "rangeEnd": "192.0.3.1"}, "RangeEnd 192.0.3.1 not in network 192.0.2.0/24"),
            ({}, "no IP ranges specified"),
        ],
    )
    def test_bad_ranges(self, fails, node, ipam, reason):
        config = {"cniVersion": "1.0.0", "name": "lan", "type": "bridge", "ipam": dict(ipam, type="host-local")}
        options = node.options({"owner": "a"}, config=config)
        del options["network"]
        text = fails(NAME, options)
        assert text.startswith("Cannot use network lan in the option config, ipam")
        assert reason in text

    def test_bad_ranges_option(self, fails, node):
        text = fails(NAME, node.options({"owner": "a"}, ranges=[[{"subnet": "192.0.2.0/31"}]]))
        assert text == (
            "Cannot use network lan in the option ranges, ipam.ranges[0][0].subnet: "
            "invalid range set 0: Network 192.0.2.0/31 too small to allocate from"
        )

    def test_no_host_local(self, fails, node):
        config = {"cniVersion": "1.0.0", "name": "lan", "plugins": [{"type": "bridge", "ipam": {"type": "dhcp"}}]}
        options = node.options({"owner": "a"}, config=config)
        del options["network"]
        text = fails(NAME, options)
        assert text == "Cannot use network lan in the option config: none of its plugins uses host-local"

    def test_conflist_that_is_none(self, fails, node, tmp_path):
        for path in (str(tmp_path / "nope.conflist"), str(tmp_path)):
            options = node.options({"owner": "a"}, conflist=path)
            del options["network"]
            assert fails(NAME, options).startswith(f"Cannot use the network in {path}: ")

    @pytest.mark.parametrize("option", ["conf_dir", "data_dir", "flannel_subnet_file", "conflist"])
    def test_a_path_with_a_nul_byte(self, fails, node, option):
        options = node.options({"owner": "a"}, **{option: "/a\0b"})
        if option == "conflist":
            del options["network"]
        assert fails(NAME, options) == f"Cannot use '/a\\x00b' as {option}: a path holds no NUL byte"

    def test_an_error_carries_no_file_of_its_own(self, run_module, node):
        result = run_module(NAME, node.options({"owner": "a"}, data_dir=str(node.conf / "10-lan.conflist")))
        assert result["where"] == str(node.conf / "10-lan.conflist" / "lan")
        assert not {"path", "uid", "mode", "owner"} & set(result)

    def test_lock_timeout(self, fails, node):
        text = fails(NAME, node.options({"owner": "a"}, lock_timeout=-1))
        assert text == ("Cannot wait for the lock: lock_timeout must be a number of seconds from 0 to 86400, not -1")

    def test_purge_prefix_without_purge(self, fails, node):
        assert "purge_prefix needs purge=true" in fails(NAME, node.options(purge_prefix="a"))

    def test_null_is_no_empty_list(self, fails, node):
        assert "reservations" in fails(NAME, node.options(purge=True, reservations=None))

    def test_data_dir_is_a_file(self, fails, node):
        path = str(node.conf / "10-lan.conflist")
        for check in (False, True):
            text = fails(NAME, node.options({"owner": "a"}, data_dir=path), check=check)
            assert text.startswith(f"Cannot change reservations of network lan in {path}/lan: ")
            assert text.endswith("not a directory")


def test_two_files_that_define_the_network(fails, node):
    other = conflist(subnet="198.51.100.0/24", dataDir=str(node.data))
    node.conf.joinpath("20-lan.conflist").write_text(json.dumps(other))
    text = fails(NAME, node.options({"owner": "a"}))
    assert text == (
        f"Cannot use network lan in {node.conf}: more than one file defines it (10-lan.conflist, 20-lan.conflist), "
        "remove all but one"
    )
    assert not node.data.exists()


class TestCases:
    def test_reserve_static_idempotent(self, run_module, case, tmp_path):
        given = case("datadir-reserve-static-idempotent")
        outcomes = []
        for step in given["input"]["steps"]:
            address = step.get("reserve") or step["release"]
            one = {
                "owner": step["owner"],
                "ifname": step["ifname"],
                "addresses": [address],
                "state": "present" if "reserve" in step else "absent",
            }
            options = {
                "network": given["input"]["network"],
                "data_dir": str(tmp_path),
                "ranges": [[given["input"]["range"]]],
                "reservations": [one],
            }
            result = run_module(NAME, options)
            outcomes.append("failed" if result.get("failed") else result["changed"])
            if len(outcomes) == 1:
                path = tmp_path / "lan" / "192.0.2.50"
                assert path.read_bytes() == b"static.vip-db\r\neth0"
                assert path.stat().st_mode & 0o777 == 0o600
            if len(outcomes) == 3:
                assert "vip-db" in result["msg"]
            assert not list((tmp_path / "lan").glob("last_reserved_ip.*"))
        assert outcomes == given["check"]["changed"]

    @pytest.mark.parametrize("name", ["netconf-second-static-same-owner", "netconf-requested-ip-same-owner"])
    def test_same_owner_again(self, run_module, case, fill, tmp_path, name):
        given = case(name)
        fill(tmp_path, given["input"]["data_dir"])
        env = given["input"]["env"]
        wanted = env["CNI_ARGS"].split("IP=")[1]
        one = {"container_id": env["CNI_CONTAINERID"], "ifname": env["CNI_IFNAME"], "addresses": [wanted]}
        options = {"config": given["input"]["stdin"], "data_dir": str(tmp_path), "reservations": [one]}
        result = run_module(NAME, options)
        files = sorted(path.name for path in (tmp_path / "net").glob("10.*"))
        assert files == given["check"].get("module_files", [wanted])
        assert result["changed"] is given["check"].get("module_changed", True)

    def test_podcidr_literal(self, run_module, case, fill, tmp_path):
        given = case("netconf-podcidr-literal")
        fill(tmp_path, given["input"]["data_dir"])
        env, config = given["input"]["env"], given["input"]["stdin"]
        config["ipam"]["dataDir"] = str(tmp_path)
        one = {"container_id": env["CNI_CONTAINERID"], "ifname": env["CNI_IFNAME"], "state": "absent"}
        result = run_module(NAME, {"config": config, "reservations": [one]})
        assert [row["address"] for row in result["removed"]] == given["check"]["release_module_frees"]
        assert os.listdir(str(tmp_path / "k8s-pod-network")) == ["lock"]

    def test_full_last_at_end(self, fails, case, fill, tmp_path, tree):
        given = case("datadir-full-last-at-end")
        fill(tmp_path, given["input"]["data_dir"])
        before = tree(tmp_path)
        options = {
            "network": given["input"]["network"],
            "data_dir": str(tmp_path),
            "ranges": [[given["input"]["range"]]],
            "reservations": [{"container_id": given["input"]["env"]["CNI_CONTAINERID"]}],
        }
        assert given["check"]["error_contains"] in fails(NAME, options)
        assert tree(tmp_path) == before

    def test_slash30(self, run_module, case, tmp_path):
        given = case("datadir-slash30")
        results = []
        for step in given["input"]["steps"]:
            command, container_id = step.split()
            one = {"container_id": container_id, "state": "present" if command == "ADD" else "absent"}
            options = {
                "network": given["input"]["network"],
                "data_dir": str(tmp_path),
                "ranges": [[given["input"]["range"]]],
                "reservations": [one],
            }
            result = run_module(NAME, options)
            if result.get("failed"):
                results.append("error")
            else:
                results.append(result["added"][0]["address"] if command == "ADD" else "ok")
        assert results == given["check"]["results"]
