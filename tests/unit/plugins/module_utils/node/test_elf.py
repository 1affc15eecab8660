# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import sys

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import elf
from ansible_collections.nodenet.cni.tests.unit import plugin_files


def scanned(content, step=1 << 20):
    scan = elf.ElfScan(len(content))
    for start in range(0, len(content), step):
        scan.feed(content[start : start + step])
    return scan


def test_case_arch_alias(case):
    data = case("install-arch-alias")
    assert set(data["input"]["machines"]) == set(data["check"]["map"])
    for machine, architecture in data["check"]["map"].items():
        if architecture:
            assert elf.published_architecture(machine) == architecture
            continue
        with pytest.raises(NodenetError) as caught:
            elf.published_architecture(machine)
        assert str(caught.value) == (
            f"Cannot choose the archive for a node whose machine is {machine!r}: the architectures that it may stand "
            "for are amd64, arm, arm64, ppc64le, riscv64, s390x; give the whole name of the archive instead of {arch}"
        )


def test_node_runs_what_its_interpreter_is():
    with open(os.path.realpath(sys.executable), "rb") as stream:
        own = scanned(stream.read())
    assert own.architecture in elf.node_architectures()


@pytest.mark.parametrize("architecture", sorted(plugin_files.MACHINES))
@pytest.mark.parametrize("step", [1, 7, 64, 1 << 20])
def test_whole_file(architecture, step):
    scan = scanned(plugin_files.elf("label", architecture), step)
    assert (scan.is_elf, scan.executable, scan.architecture, scan.truncation()) == (True, True, architecture, "")


@pytest.mark.parametrize("architecture", ["amd64", "arm", "s390x"])
@pytest.mark.parametrize("sections", [True, False])
def test_every_shorter_file_is_truncated(architecture, sections):
    whole = plugin_files.elf("label", architecture, sections=sections)
    for size in range(4, len(whole)):
        assert scanned(whole[:size], 50).truncation(), size


def test_truncation_names_both_sizes():
    whole = plugin_files.elf(size=5000)
    assert scanned(whole[:1234]).truncation() == "its headers speak of 5000 bytes, it has 1234"
    assert scanned(b"").truncation() == "it has only 0 bytes"


def test_section_without_bytes_in_the_file_does_not_count():
    # The second section of the test file is a .bss of 1 TiB.
    assert scanned(plugin_files.elf()).truncation() == ""


def test_something_behind_the_end_is_no_fault():
    assert scanned(plugin_files.elf() + b"signature").truncation() == ""


@pytest.mark.parametrize("content", [b"#!/bin/sh\n" + b"echo\n" * 50, b"\x1f\x8b" + b"\0" * 100, b"short"])
def test_other_files_are_neither_elf_nor_truncated(content):
    scan = scanned(content)
    assert (scan.is_elf, scan.executable, scan.architecture, scan.truncation()) == (False, False, "", "")


def test_object_file_is_no_program():
    assert not scanned(plugin_files.elf(kind=1)).executable
    assert scanned(plugin_files.elf(kind=3)).executable


def test_unknown_machine_has_its_number():
    content = bytearray(plugin_files.elf(architecture="amd64"))
    content[18:20] = (9999).to_bytes(2, "little")
    assert scanned(bytes(content)).architecture == "machine 9999"


@pytest.mark.parametrize("program", ["/bin/sleep", "/bin/sh", sys.executable])
def test_real_programs_are_whole_until_something_is_cut_off(program):
    with open(os.path.realpath(program), "rb") as stream:
        content = stream.read()
    assert scanned(content).truncation() == ""
    assert scanned(content[: len(content) * 9 // 10]).truncation()
