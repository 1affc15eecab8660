# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import types

import pytest
from ansible.errors import AnsibleFileNotFound
from ansible.module_utils.testing import patch_module_args

from ansible_collections.nodenet.cni.plugins.action import plugin_binaries as action
from ansible_collections.nodenet.cni.plugins.module_utils.node import embedded, executables
from ansible_collections.nodenet.cni.plugins.modules import plugin_binaries as module
from ansible_collections.nodenet.cni.tests.unit import plugin_files


class Action(action.ActionModule):
    """The action plugin with a node that is a directory here; the module really runs."""

    def __init__(self, top, arguments):
        self.top = top
        self.calls = []
        self.transfers = []
        self._task = types.SimpleNamespace(args=dict(arguments, bin_dir=str(top / "bin"), state_dir=str(top / "state")))
        self.machine = {"rc": 0, "stdout": os.uname().machine + "\n"}
        shell = types.SimpleNamespace(tmpdir=None, join_path=os.path.join)
        self._loader = types.SimpleNamespace(get_basedir=lambda: str(top.parent))
        self._connection = types.SimpleNamespace(_shell=shell)

    def run(self, tmp=None, task_vars=None):
        # What the base class does concerns a real task and a real connection.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(action.ActionBase, "run", lambda *_args: {})
            return super().run(tmp, task_vars)

    def _low_level_execute_command(self, command):
        assert command == "uname -m"
        return self.machine

    def _find_needle(self, dirname, needle):
        assert dirname == "files"
        for path in (needle, str(self.top.parent / "files" / needle)):
            if os.path.isabs(path) and os.path.exists(path):
                return path
        raise AnsibleFileNotFound(file_name=needle)

    def _make_tmp_path(self, remote_user=None):
        path = tempfile.mkdtemp(dir=str(self.top))
        self._connection._shell.tmpdir = path
        return path

    def _transfer_file(self, local_path, remote_path):
        self.transfers.append((local_path, remote_path))
        shutil.copyfile(local_path, remote_path)

    def _fixup_perms2(self, remote_paths, remote_user=None, execute=True):
        assert all(os.path.exists(path) for path in remote_paths)

    def _execute_module(self, module_name=None, module_args=None, task_vars=None, **_options):
        self.calls.append(module_args)
        output = io.StringIO()
        with patch_module_args(module_args), contextlib.redirect_stdout(output), pytest.raises(SystemExit):
            module.main()
        return json.loads(output.getvalue())


@pytest.fixture
def play(tmp_path):
    """Run the action; returns (result, action)."""
    (tmp_path / "files").mkdir()
    (tmp_path / "node").mkdir()

    def run(task_vars=None, **arguments):
        plugin = Action(tmp_path / "node", arguments)
        result = plugin.run(None, task_vars)
        assert "\n" not in result.get("msg", "")
        return result, plugin

    return run


def archive(tmp_path, label, name="cni.tgz"):
    return plugin_files.tar(tmp_path / "files" / name, {"bridge": plugin_files.elf(label)})


def test_archive_travels_once(play, tmp_path):
    archive(tmp_path, "1")
    first, done = play(src="cni.tgz")
    assert first["changed"] is True
    assert [os.path.basename(remote) for _local, remote in done.transfers] == ["cni.tgz"]
    second, done = play(src="cni.tgz")
    assert second["changed"] is False
    assert (done.transfers, len(done.calls)) == ([], 1)


def test_archive_travels_again_when_something_is_spoilt_or_new(play, tmp_path):
    archive(tmp_path, "1")
    play(src="cni.tgz")
    plugin_files.write(tmp_path / "node" / "bin" / "bridge", b"spoilt")
    result, done = play(src="cni.tgz")
    assert (result["changed"], len(done.transfers)) == (True, 1)
    archive(tmp_path, "2")
    result, done = play(src="cni.tgz")
    assert (result["changed"], len(done.transfers)) == (True, 1)
    assert b"2" in (tmp_path / "node" / "bin" / "bridge").read_bytes()[120:122]


def test_failure_other_than_a_missing_source_sends_nothing(play, tmp_path):
    archive(tmp_path, "1")
    result, done = play(src="cni.tgz", state="absent", include=["../x"])
    assert result["failed"]
    assert done.transfers == []


