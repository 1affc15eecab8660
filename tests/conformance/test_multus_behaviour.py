# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Multus with plugins that hold something: kills, failures on the way, reported cases, GC.

The plugins make an interface in the pod and a file for each address they hold, so whatever leaks is seen.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
from multus_node import UID, Node
from multus_scenario import require_namespaces

CASES = Path(__file__).resolve().parents[1] / "cases"
KILLED = 77


@pytest.fixture
def node(_collection_path, tmp_path):
    require_namespaces()
    made = Node(tmp_path)
    yield made
    made.close()


# --- kills


def killed_at(node: Node, command: str, number: int) -> bool:
    """Make a call in a process that ends at its *number*-th step; tell whether it got that far."""
    import posix

    from ansible_collections.nodenet.cni.plugins.module_utils.cni import spawn
    from ansible_collections.nodenet.cni.plugins.module_utils.multus import kube

    pid = os.fork()
    if pid:
        status = (
            os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if hasattr(os, "waitstatus_to_exitcode")
            else (os.waitpid(pid, 0)[1] >> 8)
        )
        assert status in (0, KILLED)
        return status == KILLED
    steps = [0]

    def step() -> None:
        if steps[0] == number:
            os._exit(KILLED)
        steps[0] += 1

    def around(function):
        def called(*arguments, **keys):
            step()
            result = function(*arguments, **keys)
            step()
            return result

        return called

    try:
        posix.rename = around(posix.rename)
        posix.unlink = around(posix.unlink)
        spawn.run = around(spawn.run)
        kube.Client.set_network_status = around(kube.Client.set_network_status)
        rc, _document, _stderr = node.call(command)
        os._exit(0 if rc == 0 else 1)
    finally:
        os._exit(2)


@pytest.mark.parametrize("api", ["up", "down"])
def test_an_add_that_is_killed_leaves_nothing_after_the_next_del(node, api):
    number = 0
    while killed_at(node, "ADD", number):
        node.make_old()
        if api == "down":
            node.config["kubeconfig"], kept = "", node.config["kubeconfig"]
        rc, document, _stderr = node.call("DEL")
        assert (rc, document) == (0, None), number
        if api == "down":
            node.config["kubeconfig"] = kept
        assert node.left() == ([], [], []), number
        number += 1
    assert number >= 14
    assert node.call("DEL")[0] == 0
    assert node.left() == ([], [], [])


def test_a_del_that_is_killed_is_finished_by_the_next(node):
    number = 0
    while True:
        assert node.call("ADD")[0] == 0
        assert len(node.left()[0]) == 3
        reached = killed_at(node, "DEL", number)
        node.make_old()
        assert node.call("DEL")[0] == 0
        assert node.left() == ([], [], []), number
        if not reached:
            break
        number += 1
    assert number >= 12


# --- failures on the way


def test_a_delegate_that_fails_takes_back_only_what_was_started(node):
    (node.root / "fail-one").touch()
    rc, document, _stderr = node.call("ADD")
    assert (rc, document["code"]) == (1, 11)
    assert document["msg"].endswith('error adding container to network "one": later')
    assert node.calls() == ["ADD main eth0", "ADD one net1", "DEL one net1", "DEL main eth0"]
    assert node.left()[:2] == ([], [])


@pytest.mark.parametrize("status", [403, 500, 404, 409])
def test_a_status_that_cannot_be_written_takes_everything_back(node, status):
    rules = [{"path": "/status$", "times": None, "status": status, "reason": "x", "message": "no"}]
    node.api.rules = rules
    rc, document, _stderr = node.call("ADD", apiTimeoutSeconds=2)
    assert (rc, document["code"]) == (1, 999)
    assert "error setting the networks status" in document["msg"]
    assert node.left()[:2] == ([], [])


def test_a_cache_that_cannot_be_written_stops_before_anything_is_attached(node):
    (node.root / "cni").write_text("")
    rc, document, _stderr = node.call("ADD")
    assert rc == 1
    assert "error saving the delegates" in document["msg"]
    assert node.left()[:2] == ([], [])


def test_a_result_that_nobody_takes_is_taken_back(node):
    from ansible_collections.nodenet.cni.plugins.module_utils.multus import commands

    done = commands.run(node.environment("ADD"), json.dumps(node.config).encode(), lambda _text: None)
    assert len(node.left()[0]) == 3
    done.undo()
    assert node.left()[:2] == ([], [])


