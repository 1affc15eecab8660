# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The store on real files: what is read, what is written, and what a failure leaves."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.host_local import lockwait, newfile, transaction
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import Address, parse_address
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.foreign import foreign_contents
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.lock import LockTimeout, timeout_from_environment
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.snapshot import Snapshot, strip_space
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.store import Store, StoreError, network_dir

OWNER = ("static.web", "eth0")


@pytest.fixture
def net(tmp_path):
    """A data dir with a network directory that holds two reservations."""
    directory = tmp_path / "net"
    directory.mkdir()
    (directory / "10.1.2.2").write_bytes(b"c1\r\neth0")
    (directory / "10.1.2.10").write_bytes(b"static.db\r\neth0")
    return directory


def tree(path):
    found = {}
    for here, directories, names in os.walk(str(path)):
        for name in directories:
            found[os.path.relpath(os.path.join(here, name), str(path))] = None
        for name in names:
            where = os.path.join(here, name)
            if stat.S_ISREG(os.lstat(where).st_mode):
                with open(where, "rb") as file:
                    found[os.path.relpath(where, str(path))] = file.read()
            else:
                found[os.path.relpath(where, str(path))] = "special"
    return found


def read(data_dir, network="net"):
    with Store(str(data_dir), network, create=False) as store, store.lock(5):
        return store.snapshot()


def addresses(*texts):
    return [(parse_address(text), *OWNER) for text in texts]


