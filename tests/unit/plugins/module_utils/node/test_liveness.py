# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each source of who is alive, on the trees that runtimes leave and with programs that answer as theirs do.

What is done with the answers is tested in tests/conformance/test_reclaim.py, with real runtimes in tests/clients.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import (
    liveness,
    liveness_cache,
    liveness_commands,
    liveness_cri,
    liveness_dirs,
    liveness_netns,
    liveness_processes,
)

A, B, C, D = (letter * 64 for letter in "abcd")


@pytest.fixture
def listen(tmp_path):
    """Call listen(path): a socket on which somebody accepts."""
    servers = []

    def run(path):
        os.makedirs(os.path.dirname(str(path)), exist_ok=True)
        here = os.open(os.path.dirname(str(path)), os.O_PATH)
        server = socket.socket(socket.AF_UNIX)
        server.bind("/proc/self/fd/%d/%s" % (here, os.path.basename(str(path))))
        os.close(here)
        server.listen(16)
        servers.append(server)
        return server

    yield run
    for server in servers:
        server.close()


@pytest.fixture
def options(tmp_path):
    """The options of a node whose runtimes keep everything below tmp_path."""
    return {
        "sources": list(liveness.SOURCES),
        "attachments": None,
        "containerd": [{"root": str(tmp_path / "lib"), "state": str(tmp_path / "run"), "address": None}],
        "storage_root": str(tmp_path / "storage"),
        "crio_address": str(tmp_path / "crio" / "crio.sock"),
        "results_dirs": [str(tmp_path / "results")],
        "command_timeout": 5.0,
    }


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Call programs(name, text): a shell script of that name is what PATH has."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def write(name, text):
        path = tmp_path / "bin" / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)

    return write


def containerd(tmp_path, cri=True):
    for name in ("lib/io.containerd.metadata.v1.bolt", "run/io.containerd.runtime.v2.task"):
        (tmp_path / name).mkdir(parents=True)
    if cri:
        (tmp_path / "lib/io.containerd.grpc.v1.cri/sandboxes").mkdir(parents=True)
    return tmp_path


def storage(tmp_path, driver, *entries):
    folder = tmp_path / "storage" / (driver + "-containers")
    folder.mkdir(parents=True)
    (folder / "containers.json").write_text(json.dumps(list(entries)))
    return folder


def crio_entry(container_id, **metadata):
    facts = dict({"pod-name": "p", "pod-id": "x", "pod": True}, **metadata)
    return {"id": container_id, "names": ["k8s_POD"], "metadata": json.dumps(facts)}


def podman_entry(container_id):
    return {"id": container_id, "names": ["web"], "metadata": json.dumps({"image-name": "i", "name": "web"})}


def one(sources, name):
    found = [source for source in sources if source.name == name]
    assert len(found) == 1, [source.document() for source in sources]
    return found[0]


# --- containerd


def test_a_node_without_any_runtime_has_no_source(options):
    assert liveness_dirs.read(options) == []


def test_containerd_sandboxes_and_tasks(tmp_path, options, listen):
    base = containerd(tmp_path)
    (base / "lib/io.containerd.grpc.v1.cri/sandboxes" / A).mkdir()
    tasks = base / "run/io.containerd.runtime.v2.task"
    for name in ("k8s.io/" + B, "default/" + C, "team-a/" + D, "default/.half-made"):
        (tasks / name).mkdir(parents=True)
    (base / "lib/io.containerd.runtime.v2.task/gone-ns").mkdir(parents=True)
    listen(base / "run/containerd.sock")
    source = one(liveness_dirs.read(options), "containerd")
    assert (source.state, source.found, source.up) == ("found", 4, True)
    for container_id in (A, B, "default-" + C, "team-a-" + D):
        assert source.says_alive(container_id, "eth0"), container_id
    for container_id in (C, D, "k8s.io-" + B, "default-" + A):
        assert not source.says_alive(container_id, "eth0"), container_id
    assert source.document()["id_forms"] == ["<64 hex>", "default-<64 hex>", "gone-ns-<64 hex>", "team-a-<64 hex>"]


