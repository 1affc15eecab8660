# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import (
    bin_dir,
    binaries,
    files,
    manifest,
    mounts,
    supply,
)
from ansible_collections.nodenet.cni.tests.unit import plugin_files
from ansible_collections.nodenet.cni.tests.unit.plugin_files import Node, actions, small_files

CASES = Path(__file__).resolve().parents[4] / "cases"
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="not run: needs root")


def case(name):
    return json.loads((CASES / f"install-{name}.json").read_text())


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


# The decisions


FILE = {"mode": 0o755, "owner": (0, 0)}


@pytest.mark.parametrize(
    ("there", "action"),
    [
        (None, "installed"),
        (bin_dir.Present("file", "new", **FILE), "unchanged"),
        (bin_dir.Present("file", "old", **FILE), "replaced"),
        (bin_dir.Present("file", "new", 0o700, (0, 0)), "adjusted"),
        (bin_dir.Present("file", "new", 0o4755, (0, 0)), "adjusted"),
        (bin_dir.Present("file", "new", 0o755, (1001, 0)), "adjusted"),
        (bin_dir.Present("file", "old", 0o700, (1001, 0)), "replaced"),
        (bin_dir.Present("link"), "replaced"),
    ],
)
def test_plan(there, action):
    present = {"bridge": there} if there else {}
    present["calico"] = bin_dir.Present("file", "whatever", 0o600, (7, 7))
    assert bin_dir.plan({"bridge": "new"}, present, (0, 0)) == [("bridge", action)]


def test_plan_without_an_owner_to_demand():
    present = {"bridge": bin_dir.Present("file", "new", 0o755, (1001, 7))}
    assert bin_dir.plan({"bridge": "new"}, present, None) == [("bridge", "unchanged")]


def test_plan_removal():
    present = {name: bin_dir.Present("file", "1", **FILE) for name in ("ours", "changed", "foreign")}
    recorded = {"ours": "1", "changed": "2", "gone": "1"}
    assert bin_dir.plan_removal(recorded, [], present) == [("changed", "kept"), ("ours", "removed")]
    assert bin_dir.plan_removal(recorded, ["foreign", "gone"], present) == [("foreign", "removed")]
    linked = dict(present, ours=bin_dir.Present("link"))
    assert bin_dir.plan_removal(recorded, [], linked) == [("changed", "kept"), ("ours", "kept")]


# The public cases


def test_case_archive_traversal(node):
    data = case("archive-traversal")
    good, bad = [], {}
    for text in data["input"]["archive"]["members"]:
        if " -> " in text:
            name, target = text.split(" -> ")
            bad[name] = plugin_files.odd(name, tarfile.SYMTYPE, target)
        elif text.endswith(" (char device)"):
            name = text.split(" ")[0]
            bad[name] = plugin_files.odd(name, tarfile.CHRTYPE)
        elif text.endswith("/"):
            good.append(plugin_files.odd(text, tarfile.DIRTYPE))
        elif text.startswith(("/", "../")):
            bad[text] = (text, b"x", 0o644)
        else:
            plain = text in ("LICENSE", "README.md")
            good.append((text, b"text" if plain else plugin_files.elf(text), 0o755))
    assert sorted(bad) == sorted(data["check"]["failed_on"])
    for name, member in bad.items():
        src = plugin_files.tar(node.out / "bad.tgz", good + [member])
        before = node.tree()
        with pytest.raises(NodenetError) as caught:
            node.install(src)
        assert caught.value.facts["member"] == name
        assert node.tree() == before
    result = node.install(plugin_files.tar(node.out / "good.tgz", good))
    assert sorted(os.listdir(str(node.bin))) == data["check"]["installed"]
    assert result["ignored"] == ["LICENSE", "README.md"]


def test_case_flannel_not_in_archive(node):
    data = case("flannel-not-in-archive")["input"]
    version = data["archive"]["version"]
    src = node.archive({name: version for name in data["archive"]["members"]})
    with pytest.raises(NodenetError, match="flannel comes from flannel-io/cni-plugin") as caught:
        node.install(src, required=data["required"])
    assert caught.value.facts["missing"] == ["flannel"]
    assert node.tree() == {}

    plugin_files.write(node.bin / "flannel", plugin_files.script(data["bin_dir"]["flannel"]))
    before = node.tree()["bin/flannel"]
    result = node.install(src, required=data["required"])
    assert set(case("flannel-not-in-archive")["check"]["after_contains"]) <= set(os.listdir(str(node.bin)))
    assert node.tree()["bin/flannel"] == before
    (flannel,) = [plugin for plugin in result["plugins"] if plugin["name"] == "flannel"]
    assert (flannel["action"], flannel["version"]) == ("kept", data["bin_dir"]["flannel"])


def test_case_half_installed_version_dir(node):
    data = case("half-installed-version-dir")
    for name, what in data["input"]["bin_dir"].items():
        if name.endswith("/"):
            (node.bin / name).mkdir(parents=True)
        else:
            (node.bin / name).symlink_to(what.split("-> ")[1].split(" ")[0])
    src = node.archive({name: "1.5.1" for name in data["input"]["archive"]["members"]})
    result = node.install(src)
    assert result["changed"] is data["check"]["changed"]
    assert node.labels() == {name: "1.5.1" for name in data["check"]["present"]}
    assert not (node.bin / "bridge").is_symlink()
    assert os.listdir(str(node.bin / "v1.5.1")) == []


