# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes the sources of plugins that the tasks use, good and bad ones, below the directory given."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import sys
import tarfile
import zipfile

SCRIPT = """#!/bin/sh
if [ "$CNI_COMMAND" = VERSION ]; then
    echo '{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}'
else
    echo "CNI example plugin %s" >&2
fi
"""


def tar(path, members, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.mode = 0o644
            if isinstance(content, str):
                info.type, info.linkname, content = tarfile.SYMTYPE, content, b""
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def elf(machine, size):
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQI", 2, machine, 1, 0x400000, 64, 0, 0) + struct.pack("<HHHHHH", 64, 56, 1, 64, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, size, size, 0x1000)


def main(top, machine):
    def at(name):
        return os.path.join(top, name)

    plugins = {
        version: {name: (SCRIPT % version).encode() + b"# " + name.encode() for name in ("alpha", "beta")}
        for version in ("v1.0.0", "v2.0.0")
    }
    archive = at("cni-plugins-example-v1.tgz")
    tar(archive, dict(plugins["v1.0.0"], LICENSE=b"free"))
    with open(archive, "rb") as stream:
        digest = hashlib.sha256(stream.read()).hexdigest()
    with open(at("SHA256SUMS"), "w", encoding="utf-8") as stream:
        stream.write(f"{'0' * 64}  other.tgz\n{digest}  {os.path.basename(archive)}\n")
    with zipfile.ZipFile(at("v1.zip"), "w") as folder:
        for name, content in plugins["v1.0.0"].items():
            folder.writestr("example-v1/" + name, content)
    os.mkdir(at("v2"))
    for name, content in plugins["v2.0.0"].items():
        with open(os.path.join(at("v2"), name), "wb") as stream:
            stream.write(content)
    with open("/bin/sh", "rb") as stream:
        program = stream.read()
    tar(at("wrong-architecture.tgz"), {"alpha": elf(9999, 120)})
    tar(at("truncated.tgz"), {"alpha": program[: len(program) // 2]})
    tar(at("traversal.tgz"), {"alpha": program, "../../evil": b""})
    with tarfile.open(at("swollen.tgz"), "w:gz") as archive:
        header = tarfile.TarInfo("././@PaxHeader")
        header.type, header.size = tarfile.XHDTYPE, 64 << 20
        archive.fileobj.write(header.tobuf(tarfile.USTAR_FORMAT))
        for _number in range(64):
            archive.fileobj.write(bytes(1 << 20))
    for version, names in {"v1.0.0": ("alpha", "beta", "gamma"), "v2.0.0": ("alpha", "delta")}.items():
        contents = {name: (SCRIPT % version).encode() for name in names}
        tar(at(f"example-{machine}-{version}.tgz"), contents)
    tar(at("link.tar"), {"alpha": program, "beta": "/etc/shadow"}, "w")
    with open(at("page.tgz"), "w", encoding="utf-8") as stream:
        stream.write("<!DOCTYPE html><title>404</title>")


if __name__ == "__main__":
    main(*sys.argv[1:])
