# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Batches on real directories."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import parse_address
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.batch import run_batch
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.config import load_ipam_config
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.reservations import make_plan
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.store import Store
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.wanted import read_batch

SETS = load_ipam_config(
    {"name": "lan", "cniVersion": "1.0.0", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/16"}]]}}
).sets


def run(data_dir, items, check_mode=False, timeout=5.0, **options):
    wanted = read_batch(items, "lan")
    return run_batch(
        str(data_dir),
        "lan",
        lambda snapshot: make_plan(snapshot, SETS, wanted, "network lan", **options),
        check_mode,
        timeout,
    )[0]


def tree(root):
    """Every path below *root* with what must not change: type, mode, times, content."""
    found = {}
    for here, directories, names in os.walk(str(root)):
        for name in [""] + directories + names:
            path = os.path.join(here, name)
            status = os.lstat(path)
            content = b""
            if os.path.isfile(path):
                with open(path, "rb") as stream:
                    content = stream.read()
            found[path] = (status.st_mode, status.st_mtime_ns, status.st_ctime_ns, content)
    return found


def test_files_are_as_the_plugin_writes_them(tmp_path):
    run(tmp_path / "data", [{"owner": "a", "addresses": ["10.1.2.3"]}])
    path = tmp_path / "data" / "lan" / "10.1.2.3"
    assert path.read_bytes() == b"static.a\r\neth0"
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(str(path.parent))) == ["10.1.2.3", "lock"]


def test_the_rotation_stays_where_it_is(tmp_path):
    run(tmp_path, [{"owner": "a", "addresses": ["10.1.2.3"]}])
    (tmp_path / "lan" / "last_reserved_ip.0").write_text("10.1.0.9")
    run(tmp_path, [{"owner": "b"}, {"owner": "a", "state": "absent"}])
    assert (tmp_path / "lan" / "last_reserved_ip.0").read_text() == "10.1.0.9"
    assert sorted(os.listdir(str(tmp_path / "lan"))) == ["10.1.0.2", "last_reserved_ip.0", "lock"]


def test_check_mode_predicts_and_leaves_no_trace(tmp_path):
    items = [{"owner": "a"}, {"owner": "b", "addresses": ["10.1.7.7"]}]
    before = tree(tmp_path)
    predicted = run(tmp_path / "data", items, check_mode=True)
    assert tree(tmp_path) == before
    made = run(tmp_path / "data", items)
    assert [str(one) for one in predicted.add] == [str(one) for one in made.add]
    before = tree(tmp_path)
    assert not run(tmp_path / "data", items, check_mode=True).changed
    assert not run(tmp_path / "data", items).changed
    assert tree(tmp_path) == before


def test_a_release_creates_nothing(tmp_path):
    before = tree(tmp_path)
    assert not run(tmp_path / "data", [{"owner": "a", "state": "absent"}]).changed
    assert tree(tmp_path) == before


def test_a_refused_batch_creates_nothing(tmp_path):
    before = tree(tmp_path)
    with pytest.raises(NodenetError):
        run(tmp_path / "data", [{"owner": "a"}, {"owner": "b", "addresses": ["10.1.0.1"]}])
    assert tree(tmp_path) == before


def test_nothing_to_do_without_a_lock_file_makes_none(tmp_path):
    (tmp_path / "lan").mkdir()
    (tmp_path / "lan" / "10.1.2.3").write_bytes(b"static.a\r\neth0")
    assert not run(tmp_path, [{"owner": "a"}]).changed
    assert os.listdir(str(tmp_path / "lan")) == ["10.1.2.3"]


def test_swap_on_disk(tmp_path):
    run(tmp_path, [{"owner": "a", "addresses": ["10.1.2.3"]}, {"owner": "b", "addresses": ["10.1.2.4"]}])
    run(tmp_path, [{"owner": "a", "addresses": ["10.1.2.4"]}, {"owner": "b", "addresses": ["10.1.2.3"]}])
    assert (tmp_path / "lan" / "10.1.2.3").read_bytes() == b"static.b\r\neth0"
    assert (tmp_path / "lan" / "10.1.2.4").read_bytes() == b"static.a\r\neth0"