def test_a_second_add_leaves_the_first_alone(node):
    assert node.call("ADD")[0] == 0
    before = node.left()
    node.calls()
    rc, document, _stderr = node.call("ADD")
    assert rc == 1
    assert document["msg"].endswith("validateIfName: interface name eth0 already exists")
    assert node.calls() == []
    assert node.left() == before
    assert node.call("DEL")[0] == 0
    assert node.left() == ([], [], [])


def test_the_result_has_the_version_of_the_configuration(node):
    rc, document, _stderr = node.call("ADD", cniVersion="0.3.1")
    assert (rc, document["cniVersion"], document["ips"][0]["version"]) == (0, "0.3.1", "4")
    assert node.call("DEL")[0] == 0


def test_a_result_that_the_version_cannot_hold_stays_as_it_is(node):
    path = node.root / "bin" / "main"
    path.write_text(path.read_text().replace('"ips": [{"address": "10.0.0.5/24", "interface": 0}]', '"dns": {}'))
    rc, document, _stderr = node.call("ADD", cniVersion="0.2.0")
    assert (rc, document["cniVersion"]) == (0, "1.1.0")
    assert node.call("DEL", cniVersion="0.2.0")[0] == 0
    assert node.left() == ([], [], [])


# --- what `kubectl describe pod` shows


def test_events_of_a_pod(node):
    assert node.call("ADD")[0] == 0
    told = [(one["type"], one["reason"], one["message"]) for one in node.api.events.values()]
    assert told == [
        ("Normal", "AddedInterface", "Add eth0 [10.0.0.5/24] from main-net"),
        ("Normal", "AddedInterface", "Add net1 [10.0.0.5/24] from ns1/one"),
        ("Normal", "AddedInterface", "Add net2 [10.0.0.5/24] from ns1/two"),
    ]
    assert all(one["involvedObject"]["uid"] == UID for one in node.api.events.values())
    assert node.call("DEL")[0] == 0
    assert len(node.api.events) == 3


def test_a_fault_with_the_events_is_none_of_the_add(node, monkeypatch):
    """They are made when all is done, and when no DEL waits for the ADD any more."""
    from ansible_collections.nodenet.cni.plugins.module_utils.multus import kube

    waiting = []

    def fail(*_arguments):
        with (node.root / "cni" / "cid").open() as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        waiting.append(False)
        raise RuntimeError("of the events")

    monkeypatch.setattr(kube.Client, "add_event", fail)
    rc, document, stderr = node.call("ADD")
    assert (rc, document["ips"][0]["address"]) == (0, "10.0.0.5/24")
    assert waiting == [False]
    assert "cannot make the events of the pod: of the events" in stderr
    assert node.left()[0] == ["cid-eth0", "cid-net1", "cid-net2"]
    assert node.call("DEL")[0] == 0


def test_the_event_of_a_network_that_is_missing(node):
    node.put_pod("one,gone")
    for _try in range(2):
        rc, document, _stderr = node.call("ADD")
        assert rc == 1
    (event,) = node.api.events.values()
    assert (event["type"], event["reason"]) == ("Warning", "NoNetworkFound")
    assert event["message"].startswith("cannot find a network-attachment-definition (gone) in namespace (ns1): ")
    assert document["msg"].endswith(event["message"])
    node.put_pod("one@eth0")
    assert node.call("ADD")[0] == 1
    assert len(node.api.events) == 1, "another failure is none of a network"


def test_a_pod_that_failed_was_attached_to_nothing(node):
    (node.root / "fail-two").touch()
    assert node.call("ADD")[0] == 1
    assert node.api.events == {}


# --- reported cases


