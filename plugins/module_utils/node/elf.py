# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an executable was built for, and whether all of it is there, from its ELF headers.

Architectures carry the names that published plugin archives use (amd64, arm64, ...).
"""

from __future__ import annotations

import os
import struct

from ..cni.errors import NodenetError

#: stands for the node's architecture in the name of an archive
ARCHITECTURE_MARK = "{arch}"

# what uname -m says
_ARCHITECTURE_OF_MACHINE = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "armv8l": "arm",
    "armv7l": "arm",
    "armv7": "arm",
    "armv6l": "arm",
    "armv6": "arm",
    "ppc64le": "ppc64le",
    "s390x": "s390x",
    "riscv64": "riscv64",
}

# (e_machine, bits, byte order) of the ELF header
_ARCHITECTURE_OF_ELF = {
    (3, 32, "<"): "386",
    (8, 32, "<"): "mipsle",
    (8, 32, ">"): "mips",
    (8, 64, "<"): "mips64le",
    (8, 64, ">"): "mips64",
    (21, 64, "<"): "ppc64le",
    (21, 64, ">"): "ppc64",
    (22, 64, ">"): "s390x",
    (40, 32, "<"): "arm",
    (62, 64, "<"): "amd64",
    (183, 64, "<"): "arm64",
    (243, 64, "<"): "riscv64",
    (258, 64, "<"): "loong64",
}

_MAGIC = b"\x7fELF"
_HEADER_SIZE = 64
_EXECUTABLE_TYPES = (2, 3)  # ET_EXEC, and ET_DYN for position independent ones
_NOBITS = 8  # SHT_NOBITS: a section that takes no room in the file


def published_architecture(machine: str) -> str:
    """Return the architecture in the names of published archives for what ``uname -m`` says.

    Case install-arch-alias: mips64 does not tell the byte order, and i686 is not published. Errors: NodenetError.
    """
    architecture = _ARCHITECTURE_OF_MACHINE.get(machine)
    if architecture is None:
        known = ", ".join(sorted(set(_ARCHITECTURE_OF_MACHINE.values())))
        raise NodenetError(
            f"Cannot choose the archive for a node whose machine is {machine!r}: the architectures that it may stand "
            f"for are {known}; give the whole name of the archive instead of {ARCHITECTURE_MARK}",
            machine=machine,
        )
    return architecture


def node_architectures() -> list[str]:
    """Return the architectures whose executables this node runs, the kernel's own first.

    The running interpreter counts as proof: a 32 bit system on a 64 bit kernel runs its own kind too.
    """
    found = []
    kernel = _ARCHITECTURE_OF_MACHINE.get(os.uname().machine)
    if kernel:
        found.append(kernel)
    try:
        with open("/proc/self/exe", "rb") as stream:
            own = ElfScan(os.fstat(stream.fileno()).st_size)
            own.feed(stream.read(_HEADER_SIZE))
    except OSError:
        return found
    if own.architecture and own.architecture not in found:
        found.append(own.architecture)
    return found


class ElfScan:
    """Reads the headers of a file that passes by in pieces: feed() them all in order, then ask.

    ``is_elf``: the file starts like an ELF file. ``architecture``: what it is for ("" if it is not ELF, "machine 42" if
    the machine has no name here). ``executable``: it is a program, not an object file.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.is_elf = False
        self.executable = False
        self.architecture = ""
        self._offset = 0
        self._pending = b""
        self._tables: list[_Table] = []
        self._order = "<"
        self._bits = 64
        self._parsed = False

    def feed(self, piece: bytes) -> None:
        if not self._parsed:
            self._pending += piece
            if len(self._pending) < _HEADER_SIZE:
                return
            piece, self._pending, self._parsed = self._pending, b"", True
            self._parse_header(piece)
        for table in self._tables:
            table.take(self._offset, piece)
        self._offset += len(piece)

    def truncation(self) -> str:
        """Say what is missing of the file, in words that complete "is incomplete: ..."; "" if nothing is."""
        if not self._parsed:
            if self._pending.startswith(_MAGIC) or self.size == 0:
                return f"it has only {self.size} bytes"
            return ""
        if not self.is_elf:
            return ""
        end = max([_HEADER_SIZE if self._bits == 64 else 52] + [table.end for table in self._tables])
        for table in self._tables:
            if table.end <= self.size:
                end = max([end] + [offset + length for offset, length in table.extents(self._order, self._bits)])
        if end > self.size:
            return f"its headers speak of {end} bytes, it has {self.size}"
        return ""

    def _parse_header(self, head: bytes) -> None:
        if not head.startswith(_MAGIC) or head[4] not in (1, 2) or head[5] not in (1, 2):
            return
        self.is_elf = True
        self._bits = 32 * head[4]
        self._order = "<" if head[5] == 1 else ">"
        words = "QQQ" if self._bits == 64 else "III"
        kind, machine, _version, entry, program_offset, section_offset = struct.unpack_from(
            self._order + "HHI" + words, head, 16
        )
        sizes = struct.unpack_from(self._order + "HHHHH", head, 54 if self._bits == 64 else 42)
        self.executable = kind in _EXECUTABLE_TYPES and entry != 0
        self.architecture = _ARCHITECTURE_OF_ELF.get((machine, self._bits, self._order), f"machine {machine}")
        program_size, program_count, section_size, section_count = sizes[:4]
        if program_offset and program_count:
            self._tables.append(_ProgramTable(program_offset, program_size, program_count))
        if section_offset:
            # A count of 0 means that the first section header holds it: more than any plugin has.
            self._tables.append(_SectionTable(section_offset, section_size, section_count or 1))


