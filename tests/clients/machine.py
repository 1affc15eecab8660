# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine of its own to be a CNI node: network, mounts, processes and /run of this one stay as they are.

Its first process reads from a pipe that the test holds. When the pipe closes, also because the test was killed, that
process ends, and the kernel ends everything else in the machine and drops its mounts, interfaces and rules.
"""

from __future__ import annotations

import ipaddress
import json
import os
import secrets
import subprocess
import time

GO_PLUGINS = "/usr/lib/cni"
SYSTEM_PYTHON = "/usr/bin/python3"

# /run: netns names, locks and states of runtimes; /var/lib: their stores and the results cache of libcni
_BOOT = """
set -e
for point in $(awk '$4 ~ "^net:" {print $5}' /proc/self/mountinfo); do
    umount -l "$point" 2>/dev/null || :  # who removes such a name outside takes it away in here as well
done
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/lib
mkdir /run/lock
ip link set lo up
for family in all default; do echo 0 >/proc/sys/net/ipv6/conf/$family/accept_dad; done
echo ready
exec env --ignore-signal=CHLD cat >/dev/null
"""

# control groups are not the machine's own, so somebody must outlive it to remove them
_SHELL = """
cgroup=$1
shift
"$@"
for top in /sys/fs/cgroup/"$cgroup" /sys/fs/cgroup/*/"$cgroup"; do
    [ ! -d "$top" ] || find "$top" -depth -type d -exec rmdir {} ";"
done
"""

# a closed port answers at once with a reset: both directions work, and no server is needed
_CONNECT = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.socket(family) as end:
    end.settimeout(float(sys.argv[2]))
    try:
        end.connect((sys.argv[1], 9))
    except ConnectionRefusedError:
        sys.exit(0)
    except OSError as error:
        sys.exit("%s: %s" % (sys.argv[1], error))
"""


class PluginFailed(Exception):
    """A plugin answered with an error document: the text is its message."""


def _child(pid: int) -> int:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return int(children.read().split()[0])


class Machine:
    """A machine that was started; `run` calls a program in it, `close` ends it.

    The one thing that it does not have for itself are control groups: a runtime is told to put its own below `cgroup`.
    """

    def __init__(self) -> None:
        self.cgroup = f"nodenet-clients-{secrets.token_hex(4)}"
        namespaces = ["--net", "--mount", "--pid", "--ipc", "--uts", "--propagation", "private"]
        start = ["unshare", *namespaces, "--fork", "--kill-child", "--mount-proc", "sh", "-c", _BOOT]
        self._shell = subprocess.Popen(
            ["sh", "-c", _SHELL, "machine", self.cgroup, *start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # what kills the tests must not keep it from cleaning up
        )
        try:
            if self._shell.stdout.readline() != b"ready\n":
                raise AssertionError("the machine of the test did not start")
            self.pid = _child(_child(self._shell.pid))
        except BaseException:
            self.close()
            raise
        self.entry = ["nsenter", "--target", str(self.pid), "--net", "--mount", "--pid", "--ipc", "--uts", "--"]

    def close(self) -> None:
        self._shell.stdin.close()
        try:
            self._shell.wait(30)
        finally:
            self._shell.stdout.close()

    def path(self, inside: str) -> str:
        """Return where a file of the machine's own /run or /var/lib is found from outside."""
        return f"/proc/{self.pid}/root{inside}"

    def run(self, *command: str, check: bool = True, timeout_s: float = 60, **options) -> subprocess.CompletedProcess:
        """Run a program; its output is text, and with *check* a failure ends the test with that output."""
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run(
            [*self.entry, *command], capture_output=True, text=True, timeout=timeout_s, check=False, **options
        )
        if check and done.returncode:
            said = done.stdout + done.stderr
            raise AssertionError("`%s` ended with %d: %s" % (" ".join(command), done.returncode, said))
        return done

    def add_pod(self, name: str) -> str:
        """Make the network namespace of a pod; return its path."""
        self.run("ip", "netns", "add", name)
        path = f"/run/netns/{name}"
        no_dad = "for f in all default; do echo 0 >/proc/sys/net/ipv6/conf/$f/accept_dad; done; ip link set lo up"
        self.run("nsenter", f"--net={path}", "sh", "-c", no_dad)
        return path

    def addresses(self, pod: str, ifname: str = "eth0") -> list[str]:
        """Return what an interface of a pod carries, as address/prefix, without link-local; [] if it is not there."""
        done = self.run("ip", "-n", pod, "-json", "addr", "show", "dev", ifname, check=False)
        entries = json.loads(done.stdout or "[]") if done.returncode == 0 else []
        found = [f"{info['local']}/{info['prefixlen']}" for entry in entries for info in entry.get("addr_info", ())]
        return sorted(one for one in found if not ipaddress.ip_interface(one).ip.is_link_local)

    def reaches(self, pod: str, address: str, timeout_s: float = 3) -> bool:
        """Tell whether a pod gets an answer from an address. Routes and neighbours may need a moment to settle."""
        inside = ["nsenter", f"--net=/run/netns/{pod}", SYSTEM_PYTHON, "-IBS", "-c", _CONNECT]
        deadline = time.monotonic() + timeout_s
        while True:
            left = max(0.2, deadline - time.monotonic())
            if self.run(*inside, address, str(left), check=False).returncode == 0:
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.1)

    def cni(self, path: str, command: str, config: dict, pod: str, ifname: str = "eth0", arguments: str = "") -> dict:
        """Call a plugin as a runtime does.

        :param path: CNI_PATH, from which the IPAM plugin is taken
        :param pod: name of the namespace, and container id
        :return: the result, {} where the plugin prints none
        """
        environment = {
            "PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": pod,
            "CNI_NETNS": f"/run/netns/{pod}",
            "CNI_IFNAME": ifname,
            "CNI_PATH": path,
            "CNI_ARGS": arguments,
        }
        plugin = os.path.join(GO_PLUGINS, config["type"])
        done = self.run(plugin, check=False, input=json.dumps(config), env=environment)
        answer = json.loads(done.stdout or "{}")
        if done.returncode:
            raise PluginFailed("%s of %s: %s%s" % (command, pod, answer.get("msg", done.stdout), done.stderr))
        return answer
