# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Freeing leaked addresses: the guards, the public cases, the journal and the way back, on real directories."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import time
from pathlib import Path

import calls
import pods
import pytest
from reclaim_node import CRI, OLD, TASKS, Node, addresses, live, reasons, sandbox

A, B, C, D = (sandbox(number) for number in range(4))
CASES = Path(__file__).resolve().parents[1] / "cases"


@pytest.fixture
def node(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    made = Node(tmp_path)
    made.network()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def refused():
    """Call refused(node, **options): the message of a run that has to be refused and to leave all as it is."""
    from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError

    def run(node, **more):
        before = tree(node)
        with pytest.raises(NodenetError) as caught:
            node.gc(**more)
        assert tree(node) == before
        return str(caught.value)

    return run


def tree(node):
    found = {}
    for here, folders, names in os.walk(str(node.base)):
        for name in [*folders, *names]:
            path = os.path.join(here, name)
            status = os.lstat(path)
            content = Path(path).read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[path] = (status.st_mode, status.st_mtime_ns, status.st_ctime_ns, content)
    return found


def program(node, name, text):
    path = node.base / "programs" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


# --- what is freed, what stays


def test_frees_the_dead_and_keeps_the_living(node):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    result = node.gc()
    assert (addresses(result["removed"]), node.held()) == (["192.0.2.3"], ["192.0.2.2"])
    assert reasons(result["removed"] + result["kept"]) == {"192.0.2.3": "dead", "192.0.2.2": "alive"}
    assert result["kept"][0]["by"] == ["containerd", "cri"]
    assert result["changed"]
    assert not node.gc()["changed"]


def test_check_mode_says_what_would_go_and_leaves_everything(node):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.cache(B)
    before = tree(node)
    result = node.gc(check_mode=True)
    assert tree(node) == before
    assert result["changed"]
    assert result["run_id"] is None
    real = node.gc()
    for one in (result, real):
        for row in one["removed"] + one["kept"]:
            row.pop("age_s")
    assert (result["removed"], result["kept"]) == (real["removed"], real["kept"])


def test_check_mode_fails_where_the_journal_could_not_be_written(node):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.state_dir.write_text("a file")
    wanted = f"Cannot free addresses: the journal {node.state_dir}/reclaimed cannot be written: not a directory; "
    with pytest.raises(Exception, match=wanted):
        node.gc(check_mode=True)
    with pytest.raises(Exception, match="Cannot free addresses of network net"):
        node.gc()
    assert node.held() == ["192.0.2.2", "192.0.2.3"]


def test_a_holder_file_of_a_static_reservation_goes_the_reservation_stays(node):
    node.containerd(A)
    for last, holder in (("2", A), ("3", B)):
        node.hold(f"192.0.2.{last}", f"static.ns.pod{last}")
        node.hold(f"192.0.2.{last}.holder", holder)
    assert addresses(node.gc()["removed"]) == ["192.0.2.3.holder"]
    assert node.held() == ["192.0.2.2", "192.0.2.2.holder", "192.0.2.3"]


# --- guard 1: evidence


def test_a_failed_source_frees_nothing(node, refused):
    """Its socket does not answer: it may not be up yet after a boot, and its directories are as good as empty."""
    node.containerd(A, up=False)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    text = refused(node)
    assert "containerd.sock does not answer" in text
    assert "does not answer" in refused(node, live=live(A))


def test_a_directory_that_cannot_be_read_frees_nothing(node, refused):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    sandboxes = node.root / CRI / "sandboxes"
    sandboxes.rename(node.base / "elsewhere")
    sandboxes.write_text("not a directory")
    assert "cannot be read (not a directory)" in refused(node)


def test_a_state_directory_elsewhere_frees_nothing(node, refused):
    """The socket answers, but the tasks are not where they are looked for: all would seem dead."""
    node.containerd(A)
    (node.state / TASKS).rmdir()
    node.hold("192.0.2.2", B)
    assert "is not where it keeps its state" in refused(node)


def test_without_any_authoritative_source_nothing_is_freed(node, refused):
    node.hold("192.0.2.2", A)
    node.cache(A)
    text = refused(node)
    assert "no container runtime was found" in text
    assert "with the option live (variable reclaim_live)" in text
    assert "no container runtime was found" in refused(node, force_empty=True)


def test_a_list_that_knows_nobody_frees_nothing(node, refused):
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    assert "force_empty" in refused(node, live=live())
    assert "force_empty" in refused(node, live=live(C))
    result = node.gc(live=live(), force_empty=True)
    assert addresses(result["removed"]) == ["192.0.2.2", "192.0.2.3"]


def test_an_empty_list_is_not_believed_though_all_is_older_than_the_boot(node, refused):
    """A fault empties a list at any time; only a runtime that is up can say that nobody came back after a boot."""
    node.hold("192.0.2.2", A, age_s=time.time() - 1000)
    assert "force_empty" in refused(node, live=live())


def test_an_idle_runtime_is_not_believed_if_something_is_younger_than_the_boot(node, refused):
    node.containerd()
    node.hold("192.0.2.2", A, age_s=time.time() - 1000)
    node.hold("192.0.2.3", B, age_s=-1e6)  # the future counts as young: it neither goes nor proves anything
    assert addresses(node.gc(check_mode=True)["removed"]) == ["192.0.2.2"]
    lines = Path("/proc/stat").read_text().splitlines()
    boot = float(next(line.split()[1] for line in lines if line.startswith("btime")))
    if time.time() - boot < 30:
        pytest.skip("not run: this machine was booted a moment ago")
    node.hold("192.0.2.4", C, age_s=time.time() - boot - 10)
    assert "force_empty" in refused(node, grace=0.0)


def test_after_a_reboot_what_was_there_before_goes(node):
    """Boot time newer than every file, the runtime up and empty: a pool that was full is free."""
    node.containerd(A, B)
    for last, owner in ((2, A), (3, B)):
        node.hold(f"192.0.2.{last}", owner, age_s=time.time() - 1000)
        node.cache(owner, netns="/var/run/netns/cni-gone")
    node.hold("192.0.2.9", "static.web", age_s=time.time() - 1000)
    node.reboot()
    node.containerd()
    result = node.gc()
    assert addresses(result["removed"]) == ["192.0.2.2", "192.0.2.3"]
    assert node.held() == ["192.0.2.9"]
    assert list(node.results.iterdir()) == []


def test_an_idle_runtime_beside_a_matching_one_is_fine(node):
    node.containerd()
    (node.storage / "libpod").mkdir(parents=True)
    (node.storage / "overlay-containers").mkdir()
    (node.storage / "overlay-containers" / "containers.json").write_text(json.dumps([{"id": A, "metadata": "{}"}]))
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    result = node.gc()
    assert addresses(result["removed"]) == ["192.0.2.3"]
    assert {one["name"]: one["state"] for one in result["sources"] if one["authoritative"]} == {
        "containerd": "empty",
        "cri": "empty",
        "podman": "found",
    }


def test_a_cache_entry_alone_keeps_nobody(node):
    """The cache leaks together with the reservation; its namespace is gone, a file of that name proves nothing."""
    plain = node.base / "cni-left"
    plain.write_text("")
    node.containerd(A)
    node.hold("192.0.2.2", A)
    for last, owner, netns in ((3, B, "/var/run/netns/cni-gone"), (4, C, str(plain)), (5, D, "/proc/1/ns/net")):
        node.hold(f"192.0.2.{last}", owner)
        node.cache(owner, netns=netns)
    assert addresses(node.gc()["removed"]) == ["192.0.2.3", "192.0.2.4", "192.0.2.5"]
    assert list(node.results.iterdir()) == []


@pytest.fixture
def namespace():
    """The path of a network namespace of a process that holds it."""
    held = subprocess.Popen(
        ["/usr/bin/unshare", "--net", "/bin/sh", "-c", "echo; /bin/cat"], stdin=-1, stdout=-1, stderr=-1
    )
    try:
        if held.stdout.readline() != b"\n":
            pytest.skip("not run: a network namespace cannot be made")
        yield f"/proc/{held.pid}/ns/net"
    finally:
        held.communicate()


def test_a_cache_entry_of_a_namespace_that_is_there_keeps_its_owner_and_its_kind(node, namespace):
    """No runtime lists the owner: whose it is nobody knows, so nothing with such an id is freed."""
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.hold("192.0.2.4", C)
    node.cache(B, netns=namespace)
    result = node.gc()
    assert reasons(result["kept"]) == {"192.0.2.2": "alive", "192.0.2.3": "alive", "192.0.2.4": "doubtful"}
    assert [one["code"] for one in result["findings"]] == ["IPAM029"]
    assert not result["changed"]
    # a young one is a container that its runtime does not list yet: it casts no doubt
    node.hold("192.0.2.3", B, age_s=5)
    assert addresses(node.gc()["removed"]) == ["192.0.2.4"]


# --- guard 2: ids


def test_only_the_listed_interface_is_alive(node):
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", A.encode() + b"\r\nnet1")
    result = node.gc(live=live({"container_id": A, "ifname": "eth0"}))
    assert addresses(result["removed"]) == ["192.0.2.3"]


@pytest.mark.parametrize(
    "content",
    [b"default-" + B.encode() + b"\r\neth0", b"my-container\r\neth0", b"d9428888-122b-11e1-b85c-61cd3cbb3210\r\neth0"],
)
def test_an_id_of_a_form_that_nobody_has_is_kept_and_told(node, content):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", content)
    result = node.gc()
    assert reasons(result["kept"])["192.0.2.3"] == "unknown_form"
    assert [one["code"] for one in result["findings"]] == ["IPAM024"]


@pytest.mark.parametrize("content", [B.encode() + b"\neth0", B.encode() + b" \r\neth0", b"\xff\xfe"])
def test_content_that_no_plugin_writes_is_kept_and_told(node, content):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", content)
    result = node.gc()
    assert not result["changed"]
    assert [one["code"] for one in result["findings"]] == ["IPAM019"]


def test_a_namespace_that_containerd_ever_had_can_be_judged(node):
    node.containerd(A, tasks={"default": [B], "team-a": []})
    node.hold("192.0.2.2", A)
    for last, namespace, owner in ((3, "default", B), (4, "default", C), (5, "team-a", D), (6, "team-b", D)):
        node.hold(f"192.0.2.{last}", f"{namespace}-{owner}")
    result = node.gc()
    assert addresses(result["removed"]) == ["192.0.2.4", "192.0.2.5"]
    assert reasons(result["kept"])["192.0.2.6"] == "unknown_form"


# --- guard 3: age and the second look


@pytest.mark.parametrize("age_s", [5, 599, -3600])
def test_the_young_are_kept(node, age_s):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B, age_s=age_s)
    node.hold("192.0.2.4", b"", age_s=age_s)
    result = node.gc()
    assert reasons(result["kept"]) == {"192.0.2.2": "alive", "192.0.2.3": "young", "192.0.2.4": "young"}


