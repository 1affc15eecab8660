# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Call the libcni of the CNI project, through a client that is built for it."""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
from pathlib import Path

import needs

SOURCE = Path(__file__).resolve().parent / "libcni_client" / "main.go"
GOPATH = "/usr/share/gocode"
LIBRARY = f"{GOPATH}/src/github.com/containernetworking/cni/libcni"


class ClientFailed(Exception):
    """libcni returned an error; the text is what it says."""


def build(folder):
    """Build the client with Debian's Go and libcni; what was compiled once is kept for the next run."""
    mandatory = needs.debian_12()
    needs.require("nsenter", mandatory=mandatory)
    compiler = shutil.which("go") or next(iter(sorted(glob.glob("/usr/lib/go-*/bin/go"), reverse=True)), None)
    if not compiler:
        needs.leave_out("there is no compiler for the client of libcni (Debian package golang-1.19-go)", mandatory)
    if not os.path.isdir(LIBRARY):
        needs.leave_out("there is no libcni (Debian package golang-github-appc-cni-dev)", mandatory)
    program = folder / "client"
    kept = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "nodenet-cni", "go-build")
    settings = {"GO111MODULE": "off", "GOPATH": GOPATH, "GOFLAGS": "", "GOCACHE": kept, "CGO_ENABLED": "0"}
    done = subprocess.run(
        [compiler, "build", "-o", str(program), str(SOURCE)],
        env=dict(os.environ, **settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return str(program)


def caller(machine, program, paths, cache):
    """Return what the fixture `libcni` is."""

    def call(command, conflist, pod, whose="ours", ifname="eth0", **more):
        request = {
            "command": command,
            "conflist": conflist,
            "path": paths[whose].split(":"),
            "cache": str(cache),
            "container": pod,
            "netns": f"/run/netns/{pod}",
            "ifname": ifname,
            "args": [["IgnoreUnknown", "1"], ["K8S_POD_NAMESPACE", "default"], ["K8S_POD_NAME", pod]],
        }
        done = machine.run(program, input=json.dumps(dict(request, **more)), check=False)
        if done.returncode:
            raise ClientFailed(done.stderr.strip())
        return json.loads(done.stdout)

    return call
