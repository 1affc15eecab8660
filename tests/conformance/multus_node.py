# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node for multus whose plugins hold something: an interface in the pod, and a file for each address.

So whatever leaks is seen.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

from multus_api import ApiServer
from multus_vectors import MultusLibrary

PLUGIN = """\
#!/bin/sh
cd {root}
cat > stdin.$$
echo "$CNI_COMMAND ${{0##*/}} $CNI_CONTAINERID $CNI_IFNAME" >> calls
echo "$CNI_COMMAND ${{0##*/}} $CNI_CONTAINERID $CNI_IFNAME $CNI_ARGS" >> args
held=held/$CNI_CONTAINERID-$CNI_IFNAME
case $CNI_COMMAND in
ADD)
    rm stdin.$$
    if [ -e fail-${{0##*/}} ]; then echo '{{"code": 11, "msg": "later"}}'; exit 1; fi
    nsenter --net=$CNI_NETNS ip link add $CNI_IFNAME type bridge || exit 1
    : > $held
    cat <<END
{{"cniVersion": "1.1.0", "interfaces": [{{"name": "$CNI_IFNAME", "sandbox": "$CNI_NETNS"}}],
 "ips": [{{"address": "10.0.0.5/24", "interface": 0}}]}}
END
    ;;
DEL)
    rm stdin.$$
    if [ -e fail-${{0##*/}} ]; then echo '{{"code": 11, "msg": "later"}}'; exit 1; fi
    if [ -n "$CNI_NETNS" ] && [ -e "$CNI_NETNS" ]; then
        nsenter --net=$CNI_NETNS ip link del $CNI_IFNAME 2>/dev/null
    fi
    rm -f $held
    ;;
GC) mv stdin.$$ gc-${{0##*/}} ;;
*) rm stdin.$$ ;;
esac
exit 0
"""
NETWORKS = "k8s.v1.cni.cncf.io/networks"
UID = "11111111-2222-3333-4444-555555555555"


class Node:
    """A node with one pod ``ns1/p1`` on two networks besides the default one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.library = MultusLibrary()
        self.api = ApiServer()
        self.netns_name = "nodenet-mb-%d" % os.getpid()
        self.netns = "/var/run/netns/" + self.netns_name
        for folder in ("bin", "held", "conf"):
            (root / folder).mkdir()
        for name in ("main", "one", "two"):
            path = root / "bin" / name
            path.write_text(PLUGIN.format(root=root))
            path.chmod(0o755)
        for name in ("one", "two"):
            text = json.dumps({"cniVersion": "1.1.0", "name": name, "type": name})
            self.api.put_nad({"metadata": {"namespace": "ns1", "name": name}, "spec": {"config": text}})
        self.put_pod("one,two")
        kubeconfig = {
            "clusters": [{"name": "c", "cluster": {"server": self.api.url}}],
            "contexts": [{"name": "x", "context": {"cluster": "c"}}],
            "current-context": "x",
        }
        (root / "kubeconfig").write_text(json.dumps(kubeconfig))
        self.config = {
            "cniVersion": "1.1.0",
            "name": "multus",
            "type": "multus",
            "kubeconfig": str(root / "kubeconfig"),
            "cniDir": str(root / "cni"),
            "confDir": str(root / "conf"),
            "binDir": str(root / "bin"),
            "delegates": [{"cniVersion": "1.1.0", "name": "main-net", "type": "main"}],
        }
        subprocess.run(["ip", "netns", "add", self.netns_name], check=True)

    def put_pod(self, networks: str) -> None:
        metadata = {"namespace": "ns1", "name": "p1", "uid": UID, "annotations": {NETWORKS: networks}}
        self.api.put_pod({"metadata": metadata, "spec": {}, "status": {}})

    def close(self) -> None:
        self.api.stop()
        subprocess.run(["ip", "netns", "del", self.netns_name], check=False, capture_output=True)

    def environment(self, command: str, container: str = "cid", netns: str | None = None) -> dict:
        return {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": container,
            "CNI_IFNAME": "eth0",
            "CNI_NETNS": self.netns if netns is None else netns,
            "CNI_PATH": str(self.root / "bin"),
            "CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns1;K8S_POD_NAME=p1;K8S_POD_UID=" + UID,
            "PATH": os.environ["PATH"],
        }

    def call(self, command: str, container: str = "cid", netns: str | None = None, **keys):
        done = self.library.call(
            self.environment(command, container, netns), json.dumps({**self.config, **keys}).encode(), "/", []
        )
        document = json.loads(done.stdout) if done.stdout else None
        return done.rc, document, done.stderr

    def calls(self) -> list:
        path = self.root / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [" ".join(line.split()[:2] + line.split()[3:]) for line in lines]

    def args(self) -> set:
        """Return CNI_ARGS of the calls since the last time, each with its plugin and interface."""
        path = self.root / "args"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return {tuple(line.split(" ", 4)) for line in lines}

    def age(self, *paths: Path) -> None:
        """Let two minutes pass for files: by default for all of the caches."""
        for path in paths or [one for one in (self.root / "cni").rglob("*") if one.is_file()]:
            os.utime(path, (time.time() - 120,) * 2)

    def make_old(self) -> None:
        """Let a while pass for files that a killed call left unfinished."""
        for path in (self.root / "cni").glob(".nodenet-*"):
            os.utime(path, (time.time() - 120,) * 2)

    def left(self) -> tuple:
        """Return what is held, the links of the pod, and the files of the caches."""
        shown = subprocess.run(
            ["ip", "-n", self.netns_name, "-o", "link"], capture_output=True, text=True, check=True
        ).stdout
        links = sorted(line.split(": ")[1] for line in shown.splitlines() if ": lo:" not in line)
        cache = self.root / "cni"
        files = sorted(path.name for path in cache.rglob("*") if path.is_file()) if cache.exists() else []
        return sorted(os.listdir(self.root / "held")), links, files
