# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sources that people have: a distribution's directory, an archive in upstream's shape, the embedded plugin."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import embedded, executables
from ansible_collections.nodenet.cni.tests.unit.plugin_files import Node, actions

DISTRIBUTION = Path("/usr/lib/cni")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(executables.__file__)))
NAMES = ["bridge", "host-local", "loopback", "portmap"]

pytestmark = [
    pytest.mark.go,
    pytest.mark.skipif(
        not (DISTRIBUTION / "bridge").exists(),
        reason="not run: no Go plugins in /usr/lib/cni (Debian package containernetworking-plugins)",
    ),
]


@pytest.fixture
def node(tmp_path, monkeypatch):
    monkeypatch.setattr(executables, "node_python", lambda: os.path.realpath(sys.executable))
    return Node(tmp_path)


def content(node, name):
    return (node.bin / name).read_bytes()


def versions(node, name):
    command = [str(node.bin / name)]
    done = subprocess.run(command, env={"CNI_COMMAND": "VERSION"}, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["supportedVersions"]


def test_distribution(node):
    result = node.install(str(DISTRIBUTION))
    there = sorted(name for name in os.listdir(str(DISTRIBUTION)) if (DISTRIBUTION / name).is_file())
    assert [one["name"] for one in result["plugins"]] == there
    assert result["findings"] == []
    for one in result["plugins"]:
        assert one["cni_versions"], one
        assert one["sha256"] == hashlib.sha256((DISTRIBUTION / one["name"]).read_bytes()).hexdigest()
    again = node.install(str(DISTRIBUTION))
    assert again["changed"] is False
    assert [one["cni_versions"] for one in again["plugins"]] == [one["cni_versions"] for one in result["plugins"]]
    assert node.remove()["removed"] == there


def test_upstream_archive_then_embedded_and_back(node):
    src = str(node.out / "cni-plugins-linux-amd64-v1.1.1.tgz")
    with tarfile.open(src, "w:gz", compresslevel=1) as archive:
        top = tarfile.TarInfo("./")
        top.type, top.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(top)
        for name in NAMES:
            archive.add(str(DISTRIBUTION / name), "./" + name)
        for name in ("LICENSE", "README.md"):
            archive.addfile(tarfile.TarInfo("./" + name))
    digest = hashlib.sha256(Path(src).read_bytes()).hexdigest()
    result = node.install(src, checksum="sha256:" + digest, required=NAMES)
    assert actions(result) == {name: "installed" for name in NAMES}
    assert (result["findings"], result["ignored"]) == ([], ["LICENSE", "README.md"])
    for name in NAMES:
        assert content(node, name) == (DISTRIBUTION / name).read_bytes()
    go = versions(node, "host-local")

    packed = embedded.pack(executables.collect_sources(ROOT, ["host-local"]))
    result = node.install(src, checksum="sha256:" + digest, own=["host-local"], sources=packed)
    assert actions(result) == dict({name: "unchanged" for name in NAMES}, **{"host-local": "replaced"})
    assert set(versions(node, "host-local")) >= set(go)
    assert actions(node.put_back()) == {"host-local": "replaced"}
    assert content(node, "host-local") == (DISTRIBUTION / "host-local").read_bytes()
    assert sorted(node.remove()["removed"]) == NAMES