def test_case_del_without_cache(node):
    """multus-del-without-cache: the API runs on this very node and is down, and the cache is gone."""
    given = json.loads((CASES / "multus-del-without-cache.json").read_text())
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    kubeconfig = json.loads((node.root / "kubeconfig").read_text())
    kubeconfig["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:%d" % port
    (node.root / "kubeconfig").write_text(json.dumps(kubeconfig))
    delegate = given["input"]["stdin"]["delegates"][0]
    started = time.monotonic()
    rc, document, stderr = node.call("DEL", given["input"]["env"]["CNI_CONTAINERID"], "", delegates=[delegate])
    assert (rc, document) == (given["check"]["rc"], None)
    assert time.monotonic() - started < given["check"]["max_seconds"]
    assert 'failed to find plugin "bandwidth"' in stderr
    (node.root / "calls").unlink(missing_ok=True)
    assert node.call("DEL", netns="")[0] == 0
    assert node.calls() == ["DEL main eth0"]


def test_case_delegate_del_fails(node):
    """multus-delegate-del-fails: all are tried, the cache stays until a DEL succeeded for all."""
    check = json.loads((CASES / "multus-delegate-del-fails.json").read_text())["check"]
    (container,) = check["cache_kept"]
    assert check["rc"] == "nonzero"
    assert node.call("ADD", container)[0] == 0
    node.calls()
    (node.root / "fail-two").touch()
    rc, document, _stderr = node.call("DEL", container)
    assert (rc, document["code"]) == (1, 11)
    assert 'DelegateDel - "two"' in document["msg"]
    assert node.calls() == ["DEL two net2", "DEL one net1", "DEL main eth0"]
    assert container in node.left()[2]
    (node.root / "fail-two").unlink()
    node.api.pods.clear()
    assert node.call("DEL", container)[0] == 0
    assert node.left() == ([], [], [])


def test_del_without_cache_goes_on_after_a_network_that_is_gone(node):
    assert node.call("ADD")[0] == 0
    node.calls()
    (node.root / "cni" / "cid").unlink()
    del node.api.nads["ns1", "one"]
    assert node.call("DEL")[0] == 0
    assert node.calls() == ["DEL two net2", "DEL main eth0", "DEL one net1"]
    assert node.left() == ([], [], [])


def test_del_without_cache_and_without_results_leaves_out_only_what_nobody_knows(node):
    assert node.call("ADD")[0] == 0
    node.calls()
    for path in [node.root / "cni" / "cid", *(node.root / "cni" / "results").iterdir()]:
        path.unlink()
    del node.api.nads["ns1", "one"]
    assert node.call("DEL")[0] == 0
    assert node.calls() == ["DEL two net2", "DEL main eth0"]


def without_caches(node) -> None:
    for path in [node.root / "cni" / "cid", *(node.root / "cni" / "results").iterdir()]:
        path.unlink()
    node.calls()


def test_del_without_cache_says_what_it_could_not_decide(node):
    """At the level that is the default; what is gone (above) says nothing, as with the Go plugin."""
    assert node.call("ADD")[0] == 0
    without_caches(node)
    message = "network-attachment-definitions is forbidden"
    answer = {"status": 403, "reason": "Forbidden", "message": message}
    node.api.rules = [dict(answer, path="/network-attachment-definitions/one$", times=None)]
    rc, document, stderr = node.call("DEL")
    assert (rc, document) == (0, None)
    assert node.calls() == ["DEL two net2", "DEL main eth0"]
    (line,) = stderr.splitlines()
    assert "not all networks of the pod are known" in line
    assert line.endswith(message)


@pytest.mark.parametrize("default", ["ns1/gone", "[]", "one,two", "{"])
def test_del_without_cache_leaves_the_configured_network_alone_where_the_pod_asks_for_another(node, default):
    """Whatever the pod's default network was, the configured one was not attached."""
    (pod,) = node.api.pods.values()
    pod["metadata"]["annotations"]["v1.multus-cni.io/default-network"] = default
    assert node.call("ADD")[0] == 1
    assert node.calls() == []
    rc, document, _stderr = node.call("DEL")
    assert (rc, document) == (0, None)
    assert node.calls() == ["DEL two net2", "DEL one net1"]


def test_del_without_cache_and_without_api_goes_by_the_cached_results(node):
    assert node.call("ADD")[0] == 0
    node.calls()
    (node.root / "cni" / "cid").write_text("{")
    assert node.call("DEL", kubeconfig="")[0] == 0
    assert node.calls() == ["DEL main eth0", "DEL one net1", "DEL two net2"]
    assert node.left() == ([], [], ["cid.corrupt"])


# --- the cache


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '[{"Bytes": "!"}]', '[{"Bytes": "e30="}]'])
def test_a_damaged_cache_is_set_aside_and_the_networks_are_found_again(node, damage):
    assert node.call("ADD")[0] == 0
    node.calls()
    (node.root / "cni" / "cid").write_text(damage)
    rc, document, stderr = node.call("DEL")
    assert (rc, document) == (0, None)
    assert "cannot use the cached delegates" in stderr
    assert node.calls() == ["DEL two net2", "DEL one net1", "DEL main eth0"]
    assert node.left() == ([], [], ["cid.corrupt"])
    assert (node.root / "cni" / "cid.corrupt").read_text() == damage


