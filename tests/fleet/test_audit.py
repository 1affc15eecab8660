# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbook audit on 20 nodes over SSH: a fleet that is well, then one with every fault that it can find."""

from __future__ import annotations

import collections
import json
import os
import sqlite3
from pathlib import Path

COUNT = 20
DATA = "var/lib/cni/networks"
MULTUS = "00-multus.conf"
#: Codes that the second audit shall find once each. FLEET023 needs time to pass, and has an audit of its own.
PLANTED = [f"FLEET{number:03}" for number in range(1, 25) if number != 23]
PLUGIN = """#!/bin/sh
echo "CNI {0} plugin {1}" >&2
echo "CNI protocol versions supported: 0.3.1, 0.4.0, 1.0.0" >&2
"""


def container_id(node, number):
    return f"{node:032x}{number:032x}"


class Planter:
    """Writes what a node has, and keeps what its controller knows of it."""

    def __init__(self, controller):
        self.controller = controller
        self.alive = {host: [] for host in controller.fleet.names}
        for number in range(1, COUNT + 1):
            self.healthy(number)

    def path(self, number, *parts):
        return Path(self.controller.fleet.path(f"node{number}", "/" + os.path.join(*parts)))

    def variables(self, number):
        return self.controller.of_host.setdefault(f"node{number}", {})

    def healthy(self, number):
        for folder in ("etc/cni/net.d", "opt/cni/bin", DATA):
            self.path(number, folder).mkdir(parents=True, exist_ok=True)
        for plugin in ("bridge", "macvlan", "host-local", "portmap", "multus"):
            self.plugin(number, plugin, "v1.5.1")
        self.podnet(number)
        self.lan(number)
        self.multus(number)
        for index in range(4):
            self.reserve(number, "podnet", f"10.64.{number}.{index + 2}", index)
        self.reserve(number, "lan", f"172.20.{number}.10", owner=f"static.vip-{number}")
        self.reserve(number, "lan", f"172.20.{number}.11", 9, "net1")
        self.variables(number).update(
            reservations_networks=self.plan(number), pod_cidr=f"10.64.{number}.0/27", audit_live=self.live(number)
        )

    def plan(self, number, *more):
        wanted = [{"owner": f"vip-{number}", "addresses": [f"172.20.{number}.10"]}]
        wanted += [{"owner": owner, "addresses": [address]} for owner, address in more]
        return [{"network": "lan", "reservations": wanted}]

    def live(self, number):
        return {"attachments": [{"container_id": one} for one in self.alive[f"node{number}"]]}

    def plugin(self, number, name, release):
        path = self.path(number, "opt/cni/bin", name)
        path.write_text(PLUGIN.format(name, release))
        path.chmod(0o755)

    def conflist(self, number, name, document):
        self.path(number, "etc/cni/net.d", name).write_text(json.dumps(document))

    def network(self, number, name, kind, ranges, **settings):
        ipam = {"type": "host-local", "ranges": [[one] for one in ranges]}
        plugins = [dict(settings, type=kind, ipam=ipam)]
        self.conflist(number, f"10-{name}.conflist", {"cniVersion": "1.0.0", "name": name, "plugins": plugins})

    def podnet(self, number, mtu=1450):
        self.network(number, "podnet", "bridge", [{"subnet": f"10.64.{number}.0/27"}], bridge="cni0", mtu=mtu)

    def lan(self, number, first=None, last=None):
        start, end = first or f"172.20.{number}.5", last or f"172.20.{number}.250"
        ranges = [{"subnet": "172.20.0.0/16", "rangeStart": start, "rangeEnd": end, "gateway": "172.20.0.1"}]
        self.network(number, "lan", "macvlan", ranges, master="eth1")

    def multus(self, number, level="error"):
        delegate = {"cniVersion": "1.0.0", "name": "podnet", "type": "bridge", "bridge": "cni0"}
        document = {"cniVersion": "1.0.0", "name": "multus", "type": "multus", "logLevel": level}
        document.update(kubeconfig="/etc/cni/net.d/multus.d/multus.kubeconfig", delegates=[delegate])
        self.conflist(number, MULTUS, document)

    def reserve(self, number, network, address, index=0, ifname="eth0", owner=None, dead=False):
        folder = self.path(number, DATA, network)
        folder.mkdir(exist_ok=True)
        holder = owner or container_id(number, index)
        (folder / address).write_bytes(f"{holder}\r\n{ifname}".encode())
        os.utime(folder / address, (1.7e9, 1.7e9))
        if not owner and not dead:
            self.alive[f"node{number}"].append(holder)
            if "audit_live" in self.variables(number):
                self.variables(number)["audit_live"] = self.live(number)

    def fill(self, number, upto, dead=False):
        for index in range(4, upto):
            self.reserve(number, "podnet", f"10.64.{number}.{index + 2}", index, dead=dead)

    def plant(self):
        """Plant each fault on a node of its own, where it has not two."""
        self.reserve(1, "lan", "172.20.2.11", 77, "net1")  # FLEET001: node2 holds it
        # FLEET002, as node4 begins at .5, and FLEET024
        self.lan(3, last="172.20.4.7")
        self.fill(5, 25)  # FLEET003: 29 usable, all alive
        self.fill(6, 25, dead=True)  # FLEET004
        self.variables(12)["ansible_host"] = "gone"  # FLEET005
        for number, upto in ((7, 25), (10, 29)):  # FLEET006, FLEET009: nobody says who is alive
            self.fill(number, upto)
            del self.variables(number)["audit_live"]
        self.fill(8, 29)  # FLEET007
        self.fill(9, 29, dead=True)  # FLEET008
        self.variables(11)["pod_cidr"] = "10.99.0.0/24"  # FLEET010
        self.variables(13)["reservations_networks"] = self.plan(
            13,
            ("other", "172.20.14.10"),  # FLEET011: that of node14
            ("router", "172.20.0.1"),  # FLEET012
            ("printer", "172.20.15.99"),  # FLEET013: node15 may hand it out
            ("nas", "192.0.2.1"),  # FLEET014
            ("clock", "172.20.13.11"),  # FLEET015: a pod has it
            ("later", "172.20.13.12"),  # FLEET016
            ("typo", "172.20.13.1111"),  # FLEET018
        )
        self.variables(16)["reservations_networks"] = [{"network": "lan", "reservations": []}]  # FLEET017
        self.podnet(17, mtu=1500)  # FLEET019
        self.multus(18, level="debug")  # FLEET020
        self.plugin(19, "bridge", "v1.3.0")  # FLEET021
        self.plugin(19, "portmap", "v1.3.0")
        document = {"cniVersion": "1.0.0", "name": "former", "plugins": [{"type": "bridge", "bridge": "old0"}]}
        self.conflist(20, "00-former.conflist", document)  # FLEET022


