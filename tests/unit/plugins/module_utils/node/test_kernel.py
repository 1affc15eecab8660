# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel modules: what the running kernel has, and loading one."""

from __future__ import annotations

import gzip

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import kernel


def state(node, name):
    return node.places().kernel.state(name)


def test_a_loaded_module_has_a_state(node):
    node.write("sys/module/macvlan/initstate", "live\n")
    assert state(node, "macvlan") == kernel.LOADED


def test_a_built_in_module_shows_its_parameters_or_stands_in_the_list(node):
    node.write("sys/module/bridge/parameters/x", "1\n")
    node.builtin("veth", "br-netfilter")
    assert state(node, "bridge") == kernel.BUILTIN
    assert state(node, "veth") == kernel.BUILTIN
    assert state(node, "br_netfilter") == kernel.BUILTIN


def test_a_module_with_a_file_can_be_loaded_and_one_without_is_absent(node):
    node.module_files("macvlan", "8021q")
    assert state(node, "macvlan") == kernel.AVAILABLE
    assert state(node, "8021q") == kernel.AVAILABLE
    assert state(node, "vrf") == kernel.ABSENT
    assert state(node, "somebody_elses") == kernel.ABSENT


def test_in_a_container_nothing_tells_but_what_works(node):
    assert state(node, "macvlan") == kernel.UNKNOWN
    assert state(node, "br_netfilter") == kernel.UNKNOWN
    node.setting("net/bridge/bridge-nf-call-iptables", "1")
    assert state(node, "br_netfilter") == kernel.LOADED


@pytest.mark.parametrize("place", ["boot", "proc"])
def test_the_configuration_of_the_kernel_tells(node, place):
    text = "# comment\nCONFIG_MACVLAN=y\nCONFIG_DUMMY=m\n# CONFIG_NET_VRF is not set\n"
    if place == "boot":
        node.write("boot/config-" + node.RELEASE, text)
    else:
        (node.root / "proc/config.gz").write_bytes(gzip.compress(text.encode()))
    assert state(node, "macvlan") == kernel.BUILTIN
    assert state(node, "vrf") == kernel.ABSENT
    assert state(node, "dummy") == kernel.UNKNOWN  # a module, but its file is not to be seen here
    assert state(node, "somebody_elses") == kernel.UNKNOWN  # nobody knows what its option is called


def test_a_damaged_configuration_tells_nothing(node):
    (node.root / "proc/config.gz").write_bytes(gzip.compress(b"CONFIG_MACVLAN=y\n" * 99)[:40])
    assert state(node, "macvlan") == kernel.UNKNOWN


def test_the_modules_of_another_kernel_do_not_count(node):
    node.write("lib/modules/5.10.0-other/modules.dep", "kernel/drivers/net/macvlan.ko:\n")
    assert state(node, "macvlan") == kernel.UNKNOWN


def test_modprobe_is_run_with_the_name(node):
    log = node.root / "log"
    node.program("modprobe", '#!/bin/sh\necho "$@" >> "%s"\n' % log)
    node.places().kernel.load("macvlan")
    assert log.read_text() == "macvlan\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "#!/bin/sh\necho noise; echo 'modprobe: ERROR: could not insert: Operation not permitted' >&2; exit 1\n",
            "not permitted",
        ),
        ("#!/bin/sh\nexit 3\n", "exit code 3"),
        ("#!/does/not/exist\n", "No such file"),
    ],
)
def test_why_a_module_did_not_load(node, script, words):
    node.program("modprobe", script)
    with pytest.raises(NodenetError, match="Cannot load kernel module macvlan on this node: .*" + words):
        node.places().kernel.load("macvlan")


def test_a_node_without_modprobe(node):
    assert node.places().kernel.modprobe() == ""


def test_the_machine_itself_can_be_looked_at():
    here = kernel.Kernel()
    assert here.release
    assert here.state("nodenet_no_such_module") in (kernel.ABSENT, kernel.UNKNOWN)