def test_the_age_of_a_list_counts(node):
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B, age_s=1800)
    assert not node.gc(live=live(A, age=3600.0))["changed"]
    assert node.gc(live=live(A, age=0.0))["changed"]


def test_nothing_is_freed_that_came_after_the_list_whatever_the_grace_age(node):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B, age_s=0)
    assert reasons(node.gc(grace=0.0)["kept"])["192.0.2.3"] == "young"


def test_an_address_that_changed_hands_after_the_list_is_read_again(node, executable):
    """The old owner gave it back and a new pod got it between the list and the unlink; the clock says it is old."""
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.hold("192.0.2.4", C)
    new = node.data_dir / "net" / "192.0.2.3"
    # what a program of the runtime prints is the last thing that is asked before the lock is taken
    program(
        node,
        "ctr",
        f"""
        [ -e {node.base}/once ] || printf '{D}\\r\\neth0' > {new}
        /usr/bin/touch -d '2 days ago' {new} {node.base}/once
        case "$*" in *"namespaces ls"*) echo k8s.io ;; *"tasks ls"*|*"containers ls"*) echo {A} ;; esac
        """,
    )
    result = node.gc()
    assert addresses(result["removed"]) == ["192.0.2.4"]
    assert reasons(result["kept"])["192.0.2.3"] == "changed"
    assert new.read_bytes() == D.encode() + b"\r\neth0"