def test_case_keeps_foreign_plugins(node):
    data = case("keeps-foreign-plugins")
    for name, version in data["input"]["bin_dir"].items():
        node.put(name, version)
        os.chmod(str(node.bin / name), 0o550)
    foreign = sorted(set(data["input"]["bin_dir"]) - set(data["input"]["archive"]["members"]))
    if os.geteuid() == 0:
        for name in foreign:
            os.chown(str(node.bin / name), 1001, 1002)
            os.setxattr(str(node.bin / name), "security.selinux", b"system_u:object_r:bin_t:s0\0")
    before = node.tree()
    node.install(node.archive(data["input"]["archive"]["members"]))
    assert node.labels() == data["check"]["after"]
    for name in foreign:
        assert node.tree()["bin/" + name] == before["bin/" + name]
        if os.geteuid() == 0:
            assert os.getxattr(str(node.bin / name), "security.selinux") == b"system_u:object_r:bin_t:s0\0"

    assert node.remove()["removed"] == sorted(data["input"]["archive"]["members"])
    assert sorted(os.listdir(str(node.bin))) == foreign
    for name in foreign:
        assert node.tree()["bin/" + name] == before["bin/" + name]


def test_case_text_file_busy(node):
    data = case("text-file-busy")
    ((name, old),) = data["input"]["bin_dir"].items()
    assert old["running"]
    path = node.bin / name
    # A real program, told from its next version by what stands behind its end.
    program = Path("/bin/sleep").read_bytes()
    plugin_files.write(path, program + old["version"].encode())
    new = program + data["input"]["archive"]["members"][name]["version"].encode()
    src = plugin_files.tar(node.out / "cni.tgz", {name: new})
    inode = path.stat().st_ino
    running = subprocess.Popen([str(path), "60"])
    watch = None
    try:
        with pytest.raises(OSError, match=os.strerror(errno.ETXTBSY)):
            os.open(str(path), os.O_WRONLY)
        events = plugin_files.Events(node.bin)
        watch = Watch(path, len(program))
        result = node.install(src)
        time.sleep(0.05)
        looks, runs, gaps = watch.stop()
        happened = [event for file_name, event in events.read() if file_name == name]
        events.close()
        assert result["changed"] is data["check"]["changed"]
        assert (path.stat().st_ino != inode) is data["check"]["inode_changed"]
        assert path.read_bytes() == new
        assert data["check"]["no_gap"]
        assert gaps == "[]"
        assert happened == ["moved to"]
        assert looks > 20
        assert runs > 3
        assert running.poll() is None
        assert os.stat(f"/proc/{running.pid}/exe").st_ino == inode
    finally:
        if watch is not None:
            watch.end()
        running.kill()
        running.wait()


WATCH = """
import os, subprocess, sys, threading
path, whole, stop = sys.argv[1], int(sys.argv[2]), sys.argv[3]
gaps, looks, runs = [], 0, 0


def look():
    global looks
    while not os.path.exists(stop) and len(gaps) < 100:
        try:
            with open(path, "rb") as stream:
                size = len(stream.read())
            if size < whole:
                gaps.append("partial: %d" % size)
        except OSError as exc:
            gaps.append(str(exc))
        looks += 1


thread = threading.Thread(target=look)
thread.start()
while not os.path.exists(stop) and len(gaps) < 100:
    try:
        if subprocess.call([path, "0"]) != 0:
            gaps.append("failed")
    except OSError as exc:
        gaps.append(str(exc))
    runs += 1
    if runs == 1:
        print("ready", flush=True)
thread.join()
print(looks, runs, gaps[:5])
"""


class Watch:
    """Looks at a program without pause, and runs it again and again, until stopped.

    A process of its own: a child of this one would inherit the files that are being written, which makes them busy.
    """

    def __init__(self, path, whole):
        self._stop = str(path.parent.parent / "stop")
        command = [sys.executable, "-c", WATCH, str(path), str(whole), self._stop]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, universal_newlines=True)
        assert self._process.stdout.readline() == "ready\n"

    def stop(self):
        """Return (looks, runs, gaps)."""
        open(self._stop, "w").close()
        output = self._process.communicate()[0]
        looks, runs, gaps = output.strip().split(" ", 2)
        return int(looks), int(runs), gaps

    def end(self):
        """End it, if the test failed before it was stopped."""
        self._process.kill()
        self._process.wait()


def test_case_truncated_binary(node):
    data = case("truncated-binary")
    whole = plugin_files.elf("bridge", size=data["input"]["archive"]["members"]["bridge"]["size"])
    short = whole[: data["input"]["bin_dir"]["bridge"]["size"]]
    plugin_files.write(node.bin / "bridge", short)
    src = plugin_files.tar(node.out / "cni.tgz", {"bridge": whole})
    assert node.install(src)["changed"] is data["check"]["changed"]
    assert (node.bin / "bridge").read_bytes() == whole
    assert node.install(src)["changed"] is False