def test_failure_names_the_source_as_the_task_does(play, tmp_path):
    plugin_files.tar(tmp_path / "files" / "cni.tgz", {"notes": b"text"})
    result, _done = play(src="cni.tgz")
    assert result["msg"] == "Cannot install plugins from cni.tgz: no file at its top is an executable, it holds notes"
    with open(str(tmp_path / "files" / "cni.tgz"), "wb") as stream:
        stream.write(b"page")
    result, done = play(src="cni.tgz")
    assert result["msg"].startswith("Cannot read cni.tgz: it is no tar archive")
    result.pop("invocation", None)
    assert done.transfers[0][1] not in str(result)


def test_what_lies_on_the_node_is_left_to_the_module(play, tmp_path):
    path = archive(tmp_path, "1")
    result, done = play(src=path, remote_src="yes", checksum="sha256:none")
    assert result["failed"]
    assert [call["checksum"] for call in done.calls] == ["sha256:none"]
    result, done = play(required=["bridge"])
    assert done.calls[0].get("src") is None


def test_directory_is_packed_the_same_way_each_time(play, tmp_path):
    top = tmp_path / "files" / "cni"
    plugin_files.write(top / "bridge", plugin_files.elf("1"))
    plugin_files.write(top / "notes", b"text", 0o644)
    (top / "ptp").symlink_to("bridge")
    first, done = play(src="cni")
    assert [(item["name"], item["action"]) for item in first["plugins"]] == [
        ("bridge", "installed"),
        ("ptp", "installed"),
    ]
    assert first["ignored"] == ["notes"]
    assert not os.path.exists(done.transfers[0][0])
    os.utime(str(top / "bridge"), (1, 1))
    second, done = play(src="cni")
    assert (second["changed"], done.transfers) == (False, [])


def test_a_directory_without_files(play, tmp_path):
    (tmp_path / "files" / "plugins" / "folder").mkdir(parents=True)
    result, _done = play(src=str(tmp_path / "files" / "plugins"))
    assert result["failed"]
    assert result["msg"].startswith(f"Cannot install plugins from {tmp_path}/files/plugins: no file at its top is an ")


def test_part_of_a_directory(play, tmp_path):
    top = tmp_path / "files" / "cni"
    plugin_files.write(top / "bridge", plugin_files.elf("1"))
    plugin_files.write(top / "own", plugin_files.script())
    (top / "away").symlink_to("/bin/sleep")
    for include in (["own"], "own"):
        result, _done = play(src="cni", include=include)
        assert [item["name"] for item in result["plugins"]] == ["own"]
    result, _done = play(src="cni")
    assert result["failed"]
    assert "its link away leads out of it" in result["msg"]


def test_what_is_not_taken_of_a_directory_is_not_taken_for_gone(play, tmp_path):
    top = tmp_path / "files" / "cni"
    for name in ("bridge", "ptp", "sbr"):
        plugin_files.write(top / name, plugin_files.elf("1"))
    play(src="cni")
    for name in ("bridge", "ptp"):
        plugin_files.write(top / name, plugin_files.elf("2"))
    os.unlink(str(top / "sbr"))
    result, _done = play(src="cni", include=["bridge"])
    assert (result["removed"], result["ignored"]) == (["sbr"], ["ptp"])
    assert sorted(os.listdir(str(tmp_path / "node" / "bin"))) == ["bridge", "ptp"]
    second, done = play(src="cni", include="bridge")
    assert (second["changed"], done.transfers) == (False, [])


def test_source_for_each_architecture(play, tmp_path):
    own = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine)
    if own is None:
        pytest.skip("not run: a machine that is neither amd64 nor arm64")
    archive(tmp_path, "1", "own.tgz")
    digest = hashlib.sha256((tmp_path / "files" / "own.tgz").read_bytes()).hexdigest()
    other = {"amd64": "arm64", "arm64": "amd64"}[own]
    result, done = play(src={own: "own.tgz", other: "other.tgz"}, checksum={own: "sha256:" + digest, other: "sha256:0"})
    assert (result["changed"], done.calls[0]["src"]) == (True, "controller:/own.tgz")
    result, done = play(src={other: "other.tgz"})
    assert result["failed"] is True
    assert result["msg"] == f"Cannot choose the src for a node of architecture {own}: there is one for {other} only"
    result, done = play(src={own: str(tmp_path / "files" / "own.tgz")}, remote_src=True)
    assert (result["changed"], done.calls[0]["src"]) == (False, str(tmp_path / "files" / "own.tgz"))


