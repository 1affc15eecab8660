# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What must hold before plugins are installed; a check that fails has changed nothing."""

from __future__ import annotations

import array
import fcntl
import os
import struct

from ..cni.errors import NodenetError
from . import findings, mounts, offers
from .archive import digest_of_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from .bin_dir import Present
    from .supply import Supply


_GET_FLAGS = 0x80006601 | struct.calcsize("l") << 16  # FS_IOC_GETFLAGS
_IMMUTABLE = 0x10 | 0x20  # FS_IMMUTABLE_FL, FS_APPEND_FL


def required(names: Sequence[str], supply: Supply, present: Mapping[str, Present], bin_dir: str) -> None:
    """See that these are in the source or there already. Errors: NodenetError."""
    missing = []
    for name in names:
        # A link counts for what it leads to; a dangling one for nothing.
        there = name in present and os.path.isfile(os.path.join(bin_dir, name))
        if name not in supply.wanted and not there:
            missing.append(name)
    if not missing:
        return
    where = f"neither in {supply.label} nor there already" if supply.label else "not there"
    homes = "".join(offers.home(name) for name in missing)
    raise NodenetError(
        f"Cannot provide {' and '.join(missing)} in {bin_dir}: required, but {where}{homes}",
        missing=missing,
        bin_dir=bin_dir,
    )


def digests(
    demanded: Mapping[str, str], supply: Supply, kept: Collection[str], own: Collection[str], bin_dir: str
) -> None:
    """See that what comes from the source, or is *kept* as required, has the digests of file_checksums.

    Errors: NodenetError.
    """
    offers.check_names(demanded, "file_checksums")
    for name in sorted(demanded):
        if name in own:
            reason = "it is embedded, and made anew on each node"
        elif name not in kept and name not in supply.wanted and name not in supply.names():
            reason = f"it is not in {supply.label} and not required" if supply.label else "it is not required"
        else:
            continue
        raise NodenetError(f"Cannot verify {name} with file_checksums: {reason}", plugin=name)
    supply.demand(demanded)
    for name in sorted(set(demanded) & set(kept)):
        path = os.path.join(bin_dir, name)
        with open(path, "rb") as stream:
            actual = digest_of_stream(stream)
        if actual != demanded[name]:
            raise NodenetError(
                f"Cannot accept {name} in {bin_dir}: its sha256 is {actual}, file_checksums demands {demanded[name]}",
                plugin=name,
                actual=actual,
                demanded=demanded[name],
            )


def place(bin_dir: str, names: Sequence[str], present: Mapping[str, Present]) -> None:
    """See that these can be put there, or removed, and that plugins can be executed there. Errors: NodenetError."""
    if os.path.lexists(bin_dir) and not os.path.isdir(bin_dir):
        raise NodenetError(f"Cannot install plugins in {bin_dir}: it is no directory", bin_dir=bin_dir)
    for name in names:
        if name in present and present[name].kind not in ("file", "link"):
            raise NodenetError(
                f"Cannot install {name} in {bin_dir}: a {present[name].kind} of that name is in the way", plugin=name
            )
    mount = mounts.noexec_mount(bin_dir)
    if mount:
        fact = {"kind": "bin-noexec", "where": bin_dir, "mount": mount}
        raise NodenetError(
            f"Cannot install plugins in {bin_dir}: {mount} is mounted with noexec, so none of them could run",
            mount=mount,
            findings=findings.from_facts([fact]),
        )


def changeable(bin_dir: str, names: Sequence[str], present: Mapping[str, Present]) -> None:
    """See that nobody made these files immutable: a rename over one fails when others have their new content already.

    Errors: NodenetError.
    """
    for name in names:
        if name in present and present[name].kind == "file" and _is_immutable(os.path.join(bin_dir, name)):
            raise NodenetError(
                f"Cannot change {name} in {bin_dir}: somebody made it immutable; allow it with chattr -ia", plugin=name
            )


def _is_immutable(path: str) -> bool:
    flags = array.array("l", [0])
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.ioctl(fd, _GET_FLAGS, flags, True)
    except OSError:  # a file system without such flags
        return False
    finally:
        os.close(fd)
    return bool(flags[0] & _IMMUTABLE)
