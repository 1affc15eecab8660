# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import files, selinux
from ansible_collections.nodenet.cni.tests.unit import plugin_files
from ansible_collections.nodenet.cni.tests.unit.plugin_files import Node

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: needs root to set security labels")
OURS = b"system_u:object_r:bin_t:s0\0"


def put(path, label):
    os.setxattr(str(path), "security.selinux", label, follow_symlinks=False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, OURS),
        (b"system_u:object_r:container_runtime_exec_t:s0\0", b"system_u:object_r:container_runtime_exec_t:s0\0"),
        # moved there from where it was unpacked
        (b"unconfined_u:object_r:user_tmp_t:s0\0", OURS),
        (b"system_u:object_r:unlabeled_t:s0\0", OURS),
    ],
)
def test_label_of_a_new_file(tmp_path, before, after):
    put(tmp_path, OURS)
    target = tmp_path / "bridge"
    if before:
        target.write_bytes(b"old")
        put(target, before)
    files.replace_file(str(target), b"new")
    assert os.getxattr(str(target), "security.selinux") == after


def test_label_in_place_of_a_link_is_that_of_the_directory(tmp_path):
    put(tmp_path, OURS)
    (tmp_path / "elsewhere").write_bytes(b"")
    put(tmp_path / "elsewhere", b"u:object_r:usr_t:s0\0")
    (tmp_path / "bridge").symlink_to("elsewhere")
    files.replace_file(str(tmp_path / "bridge"), b"new")
    assert os.getxattr(str(tmp_path / "bridge"), "security.selinux") == OURS


def test_without_labels_there_is_none(tmp_path):
    files.replace_file(str(tmp_path / "bridge"), b"new")
    with pytest.raises(OSError, match="No data available"):
        os.getxattr(str(tmp_path / "bridge"), "security.selinux")
    assert selinux.fault(str(tmp_path / "bridge")) is None


def test_label_that_came_along_is_a_finding(tmp_path):
    node = Node(tmp_path)
    src = node.archive({"ptp": "1"})
    node.install(src)
    put(node.bin, OURS)
    plugin_files.write(node.bin / "bridge", plugin_files.script())
    labels = {
        b"unconfined_u:object_r:user_tmp_t:s0\0": ["BIN008"],
        b"system_u:object_r:container_file_t:s0\0": [],
        OURS: [],
    }
    for label, codes in labels.items():
        put(node.bin / "bridge", label)
        found = node.install(src, required=["bridge"])["findings"]
        found = [one for one in found if one["where"] == str(node.bin / "bridge")]
        assert [one["code"] for one in found] == codes
    assert selinux.type_in(b"") == selinux.type_in(b"strange\0") == ""
