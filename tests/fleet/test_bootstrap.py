# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbook bootstrap on real nodes over SSH, as its users run it."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import inotify
import plugin_sets
import pytest
from lookout import Lookout

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


def state(controller, host):
    """Everything that runtimes read on a node: plugins by digest, configurations by content."""
    folders = [Path(controller.fleet.path(host, place)) for place in ("/opt/cni/bin", "/etc/cni/net.d")]
    confs = {path.name: path.read_bytes() for path in folders[1].iterdir()} if folders[1].is_dir() else {}
    return installed(controller, host) if folders[0].is_dir() else {}, confs


def probe_traces(controller, host):
    """What a probe leaves if nobody takes it down."""
    folder = Path(controller.fleet.path(host, "/var/lib/cni/networks/podnet"))
    held = [path.name for path in folder.glob("*.*") if path.read_bytes().startswith(b"nodenet-probe")]
    names = os.listdir(controller.fleet.path(host, "/run/netns"))
    return held + [name for name in names if name.startswith("nodenet-probe")]


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


def test_nothing_on_the_node_but_python_and_any_source_of_plugins(control, tmp_path):
    release = plugin_sets.archive(tmp_path / "files", "cni-plugins-linux-amd64-v1.5.0.tgz", "1")
    controller = control(3, VARIABLES, bare=True)
    archive = {"plugin_binaries_src": release.name, "plugin_binaries_checksum": "sha256:" + plugin_sets.digest(release)}
    controller.of_host = {
        "node1": {"plugin_binaries_src": plugin_sets.GO_PLUGINS, "plugin_binaries_remote_src": True},
        "node2": archive,
        "node3": dict(archive, plugin_binaries_embedded=["host-local"]),
    }
    for host in controller.fleet.names:
        for program in ("ip", "pip", "pip3", "tar", "iptables", "sysctl", "modprobe", "nsenter", "unshare"):
            assert controller.fleet.run(host, "sh", "-c", f"command -v {program}", check=False).returncode == 127, (
                program
            )
        assert controller.fleet.run(host, "python3", "-m", "pip", check=False).returncode == 1
    predicted = controller.play("bootstrap", "--check", "--diff")
    assert predicted.code == 0, predicted.text[-6000:]
    assert [state(controller, host) for host in controller.fleet.names] == [({}, {})] * 3
    first = controller.play("bootstrap")
    assert first.code == 0, first.text[-6000:]
    # what the proof made, the bridge, is not foreseen
    assert {host: count - 1 for host, count in first.changed.items()} == predicted.changed
    second = controller.play("bootstrap")
    assert (second.code, second.changed) == (0, dict.fromkeys(controller.fleet.names, 0)), second.text[-6000:]
    assert max(second.modules.values()) <= BUDGET
    wanted = plugin_sets.digests(release)
    assert installed(controller, "node2") == wanted
    own = installed(controller, "node3")
    assert {name for name in wanted if own[name] != wanted[name]} == {"host-local"}
    assert b"nodenet" in Path(controller.fleet.path("node3", "/opt/cni/bin/host-local")).read_bytes()[:1024]
    assert set(installed(controller, "node1")) >= set(wanted)


BROKEN = [
    ('{"cniVersion": "1.0.0", "name": "podnet", "plugins": [', "not finished"),
    ('{"cniVersion": "1.0.0", "name": "podnet", "plugins": [{"type": "bridge", "isGateway": "true"}]}', "isGateway"),
    ('{"cniVersion": "1.0.0", "name": "other", "plugins": [{"type": "bridge"}]}', "other"),
]