def test_a_damaged_cache_and_a_default_network_that_cannot_be_found(node):
    """The cached results tell of it, so what cannot be decided is no failure."""
    metadata = {"namespace": "kube-system", "name": "base"}
    text = json.dumps({"cniVersion": "1.1.0", "name": "base", "type": "main"})
    node.api.put_nad({"metadata": metadata, "spec": {"config": text}})
    node.config["clusterNetwork"] = "base"
    assert node.call("ADD")[0] == 0
    assert node.calls() == ["ADD main eth0", "ADD one net1", "ADD two net2"]
    del node.api.nads["kube-system", "base"]
    (node.root / "cni" / "cid").write_text("{")
    rc, document, stderr = node.call("DEL")
    assert (rc, document) == (0, None)
    assert "failed to get clusterNetwork/defaultNetworks" in stderr
    assert node.calls() == ["DEL two net2", "DEL one net1", "DEL main eth0"]
    assert node.left() == ([], [], ["cid.corrupt"])


def test_a_damaged_cache_and_a_damaged_kubeconfig(node):
    assert node.call("ADD")[0] == 0
    (node.root / "cni" / "cid").write_text("{")
    (node.root / "kubeconfig").write_text("{")
    rc, document, stderr = node.call("DEL")
    assert (rc, document) == (0, None)
    assert "error getting k8s client" in stderr
    assert node.left() == ([], [], ["cid.corrupt"])


def test_a_damaged_cache_and_a_plugin_that_fails(node):
    assert node.call("ADD")[0] == 0
    (node.root / "cni" / "cid").write_text("{")
    (node.root / "fail-main").touch()
    node.api.pods.clear()
    for _number in range(2):
        rc, document, stderr = node.call("DEL")
        assert (rc, document["code"]) == (1, 11)
        assert "cannot use the cached delegates" in stderr
        assert node.left()[0] == ["cid-eth0"]
    (node.root / "fail-main").unlink()
    assert node.call("DEL")[0] == 0
    assert node.left() == ([], [], ["cid.corrupt"])
    assert node.call("DEL")[2].count("cannot use") == 0


# --- GC


def test_gc_takes_down_what_the_runtime_does_not_list(node):
    assert node.call("ADD")[0] == 0
    other = "nodenet-mb-%d-2" % os.getpid()
    subprocess.run(["ip", "netns", "add", other], check=True)
    try:
        assert node.call("ADD", "alive", "/var/run/netns/" + other)[0] == 0
        node.calls()
        listed = {"cni.dev/valid-attachments": [{"containerID": "alive", "ifname": "eth0"}]}
        rc, document, _stderr = node.call("GC", **listed)
        assert (rc, document) == (0, None)
        assert node.calls() == ["GC main"], "too young to be taken down"
        assert len(valid(node)) == 6
        node.age(node.root / "cni" / "cid")
        assert node.call("GC", **listed)[0] == 0
        assert node.calls() == ["GC main"], "its results are too young"
        node.age()
        added = {one[1:] for one in node.args() if one[0] == "ADD" and one[2] == "cid"}
        assert node.call("GC", **listed)[0] == 0
        assert sorted(node.calls()) == ["DEL main eth0", "DEL one net1", "DEL two net2", "GC main"]
        deleted = {one[1:] for one in node.args() if one[0] == "DEL"}
        assert deleted == added, "with what ADD had"
        assert all("K8S_POD_NAME=p1;" in one[-1] for one in deleted)
        assert "cid" not in node.left()[2]
        assert valid(node) == {("alive", "eth0"), ("alive", "net1"), ("alive", "net2")}
        assert node.left()[0] == ["alive-eth0", "alive-net1", "alive-net2"]
    finally:
        subprocess.run(["ip", "netns", "del", other], check=True)


