# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import bin_dir, files, staged_link
from ansible_collections.nodenet.cni.tests.unit import plugin_files
from ansible_collections.nodenet.cni.tests.unit.plugin_files import Node, actions, small_files

V1, V2, V3 = ("cni-v%d.0.0.tgz" % number for number in (1, 2, 3))


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def kept(node):
    folder = node.state / "previous"
    return sorted(os.listdir(str(folder))) if folder.exists() else []


def sha256(label):
    return hashlib.sha256(plugin_files.elf(label)).hexdigest()


def record(node):
    return json.loads((node.state / "plugin_binaries.json").read_text())["bin_dirs"][str(node.bin)]


# The decision


FILE = {"kind": "file", "sha256": "old", "mode": 0o755, "owner": [0, 0], "embedded": ""}
LINK = {"kind": "link", "target": "there"}


def there(sha256):
    return bin_dir.Present("file", sha256, 0o755)


@pytest.mark.parametrize(
    ("before", "written", "present", "action", "forced"),
    [
        (FILE, "new", there("new"), "replaced", "replaced"),
        (FILE, "new", there("old"), "unchanged", "unchanged"),
        (FILE, "new", None, "installed", "installed"),
        (FILE, "new", there("other"), "kept", "replaced"),
        (FILE, "new", bin_dir.Present("link", target="x"), "kept", "replaced"),
        (FILE, None, None, "installed", "installed"),
        (FILE, None, there("other"), "kept", "replaced"),
        (None, "new", there("new"), "removed", "removed"),
        (None, "new", there("other"), "kept", "removed"),
        (None, "new", None, None, None),
        (LINK, "new", there("new"), "replaced", "replaced"),
        (LINK, "new", bin_dir.Present("link", target="there"), "unchanged", "unchanged"),
    ],
)
def test_plan(before, written, present, action, forced):
    entries = {"bridge": {"before": before, "written": written}}
    found = {"bridge": present} if present else {}
    for names, wanted in (([], action), (["bridge"], forced)):
        assert bin_dir.plan_return(entries, names, found) == ([("bridge", wanted)] if wanted else [])


# The way there and back


def test_upgrade_and_back(node):
    node.install(node.archive({"bridge": "1", "ptp": "1", "sbr": "1"}, V1))
    before = node.labels()
    new = node.archive({"bridge": "2", "ptp": "1", "tap": "2"}, V2)
    upgraded = node.install(new)
    assert actions(upgraded) == {"bridge": "replaced", "ptp": "unchanged", "sbr": "removed", "tap": "installed"}
    assert upgraded["removed"] == ["sbr"]
    assert kept(node) == sorted([sha256("1")])  # bridge and sbr are the same here
    tree = node.tree()
    predicted = node.put_back(check_mode=True)
    assert node.tree() == tree
    result = node.put_back()
    assert actions(result) == {"bridge": "replaced", "sbr": "installed", "tap": "removed"}
    assert (result["changed"], result["removed"]) == (True, ["tap"])
    assert node.labels() == before
    for key in ("changed", "removed", "diff"):
        assert predicted[key] == result[key]
    assert result["diff"]["after"]["sbr"]["sha256"] == sha256("1")
    again = node.put_back()
    assert (again["changed"], actions(again)) == (False, {"bridge": "unchanged", "sbr": "unchanged"})

    # and there once more
    assert actions(node.install(new)) == actions(upgraded)
    assert node.put_back()["changed"] is True
    assert node.labels() == before
    assert node.remove()["removed"] == ["bridge", "ptp", "sbr"]
    assert kept(node) == []
    with pytest.raises(NodenetError, match="^Cannot put back plugins in .*/bin: nothing is kept of an earlier version"):
        node.put_back()


def test_first_installation_is_taken_back(node):
    node.put("calico", "1")
    node.install(node.archive({"bridge": "1"}, V1))
    assert node.put_back()["removed"] == ["bridge"]
    assert node.labels() == {"calico": "1"}
    assert node.put_back()["changed"] is False
    assert record(node)["plugins"] == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: needs root")