def test_containerd_without_cri_cannot_judge_sandboxes(tmp_path, options, listen):
    base = containerd(tmp_path, cri=False)
    listen(base / "run/containerd.sock")
    source = one(liveness_dirs.read(options), "containerd")
    assert (source.state, source.can_judge(A), source.can_judge("default-" + A)) == ("empty", False, False)


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ("run/containerd.sock", "containerd.sock does not answer"),
        ("run/io.containerd.runtime.v2.task", "is not where it keeps its state"),
        ("lib/io.containerd.metadata.v1.bolt", "is not where it keeps its data"),
    ],
)
def test_containerd_of_which_a_part_is_not_there_failed(tmp_path, options, listen, missing, reason):
    base = containerd(tmp_path)
    listen(base / "run/containerd.sock")
    (base / missing).rename(base / "away")
    source = one(liveness_dirs.read(options), "containerd")
    assert source.state == "failed"
    assert reason in source.failed
    assert not source.up


def test_a_socket_that_nobody_listens_on_failed(tmp_path, options, listen):
    base = containerd(tmp_path)
    listen(base / "run/containerd.sock").close()
    assert "connection refused" in one(liveness_dirs.read(options), "containerd").failed


def test_a_directory_that_is_none_failed(tmp_path, options, listen):
    base = containerd(tmp_path)
    listen(base / "run/containerd.sock")
    sandboxes = base / "lib/io.containerd.grpc.v1.cri/sandboxes"
    sandboxes.rmdir()
    sandboxes.write_text("")
    assert "not a directory" in one(liveness_dirs.read(options), "containerd").failed


def test_a_pair_of_directories_counts_once(tmp_path, options, listen):
    base = containerd(tmp_path)
    listen(base / "run/containerd.sock")
    (base / "link").symlink_to(base / "lib")
    options["containerd"].append({"root": str(base / "link"), "state": str(base / "run")})
    assert len(liveness_dirs.read(options)) == 1


def test_products_that_share_a_state_directory_are_one(tmp_path, options, listen):
    """k3s and RKE2 do: the root of the one that is not installed is no failure."""
    base = containerd(tmp_path)
    listen(base / "run/containerd.sock")
    options["containerd"].insert(0, {"root": str(base / "never"), "state": str(base / "run")})
    assert [(source.place, source.state) for source in liveness_dirs.read(options)] == [(str(base / "lib"), "empty")]
    options["containerd"].pop()
    assert "is not where it keeps its data" in one(liveness_dirs.read(options), "containerd").failed


def test_the_default_places_are_found(options):
    """They are data of the module's documentation too."""
    options["containerd"] = list(liveness.CONTAINERD)
    assert all(source.name == "containerd" for source in liveness_dirs.read(options))
    assert liveness.CONTAINERD[0] == {"root": "/var/lib/containerd", "state": "/run/containerd"}


# --- CRI-O and podman


@pytest.fixture
def running(tmp_path):
    """Call running(name, *before): a process of that name, which has the database of a containerd open."""
    processes = []

    def run(name, *before):
        program = tmp_path / "run" / name
        program.parent.mkdir(exist_ok=True)
        shutil.copy("/bin/sleep", str(program))
        database = tmp_path / "data" / "io.containerd.metadata.v1.bolt" / "meta.db"
        database.parent.mkdir(parents=True, exist_ok=True)
        with open(str(database), "wb") as stream:
            processes.append(subprocess.Popen([*before, str(program), "1000"], stdin=stream))
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with open(f"/proc/{processes[-1].pid}/comm", encoding="utf-8") as stream:
                if stream.read().strip() == name:
                    return
            time.sleep(0.01)

    yield run
    for process in processes:
        process.kill()
        process.wait()


def failures(options):
    return [source.failed for source in liveness_dirs.read(options) if source.failed]


@pytest.mark.parametrize("program", ["containerd", "k3s-server"])
def test_a_containerd_that_nobody_named_is_a_failure(tmp_path, options, running, program):
    running(program)
    found = failures(options)
    assert len(found) == 1
    assert found[0].endswith(f"keeps its data in {tmp_path}/data, which the option containerd does not name")
    assert failures(dict(options, containerd=[{"root": str(tmp_path / "data"), "state": "/none"}])) != found
    assert failures(dict(options, sources=["podman"])) == []