class TestReading:
    def test_reservations_come_sorted_by_address(self, net):
        found = read(net.parent).reservations
        assert [(str(one.address), one.container_id, one.ifname, one.static) for one in found] == [
            ("10.1.2.2", "c1", "eth0", False),
            ("10.1.2.10", "static.db", "eth0", True),
        ]

    def test_only_regular_files_named_like_an_address_are_read(self, net):
        (net / "10.1.2.3").symlink_to("10.1.2.2")
        (net / "10.1.2.4").mkdir()
        (net / "10.1.2.4" / "10.1.2.5").write_bytes(b"c1\r\neth0")
        (net / "lock").write_bytes(b"c1\r\neth0")
        (net / "last_reserved_ip.0").write_bytes(b"c1\r\neth0")
        (net / "10.1.2.2.bak").write_bytes(b"c1\r\neth0")
        (net / "cafe").write_bytes(b"c1\r\neth0")
        os.mkfifo(str(net / "10.1.2.6"))
        snapshot = read(net.parent)
        assert [one.name for one in snapshot.held_by("c1", "eth0")] == ["10.1.2.2"]
        for text in ("10.1.2.2", "10.1.2.3", "10.1.2.4", "10.1.2.6"):
            assert snapshot.is_taken(parse_address(text)), text
        assert not snapshot.is_taken(parse_address("10.1.2.5"))

    def test_other_spellings_are_found_by_owner_but_take_nothing(self, net):
        (net / "FD00::2").write_bytes(b"c9\r\neth0")
        snapshot = read(net.parent)
        address = parse_address("fd00::2")
        assert [one.address for one in snapshot.held_by("c9", "eth0")] == [address]
        assert not snapshot.is_taken(address)
        assert snapshot.holder(address) is None
        assert [one.canonical for one in snapshot.reservations] == [True, True, False]

    @pytest.mark.parametrize(
        ("content", "owner"),
        [
            (b"c1\r\neth0", ("c1", "eth0")),
            (b"  c1 \r\neth0\r\n", ("c1", "eth0")),
            (b"c1", ("c1", "")),
            (b"c1\n", ("c1", "")),
            (b"c1\neth0", ("c1", "eth0")),
            (b"", ("", "")),
            (b" \r\n ", ("", "")),
            (b"\xff\xfe\r\neth0", ("��", "eth0")),
            (b"c1\r\neth0\r\nrest", ("c1", "eth0\r\nrest")),
        ],
    )
    def test_what_a_content_says(self, net, content, owner):
        (net / "10.1.2.3").write_bytes(content)
        one = read(net.parent).holder(parse_address("10.1.2.3"))
        assert (one.container_id, one.ifname) == owner
        assert one.empty == (owner == ("", ""))

    def test_only_what_go_would_match_is_released(self, net):
        (net / "10.1.2.3").write_bytes(b"c1")
        (net / "10.1.2.4").write_bytes(b"c1\neth0")
        (net / "10.1.2.5").write_bytes("\u00a0c1\r\neth0\u2003\n".encode())
        snapshot = read(net.parent)
        assert [one.name for one in snapshot.to_release("c1", "eth0")] == ["10.1.2.2", "10.1.2.5"]
        assert [one.name for one in snapshot.held_by("c1", "eth0")] == ["10.1.2.2", "10.1.2.3", "10.1.2.5"]
        assert [one.name for one in snapshot.to_release("c1", "eth9")] == ["10.1.2.3"]
        assert snapshot.to_release("c", "eth0") == []

    def test_a_long_content_is_read_whole(self, net):
        container_id = "c" * 10_000
        (net / "10.1.2.3").write_bytes(container_id.encode() + b"\r\neth0")
        assert [one.name for one in read(net.parent).held_by(container_id, "eth0")] == ["10.1.2.3"]

    def test_the_white_space_of_go(self):
        assert strip_space("\u2003\u0085 x\x1c\u00a0\n".encode()) == b"x\x1c"
        assert strip_space(b"\xff \xfe") == b"\xff \xfe"
        assert strip_space("\u200b".encode()) == "\u200b".encode()

    def test_nothing_is_created_to_read(self, tmp_path):
        assert read(tmp_path).reservations == []
        assert tree(tmp_path) == {}

    def test_reading_leaves_all_times_alone(self, net):
        (net / "lock").write_bytes(b"")
        os.utime(str(net), (1, 2))
        os.utime(str(net / "lock"), (3, 4))
        before = [os.stat(str(path)) for path in (net, net / "lock")]
        read(net.parent)
        after = [os.stat(str(path)) for path in (net, net / "lock")]
        assert [(one.st_mtime_ns, one.st_ctime_ns, one.st_atime_ns) for one in after] == [
            (one.st_mtime_ns, one.st_ctime_ns, one.st_atime_ns) for one in before
        ]

    @pytest.mark.parametrize("create", [True, False])
    def test_a_directory_that_is_a_file(self, tmp_path, create):
        (tmp_path / "net").write_bytes(b"")
        with pytest.raises(StoreError, match="not a directory"), Store(str(tmp_path), "net", create=create):
            pass
        with pytest.raises(StoreError, match="not a directory"), Store(str(tmp_path / "net"), "n", create=create):
            pass

    @pytest.mark.parametrize("create", [True, False])
    def test_a_path_with_a_nul(self, tmp_path, create):
        with pytest.raises(StoreError, match="invalid argument"), Store(str(tmp_path / "a\0b"), "net", create=create):
            pass

    def test_a_symlinked_directory_is_followed(self, net):
        """H11: Go never finds anything in one."""
        (net.parent / "other").symlink_to("net")
        assert len(read(net.parent, "other").held_by("c1", "eth0")) == 1

    def test_what_go_would_take_for_an_owner(self, net):
        (net / "sub").mkdir()
        (net / "sub" / "10.1.2.9").write_bytes(b"c1\r\neth0\n")
        (net / "10.1.2.2.bak").write_bytes(b"c1\r\neth0")
        os.mkfifo(str(net / "pipe"))
        with Store(str(net.parent), "net", create=False) as store:
            assert dict(foreign_contents(store)) == {
                "sub/10.1.2.9": b"c1\r\neth0", "10.1.2.2.bak": b"c1\r\neth0", "pipe": b"",
            }  # fmt: skip

    def test_paths_are_cleaned_like_go_does(self):
        assert network_dir("/var//lib/../lib/cni/", "n") == "/var/lib/cni/n"
        assert network_dir("//x", "n") == "/x/n"
        assert network_dir("rel/.", "n") == "rel/n"