def test_who_turns_up_before_the_unlink_is_alive(node):
    """The same file, but by the second look its sandbox is there."""
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    sandboxes = node.root / CRI / "sandboxes"
    program(
        node,
        "ctr",
        f"""
        case "$*" in *"namespaces ls"*) echo k8s.io ;; *"tasks ls"*) /bin/mkdir {sandboxes}/{B} ;; esac
        """,
    )
    result = node.gc()
    assert not result["changed"]
    assert result["run_id"] is None
    assert reasons(result["kept"])["192.0.2.3"] == "alive"


def test_a_source_that_fails_at_the_second_look_frees_nothing(node):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    program(
        node,
        "ctr",
        f"""
        case "$*" in *"namespaces ls"*) echo k8s.io; /bin/rm {node.state}/containerd.sock ;; *) echo {A} ;; esac
        """,
    )
    with pytest.raises(Exception, match="does not answer"):
        node.gc()
    assert node.held() == ["192.0.2.2", "192.0.2.3"]
    assert not (node.state_dir / "reclaimed").exists()


# --- guard 4: static reservations


def test_a_static_reservation_is_never_freed(node):
    """Not even if the list has ids of that very form, so that it could be judged."""
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", "static.db-0")
    node.hold("192.0.2.4", "static.db-0.holder")
    result = node.gc(live=live(A, "static.db-1"), force_empty=True, grace=0.0)
    assert not result["changed"]
    assert reasons(result["kept"])["192.0.2.3"] == "static"


