# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import files
from ansible_collections.nodenet.cni.tests.unit import plugin_files


def mode_of(path):
    return stat.S_IMODE(os.lstat(str(path)).st_mode)


def temporary_names(directory):
    return [name for name in os.listdir(str(directory)) if name.startswith(files.TEMPORARY_PREFIX)]


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    old = os.umask(request.param)
    yield request.param
    os.umask(old)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_new_file_has_content_and_mode_whatever_the_umask(tmp_path, umask, mode):
    target = tmp_path / "bridge"
    files.replace_file(str(target), b"content", mode)
    assert target.read_bytes() == b"content"
    assert mode_of(target) == mode
    assert os.listdir(str(tmp_path)) == ["bridge"]


def test_pieces_are_written_in_order(tmp_path):
    files.replace_file(str(tmp_path / "f"), iter([b"one ", b"", b"two"]))
    assert (tmp_path / "f").read_bytes() == b"one two"


@pytest.mark.parametrize("before", [b"old", None])
def test_the_name_only_ever_gets_a_whole_file(tmp_path, before):
    if before:
        (tmp_path / "f").write_bytes(before)
    events = plugin_files.Events(tmp_path)
    files.replace_file(str(tmp_path / "f"), b"new", 0o755)
    assert [event for name, event in events.read() if name == "f"] == ["moved to"]
    events.close()


def test_content_reaches_the_disk_before_the_name_and_the_name_before_the_return(tmp_path, monkeypatch):
    steps = []
    fsync, rename = os.fsync, os.rename

    def watched_fsync(fd):
        steps.append("sync directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else "sync file")
        fsync(fd)

    def watched_rename(*args, **options):
        steps.append("rename")
        rename(*args, **options)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "rename", watched_rename)
    files.replace_file(str(tmp_path / "f"), b"new")
    assert steps == ["sync file", "rename", "sync directory"]
    files.remove_file(str(tmp_path / "f"))
    assert steps[3:] == ["sync directory"]


def test_reader_of_the_old_file_keeps_it(tmp_path):
    target = tmp_path / "f"
    target.write_bytes(b"old")
    inode = target.stat().st_ino
    with target.open("rb") as old:
        files.replace_file(str(target), b"new")
        assert old.read() == b"old"
    assert target.read_bytes() == b"new"
    assert target.stat().st_ino != inode


def test_file_is_open_for_writing_nowhere_when_it_gets_its_name(tmp_path, monkeypatch):
    """Executing a file that somebody has open for writing fails with "text file busy"."""
    seen = []
    rename = os.rename

    def watched_rename(source, target, **options):
        inode = os.stat(source, dir_fd=options["src_dir_fd"]).st_ino
        for fd in os.listdir("/proc/self/fd"):
            try:
                same = os.stat("/proc/self/fd/" + fd).st_ino == inode
            except FileNotFoundError:
                continue
            if same:
                seen.append(fcntl.fcntl(int(fd), fcntl.F_GETFL) & os.O_ACCMODE)
        rename(source, target, **options)

    monkeypatch.setattr(os, "rename", watched_rename)
    files.replace_file(str(tmp_path / "f"), b"new", 0o755)
    assert seen == [os.O_RDONLY]