class TestWriting:
    def test_layout_and_modes(self, tmp_path):
        with Store(str(tmp_path / "a" / "b"), "net") as store, store.lock(5):
            snapshot = store.snapshot()
            assert store.reserve(snapshot, parse_address("10.1.2.3"), *OWNER)
            assert not store.reserve(snapshot, parse_address("10.1.2.3"), "other", "eth0")
            store.set_last_reserved(0, parse_address("10.1.2.3"))
        assert tree(tmp_path) == {
            "a": None,
            "a/b": None,
            "a/b/net": None,
            "a/b/net/10.1.2.3": b"static.web\r\neth0",
            "a/b/net/last_reserved_ip.0": b"10.1.2.3",
            "a/b/net/lock": b"",
        }
        modes = {name: stat.S_IMODE(os.stat(str(tmp_path / "a" / "b" / name)).st_mode) for name in (".", "net")}
        modes.update({name: stat.S_IMODE(os.stat(str(tmp_path / "a" / "b" / "net" / name)).st_mode) for name in
                      ("10.1.2.3", "last_reserved_ip.0", "lock")})  # fmt: skip
        assert modes == {".": 0o755, "net": 0o755, "10.1.2.3": 0o600, "last_reserved_ip.0": 0o600, "lock": 0o750}

    def test_the_rotation_is_a_hint(self, net):
        with Store(str(net.parent), "net") as store:
            assert store.last_reserved(0) is None
            store.set_last_reserved(0, parse_address("fd00::1234"))
            store.set_last_reserved(0, parse_address("10.1.2.7"))
            assert (store.last_reserved(0), store.last_reserved_text(0)) == (parse_address("10.1.2.7"), "10.1.2.7")
            (net / "last_reserved_ip.1").mkdir()
            store.set_last_reserved(1, parse_address("10.1.2.7"))
            assert store.last_reserved(1) is None
            os.mkfifo(str(net / "last_reserved_ip.2"))
            store.set_last_reserved(2, parse_address("10.1.2.7"))
            (net / "last_reserved_ip.3").write_bytes(b"10.1.2.7\n")
            assert store.last_reserved(3) is None
            assert len(store.warnings) == 3
            assert all(str(net) in warning for warning in store.warnings)

    def test_an_old_empty_file_is_given_away_again(self, net):
        """H18: no DEL can ever match it."""
        old, young, future = net / "10.1.2.3", net / "10.1.2.4", net / "10.1.2.5"
        for path, age in ((old, 61), (young, 50), (future, -1000)):
            path.write_bytes(b"")
            os.utime(str(path), (time.time() - age,) * 2)
        with Store(str(net.parent), "net") as store, store.lock(5):
            snapshot = store.snapshot()
            assert [snapshot.is_taken(parse_address(path.name)) for path in (old, young, future)] == [False, True, True]
            assert store.reserve(snapshot, parse_address("10.1.2.3"), *OWNER)
            assert not store.reserve(snapshot, parse_address("10.1.2.4"), *OWNER)
        assert old.read_bytes() == b"static.web\r\neth0"
        assert (young.read_bytes(), future.read_bytes()) == (b"", b"")

    def test_a_failing_unlink_is_named_and_the_others_go(self, net):
        """H6: for Go such a DEL succeeds."""
        (net / "10.1.2.10").unlink()
        (net / "10.1.2.10").mkdir()
        with Store(str(net.parent), "net") as store, store.lock(5):
            snapshot = store.snapshot()
            one = snapshot.holder(parse_address("10.1.2.2"))
            blocked = snapshot.holder(parse_address("10.1.2.2"))
            blocked = type(one)(parse_address("10.1.2.10"), "10.1.2.10", b"x", 0.0)
            with pytest.raises(StoreError, match="^remove .*/net/10.1.2.10: is a directory$") as caught:
                store.release(snapshot, [blocked, one])
        assert caught.value.code == 5
        assert not (net / "10.1.2.2").exists()