# --- guard 5: the journal and the way back


def test_restore_brings_back_the_very_files(node):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.hold("192.0.2.4", C.encode() + b"\n").chmod(0o644)
    node.hold("192.0.2.5", b"")
    cache = node.cache(B)
    folder = node.data_dir / "net"
    before = {one.name: (one.read_bytes(), one.stat().st_mtime_ns, one.stat().st_mode) for one in folder.iterdir()}
    cached = cache.read_bytes()
    freed = node.gc()
    assert node.held() == ["192.0.2.2"]
    assert not cache.exists()
    assert stat.S_IMODE(os.stat(freed["journal"]).st_mode) == 0o600

    predicted = node.restore(freed["run_id"], check_mode=True)
    assert node.held() == ["192.0.2.2"]
    result = node.restore(freed["run_id"])
    assert predicted == result
    assert addresses(result["added"]) == ["192.0.2.3", "192.0.2.4", "192.0.2.5"]
    after = {one.name: (one.read_bytes(), one.stat().st_mtime_ns, one.stat().st_mode) for one in folder.iterdir()}
    after.pop("lock")
    assert after == before
    assert cache.read_bytes() == cached
    again = node.restore(freed["run_id"])
    assert (again["changed"], again["reservations"]) == (False, result["reservations"])


def test_restore_leaves_what_somebody_got_since(node):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    for last in (3, 4, 5):
        node.hold(f"192.0.2.{last}", B)
    run_id = node.gc()["run_id"]
    node.hold("192.0.2.3", D)
    node.hold("192.0.2.4", "static.web")
    result = node.restore(run_id)
    assert addresses(result["added"]) == ["192.0.2.5"]
    assert result["conflicts"] == [
        {"address": "192.0.2.3", "wanted_by": B, "held_by": D},
        {"address": "192.0.2.4", "wanted_by": B, "held_by": "web"},
    ]
    assert calls.held(node.data_dir)["192.0.2.3"].startswith(D)


@pytest.mark.parametrize(
    ("run_id", "reason"),
    [("../x", "no run id"), ("20260101T000000Z-000000", "there is no journal"), ("broken", "cannot be understood")],
)
def test_restore_of_an_unknown_run_is_refused(node, run_id, reason):
    (node.state_dir / "reclaimed").mkdir(parents=True)
    (node.state_dir / "reclaimed" / "broken.json").write_text('{"journal_version": 1, "networks": [{}]}')
    with pytest.raises(Exception, match=reason):
        node.restore(run_id)


