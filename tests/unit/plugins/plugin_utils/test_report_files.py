# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Report files on disk: whole or not at all, and when a file counts as changed."""

from __future__ import annotations

import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.plugin_utils import report_files
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_files import FORMATS, KINDS, paths_in, write_files
from ansible_collections.nodenet.cni.tests.unit import audits


def listing(folder):
    return sorted(one.name for one in folder.iterdir())


def modes(folder):
    return {one.name: one.stat().st_mode & 0o777 for one in folder.iterdir()}


class TestWriting:
    def test_all_kinds(self, tmp_path):
        assert write_files(audits.small(), paths_in(str(tmp_path), FORMATS)) is True
        assert listing(tmp_path) == ["addresses.csv", "findings.csv", "fleet.html", "fleet.prom", "pools.csv"]
        # who runs what where is for whoever made it; the exporter, which is another user, reads figures
        assert modes(tmp_path) == {name: 0o644 if name == "fleet.prom" else 0o600 for name in listing(tmp_path)}
        assert (tmp_path / "fleet.html").read_text().startswith("<!DOCTYPE html>")
        assert (tmp_path / "fleet.prom").read_text().startswith("# HELP ")
        assert (tmp_path / "addresses.csv").read_bytes().count(b"\r") == 0

    def test_the_mode_that_is_asked_for_is_that_of_all(self, tmp_path):
        paths = paths_in(str(tmp_path), FORMATS)
        write_files(audits.small(), paths)
        assert write_files(audits.small(), paths, check_mode=True, mode=0o640) is True
        assert set(modes(tmp_path).values()) == {0o600, 0o644}
        assert write_files(audits.small(), paths, mode=0o640) is True
        assert set(modes(tmp_path).values()) == {0o640}
        assert write_files(audits.small(), paths, mode=0o640) is False

    def test_formats(self, tmp_path):
        assert {kind for kinds in FORMATS.values() for kind in kinds} == set(KINDS)
        assert paths_in("/r", ["csv", "csv"]) == [
            ("findings_csv", "/r/findings.csv"),
            ("pools_csv", "/r/pools.csv"),
            ("addresses_csv", "/r/addresses.csv"),
        ]

    def test_nothing_to_write(self):
        assert write_files({}, []) is False

    def test_a_second_time_is_no_change_but_has_the_new_time(self, tmp_path):
        paths = paths_in(str(tmp_path), FORMATS)
        write_files(audits.small(), paths)
        later = dict(audits.small(), taken_at=audits.AT + 90_000)
        assert write_files(later, paths) is False
        assert f"timestamp_seconds {audits.AT + 90_000}" in (tmp_path / "fleet.prom").read_text()
        assert "2027-01-16T09:00:00Z" in (tmp_path / "fleet.html").read_text()

    @pytest.mark.parametrize("check_mode", [False, True])
    def test_the_time_alone_is_no_change_wherever_the_pieces_end(self, tmp_path, check_mode):
        path = str(tmp_path / "fleet.json")
        text = '{\n "a": 1,\n "taken_at": %d\n}'
        assert report_files.write(path, [text % 1]) is True
        for size in (1, 3, 100):
            later = text % 22
            pieces = [later[start : start + size] for start in range(0, len(later), size)]
            assert report_files.write(path, pieces, check_mode) is False
        assert report_files.write(path, [text.replace("1", "2") % 1], check_mode) is True
        assert report_files.write(path, [text % 1 + "\n"], check_mode) is True

    @pytest.mark.parametrize("kind", sorted(KINDS))
    def test_another_state_is_a_change(self, tmp_path, kind):
        paths = [(kind, str(tmp_path / kind))]
        write_files(audits.small(), paths)
        assert write_files(audits.document({"n1": ([], [])}), paths) is True

    @pytest.mark.parametrize("kind", sorted(KINDS))
    def test_check_mode_tells_and_writes_nothing(self, tmp_path, kind):
        paths = [(kind, str(tmp_path / kind))]
        assert write_files(audits.small(), paths, check_mode=True) is True
        assert listing(tmp_path) == []
        write_files(audits.small(), paths)
        assert write_files(audits.small(), paths, check_mode=True) is False
        assert write_files(audits.document({"n1": ([], [])}), paths, check_mode=True) is True

    def test_a_file_that_is_no_text_is_replaced(self, tmp_path):
        (tmp_path / "fleet.prom").write_bytes(b"\xff\xfe")
        assert write_files(audits.small(), paths_in(str(tmp_path), ["prometheus"])) is True
        assert (tmp_path / "fleet.prom").read_text().startswith("# HELP ")

    def test_a_link_is_replaced_not_followed(self, tmp_path):
        (tmp_path / "other").write_text("mine")
        (tmp_path / "fleet.prom").symlink_to("other")
        write_files(audits.small(), paths_in(str(tmp_path), ["prometheus"]))
        assert (tmp_path / "other").read_text() == "mine"
        assert not (tmp_path / "fleet.prom").is_symlink()


class TestFaults:
    def test_no_directory(self, tmp_path):
        path = str(tmp_path / "none" / "x.prom")
        with pytest.raises(NodenetError, match=f"Cannot write the report to {path}: No such file or directory"):
            write_files(audits.small(), [("prometheus", path)])

    def test_a_directory_in_the_way(self, tmp_path):
        (tmp_path / "fleet.prom").mkdir()
        with pytest.raises(NodenetError, match="Is a directory"):
            write_files(audits.small(), paths_in(str(tmp_path), ["prometheus"]))
        assert listing(tmp_path) == ["fleet.prom"]

    def test_the_old_file_stays_until_the_new_one_is_whole(self, tmp_path, monkeypatch):
        path = tmp_path / "addresses.csv"
        path.write_text("old")
        seen = []

        def broken(_audit):
            yield "first line\n"
            seen.append((path.read_text(), [one for one in os.listdir(tmp_path) if one != path.name]))
            raise RuntimeError

        monkeypatch.setitem(report_files.KINDS, "addresses_csv", ("addresses.csv", broken))
        with pytest.raises(RuntimeError):
            write_files(audits.small(), [("addresses_csv", str(path))])
        [(text, [temporary])] = seen
        assert text == "old"
        # what the textfile collector reads ends in .prom
        assert temporary.startswith(".")
        assert temporary.endswith(".tmp")
        assert listing(tmp_path) == ["addresses.csv"]
        assert path.read_text() == "old"