@ROOT_ONLY
def test_case_umask_077(node):
    data = case("umask-077")
    member = data["input"]["archive"]["members"]["bridge"]
    node.bin.mkdir()
    os.chown(str(node.bin), 1234, 1234)
    os.chmod(str(node.bin), int(data["input"]["bin_dir"]["_mode"], 8))
    src = plugin_files.tar(node.out / "cni.tgz", [("bridge", plugin_files.elf(), int(member["mode"], 8))])
    old = os.umask(int(data["input"]["umask"], 8))
    try:
        first, second = node.install(src), node.install(src)
    finally:
        os.umask(old)
    status = (node.bin / "bridge").stat()
    assert f"0{stat.S_IMODE(status.st_mode):o}" == data["check"]["mode"]
    assert (status.st_uid, status.st_gid) == (0, 0)
    assert (first["changed"], second["changed"]) == (True, data["check"]["second_run_changed"])
    assert (node.bin.stat().st_uid, stat.S_IMODE(node.bin.stat().st_mode)) == (1234, 0o700)


@ROOT_ONLY
def test_case_noexec_mount(node, tmp_path):
    document = case("noexec-mount")
    data = document["input"]
    assert document["check"]["failed_or_warned"]
    ((_mount, options),) = data["mounts"].items()
    src = node.archive({"bridge": "1"})
    mount = tmp_path / "opt"
    mount.mkdir()
    program = f"""
import json
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import binaries
try:
    binaries.install({str(tmp_path)!r} + {data["bin_dir"]!r}, {str(node.state)!r}, {src!r})
except NodenetError as exc:
    print(json.dumps([str(exc), exc.facts]))
"""
    command = f'mount -t tmpfs -o {options} none "{mount}" && exec "$0" -c "$1"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", command, sys.executable, program],
        stdout=subprocess.PIPE,
        check=False,
    )
    assert done.returncode == 0
    message, facts = json.loads(done.stdout.decode())
    where = str(tmp_path) + data["bin_dir"]
    assert message == f"Cannot install plugins in {where}: {mount} is mounted with noexec, so none of them could run"
    assert facts["mount"] == str(mount)
    assert [item["code"] for item in facts["findings"]] == ["BIN001"]
    assert not node.state.exists()


def test_exec_mount_is_none_of_them(tmp_path):
    if os.statvfs(str(tmp_path)).f_flag & os.ST_NOEXEC:
        pytest.skip("not run: the temporary directory is mounted with noexec")
    assert mounts.noexec_mount(str(tmp_path / "a" / "b")) == ""
    assert mounts.mount_point("/proc/self") == "/proc"


# Installing


def test_second_run_changes_nothing_at_all(node):
    src = node.archive({"bridge": "1", "ptp": "1"})
    first = node.install(src)
    before = node.tree()
    second = node.install(src)
    assert (first["changed"], second["changed"]) == (True, False)
    assert (actions(first), actions(second)) == (
        {"bridge": "installed", "ptp": "installed"},
        {"bridge": "unchanged", "ptp": "unchanged"},
    )
    del before["state/plugin_binaries.lock"]
    after = node.tree()
    del after["state/plugin_binaries.lock"]
    assert after == before
    assert second["diff"]["before"] == second["diff"]["after"] == {}


def test_check_mode_predicts_and_leaves_everything_alone(node):
    src = node.archive({"bridge": "2", "ptp": "2", "tap": "2", "vlan": "2"})
    node.put("bridge", "1")
    node.put("tap", "2")
    os.chmod(str(node.put("vlan", "2")), 0o700)
    before = node.tree()
    predicted = node.install(src, check_mode=True)
    assert node.tree() == before
    real = node.install(src)
    assert actions(predicted) == actions(real)
    assert actions(real) == {"bridge": "replaced", "ptp": "installed", "tap": "unchanged", "vlan": "adjusted"}
    for key in ("changed", "bin_dir", "removed", "ignored", "diff"):
        assert predicted[key] == real[key]
    assert [set(plugin) for plugin in predicted["plugins"]] == [set(plugin) for plugin in real["plugins"]]
    assert sorted(real["diff"]["before"]) == ["bridge", "vlan"]
    assert sorted(real["diff"]["after"]) == ["bridge", "ptp", "vlan"]
    assert (real["diff"]["before"]["vlan"]["mode"], real["diff"]["after"]["vlan"]["mode"]) == ("0700", "0755")


def test_check_mode_creates_no_directory(node):
    assert node.install(node.archive({"bridge": "1"}), check_mode=True)["changed"] is True
    assert node.tree() == {}


def test_versions_are_asked(node):
    plugin_files.write(node.out / "src" / "mine", plugin_files.script("v2.3.4"))
    plugin_files.write(node.out / "src" / "mute", b"#!/bin/sh\nexit 7\n")
    result = node.install(str(node.out / "src"), include=["mine", "mute"])
    mine, mute = result["plugins"]
    assert (mine["version"], mine["cni_versions"]) == ("v2.3.4", ["0.4.0", "1.0.0"])
    assert (mute["version"], mute["cni_versions"]) == (None, [])
    (item,) = result["findings"]
    assert (item["code"], item["where"]) == ("BIN002", str(node.bin / "mute"))
    assert item["text"] == "does not answer VERSION: exit code 7, it says nothing"