def test_what_cannot_work_changes_nothing(control, tmp_path):
    first = plugin_sets.archive(tmp_path / "files", "cni-plugins-linux-amd64-v1.5.0.tgz", "1")
    second = plugin_sets.archive(tmp_path / "files", "cni-plugins-linux-amd64-v1.6.0.tgz", "2")
    bad = plugin_sets.archive(tmp_path / "files", "cni-plugins-linux-amd64-v1.7.0.tgz", "3", broken=("bridge",))
    controller = control(1, dict(VARIABLES, plugin_binaries_src=first.name))
    done = controller.play("bootstrap")
    assert done.code == 0, done.text[-6000:]
    before = state(controller, "node1")
    watch = inotify.Watch(controller.fleet.path("node1", "/etc/cni/net.d"))
    plugins = inotify.Watch(controller.fleet.path("node1", "/opt/cni/bin"))
    places = [controller.fleet.path("node1", place) for place in ("/etc/cni/net.d", "/opt/cni/bin")]
    lookout = Lookout(*places)
    changed = dict(PODNET, mtu=1400)

    # A broken network is refused before anything of the node changes.
    for content, _word in BROKEN:
        run = controller.play(
            "bootstrap", plugin_binaries_src=second.name, networks_conflists=[{"name": "podnet", "content": content}]
        )
        assert run.failed["node1"] == 1, run.text[-6000:]
        assert "Cannot write conflist podnet in /etc/cni/net.d/10-podnet.conflist" in run.words
        assert list(run.modules_by_task("node1")) == ["nodenet.cni.networks : Have the conflists planned"]
    assert (watch.events(), plugins.events()) == ([], [])

    # A release whose plugin does not run: the plugins of before come back, the network is as it was all the time.
    run = controller.play("bootstrap", plugin_binaries_src=bad.name, networks_conflists=[changed])
    assert run.failed["node1"] == 1, run.text[-6000:]
    assert "Prove that a pod would get its network failed: Cannot prove network podnet" in run.words
    assert "no network was changed, and the plugins of before are in place again" in run.words
    assert (state(controller, "node1"), watch.events()) == (before, [])

    # A network that gives a pod no way out, with plugins that are new and good: they go as well.
    silent = dict(changed, is_gateway=False, gateway="10.64.255.254")
    run = controller.play(
        "bootstrap",
        plugin_binaries_src=second.name,
        pod_subnet="10.64.0.0/16",
        networks_conflists=[dict(silent, subnet="10.64.0.0/16")],
    )
    assert run.failed["node1"] == 1, run.text[-6000:]
    assert "gateway 10.64.255.254 answers neither" in run.words
    assert (state(controller, "node1"), watch.events(), probe_traces(controller, "node1")) == (before, [], [])

    # The plugins only: what is on the node is proven by its name.
    run = controller.play(
        "bootstrap",
        plugin_binaries_src=bad.name,
        networks_conflists=[],
        reservations_networks=[],
        node_probe_network="podnet",
    )
    assert run.failed["node1"] == 1, run.text[-6000:]
    assert state(controller, "node1") == before

    # A plan of addresses that cannot be carried out is no reason to keep new plugins either.
    stolen = [{"network": "podnet", "reservations": [{"owner": "thief", "addresses": ["192.0.2.1"]}]}]
    run = controller.play("bootstrap", plugin_binaries_src=second.name, reservations_networks=stolen)
    assert run.failed["node1"] == 1, run.text[-6000:]
    assert "Own the static addresses failed: Cannot reserve" in run.words
    assert state(controller, "node1") == before
    for name in plugin_sets.BRIDGE_SET:
        assert not [mask for one, mask in plugins.events() if one == name and mask & (inotify.MODIFY | inotify.DELETE)]

    looks, answers = lookout.stop()
    as_ever = ("podnet", "podnet", (before[1]["10-podnet.conflist"],))
    assert answers == {as_ever}
    assert looks > 500

    # What is good comes, by one rename of each file, and neither runtime ever had another network or none.
    lookout = Lookout(*places)
    run = controller.play("bootstrap", plugin_binaries_src=second.name, networks_conflists=[changed])
    assert run.code == 0, run.text[-6000:]
    assert installed(controller, "node1") == plugin_sets.digests(second)
    assert conflist(controller, "node1")["plugins"][0]["mtu"] == 1400
    _looks, answers = lookout.stop()
    assert answers == {as_ever, ("podnet", "podnet", (state(controller, "node1")[1]["10-podnet.conflist"],))}
    assert [event for event in watch.events() if event[0] == "10-podnet.conflist"] == [
        ("10-podnet.conflist", inotify.MOVED_TO)
    ]
    happened = [event for event in plugins.events() if event[0] in plugin_sets.BRIDGE_SET]
    assert sorted(happened) == [(name, inotify.MOVED_TO) for name in sorted(plugin_sets.BRIDGE_SET)]
    print(f"{looks} looks while nothing may change, {_looks} while a release and a network came")
    # A network of which all addresses are in use, here by the static ones, says nothing against plugins.
    folder = Path(controller.fleet.path("node1", "/var/lib/cni/networks/podnet"))
    start, end = sorted(path.name for path in folder.glob("10.*"))
    full = dict(changed, range_start=start, range_end=end)
    run = controller.play("bootstrap", plugin_binaries_src=second.name, networks_conflists=[full])
    assert run.code == 0, run.text[-6000:]
    assert "no new pod gets network podnet" in run.words
    assert "nodenet.cni.reclaim frees those of dead containers" in run.words
    assert conflist(controller, "node1")["plugins"][0]["ipam"]["ranges"][0][0]["rangeEnd"] == end
    # Without a proof nobody knows: it is written, as the switch says.
    run = controller.play("bootstrap", plugin_binaries_src=bad.name, node_probe=False)
    assert run.code == 0, run.text[-6000:]
    watch.close()
    plugins.close()


