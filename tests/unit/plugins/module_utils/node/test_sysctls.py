# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel settings: their names, what counts at boot, what holds now."""

from __future__ import annotations

import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import sysctls


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("net.ipv4.ip_forward", "net/ipv4/ip_forward"),
        ("net/ipv4/ip_forward", "net/ipv4/ip_forward"),
        ("net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
        ("net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
    ],
)
def test_names_are_read_as_sysctl_reads_them(name, key):
    assert sysctls.parse_key(name) == key
    assert sysctls.parse_key(sysctls.shown(key)) == key


@pytest.mark.parametrize("name", ["", "forward", "net..x", "/net/ipv4", "net.ipv4.../x", "net.ipv4.a b", "net.ipv4.\n"])
def test_other_names_are_refused(name):
    with pytest.raises(NodenetError, match="Cannot set sysctl"):
        sysctls.parse_key(name)


def test_lines_are_read_as_at_boot():
    lines = [
        "# net.ipv4.ip_forward = 9",
        "; net.ipv4.ip_forward = 9",
        "net.ipv4.ip_forward=0",
        "  -net/ipv4/tcp_rmem =  4096   87380\t6291456 ",
        "net.ipv4.conf.*.rp_filter = 2",
        "nonsense",
        "",
        "=",
    ]
    found = [(one.key, one.value) for one in sysctls.parse(lines, "x")]
    assert found == [("net/ipv4/ip_forward", "0"), ("net/ipv4/tcp_rmem", "4096 87380 6291456")]


@pytest.fixture
def boot(node):
    def order():
        places = node.places()
        return places.sysctl_dir, places.sysctl_others, places.sysctl_file

    return order


def test_files_count_in_the_order_of_their_names_and_one_of_a_name_hides_the_others(node, boot):
    node.write("etc/sysctl.d/50-a.conf", "")
    node.write("usr/lib/sysctl.d/50-a.conf", "")
    node.write("run/sysctl.d/95-b.conf", "")
    node.write("usr/lib/sysctl.d/10-c.conf", "")
    node.write("etc/sysctl.d/README", "")
    node.write("etc/sysctl.conf", "")
    names = [os.path.relpath(path, str(node.root)) for path in sysctls.files_in_order(*boot())]
    assert names == [
        "usr/lib/sysctl.d/10-c.conf",
        "etc/sysctl.d/50-a.conf",
        "etc/sysctl.d/90-nodenet-cni.conf",
        "run/sysctl.d/95-b.conf",
        "etc/sysctl.conf",
    ]


def test_the_main_file_is_read_once_where_it_is_linked_as_a_drop_in(node, boot):
    node.write("etc/sysctl.conf", "net.ipv4.ip_forward=0\n")
    (node.root / "etc/sysctl.d").mkdir()
    (node.root / "etc/sysctl.d/99-sysctl.conf").symlink_to("../sysctl.conf")
    assert [os.path.basename(path) for path in sysctls.files_in_order(*boot())] == [
        "90-nodenet-cni.conf",
        "99-sysctl.conf",
    ]


@pytest.mark.parametrize(
    ("name", "text", "earlier", "later"),
    [
        ("etc/sysctl.d/10-x.conf", "net.ipv4.ip_forward = 0", 1, 0),
        ("etc/sysctl.d/99-x.conf", "net.ipv4.ip_forward = 0", 0, 1),
        ("usr/lib/sysctl.d/99-x.conf", "-net.ipv4.ip_forward=0", 0, 1),
        ("etc/sysctl.conf", "net/ipv4/ip_forward=0", 0, 1),
        ("etc/sysctl.d/99-x.conf", "net.ipv4.ip_forward = 1", 0, 0),
        ("etc/sysctl.d/99-x.conf", "net.ipv4.ip_forward = 0\nnet.ipv4.ip_forward = 1", 0, 0),
        ("etc/sysctl.d/99-x.conf", "net.ipv4.*= 0", 0, 0),
        ("etc/sysctl.d/99-x.conf.bak", "net.ipv4.ip_forward = 0", 0, 0),
    ],
)
def test_contradictions_are_found_with_who_wins(node, boot, name, text, earlier, later):
    path = node.write(name, text + "\n")
    before, after = sysctls.contradictions({"net/ipv4/ip_forward": "1"}, *boot())
    assert [len(before), len(after)] == [earlier, later]
    assert {one.path for one in before + after} <= {str(path)}


def test_live_values_are_read_and_written_as_the_kernel_shows_them(node):
    live = sysctls.Live(str(node.root / "proc"))
    node.setting("net/ipv4/tcp_rmem", "4096\t87380\t6291456")
    assert live.get("net/ipv4/tcp_rmem") == "4096 87380 6291456"
    assert live.get("net/ipv4/none") is None
    assert live.refusal("net/ipv4/ip_forward") == ""
    live.set("net/ipv4/ip_forward", "1")
    assert live.get("net/ipv4/ip_forward") == "1"
    assert "o such file" in live.refusal("net/ipv4/none")


def test_a_read_only_procfs_is_told_from_a_missing_setting(in_namespace):
    code = """
import subprocess
from ansible_collections.nodenet.cni.plugins.module_utils.node import sysctls
for options in (["--bind"], ["-o", "remount,ro,bind"]):
    subprocess.run(["mount", *options, "/proc/sys", "/proc/sys"], check=True)
print(sysctls.Live().refusal("net/ipv4/ip_forward"))
"""
    assert in_namespace(code).strip() == "/proc/sys is mounted read-only here, as in a container"