def test_a_crio_whose_socket_is_elsewhere_is_a_failure(tmp_path, options, running, listen):
    running("crio")
    found = failures(options)
    assert len(found) == 1
    assert found[0].endswith(f"is a CRI-O, and its socket is not {tmp_path}/crio/crio.sock")
    listen(tmp_path / "crio" / "crio.sock")
    assert failures(options) == []


@pytest.mark.parametrize("kind", ["--user", "--net"])
def test_a_runtime_of_a_user_without_privileges_is_none_of_the_node(options, running, kind):
    """Or of a container: its networks are its own, and its socket cannot be reached from here."""
    running("containerd", "unshare", kind)
    running("crio", "unshare", kind)
    assert failures(options) == []


def test_a_runtime_that_cannot_be_looked_into_is_a_failure(running):
    """To the user nobody it looks like any other process."""
    running("containerd")
    code = (
        "from module_utils.node import liveness, liveness_dirs as d\n"
        "o = dict(liveness.defaults(), containerd=[], crio_address='/none', storage_root='/none')\n"
        "print(json.dumps([one.failed for one in d.read(o)]))"
    )
    found = inside(["setpriv", "--reuid=65534", "--clear-groups"], code)
    assert len(found) == 1
    assert found[0].endswith("/fd cannot be read (permission denied)")


def test_crio_sandboxes_hold_addresses_until_their_network_is_stopped(tmp_path, options, listen):
    folder = storage(tmp_path, "overlay", crio_entry(A), crio_entry(B), crio_entry(C, pod=False))
    (folder / B / "userdata").mkdir(parents=True)
    (folder / B / "userdata" / "network-stopped").write_text("")
    listen(tmp_path / "crio/crio.sock")
    source = one(liveness_dirs.read(options), "crio")
    assert [source.says_alive(each, "eth0") for each in (A, B, C)] == [True, False, False]
    assert source.can_judge(B)


def test_crio_that_does_not_answer_failed(tmp_path, options):
    storage(tmp_path, "overlay", crio_entry(A))
    assert "crio.sock does not answer" in one(liveness_dirs.read(options), "crio").failed


def test_podman_containers_in_any_state(tmp_path, options):
    folder = storage(tmp_path, "vfs", podman_entry(A))
    (folder / "volatile-containers.json").write_text(json.dumps([podman_entry(B)]))
    source = one(liveness_dirs.read(options), "podman")
    assert [source.says_alive(each, "eth0") for each in (A, B, C)] == [True, True, False]


def test_podman_and_crio_in_one_storage(tmp_path, options, listen):
    storage(tmp_path, "overlay", crio_entry(A), podman_entry(B))
    listen(tmp_path / "crio/crio.sock")
    sources = liveness_dirs.read(options)
    assert [(s.name, s.says_alive(A, ""), s.says_alive(B, "")) for s in sources] == [
        ("crio", True, False),
        ("podman", False, True),
    ]
    options["sources"] = ["podman"]
    assert [source.name for source in liveness_dirs.read(options)] == ["podman"]


@pytest.mark.parametrize("text", ["{", '["x"]', '[{"id": 1, "metadata": "{"}]', '[{"metadata": "{}"}]', "5"])
def test_a_storage_that_cannot_be_understood_failed(tmp_path, options, text):
    folder = storage(tmp_path, "overlay")
    (folder / "containers.json").write_text(text)
    assert all("cannot be understood" in source.failed for source in liveness_dirs.read(options))
    assert len(liveness_dirs.read(options)) == 2


# --- programs


@pytest.fixture
def asked(tmp_path, options, listen):
    """Call asked(): what programs say of a containerd and a podman that are at work."""
    containerd(tmp_path)
    storage(tmp_path, "overlay")
    (tmp_path / "storage" / "libpod").mkdir()
    listen(tmp_path / "run/containerd.sock")
    options["command_timeout"] = 0.5

    def ask():
        runtimes = liveness_dirs.read(options)
        return [source for source in liveness_commands.ask(options, runtimes) if source.name != "cri"]

    return ask