def test_old_empty_file_is_replaced(tmp_path):
    (tmp_path / "lan").mkdir()
    path = tmp_path / "lan" / "10.1.0.2"
    path.write_bytes(b"")
    os.utime(str(path), (time.time() - 61, time.time() - 61))
    assert run(tmp_path, [{"owner": "a"}]).changed
    assert path.read_bytes() == b"static.a\r\neth0"


def test_a_thousand_at_once_and_again(tmp_path):
    items = [{"owner": f"o{number}"} for number in range(1000)]
    started = time.monotonic()
    assert len(run(tmp_path, items).add) == 1000
    assert not run(tmp_path, items).changed
    assert time.monotonic() - started < 20
    names = set(os.listdir(str(tmp_path / "lan"))) - {"lock"}
    assert len(names) == 1000
    assert (tmp_path / "lan" / "10.1.3.233").read_bytes() == b"static.o999\r\neth0"


def held_lock(tmp_path):
    """A process that holds the lock until its standard input is closed."""
    code = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True);"
        "sys.stdin.read()"
    )
    path = str(tmp_path / "lan" / "lock")
    process = subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    return process


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_held_lock_is_named_with_its_holder(tmp_path, check_mode):
    (tmp_path / "lan").mkdir()
    (tmp_path / "lan" / "lock").write_bytes(b"")
    before = tree(tmp_path)
    process = held_lock(tmp_path)
    try:
        started = time.monotonic()
        with pytest.raises(NodenetError) as caught:
            run(tmp_path, [{"owner": "a"}], check_mode=check_mode, timeout=0.3)
        assert 0.2 < time.monotonic() - started < 5
        assert f"Cannot change reservations of network lan in {tmp_path}/lan: " in str(caught.value)
        assert f"{tmp_path}/lan/lock" in str(caught.value)
        assert f"process {process.pid}" in str(caught.value)
    finally:
        process.communicate()
    assert tree(tmp_path) == before
    assert run(tmp_path, [{"owner": "a"}]).changed


def test_the_time_out_named_is_the_one_asked_for(tmp_path):
    """Also when the first look, which takes no lock if there is none, has used up a part of it."""
    (tmp_path / "lan").mkdir()
    holders = []

    def decide(snapshot):
        if not holders:
            (tmp_path / "lan" / "lock").write_bytes(b"")
            holders.append(held_lock(tmp_path))
        return make_plan(snapshot, SETS, read_batch([{"owner": "a"}], "lan"), "network lan")

    try:
        with pytest.raises(NodenetError, match=r"within 0\.75 s: process \d+"):
            run_batch(str(tmp_path), "lan", decide, False, 0.75)
    finally:
        for process in holders:
            process.communicate()


def test_readers_do_not_wait_for_each_other(tmp_path):
    run(tmp_path, [{"owner": "a"}])
    with open(str(tmp_path / "lan" / "lock")) as stream:
        fcntl.flock(stream, fcntl.LOCK_SH)
        assert not run(tmp_path, [{"owner": "a"}], timeout=0.2).changed


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("where", ["data", "data/lan"])
def test_a_file_where_a_directory_should_be(tmp_path, where, check_mode):
    path = tmp_path / where
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    before = tree(tmp_path)
    with pytest.raises(NodenetError) as caught:
        run(tmp_path / "data", [{"owner": "a"}], check_mode=check_mode)
    assert str(caught.value).startswith(f"Cannot change reservations of network lan in {tmp_path}/data/lan: ")
    assert "not a directory" in str(caught.value)
    assert tree(tmp_path) == before


def link_to_nowhere(path):
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(path.parent / "nowhere")


@pytest.mark.parametrize(
    ("path", "make", "words"),
    [
        ("data", link_to_nowhere, "mkdir {}: file exists"),
        ("data/lan", link_to_nowhere, "mkdir {}: file exists"),
        ("data/lan/lock", lambda path: path.mkdir(parents=True), "is a directory"),
    ],
)
def test_check_mode_says_what_the_real_run_says(tmp_path, path, make, words):
    make(tmp_path / path)
    before = tree(tmp_path)
    texts = set()
    for check_mode in (True, False):
        with pytest.raises(NodenetError) as caught:
            run(tmp_path / "data", [{"owner": "a"}], check_mode=check_mode)
        texts.add(str(caught.value))
        assert tree(tmp_path) == before
    expected = f"Cannot change reservations of network lan in {tmp_path}/data/lan: "
    assert texts == {expected + words.format(tmp_path / path)}