def test_two_architectures_in_one_inventory(control, tmp_path):
    files = tmp_path / "files"
    good = plugin_sets.archive(files, "good.tgz", "1", ("bridge", "host-local"))
    other = plugin_sets.for_another_machine(files, "other.tgz")
    machines = {"amd64": "x86_64", "arm64": "aarch64"}
    own = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine)
    if own is None:
        pytest.skip("not run: a machine that is neither amd64 nor arm64")
    foreign = {"amd64": "arm64", "arm64": "amd64"}[own]
    sources = {own: good.name, foreign: other.name}
    checksums = {name: "sha256:" + plugin_sets.digest(files / path) for name, path in sources.items()}
    variables = dict(VARIABLES, plugin_binaries_src=sources, plugin_binaries_checksum=checksums)
    controller = control(2, dict(variables, reservations_networks=[]))
    # node2 says that it is the other machine, and so gets the other's archive; the kernel knows better
    uname = Path(controller.fleet.path("node2", "/usr/local/bin/uname"))
    uname.write_text(f"#!/bin/sh\necho {machines[foreign]}\n")
    uname.chmod(0o755)
    run = controller.play("bootstrap")
    assert (run.failed["node1"], run.failed["node2"]) == (0, 1), run.text[-6000:]
    assert installed(controller, "node1") == plugin_sets.digests(good)
    assert state(controller, "node2") == ({}, {})
    assert f"is built for {foreign}, this node runs {own}" in run.words
    run = controller.play("bootstrap", "--limit", "node1")
    assert (run.code, run.changed) == (0, {"node1": 0}), run.text[-6000:]


def kills():
    """How many plays are killed, and where: the same each time, but for a soak."""
    if os.environ.get("NODENET_SOAK"):
        return 30, random.Random()
    return 5, random.Random(4)


def test_a_killed_play_is_finished_by_the_next(control, tmp_path):
    """Two states by turns: another release, another MTU, and host-local now upstream's, now the collection's own."""
    count, chance = kills()
    releases = [
        plugin_sets.archive(tmp_path / "files", f"cni-plugins-linux-amd64-v1.{number}.0.tgz", str(number))
        for number in (5, 6)
    ]
    hosts = ["node1", "node2"]
    options = [
        {"plugin_binaries_src": release.name, "networks_conflists": [dict(PODNET, mtu=mtu)]}
        for release, mtu in zip(releases, (1400, 1450))
    ]
    options[1]["plugin_binaries_embedded"] = ["host-local"]
    whole = {name: {plugin_sets.digests(release)[name] for release in releases} for name in plugin_sets.BRIDGE_SET}
    met: dict[str, set] = {name: set() for name in whole}
    controller = control(2, VARIABLES)
    seconds, killed, number = 8.0, 0, -1
    while killed < count:
        number += 1
        assert number < 2 * count, "the plays are over before they are killed"
        wanted = options[number % 2]
        watches = {}
        for host in hosts:
            for place in ("/etc/cni/net.d", "/opt/cni/bin"):
                if os.path.isdir(controller.fleet.path(host, place)):
                    watches[host, place] = inotify.Watch(controller.fleet.path(host, place))
        assert len(watches) == (4 if number else 0)
        killed += controller.play_killed("bootstrap", chance.uniform(1, seconds), **wanted)
        for host in hosts:
            there, written = state(controller, host)
            for name, digest in there.items():
                met[name].add(digest)
            for name, content in written.items():
                if name.endswith((".conf", ".conflist", ".json")):
                    assert json.loads(content)["plugins"][0]["mtu"] in (1400, 1450)
        started = time.monotonic()
        run = controller.play("bootstrap", **wanted)
        assert run.code == 0, f"after kill {number}: {run.text[-6000:]}"
        seconds = time.monotonic() - started
        for host in hosts:
            there, written = state(controller, host)
            release = plugin_sets.digests(releases[number % 2])
            own = {"host-local"} if number % 2 else set()
            assert {name for name in release if there[name] != release[name]} == own
            whole["host-local"].add(there["host-local"])
            assert set(there) == set(release)
            assert list(written) == ["10-podnet.conflist"]
            assert probe_traces(controller, host) == []
        for (host, place), watch in watches.items():
            for name, mask in watch.events():
                is_read = name.endswith((".conf", ".conflist", ".json")) or name in plugin_sets.BRIDGE_SET
                spoilt = inotify.MODIFY | inotify.CLOSE_WRITE | inotify.DELETE | inotify.MOVED_FROM
                assert not (is_read and mask & spoilt), f"{place}/{name} of {host} was written in place ({mask:#x})"
                assert not is_read or name in (*whole, "10-podnet.conflist"), f"{place}/{name} of {host} came and went"
            watch.close()
    assert {name for name in met if met[name] - whole[name]} == set(), "a kill left what is no plugin"
    run = controller.play("bootstrap", **options[number % 2])
    assert (run.code, run.changed) == (0, dict.fromkeys(hosts, 0)), run.text[-6000:]
    print(f"{killed} plays killed")