def valid(node: Node) -> set:
    listed = json.loads((node.root / "gc-main").read_text())["cni.dev/valid-attachments"]
    return {(one["containerID"], one["ifname"]) for one in listed}


def test_gc_takes_down_what_has_lost_its_delegates_cache(node):
    """The Go plugin removes the delegates cache also when a DEL fails; the cached results stay."""
    assert node.call("ADD")[0] == 0
    node.calls()
    (node.root / "cni" / "cid").unlink()
    listed: dict = {"cni.dev/valid-attachments": []}
    assert node.call("GC", **listed)[0] == 0
    assert [one for one in node.calls() if "DEL" in one] == [], "too young"
    node.age()
    assert node.call("GC", **listed)[0] == 0
    assert sorted(node.calls()) == ["DEL main eth0", "DEL one net1", "DEL two net2", "GC main"]
    assert node.left() == ([], [], [])
    assert valid(node) == set()


def test_gc_leaves_a_container_alone_whose_add_takes_long(node):
    """All files are old, but the ADD, or a plugin of it, still has the lock."""
    assert node.call("ADD")[0] == 0
    node.age()
    node.calls()
    before = node.left()
    listed: dict = {"cni.dev/valid-attachments": []}
    with (node.root / "cni" / "cid").open() as locked:
        fcntl.flock(locked, fcntl.LOCK_SH)
        assert node.call("GC", **listed)[0] == 0
        assert node.calls() == ["GC main"]
        assert node.left() == before
        assert valid(node) == {("cid", "eth0"), ("cid", "net1"), ("cid", "net2")}
    assert node.call("GC", **listed)[0] == 0
    assert node.left() == ([], [], [])


def test_gc_looks_at_the_age_again_once_it_has_the_lock(node, monkeypatch):
    """An ADD of the same id that begins in the midst of a GC writes the cache anew."""
    from ansible_collections.nodenet.cni.plugins.module_utils.multus import running

    assert node.call("ADD")[0] == 0
    node.age()
    node.calls()
    before = node.left()
    alone = running.alone

    def late(path, limit_s):
        os.utime(path)
        return alone(path, limit_s)

    monkeypatch.setattr(running, "alone", late)
    assert node.call("GC", **{"cni.dev/valid-attachments": []})[0] == 0
    assert node.calls() == ["GC main"]
    assert node.left() == before


@pytest.mark.parametrize("lost", ["one", "two"])
def test_gc_takes_down_what_an_add_left_that_was_killed_in_the_midst(node, lost):
    """A network that has no result yet is in the delegates cache only."""
    node.config["delegates"][0]["capabilities"] = {"mac": True}
    assert node.call("ADD")[0] == 0
    node.calls()
    (path,) = (node.root / "cni" / "results").glob(lost + "-*")
    path.unlink()
    node.age()
    added = {one[1:] for one in node.args() if one[0] == "ADD"}
    assert node.call("GC", **{"cni.dev/valid-attachments": []})[0] == 0
    assert sorted(node.calls()) == ["DEL main eth0", "DEL one net1", "DEL two net2", "GC main"]
    assert {one[1:] for one in node.args() if one[0] == "DEL"} == added, "with the pod in CNI_ARGS"
    assert node.left() == ([], [], [])


def test_gc_tries_again_what_has_no_result(node):
    assert node.call("ADD")[0] == 0
    (node.root / "cni" / "results" / "two-cid-net2").unlink()
    node.age()
    (node.root / "fail-two").touch()
    rc, document, _stderr = node.call("GC", **{"cni.dev/valid-attachments": []})
    assert rc == 1
    assert document["msg"].startswith("failed to delete stale attachment cid net2: ")
    assert node.left()[2] == ["cid"]
    (node.root / "fail-two").unlink()
    assert node.call("GC", **{"cni.dev/valid-attachments": []})[0] == 0
    assert node.left()[0] == []


