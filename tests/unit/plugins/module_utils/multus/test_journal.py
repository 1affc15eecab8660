# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import gzip
import os
import re
import stat
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.multus.config import Config
from ansible_collections.nodenet.cni.plugins.module_utils.multus.journal import Journal

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d) \[(\w+)\] (.*)\n")


def journal(said, **keys):
    made = Journal(said.append)
    made.configure(Config(keys))
    return made


@pytest.mark.parametrize(
    ("level", "written"),
    [("", []), ("panic", []), ("Error", ["e"]), ("VERBOSE", ["e", "v"]), ("debug", ["e", "v"])],
)
def test_levels(level, written):
    said: list = []
    log = journal(said, logLevel=level)
    log.error("e")
    log.verbose("v")
    assert [LINE.fullmatch(line).group(3) for line in said] == written
    log.note("n")
    assert said[-1].endswith(" [error] n\n")


def test_a_level_that_nobody_knows():
    said: list = []
    journal(said, logLevel="chatty").error("e")
    assert said == ["multus logging: cannot set logging level to chatty\n"]


def test_a_file_in_place_of_standard_error(tmp_path):
    said: list = []
    path = tmp_path / "a" / "b" / "multus.log"
    log = journal(said, logLevel="error", logFile=str(path), logToStderr=False)
    log.error("one")
    log.error("two")
    assert said == []
    assert [line.split("] ")[1] for line in path.read_text().splitlines()] == ["one", "two"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_written_disturbs_nothing(tmp_path):
    said: list = []
    journal(said, logLevel="error", logFile=str(tmp_path)).error("one")
    assert len(said) == 1


def rotated(folder, **options):
    path = folder / "multus.log"
    path.write_bytes(b"x" * (1 << 20))
    log = journal([], logLevel="error", logFile=str(path), logToStderr=False, logOptions={"maxSize": 1, **options})
    log.error("new")
    assert path.read_text().endswith("new\n")
    assert path.stat().st_size < 100
    return sorted(one for one in os.listdir(folder) if one != "multus.log")


def test_a_large_file_is_set_aside_and_compressed(tmp_path):
    (name,) = rotated(tmp_path)
    assert re.fullmatch(r"multus-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log\.gz", name)
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    with gzip.open(tmp_path / name) as stream:
        assert stream.read() == b"x" * (1 << 20)


def test_old_files_go(tmp_path):
    for day in range(1, 6):
        (tmp_path / ("multus-2020-01-0%dT00-00-00.000.log" % day)).write_text("")
    (tmp_path / "multus-other.log").write_text("")
    left = rotated(tmp_path, maxBackups=3, compress=False)
    assert left[0] == "multus-2020-01-04T00-00-00.000.log"
    assert len(left) == 4
    assert left[-1] == "multus-other.log"
    old = time.time() - 3 * 86400
    os.utime(tmp_path / left[0], (old, old))
    again = rotated(tmp_path, maxBackups=0, maxAge=2, compress=False)
    assert left[0] not in again
    assert left[1] in again
