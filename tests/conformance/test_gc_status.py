# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GC and STATUS, which Go's host-local leaves empty (H14, H15 of docs/compatibility.md)."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import calls
import pytest

A, B, C = ("%064x" % number for number in (10, 11, 12))
POOL = {"subnet": "10.1.2.0/24"}
OLD = 100000


class Directory:
    """A network's directory with address files of a given age, and GC calls on it."""

    def __init__(self, data_dir, library):
        self.data_dir = data_dir
        self.library = library

    def hold(self, **files):
        """Plant address files: ``a2`` stands for 10.1.2.2; a value is the owner or (owner, age in seconds)."""
        for name, value in files.items():
            owner, age_s = value if isinstance(value, tuple) else (value, OLD)
            path = Path(str(self.data_dir), "net", "10.1.2." + name[1:])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(owner.encode() if "\r\n" in owner or not owner else (owner + "\r\neth0").encode())
            os.utime(str(path), (time.time() - age_s,) * 2)
        return self

    def gc(self, *valid, **ipam):
        more = {"cni.dev/valid-attachments": list(valid)}
        return self.call("GC", dict(POOL, **ipam), **more)

    def call(self, command, ipam, **more):
        config = calls.configuration(self.data_dir, ipam, "1.1.0", **more)
        return self.library.call({"CNI_COMMAND": command, "CNI_PATH": "/opt/cni/bin"}, config)

    def left(self):
        return ["a" + name.split(".")[-1] for name in sorted(calls.held(self.data_dir))]


@pytest.fixture
def directory(tmp_path, library):
    return Directory(tmp_path, library)


def attachment(container, ifname="eth0"):
    return {"containerID": container, "ifname": ifname}


def succeeded(outcome):
    return (outcome.rc, outcome.stdout) == (0, "")


def test_unlisted_goes_and_listed_stays(directory):
    directory.hold(a2=A, a3=B, a4=A + "\r\nnet1")
    assert succeeded(directory.gc(attachment(A)))
    assert directory.left() == ["a2"]


def test_static_reservations_stay(directory):
    directory.hold(a2="static.vip", a3="static." + B)
    assert succeeded(directory.gc(attachment(A)))
    assert directory.left() == ["a2", "a3"]


def test_ids_of_a_form_that_is_not_listed_stay(directory):
    """The runtime that sends the list may not know of another one's containers."""
    directory.hold(a2="default-" + B, a3=B, a4="nodenet-probe-1", a5="k8s.io-" + C)
    assert succeeded(directory.gc(attachment(A)))
    assert directory.left() == ["a2", "a4", "a5"]
    assert succeeded(directory.gc(attachment("default-" + A)))
    assert directory.left() == ["a4", "a5"]


def test_an_empty_list_releases_plain_ids_only(directory):
    directory.hold(a2=A, a3="default-" + B, a4="c1", a5="static.x")
    assert succeeded(directory.gc())
    assert directory.left() == ["a3", "a4", "a5"]


def test_an_attachment_without_id_lists_nothing(directory):
    directory.hold(a2=A, a3="c1", a4="nodenet-probe-1")
    directory.gc(attachment(""), attachment(A))
    assert directory.left() == ["a2", "a3", "a4"]


@pytest.mark.parametrize("element", [None, {}, {"containerID": None}, {"containerID": 5}, "x", 5])
def test_a_strange_element_frees_nobody_who_is_listed(directory, element):
    directory.hold(a2=A, a3="c1")
    outcome = directory.gc(element, attachment(A))
    assert outcome.rc in (0, 1)
    assert directory.left() == ["a2", "a3"]


@pytest.mark.parametrize(("age_s", "left"), [(3, ["a2"]), (50, ["a2"]), (-500, ["a2"]), (70, [])])
def test_young_entries_stay(directory, age_s, left):
    directory.hold(a2=(B, age_s))
    assert succeeded(directory.gc(attachment(A)))
    assert directory.left() == left