def test_gc_does_not_guess_the_interface_of_the_first_network(node):
    """It is called as the runtime said, and nothing tells that any more; the evidence stays for a day."""
    assert node.call("ADD")[0] == 0
    node.calls()
    (node.root / "cni" / "results" / "main-net-cid-eth0").unlink()
    node.age()
    listed: dict = {"cni.dev/valid-attachments": []}
    rc, document, stderr = node.call("GC", **listed)
    assert (rc, document) == (0, None)
    assert "GC leaves the delegates cache of cid alone: nothing tells which interface network main-net had" in stderr
    assert sorted(node.calls()) == ["DEL one net1", "DEL two net2", "GC main"]
    assert node.left()[0] == ["cid-eth0"]
    assert node.left()[2] == ["cid"]
    os.utime(node.root / "cni" / "cid", (time.time() - 90000,) * 2)
    assert "GC removes the delegates cache of cid" in node.call("GC", **listed)[2]
    assert node.left()[2] == []


@pytest.mark.parametrize("which", ["of a process", "our own", "a link", "a file", "none", "mounted"])
def test_gc_hands_over_a_namespace_only_if_it_is_the_container_s_for_sure(node, which):
    """The process of a container that has gone may be any other by now; a plugin deletes the interface in there."""
    assert node.call("ADD")[0] == 0
    path = node.root / "bin" / "main"
    path.write_text(path.read_text().replace("DEL)\n", 'DEL)\n    echo "$CNI_NETNS" > netns\n', 1))
    (node.root / "file").touch()
    (node.root / "link").symlink_to("/proc/self/ns/net")
    (node.root / "own").touch()
    given = {
        "of a process": "/proc/%d/ns/net" % os.getpid(),
        "our own": str(node.root / "own"),
        "a link": str(node.root / "link"),
        "a file": str(node.root / "file"),
        "none": "",
        "mounted": node.netns,
    }[which]
    for result in (node.root / "cni" / "results").iterdir():
        result.write_text(json.dumps(dict(json.loads(result.read_text()), netns=given)))
    node.age()
    if which == "our own":
        subprocess.run(["mount", "--bind", "/proc/self/ns/net", given], check=True)
    try:
        assert node.call("GC", **{"cni.dev/valid-attachments": []})[0] == 0
    finally:
        if which == "our own":
            subprocess.run(["umount", given], check=True)
    assert (node.root / "netns").read_text().strip() == (given if which == "mounted" else "")
    assert node.left()[0] == []


@pytest.mark.parametrize("arguments", [[], ["mac"], "mac", 7, True, None])
def test_a_result_whose_capability_arguments_are_none(node, arguments):
    assert node.call("ADD")[0] == 0
    for result in (node.root / "cni" / "results").iterdir():
        result.write_text(json.dumps(dict(json.loads(result.read_text()), capabilityArgs=arguments)))
    node.age()
    rc, document, _stderr = node.call("GC", **{"cni.dev/valid-attachments": []})
    assert (rc, document) == (0, None)
    assert node.left() == ([], [], [])


def test_gc_keeps_the_delegates_cache_until_every_del_succeeded(node):
    assert node.call("ADD")[0] == 0
    node.age()
    (node.root / "fail-one").touch()
    listed: dict = {"cni.dev/valid-attachments": []}
    for _number in range(2):
        rc, document, _stderr = node.call("GC", **listed)
        assert rc == 1
        assert document["msg"].startswith("failed to delete stale attachment cid net1: ")
        assert node.left()[2] == ["cid", "one-cid-net1"]
        assert valid(node) == set()
    (node.root / "fail-one").unlink()
    os.utime(node.root / "cni" / "cid", (time.time() - 90000,) * 2)
    assert node.call("GC", **listed)[0] == 0
    assert node.left() == ([], [], [])


def test_gc_goes_by_a_cache_without_results_and_removes_no_file_of_others(node):
    assert node.call("ADD")[0] == 0
    for path in (node.root / "cni" / "results").iterdir():
        path.unlink()
    (node.root / "cni" / "notes").write_text("{}")
    for name in ("notes", "cid"):
        os.utime(node.root / "cni" / name, (time.time() - 90000,) * 2)
    node.calls()
    rc, document, stderr = node.call("GC", **{"cni.dev/valid-attachments": []})
    assert (rc, document) == (0, None)
    assert node.calls() == ["DEL one net1", "DEL two net2", "GC main"]
    assert node.left()[2] == ["notes"]
    assert "GC leaves the delegates cache of notes alone" in stderr