def test_restore_of_another_network_says_where_the_run_was(node):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    run_id = node.gc()["run_id"]
    with pytest.raises(Exception, match=r"it freed nothing there, but in net \("):
        node.restore(run_id, "other")


def test_a_journal_that_cannot_be_written_frees_nothing(node):
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.state_dir.mkdir()
    (node.state_dir / "reclaimed").write_text("a file")
    with pytest.raises(Exception, match="Cannot free addresses of network net"):
        node.gc()
    assert node.held() == ["192.0.2.2", "192.0.2.3"]


def test_a_journal_that_cannot_be_written_is_named(node):
    """A directory that is there and takes no file, as one of a read-only file system."""
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.state_dir.mkdir()
    (node.state_dir / "reclaimed").symlink_to("/proc/self")
    with pytest.raises(Exception, match="Cannot free addresses of network net") as caught:
        node.gc()
    text = str(caught.value)
    assert re.search(f": the journal {node.state_dir}/reclaimed/[0-9TZa-f-]+.json cannot be written: [a-z ]+; ", text)
    assert "the option state_dir (variable reclaim_state_dir)" in text
    assert ".nodenet-tmp" not in text
    assert node.held() == ["192.0.2.2", "192.0.2.3"]


# --- networks


def test_only_the_named_networks(node):
    node.network("other", "198.51.100.0/24")
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.hold("198.51.100.2", B, network="other")
    result = node.gc(networks=["other"], all=None)
    assert addresses(result["removed"]) == ["198.51.100.2"]
    assert node.held() == ["192.0.2.2", "192.0.2.3"]


def test_an_error_in_one_network_tells_what_was_freed_in_others(node):
    node.network("zother", "198.51.100.0/24")
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.hold("198.51.100.2", B, network="zother")
    lock = node.data_dir / "zother" / "lock"
    lock.write_text("")
    holder = subprocess.Popen(
        ["/usr/bin/flock", "--shared", str(lock), "/bin/sh", "-c", "echo; /bin/cat"], stdin=-1, stdout=-1
    )
    try:
        holder.stdout.readline()
        with pytest.raises(Exception, match=r"network zother .*cannot lock .*what was freed before that stands in"):
            node.gc(lock_timeout=0.2)
    finally:
        holder.communicate()
    assert (node.held(), node.held("zother")) == (["192.0.2.2"], ["198.51.100.2"])


def test_a_former_directory_of_a_network_is_an_orphan(node):
    """The network has another data dir by now; what lies in the old one goes by the switch for orphans alone."""
    node.network("lan", "198.51.100.0/24", data_dir=node.base / "new")
    node.network("net", data_dir=node.data_dir)
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("198.51.100.2", B, network="lan")
    assert not node.gc(networks=["lan"], all=None)["changed"]
    assert not node.gc()["changed"]
    result = node.gc(networks=["lan"], all=None, orphans=True)
    assert addresses(result["removed"]) == ["198.51.100.2"]
    assert node.held("lan") == []


def test_a_data_dir_that_other_nodes_may_share_is_refused(node, refused, monkeypatch):
    """Who is alive on them this node cannot know."""
    from ansible_collections.nodenet.cni.plugins.module_utils.node import mounts, reclaim_run

    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    monkeypatch.setattr(reclaim_run, "SHARED_FILE_SYSTEMS", (mounts.file_system(str(node.data_dir)),))
    assert "that other nodes may use as well" in refused(node, networks=["net"], all=None)
    result = node.gc()
    assert (result["changed"], [one["code"] for one in result["findings"]]) == (False, ["IPAM028"])


def test_an_unknown_network_is_refused(node, refused):
    node.containerd(A)
    assert "no file defines it" in refused(node, networks=["nope"], all=None)
    assert "name networks" in refused(node, all=False)


# --- public cases