def test_without_programs_none_is_asked(asked, programs):
    assert asked() == []


def test_crictl(asked, programs, tmp_path):
    pods = {"items": [{"id": A, "state": "SANDBOX_READY"}, {"id": B, "state": "SANDBOX_NOTREADY"}]}
    programs("crictl", f"echo \"$@\" > {tmp_path}/said; echo '{json.dumps(pods)}'")
    source = one(asked(), "crictl")
    assert (tmp_path / "said").read_text() == f"-r unix://{tmp_path}/run/containerd.sock -t 0.5s pods -o json\n"
    assert [source.says_alive(each, "eth0") for each in (A, B, C)] == [True, True, False]
    assert (source.authoritative, source.command, source.up, source.can_judge(C)) == (True, True, True, True)


def test_ctr(asked, programs):
    programs(
        "ctr",
        f"""
        case "$*" in
        *"namespaces ls -q") echo default; echo k8s.io ;;
        *"--namespace default tasks ls -q") echo {A} ;;
        *"--namespace k8s.io tasks ls -q") echo {B} ;;
        *"--namespace k8s.io containers ls -q") echo {C} ;;
        *) exit 9 ;;
        esac
        """,
    )
    source = one(asked(), "ctr")
    assert not source.failed
    found = [each for each in ("default-" + A, A, B, C, D) if source.says_alive(each, "eth0")]
    assert found == ["default-" + A, B, C]
    assert source.document()["id_forms"] == ["default-<64 hex>"]


def test_nerdctl(asked, programs):
    programs(
        "nerdctl",
        f"""
        case "$*" in
        *"namespace ls -q") echo default ;;
        *"--namespace default ps --no-trunc -q") echo {A} ;;
        *) exit 9 ;;
        esac
        """,
    )
    assert one(asked(), "nerdctl").says_alive("default-" + A, "eth0")


def test_podman(asked, programs):
    containers = [{"Id": A, "State": "running"}, {"Id": B, "State": "exited"}]
    programs("podman", f"echo 'a warning' >&2; echo '{json.dumps(containers)}'")
    source = one(asked(), "podman")
    assert [source.says_alive(each, "eth0") for each in (A, B, C)] == [True, True, False]
    programs("podman", "echo null")
    assert one(asked(), "podman").state == "empty"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo 'connect: no such file' >&2; exit 1", "ended with status 1: connect: no such file"),
        ("exec /bin/sleep 60", "gave no answer within 0.5 s"),
        ("echo POD ID", "printed no JSON"),
        ("echo '{}'", "printed no list"),
        ("""echo '{"items": [{"Id": "x"}]}'""", "without id"),
        ("", "printed no JSON"),
        ("kill -9 $$", "ended with status -9"),
    ],
)
def test_a_program_that_fails_is_a_failed_source(asked, programs, text, reason):
    programs("crictl", text)
    source = one(asked(), "crictl")
    assert reason in source.failed
    assert (source.state, source.up) == ("failed", False)


@pytest.mark.parametrize("name", ["ctr", "nerdctl", "podman"])
def test_every_program_may_fail(asked, programs, name):
    programs(name, "exit 3")
    assert "ended with status 3" in one(asked(), name).failed


def test_a_program_that_cannot_be_started_is_a_failed_source(asked, programs, tmp_path):
    programs("podman", "")
    (tmp_path / "bin" / "podman").write_text("#!/no/such/interpreter\n")
    assert "cannot be started" in one(asked(), "podman").failed


def test_commands_are_not_asked_again_under_the_lock(tmp_path, options, programs, listen):
    (tmp_path / "storage" / "libpod").mkdir(parents=True)
    options["sources"] = ["podman"]
    programs("podman", f"echo >> {tmp_path}/calls; echo '[]'")
    first = liveness.gather(options)
    again = liveness.gather(options, first)
    assert (tmp_path / "calls").read_text() == "\n"
    assert [source.place for source in again.sources] == [source.place for source in first.sources]
    assert again.started == first.started