@pytest.mark.parametrize("damage", [False, True])
def test_the_result_of_multus_itself_is_left_to_the_runtime(node, damage):
    """cniDir is where the runtime keeps its own cached results: a DEL of that one would be a call of ourselves."""
    assert node.call("ADD")[0] == 0
    cache = node.root / "cni"
    entry = json.loads((cache / "results" / "main-net-cid-eth0").read_text())
    config = json.dumps(dict(node.config, plugins=[node.config])) if damage else json.dumps(node.config)
    entry.update(networkName="multus", config=base64.b64encode(config.encode()).decode())
    own = cache / "results" / "multus-cid-eth0"
    own.write_text(json.dumps(entry))
    (node.root / "bin" / "multus").symlink_to("main")
    node.calls()
    if damage:
        (cache / "cid").unlink()
        assert node.call("DEL", kubeconfig="")[0] == 0
        assert node.calls() == ["DEL main eth0", "DEL one net1", "DEL two net2"]
    else:
        node.age()
        assert node.call("GC", **{"cni.dev/valid-attachments": []})[0] == 0
        assert sorted(node.calls()) == ["DEL main eth0", "DEL one net1", "DEL two net2", "GC main"]
    assert node.left()[2] == [own.name]


def test_gc_leaves_other_containers_alone_in_a_directory_of_the_runtime(node):
    """Podman keeps its cached results there as well, and its containers are in no list of the kubelet's runtime."""
    assert node.call("ADD")[0] == 0
    results = node.root / "cni" / "results"
    entry = json.loads((results / "main-net-cid-eth0").read_text())
    config = base64.b64encode(json.dumps(node.config).encode()).decode()
    (results / "multus-cid-eth0").write_text(json.dumps(dict(entry, networkName="multus", config=config)))
    for number in (1, 2):
        other = dict(entry, containerId="podman%d" % number)
        (results / ("main-net-podman%d-eth0" % number)).write_text(json.dumps(other))
    node.age()
    node.calls()
    rc, document, stderr = node.call("GC", **{"cni.dev/valid-attachments": []})
    assert (rc, document) == (0, None)
    assert sorted(node.calls()) == ["DEL main eth0", "DEL one net1", "DEL two net2", "GC main"]
    assert node.left()[2] == ["main-net-podman1-eth0", "main-net-podman2-eth0", "multus-cid-eth0"]
    assert stderr.count("Multus: GC leaves what the runtime may have attached by itself to podman1 and 1 more") == 1
    assert valid(node) == {("podman1", "eth0"), ("podman2", "eth0")}


def test_the_directory_of_the_runtimes_is_shared_also_while_no_pod_runs(node):
    from ansible_collections.nodenet.cni.plugins.module_utils.multus import upkeep

    seen = []

    def look(session):
        seen.append(session.shares_results())
        raise upkeep.CniError(999, "enough")

    for folder in ("/var/lib/cni/", str(node.root / "cni")):
        node.config["cniDir"] = folder
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(upkeep, "_first_networks", look)
            assert node.call("GC")[0] == 1
    assert seen == [True, False]


def test_a_delegate_named_as_multus_is_taken_down(node):
    node.config["delegates"][0]["name"] = "multus"
    assert node.call("ADD")[0] == 0
    (node.root / "cni" / "cid").unlink()
    node.age()
    assert node.call("GC", **{"cni.dev/valid-attachments": []})[0] == 0
    assert node.left() == ([], [], [])


def test_gc_without_a_list_collects_nothing(node):
    assert node.call("ADD")[0] == 0
    node.age()
    node.calls()
    rc, document, stderr = node.call("GC")
    assert (rc, document) == (0, None)
    assert "without a list" in stderr
    assert node.calls() == []


def test_nothing_stays_open(node):
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    node.call("ADD")
    node.call("DEL")
    before = descriptors()
    for _number in range(3):
        assert node.call("ADD")[0] == 0
        assert node.call("DEL")[0] == 0
    deadline = time.monotonic() + 5
    while descriptors() > before and time.monotonic() < deadline:  # the server's ends close a moment later
        time.sleep(0.01)
    assert descriptors() <= before
    with contextlib.suppress(ChildProcessError):
        assert os.waitpid(-1, os.WNOHANG) == (0, 0)