def test_link_in_the_way_is_replaced_and_its_target_left_alone(node):
    outside = plugin_files.write(node.out / "outside", b"precious")
    node.bin.mkdir()
    (node.bin / "bridge").symlink_to(outside)
    assert actions(node.install(node.archive({"bridge": "1"}))) == {"bridge": "replaced"}
    assert Path(outside).read_bytes() == b"precious"
    assert node.labels() == {"bridge": "1"}


def test_directory_in_the_way_is_refused(node):
    (node.bin / "ptp").mkdir(parents=True)
    before = node.tree()
    with pytest.raises(NodenetError, match="^Cannot install ptp in .*: a directory of that name is in the way"):
        node.install(node.archive({"bridge": "1", "ptp": "1"}))
    assert node.tree() == before


def test_bin_dir_that_is_a_file(node):
    plugin_files.write(node.bin, b"")
    for check_mode in (True, False):
        with pytest.raises(NodenetError, match=f"^Cannot install plugins in {node.bin}: it is no directory"):
            node.install(node.archive({"bridge": "1"}), check_mode=check_mode)
    for check_mode in (True, False):
        with pytest.raises(NodenetError, match="^Cannot create .*/bin/deep: Not a directory .*/bin.$"):
            binaries.install(
                str(node.bin / "deep"), str(node.state), node.archive({"bridge": "1"}), check_mode=check_mode
            )
    assert sorted(os.listdir(str(node.top))) == ["bin"]


def test_source_and_destination_are_one(node):
    node.put("bridge", "1")
    (node.out / "link").symlink_to(node.bin)
    with pytest.raises(NodenetError, match="they are the same directory"):
        node.install(str(node.out / "link"))


def test_source_that_changes_after_it_was_verified_is_not_installed(node):
    src = node.out / "src"
    plugin_files.write(src / "bridge", plugin_files.elf("good"))
    plugin_files.write(src / "ptp", plugin_files.elf("good"))

    def read_all(source):
        return [list(pieces) for _name, pieces in source.contents(["bridge", "ptp"])]

    source = supply.open_supply(str(src), str(node.bin), None, (), manifest.Manifest(str(node.state), str(node.bin)))
    plugin_files.write(src / "bridge", plugin_files.elf("evil"))
    with pytest.raises(NodenetError, match="^Cannot install bridge from .*: it changed while it was read"):
        read_all(source)
    plugin_files.write(src / "bridge", plugin_files.elf("good"))
    os.unlink(str(src / "ptp"))
    with pytest.raises(NodenetError, match="^Cannot install ptp from .*: it changed while it was read"):
        read_all(source)


@pytest.mark.parametrize("size", [200000, 3 << 20])
def test_full_disk_changes_nothing(node, size):
    node.put("bridge", "old")
    before = node.tree()
    members = {"bridge": plugin_files.elf("new"), "ptp": plugin_files.elf("new", size=size)}
    src = plugin_files.tar(node.out / "cni.tgz", members)
    with small_files(100000), pytest.raises(NodenetError) as caught:
        node.install(src)
    assert str(caught.value) == f"Cannot install ptp in {node.bin}: File too large; nothing was changed"
    after = node.tree()
    assert {name: entry for name, entry in after.items() if name != "bin"} == {
        name: entry for name, entry in before.items() if name != "bin"
    }


def test_new_directory_goes_again_when_nothing_could_be_written(node):
    src = plugin_files.tar(node.out / "cni.tgz", {"bridge": plugin_files.elf("new", size=200000)})
    with small_files(1000), pytest.raises(NodenetError, match="^Cannot install bridge in .*; nothing was changed$"):
        binaries.install(str(node.bin / "deep"), str(node.state), src)
    assert node.tree() == {}


# The record comes first


def state_in_a_file(node):
    node.top.joinpath("state").write_text("")


def state_below_a_file(node):
    node.top.joinpath("file").write_text("")
    node.state = node.top / "file" / "deep" / "state"


def state_behind_a_dangling_link(node):
    node.state.symlink_to("gone")


def lock_that_is_none(node):
    (node.state / "plugin_binaries.lock").mkdir(parents=True)


@pytest.mark.parametrize("check_mode", [True, False])
@pytest.mark.parametrize(
    "spoil", [state_in_a_file, state_below_a_file, state_behind_a_dangling_link, lock_that_is_none]
)
def test_state_dir_that_cannot_be_used(node, spoil, check_mode):
    spoil(node)
    before = node.tree()
    src = node.archive({"bridge": "1"})
    with pytest.raises(NodenetError, match=f"^Cannot keep the record of installed plugins in {node.state}: "):
        node.install(src, check_mode=check_mode)
    assert node.tree() == before
    # Where nothing has to be written, nothing has to be recorded.
    node.put("bridge", "1")
    assert node.install(src, check_mode=check_mode)["changed"] is False