def load(name):
    return json.loads((CASES / (name + ".json")).read_text(encoding="utf-8"))


def fill(node, case, root=None):
    for name, one in case["input"]["data_dir"].items():
        path = Path(str(root or node.data_dir)) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one["content"].encode())
        when = time.time() - one.get("age_s", 90000)
        os.utime(str(path), (when, when))


def listed(case):
    found = []
    for one in case["input"].get("live") or case["input"]["valid_attachments"]:
        ids = {"container_id": one} if isinstance(one, str) else {"container_id": one["containerID"]}
        found.append(dict(ids, ifname=None if isinstance(one, str) else one["ifname"]))
    return found


@pytest.mark.parametrize(
    "name",
    [
        "datadir-empty-ip-files",
        "datadir-foreign-files",
        "datadir-gc-race-young-entry",
        "datadir-gc-two-attachments-one-container",
        "datadir-legacy-id-only",
        "datadir-short-id-prefix",
    ],
)
def test_case(node, name):
    case = load(name)
    data = case["input"]
    network = data["network"]
    node.network(network, data.get("range", {}).get("subnet", "10.244.1.0/24"))
    fill(node, case)
    names = sorted(os.listdir(str(node.data_dir / network)))
    grace = float(data.get("options", {}).get("min_age_s", 600))
    taken = live(*listed(case), age=float(data.get("live_taken_age_s", 0)))
    result = node.gc(networks=[network], all=None, live=taken, grace=grace)
    removed = case["check"]["gc_removed"]
    assert addresses(result["removed"]) == removed
    left = set(os.listdir(str(node.data_dir / network)))
    assert sorted(set(names) - left) == removed
    assert set(case["check"].get("kept", [])) <= left
    assert result["changed"] == case["check"].get("changed", bool(removed))
    assert not node.gc(networks=[network], all=None, live=taken, grace=grace)["changed"]
    if removed:
        assert addresses(node.restore(result["run_id"], network)["added"]) == removed


def test_case_two_runtimes_one_network(node):
    case = load("datadir-two-runtimes-one-network")
    node.network("shared")
    fill(node, case)
    by_runtime = case["input"]["live_by_runtime"]
    ids = [*by_runtime["cri"], *(f"default-{one}" for one in by_runtime["containerd:default"])]
    alone = node.gc(networks=["shared"], all=None, live=live(*by_runtime["cri"]))
    assert not alone["changed"]
    unknown = [one for one, why in reasons(alone["kept"]).items() if why == "unknown_form"]
    assert unknown == case["check"]["with_cri_only"]["unknown_owner"]
    result = node.gc(networks=["shared"], all=None, live=live(*ids))
    assert addresses(result["removed"]) == case["check"]["gc_removed"]


def test_case_two_runtimes_one_network_seen_by_containerd(node):
    """The same, where nobody lists anything: the directories of containerd tell of both."""
    case = load("datadir-two-runtimes-one-network")
    node.network("shared")
    fill(node, case)
    by_runtime = case["input"]["live_by_runtime"]
    node.containerd(*by_runtime["cri"], tasks={"default": by_runtime["containerd:default"]})
    assert addresses(node.gc()["removed"]) == case["check"]["gc_removed"]


def test_case_live_query_failed(node, refused):
    """The program that lists sandboxes fails: not an empty list, but no list at all."""
    case = load("datadir-live-query-failed")
    node.network("cbr0", "10.244.1.0/24")
    fill(node, case)
    assert case["check"] == {"failed": True, "gc_removed": []}  # what refused() asserts
    node.containerd()
    program(node, "crictl", f"echo '{case['input']['live_source']['stderr']}' >&2; exit 1")
    grace = float(case["input"]["options"]["min_age_s"])
    assert "crictl ended with status 1: connect: no such file" in refused(node, grace=grace)
    assert "force_empty" in refused(node, live=live(), sources=[], grace=grace)


