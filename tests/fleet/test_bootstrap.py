# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbook bootstrap on real nodes over SSH, as its users run it."""

from __future__ import annotations

import json
from pathlib import Path

import plugin_sets

# No masquerading and no port mappings, as these call iptables; the rest is what people have.
PODNET = {
    "name": "podnet",
    "preset": "bridge",
    "ip_masq": False,
    "portmap": False,
    "subnet": "{{ (pod_subnet | nodenet.cni.node_ranges(groups['nodes'], 24))[inventory_hostname].subnet }}",
}
VARIABLES = {
    "pod_subnet": "10.64.0.0/16",
    "networks_conflists": [PODNET],
    "reservations_networks": [
        {"network": "podnet", "reservations": [{"owner": "dns"}, {"owner": "proxy", "ifname": "eth1"}]}
    ],
}
CONFLIST = "/etc/cni/net.d/10-podnet.conflist"
BUDGET = 6


def conflist(controller, host):
    return json.loads(Path(controller.fleet.path(host, CONFLIST)).read_text())


def installed(controller, host):
    folder = Path(controller.fleet.path(host, "/opt/cni/bin"))
    return {path.name: plugin_sets.digest(path) for path in folder.iterdir() if not path.name.startswith(".")}


def test_twenty_nodes_twice(control, tmp_path):
    release = plugin_sets.archive(tmp_path / "files", "cni-plugins-linux-amd64-v1.5.0.tgz", "1")
    controller = control(20, dict(VARIABLES, plugin_binaries_src=release.name))
    first = controller.play("bootstrap")
    assert first.code == 0, first.text[-6000:]
    assert len(first.changed) == 20
    assert min(first.changed.values()) >= 4
    subnets = set()
    for host in controller.fleet.names:
        assert installed(controller, host) == plugin_sets.digests(release)
        (subnet,) = (one["subnet"] for one in conflist(controller, host)["plugins"][0]["ipam"]["ranges"][0])
        subnets.add(subnet)
        held = sorted(path.name for path in Path(controller.fleet.path(host, "/var/lib/cni/networks/podnet")).iterdir())
        prefix = subnet.rpartition(".")[0]
        # what the probe was given is free again, and the rotation is where it was
        assert held == [f"{prefix}.2", f"{prefix}.3", "lock"]
    assert len(subnets) == 20
    second = controller.play("bootstrap")
    assert second.code == 0, second.text[-6000:]
    assert second.changed == dict.fromkeys(controller.fleet.names, 0), second.text[-6000:]
    for host in controller.fleet.names:
        tasks = second.modules_by_task(host)
        assert sum(tasks.values()) == second.modules[host]
        assert list(tasks.values()) == [1] * BUDGET, tasks
    print("module calls a node in the second run: %s" % second.modules_by_task("node1"))