def test_record_that_cannot_be_written(node):
    src = node.archive({"bridge": "1"})
    node.bin.mkdir()
    with small_files(400), pytest.raises(NodenetError, match="^Cannot keep the record of .*/state: File too large$"):
        node.install(src)
    assert os.listdir(str(node.bin)) == []
    os.rmdir(str(node.bin))
    with small_files(400), pytest.raises(NodenetError, match="^Cannot keep the record of "):
        node.install(src)
    assert not node.bin.exists()


@pytest.mark.parametrize("check_mode", [True, False])
def test_removal_whose_record_cannot_be_kept(node, check_mode):
    node.install(node.archive({"bridge": "1"}))
    os.unlink(str(node.state / "plugin_binaries.lock"))
    lock_that_is_none(node)
    with pytest.raises(NodenetError, match="^Cannot keep the record of .*/state: Is a directory "):
        node.remove(check_mode=check_mode)
    assert node.labels() == {"bridge": "1"}


def test_run_that_is_killed_between_two_renames_leaves_no_plugin_unrecorded(node, monkeypatch):
    src = node.archive({"bridge": "1", "ptp": "1"})
    commit = files.StagedFile.commit

    def until_killed(staged):
        if staged.path.endswith("/ptp"):
            raise KeyboardInterrupt
        commit(staged)

    monkeypatch.setattr(files.StagedFile, "commit", until_killed)
    with pytest.raises(KeyboardInterrupt):
        node.install(src)
    monkeypatch.undo()
    assert node.labels() == {"bridge": "1"}
    assert node.remove()["removed"] == ["bridge"]


# Asking the plugins


class Counted:
    """A plugin that notes each of its starts."""

    def __init__(self, node, name):
        self._log = node.out / (name + ".log")
        self.content = f'#!/bin/sh\necho "$CNI_COMMAND" >> {self._log}\n'.encode() + plugin_files.script("v1.2.3")

    def starts(self):
        found = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.write_text("")
        return found


def test_plugin_is_started_once_when_it_is_written_and_not_again(node):
    mine = Counted(node, "mine")
    plugin_files.write(node.out / "src" / "mine", mine.content)
    first = node.install(str(node.out / "src"), include=["mine"])
    assert mine.starts() == [""]
    before = node.tree()
    for check_mode in (False, True):
        again = node.install(str(node.out / "src"), include=["mine"], check_mode=check_mode)
        assert again["plugins"] == [dict(first["plugins"][0], action="unchanged")]
    assert (mine.starts(), first["plugins"][0]["version"]) == ([], "v1.2.3")
    assert node.tree() == before
    plugin_files.write(node.bin / "mine", b"spoilt")
    node.install(str(node.out / "src"), include=["mine"])
    assert mine.starts() == [""]


def test_plugin_that_was_there_is_started_once(node):
    mine = Counted(node, "mine")
    plugin_files.write(node.out / "src" / "mine", mine.content)
    plugin_files.write(node.bin / "mine", mine.content)
    for starts in ([""], []):
        (item,) = node.install(str(node.out / "src"), include=["mine"])["plugins"]
        assert (item["version"], mine.starts()) == ("v1.2.3", starts)


def test_plugin_that_gave_no_answer_is_asked_again(node):
    plugin_files.write(node.out / "src" / "mute", b"#!/bin/sh\nexit 7\n")
    for _run in range(2):
        assert [item["code"] for item in node.install(str(node.out / "src"), include=["mute"])["findings"]] == [
            "BIN002"
        ]


def test_program_that_nobody_calls_a_plugin_is_not_started(node):
    # It would be a finding that it gives no answer.
    program = Path("/bin/true").read_bytes()
    src = plugin_files.tar(node.out / "cni.tgz", {"bridge": program, "setup": program})
    result = node.install(src)
    assert [item["where"] for item in result["findings"]] == [str(node.bin / "bridge")]
    assert actions(result) == {"bridge": "installed", "setup": "installed"}
    for options in ({"include": ["setup"]}, {"required": ["setup"]}):
        result = node.install(src, **options)
        assert str(node.bin / "setup") in [item["where"] for item in result["findings"]]


def test_leftovers_of_a_killed_run_go(node):
    node.bin.mkdir()
    plugin_files.write(node.bin / (files.TEMPORARY_PREFIX + "1-abc"), b"half", 0o600)
    node.install(node.archive({"bridge": "1"}))
    assert os.listdir(str(node.bin)) == ["bridge"]


def test_checksum(node):
    src = node.archive({"bridge": "1"}, "cni-plugins-linux-amd64-v1.5.1.tgz")
    digest = hashlib.sha256(Path(src).read_bytes()).hexdigest()
    longer = hashlib.sha512(Path(src).read_bytes()).hexdigest()
    (node.out / "SUMS").write_text(f"{'0' * 64}  other.tgz\n{digest}  {os.path.basename(src)}\n")
    with pytest.raises(NodenetError) as caught:
        node.install(src, checksum="sha256:" + "0" * 64)
    assert str(caught.value) == f"Cannot use {src}: its sha256 is {digest}, the checksum demands {'0' * 64}"
    assert node.tree() == {}
    for checksum in ("sha256:" + digest, "sha512:" + longer, f"sha256:{node.out}/SUMS"):
        node.install(src, checksum=checksum)
    assert node.labels() == {"bridge": "1"}
    with pytest.raises(NodenetError, match="checksum is for archives, this is a directory"):
        binaries.install(str(node.out / "bin2"), str(node.state), str(node.bin), "sha256:" + digest)