# --- CRI


@pytest.fixture
def server(tmp_path, listen):
    """Call server(answer): a socket where each caller is sent these bytes."""
    threads = []

    def run(answer):
        path = tmp_path / ("s%d" % len(threads))
        listening = listen(path)

        def serve():
            for _service in liveness_cri.SERVICES:
                try:
                    client, _address = listening.accept()
                except OSError:
                    return
                with client:
                    asked = b""
                    while not asked.endswith(bytes(5)):
                        asked += client.recv(65536)
                    client.sendall(answer)

        threads.append((threading.Thread(target=serve), listening))
        threads[-1][0].start()
        return str(path)

    yield run
    for thread, listening in threads:
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def message(*ids):
    items = b""
    for each in ids:
        item = b"\x0a" + bytes([len(each)]) + each.encode() + b"\x18\x01"
        items += b"\x0a" + bytes([len(item)]) + item
    return b"\0" + len(items).to_bytes(4, "big") + items


HEAD = frame(4, 0, 0, b"") + frame(1, 4, 1, b"\x88")
TRAILERS = frame(1, 5, 1, b"")


def test_cri_lists_sandboxes(server):
    body = message(A, B)
    address = server(HEAD + frame(6, 0, 0, bytes(8)) + frame(0, 0, 1, body[:50]) + frame(0, 0, 1, body[50:]) + TRAILERS)
    assert liveness_cri.sandboxes(address, 5.0) == [A, B]


def test_cri_of_an_idle_runtime(server):
    assert liveness_cri.sandboxes(server(HEAD + frame(0, 0, 1, bytes(5)) + TRAILERS), 5.0) == []


def test_an_error_of_cri_is_no_empty_list(server):
    with pytest.raises(liveness_cri.NoAnswer):
        liveness_cri.sandboxes(server(frame(4, 0, 0, b"") + TRAILERS), 5.0)


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + frame(0, 0, 1, message(A, B)[:70]) + TRAILERS,
        HEAD + frame(0, 0, 1, message(A, B)),
        HEAD + frame(0, 0, 1, b"\1" + message(A)[1:]) + TRAILERS,
        HEAD + frame(0, 0, 1, b"\0\0\0\0\2\x0a\x09") + TRAILERS,
        HEAD + frame(0, 0, 1, b"\0\0\0\0\4\x0a\x02\x18\x01") + TRAILERS,
        HEAD + frame(0, 0, 1, b"\0\0\0\0\2\x0f\x09") + TRAILERS,
        HEAD + frame(3, 0, 1, bytes(4)),
        HEAD + frame(7, 0, 0, bytes(8)),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"",
    ],
    ids=["cut", "no-end", "compressed", "overlong", "no-id", "odd-field", "reset", "goaway", "http1", "closed"],
)
def test_an_answer_of_cri_that_is_not_whole_is_an_error(server, answer):
    with pytest.raises(OSError, match="ListPodSandbox|server|reset"):
        liveness_cri.sandboxes(server(answer), 5.0)


def test_a_server_that_says_nothing_is_an_error(tmp_path, listen):
    listen(tmp_path / "silent")
    with pytest.raises(OSError, match="timed out"):
        liveness_cri.sandboxes(str(tmp_path / "silent"), 0.2)


# --- processes


def process(proc, pid, cmdline, cgroup=""):
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "cmdline").write_bytes("\0".join([*cmdline, ""]).encode())
    (proc / str(pid) / "cgroup").write_text(cgroup)


def test_shims_conmon_and_control_groups(tmp_path):
    proc = tmp_path / "proc"
    shim = ["/usr/bin/containerd-shim-runc-v2", "-namespace", "default", "-id", A, "-address", "/run/c.sock"]
    process(proc, 1, ["/sbin/init"], "0::/init.scope\n")
    process(proc, 7, shim, "0::/system.slice/containerd.service\n")
    process(proc, 8, ["/usr/bin/conmon", "--api-version", "1", "-c", B, "-u", B])
    process(proc, 9, ["sleep", "9"], f"0::/kubepods.slice/cri-containerd-{C}.scope\n")
    process(proc, 10, ["vim", "containerd-shim", "-id", D])
    (proc / "self").mkdir()
    source = liveness_processes.read(str(proc))
    assert not source.authoritative
    ids = (A, "default-" + A, B, C, "default-" + C, D)
    assert [source.says_alive(each, "eth0") for each in ids] == [True, True, True, True, True, False]


