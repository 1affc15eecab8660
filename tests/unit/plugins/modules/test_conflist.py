# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest
from ansible.module_utils.basic import AnsibleModule

NAME = "conflist"
PODNET = {
    "name": "podnet",
    "plugins": [{"type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.22.0.0/16"}]]}}],
}


@pytest.fixture
def options(tmp_path):
    def build(*conflists, **more):
        paths = {"conf_dir": str(tmp_path / "net.d"), "bin_dir": str(tmp_path / "bin")}
        return dict(paths, conflists=list(conflists), **more)

    return build


def test_check_mode_predicts_and_touches_nothing(run_module, options, tmp_path, tree):
    before = tree(tmp_path)
    predicted = run_module(NAME, options(PODNET), check=True, diff=True)
    assert tree(tmp_path) == before
    done = run_module(NAME, options(PODNET), diff=True)
    assert predicted == done
    assert done["changed"] is True
    assert done["diff"][0]["after_header"] == str(tmp_path / "net.d" / "10-podnet.conflist")
    assert json.loads(done["diff"][0]["after"])["name"] == "podnet"
    after = tree(tmp_path)
    again = run_module(NAME, options(PODNET), diff=True)
    assert again["changed"] is False
    assert again["diff"] == []
    assert tree(tmp_path) == after


def test_no_diff_unless_asked_for(run_module, options):
    assert "diff" not in run_module(NAME, options(PODNET))


@pytest.mark.parametrize("check", [False, True])
def test_a_refused_conflist_changes_nothing_and_says_why(fails, run_module, options, tmp_path, tree, case, check):
    run_module(NAME, options(PODNET))
    before = tree(tmp_path)
    config = case("netconf-host-bits-set")["input"]["stdin"]
    bad = {"name": "net", "plugins": [{"type": "bridge", "ipam": config["ipam"]}]}
    message = fails(NAME, options({"name": "fine", "plugins": [{"type": "loopback"}]}, bad), check=check)
    assert message.startswith(f"Cannot write conflist net in {tmp_path}/net.d/10-net.conflist: ")
    assert "write 10.1.2.0/24" in message
    result = run_module(NAME, options(bad), check=check)
    assert [item["code"] for item in result["findings"]] == ["IPAM003"]
    assert tree(tmp_path) == before


def test_backups_are_returned(run_module, options, tmp_path):
    backup_dir = str(tmp_path / "backup")
    assert "backups" not in run_module(NAME, options(PODNET, backup_dir=backup_dir), check=True)
    assert run_module(NAME, options(PODNET, backup_dir=backup_dir))["backups"] == []
    (path,) = run_module(NAME, options({"name": "podnet", "state": "absent"}, backup_dir=backup_dir))["backups"]
    assert os.path.dirname(path) == backup_dir
    assert os.listdir(str(tmp_path / "net.d")) == []


def test_backups_in_the_conf_dir_are_refused(fails, options, tmp_path):
    assert "lies in the conf dir" in fails(NAME, options(PODNET, backup_dir=str(tmp_path / "net.d" / "old")))
    assert os.listdir(str(tmp_path)) == []


def test_plugins_of_the_bin_dir_count_when_it_exists(run_module, fails, options, tmp_path):
    assert run_module(NAME, options(PODNET), check=True)["findings"] == []
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bridge").write_text("")
    result = run_module(NAME, options(PODNET), check=True)
    assert [item["text"] for item in result["findings"]] == [f"plugin 'host-local' is not in {tmp_path}/bin"]
    assert result["effective"]["after"]["crio"]["network"] == "podnet"
    (tmp_path / "bin" / "bridge").unlink()
    message = fails(NAME, options(PODNET, expect_effective="podnet"))
    assert "CRI-O would use no network instead of podnet" in message


def test_the_mode(run_module, fails, options, tmp_path):
    run_module(NAME, options(PODNET, mode="0600"))
    assert os.stat(str(tmp_path / "net.d" / "10-podnet.conflist")).st_mode & 0o777 == 0o600
    assert "octal" in fails(NAME, options(PODNET, mode="u=rw"))
    run_module(NAME, options(PODNET, mode=0o640))  # YAML's unquoted 0640
    assert os.stat(str(tmp_path / "net.d" / "10-podnet.conflist")).st_mode & 0o777 == 0o640


def test_a_conf_dir_that_is_a_file_is_an_error(fails, options, tmp_path):
    (tmp_path / "net.d").write_text("")
    assert str(tmp_path / "net.d") in fails(NAME, options(PODNET))
    assert str(tmp_path / "net.d") in fails(NAME, options(PODNET), check=True)


def test_a_network_needs_a_name(fails, options):
    assert "name" in fails(NAME, options({"plugins": [{"type": "loopback"}]}))


def test_a_node_without_a_usable_network_is_warned_of(run_module, options, tmp_path, monkeypatch):
    warned = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _module, text: warned.append(text))
    (tmp_path / "net.d").mkdir()
    (tmp_path / "net.d" / "00-first.conf").write_text("{")
    result = run_module(NAME, options(PODNET))
    assert len(warned) == len(result["findings"]) > 1
    assert any("containerd has no network for a new pod" in text for text in warned)


def test_backups_need_a_directory(fails, options, tmp_path):
    (tmp_path / "backup").write_text("")
    for check in (False, True):
        message = fails(NAME, options(PODNET, backup_dir=str(tmp_path / "backup")), check=check)
        assert message == f"Cannot keep backups in {tmp_path}/backup: it is no directory"
    assert os.listdir(str(tmp_path)) == ["backup"]