def test_archive_that_is_gone_is_not_missed_while_all_is_in_place(node):
    src = node.archive({"bridge": "1", "ptp": "1"})
    checksum = "sha256:" + hashlib.sha256(Path(src).read_bytes()).hexdigest()
    node.install(src, checksum=checksum, include=["bridge"])
    os.unlink(src)
    assert node.install(src, checksum=checksum, include=["bridge"])["changed"] is False
    with pytest.raises(NodenetError, match="there is no such file") as caught:
        node.install(src, checksum=checksum)
    assert caught.value.facts["src_missing"] is True
    with pytest.raises(NodenetError, match="there is no such file"):
        node.install(src, include=["bridge"])
    node.put("bridge", "other")
    before = node.tree()
    with pytest.raises(NodenetError, match="there is no such file"):
        node.install(src, checksum=checksum, include=["bridge"])
    assert node.tree() == before


def test_known_archive_is_not_unpacked_again_but_files_are_read(node):
    src = node.archive({"bridge": "1", "ptp": "1"})
    node.install(src)
    node.put("ptp", "2")
    result = node.install(src)
    assert actions(result) == {"bridge": "unchanged", "ptp": "replaced"}
    assert node.labels() == {"bridge": "1", "ptp": "1"}


def test_two_sources_in_one_directory(node):
    plugins, flannel = node.archive({"bridge": "1"}), node.archive({"flannel": "1"}, "flannel.tgz")
    node.install(plugins)
    node.install(flannel)
    upgrade = node.archive({"bridge": "2"}, "cni2.tgz")
    node.install(upgrade)
    record = json.loads((node.state / "plugin_binaries.json").read_text())["bin_dirs"][str(node.bin)]
    assert {name: entry["source"] for name, entry in record["plugins"].items()} == {
        "bridge": "cni2.tgz",
        "flannel": "flannel.tgz",
    }
    # cni.tgz can be put back
    assert sorted(archive["source"] for archive in record["archives"].values()) == [
        "cni.tgz",
        "cni2.tgz",
        "flannel.tgz",
    ]
    assert node.remove()["removed"] == ["bridge", "flannel"]