def test_architecture_of_the_node(play, tmp_path, monkeypatch):
    name = f"cni-{plugin_files.HERE}.tgz"
    path = archive(tmp_path, "1", name)
    with open(path, "rb") as stream:
        digest = hashlib.sha256(stream.read()).hexdigest()
    (tmp_path / "files" / f"{plugin_files.HERE}.sha256").write_text(digest)
    result, done = play(src="cni-{arch}.tgz", checksum="sha256:{arch}.sha256")
    assert result["changed"] is True
    assert os.path.basename(done.transfers[0][1]) == name
    result, _done = play(src="none-{arch}.tgz")
    assert result["msg"].startswith(f"Cannot find none-{plugin_files.HERE}.tgz on the controller")

    def told(**answer):
        monkeypatch.setattr(Action, "_low_level_execute_command", lambda *_arguments: answer)
        return play(src="cni-{arch}.tgz")[0]["msg"]

    assert told(rc=0, stdout="i686\n").startswith("Cannot choose the archive for a node whose machine is 'i686': ")
    assert told(rc=127, stdout="", stderr="uname: not found\n") == (
        "Cannot ask the node for its architecture with uname -m: uname: not found"
    )


def test_putting_back_needs_no_source(play, tmp_path):
    archive(tmp_path, "1")
    play(src="cni.tgz")
    result, done = play(src="none.tgz", state="previous")
    assert (result["changed"], result["removed"], done.transfers) == (True, ["bridge"], [])


def test_checksum_is_verified_before_anything_travels(play, tmp_path):
    path = archive(tmp_path, "1")
    with open(path, "rb") as stream:
        content = stream.read()
    (tmp_path / "files" / "SUMS").write_text(f"{hashlib.sha256(content).hexdigest()}  cni.tgz\n")
    (tmp_path / "files" / "BAD").write_text(f"{'0' * 64}  cni.tgz\n")
    for good in ("sha256:files/SUMS", "sha256:SUMS", "sha512:" + hashlib.sha512(content).hexdigest()):
        good = good.replace(":files/SUMS", f":{tmp_path}/files/SUMS")
        result, _done = play(src="cni.tgz", checksum=good)
        assert "failed" not in result
    for bad, message in (
        ("sha256:" + "0" * 64, "^Cannot use .*/cni.tgz: its sha256 is "),
        (f"sha256:{tmp_path}/files/BAD", "^Cannot use .*/cni.tgz: its sha256 is "),
        ("sha256:./none", "^Cannot find ./none on the controller: it is not in "),
        ("sha256:none", "^Cannot find none on the controller: it is not in "),
        ("sha256:https://host.example/SUMS", "nothing is fetched from a URL"),
        ("md5:1", "^Cannot use checksum md5:1"),
        ("sha256:abcdef", "this one 6$"),
    ):
        result, done = play(src="cni.tgz", checksum=bad)
        assert result["failed"]
        assert re.search(message, result["msg"]), result["msg"]
        assert done.calls == []


def test_checksum_of_a_directory_is_refused(play, tmp_path):
    plugin_files.write(tmp_path / "files" / "cni" / "bridge", plugin_files.elf("1"))
    result, _done = play(src="cni", checksum="sha256:" + "0" * 64)
    assert result["failed"]
    assert result["msg"] == "Cannot verify cni: checksum is for archives, this is a directory"


