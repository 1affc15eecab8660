# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import threading

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import folders


def mode(path):
    return path.stat().st_mode & 0o777


def test_all_of_a_path_is_made_with_one_mode(tmp_path):
    folders.make(str(tmp_path / "a" / "b" / "c"), 0o700)
    assert [mode(tmp_path / one) for one in ("a", "a/b", "a/b/c")] == [0o700] * 3
    (tmp_path / "a").chmod(0o750)
    folders.make(str(tmp_path / "a" / "d"))
    assert (mode(tmp_path / "a"), mode(tmp_path / "a" / "d")) == (0o750, 0o755)


def test_a_link_to_a_directory_counts_as_one(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    folders.make(str(tmp_path / "link" / "below"))
    folders.make(str(tmp_path / "link"))
    assert (tmp_path / "real" / "below").is_dir()
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_what_is_in_the_way_is_named(tmp_path, kind):
    if kind == "file":
        (tmp_path / "x").write_bytes(b"")
    else:
        (tmp_path / "x").symlink_to("nowhere")
    for path in ("x", "x/y"):
        with pytest.raises(NotADirectoryError) as caught:
            folders.make(str(tmp_path / path))
        assert caught.value.filename == str(tmp_path / "x")


def test_several_that_make_the_same_at_once(tmp_path):
    faults = []

    def work():
        try:
            for number in range(50):
                folders.make(str(tmp_path / str(number) / "a" / "b"))
        except OSError as exc:
            faults.append(exc)

    threads = [threading.Thread(target=work) for _thread in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert faults == []
    assert len(os.listdir(str(tmp_path))) == 50
