# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a runtime that watches the conf dir sees of a task: whole files by a rename, removals, and nothing else."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
import subprocess

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import confdir, conflists, confwrite, files

MODIFY, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x40, 0x80, 0x100, 0x200
NAMES = {MODIFY: "write", MOVED_FROM: "rename", MOVED_TO: "appears", CREATE: "create", DELETE: "remove"}


@pytest.fixture
def watch():
    """Call watch(directory) before, and what it returns after: the events as (what, file name)."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert fd >= 0

    def start(directory):
        assert libc.inotify_add_watch(fd, os.fsencode(str(directory)), ctypes.c_uint32(sum(NAMES))) >= 0

        def events():
            found, data = [], b""
            try:
                data = os.read(fd, 1 << 20)
            except BlockingIOError:
                pass
            while data:
                _watch, mask, _cookie, length = struct.unpack("iIII", data[:16])
                name = os.fsdecode(data[16 : 16 + length].rstrip(b"\0"))
                found += [(what, name) for bit, what in NAMES.items() if mask & bit]
                data = data[16 + length :]
            return found

        return events

    yield start
    os.close(fd)


def entry(name, **more):
    if more.get("state") != "absent":
        more["plugins"] = [{"type": "loopback"}]
    return dict(more, name=name)


def do(conf_dir, entries, backup_dir="", **options):
    modes = conflists.modes_of(str(conf_dir), [conflists.file_name(one) for one in entries])
    found = confdir.read_conf_dir(str(conf_dir))
    return confwrite.apply_plan(conflists.make_plan(found, entries, modes, conflists.Options(**options)), backup_dir)


def test_a_file_appears_whole_and_backups_and_locks_never(tmp_path, watch):
    conf_dir = tmp_path / "net.d"
    do(conf_dir, [entry("podnet"), entry("old", filename="20-old.conflist")])
    events = watch(conf_dir)
    tasks = [
        entry("podnet", cni_version="0.4.0"),
        entry("new", filename="30-new.conflist"),
        entry("old", state="absent"),
    ]
    assert len(do(conf_dir, tasks, str(tmp_path / "backup"))) == 2
    seen = events()
    counted = [(what, name) for what, name in seen if confdir.extension(name) in confdir.EXTENSIONS]
    assert counted == [
        ("appears", "10-podnet.conflist"),
        ("appears", "30-new.conflist"),
        ("remove", "20-old.conflist"),
    ]
    others = {name for _what, name in seen if confdir.extension(name) not in confdir.EXTENSIONS}
    assert len(others) == 2, "one temporary file for each that is written"
    # containerd acts on writes and renames away, not on a file that appears
    assert [what for what, name in seen if name in others].count("rename") == 2
    assert sorted(os.listdir(str(conf_dir))) == ["10-podnet.conflist", "30-new.conflist"]


def test_nothing_happens_when_nothing_changes(tmp_path, watch):
    do(tmp_path, [entry("podnet")])
    events = watch(tmp_path)
    assert do(tmp_path, [entry("podnet")], str(tmp_path.parent / "backup")) == []
    assert events() == []


def test_what_takes_the_place_is_there_before_what_goes(tmp_path, watch):
    """At no moment is the directory without the network: the new name appears first."""
    do(tmp_path, [entry("podnet")])
    events = watch(tmp_path)
    do(
        tmp_path,
        [entry("podnet", filename="05-a.conflist"), entry("podnet", filename="10-podnet.conflist", state="absent")],
    )
    counted = [one for one in events() if confdir.extension(one[1]) in confdir.EXTENSIONS]
    assert counted == [("appears", "05-a.conflist"), ("remove", "10-podnet.conflist")]


def tree(directory):
    """Everything in a directory: what a link leads to, or content, mode and owner."""
    found = {}
    for path in sorted(directory.iterdir()):
        status = path.stat()
        kind = os.readlink(str(path)) if path.is_symlink() else path.read_bytes()
        found[path.name] = (kind, status.st_mode, status.st_uid, status.st_gid)
    return found


@contextlib.contextmanager
def immutable(path):
    """A file that even root cannot rename anything over, or remove."""
    if subprocess.run(["chattr", "+i", str(path)], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("not run: needs root and a file system with attributes")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(path)], check=True)


@pytest.mark.parametrize("backups", [False, True])
@pytest.mark.parametrize("what", ["write", "remove"])
def test_when_one_file_cannot_be_changed_the_others_are_put_back(tmp_path, what, backups):
    """It shows only as it happens: a file that was there with its mode, a link, and what is new."""
    conf_dir = tmp_path / "net.d"
    do(conf_dir, [entry("a", filename="10-a.conflist"), entry("stuck", filename="50-stuck.conflist")])
    (conf_dir / "10-a.conflist").chmod(0o600)
    (tmp_path / "elsewhere").write_text((conf_dir / "10-a.conflist").read_text().replace('"a"', '"linked"'))
    (conf_dir / "20-linked.conflist").symlink_to(tmp_path / "elsewhere")
    before = tree(conf_dir)
    tasks = [
        entry("a", filename="10-a.conflist", cni_version="0.4.0"),
        entry("linked", filename="20-linked.conflist", cni_version="0.4.0"),
        entry("new", filename="30-new.conflist"),
        entry(
            "stuck",
            filename="50-stuck.conflist",
            **({"state": "absent"} if what == "remove" else {"cni_version": "0.4.0"}),
        ),
    ]
    backup_dir = tmp_path / "backup"
    with immutable(conf_dir / "50-stuck.conflist"):
        with pytest.raises(
            NodenetError, match=f"^Cannot {what} conflist 50-stuck.conflist in .*: Operation not permitted$"
        ):
            do(conf_dir, tasks, str(backup_dir) if backups else "")
        assert tree(conf_dir) == before
        assert not backup_dir.exists()
    do(conf_dir, tasks)
    assert sorted(tree(conf_dir)) == sorted(
        {*before, "30-new.conflist"} - ({"50-stuck.conflist"} if what == "remove" else set())
    )


def test_what_cannot_be_put_back_is_named_and_its_backups_stay(tmp_path, monkeypatch):
    """A second fault, here a disk that is full since; that needs a mock."""
    conf_dir = tmp_path / "net.d"
    do(conf_dir, [entry("a", filename="10-a.conflist"), entry("stuck", filename="50-stuck.conflist")])
    old = (conf_dir / "10-a.conflist").read_bytes()

    def full(path, *_arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    tasks = [
        entry(name, filename=file, cni_version="0.4.0")
        for name, file in (("a", "10-a.conflist"), ("stuck", "50-stuck.conflist"))
    ]
    with immutable(conf_dir / "50-stuck.conflist"):
        back_up = confwrite._back_up

        def back_up_and_fill(*arguments):
            back_up(*arguments)
            monkeypatch.setattr(files, "replace_file", full)

        monkeypatch.setattr(confwrite, "_back_up", back_up_and_fill)
        with pytest.raises(
            NodenetError, match="not permitted; could not put back what 10-a.conflist was before$"
        ) as caught:
            do(conf_dir, tasks, str(tmp_path / "backup"))
    assert caught.value.facts["not_put_back"] == ["10-a.conflist"]
    assert old in [path.read_bytes() for path in (tmp_path / "backup").iterdir()]
