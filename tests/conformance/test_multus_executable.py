# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What only a process of multus can show: what is loaded, streams that are gone, signals, delegates that stay."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import threading
import time

import pytest
from loading import NO_API, loaded
from multus_node import Node
from plugin_drivers import text


@pytest.fixture
def node(_collection_path, tmp_path):
    made = Node(tmp_path)
    yield made
    made.close()


def test_it_loads_only_what_the_command_needs(multus, node):
    node.config["kubeconfig"] = ""
    foreign, ours = loaded(multus, node.environment("ADD"), node.config)
    assert foreign <= NO_API
    assert {"adding", "cache", "ifnames", "chain"} <= ours
    assert not {"kube", "resolve", "devices", "deviceinfo", "netstatus", "defaultroute", "deleting", "upkeep"} & ours
    foreign, ours = loaded(multus, node.environment("CHECK"), node.config)
    assert foreign <= NO_API
    assert not {"kube", "adding", "deleting", "netns", "links", "cache"} & ours
    foreign, ours = loaded(multus, node.environment("DEL"), node.config)
    assert foreign <= NO_API
    assert not {"kube", "resolve", "adding", "netns", "links", "upkeep"} & ours
    foreign, ours = loaded(multus, node.environment("VERSION"), node.config)
    assert foreign <= NO_API - {"_ctypes", "_socket", "select", "binascii"}
    assert not {"config", "delegate", "chain"} & ours


def test_a_pod_without_annotations_loads_nothing_that_decides(multus, node):
    del node.api.pods["ns1", "p1"]["metadata"]["annotations"]
    foreign, ours = loaded(multus, node.environment("ADD"), node.config)
    assert foreign <= NO_API
    assert {"kube", "kubeconfig", "netstatus", "events"} <= ours
    assert not {"resolve", "selection", "deciding", "confdir", "devices", "deviceinfo", "defaultroute"} & ours
    assert not {"kubetls", "kubeproxy", "kubeexec", "vendored", "podresources", "deleting"} & ours
    assert node.left()[0] == ["cid-eth0"]


def test_a_pod_with_networks_loads_what_decides_and_no_more(multus, node):
    foreign, ours = loaded(multus, node.environment("ADD"), node.config)
    assert foreign <= NO_API
    assert {"kube", "resolve", "selection"} <= ours
    assert not {"deviceinfo", "defaultroute", "kubetls", "kubeproxy", "kubeexec", "vendored", "podresources"} & ours
    assert node.left()[0] == ["cid-eth0", "cid-net1", "cid-net2"]


def test_a_del_with_a_cache_does_not_ask_the_api(multus, node):
    assert node.call("ADD")[0] == 0
    node.api.calls = []
    foreign, ours = loaded(multus, node.environment("DEL"), node.config)
    assert foreign <= NO_API
    assert "kube" not in ours
    assert node.api.calls == []
    assert node.left() == ([], [], [])


def start(multus, node, command, stdout=subprocess.PIPE):
    process = subprocess.Popen(
        [multus], env=node.environment(command), stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE
    )
    process.stdin.write(json.dumps(node.config).encode())
    process.stdin.close()
    return process


def finish(process):
    with process:
        stderr = process.stderr.read()
        if process.stdout:
            process.stdout.close()
        process.wait(timeout=30)
    return process.returncode, text(stderr)


def test_a_reader_that_has_gone_gets_nothing_attached(multus, node):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        process = start(multus, node, "ADD", writing)
    finally:
        os.close(writing)
    rc, stderr = finish(process)
    assert rc == 1
    assert "cannot write the result" in stderr
    assert node.left()[:2] == ([], [])


def slow(node, name, seconds):
    """Let a plugin take a while for an ADD, and tell when that begins."""
    path = node.root / "bin" / name
    path.write_text(path.read_text().replace("ADD)\n", "ADD)\n    : > started; sleep %s\n" % seconds, 1))


def wait_for(path):
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_while_a_delegate_runs(multus, node, number):
    """The delegate goes on, as it does under the Go plugin; the DEL that comes at once takes down what it makes."""
    slow(node, "one", 0.7)
    process = start(multus, node, "ADD")
    wait_for(node.root / "started")
    process.send_signal(number)
    assert finish(process)[0] == -number
    assert node.left()[0] == ["cid-eth0"]
    rc, document, stderr = node.call("DEL")
    assert (rc, document, stderr) == (0, None, "")
    assert not list(node.root.glob("stdin.*")), "the plugin has not got beyond its pause"
    assert "DEL one net1" in node.calls()
    assert node.left() == ([], [], [])


def test_a_del_while_an_add_runs_waits_for_it(multus, node):
    slow(node, "two", 0.7)
    process = start(multus, node, "ADD")
    wait_for(node.root / "started")
    assert node.call("DEL")[0] == 0
    assert finish(process)[0] == 0
    assert node.left() == ([], [], [])