def test_source_beside_the_inventory_or_in_the_current_directory(play, tmp_path, monkeypatch):
    inventory, current = tmp_path / "inventory", tmp_path / "current"
    for place, label in ((current / "files", "current"), (inventory / "files", "inventory")):
        place.mkdir(parents=True)
        path = plugin_files.tar(place / "mine.tgz", {"bridge": plugin_files.elf(label)})
        with open(path, "rb") as stream:
            digest = hashlib.sha256(stream.read()).hexdigest()
        (place / "SUMS").write_text(f"{digest}  mine.tgz\n")
    monkeypatch.chdir(current)
    task_vars = {"inventory_dir": str(inventory)}
    for src, checksum in (("files/mine.tgz", "sha256:files/SUMS"), ("mine.tgz", "sha256:SUMS")):
        for known, label in ((task_vars, b"inventory"), ({"inventory_dir": None}, b"current"), (None, b"current")):
            result, _done = play(known, src=src, checksum=checksum)
            assert "failed" not in result
            assert label in (tmp_path / "node" / "bin" / "bridge").read_bytes()


def test_missing_source(play, tmp_path, monkeypatch):
    (tmp_path / "current").mkdir()
    monkeypatch.chdir(tmp_path / "current")
    result, done = play({"inventory_dir": "/srv/inventory"}, src="none.tgz")
    assert result["failed"]
    assert result["msg"] == (
        f"Cannot find none.tgz on the controller: it is not in {tmp_path}, /srv/inventory, {tmp_path}/current, nor in "
        "files/ there or in a role; if it is on the node, set remote_src (roles: plugin_binaries_remote_src)"
    )
    result, done = play({"inventory_dir": "None"}, src="none.tgz")
    assert "None" not in result["msg"]
    result, done = play(src="/none/none.tgz")
    assert result["msg"] == (
        "Cannot find /none/none.tgz on the controller: there is no such file; if it is on the node, set remote_src "
        "(roles: plugin_binaries_remote_src)"
    )
    result, done = play(src="https://host.example/cni.tgz")
    assert result["msg"] == (
        "Cannot take plugins from https://host.example/cni.tgz: nothing is fetched from a URL; download it before and "
        "give the path"
    )
    assert done.calls == []


@pytest.mark.parametrize("names", [["host-local"], "host-local"])
def test_sources_of_embedded_plugins_go_along(play, tmp_path, monkeypatch, names):
    monkeypatch.setattr(executables, "node_python", lambda: os.path.realpath(sys.executable))
    archive(tmp_path, "1")
    result, done = play(src="cni.tgz", embedded=names)
    assert [(one["name"], one["embedded"]) for one in result["plugins"]] == [("bridge", False), ("host-local", True)]
    assert "'embedded_sources'" not in str(result.get("invocation"))
    sent = embedded.unpack(done.calls[-1]["embedded_sources"])
    assert "host_local/commands.py" in sent
    assert "host_local/report.py" not in sent
    result, done = play(src="cni.tgz", embedded=names)
    assert (result["changed"], len(done.calls)) == (False, 1)
    result, _done = play(embedded=names)
    assert result["changed"] is False
    result, done = play(embedded=names, state="absent")
    assert "embedded_sources" not in done.calls[0]
    assert result["removed"] == ["bridge", "host-local"]


def test_with_multus_go_the_packages_that_the_controller_has(play, monkeypatch):
    monkeypatch.setattr(executables, "node_python", lambda: os.path.realpath(sys.executable))
    result, done = play(embedded=["multus", "host-local"])
    assert [(one["name"], one["action"]) for one in result["plugins"]] == [
        ("host-local", "installed"),
        ("multus", "installed"),
    ]
    assert all("1.1.0" in one["cni_versions"] for one in result["plugins"])
    sent = embedded.unpack(done.calls[-1]["embedded_sources"])
    assert {"multus/commands.py", "multus/kubetls.py", "vendored/yaml/__init__.py"} <= set(sent)
    result, _done = play(embedded=["multus", "host-local"])
    assert result["changed"] is False
    result, done = play(embedded=["host-local"])
    assert not any(
        path.startswith(("multus/", "vendored/")) for path in embedded.unpack(done.calls[-1]["embedded_sources"])
    )


@pytest.mark.parametrize("names", [["multus-none"], "x", [1], 5, []])
def test_what_is_no_embedded_plugin_is_left_to_the_module(play, names):
    result, done = play(embedded=names)
    assert "embedded_sources" not in done.calls[0]
    assert bool(result.get("failed")) is bool(names)


def test_a_task_cannot_bring_sources_of_its_own(play):
    _result, done = play(required=[], embedded_sources="x")
    assert "embedded_sources" not in done.calls[0]
