# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cache of results that libcni keeps for CHECK, DEL and GC (runtimes spec 3.1, multus spec 9.2).

    <cache dir>/results/<network>-<container id>-<ifname>

Runtimes that use libcni read and write the same files.
"""

from __future__ import annotations

import posix

from . import folders, gojson, goprint, goshape, resultread, wholefile
from .errors import INTERNAL, CniError, go_strerror

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .invoke import Attachment
    from .results import Document

CACHE_DIR = "/var/lib/cni"
KIND = "cniCacheV1"
_ENTRY = goshape.Struct(
    "libcni.cachedInfo",
    {
        "kind": goshape.STRING,
        "containerId": goshape.STRING,
        "config": goshape.STRING,
        "ifName": goshape.STRING,
        "networkName": goshape.STRING,
        "netns": goshape.STRING,
        "cniArgs": goshape.List(goshape.List(goshape.STRING)),
        "capabilityArgs": goshape.Shape(),
        "result": goshape.Shape(),
    },
)


class Entry:
    """One cached attachment. ``config``: the text of the configuration as it was used, ``result``: a `gojson` tree.

    ``netns`` is "" in files of libcni before 1.2.
    """

    __slots__ = ("network", "container_id", "ifname", "netns", "args", "capability_args", "config", "result")

    def __init__(self, values: dict[str, Any]) -> None:
        self.network = values.get("networkName") or ""
        self.container_id = values.get("containerId") or ""
        self.ifname = values.get("ifName") or ""
        self.netns = values.get("netns") or ""
        self.args = [(one[0], one[1]) for one in values.get("cniArgs") or [] if one and len(one) > 1]
        given = values.get("capabilityArgs")
        self.capability_args = gojson.plain(given if isinstance(given, tuple) else ())
        self.config = _decoded(values.get("config") or "")
        self.result = values.get("result")


class ResultCache:
    """The cache below one directory."""

    def __init__(self, directory: str = CACHE_DIR) -> None:
        self.directory = directory
        self.results = f"{directory.rstrip('/')}/results"

    def path(self, network: str, container_id: str, ifname: str) -> str:
        return f"{self.results}/{network}-{container_id}-{ifname}"

    def write(self, network: str, config: bytes, result: Document, attachment: Attachment) -> None:
        """Write an entry, whole or not at all. Raises CniError (code 999).

        It is not synced to the disk, as libcni does not either: what a power cut leaves is a file that readers skip.
        """
        document: dict[str, Any] = {
            "kind": KIND,
            "containerId": attachment.container_id,
            "config": _encoded(config),
            "ifName": attachment.ifname,
            "networkName": network,
        }
        if attachment.netns:
            document["netns"] = attachment.netns
        if attachment.args:
            document["cniArgs"] = [list(pair) for pair in attachment.args]
        if attachment.capability_args:
            document["capabilityArgs"] = goprint.in_order(attachment.capability_args)
        document["result"] = goprint.in_order(result)
        data = goprint.dumps(document, indent=0).encode("utf-8", "surrogateescape")
        path = self.path(network, attachment.container_id, attachment.ifname)
        # readers take everything in `results` for an entry, so the unfinished file lies beside that directory
        unfinished = f"{self.directory.rstrip('/')}/.nodenet-"
        try:
            folders.make(self.results, 0o700)
            wholefile.write(path, data, unfinished)
        except OSError as error:
            text = f'failed to set network "{network}" cached result: open {path}: {go_strerror(error)}'
            raise CniError(INTERNAL, text) from None

    def remove(self, network: str, container_id: str, ifname: str) -> None:
        """Remove an entry; whether there was one does not matter."""
        try:
            posix.unlink(self.path(network, container_id, ifname))
        except OSError:
            pass

    def find(self, network: str, container_id: str, ifname: str) -> Entry | None:
        """Return an entry, None if there is none. Raises CniError (code 999) if what is there cannot be used.

        The file may also be of the first libcni, which wrote the bare result.
        """
        path = self.path(network, container_id, ifname)
        try:
            data = wholefile.read(path)
        except (OSError, ValueError):
            return None
        try:
            tree = gojson.parse(data)
            values = _ENTRY.decode(tree, None, "")
            if values.get("kind") == KIND:
                return Entry(values)
        except (gojson.SyntaxFault, goshape.TypeFault, ValueError) as fault:
            raise CniError(INTERNAL, f"cannot use cached result {path}: {fault}") from None
        known = {"networkName": network, "containerId": container_id, "ifName": ifname, "result": tree}
        return Entry(known)

    def entries(self) -> list[Entry]:
        """Return all entries that can be read, in order of their files' names."""
        try:
            names = sorted(posix.listdir(self.results))
        except OSError:
            return []
        found = []
        for name in names:
            try:
                values = _ENTRY.decode(gojson.parse(wholefile.read(f"{self.results}/{name}")), None, "")
                if values.get("kind") == KIND:
                    found.append(Entry(values))
            except (OSError, gojson.SyntaxFault, goshape.TypeFault, ValueError):
                continue
        return found


def cached_result(entry: Entry, version: str) -> Document:
    """Return an entry's result in the layout of another version, as plugins get it. Raises CniError (code 999)."""
    from . import results

    document = resultread.from_tree(entry.result, "")
    if document["cniVersion"] == version:
        return document
    return results.convert(document, version)


def _encoded(data: bytes) -> str:
    import binascii

    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _decoded(text: str) -> bytes:
    import binascii

    return binascii.a2b_base64(text.encode("ascii", "replace"))
