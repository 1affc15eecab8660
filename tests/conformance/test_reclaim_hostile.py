# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Freeing leaked addresses on nodes that are odd, damaged or busy, and runs that end half way."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal

import pytest
from reclaim_node import Node, addresses, reasons, sandbox

A, B, C, D = (sandbox(number) for number in range(4))


@pytest.fixture
def node(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    made = Node(tmp_path)
    made.network()
    made.containerd(A)
    made.hold("192.0.2.2", A)
    made.hold("192.0.2.3", B)
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def in_time(seconds=10):
    """End what hangs in the block; the lock may be held there, and pods wait for it."""

    def end(_number, _frame):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# --- evidence


@pytest.mark.parametrize("kind", ["fifo", "nested", "nul", "long"])
def test_what_is_no_entry_of_a_cache_neither_stops_nor_holds_up_a_run(node, kind):
    path = node.cache(B)
    if kind == "fifo":
        path.unlink()
        os.mkfifo(str(path))
    elif kind == "nested":
        path.write_text("[" * 200000)
    elif kind == "nul":
        path.write_text(path.read_text().replace('"netns": ""', '"netns": "/run/\\u0000x"'))
    else:
        path.write_text(json.dumps(dict(json.loads(path.read_text()), netns="/" + "x" * 5000)))
    with in_time():
        assert addresses(node.gc()["removed"]) == ["192.0.2.3"]


def test_a_cache_entry_too_large_to_be_one_frees_nothing(node):
    """It cannot be told whether its owner is alive."""
    path = node.cache(B)
    with open(str(path), "ab") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(Exception, match="file too large"):
        node.gc()
    assert node.held() == ["192.0.2.2", "192.0.2.3"]


@pytest.mark.parametrize(
    "content", ["[" * 200000, '[{"id": 5, "metadata": "{}"}]', "[null]", '[{"id": "a", "metadata": "[[[["}]']
)
def test_a_storage_that_makes_no_sense_frees_nothing(node, content):
    folder = node.storage / "overlay-containers"
    folder.mkdir(parents=True)
    (folder / "containers.json").write_text(content)
    with pytest.raises(Exception, match="Cannot tell who is alive on this node: .*cannot be understood"):
        node.gc()
    assert node.held() == ["192.0.2.2", "192.0.2.3"]


def test_a_storage_file_that_nobody_writes_does_not_hold_up_a_run(node):
    folder = node.storage / "overlay-containers"
    folder.mkdir(parents=True)
    os.mkfifo(str(folder / "containers.json"))
    with in_time(), pytest.raises(Exception, match="Cannot tell who is alive on this node"):
        node.gc()
    assert node.held() == ["192.0.2.2", "192.0.2.3"]


# --- runs that end half way, and the way back


def test_restore_goes_on_where_a_killed_one_ended(node):
    """The reservation is back, the entry of the result cache is not yet."""
    cache = node.cache(B)
    before = cache.read_bytes()
    run_id = node.gc()["run_id"]
    assert not cache.exists()
    node.restore(run_id)
    cache.unlink()
    result = node.restore(run_id)
    assert cache.read_bytes() == before
    assert result["changed"]
    assert not node.restore(run_id)["changed"]


def test_restore_of_an_empty_file_brings_back_no_cache_entry_of_others(node):
    cache = node.cache(B)
    node.hold("192.0.2.4", b"")
    run_id = node.gc()["run_id"]
    node.hold("192.0.2.3", D)
    assert addresses(node.restore(run_id)["added"]) == ["192.0.2.4"]
    assert not cache.exists()


def test_restore_leaves_an_address_that_a_holder_file_takes(node):
    run_id = node.gc()["run_id"]
    node.hold("192.0.2.3.holder", D)
    result = node.restore(run_id)
    assert result["conflicts"] == [{"address": "192.0.2.3", "wanted_by": B, "held_by": D}]
    assert node.held() == ["192.0.2.2", "192.0.2.3.holder"]


def test_restore_over_an_empty_file_is_a_conflict(node):
    run_id = node.gc()["run_id"]
    node.hold("192.0.2.3", b"")
    result = node.restore(run_id)
    assert [one["address"] for one in result["conflicts"]] == ["192.0.2.3"]


@pytest.mark.parametrize(
    ("where", "change"),
    [
        ("entries", {"mtime_ns": 1 << 80}),
        ("entries", {"mode": "0600"}),
        ("entries", {"name": "192.0.2.3/../x"}),
        ("entries", {"name": "192.0.2.300"}),
        ("entries", {"content": 5}),
        ("cache", {"path": None}),
        ("cache", {"path": "x\0"}),
        ("cache", {"mode": None}),
    ],
)
def test_restore_from_a_damaged_journal_changes_nothing(node, where, change):
    from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError

    node.cache(B)
    freed = node.gc()
    with open(freed["journal"], encoding="utf-8") as stream:
        document = json.load(stream)
    document["networks"][0][where][0].update(change)
    with open(freed["journal"], "w", encoding="utf-8") as stream:
        json.dump(document, stream)
    with pytest.raises(NodenetError, match="Cannot restore"):
        node.restore(freed["run_id"])
    assert node.held() == ["192.0.2.2"]


CALLS = ("chmod", "fchmod", "fchown", "fsync", "link", "mkdir", "open", "rename", "unlink", "utime", "write")


def break_off(number, killed):
    """Make the call *number* of those that change or open something end this process, or fail as on a full disk."""
    import posix

    seen = [0]

    def broken(call):
        def run(*arguments, **more):
            seen[0] += 1
            if seen[0] == number:
                if killed:
                    os._exit(0)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(*arguments, **more)

        return run

    for name in CALLS:
        call = broken(getattr(posix, name))
        setattr(posix, name, call)
        setattr(os, name, call)
    return seen


def in_a_child(run, number, killed):
    """Run something that is broken off; tell whether it went that far."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            seen = break_off(number, killed)
            try:
                run()
            except Exception as error:
                status = 0 if "no space left" in str(error).lower() else 2
            else:
                status = 0 if seen[0] >= number else 9
        finally:
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    assert status in (0, 9 << 8), status
    return status == 0


def contents(node):
    return {
        str(path): path.read_bytes()
        for folder in (node.data_dir, node.results)
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def restore_all(node):
    journals = node.state_dir / "reclaimed"
    for path in sorted(journals.glob("*.json")) if journals.exists() else ():
        for one in json.loads(path.read_text())["networks"]:
            node.restore(path.stem, one["network"])


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "full disk"])
@pytest.mark.parametrize("what", ["gc", "restore"])
def test_a_run_that_ends_anywhere_loses_nothing(node, what, killed, step):
    """Whatever is gone stands in the journal, and one more restore brings all of it back."""
    node.network("zother", "198.51.100.0/24")
    node.hold("192.0.2.9", "static.x")
    node.hold("192.0.2.9.holder", C)
    node.hold("198.51.100.2", D, network="zother")
    node.cache(B)
    node.cache(D, network="zother")
    before = contents(node)
    number, went_on = 1, True
    while went_on:
        run = node.gc
        if what == "restore":
            run_id = node.gc()["run_id"]

            def run(run_id=run_id):
                for network in ("net", "zother"):
                    node.restore(run_id, network)

        went_on = in_a_child(run, number, killed)
        restore_all(node)
        assert contents(node) == before, number
        number += step
    assert number > 30


# --- a doubt about one must not keep all


@pytest.fixture
def sources(monkeypatch):
    """Call sources(addresses): a node whose namespaces carry these, with processes in them or without."""
    from ansible_collections.nodenet.cni.plugins.module_utils.node import liveness, liveness_netns

    def plant(found, inhabited=()):
        def read():
            source = liveness.Source("namespaces", "/proc", authoritative=False)
            source.inhabited = set(inhabited)
            for address, runs in found.items():
                source.in_use[address] = "somewhere"
                if runs:
                    source.running.add(address)
            return source

        monkeypatch.setattr(liveness_netns, "read", read)
        return ["containerd", "namespaces", "caches"]

    return plant


def test_an_address_in_use_by_processes_that_no_runtime_lists_keeps_all_of_its_kind(node, sources):
    node.hold("192.0.2.4", C)
    result = node.gc(sources=sources({"192.0.2.4": True}))
    assert reasons(result["kept"]) == {"192.0.2.2": "alive", "192.0.2.3": "doubtful", "192.0.2.4": "alive"}


def test_a_namespace_that_leaked_with_its_address_keeps_that_alone(node, sources):
    """Nobody is in it; it is as dead as the pod, and must not keep what else leaked on a node for ever."""
    node.hold("192.0.2.4", C)
    result = node.gc(sources=sources({"192.0.2.4": False}))
    assert reasons(result["kept"]) == {"192.0.2.2": "alive", "192.0.2.4": "alive"}
    assert addresses(result["removed"]) == ["192.0.2.3"]


@pytest.mark.parametrize("inhabited", [True, False])
def test_a_cache_entry_of_a_namespace_without_processes_keeps_its_owner_alone(node, sources, inhabited):
    with open("/proc/self/ns/mnt", "rb") as stream:
        path = f"/proc/self/fd/{stream.fileno()}"
        node.hold("192.0.2.4", C)
        node.cache(C, netns=path)
        result = node.gc(sources=sources({}, [os.stat(path).st_ino] if inhabited else []))
    assert reasons(result["kept"])["192.0.2.4"] == "alive"
    assert reasons(result["kept"] + result["removed"])["192.0.2.3"] == ("doubtful" if inhabited else "dead")


def test_an_address_that_a_listed_container_has_in_another_network_casts_no_doubt(node, sources):
    """Networks that never meet may have equal ranges."""
    node.network("other")
    node.hold("192.0.2.4", A, network="other")
    node.hold("192.0.2.4", C)
    result = node.gc(sources=sources({"192.0.2.4": True}))
    assert addresses(result["removed"]) == ["192.0.2.3"]
    assert [(one["network"], one["reason"]) for one in result["kept"]] == [
        ("net", "alive"),
        ("net", "alive"),
        ("other", "alive"),
    ]