class _Table:
    """A table of headers somewhere in the file, collected while the file passes by."""

    def __init__(self, offset: int, entry_size: int, count: int) -> None:
        self.offset = offset
        self.end = offset + entry_size * count
        self.entry_size = entry_size
        self.data = bytearray()

    def take(self, position: int, piece: bytes) -> None:
        first = max(self.offset, position)
        last = min(self.end, position + len(piece))
        if first < last:
            self.data += piece[first - position : last - position]

    def extents(self, order: str, bits: int) -> list[tuple[int, int]]:
        """Return (offset, length) in the file of what each complete entry describes."""
        code, at = self.layout(bits)
        needed = at + struct.calcsize(order + code)
        if self.entry_size < needed:
            return []
        starts = range(0, len(self.data) - self.entry_size + 1, self.entry_size)
        return [self.extent(bytes(self.data[start : start + self.entry_size]), order, bits) for start in starts]

    def layout(self, bits: int) -> tuple[str, int]:
        raise NotImplementedError

    def extent(self, entry: bytes, order: str, bits: int) -> tuple[int, int]:
        raise NotImplementedError


class _ProgramTable(_Table):
    def layout(self, bits: int) -> tuple[str, int]:
        return ("QQQQ", 8) if bits == 64 else ("IIII", 4)  # p_offset, p_vaddr, p_paddr, p_filesz

    def extent(self, entry: bytes, order: str, bits: int) -> tuple[int, int]:
        code, at = self.layout(bits)
        offset, _virtual, _physical, length = struct.unpack_from(order + code, entry, at)
        return offset, length


class _SectionTable(_Table):
    def layout(self, bits: int) -> tuple[str, int]:
        return ("QQ", 24) if bits == 64 else ("II", 16)  # sh_offset, sh_size

    def extent(self, entry: bytes, order: str, bits: int) -> tuple[int, int]:
        code, at = self.layout(bits)
        offset, length = struct.unpack_from(order + code, entry, at)
        (kind,) = struct.unpack_from(order + "I", entry, 4)
        return (offset, 0) if kind == _NOBITS else (offset, length)