def test_processes_that_cannot_be_seen_are_a_failure(tmp_path):
    process(tmp_path / "own", 7, ["sleep", "9"])
    assert "does not show the processes of others" in liveness_processes.read(str(tmp_path / "own")).failed
    assert "cannot be read" in liveness_processes.read(str(tmp_path / "none")).failed


def test_a_process_of_this_machine():
    script = "exec -a /usr/bin/containerd-shim-runc-v2 /bin/sh -c 'read line' -namespace moby -id " + D
    running = subprocess.Popen(["/bin/bash", "-c", script], stdin=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with open(f"/proc/{running.pid}/cmdline", encoding="utf-8") as stream:
                if stream.read().startswith("/usr/bin/containerd-shim"):
                    break
            time.sleep(0.01)
        assert liveness_processes.read().says_alive("moby-" + D, "eth0")
    finally:
        running.communicate()


# --- namespaces


@pytest.fixture
def namespaces():
    """A process with mounts of its own, a namespace with an address and a process, and a bound one without."""
    script = """
    for one in /run/netns/*; do umount "$one" 2>/dev/null; done
    mount -t tmpfs tmpfs /run && mkdir -p /run/netns '/run/net ns' || exit 77
    ip netns add bound && ip -n bound link set lo up
    ip -n bound addr add 198.51.100.77/24 dev lo && ip -n bound addr add 2001:db8::77/64 dev lo || exit 77
    mv_target='/run/net ns/moved'; touch "$mv_target"; mount --bind /run/netns/bound "$mv_target"
    ip netns del bound
    touch /run/netns/plain
    ip netns add busy && ip -n busy link set lo up && ip -n busy addr add 198.51.100.78/24 dev lo || exit 77
    ip netns exec busy sleep 1000 &
    echo ready; cat
    """
    if os.geteuid() != 0:
        pytest.skip("not run: namespaces need root")
    held = subprocess.Popen(
        ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        if held.stdout.readline() != b"ready\n":
            pytest.skip("not run: namespaces cannot be made here: %s" % held.communicate()[1].decode().strip())
        with open(f"/proc/{held.pid}/task/{held.pid}/children", encoding="ascii") as stream:
            yield ["nsenter", "-t", stream.read().split()[0], "-m", "-n", "-p", "--"]
    finally:
        held.communicate()


def inside(entry, code):
    """Run code in the namespaces, with the library at hand; return what it prints as JSON."""
    base = os.path.dirname(os.path.dirname(liveness.__file__))
    text = f"import json, sys; sys.path.insert(0, {os.path.dirname(base)!r})\n" + code
    done = subprocess.run([*entry, "/usr/bin/python3", "-IBS", "-c", text], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_addresses_in_use_in_bound_and_in_busy_namespaces(namespaces):
    found = inside(
        namespaces,
        "from module_utils.node import liveness_netns as n\n"
        "s = n.read(); print(json.dumps([s.failed, s.in_use, s.authoritative, sorted(s.running)]))",
    )
    # not the one that is bound and empty, and none of the node itself
    assert [one for one in found[3] if one.startswith("198.51.100.7")] == ["198.51.100.78"]
    assert (found[0], found[2]) == ("", False)
    assert found[1]["198.51.100.77"] == "/run/net ns/moved"
    assert found[1]["2001:db8::77"] == "/run/net ns/moved"
    assert found[1]["198.51.100.78"].startswith("network namespace of process ")


def test_the_routes_of_a_node_do_not_hold_up_a_look(namespaces):
    """Nodes may have a full table of the internet; the lock is held while the second look is taken."""
    script = (
        "ip link set lo up && ip addr add 203.0.113.9/24 dev lo && ip addr add 2001:db8:9::9/64 dev lo &&"
        " seq 0 99999 | while read n; do"
        ' echo "route add blackhole 10.$((n / 65536)).$((n / 256 % 256)).$((n % 256))"; done | ip -batch -'
    )
    done = subprocess.run([*namespaces, "sh", "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    began = time.monotonic()
    found = inside(
        namespaces,
        "from module_utils.node import liveness_netns as n\ns = n.read(); print(json.dumps([s.failed, s.in_use]))",
    )
    assert time.monotonic() - began < 3
    assert found[0] == ""
    for address in ("203.0.113.9", "2001:db8:9::9", "127.0.0.1"):
        assert found[1][address] == "the network namespace of this node"


def test_only_a_mounted_namespace_is_one(namespaces):
    found = inside(
        namespaces,
        "from module_utils.node.liveness_netns import is_namespace as n\n"
        "paths = ['/run/net ns/moved', '/run/netns/busy', '/run/netns/plain', '/run/netns/none', '/proc/1/ns/net']\n"
        "print(json.dumps([n(one) for one in paths]))",
    )
    assert found == [True, True, False, False, False]


def test_a_namespace_that_cannot_be_entered_is_a_failure(namespaces):
    if not os.path.exists("/usr/bin/setpriv"):
        pytest.skip("not run: there is no setpriv")
    found = inside(
        [*namespaces, "setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"],
        "from module_utils.node import liveness_netns as n\ns = n.read(); print(json.dumps([s.failed]))",
    )
    assert found == ["/run/net ns/moved cannot be entered (operation not permitted)"]


def test_a_namespace_that_another_mount_hides_is_a_failure(namespaces):
    """Its addresses may be in use, and nobody can look."""
    done = subprocess.run([*namespaces, "mount", "-t", "tmpfs", "tmpfs", "/run/net ns"], check=False)
    assert done.returncode == 0
    found = inside(
        namespaces,
        "from module_utils.node import liveness_netns as n\ns = n.read(); print(json.dumps([s.failed]))",
    )
    assert found == ["/run/net ns/moved cannot be entered (another mount hides it)"]


def test_a_procfs_that_hides_processes_is_a_failure(namespaces):
    """Else whatever runs there would seem dead, and nobody would say that nothing was seen."""
    if not os.path.exists("/usr/bin/setpriv"):
        pytest.skip("not run: there is no setpriv")
    plain = ["setpriv", "--regid=65534", "--clear-groups", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    hiding = ["unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh", *plain]
    found = inside(
        [*namespaces, *hiding],
        "from module_utils.node import liveness_netns as n, liveness_processes as p\n"
        "print(json.dumps([n.read().failed, p.read().failed]))",
    )
    assert found == [
        "/proc cannot be read (it does not show the processes of others)",
        "/proc does not show the processes of others",
    ]


def test_a_runtime_of_another_process_namespace_is_a_failure(namespaces, tmp_path, listen):
    """It answers through a socket that is mounted here, as in a pod that looks after its node."""
    path = tmp_path / "containerd.sock"
    listen(path)
    code = "from module_utils.node import liveness_dirs as d\nprint(json.dumps([d.connect_fault(%r)]))" % str(path)
    assert inside(namespaces, code) == [
        f"{path} is of another process namespace, whose containers cannot be seen from here"
    ]
    assert liveness_dirs.connect_fault(str(path)) == ""


def test_addresses_of_a_network_directory(tmp_path):
    (tmp_path / "fib_trie").write_text(
        "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n"
        "     |-- 10.1.2.0\n        /24 link UNICAST\n     |-- 10.1.2.3\n        /32 host LOCAL\n"
        "     |-- 10.1.2.255\n        /32 link BROADCAST\n"
    )
    (tmp_path / "if_inet6").write_text("20010db8000000000000000000000005 02 40 00 80 eth0\n")
    assert liveness_netns.addresses(str(tmp_path)) == {"10.1.2.3", "2001:db8::5"}
    with pytest.raises(FileNotFoundError):
        liveness_netns.addresses(str(tmp_path / "none"))


# --- caches


def entry(**more):
    return dict(
        {"kind": "cniCacheV1", "containerId": A, "ifName": "eth0", "networkName": "my-net", "netns": "/proc/0/x"},
        **more,
    )


def test_cache_entries(tmp_path, namespaces):
    """What an entry says counts, not its name, and only while one of its namespaces is there."""
    folder = tmp_path / "results"
    folder.mkdir()
    by_result = {"interfaces": [{"name": "br"}, {"name": "eth0", "sandbox": "/run/netns/busy"}]}
    files = {
        "my-net-a-eth0": entry(),
        "1": entry(containerId=B, netns="/run/netns/busy"),
        "2": entry(containerId=C, netns=None, result=by_result),
        "3": entry(containerId=D, netns="/run/netns/plain"),
        "empty": "",
        "list": [1],
        "result-only": {"ips": []},
        "odd": entry(containerId=5),
    }
    for name, content in files.items():
        (folder / name).write_text(content if content == "" else json.dumps(content))
    (folder / "cut").write_text('{"kind": "cniCac')
    (folder / "folder").mkdir()
    found = inside(
        namespaces,
        f"from module_utils.node import liveness_cache as c\ns = c.read({str(folder)!r})\n"
        "print(json.dumps([s.failed, sorted([e.container_id[0], e.network, e.alive] for e in s.entries),\n"
        f"                  s.says_alive({B!r}, 'eth0'), s.says_alive({B!r}, 'net1')]))",
    )
    expected = [["a", "my-net", False], ["b", "my-net", True], ["c", "my-net", True], ["d", "my-net", False]]
    assert found == ["", expected, True, False]


def test_a_cache_that_is_not_there_is_empty_one_that_is_no_directory_failed(tmp_path):
    assert liveness_cache.read(str(tmp_path / "none")).state == "empty"
    (tmp_path / "file").write_text("")
    assert "not a directory" in liveness_cache.read(str(tmp_path / "file")).failed


# --- all together


def test_a_given_list():
    source = liveness.given([{"container_id": A, "ifname": "eth0"}, {"container_id": B[:13], "ifname": None}])
    alive = [(A, "eth0"), (A, "net1"), (B, "net1"), (C, "eth0")]
    assert [source.says_alive(*each) for each in alive] == [True, False, True, False]
    assert source.can_judge(C)
    assert not source.can_judge("default-" + C)
    assert not source.up
    assert liveness.given([]).document()["id_forms"] == ["<64 hex>"]


def test_boot_time(tmp_path):
    assert liveness.boot_time() > 1e9
    (tmp_path / "stat").write_text("cpu 1\nbtime x\n")
    assert liveness.boot_time(str(tmp_path / "stat")) == 0.0
    assert liveness.boot_time(str(tmp_path / "none")) == 0.0


# --- for reports


def test_the_judge_of_reports(tmp_path, options, listen):
    containerd(tmp_path)
    (tmp_path / "lib/io.containerd.grpc.v1.cri/sandboxes" / A).mkdir()
    runtime = listen(tmp_path / "run/containerd.sock")
    sources = liveness_dirs.read(options)
    in_use = liveness.Source("namespaces", "/proc", authoritative=False)
    in_use.in_use["192.0.2.9"] = "/run/netns/x"
    judge = liveness.Judge(liveness.Evidence([*sources, in_use], 0.0, 0.0))
    asked = [(A, "eth0", "192.0.2.2"), (B, "eth0", "192.0.2.3"), (B, "eth0", "192.0.2.9"), ("x", "eth0", "192.0.2.4")]
    assert [judge.judge(*each) for each in asked] == [True, False, True, None]
    runtime.close()
    judge = liveness.Judge(liveness.Evidence(liveness_dirs.read(options), 0.0, 0.0))
    assert "does not answer" in judge.fault
    assert [judge.judge(*each) for each in asked] == [None] * 4
    assert liveness.Judge(liveness.Evidence([in_use], 0.0, 0.0)).fault == "no container runtime was found"
