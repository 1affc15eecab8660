# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Multus comes and goes step by step: killed before any of them, the node has a network all the same."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import confdir, effective, multus_plan

STEPS = ("mkdir", "rename", "unlink", "rmdir", "fsync")
KILLED = 9
MASTER = {"cniVersion": "1.0.0", "name": "podnet", "plugins": [{"type": "bridge"}]}
OLD = {
    "cniVersion": "0.3.1",
    "name": "multus-cni-network",
    "type": "multus",
    "delegates": [dict(MASTER, cniVersion="0.3.1")],
}
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
PARAMS = {
    "master": None,
    "name": "multus-cni-network",
    "cni_version": None,
    "force_cni_version": False,
    "kubeconfig_path": None,
    "kubeconfig": {"server": "https://10.96.0.1", "ca": CA, "token": "opaque-1"},
    "parts": ["config", "kubeconfig"],
    "namespace_isolation": None,
    "global_namespaces": None,
    "log_level": None,
    "log_file": None,
    "log_to_stderr": None,
    "readiness_indicator_file": None,
    "delegate_conf_dir": "/etc/cni/multus/net.d",
    "delegate_bin_dir": None,
    "settings": {},
    "expect_effective": None,
    "containerd_config": "",
    "crio_config": "",
    "crio_default_network": None,
    "remove_plugin": "unused",
    "flannel_subnet_file": "/nonexistent",
}


class Node:
    def __init__(self, root):
        self.root = root
        self.conf = root / "net.d"
        self.conf.mkdir()
        (root / "bin").mkdir()
        for name in ("multus", "bridge"):
            (root / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        self.put("10-podnet.conflist", MASTER)

    def put(self, name, document):
        (self.conf / name).write_text(json.dumps(document))

    def run(self, state):
        places = (("conf_dir", "net.d"), ("bin_dir", "bin"), ("cache_dir", "cache"), ("state_dir", "state"))
        more = {key: str(self.root / name) for key, name in places}
        plan = multus_plan.make_plan(confdir.read_conf_dir(str(self.conf)), dict(PARAMS, state=state, **more))
        multus_plan.apply(plan)
        return plan.result

    def killed_before(self, step, state):
        """Run in a process of its own that is gone before its step of that number; tell whether it got there."""
        pid = os.fork()
        if pid == 0:
            try:
                stop_before(step)
                self.run(state)
                os._exit(0)
            finally:
                os._exit(1)
        code = os.WEXITSTATUS(os.waitpid(pid, 0)[1])
        assert code in (0, KILLED)
        return code == KILLED

    def see(self):
        """What a runtime that looks at this moment gets, and that it can be used."""
        files = confdir.read_conf_dir(str(self.conf)).files
        settings = effective.Settings(confdir.installed_plugins(str(self.root / "bin")))
        networks = {answer["network"] for answer in effective.predict(files, settings).values()}
        assert len(networks) == 1
        assert None not in networks
        for one in files:
            document = json.loads(one.data)
            plugin = document["plugins"][0] if "plugins" in document else document
            assert os.path.exists(plugin.get("kubeconfig", str(self.conf)))
            if plugin["type"] == "multus":
                assert (self.root / "bin" / "multus").exists()
        return networks.pop()


def stop_before(step):
    count = [0]

    def counted(function):
        def call(*arguments, **more):
            count[0] += 1
            if count[0] == step:
                os._exit(KILLED)
            return function(*arguments, **more)

        return call

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))


@pytest.mark.parametrize("way", ["first", "another version", "away"])
def test_killed_before_any_step(tmp_path, way):
    networks, step = set(), 0
    while True:
        step += 1
        root = tmp_path / str(step)
        root.mkdir()
        node = Node(root)
        state = "present"
        if way == "another version":
            node.put("00-multus.conf", OLD)
        elif way == "away":
            node.run("present")
            state = "absent"
        got_there = node.killed_before(step, state)
        networks.add(node.see())
        node.run(state)
        end = node.see()
        names = sorted(os.listdir(str(node.conf)))
        if way == "away":
            assert (end, names) == ("podnet", ["10-podnet.conflist"])
            assert not (node.root / "bin" / "multus").exists()
        else:
            assert (end, names) == (
                "multus-cni-network",
                ["00-multus.conflist", "10-podnet.conflist", "multus.d"],
            )
            assert os.listdir(str(node.conf / "multus.d")) == ["multus.kubeconfig"]
            assert oct((node.conf / "multus.d" / "multus.kubeconfig").stat().st_mode & 0o777) == "0o600"
        if not got_there:
            break
    assert step > 5
    assert networks == ({"multus-cni-network"} if way == "another version" else {"podnet", "multus-cni-network"})
