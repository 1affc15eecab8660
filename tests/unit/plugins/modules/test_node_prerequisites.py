# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

NAME = "node_prerequisites"
CONFLIST = {
    "cniVersion": "1.0.0",
    "name": "podnet",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni7",
            "isGateway": True,
            "ipam": {"type": "host-local", "subnet": "fd00:7::/64"},
        },
        {"type": "portmap"},
    ],
}


@pytest.fixture
def options(tmp_path):
    """Options that keep all files below tmp_path and the running kernel out of it."""

    def build(**more):
        root = str(tmp_path)
        paths = {
            "modules_load_dir": root + "/modules-load.d",
            "sysctl_dir": root + "/sysctl.d",
            "sysctl_others": [root + "/lib/sysctl.d"],
            "networkmanager_dir": root + "/NetworkManager/conf.d",
            "firewalld_dir": root + "/firewalld",
            "conf_dir": root + "/net.d",
            "bin_dir": root + "/bin",
            "data_dir": root + "/networks",
            "state_dir": root + "/state",
            "flannel_subnet_file": root + "/subnet.env",
            "apply": False,
        }
        return dict(paths, **more)

    return build


def test_check_mode_predicts_and_touches_nothing(run_module, options, tmp_path, tree):
    (tmp_path / "NetworkManager").mkdir()
    (tmp_path / "firewalld").mkdir()
    before = tree(tmp_path)
    predicted = run_module(NAME, options(plugins=["bridge", "portmap"]), check=True, diff=True)
    assert tree(tmp_path) == before
    done = run_module(NAME, options(plugins=["bridge", "portmap"]), diff=True)
    assert predicted == done
    assert done["changed"] is True
    assert {Path(row["path"]).name: row["action"] for row in done["files"]} == {
        "nodenet-cni.conf": "created",
        "90-nodenet-cni.conf": "created",
        "nodenet-cni.xml": "created",
    }
    assert sorted(one["after_header"] for one in done["diff"]) == sorted(
        [row["path"] for row in done["files"]] + [row["path"] for row in done["directories"]]
    )
    after = tree(tmp_path)
    again = run_module(NAME, options(plugins=["portmap", "bridge"]), diff=True)
    assert again["changed"] is False
    assert again["diff"] == []
    assert tree(tmp_path) == after


def test_no_diff_unless_asked_for(run_module, options):
    assert "diff" not in run_module(NAME, options(plugins=["bridge"]))


def test_needs_come_from_the_networks_on_the_node_or_in_the_task(run_module, options, tmp_path):
    (tmp_path / "net.d").mkdir()
    (tmp_path / "net.d" / "10-podnet.conflist").write_text(json.dumps(CONFLIST))
    by_node = run_module(NAME, options(), check=True)
    assert [row["name"] for row in by_node["sysctls"]] == [
        "net.ipv6.conf.all.forwarding",
        "net.bridge.bridge-nf-call-ip6tables",
    ]
    assert by_node["sysctls"][0]["needed_by"] == ["bridge of podnet", "portmap of podnet"]
    by_task = run_module(NAME, options(configs=[copy.deepcopy(CONFLIST)], conf_dir=str(tmp_path / "none")), check=True)
    assert by_task["sysctls"] == by_node["sysctls"]
    assert by_task["modules"] == by_node["modules"]


def test_wishes_of_the_task(run_module, options, tmp_path):
    wishes = options(
        plugins=["ptp"],
        ip_versions=[4, 6],
        modules=["ip_vs"],
        sysctls={"net.netfilter.nf_conntrack_max": 262144, "net.ipv4.conf.eth0/100.rp_filter": False},
        rp_filter="loose",
        interfaces=["tap*"],
        directories=["bin", "state"],
        directory_mode="0750",
    )
    (tmp_path / "NetworkManager").mkdir()
    run_module(NAME, wishes)
    text = (tmp_path / "sysctl.d" / "90-nodenet-cni.conf").read_text()
    assert "net.ipv4.conf.eth0/100.rp_filter = 0\n" in text
    assert "net.netfilter.nf_conntrack_max = 262144\n" in text
    assert "net.ipv4.conf.default.rp_filter = 2\n" in text
    assert (tmp_path / "modules-load.d" / "nodenet-cni.conf").read_text().splitlines()[1:] == ["ip_vs", "veth"]
    assert "interface-name:tap*" in (tmp_path / "NetworkManager" / "conf.d" / "90-nodenet-cni.conf").read_text()
    assert stat.S_IMODE((tmp_path / "bin").stat().st_mode) == 0o750
    assert not (tmp_path / "net.d").exists()