def test_link_is_replaced_and_its_target_left_alone(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    directory = tmp_path / "dir"
    directory.mkdir()
    (directory / "f").symlink_to(outside)
    files.replace_file(str(directory / "f"), b"new")
    assert outside.read_bytes() == b"precious"
    assert not (directory / "f").is_symlink()
    assert (directory / "f").read_bytes() == b"new"


def test_failing_piece_changes_nothing(tmp_path):
    def pieces():
        yield b"x" * 100000
        assert temporary_names(tmp_path)
        raise ValueError("source broke off")

    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(ValueError, match="broke off"):
        files.replace_file(str(tmp_path / "f"), pieces())
    assert os.listdir(str(tmp_path)) == ["f"]
    assert (tmp_path / "f").read_bytes() == b"old"


def test_write_error_changes_nothing(tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            files.replace_file(str(tmp_path / "f"), b"n" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(str(tmp_path)) == ["f"]
    assert (tmp_path / "f").read_bytes() == b"old"


def test_directory_of_that_name_is_refused_by_name(tmp_path):
    (tmp_path / "f").mkdir()
    with pytest.raises(OSError, match="directory") as caught:
        files.replace_file(str(tmp_path / "f"), b"new")
    assert caught.value.filename == str(tmp_path / "f")
    assert os.listdir(str(tmp_path)) == ["f"]


def test_missing_directory_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        files.replace_file(str(tmp_path / "none" / "f"), b"new")


def test_group_is_all_or_nothing(tmp_path):
    first = files.stage_file(str(tmp_path / "a"), b"1")
    second = files.stage_file(str(tmp_path / "b"), b"2")
    assert sorted(os.listdir(str(tmp_path))) == sorted(temporary_names(tmp_path))
    second.discard()
    first.commit()
    first.discard()
    assert os.listdir(str(tmp_path)) == ["a"]


@pytest.mark.parametrize("extension", [".conf", ".conflist", ".json"])
def test_temporary_name_is_no_configuration_and_no_plugin(tmp_path, extension):
    staged = files.stage_file(str(tmp_path / ("10-x" + extension)), b"{}", 0o755)
    (name,) = os.listdir(str(tmp_path))
    staged.discard()
    assert name.startswith(".")
    assert os.path.splitext(name)[1] == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: needs root to see owners change")
def test_owner_is_root_although_the_directory_gives_its_group(tmp_path):
    os.chown(str(tmp_path), 1001, 1001)
    os.chmod(str(tmp_path), 0o2777)
    files.replace_file(str(tmp_path / "f"), b"x")
    files.replace_file(str(tmp_path / "g"), b"x", owner=(1002, 1003))
    assert [(os.stat(str(tmp_path / n)).st_uid, os.stat(str(tmp_path / n)).st_gid) for n in "fg"] == [
        (0, 0),
        (1002, 1003),
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: needs root to set security labels")
def test_label_of_the_old_file_is_kept(tmp_path):
    target = str(tmp_path / "bridge")
    (tmp_path / "bridge").write_bytes(b"old")
    os.setxattr(target, "security.selinux", b"system_u:object_r:container_runtime_exec_t:s0\0")
    files.replace_file(target, b"new")
    assert os.getxattr(target, "security.selinux") == b"system_u:object_r:container_runtime_exec_t:s0\0"


def test_sweep_takes_leftovers_of_a_killed_writer_only(tmp_path):
    program = (
        "import os, signal, sys\n"
        "from ansible_collections.nodenet.cni.plugins.module_utils.node import files\n"
        "files.stage_file(sys.argv[1], b'half')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path / "f")], check=False)
    assert killed.returncode == -signal.SIGKILL
    (leftover,) = temporary_names(tmp_path)
    at_work = files.stage_file(str(tmp_path / "g"), b"g")
    (tmp_path / "other").write_bytes(b"")
    assert files.sweep_temporary(str(tmp_path)) == [leftover]
    at_work.commit()
    assert sorted(os.listdir(str(tmp_path))) == ["g", "other"]
    assert files.sweep_temporary(str(tmp_path / "missing")) == []


def test_remove_file_takes_links_not_targets(tmp_path):
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "link").symlink_to("target")
    assert files.remove_file(str(tmp_path / "link")) is True
    assert files.remove_file(str(tmp_path / "link")) is False
    assert os.listdir(str(tmp_path)) == ["target"]


def test_make_directory(tmp_path, umask):
    wanted = tmp_path / "a" / "b"
    assert files.make_directory(str(wanted)) == [str(tmp_path / "a"), str(wanted)]
    assert [mode_of(tmp_path / "a"), mode_of(wanted)] == [0o755, 0o755]
    os.chmod(str(wanted), 0o700)
    assert files.make_directory(str(wanted)) == []
    assert mode_of(wanted) == 0o700


def test_make_directory_undoes_its_part_when_the_rest_fails(tmp_path):
    with pytest.raises(OSError, match="File name too long"):
        files.make_directory(str(tmp_path / "a" / "b" / ("x" * 300)))
    assert os.listdir(str(tmp_path)) == []


def test_remove_directories_leaves_what_is_in_use(tmp_path):
    created = files.make_directory(str(tmp_path / "a" / "b" / "c"))
    (tmp_path / "a" / "theirs").write_text("")
    files.remove_directories(created)
    assert [sorted(os.listdir(str(tmp_path / name))) for name in ("", "a")] == [["a"], ["theirs"]]


def test_make_directory_below_a_file(tmp_path):
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(NotADirectoryError) as caught:
        files.make_directory(str(tmp_path / "f" / "b"))
    assert caught.value.filename == str(tmp_path / "f")
