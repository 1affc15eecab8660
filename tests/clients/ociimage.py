# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An image archive of one program, made without a builder and without a registry."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile

_TYPE = "application/vnd.oci.image."
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def _archive(files: dict[str, bytes], mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def write(path: object, name: str, program: object, arguments: list[str]) -> None:
    """Write an archive of the OCI layout.

    :param name: of the image, with its tag
    :param program: a static busybox, started with *arguments*; it goes by its name, so it is /busybox in the image
    """
    blobs: dict[str, bytes] = {}

    def add(kind: str, data: bytes) -> dict:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": _TYPE + kind, "digest": f"sha256:{digest}", "size": len(data)}

    with open(str(program), "rb") as stream:
        layer = add("layer.v1.tar", _archive({"busybox": stream.read()}, 0o755))
    config = {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Entrypoint": ["/busybox", *arguments]},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    described = add("config.v1+json", json.dumps(config).encode())
    manifest = {"schemaVersion": 2, "config": described, "layers": [layer]}
    entry = add("manifest.v1+json", json.dumps(manifest).encode())
    entry["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    files = {
        "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
        "index.json": json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode(),
    }
    with open(str(path), "wb") as target:
        target.write(_archive(dict(files, **blobs), 0o644))
