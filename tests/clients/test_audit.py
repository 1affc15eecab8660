# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What host_local_info makes of the cache of the CNI project's libcni, beside the reservations of its calls."""

from __future__ import annotations

import json
import os
from pathlib import Path

import machine as machines
import pytest

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
OLD = 1e9
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from module_utils.node import cachecheck, ipam_report
cachecheck.SETTLE = 0.1
live = json.loads(sys.argv[4])
print(json.dumps(ipam_report.report(sys.argv[2], "", results_dirs=[sys.argv[3]], live=live)))
"""


@pytest.fixture
def audit(machine, tmp_path):
    """Call audit(network, alive): the findings (code, text) of the machine as a node with that network."""

    def run(network, alive=None):
        (tmp_path / "net.d").mkdir(exist_ok=True)
        (tmp_path / "net.d" / "10-net.conflist").write_text(json.dumps(network))
        for folder in (tmp_path / "cache" / "results", tmp_path / "data" / "net"):
            for path in folder.iterdir():
                os.utime(path, (OLD, OLD))
        live = None if alive is None else {"attachments": [{"container_id": one} for one in alive]}
        arguments = [str(PLUGINS), str(tmp_path / "net.d"), str(tmp_path / "cache" / "results"), json.dumps(live)]
        done = machine.run(machines.SYSTEM_PYTHON, "-B", "-c", PROGRAM, *arguments)
        return {one["code"]: one["text"] for one in json.loads(done.stdout)["findings"]}

    return run


@pytest.mark.parametrize("version", ["0.4.0", "1.0.0"])
def test_addresses_in_use_and_their_reservations(machine, libcni, audit, tmp_path, version):
    ipam = {"type": "host-local", "dataDir": str(tmp_path / "data")}
    ipam["ranges"] = [[{"subnet": "10.93.0.0/24"}], [{"subnet": "fd00:93::/64"}]]
    network = {"cniVersion": version, "name": "net", "plugins": [{"type": "bridge", "bridge": "cni9", "ipam": ipam}]}
    for pod in ("pod0", "pod1", "pod2"):
        machine.add_pod(pod)
        libcni("add", network, pod)
    pods = ["pod0", "pod1", "pod2"]
    assert audit(network) == audit(network, pods) == {}

    os.unlink(tmp_path / "data" / "net" / "10.93.0.2")  # pod0 has it, and so will the next one
    found = audit(network)
    assert set(found) == {"IPAM035"}
    assert found["IPAM035"].endswith(": 10.93.0.2 (pod0)")
    (tmp_path / "data" / "net" / "10.93.0.2").write_bytes(b"pod3\r\neth0")
    assert audit(network)["IPAM036"].endswith(": 10.93.0.2 (pod0, pod3)")
    (tmp_path / "data" / "net" / "10.93.0.2").write_bytes(b"pod0\r\neth0")

    machine.run("ip", "netns", "delete", "pod1")  # killed without a DEL
    found = audit(network, ["pod0", "pod2"])
    assert set(found) == {"IPAM023", "IPAM034"}
    assert found["IPAM034"].endswith(": net-pod1-eth0")
    for pod in pods:
        libcni("del", network, pod)
    assert audit(network, []) == {}