class TestBatches:
    def apply(self, net, add, remove):
        with Store(str(net.parent), "net") as store, store.lock(5):
            snapshot = store.snapshot()
            going = [snapshot.holder(parse_address(text)) for text in remove]
            transaction.apply(store, snapshot, add, going)
            fresh = store.snapshot()
            assert fresh.names == snapshot.names
            assert {name: pair[0] for name, pair in fresh.files.items()} == {
                name: pair[0] for name, pair in snapshot.files.items()
            }

    def test_add_and_remove(self, net):
        self.apply(net, addresses("10.1.2.3", "fd00::3"), ["10.1.2.2"])
        assert tree(net) == {
            "10.1.2.3": b"static.web\r\neth0",
            "fd00::3": b"static.web\r\neth0",
            "10.1.2.10": b"static.db\r\neth0",
            "lock": b"",
        }

    def test_two_owners_may_swap(self, net):
        add = [(parse_address("10.1.2.2"), "static.db", "eth0"), (parse_address("10.1.2.10"), "c1", "eth0")]
        self.apply(net, add, ["10.1.2.2", "10.1.2.10"])
        assert tree(net) == {"10.1.2.2": b"static.db\r\neth0", "10.1.2.10": b"c1\r\neth0", "lock": b""}

    def test_more_files_than_may_be_open(self, net):
        add = [(Address(32, parse_address("10.8.0.0").number + n), f"static.s{n}", "eth0") for n in range(1500)]
        self.apply(net, add, ["10.1.2.2"])
        assert len(tree(net)) == 1502

    def test_nothing_to_do_touches_nothing(self, net):
        self.apply(net, [], [])
        assert set(tree(net)) == {"10.1.2.2", "10.1.2.10", "lock"}

    @pytest.mark.parametrize("blocker", ["file", "directory", "dangling link"])
    def test_an_error_in_the_middle_undoes_everything(self, net, blocker):
        path = net / "10.1.2.5"
        (net / "10.1.2.2").write_bytes(b" c1\n")
        os.utime(str(net / "10.1.2.2"), (5, 6))
        (net / "10.1.2.2").chmod(0o640)
        with Store(str(net.parent), "net") as store, store.lock(5):
            snapshot = store.snapshot()
            if blocker == "file":
                path.write_bytes(b"")
            elif blocker == "directory":
                path.mkdir()
            else:
                path.symlink_to("nowhere")
            before = tree(net)
            add = [(parse_address("10.1.2.2"), "static.new", "eth0"), *addresses("10.1.2.4", "10.1.2.5", "10.1.2.6")]
            with pytest.raises(StoreError, match="^open .*/10.1.2.5: file exists$"):
                transaction.apply(store, snapshot, add, [snapshot.holder(parse_address("10.1.2.2"))])
            assert store.warnings == []
            assert tree(net) == before
            found = os.stat(str(net / "10.1.2.2"))
            assert (found.st_mtime, stat.S_IMODE(found.st_mode)) == (6, 0o640)

    def test_a_removal_that_fails_undoes_the_additions(self, net):
        with Store(str(net.parent), "net") as store, store.lock(5):
            snapshot = store.snapshot()
            going = [snapshot.holder(parse_address("10.1.2.2")), snapshot.holder(parse_address("10.1.2.10"))]
            (net / "10.1.2.10").unlink()
            (net / "10.1.2.10").mkdir()
            before = tree(net)
            with pytest.raises(StoreError, match="^remove .*/10.1.2.10: is a directory$"):
                transaction.apply(store, snapshot, addresses("10.1.2.3"), going)
            assert tree(net) == before

    def test_a_store_that_was_made_for_nothing_goes_again(self, tmp_path):
        with Store(str(tmp_path / "a"), "net") as store, store.lock(5):
            store.discard()
        assert tree(tmp_path) == {}

    def test_a_store_that_could_not_be_made_leaves_no_parents(self, tmp_path):
        store = Store(str(tmp_path / "a" / "b"), "n" * 256)
        with pytest.raises(StoreError, match="file name too long"), store:
            pass
        assert set(tree(tmp_path)) == {"a", "a/b"}
        store.discard()
        assert tree(tmp_path) == {}

    def test_a_store_that_was_there_stays(self, net):
        with Store(str(net.parent), "net") as store, store.lock(5):
            store.discard()
        assert "10.1.2.2" in tree(net)
        (net.parent / "empty").mkdir()
        with Store(str(net.parent), "empty") as store, store.lock(5):
            store.discard()
        assert tree(net.parent / "empty") == {"lock": b""}


