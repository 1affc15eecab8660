# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes on this machine, reached over SSH, without any network between: for playbooks as users run them.

A node has network, mounts, processes and host name of its own. Its root is an overlay on that of this machine, so
it has its programs, and whatever it writes is gone with it. An SSH client starts the node's sshd itself, as
ProxyCommand, and speaks with it through pipes; so a node is always without a way out.

    python3 nodes.py up FOLDER NAME...      start nodes that stay until `down`, at most half an hour
    python3 nodes.py down FOLDER
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools"))

import sshd

PYTHON = "/usr/bin/python3"
_LIFE_S = 1800

# What is left of the programs of a bare node: a shell, Python, and what the SSH connection of Ansible needs.
_BARE = "sh dash bash python3 python3.[0-9]* cat env mkdir rm chmod echo uname sleep test true sshd"

_BOOT = r"""
set -e
name=$1 folder=$2 layer=$3 bare=$4
top=$folder/$name
mount -t tmpfs -o size=1g,mode=755 tmpfs "$top"
mkdir "$top/up" "$top/work" "$top/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$top/up,workdir=$top/work" "$top/root"
cd "$top/root"
for place in etc/cni opt/cni var/lib/cni var/lib/nodenet-cni var/lib/containerd etc/containerd etc/crio \
    etc/NetworkManager etc/firewalld etc/modules-load.d etc/sysctl.d; do
    rm -rf "./$place"
done
rm -f usr/lib/tmpfiles.d/podman.conf # a node has no podman, whose package empties a data dir at each boot
rm -f root/.bash* root/.profile # what this machine's root does at a login is no node's: it may wait for a killed one
[ -z "$layer" ] || cp -a "$layer/." . # no layer of the overlay, as it lies inside of the one below
mkdir -p etc/fleet
cp "$folder/hostkey" "$folder/key.pub" "$folder/sshd_config" etc/fleet
chmod 600 etc/fleet/hostkey
grep -q '^sshd:' etc/passwd || echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin' >>etc/passwd
echo "$name" >etc/hostname
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir run/sshd run/old
ip link set lo up
hostname "$name"
pivot_root . run/old
umount -l /run/old
rmdir /run/old
if [ -n "$bare" ]; then
    set -f
    keep=
    for one in $bare; do keep="$keep ! -name $one"; done
    rm -rf /usr/lib/python3/dist-packages /usr/local/lib/python3*
    find /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /bin/ /sbin/ ! -type d $keep -exec rm -f {} +
fi
echo ready
exec env -i --ignore-signal=CHLD PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root cat >/dev/null
"""

_SSHD = """HostKey /etc/fleet/hostkey
AuthorizedKeysFile /etc/fleet/key.pub
StrictModes no
UsePAM no
UseDNS no
PermitRootLogin prohibit-password
PidFile none
PrintMotd no
Subsystem sftp internal-sftp
"""

# How a client gets into a node, for whoever reads it with -F: it starts the node's sshd in its namespaces. That lives
# as long as the connection that others share, so it holds nothing open of who asked for it first: who waits for the end
# of that one's messages must not wait for it.
_SSH = """User root
UserKnownHostsFile {folder}/known_hosts
IdentityFile {folder}/key
IdentitiesOnly yes
ProxyCommand sh -c 'exec nsenter --target $(cat {folder}/%h.pid) --net --mount --pid --ipc --uts -- \
/usr/sbin/sshd -i -f /etc/fleet/sshd_config -E /run/sshd.log 2>/dev/null'
"""