def test_runs_beside_each_other_lose_nothing_from_the_record(node):
    names = [f"plugin{number}" for number in range(8)]
    sources = [node.archive({name: "1"}, name + ".tgz") for name in names]
    threads = [threading.Thread(target=node.install, args=(src,)) for src in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    record = json.loads((node.state / "plugin_binaries.json").read_text())["bin_dirs"][str(node.bin)]
    assert sorted(record["plugins"]) == sorted(os.listdir(str(node.bin))) == names


# Required plugins that no source brings


def test_required_only(node):
    plugin_files.write(node.bin / "bridge", plugin_files.script("v1.0.0"))
    before = node.tree()
    result = node.install(required=["bridge"])
    assert (result["changed"], actions(result)) == (False, {"bridge": "kept"})
    assert node.tree() == before
    with pytest.raises(NodenetError) as caught:
        node.install(required=["bridge", "ptp", "own"])
    assert str(caught.value) == (
        f"Cannot provide ptp and own in {node.bin}: required, but not there; ptp comes from containernetworking/plugins"
    )


def test_required_link_counts_for_its_target(node):
    plugin_files.write(node.out / "elsewhere", plugin_files.script("v1.0.0"))
    node.bin.mkdir()
    (node.bin / "ptp").symlink_to(node.out / "elsewhere")
    (node.bin / "tap").symlink_to("gone")
    (ptp,) = node.install(required=["ptp"])["plugins"]
    assert (ptp["action"], ptp["version"], ptp["sha256"]) == ("kept", "v1.0.0", None)
    with pytest.raises(NodenetError, match="^Cannot provide tap in "):
        node.install(required=["ptp", "tap"])


OTHER = "s390x" if plugin_files.HERE != "s390x" else "amd64"


@pytest.mark.parametrize(
    ("content", "mode", "code", "text"),
    [
        (plugin_files.elf(architecture=OTHER), 0o755, "BIN003", f"is built for {OTHER}, this node runs "),
        (plugin_files.elf(size=9000)[:5000], 0o755, "BIN004", "is incomplete: its headers speak of 9000 bytes"),
        (b"", 0o755, "BIN004", "is incomplete: it has only 0 bytes"),
        (plugin_files.script(), 0o644, "BIN005", "cannot be executed: no execute bit in its mode"),
        (b"#!/none\n", 0o755, "BIN002", "does not answer VERSION: it cannot be executed (No such file or directory)"),
    ],
)
def test_required_plugin_that_cannot_work(node, content, mode, code, text):
    plugin_files.write(node.bin / "ptp", content, mode)
    result = node.install(required=["ptp"])
    assert [item["code"] for item in result["findings"]] == [code]
    assert result["findings"][0]["text"].startswith(text)
    assert result["plugins"][0]["cni_versions"] == []


# Removing


def test_removal_takes_what_we_installed_and_nobody_changed(node):
    node.install(node.archive({"bridge": "1", "ptp": "1", "vlan": "1"}))
    node.put("ptp", "other")
    node.put("calico", "1")
    os.unlink(str(node.bin / "vlan"))
    before = node.tree()
    predicted = node.remove(check_mode=True)
    assert node.tree() == before
    result = node.remove()
    assert predicted == result
    assert (result["changed"], result["removed"]) == (True, ["bridge"])
    assert actions(result) == {"bridge": "removed", "ptp": "kept"}
    (item,) = result["findings"]
    assert (item["code"], item["where"]) == ("BIN006", str(node.bin / "ptp"))
    assert "installed from cni.tgz" in item["text"]
    assert node.labels() == {"ptp": "other", "calico": "1"}
    assert sorted(result["diff"]["before"]) == ["bridge"]
    again = node.remove()
    assert (again["changed"], again["removed"]) == (False, [])


def test_removal_by_name(node):
    node.put("calico", "1")
    node.put("ptp", "1")
    (node.bin / "link").symlink_to("calico")
    assert node.remove(include=["link", "ptp", "none"])["removed"] == ["link", "ptp"]
    assert node.labels() == {"calico": "1"}


def test_removal_by_source_takes_only_identical_ones(node):
    src = node.archive({"bridge": "1", "ptp": "1"})
    node.put("bridge", "1")
    node.put("ptp", "other")
    assert node.remove()["removed"] == []
    assert node.remove(src=src)["removed"] == ["bridge"]
    assert node.labels() == {"ptp": "other"}


def test_removal_of_what_is_no_file_is_refused(node):
    node.put("bridge", "1")
    (node.bin / "dir").mkdir()
    before = node.tree()
    with pytest.raises(NodenetError, match="^Cannot remove dir from .*: it is a directory"):
        node.remove(include=["bridge", "dir"])
    assert node.tree() == before


def test_removal_where_nothing_ever_was(node):
    result = node.remove()
    assert (result["changed"], result["plugins"]) == (False, [])
    assert node.tree() == {}


def test_plugin_that_was_in_place_already_stays_somebody_elses(node):
    src = node.archive({"bridge": "1", "ptp": "1"})
    checksum = "sha256:" + hashlib.sha256(Path(src).read_bytes()).hexdigest()
    node.put("bridge", "1")
    os.chmod(str(node.put("ptp", "1")), 0o700)
    assert actions(node.install(src, checksum=checksum)) == {"bridge": "unchanged", "ptp": "adjusted"}
    os.unlink(src)
    # What the archive holds is known all the same.
    assert node.install(src, checksum=checksum)["changed"] is False
    assert node.remove()["removed"] == []
    assert node.labels() == {"bridge": "1", "ptp": "1"}


def test_what_we_wrote_stays_ours_when_another_archive_holds_the_same(node):
    node.install(node.archive({"bridge": "1", "ptp": "1"}))
    node.install(node.archive({"bridge": "1", "ptp": "2"}, "next.tgz"))
    assert node.remove()["removed"] == ["bridge", "ptp"]


def test_removal_forgets_what_was_found(node):
    node.put("bridge", "1")
    node.install(node.archive({"bridge": "1"}))
    assert str(node.bin) in (node.state / "plugin_binaries.json").read_text()
    node.remove()
    assert str(node.bin) not in (node.state / "plugin_binaries.json").read_text()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 1, "bin_dirs": []}', "\udcff"])