def codes(fleet):
    return sorted(one["code"] for one in fleet["findings"])


def test_every_fault_of_a_fleet_is_found_once(control, tmp_path):
    controller = control(COUNT, {"ansible_ssh_timeout": 10})
    nodes = Planter(controller)
    options = {
        "audit_pod_cidr_variable": "pod_cidr",
        "audit_history": str(tmp_path / "history.sqlite"),
        "audit_output_dir": str(tmp_path / "out"),
        "target_serial": 8,
    }

    def audit(**more):
        run = controller.play("audit", **dict(options, **more))
        return run, json.loads((tmp_path / "out" / "fleet.json").read_text())

    run, fleet = audit(audit_fail_on="error")
    assert run.code == 0, run.text[-6000:]
    assert fleet["findings"] == []
    assert [one for one in fleet["node_findings"] if one["severity"] != "info"] == []
    assert fleet["summary"]["reported"] == COUNT
    assert fleet["summary"]["reservations"] == 6 * COUNT
    assert run.modules == dict.fromkeys(controller.fleet.names, 1)

    nodes.plant()
    run, fleet = audit(audit_fail_on="error")
    assert run.code != 0
    assert "Findings that audit_fail_on names: " in run.words
    assert codes(fleet) == PLANTED, [one["text"] for one in fleet["findings"]]
    assert not fleet["complete"]
    assert [one["host"] for one in fleet["hosts"] if not one["reported"]] == ["node12"]
    where = {one["code"]: one["hosts"] for one in fleet["findings"]}
    assert where["FLEET001"] == ["node1", "node2"]
    assert where["FLEET002"] == ["node3", "node4"]
    assert where["FLEET005"] == ["node12"]
    singles = {3: 5, 4: 6, 6: 7, 7: 8, 8: 9, 9: 10, 10: 11, 12: 13, 17: 16, 19: 17, 20: 18, 21: 19, 22: 20, 24: 3}
    for number, node in singles.items():
        assert where[f"FLEET{number:03}"] == [f"node{node}"], number
    told = collections.Counter(one["code"] for one in fleet["history"]["new"] if one["host"] is None)
    assert told == dict.fromkeys(PLANTED, 1)
    assert {"node6", "node9"} == {one["host"] for one in fleet["node_findings"] if one["code"] == "IPAM023"}

    # a day later node16 has got many pods, and nothing else has changed
    database = sqlite3.connect(tmp_path / "history.sqlite")
    database.execute("UPDATE audits SET taken_at = taken_at - 86400")
    database.commit()
    database.close()
    nodes.fill(16, 20)
    run, fleet = audit()
    assert run.code == 0, run.text[-6000:]
    assert codes(fleet) == sorted({*PLANTED, "FLEET023"} - {"FLEET024"})
    assert [(one["code"], one["host"]) for one in fleet["history"]["new"]] == [("FLEET023", None)]
    assert [one["host"] for one in fleet["history"]["growing"]] == ["node16"]
    assert [one["code"] for one in fleet["history"]["gone"]] == ["FLEET024"]