class Fleet:
    """Nodes that were started. ``close()`` ends them and all that runs in them, also when this process just dies."""

    def __init__(self, names: list[str], folder: str | None = None, bare: bool = False) -> None:
        self.names = names
        self.folder = folder or tempfile.mkdtemp(prefix="nodenet-fleet-", dir="/run")
        self._shells: list[subprocess.Popen] = []
        self.pids: dict[str, int] = {}
        layer = sshd.layer() or ""
        try:
            self._prepare()
            for name in names:
                self._start(name, layer, _BARE if bare else "")
            for name, shell in zip(names, self._shells):
                if shell.stdout.readline() != b"ready\n":
                    raise AssertionError(f"node {name} did not start: {self._said(name)}")
                self.pids[name] = _child(shell.pid)
                with open(os.path.join(self.folder, name + ".pid"), "w", encoding="ascii") as stream:
                    stream.write(str(self.pids[name]))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _prepare(self) -> None:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        for name in ("key", "hostkey"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.folder, name)]
            subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
        with open(os.path.join(self.folder, "hostkey.pub"), encoding="ascii") as stream:
            known = "* " + stream.read()
        client = _SSH.replace("{folder}", self.folder)
        for name, text in (("sshd_config", _SSHD), ("known_hosts", known), ("ssh_config", client)):
            with open(os.path.join(self.folder, name), "w", encoding="ascii") as stream:
                stream.write(text)

    def _start(self, name: str, layer: str, bare: str) -> None:
        os.mkdir(os.path.join(self.folder, name))
        namespaces = ["--net", "--mount", "--pid", "--ipc", "--uts", "--propagation", "private"]
        start = ["unshare", *namespaces, "--fork", "--kill-child", "sh", "-c", _BOOT, "node"]
        with open(os.path.join(self.folder, name + ".log"), "wb") as log:
            shell = subprocess.Popen(
                [*start, name, self.folder, layer, bare],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._shells.append(shell)

    def _said(self, name: str) -> str:
        with open(os.path.join(self.folder, name + ".log"), encoding="utf-8", errors="replace") as stream:
            return stream.read()

    def close(self) -> None:
        for shell in self._shells:
            shell.stdin.close()
        for shell in self._shells:
            try:
                shell.wait(20)
            except subprocess.TimeoutExpired:
                shell.kill()
                shell.wait()
            shell.stdout.close()
        self._shells = []
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name: str, inside: str) -> str:
        """Return where a file of a node is found from outside."""
        return f"/proc/{self.pids[name]}/root{inside}"

    def run(self, name: str, *command: str, check: bool = True, timeout_s: float = 60) -> subprocess.CompletedProcess:
        """Run a program of a node in it; its output is text."""
        entry = ["nsenter", "--target", str(self.pids[name]), "--net", "--mount", "--pid", "--ipc", "--uts", "--"]
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": timeout_s}
        environment = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        done = subprocess.run([*entry, *command], env=environment, check=False, **options)
        if check and done.returncode:
            raise AssertionError(
                "`%s` ended with %d: %s%s" % (" ".join(command), done.returncode, done.stdout, done.stderr)
            )
        return done

    def kill_all(self, name: str) -> None:
        """End everything in a node at once but its first process, as the loss of power does."""
        for pid in _others(self.pids[name]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _child(pid: int) -> int:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return int(children.read().split()[0])


def _others(first: int) -> list[int]:
    """The processes in the PID namespace of a node's first one, without that."""
    own = os.stat(f"/proc/{first}/ns/pid").st_ino
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            if int(entry) != first and os.stat(f"/proc/{entry}/ns/pid").st_ino == own:
                found.append(int(entry))
    return found


def ansible_environment(folder: str) -> dict[str, str]:
    """What ansible-core needs in its environment to reach the nodes over SSH."""
    return {
        "ANSIBLE_SSH_ARGS": "-F %s -o ControlMaster=auto -o ControlPersist=60s" % os.path.join(folder, "ssh_config"),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": os.path.join(folder, "cp"),
        "ANSIBLE_PIPELINING": "true",
    }


def _serve(folder: str, names: list[str]) -> None:
    wanted = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    with Fleet(names, folder):
        print("ready", flush=True)
        os.close(1)
        signal.sigtimedwait(wanted, _LIFE_S)


def _up(folder: str, names: list[str]) -> None:
    _down(folder)
    os.makedirs(folder, mode=0o700)
    with open(os.path.join(folder, "server.log"), "wb") as log:
        server = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "serve", folder, *names],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    with open(os.path.join(folder, "server.pid"), "w", encoding="ascii") as stream:
        stream.write(str(server.pid))
    if server.stdout.readline() != b"ready\n":
        raise SystemExit("the nodes did not start, see %s" % folder)


def _down(folder: str) -> None:
    """End the server whose pid the folder names, if it is one of ours."""
    try:
        with open(os.path.join(folder, "server.pid"), encoding="ascii") as stream:
            pid = int(stream.read())
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = stream.read().split(b"\0")
        if b"serve" in words and folder.encode() in words:
            fd = os.pidfd_open(pid)
            try:
                signal.pidfd_send_signal(fd, signal.SIGTERM)
                select.select([fd], [], [], 30)
            finally:
                os.close(fd)
    except (OSError, ValueError):
        pass
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    {"up": _up, "serve": _serve, "down": lambda folder, _names: _down(folder)}[sys.argv[1]](sys.argv[2], sys.argv[3:])