def test_broken_record_is_refused(node, text):
    node.state.mkdir()
    (node.state / "plugin_binaries.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    before = node.tree()
    for attempt in (lambda: node.install(node.archive({"bridge": "1"})), node.remove):
        with pytest.raises(NodenetError, match="^Cannot read the record of installed plugins in .*move it away"):
            attempt()
    assert node.tree() == before


def test_record_of_a_newer_release_is_refused(node):
    node.state.mkdir()
    (node.state / "plugin_binaries.json").write_text('{"version": 2, "bin_dirs": {}}')
    with pytest.raises(NodenetError, match="it has version 2, this release knows 1"):
        node.remove()


# What an older version of the source brought


def test_plugins_that_the_new_version_lacks_go(node):
    node.install(node.archive({"bridge": "1", "sbr": "1", "tap": "1", "vrf": "1", "dhcp": "1"}, "cni-v1.0.0.tgz"))
    node.install(node.archive({"flannel": "1"}, "flannel-v1.0.0.tgz"))
    node.put("calico", "1")
    node.put("tap", "mine")
    os.unlink(str(node.bin / "dhcp"))
    new = node.archive({"bridge": "2"}, "cni-v2.0.0.tgz")
    before = node.tree()
    predicted = node.install(new, required=["vrf"], check_mode=True)
    assert node.tree() == before
    result = node.install(new, required=["vrf"])
    assert actions(result) == {"bridge": "replaced", "sbr": "removed", "tap": "kept", "vrf": "kept"}
    assert (actions(predicted), predicted["diff"]) == (actions(result), result["diff"])
    assert (result["removed"], result["diff"]["before"]["sbr"]["mode"]) == (["sbr"], "0755")
    assert [(one["code"], os.path.basename(one["where"])) for one in result["findings"] if one["code"] == "BIN006"] == [
        ("BIN006", "tap")
    ]
    assert node.labels() == {"bridge": "2", "calico": "1", "flannel": "1", "tap": "mine", "vrf": "1"}
    assert node.install(new, required=["vrf"])["changed"] is False
    assert node.install(new)["removed"] == ["vrf"]
    assert node.remove()["removed"] == ["bridge", "flannel"]


@pytest.mark.parametrize("kind", ["archive", "directory"])
def test_plugins_that_are_only_not_included_stay(node, kind):
    def source(members, version):
        if kind == "archive":
            return node.archive(members, f"cni-{version}.tgz")
        for name, label in members.items():
            plugin_files.write(node.out / version / name, plugin_files.elf(label))
        return str(node.out / version)

    node.install(source({"bridge": "1", "ptp": "1", "sbr": "1"}, "v1.0.0"))
    new = source({"bridge": "2", "ptp": "2"}, "v2.0.0")
    assert node.install(new, include=["bridge"])["removed"] == ["sbr"]
    assert node.labels() == {"bridge": "2", "ptp": "1"}


def test_plugin_that_somebody_else_put_in_place_of_ours_is_theirs(node):
    node.install(node.archive({"bridge": "1"}, "cni-v1.0.0.tgz"))
    node.put("bridge", "2")
    new = node.archive({"bridge": "2"}, "cni-v2.0.0.tgz")
    (first,), (second,) = node.install(new)["plugins"], node.install(new)["plugins"]
    assert (first["action"], first["drift"]) == ("unchanged", True)
    assert (second["action"], second["drift"]) == ("unchanged", False)
    assert node.remove()["removed"] == []


# Digests of plugins


def digest(label):
    return "sha256:" + hashlib.sha256(plugin_files.elf(label)).hexdigest()


def test_file_checksums(node):
    src = node.archive({"bridge": "1", "ptp": "1", "tap": "1"})
    node.put("flannel", "1")
    before = node.tree()
    good = {"bridge": digest("1"), "tap": digest("2"), "flannel": digest("1").upper().replace("SHA", "sha")}
    options = {"include": ["bridge", "ptp"], "required": ["flannel"]}
    for name, message in {
        "bridge": f"Cannot install bridge from {src}: its sha256 is {digest('1')[7:]}, file_checksums demands ",
        "flannel": f"Cannot accept flannel in {node.bin}: its sha256 is {digest('1')[7:]}, file_checksums demands ",
        "birdge": f"Cannot verify birdge with file_checksums: it is not in {src} and not required",
        "../sh": "Cannot use '../sh' in file_checksums: a plugin is named by letters",
    }.items():
        with pytest.raises(NodenetError) as caught:
            node.install(src, file_checksums=dict(good, **{name: digest("2")}), **options)
        assert str(caught.value).startswith(message)
        assert node.tree() == before
    for wrong in ("sha256:12", "sha512:" + "0" * 128, "md5:1", 5, "sha256:/sums"):
        with pytest.raises(NodenetError, match="^Cannot use checksum .* for bridge: in file_checksums it must be sha"):
            node.install(src, file_checksums={"bridge": wrong}, **options)
    # tap differs, but is not installed
    assert node.install(src, file_checksums=good, **options)["changed"] is True
    assert node.install(src, file_checksums=good, **options)["changed"] is False
    with pytest.raises(NodenetError, match="^Cannot install bridge from .*: its sha256 is "):
        node.install(src, file_checksums={"bridge": digest("2")}, **options)


def test_file_checksums_of_a_directory_and_of_a_required_link(node):
    plugin_files.write(node.out / "src" / "bridge", plugin_files.elf("1"))
    plugin_files.write(node.out / "src" / "ptp", plugin_files.elf("1"))
    options = {"include": ["bridge"], "required": ["tap"]}
    node.bin.mkdir()
    (node.bin / "tap").symlink_to(node.out / "src" / "ptp")
    checksums = {"bridge": digest("1"), "ptp": digest("9"), "tap": digest("1")}
    assert node.install(str(node.out / "src"), file_checksums=checksums, **options)["changed"] is True
    with pytest.raises(NodenetError, match="^Cannot accept tap in "):
        node.install(str(node.out / "src"), file_checksums=dict(checksums, tap=digest("2")), **options)


# Archives by architecture


def test_architecture_in_the_name(node):
    src = node.archive({"bridge": "1"}, f"cni-{plugin_files.HERE}.tgz")
    checksum = hashlib.sha256(Path(src).read_bytes()).hexdigest()
    (node.out / f"{plugin_files.HERE}.sha256").write_text(checksum + "\n")
    named = str(node.out / "cni-{arch}.tgz")
    assert node.install(named, checksum=f"sha256:{node.out}/{{arch}}.sha256")["changed"] is True
    assert node.remove(src=named)["removed"] == ["bridge"]
    with pytest.raises(NodenetError, match=f"^Cannot read {node.out}/other-{plugin_files.HERE}.tgz on this node"):
        node.install(str(node.out / "other-{arch}.tgz"))