def test_what_was_somebody_elses_is_put_back_as_it_was_and_is_not_ours(node):
    node.put("bridge", "0")
    os.chown(str(node.bin / "bridge"), 1001, 1002)
    os.chmod(str(node.bin / "bridge"), 0o4750)
    outside = plugin_files.write(node.out / "outside", b"precious")
    (node.bin / "ptp").symlink_to("../../outside")
    node.install(node.archive({"bridge": "1", "ptp": "1"}, V1))
    result = node.put_back()
    assert result["diff"]["after"]["ptp"] == {"kind": "link", "target": "../../outside"}
    status = (node.bin / "bridge").stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o4750, 1001, 1002)
    assert os.readlink(str(node.bin / "ptp")) == "../../outside"
    assert Path(outside).read_bytes() == b"precious"
    assert sorted(os.listdir(str(node.bin))) == ["bridge", "ptp"]
    assert node.put_back()["changed"] is False
    assert node.remove()["removed"] == []


def test_files_changed_since_stay(node):
    node.install(node.archive({"bridge": "1", "ptp": "1"}, V1))
    node.install(node.archive({"bridge": "2", "ptp": "2", "tap": "2"}, V2))
    node.put("ptp", "mine")
    node.put("tap", "mine")
    result = node.put_back()
    assert actions(result) == {"bridge": "replaced", "ptp": "kept", "tap": "kept"}
    assert {one["name"]: one["drift"] for one in result["plugins"]} == {"bridge": False, "ptp": True, "tap": True}
    changed = [one for one in result["findings"] if one["code"] == "BIN006"]
    assert [os.path.basename(one["where"]) for one in changed] == ["ptp", "tap"]
    assert "installed from " + V2 in changed[0]["text"]
    assert node.labels() == {"bridge": "1", "ptp": "mine", "tap": "mine"}
    assert node.put_back(include=["ptp"])["changed"] is True
    assert node.labels() == {"bridge": "1", "ptp": "1", "tap": "mine"}
    with pytest.raises(
        NodenetError, match="^Cannot put back vlan in .*: the last new version changed only bridge, ptp"
    ):
        node.put_back(include=["vlan"])


def test_repair_is_no_new_version(node):
    node.install(node.archive({"bridge": "1", "ptp": "1"}, V1))
    new = node.archive({"bridge": "2", "ptp": "2"}, V2)
    node.install(new)
    node.put("bridge", "spoilt")
    os.unlink(str(node.bin / "ptp"))
    repaired = node.install(new)
    assert repaired["brought"] == []
    assert {one["name"]: (one["action"], one["drift"]) for one in repaired["plugins"]} == {
        "bridge": ("replaced", True),
        "ptp": ("installed", True),
    }
    texts = [one["text"].split(" by ")[0] for one in repaired["findings"] if one["code"] == "BIN007"]
    assert texts == ["had been changed", "had been removed"]
    assert not any(one["drift"] for one in node.install(new)["plugins"])
    node.put_back()
    assert node.labels() == {"bridge": "1", "ptp": "1"}


def test_a_task_tells_what_can_be_put_back_of_it(node):
    first, second = node.archive({"bridge": "1", "sbr": "1"}, V1), node.archive({"bridge": "2", "ptp": "2"}, V2)
    assert node.install(first)["brought"] == ["bridge", "sbr"]
    assert node.install(second, check_mode=True)["brought"] == []
    assert node.install(second)["brought"] == ["bridge", "ptp", "sbr"]
    assert node.install(second)["brought"] == []
    assert node.put_back()["brought"] == []
    assert node.install(second, keep_previous=False)["brought"] == []


def test_only_the_last_new_version_is_kept(node):
    for number, name in enumerate((V1, V2, V3), 1):
        node.install(node.archive({"bridge": str(number)}, name))
    assert kept(node) == [sha256("2")]
    node.put_back()
    assert node.labels() == {"bridge": "2"}


def test_nothing_is_kept_if_that_is_not_wanted(node):
    node.install(node.archive({"bridge": "1"}, V1))
    node.install(node.archive({"bridge": "2"}, V2))
    node.install(node.archive({"bridge": "3"}, V3), keep_previous=False)
    assert kept(node) == []
    with pytest.raises(NodenetError, match="nothing is kept"):
        node.put_back()


