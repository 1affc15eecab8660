# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugins and archives for tests, made on the spot."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import resource
import signal
import stat
import struct
import tarfile
import zipfile

from ansible_collections.nodenet.cni.plugins.module_utils.node import binaries, put_back

# architecture: (e_machine, bits, byte order)
MACHINES = {
    "386": (3, 32, "<"),
    "amd64": (62, 64, "<"),
    "arm": (40, 32, "<"),
    "arm64": (183, 64, "<"),
    "mips64le": (8, 64, "<"),
    "ppc64le": (21, 64, "<"),
    "riscv64": (243, 64, "<"),
    "s390x": (22, 64, ">"),
}
HERE = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x", "riscv64": "riscv64"}.get(
    os.uname().machine, "amd64"
)
SCRIPT = """#!/bin/sh
if [ "$CNI_COMMAND" = VERSION ]; then
    echo '{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}'
else
    echo "CNI example plugin @VERSION@" >&2
    echo "CNI protocol versions supported: 0.4.0, 1.0.0" >&2
fi
"""


def elf(label="", architecture=HERE, kind=2, sections=True, size=0):
    """An ELF file with one program header and two section headers; the kernel takes it, and it crashes at once.

    label: text in it, to tell versions apart. kind: e_type. size: of the whole file, with filler in its middle.
    """
    machine, bits, order = MACHINES[architecture]
    header_size, program_size, section_size = (64, 56, 64) if bits == 64 else (52, 32, 40)
    payload = label.encode() + b"\0" * 16
    payload += b"\0" * (size - header_size - program_size - len(payload) - 2 * section_size)
    payload_at = header_size + program_size
    sections_at = payload_at + len(payload)
    words = "QQQ" if bits == 64 else "III"
    header = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1]) + b"\0" * 9
    header += struct.pack(
        order + "HHI" + words + "I",
        *(kind, machine, 1, 0x400000 + payload_at, header_size, sections_at if sections else 0, 0),
    )
    header += struct.pack(order + "HHHHHH", header_size, program_size, 1, section_size, 2 if sections else 0, 0)
    whole = sections_at + (2 * section_size if sections else 0)
    if bits == 64:
        program = struct.pack(order + "IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, whole, whole, 0x1000)
        text = struct.pack(order + "IIQQQQIIQQ", 0, 1, 6, 0x400000, payload_at, len(payload), 0, 0, 1, 0)
        bss = struct.pack(order + "IIQQQQIIQQ", 0, 8, 3, 0x500000, payload_at, 1 << 40, 0, 0, 1, 0)
    else:
        program = struct.pack(order + "IIIIIIII", 1, 0, 0x400000, 0x400000, whole, whole, 5, 0x1000)
        text = struct.pack(order + "IIIIIIIIII", 0, 1, 6, 0x400000, payload_at, len(payload), 0, 0, 1, 0)
        bss = struct.pack(order + "IIIIIIIIII", 0, 8, 3, 0x500000, payload_at, 1 << 30, 0, 0, 1, 0)
    return header + program + payload + (text + bss if sections else b"")


def script(version="v1.5.1"):
    """A plugin that answers as the reference plugins do."""
    return SCRIPT.replace("@VERSION@", version).encode()


def write(path, content, mode=0o755):
    """Write a file, with its directories, and return its path as a string."""
    os.makedirs(os.path.dirname(str(path)), exist_ok=True)
    with open(str(path), "wb") as stream:
        stream.write(content)
    os.chmod(str(path), mode)
    return str(path)


def tar(path, members, kind="gz"):
    """Write an archive; members: {name: content} or a list of TarInfo and (name, content, mode)."""
    if isinstance(members, dict):
        members = [(name, content, 0o755) for name, content in members.items()]
    with tarfile.open(str(path), "w:" + kind) as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
                continue
            name, content, mode = member
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.uid = len(content), mode, 1001
            archive.addfile(info, io.BytesIO(content))
    return str(path)


def odd(name, kind, target=""):
    """A member that is a directory, link, device and so on."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, 0o755
    return info


def zip_file(path, members):
    """Write a zip archive; members: {name: content or (content, st_mode)}."""
    with zipfile.ZipFile(str(path), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            content, mode = content if isinstance(content, tuple) else (content, stat.S_IFREG | 0o755)
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content)
    return str(path)


def tree(path):
    """Everything about a directory tree that an unwanted change would show in, by name."""
    result = {}
    for folder, folders, names in os.walk(str(path)):
        for name in folders + names:
            full = os.path.join(folder, name)
            status = os.lstat(full)
            content = b""
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(full)
            elif stat.S_ISREG(status.st_mode):
                with open(full, "rb") as stream:
                    content = stream.read()
            found = (status.st_mode, status.st_uid, status.st_gid, status.st_ino, status.st_mtime_ns, content)
            result[os.path.relpath(full, str(path))] = found
    return result


class Events:
    """What happens to names in a directory, as the kernel tells it (inotify): a look cannot miss a short moment."""

    MODIFY, ATTRIB, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
    NAMES = {2: "modify", 4: "attrib", 0x40: "moved from", 0x80: "moved to", 0x100: "create", 0x200: "delete"}

    def __init__(self, directory):
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._fd >= 0
        assert libc.inotify_add_watch(self._fd, os.fsencode(str(directory)), sum(self.NAMES)) >= 0

    def read(self):
        """Return what happened since the last call: [(name, event)]."""
        found = []
        while True:
            try:
                data = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                return found
            while data:
                _watch, mask, _cookie, length = struct.unpack_from("iIII", data)
                name = os.fsdecode(data[16 : 16 + length].rstrip(b"\0"))
                found += [(name, text) for bit, text in self.NAMES.items() if mask & bit]
                data = data[16 + length :]

    def close(self):
        os.close(self._fd)


class Node:
    """A bin directory and a state directory to work on."""

    def __init__(self, tmp_path):
        self.top = tmp_path / "node"
        self.top.mkdir()
        self.bin = self.top / "bin"
        self.state = self.top / "state"
        self.out = tmp_path

    def install(self, src=None, **options):
        return binaries.install(str(self.bin), str(self.state), src, **options)

    def remove(self, **options):
        return binaries.remove(str(self.bin), str(self.state), **options)

    def put_back(self, **options):
        return put_back.put_back(str(self.bin), str(self.state), **options)

    def archive(self, members, name="cni.tgz"):
        members = {path: elf(label) for path, label in members.items()}
        return tar(self.out / name, members)

    def put(self, name, label):
        return write(self.bin / name, elf(label))

    def labels(self):
        """{name: the label inside} of the plain files."""
        names = [name for name in os.listdir(str(self.bin)) if (self.bin / name).is_file()]
        return {name: label_of(self.bin / name) for name in names}

    def tree(self):
        return tree(self.top)


def label_of(path):
    content = path.read_bytes()
    return content[120:].split(b"\0")[0].decode() if len(content) > 120 else content.decode()


def actions(result):
    return {plugin["name"]: plugin["action"] for plugin in result["plugins"]}


@contextlib.contextmanager
def small_files(size):
    """Let no file grow beyond *size* bytes: what a full disk does, to one process."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