class TestFilesBesideTheDirectory:
    """Where the file system has no unnamed files, a temporary name is used, outside of the directory."""

    @pytest.fixture
    def without_tmpfile(self, monkeypatch):
        # vfat and NFS have none, and neither can be mounted everywhere the tests run
        monkeypatch.setattr(newfile, "_unnamed", lambda directory: None)

    def test_the_same_result_and_nothing_left(self, net, without_tmpfile):
        with Store(str(net.parent), "net") as store, store.lock(5):
            snapshot = store.snapshot()
            assert store.reserve(snapshot, parse_address("10.1.2.3"), *OWNER)
            assert not store.reserve(snapshot, parse_address("10.1.2.3"), *OWNER)
            transaction.apply(store, snapshot, addresses("10.1.2.4", "10.1.2.5"), [])
        assert os.listdir(str(net.parent)) == ["net"]
        assert stat.S_IMODE(os.stat(str(net / "10.1.2.3")).st_mode) == 0o600

    def test_leftovers_of_a_crash_are_swept_and_only_our_own(self, net):
        for name in (".nodenet-net~1.1", ".nodenet-net2~1.1", ".nodenet-other", "keep"):
            (net.parent / name).write_bytes(b"")
        (net.parent / ".nodenet-net~dir").mkdir()
        with Store(str(net.parent), "net") as store, store.lock(5):
            transaction.apply(store, store.snapshot(), addresses("10.1.2.4", "10.1.2.5"), [])
        # what cannot be removed disturbs nobody
        assert sorted(os.listdir(str(net.parent))) == [
            ".nodenet-net2~1.1", ".nodenet-net~dir", ".nodenet-other", "keep", "net",
        ]  # fmt: skip

    @pytest.fixture
    def mounted(self, net):
        """The network's directory as a mount point of its own."""
        if os.getuid():
            pytest.skip("not run: mounting needs root")
        subprocess.run(["mount", "-t", "tmpfs", "none", str(net)], check=True)
        yield net
        subprocess.run(["umount", str(net)], check=True)

    def test_a_mount_point_without_unnamed_files_is_refused(self, mounted, without_tmpfile):
        with Store(str(mounted.parent), "net") as store, store.lock(5):
            snapshot = store.snapshot()
            with pytest.raises(StoreError, match="mount point"):
                store.reserve(snapshot, parse_address("10.1.2.3"), *OWNER)
            with pytest.raises(StoreError, match="mount point"):
                transaction.apply(store, snapshot, addresses("10.1.2.3"), [])
        assert tree(mounted) == {"lock": b""}

    def test_a_mount_point_with_unnamed_files_does_as_well_as_it_can(self, mounted):
        with Store(str(mounted.parent), "net") as store, store.lock(5):
            snapshot = store.snapshot()
            transaction.apply(store, snapshot, addresses("10.1.2.3", "10.1.2.4"), [])
            going = snapshot.reservations
            add = [(parse_address("10.1.2.3"), "static.new", "eth0")]
            transaction.apply(store, snapshot, add, going)
            assert tree(mounted) == {"10.1.2.3": b"static.new\r\neth0", "lock": b""}
            # what cannot be put back is said
            (mounted / "10.1.2.9").mkdir()
            snapshot.names.discard("10.1.2.9")
            going = list(snapshot.reservations)
            with pytest.raises(StoreError, match="file exists"):
                transaction.apply(store, snapshot, [(parse_address("10.1.2.3"), *OWNER), *addresses("10.1.2.9")], going)
            assert store.warnings == [f"{mounted}/10.1.2.3 is gone: its directory is a mount point of its own"]