def test_case_custom_datadir(node):
    case = load("datadir-custom-datadir")
    root = node.base / "run" / "antrea"
    document = json.dumps(case["input"]["conf_dir"]["10-antrea.conflist"])
    (node.conf_dir / "10-antrea.conflist").write_text(
        document.replace(case["input"]["data_dir_root"], str(root)), encoding="utf-8"
    )
    fill(node, case, root)
    assert addresses(node.gc(live=live(*listed(case)))["removed"]) == case["check"]["leaked"]


def test_case_orphan_network(node, refused):
    """It goes by its own switch alone, and then only what is dead."""
    case = load("datadir-orphan-network")
    node.network("newnet", "10.50.0.0/24")
    fill(node, case)
    taken = live(*listed(case))
    assert not node.gc(live=taken)["changed"]
    assert not node.gc(networks=["newnet"], all=None, live=taken)["changed"]
    assert "set orphans=true" in refused(node, networks=["cbr0"], all=None, live=taken)
    result = node.gc(networks=["cbr0"], all=None, orphans=True, live=taken)
    assert len(result["removed"]) == case["check"]["orphan_networks"]["cbr0"]


def test_case_exhausted_or_leaked(node):
    case = load("netconf-exhausted-vs-leaked")
    node.network("net", "10.1.2.0/29")
    fill(node, case)
    assert addresses(node.gc(live=live(*listed(case)))["removed"]) == case["check"]["leaked"]


def test_case_results_cache(node):
    """The entry of a dead container goes with its reservation; empty ones and those of the living stay."""
    case = load("audit-results-cache")["input"]["nodes"]["n1"]
    node.network("cbr0", "10.244.1.0/24")
    node.results.mkdir()
    for name, content in case["results"].items():
        (node.results / name).write_text(content and json.dumps(content))
    for name, content in case["data_dir"].items():
        node.hold(name.split("/")[1], content.encode(), network=name.split("/")[0])
    node.hold("10.244.1.5", case["live"][0], network="cbr0")
    result = node.gc(live=live(*case["live"]))
    assert addresses(result["removed"]) == ["10.244.1.4"]
    left = sorted(one.name[5:9] for one in node.results.iterdir())
    assert left == ["315b", "56c4"]


# --- races


@pytest.mark.parametrize("rounds", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_a_pod_that_is_made_between_list_and_unlink_survives(node, executable, rounds):
    """A gc of its own process lists, is held there, and goes on when pods were deleted and made behind its back.

    The grace age is 0 and file times are set back, so that only the order of looks and the second one protect.
    """
    node.containerd(A)
    node.hold("192.0.2.2", A)
    os.mkfifo(str(node.base / "listed"))
    os.mkfifo(str(node.base / "go"))
    program(
        node,
        "crictl",
        f"""
        echo '{{"items": [{{"id": "{A}"}}]}}'
        echo > {node.base}/listed
        read line < {node.base}/go
        """,
    )
    for number in range(rounds):
        leaked = [sandbox(1000 + 10 * number + one) for one in range(3)]
        for last, owner in zip((10, 11, 12), leaked):
            node.hold(f"192.0.2.{last}", owner)
        fresh = [sandbox(900000 + 10 * number + one) for one in range(2)]
        run = pods.start_gc(node)
        assert (node.base / "listed").read_text() == "\n"  # the list was printed
        # a late DEL, and a pod that gets that address; another pod that gets one of its own
        pods.call(executable, node, "DEL", leaked[0])
        assert pods.call(executable, node, "ADD", fresh[0], "192.0.2.10") == "192.0.2.10"
        other = pods.call(executable, node, "ADD", fresh[1])
        for address in ("192.0.2.10", other) if number % 2 else ():
            os.utime(str(node.data_dir / "net" / address), (time.time() - OLD,) * 2)
        (node.base / "go").write_text("\n")
        result = pods.result(run)
        assert addresses(result["removed"]) == ["192.0.2.11", "192.0.2.12"], (number, result)
        held = calls.held(node.data_dir)
        assert held == {
            "192.0.2.2": f"{A}\r\neth0",
            "192.0.2.10": f"{fresh[0]}\r\neth0",
            other: f"{fresh[1]}\r\neth0",
        }
        for one in fresh:
            pods.call(executable, node, "DEL", one)
