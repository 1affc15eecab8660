# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Archives in the shape of upstream's, of the distribution's plugins: releases that differ, and one that is broken."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tarfile
from pathlib import Path

GO_PLUGINS = "/usr/lib/cni"
BRIDGE_SET = ("bridge", "host-local", "loopback", "portmap", "tuning")


def archive(folder: Path, name: str, release: str, names: tuple[str, ...] = BRIDGE_SET, broken: tuple = ()) -> Path:
    """Make an archive; what is broken is a program that runs and fails.

    Behind its end an ELF file may have more: that makes releases differ, and the plugins work all the same.
    """
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for plugin in names:
            source = "/bin/false" if plugin in broken else os.path.join(GO_PLUGINS, plugin)
            content = Path(source).read_bytes() + ("\n# %s %s\n" % (plugin, release)).encode()
            _add(tar, plugin, content, 0o755)
        _add(tar, "LICENSE", b"a licence\n", 0o644)
        _add(tar, "README.md", b"# plugins\n", 0o644)
    return path


def for_another_machine(folder: Path, name: str) -> Path:
    """Make an archive whose plugins are for another architecture: the header of an ELF file says which."""
    path = folder / name
    content = bytearray(Path(GO_PLUGINS, "bridge").read_bytes())
    machine = int.from_bytes(content[18:20], "little")
    content[18:20] = (183 if machine != 183 else 62).to_bytes(2, "little")
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        _add(tar, "bridge", bytes(content), 0o755)
    return path


def digest(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def digests(path: Path) -> dict[str, str]:
    """The sha256 of each plugin in an archive."""
    with tarfile.open(path) as tar:
        found = {member.name.lstrip("./"): hashlib.sha256(tar.extractfile(member).read()).hexdigest() for member in tar}
    return {name: value for name, value in found.items() if name not in ("LICENSE", "README.md")}


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo("./" + name)
    member.size = len(content)
    member.mode = mode
    tar.addfile(member, io.BytesIO(content))


def main(folder: str, *releases: str) -> None:
    """Make these releases for this machine, and the file with their checksums."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    made = [archive(Path(folder), "cni-plugins-linux-%s-v%s.tgz" % (machine, one), one) for one in releases]
    Path(folder, "SHA256SUMS").write_text("".join("%s  %s\n" % (digest(path), path.name) for path in made))


if __name__ == "__main__":
    main(*sys.argv[1:])