def test_two_bin_dirs_do_not_take_each_others_copies(node):
    node.install(node.archive({"bridge": "1"}, V1))
    node.install(node.archive({"bridge": "2"}, V2))
    other = node.top / "bin2"
    first, node.bin = node.bin, other
    node.install(node.archive({"bridge": "7"}, V1))
    node.install(node.archive({"bridge": "8"}, V2))
    assert kept(node) == sorted([sha256("1"), sha256("7")])
    node.remove()
    assert kept(node) == [sha256("1")]
    node.bin = first
    node.put_back()
    assert node.labels() == {"bridge": "1"}


def test_copies_that_are_damaged_or_gone(node):
    node.install(node.archive({"bridge": "1"}, V1))
    node.install(node.archive({"bridge": "2"}, V2))
    (name,) = kept(node)
    (node.state / "previous" / name).write_bytes(b"evil")
    before = node.tree()
    for spoil in (lambda: None, lambda: os.unlink(str(node.state / "previous" / name))):
        spoil()
        with pytest.raises(
            NodenetError, match="^Cannot put back bridge in /.*/bin: what was kept .* is gone or damaged"
        ):
            node.put_back()
    assert node.tree()["bin/bridge"] == before["bin/bridge"]


def test_copies_are_for_the_owner_only(node):
    node.install(node.archive({"bridge": "1"}, V1))
    node.install(node.archive({"bridge": "2"}, V2))
    folder = node.state / "previous"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE((folder / name).stat().st_mode) for name in kept(node)] == [0o600]


def test_no_room_for_copies_changes_nothing(node):
    node.bin.mkdir()
    plugin_files.write(node.bin / "bridge", plugin_files.elf("1", size=200000))
    src = node.archive({"bridge": "2"}, V2)
    with small_files(100000), pytest.raises(NodenetError) as caught:
        node.install(src)
    assert str(caught.value) == (
        f"Cannot keep the present bridge in {node.state}/previous: File too large; nothing was changed, make room "
        "there or set keep_previous to false (roles: plugin_binaries_keep_previous)"
    )
    assert os.listdir(str(node.bin)) == ["bridge"]
    assert kept(node) == []
    with small_files(100000):
        assert node.install(src, keep_previous=False)["changed"] is True


def test_directory_in_the_way_is_refused(node):
    node.install(node.archive({"bridge": "1"}, V1))
    node.install(node.archive({"bridge": "2"}, V2))
    os.unlink(str(node.bin / "bridge"))
    (node.bin / "bridge").mkdir()
    assert actions(node.put_back()) == {"bridge": "kept"}
    with pytest.raises(NodenetError, match="a directory of that name is in the way"):
        node.put_back(include=["bridge"])


@pytest.mark.parametrize("attribute", ["i", "a"])
def test_immutable_plugin_is_seen_before_anything_changes(node, attribute):
    node.install(node.archive({"bridge": "1", "ptp": "1", "sbr": "1"}, V1))
    node.install(node.archive({"bridge": "2", "ptp": "2", "sbr": "2"}, V2))
    victim = str(node.bin / "ptp")
    if subprocess.run(["chattr", "+" + attribute, victim], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("not run: needs root and a file system with attributes")
    try:
        before = node.tree()
        lacking = node.archive({"bridge": "3", "sbr": "2"}, "cni-v4.0.0.tgz")
        for attempt in (
            lambda: node.install(node.archive({"bridge": "3", "ptp": "3", "sbr": "3"}, V3)),
            lambda: node.install(lacking, check_mode=True),
            node.put_back,
            node.remove,
        ):
            with pytest.raises(NodenetError, match="^Cannot change ptp in .*: somebody made it immutable; allow it"):
                attempt()
            assert node.tree() == before
        assert node.install(lacking, required=["ptp"])["changed"] is True
    finally:
        subprocess.run(["chattr", "-" + attribute, victim], check=True)


def test_links_of_killed_runs_go_when_they_are_old(tmp_path):
    staged_link.StagedLink(str(tmp_path / "bridge"), "x")
    (name,) = os.listdir(str(tmp_path))
    assert name.startswith(files.TEMPORARY_PREFIX)
    staged_link.sweep_links(str(tmp_path))
    assert os.listdir(str(tmp_path)) == [name]
    old = time.time() - 3600
    os.utime(str(tmp_path / name), (old, old), follow_symlinks=False)
    staged_link.sweep_links(str(tmp_path))
    assert os.listdir(str(tmp_path)) == []