@pytest.mark.parametrize(("grace", "left"), [(3600, ["a2", "a3"]), (100, ["a3"]), (10, [])])
def test_grace_can_be_set(directory, grace, left):
    directory.hold(a2=(B, 1000), a3=(C, 50))
    assert succeeded(directory.gc(attachment(A), gcGraceSeconds=grace))
    assert directory.left() == left


@pytest.mark.parametrize("grace", [-1, "x", 1.5, None])
def test_a_strange_grace_never_makes_it_shorter(directory, grace):
    directory.hold(a2=(B, 5))
    directory.gc(attachment(A), gcGraceSeconds=grace)
    assert directory.left() == ["a2"]


def test_legacy_entry_lives_with_any_interface(directory):
    directory.hold(a2=(A + "\r\n").replace("\r\n", ""), a3=B)
    Path(str(directory.data_dir), "net", "10.1.2.2").write_bytes(A.encode())
    os.utime(str(Path(str(directory.data_dir), "net", "10.1.2.2")), (time.time() - OLD,) * 2)
    assert succeeded(directory.gc(attachment(A, "net5")))
    assert directory.left() == ["a2"]


@pytest.mark.parametrize("more", [{}, {"cni.dev/valid-attachments": None}])
def test_without_a_list_nothing_goes_and_one_line_says_so(directory, more):
    directory.hold(a2=A)
    outcome = directory.call("GC", POOL, **more)
    assert succeeded(outcome)
    assert outcome.stderr.count("\n") == 1
    assert directory.left() == ["a2"]


def test_gc_creates_nothing(directory):
    assert succeeded(directory.gc(attachment(A)))
    assert os.listdir(str(directory.data_dir)) == []


def test_gc_leaves_what_is_no_reservation(directory):
    directory.hold(a2=B)
    folder = Path(str(directory.data_dir), "net")
    for name in ("README", "10.1.2.2.bak", "lock", "last_reserved_ip.0"):
        (folder / name).write_bytes((B + "\r\neth0").encode())
        os.utime(str(folder / name), (time.time() - OLD,) * 2)
    assert succeeded(directory.gc(attachment(A)))
    assert sorted(os.listdir(str(folder))) == ["10.1.2.2.bak", "README", "last_reserved_ip.0", "lock"]


# --- STATUS --------------------------------------------------------------------------------------------------------


def test_status_of_a_missing_directory_is_fine_and_creates_nothing(directory):
    outcome = directory.call("STATUS", POOL)
    assert (outcome.rc, outcome.stdout, outcome.stderr) == (0, "", "")
    assert os.listdir(str(directory.data_dir)) == []


def test_a_full_set_is_a_line_and_no_error(directory):
    directory.hold(a2=A)
    outcome = directory.call("STATUS", {"subnet": "10.1.2.0/30"})
    assert succeeded(outcome)
    assert "no IP addresses available in range set: 10.1.2.1-10.1.2.2" in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_a_full_set_is_an_error_on_request(directory):
    directory.hold(a2=A)
    outcome = directory.call("STATUS", {"subnet": "10.1.2.0/30", "statusExhaustion": True})
    assert calls.error(outcome)["code"] == 50


def test_status_sees_an_unusable_data_dir(directory, tmp_path):
    (tmp_path / "file").write_text("x")
    config = calls.configuration(tmp_path / "file", POOL, "1.1.0")
    outcome = directory.library.call({"CNI_COMMAND": "STATUS", "CNI_PATH": "/x"}, config)
    assert calls.error(outcome)["code"] == 50
    assert str(tmp_path / "file") in json.loads(outcome.stdout)["msg"]


def test_status_sees_an_unusable_lock(directory, tmp_path):
    (tmp_path / "net" / "lock").mkdir(parents=True)
    assert calls.error(directory.call("STATUS", POOL))["code"] == 50


def test_status_answers_config_faults_as_add_does(directory):
    for ipam in ({"subnet": "10.1.2.0/31"}, {"subnet": "x"}, {}, {"ranges": [[]]}):
        status = calls.error(directory.call("STATUS", ipam))
        add = calls.error(
            directory.library.call(calls.environment("ADD"), calls.configuration(directory.data_dir, ipam, "1.1.0"))
        )
        assert status == add