HOLD = """
import fcntl, os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_CREAT, 0o600)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


class TestLock:
    def holder(self, path, seconds):
        process = subprocess.Popen([sys.executable, "-c", HOLD, str(path), str(seconds)], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"held\n"
        return process

    def test_a_held_lock_is_given_up_on_and_its_holder_named(self, net):
        process = self.holder(net / "lock", 60)
        try:
            before = signal.getsignal(signal.SIGALRM)
            with Store(str(net.parent), "net") as store:
                with pytest.raises(LockTimeout) as caught, store.lock(0.3):
                    pass
                assert caught.value.code == 11
                assert caught.value.msg.startswith(
                    f"cannot lock {net}/lock within 0.3 s: process {process.pid} (python"
                )
                with pytest.raises(LockTimeout), store.lock(0):
                    pass
            assert signal.getsignal(signal.SIGALRM) == before
            assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        finally:
            process.kill()
            process.communicate()

    def test_a_late_ring_of_the_timer_does_no_harm(self, net, monkeypatch):
        """The timer goes on ringing until it is disarmed; here it does so while we are at it."""
        process = self.holder(net / "lock", 60)
        real = lockwait._signal.setitimer

        def slow(which, seconds, interval=0.0):
            if not seconds:
                time.sleep(0.2)
            return real(which, seconds, interval)

        monkeypatch.setattr(lockwait._signal, "setitimer", slow)
        try:
            with Store(str(net.parent), "net") as store, pytest.raises(LockTimeout), store.lock(0.1):
                pass
        finally:
            process.kill()
            process.communicate()

    def test_a_lock_that_is_freed_in_time_is_had(self, net):
        process = self.holder(net / "lock", 0.3)
        try:
            with Store(str(net.parent), "net") as store, store.lock(30):
                assert process.stdout.read() == b""
        finally:
            process.kill()
            process.communicate()

    def test_readers_share_it_and_writers_do_not(self, net):
        (net / "lock").write_bytes(b"")
        with Store(str(net.parent), "net", create=False) as one, one.lock(0):
            with Store(str(net.parent), "net", create=False) as other, other.lock(0):
                pass
            with Store(str(net.parent), "net") as writer, pytest.raises(LockTimeout), writer.lock(0):
                pass

    def test_a_lock_file_replaced_while_we_waited_is_not_taken_for_the_lock(self, net):
        process = self.holder(net / "lock", 0.4)
        try:
            (net / "lock").unlink()
            (net / "lock").write_bytes(b"")
            with Store(str(net.parent), "net") as store, store.lock(5):
                fd = os.open(str(net / "lock"), os.O_RDONLY)
                try:
                    with pytest.raises(BlockingIOError):
                        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                finally:
                    os.close(fd)
        finally:
            process.kill()
            process.communicate()

    def test_it_is_freed_at_the_end_also_after_an_error(self, net):
        with Store(str(net.parent), "net") as store:
            with pytest.raises(RuntimeError), store.lock(1):
                raise RuntimeError
            with store.lock(0):
                pass

    @pytest.mark.parametrize("create", [True, False])
    def test_a_lock_that_is_a_directory(self, net, create):
        (net / "lock").mkdir()
        store = Store(str(net.parent), "net", create=create)
        with store, pytest.raises(StoreError, match="^is a directory$"), store.lock(0):
            pass

    @pytest.mark.parametrize("timeout", [1e-6, 5e-5, 1e-3])
    def test_a_very_short_wait_is_one_that_fails(self, net, timeout):
        """The signal may come at any moment: also before the wait, and after it."""
        code = (
            "import fcntl, os, sys\nsys.path[:0] = sys.argv[2:]\n"
            "from ansible_collections.nodenet.cni.plugins.module_utils.host_local.lock import flock\n"
            "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
            f"print(sum(flock(fd, fcntl.LOCK_EX, {timeout}) for _ in range(200)))\n"
            "import time; time.sleep(0.2)\n"
        )
        process = self.holder(net / "lock", 60)
        try:
            done = subprocess.run(
                [sys.executable, "-c", code, str(net / "lock"), *sys.path], stdout=subprocess.PIPE, check=False
            )
        finally:
            process.kill()
            process.communicate()
        assert (done.returncode, done.stdout) == (0, b"0\n")

    def test_a_blocked_alarm_ends_the_wait_all_the_same(self, net):
        process = self.holder(net / "lock", 60)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        try:
            with Store(str(net.parent), "net") as store, pytest.raises(LockTimeout), store.lock(0.2):
                pass
            assert signal.SIGALRM in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
            process.kill()
            process.communicate()

    def test_the_timer_of_the_caller_goes_on(self, net):
        process = self.holder(net / "lock", 60)
        signal.setitimer(signal.ITIMER_REAL, 100)
        try:
            with Store(str(net.parent), "net") as store, pytest.raises(LockTimeout), store.lock(0.2):
                pass
            assert 90 < signal.getitimer(signal.ITIMER_REAL)[0] <= 100
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            process.kill()
            process.communicate()

    def test_a_directory_that_goes_while_we_wait_is_made_again(self, net):
        process = self.holder(net / "lock", 0.5)
        try:
            with Store(str(net.parent), "net") as store:
                shutil.rmtree(str(net))
                with store.lock(5):
                    assert store.reserve(store.snapshot(), parse_address("10.1.2.3"), *OWNER)
            assert tree(net) == {"10.1.2.3": b"static.web\r\neth0", "lock": b""}
        finally:
            process.kill()
            process.communicate()

    def test_waiting_in_a_thread_is_refused_by_python_and_not_by_chance(self, net):
        """Signals go to the main thread only; a caller that uses threads learns it at once."""
        process = self.holder(net / "lock", 60)
        caught = []

        def wait():
            try:
                with Store(str(net.parent), "net") as store, store.lock(1):
                    pass
            except ValueError as error:
                caught.append(str(error))

        try:
            thread = threading.Thread(target=wait)
            thread.start()
            thread.join(10)
            assert len(caught) == 1
            assert "main thread" in caught[0]
        finally:
            process.kill()
            process.communicate()

    @pytest.mark.parametrize(("text", "seconds"), [(None, 60.0), ("", 60.0), ("2.5", 2.5), ("0", 0.0)])
    def test_the_time_out_of_the_environment(self, text, seconds):
        assert timeout_from_environment(text) == seconds

    @pytest.mark.parametrize("text", ["x", "-1", "nan", "inf", "86401"])
    def test_what_is_no_time_out(self, text):
        with pytest.raises(
            Exception,
            match="^Cannot wait for the lock: CNI_LOCK_TIMEOUT must be a number of seconds from 0 to 86400, not ",
        ):
            timeout_from_environment(text)


def test_a_snapshot_of_nothing():
    snapshot = Snapshot.nothing(0.0)
    assert (snapshot.reservations, snapshot.names, snapshot.held_by("a", "b")) == ([], set(), [])
