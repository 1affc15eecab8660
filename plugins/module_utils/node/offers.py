# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a source of plugins offers, and which of it is to be installed."""

from __future__ import annotations

import hashlib
import re

from ..cni.errors import NodenetError
from .elf import ElfScan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .archive import ArchiveSource, DirectorySource

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LIBRARY = re.compile(r"\.so(\.|$)")

# fmt: off
REFERENCE = (
    "bandwidth", "bridge", "dhcp", "dummy", "firewall", "host-device", "host-local", "ipvlan", "loopback", "macvlan",
    "portmap", "ptp", "sbr", "static", "tap", "tuning", "vlan", "vrf",
)
# fmt: on
_HOMES = {
    "flannel": "flannel-io/cni-plugin (the archive of containernetworking/plugins has not held it since 1.0.0)",
    "multus": "k8snetworkplumbingwg/multus-cni",
    "multus-shim": "k8snetworkplumbingwg/multus-cni",
    "whereabouts": "k8snetworkplumbingwg/whereabouts",
    "sriov": "k8snetworkplumbingwg/sriov-cni",
    "ovs": "k8snetworkplumbingwg/ovs-cni",
    "bond": "k8snetworkplumbingwg/bond-cni",
    "calico": "projectcalico/calico",
    "calico-ipam": "projectcalico/calico",
    "cilium-cni": "cilium/cilium",
    "kube-ovn": "kubeovn/kube-ovn",
}


class Offer:
    """A plain file of a source that could be a plugin.

    ``path``: in the source. ``architecture``: "" if it is not ELF. ``program``: an ELF program. ``script``: it starts
    with "#!". ``missing``: what a truncated file lacks, "" if it is whole. ``marked``: it is marked executable.
    """

    FIELDS = ("name", "path", "sha256", "size", "architecture", "program", "script", "missing", "marked")

    def __init__(self, **values: Any) -> None:
        self.name: str = values["name"]
        self.path: str = values["path"]
        self.sha256: str = values["sha256"]
        self.size: int = values["size"]
        self.architecture: str = values["architecture"]
        self.program: bool = values["program"]
        self.script: bool = values["script"]
        self.missing: str = values["missing"]
        self.marked: bool = values["marked"]

    def as_dict(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in self.FIELDS}

    def looks_like_plugin(self) -> bool:
        """An ELF program; also an empty or broken file that once was one, so that it is not passed over in silence."""
        if _LIBRARY.search(self.name):
            return False
        return self.program or bool(self.missing and (self.size or self.marked))


def inspect(source: ArchiveSource | DirectorySource, include: Iterable[str] = ()) -> list[Offer]:
    """Read a source once and describe the files at its top, or in its one top folder if there are none at the top.

    include: for a directory, look at these names only. Errors: NodenetError (archive), OSError (directory).
    """
    wanted = frozenset(include) or None
    found = [
        (entry.path.split("/"), scan(entry.path, entry.size, entry.pieces(), entry.marked))
        # An archive is judged as a whole, whatever is wanted of it.
        for entry in source.entries(None if source.digest else wanted)
    ]
    depth = 1
    if all(len(parts) > 1 for parts, _offer in found) and len({parts[0] for parts, _offer in found}) == 1:
        depth = 2
    offers = [offer for parts, offer in found if len(parts) == depth and _NAME.fullmatch(offer.name)]
    return sorted(offers, key=lambda offer: offer.name)


def scan(path: str, size: int, pieces: Iterable[bytes], marked: bool = True) -> Offer:
    """Describe one file from its content."""
    elf = ElfScan(size)
    digest = hashlib.sha256()
    head = b""
    for piece in pieces:
        head = head or piece[:2]
        digest.update(piece)
        elf.feed(piece)
    return Offer(
        name=path.rsplit("/", 1)[-1],
        path=path,
        sha256=digest.hexdigest(),
        size=size,
        architecture=elf.architecture,
        program=elf.executable,
        script=head == b"#!",
        missing=elf.truncation(),
        marked=marked,
    )


def select(
    offers: Sequence[Offer], include: Sequence[str], architectures: Sequence[str], where: str
) -> tuple[dict[str, Offer], list[str]]:
    """Choose what to install: the names in *include*, or else every ELF program.

    architectures: those that the node runs. where: the source, for messages.
    Returns the chosen by name, and the names of the files that were passed over.
    Errors: NodenetError for a name that is not there, a wrong architecture, a truncated file, no plugin at all.
    """
    by_name = {offer.name: offer for offer in offers}
    for name in include:
        if name not in by_name:
            raise NodenetError(
                f"Cannot install {name} from {where}: it holds no such file, only {_listed(by_name)}{home(name)}",
                plugin=name,
            )
    chosen = {
        name: offer for name, offer in by_name.items() if (name in include if include else offer.looks_like_plugin())
    }
    if not chosen:
        raise NodenetError(
            f"Cannot install plugins from {where}: no file at its top is an executable"
            + (f", it holds {_listed(by_name)}" if by_name else "")
        )
    for name in sorted(chosen):
        reason = _fault(chosen[name], architectures)
        if reason:
            raise NodenetError(f"Cannot install {name} from {where}: {reason}", plugin=name)
    return chosen, sorted(set(by_name) - set(chosen))


def is_known(name: str) -> bool:
    """Tell whether a CNI plugin of that name is known, so that a file of that name may be run as one."""
    return name in REFERENCE or name in _HOMES


def home(name: str) -> str:
    """Say which project publishes a plugin, as the end of a message; "" if that is not known."""
    project = "containernetworking/plugins" if name in REFERENCE else _HOMES.get(name)
    return f"; {name} comes from {project}" if project else ""


def check_names(names: Iterable[str], option: str) -> None:
    """Refuse what cannot be the name of a plugin. Errors: NodenetError."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise NodenetError(
                f"Cannot use {name!r} in {option}: a plugin is named by letters, digits, '.', '_' and '-' only"
            )


def _fault(offer: Offer, architectures: Sequence[str]) -> str:
    if offer.missing:
        return f"it is incomplete, {offer.missing}"
    if offer.script:
        return ""
    if not offer.program:
        return "it is neither an ELF program nor a script"
    if offer.architecture not in architectures:
        return f"it is built for {offer.architecture}, this node runs {' and '.join(architectures) or 'something else'}"
    return ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
