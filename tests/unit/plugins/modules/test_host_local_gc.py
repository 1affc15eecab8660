# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""host_local_gc and the way back as a user runs them; what is freed when is tested in tests/conformance."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.nodenet.cni.plugins.doc_fragments._options import ModuleDocFragment
from ansible_collections.nodenet.cni.plugins.module_utils.node import liveness

A, B, C = (letter * 64 for letter in "abc")


@pytest.fixture
def node(tmp_path, fill):
    """The options of a node with a network lan: A is alive by the list, B leaked, an address is static."""
    data = tmp_path / "data"
    (tmp_path / "net.d").mkdir()
    ipam = {"type": "host-local", "dataDir": str(data), "subnet": "192.0.2.0/24"}
    document = {"cniVersion": "1.0.0", "name": "lan", "plugins": [{"type": "bridge", "ipam": ipam}]}
    (tmp_path / "net.d" / "10-lan.conflist").write_text(json.dumps(document))
    fill(
        data,
        {
            "lan/192.0.2.2": {"content": A + "\r\neth0"},
            "lan/192.0.2.3": {"content": B + "\r\neth0"},
            "lan/192.0.2.4": {"content": "static.web\r\neth0"},
        },
    )
    return {
        "conf_dir": str(tmp_path / "net.d"),
        "state_dir": str(tmp_path / "state"),
        "flannel_subnet_file": str(tmp_path / "none"),
        "data_dir": str(data),
        "all": True,
        "sources": ["caches"],
        "results_dirs": [str(tmp_path / "results")],
        "live": {"attachments": [{"container_id": A}]},
    }


def names(node):
    return sorted(name for name in os.listdir(os.path.join(node["data_dir"], "lan")) if name != "lock")


def test_check_diff_apply_again(run_module, node, tree, tmp_path):
    before = tree(tmp_path)
    predicted = run_module("host_local_gc", node, check=True, diff=True)
    assert tree(tmp_path) == before
    assert predicted["diff"]["before"] == f"lan 192.0.2.3 {B} eth0\n"
    assert predicted["diff"]["after"] == ""
    assert (predicted["changed"], predicted["run_id"], predicted["journal"]) == (True, None, None)

    result = run_module("host_local_gc", node, diff=True)
    assert names(node) == ["192.0.2.2", "192.0.2.4"]
    assert result["diff"] == predicted["diff"]
    assert [one["address"] for one in result["removed"]] == ["192.0.2.3"]
    assert {one["address"]: one["reason"] for one in result["kept"]} == {"192.0.2.2": "alive", "192.0.2.4": "static"}
    assert os.path.isfile(result["journal"])

    again = run_module("host_local_gc", node, diff=True)
    assert not again["changed"]
    assert "diff" not in again


def test_restore(run_module, node, tree, tmp_path):
    run_id = run_module("host_local_gc", node)["run_id"]
    options = {"network": "lan", "restore": run_id, "state_dir": node["state_dir"], "conf_dir": node["conf_dir"]}
    before = tree(tmp_path)
    predicted = run_module("host_local_reservation", options, check=True, diff=True)
    assert tree(tmp_path) == before
    result = run_module("host_local_reservation", options, diff=True)
    assert predicted == result
    assert result["diff"]["after"] == f"192.0.2.3 {B} eth0\n"
    assert [one["address"] for one in result["added"]] == ["192.0.2.3"]
    assert set(result) >= {"network", "data_dir", "reservations", "removed", "moved", "conflicts", "findings"}
    assert names(node) == ["192.0.2.2", "192.0.2.3", "192.0.2.4"]
    assert not run_module("host_local_reservation", options)["changed"]


def test_restore_reports_what_somebody_has_by_now(run_module, node):
    run_id = run_module("host_local_gc", node)["run_id"]
    base = {"network": "lan", "state_dir": node["state_dir"], "conf_dir": node["conf_dir"]}
    taken = [{"owner": "new", "addresses": ["192.0.2.3"]}]
    run_module("host_local_reservation", dict(base, reservations=taken))
    result = run_module("host_local_reservation", dict(base, restore=run_id))
    assert result["conflicts"] == [{"address": "192.0.2.3", "wanted_by": B, "held_by": "new"}]
    assert not result["changed"]


def test_the_message_of_an_empty_list(fails, node):
    text = fails("host_local_gc", dict(node, live={"attachments": []}))
    assert text.startswith("Cannot free 2 address(es) on this node (192.0.2.2, 192.0.2.3): none of the reservations")


def test_failed_sources_are_returned(run_module, node, tmp_path):
    (tmp_path / "results").write_text("")
    result = run_module("host_local_gc", node)
    assert result["failed"]
    assert "results cannot be read (not a directory)" in result["msg"]
    assert [one["state"] for one in result["sources"]] == ["found", "failed"]
    assert names(node) == ["192.0.2.2", "192.0.2.3", "192.0.2.4"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"all": None}, "one of the following is required: networks, all"),
        ({"all": False}, "name networks, or set all=true"),
        ({"networks": ["lan"]}, "mutually exclusive"),
        ({"all": None, "networks": ["wan"]}, "Cannot free addresses of network wan in"),
        ({"grace": -1}, "grace must be a number of seconds from 0"),
        ({"grace": float("nan")}, "grace must be a number of seconds from 0"),
        ({"lock_timeout": -1}, "lock_timeout"),
        ({"live": {"attachments": [{"container_id": ""}]}}, "a container_id is empty"),
    ],
)
def test_bad_input(fails, node, tree, tmp_path, options, reason):
    before = tree(tmp_path)
    given = {key: value for key, value in dict(node, **options).items() if value is not None}
    if "networks" in options and options.get("all", True) is not None:
        given["all"] = True
    assert reason in fails("host_local_gc", given)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("option", ["reservations", "config", "conflist", "ranges", "purge_prefix"])
def test_restore_stands_alone(fails, node, option):
    values = {"reservations": [], "config": {}, "conflist": "/x", "ranges": [], "purge_prefix": "x"}
    text = fails("host_local_reservation", dict({option: values[option]}, network="lan", restore="x"))
    assert "mutually exclusive" in text


def test_neither_reservations_nor_restore(fails, node):
    text = fails("host_local_reservation", {"network": "lan"})
    assert "one of the following is required: reservations, restore" in text


def test_a_data_dir_that_other_nodes_may_share(node):
    """The kind of file system is looked up where the directory really lies."""
    from ansible_collections.nodenet.cni.plugins.module_utils.node import mounts, reclaim_run

    assert mounts.file_system("/proc/self") == "proc"
    own = mounts.file_system(node["data_dir"])
    assert own not in ("", "proc")
    shared = [own, "ext4", "overlay", "fuseblk", "fuse.fuse-overlayfs", "nfs4", "vboxsf", "fuse.sshfs", "fuse.juicefs"]
    assert [reclaim_run.is_shared(kind) for kind in shared] == [False] * 5 + [True] * 4


def test_the_defaults_are_those_of_the_library():
    documented = ModuleDocFragment.LIVENESS
    for path in (liveness.STORAGE_ROOT, liveness.CRIO_ADDRESS, *liveness.RESULTS_DIRS):
        assert path in documented
    assert set(liveness.defaults()) == {
        *("sources", "attachments", "containerd", "storage_root", "crio_address", "results_dirs", "command_timeout"),
    }