def test_an_odd_name_is_put_right_so_that_the_address_is_taken(tmp_path):
    """Only the canonical name keeps the plugins from handing the address out again."""
    address = parse_address("10.1.0.5")
    (tmp_path / "lan").mkdir()
    (tmp_path / "lan" / "::ffff:10.1.0.5").write_bytes(b"static.a\r\neth0")
    with Store(str(tmp_path), "lan") as store, store.lock(5):
        assert not store.snapshot().is_taken(address)
    assert run(tmp_path, [{"owner": "a", "addresses": ["10.1.0.5"]}]).changed
    assert sorted(os.listdir(str(tmp_path / "lan"))) == ["10.1.0.5", "lock"]
    with Store(str(tmp_path), "lan") as store, store.lock(5):
        snapshot = store.snapshot()
        assert snapshot.is_taken(address)
        assert not store.reserve(snapshot, address, "abc", "eth0")
    assert not run(tmp_path, [{"owner": "a", "addresses": ["10.1.0.5"]}]).changed


@pytest.fixture
def mounted(tmp_path):
    """A function that mounts a tmpfs with the given options on a fresh directory."""
    if os.geteuid() != 0:
        pytest.skip("not run: mounting a file system needs root")
    places = []

    def mount(options):
        place = tmp_path / f"mount{len(places)}"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)
        places.append(place)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("exists", [False, True])
def test_read_only_file_system(mounted, exists, check_mode):
    place = mounted("size=1m")
    if exists:
        run(place, [{"owner": "a"}])
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    before = tree(place)
    with pytest.raises(NodenetError) as caught:
        run(place, [{"owner": "b"}], check_mode=check_mode)
    assert str(caught.value).startswith("Cannot change reservations ")
    assert "read-only" in str(caught.value)
    assert tree(place) == before
    if exists:
        assert not run(place, [{"owner": "a"}], check_mode=check_mode).changed


@pytest.mark.parametrize("options", ["size=64k", "nr_inodes=20"])
@pytest.mark.parametrize("exists", [False, True])
def test_full_file_system(mounted, exists, options):
    place = mounted(options)
    if exists:
        run(place, [{"owner": "a"}])
    names = tree(place).keys()
    held = tree(place).get(f"{place}/lan/10.1.0.2")
    with pytest.raises(NodenetError) as caught:
        run(place, [{"owner": f"b{number}"} for number in range(200)])
    assert str(caught.value).startswith(f"Cannot change reservations of network lan in {place}/lan: ")
    assert "no space left on device" in str(caught.value)
    assert tree(place).keys() == names
    assert tree(place).get(f"{place}/lan/10.1.0.2") == held


def test_what_could_not_be_put_back_is_said(mounted, tmp_path):
    """Files of a directory that is a mount point of its own cannot wait elsewhere while the batch is under way."""
    place = mounted("size=1m")
    (tmp_path / "data").mkdir()
    run(tmp_path / "data", [{"owner": "a", "addresses": ["10.1.0.5"]}])
    directory = tmp_path / "data" / "lan"
    subprocess.run(["mount", "--bind", str(place), str(directory)], check=True)
    try:
        run(tmp_path / "data", [{"owner": "a", "addresses": ["10.1.0.5"]}])
        looks = []

        def decide(snapshot):
            items = [{"owner": "a", "addresses": ["10.1.0.6"]}, {"owner": "b", "addresses": ["10.1.0.5"]}]
            items.append({"owner": "c", "addresses": ["10.1.0.9"]})
            looks.append(snapshot)
            if len(looks) == 2:
                (directory / "10.1.0.9").mkdir()  # by somebody who does not care for the lock
            return make_plan(snapshot, SETS, read_batch(items, "lan"), "network lan")

        with pytest.raises(NodenetError) as caught:
            run_batch(str(tmp_path / "data"), "lan", decide, False, 5.0)
    finally:
        subprocess.run(["umount", str(directory)], check=True)
    assert str(caught.value) == (
        f"Cannot change reservations of network lan in {directory}: open {directory}/10.1.0.9: file exists; "
        f"{directory}/10.1.0.5 is gone: its directory is a mount point of its own"
    )
    assert caught.value.facts == {"where": str(directory)}