def test_absent_takes_the_files_away_and_leaves_directories(run_module, options, tmp_path, tree):
    run_module(NAME, options(plugins=["bridge"]))
    before = tree(tmp_path)
    predicted = run_module(NAME, options(state="absent"), check=True, diff=True)
    assert tree(tmp_path) == before
    assert run_module(NAME, options(state="absent"), diff=True) == predicted
    assert predicted["changed"] is True
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []
    assert (tmp_path / "net.d").is_dir()
    assert run_module(NAME, options(state="absent"))["changed"] is False


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "name the plugins that will be used"),
        ({"plugins": ["bridge"], "networks": ["gone"]}, "Cannot tell what network gone needs"),
        ({"plugins": ["bridge"], "modules": ["a/b"]}, "Cannot load kernel module 'a/b'"),
        ({"plugins": ["bridge"], "sysctls": {"net.ipv4.ip_forward": "a\x00b"}}, "give a number or a text of one line"),
        ({"plugins": ["bridge"], "directory_mode": "rwx"}, "octal"),
        ({"plugins": ["bridge"], "sysctl_dir": "sysctl.d"}, "as sysctl_dir: it has to be an absolute path"),
        ({"plugins": ["bridge"], "sysctl_others": ["/etc/\0x"]}, "holds no NUL byte"),
        ({"configs": [{"name": "x", "plugins": [{"type": 7, "y": [None]}]}]}, None),
    ],
)
@pytest.mark.parametrize("check", [False, True])
def test_what_is_refused_changes_nothing(fails, run_module, options, tmp_path, tree, more, words, check):
    before = tree(tmp_path)
    if words is None:
        run_module(NAME, options(**more), check=True)
        return
    assert words in fails(NAME, options(**more), check=check)
    assert tree(tmp_path) == before


def test_a_place_that_cannot_be_written_is_refused_in_check_mode_too(fails, options, tmp_path, tree):
    (tmp_path / "sysctl.d").write_text("")
    before = tree(tmp_path)
    for check in (True, False):
        message = fails(NAME, options(plugins=["bridge"]), check=check)
        assert message.startswith(f"Cannot write {tmp_path}/sysctl.d/90-nodenet-cni.conf on this node: Not a directory")
    assert tree(tmp_path) == before


def test_findings_are_warnings_too(run_module, options, tmp_path):
    (tmp_path / "sysctl.d").mkdir()
    (tmp_path / "sysctl.d" / "99-x.conf").write_text("net.ipv4.ip_forward = 0\n")
    result = run_module(NAME, options(plugins=["bridge"]))
    assert [one["code"] for one in result["findings"]] == ["NODE006"]
    assert "99-x.conf" in json.dumps(result["warnings"])


def test_the_module_on_a_real_kernel(options, tmp_path):
    """In a network namespace of its own, where the settings below net.* are not those of the machine."""
    how = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-r", "-n"]
    if shutil.which("unshare") is None or subprocess.run([*how, "true"], check=False).returncode:
        pytest.skip("not run: no right to make a network namespace")
    code = """
import contextlib, io, json, sys
from ansible.module_utils.testing import patch_module_args
from ansible_collections.nodenet.cni.plugins.modules import node_prerequisites
def get():
    with open("/proc/sys/net/ipv4/conf/all/rp_filter") as stream:
        return stream.read().strip()
with open("/proc/sys/net/ipv4/conf/all/rp_filter", "w") as stream:
    stream.write("1")
seen = [get()]
for check in (True, False, False):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        with patch_module_args(dict(json.loads(sys.argv[1]), _ansible_check_mode=check)):
            node_prerequisites.main()
    seen += [json.loads(out.getvalue())["changed"], get()]
print(json.dumps(seen))
"""
    wanted = options(plugins=[], rp_filter="loose", apply=True)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), PYTHONDONTWRITEBYTECODE="1")
    command = [*how, sys.executable, "-c", code, json.dumps(wanted)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, timeout=60, check=True)
    assert json.loads(done.stdout) == ["1", True, "1", True, "2", False, "2"]
