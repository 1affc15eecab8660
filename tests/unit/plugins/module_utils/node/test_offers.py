# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import archive, offers
from ansible_collections.nodenet.cni.tests.unit import plugin_files

HERE = [plugin_files.HERE]
OTHER = "s390x" if plugin_files.HERE != "s390x" else "amd64"


def offered(path, include=()):
    source = archive.open_source(str(path))
    try:
        return offers.inspect(source, include)
    finally:
        source.close()


def chosen(tmp_path, members, include=()):
    path = plugin_files.tar(tmp_path / "a.tgz", members)
    return offers.select(offered(path), include, HERE, "a.tgz")


def test_only_programs_are_plugins(tmp_path):
    members = {
        "bridge": plugin_files.elf(),
        "LICENSE": b"free",
        "README.md": b"# read",
        "install.sh": b"#!/bin/sh\n",
        "module.o": plugin_files.elf(kind=1),
        "libfoo.so.1": plugin_files.elf(kind=3),
        "host-local": plugin_files.elf(kind=3),
        "odd name": plugin_files.elf(),
        ".hidden": plugin_files.elf(),
    }
    wanted, ignored = chosen(tmp_path, members)
    assert sorted(wanted) == ["bridge", "host-local"]
    assert ignored == ["LICENSE", "README.md", "install.sh", "libfoo.so.1", "module.o"]


def test_one_top_folder_is_looked_through(tmp_path):
    members = {"v1/bridge": plugin_files.elf("1"), "v1/LICENSE": b"free", "v1/sub/tool": plugin_files.elf("2")}
    wanted, ignored = chosen(tmp_path, members)
    assert [offer.path for offer in wanted.values()] == ["v1/bridge"]
    assert ignored == ["LICENSE"]


def test_a_folder_beside_files_is_not(tmp_path):
    wanted, _ignored = chosen(tmp_path, {"bridge": plugin_files.elf(), "sub/ptp": plugin_files.elf()})
    assert sorted(wanted) == ["bridge"]


def test_two_folders_are_not(tmp_path):
    with pytest.raises(NodenetError, match="no file at its top is an executable$"):
        chosen(tmp_path, {"a/bridge": plugin_files.elf(), "b/ptp": plugin_files.elf()})


def test_nothing_to_install_says_what_is_there(tmp_path):
    with pytest.raises(NodenetError, match="no file at its top is an executable, it holds LICENSE, notes$"):
        chosen(tmp_path, {"LICENSE": b"x", "notes": b"y"})


def test_include_chooses_and_takes_scripts(tmp_path):
    members = {"bridge": plugin_files.elf(), "ptp": plugin_files.elf(), "own": plugin_files.script()}
    wanted, ignored = chosen(tmp_path, members, ["own", "ptp"])
    assert (sorted(wanted), ignored) == (["own", "ptp"], ["bridge"])


def test_include_of_what_is_not_there(tmp_path):
    with pytest.raises(NodenetError) as caught:
        chosen(tmp_path, {"bridge": plugin_files.elf()}, ["flannel"])
    assert str(caught.value).startswith("Cannot install flannel from a.tgz: it holds no such file, only bridge; ")
    assert "flannel comes from flannel-io/cni-plugin" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (plugin_files.elf(architecture=OTHER), f"it is built for {OTHER}, this node runs {plugin_files.HERE}"),
        (plugin_files.elf(size=9000)[:4000], "it is incomplete, its headers speak of 9000 bytes, it has 4000"),
        (b"", "it is incomplete, it has only 0 bytes"),
        (b"\x7fELF", "it is incomplete, it has only 4 bytes"),
    ],
)
def test_one_bad_plugin_refuses_all(tmp_path, content, message):
    with pytest.raises(NodenetError) as caught:
        chosen(tmp_path, {"bridge": plugin_files.elf(), "ptp": content})
    assert str(caught.value) == "Cannot install ptp from a.tgz: " + message
    wanted, _ignored = chosen(tmp_path, {"bridge": plugin_files.elf(), "ptp": content}, ["bridge"])
    assert sorted(wanted) == ["bridge"]


def test_include_does_not_make_a_plugin_of_anything(tmp_path):
    with pytest.raises(NodenetError, match="^Cannot install bridge from a.tgz: it is neither an ELF program nor a scr"):
        chosen(tmp_path, {"bridge": b"<html>404</html>" * 20}, ["bridge"])


def test_directory_is_asked_for_what_is_wanted_only(tmp_path):
    plugin_files.write(tmp_path / "cni" / "bridge", plugin_files.elf())
    (tmp_path / "cni" / "away").symlink_to("/bin/sleep")
    assert [offer.name for offer in offered(tmp_path / "cni", ["bridge"])] == ["bridge"]
    with pytest.raises(NodenetError, match="its link away leads out of it"):
        offered(tmp_path / "cni")


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "a b", ".nodenet-tmp-1", "bridge\n"])
def test_names_that_are_no_plugin(name):
    with pytest.raises(NodenetError, match="^Cannot use .* in include: "):
        offers.check_names(["bridge", name], "include")
    offers.check_names(["bridge", "host-local", "my_plugin.v2"], "include")
