# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NetworkManager and firewalld: what their files say, and what runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import daemons

OURS = "etc/NetworkManager/conf.d/90-nodenet-cni.conf"


def unmanaged(node, data=b""):
    places = node.places()
    return daemons.nm_unmanaged(places.networkmanager_dir, places.networkmanager_file, data, places.nm_vendor)


def keyfile(line):
    return f"[main]\nunmanaged-devices=interface-name:decoy\n[keyfile]\n{line}\n"


def test_our_devices_are_added_to_those_of_others(node):
    node.write("usr/lib/NetworkManager/conf.d/10-vendor.conf", keyfile("unmanaged-devices=interface-name:vendor0"))
    node.write(
        "etc/NetworkManager/NetworkManager.conf",
        keyfile("unmanaged-devices += interface-name:main0;mac:00:00:5e:00:53:01"),
    )
    ours = daemons.nm_render(["cni0", "veth*"], "# head")
    devices, forgotten_by = unmanaged(node, ours)
    assert devices == [
        "interface-name:vendor0",
        "interface-name:main0",
        "mac:00:00:5e:00:53:01",
        "interface-name:cni0",
        "interface-name:veth*",
    ]
    assert forgotten_by == ""


def test_a_later_file_can_forget_ours_or_take_names_out(node):
    ours = daemons.nm_render(["cni0", "veth*"], "# head")
    later = node.write("etc/NetworkManager/conf.d/99-x.conf", keyfile("unmanaged-devices=interface-name:eth9"))
    assert unmanaged(node, ours) == (["interface-name:eth9"], str(later))
    assert unmanaged(node, None) == (["interface-name:eth9"], "")
    node.write("etc/NetworkManager/conf.d/99-x.conf", keyfile("unmanaged-devices-=interface-name:cni0"))
    assert unmanaged(node, ours) == (["interface-name:veth*"], "")


def test_a_file_in_etc_takes_the_place_of_the_vendors(node):
    node.write("usr/lib/NetworkManager/conf.d/10-x.conf", keyfile("unmanaged-devices=interface-name:a"))
    node.write("etc/NetworkManager/conf.d/10-x.conf", keyfile("unmanaged-devices=interface-name:b"))
    assert unmanaged(node)[0] == ["interface-name:b"]


def test_a_pattern_covers_names():
    devices = ["interface-name:cni*", "interface-name:=veth*", "type:bridge"]
    assert daemons.nm_managed(["cni0", "cni*", "veth*", "flannel*"], devices) == ["flannel*"]


@pytest.mark.parametrize("unit", ["nm-cloud-setup.timer", "nm-cloud-setup.service"])
def test_cloud_setup_is_seen_when_it_is_enabled(node, unit):
    folder = node.root / "etc/systemd/system/timers.target.wants"
    assert not daemons.cloud_setup_enabled(str(node.root / "etc/systemd/system"))
    folder.mkdir(parents=True)
    (folder / unit).symlink_to("/usr/lib/systemd/system/" + unit)
    assert daemons.cloud_setup_enabled(str(node.root / "etc/systemd/system"))


def test_only_a_daemon_of_our_network_namespace_counts(node, in_namespace, tmp_path):
    program = tmp_path / "NetworkManager"
    program.write_text("#!/bin/sh\nsleep 30 & wait\n")
    program.chmod(0o755)
    code = """
import subprocess, sys, time
from ansible_collections.nodenet.cni.plugins.module_utils.node import daemons
command = [sys.argv[1]] if sys.argv[2] == "here" else ["unshare", "-n", sys.argv[1]]
started = subprocess.Popen(command, start_new_session=True)
try:
    time.sleep(0.3)
    print(daemons.running("NetworkManager") == started.pid, daemons.running("no such daemon"))
finally:
    import os, signal
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
"""
    assert in_namespace(code, program, "here").strip() == "True 0"
    assert in_namespace(code, program, "elsewhere").strip() == "False 0"


def test_a_reload_is_a_signal_and_one_to_nobody_is_none(tmp_path):
    mark = tmp_path / "mark"
    code = (
        "import signal, sys, time, pathlib\n"
        "signal.signal(signal.SIGHUP, lambda *_: pathlib.Path(sys.argv[1]).write_text('hup'))\n"
        "print('ready', flush=True)\ntime.sleep(30)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(mark)], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        daemons.nm_reload(process.pid)
        deadline = time.time() + 5
        while not mark.exists() and time.time() < deadline:
            time.sleep(0.01)
        assert mark.read_text() == "hup"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    daemons.nm_reload(process.pid)


# --- firewalld

FIREWALL_CMD = """#!/bin/sh
# a stand-in: one file for each interface or subnet that a zone has
state="{state}"
case "$1" in
  --get-*) name=$(printf %s "${{1#*=}}" | tr / _); cat "$state/$name" 2>/dev/null || {{ echo no zone; exit 2; }};;
  --zone=*) name=$(printf %s "${{2#*=}}" | tr / _); echo "${{1#--zone=}}" > "$state/$name"; echo success;;
  *) echo "unknown $*"; exit 1;;
esac
"""


@pytest.fixture
def firewalld(node):
    (node.root / "etc/firewalld/zones").mkdir(parents=True)
    (node.root / "state").mkdir()
    node.program("firewall-cmd", FIREWALL_CMD.format(state=node.root / "state"))
    return node.places().firewalld


def test_zones_of_files_and_who_accepts(node, firewalld):
    node.write("etc/firewalld/zones/dmz.xml", '<zone><interface name="br1"/><source address="192.0.2.0/24"/></zone>')
    node.write("etc/firewalld/zones/open.xml", '<zone target="ACCEPT"><interface name="br2"/></zone>')
    node.write("etc/firewalld/zones/nodenet-cni.xml", '<zone target="ACCEPT"><interface name="cni0"/></zone>')
    node.write("etc/firewalld/zones/broken.xml", "<zone>")
    assert firewalld.bound_elsewhere() == {"br1": "dmz", "192.0.2.0/24": "dmz", "br2": "trusted"}


def test_binding_asks_and_tells_the_program(node, firewalld):
    assert firewalld.zone_of("cni0") == ""
    firewalld.bind("cni0")
    firewalld.bind("10.22.0.0/16")
    assert firewalld.zone_of("cni0") == "trusted"
    assert firewalld.zone_of("10.22.0.0/16") == "trusted"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "firewall-cmd is not on this node"),
        ("#!/bin/sh\necho INVALID_ZONE\nexit 112\n", "INVALID_ZONE"),
        ("#!/nowhere\n", "No such file"),
    ],
)
def test_a_program_that_fails_is_an_error(node, firewalld, script, words):
    if script is None:
        os.unlink(str(node.programs / "firewall-cmd"))
    else:
        node.program("firewall-cmd", script)
    with pytest.raises(NodenetError, match=words):
        firewalld.bind("cni0")


def test_the_zone_is_what_firewalld_reads():
    data = daemons.zone_render(["cni0", 'odd"&<'], ["10.22.0.0/16"], "# head")
    root = ElementTree.fromstring(data)
    assert root.get("target") == "ACCEPT"
    assert [one.get("name") for one in root.findall("interface")] == ["cni0", 'odd"&<']
    assert [one.get("address") for one in root.findall("source")] == ["10.22.0.0/16"]