def locked(path):
    """Return the lock of a running ADD on a file, as a process would have that this ADD has started."""
    stream = path.open()
    fcntl.flock(stream, fcntl.LOCK_SH)
    return stream


def is_locked(path):
    with path.open() as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_second_add_waits_for_the_first(node, monkeypatch):
    """It would put a file in the place of the one by whose lock a DEL knows that the first still runs."""
    from ansible_collections.nodenet.cni.plugins.module_utils.multus import adding

    monkeypatch.setattr(adding, "_OTHER_LIMIT_S", 0.2)
    cache = node.root / "cni" / "cid"
    cache.parent.mkdir()
    cache.write_text("the first")
    with locked(cache):
        rc, document, _stderr = node.call("ADD")
        assert (rc, document["code"]) == (1, 11)
        assert "another ADD of this container, or a plugin of it, still runs" in document["msg"]
        assert cache.read_text() == "the first"
        assert node.calls() == []
        os.utime(cache, (time.time() - 400,) * 2)
        assert node.call("ADD")[0] == 0, "what was left running on purpose holds it up for minutes only"
    assert node.call("DEL")[0] == 0
    assert node.left() == ([], [], [])


def test_a_cache_has_its_lock_before_its_name(node, monkeypatch):
    import posix

    seen = []
    rename = posix.rename

    def look(source, target):
        rename(source, target)
        if target == str(node.root / "cni" / "cid"):
            seen.append(is_locked(node.root / "cni" / "cid"))

    monkeypatch.setattr(posix, "rename", look)
    assert node.call("ADD")[0] == 0
    assert seen == [True]
    assert not is_locked(node.root / "cni" / "cid")


def test_the_wait_goes_on_for_a_file_that_has_come_in_between(tmp_path):
    """The one that was waited for has gone; another ADD has the lock of what is in its place."""
    from ansible_collections.nodenet.cni.plugins.module_utils.multus import running

    path, fresh = tmp_path / "cid", tmp_path / "fresh"
    path.write_text("old")
    fresh.write_text("new")
    old, new = locked(path), locked(fresh)

    def replace():
        os.rename(fresh, path)
        old.close()

    later = threading.Timer(0.1, replace)
    later.start()
    with new:
        assert not running.wait(str(path), 0.6)
    later.join()
    assert running.wait(str(path), 0)


@pytest.mark.parametrize("damaged", [False, True])
def test_a_del_that_has_waited_too_long_is_to_come_again(multus, node, monkeypatch, damaged):
    from ansible_collections.nodenet.cni.plugins.module_utils.multus import deleting

    monkeypatch.setattr(deleting, "RUNNING_LIMIT_S", 0.3)
    slow(node, "two", 1.5)
    process = start(multus, node, "ADD")
    wait_for(node.root / "started")
    if damaged:
        (node.root / "cni" / "cid").write_text("{")
    rc, document, _stderr = node.call("DEL")
    assert (rc, document["code"]) == (1, 11)
    assert "an ADD of this container, or a plugin of it, still runs after 0.3 s" in document["msg"]
    assert "DEL main eth0" in node.calls()
    assert "cid" in node.left()[2]
    assert finish(process)[0] == 0
    assert node.left()[0] == ["cid-net2"]
    assert node.call("DEL")[0] == 0
    assert node.left() == ([], [], ["cid.corrupt"] if damaged else [])


@pytest.mark.parametrize("which", ["one", "two"])
def test_an_add_whose_cache_has_gone_takes_back(multus, node, monkeypatch, which):
    """A DEL has waited for minutes; nobody would take down what the ADD attaches after that."""
    from ansible_collections.nodenet.cni.plugins.module_utils.multus import deleting

    monkeypatch.setattr(deleting, "RUNNING_LIMIT_S", 0.1)
    slow(node, which, 1)
    process = start(multus, node, "ADD")
    wait_for(node.root / "started")
    os.utime(node.root / "cni" / "cid", (time.time() - 400,) * 2)
    rc, document, stderr = node.call("DEL")
    assert (rc, document) == (0, None)
    assert "an ADD of this container, or a plugin of it, still runs after 0.1 s; what it attaches" in stderr
    assert finish(process)[0] == 1
    assert ("ADD two net2" in node.calls()) == (which == "two"), "none is begun any more"
    assert node.left() == ([], [], [])


def test_what_a_delegate_leaves_running_on_purpose_holds_up_no_del(multus, node):
    path = node.root / "bin" / "one"
    path.write_text(path.read_text().replace("ADD)\n", "ADD)\n    sleep 3 </dev/null >/dev/null 2>&1 &\n", 1))
    assert finish(start(multus, node, "ADD"))[0] == 0
    begin = time.monotonic()
    assert node.call("DEL")[2] == ""
    assert time.monotonic() - begin < 2.5
    assert node.left() == ([], [], [])
