# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbook remove: takes away what bootstrap brought, and nothing from under a living container."""

from __future__ import annotations

import json
from pathlib import Path

import plugin_sets
from test_bootstrap import PODNET, VARIABLES, installed

POD = "ab" * 32


def test_remove(control, tmp_path):
    release = plugin_sets.archive(tmp_path / "files", "cni-plugins-linux-amd64-v1.5.0.tgz", "1")
    controller = control(1, dict(VARIABLES, plugin_binaries_src=release.name))

    def there(path):
        return Path(controller.fleet.path("node1", path))

    # What others brought, in the same directories; one of the plugins was changed by somebody after us.
    there("/opt/cni/bin").mkdir(parents=True)
    there("/etc/cni/net.d").mkdir(parents=True)
    there("/opt/cni/bin/flannel").write_bytes(b"#!/bin/sh\n")
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.99.0.0/24"}]]}
    other = {"cniVersion": "1.0.0", "name": "other", "plugins": [{"type": "bridge", "bridge": "other0", "ipam": ipam}]}
    there("/etc/cni/net.d/90-other.conflist").write_text(json.dumps(other))
    run = controller.play("bootstrap", networks_expect_effective="podnet")
    assert run.code == 0, run.text[-6000:]
    there("/opt/cni/bin/tuning").write_bytes(b"#!/bin/sh\n# changed\n")
    data = there("/var/lib/cni/networks/podnet")
    subnet = json.loads(there("/etc/cni/net.d/10-podnet.conflist").read_text())["plugins"][0]["ipam"]["ranges"][0][0]
    address = subnet["subnet"].rpartition(".")[0] + ".77"
    (data / address).write_bytes(POD.encode() + b"\r\neth0")

    # A container holds an address, and nothing says that it is dead.
    run = controller.play("remove")
    assert run.failed["node1"] == 1, run.text[-6000:]
    assert f"1 addresses are held by containers that are alive or may be, as {address} of podnet by {POD}" in run.words
    assert list(run.modules_by_task("node1")) == ["nodenet.cni.node : Look who uses the networks"]
    assert there("/etc/cni/net.d/10-podnet.conflist").exists()
    assert there("/opt/cni/bin/bridge").exists()

    # Another network would come into effect: that has to be meant.
    (data / address).unlink()
    run = controller.play("remove")
    assert run.failed["node1"] == 1, run.text[-6000:]
    assert "containerd would use network other instead of podnet" in run.words
    assert there("/etc/cni/net.d/10-podnet.conflist").exists()
    assert there("/opt/cni/bin/bridge").exists()

    (data / address).write_bytes(POD.encode() + b"\r\neth0")
    wanted = {"node_remove_expect_effective": "other", "node_remove_force": True}
    predicted = controller.play("remove", "--check", **wanted)
    assert predicted.code == 0, predicted.text[-6000:]
    assert there("/etc/cni/net.d/10-podnet.conflist").exists()
    assert there("/opt/cni/bin/bridge").exists()
    run = controller.play("remove", **wanted)
    assert run.code == 0, run.text[-6000:]
    assert run.changed == predicted.changed == {"node1": 4}
    # what the network needs to which the node is handed over stays, and what was changed
    assert sorted(installed(controller, "node1")) == ["bridge", "flannel", "host-local", "tuning"]
    assert [path.name for path in there("/etc/cni/net.d").iterdir()] == ["90-other.conflist"]
    assert sorted(path.name for path in data.iterdir()) == [address, "lock"]
    for folder in ("/etc/modules-load.d", "/etc/sysctl.d"):
        assert list(there(folder).glob("*nodenet*")) == []
    for one in (predicted, run):
        said = one.words.split("Show what stays")[1]
        assert '"/opt/cni/bin/tuning"' in said
        for plugin in ("bridge", "host-local"):
            assert f'"/opt/cni/bin/{plugin} (needed by other)"' in said
        assert '"other"' in said.split('"networks":')[1].split("]")[0]
        assert f"{address} of podnet by {POD}" in said

    again = controller.play("remove", **wanted)
    assert (again.code, again.changed) == (0, {"node1": 0}), again.text[-6000:]
    # and the way back
    run = controller.play("bootstrap", networks_expect_effective="podnet", networks_conflists=[PODNET])
    assert run.code == 0, run.text[-6000:]
