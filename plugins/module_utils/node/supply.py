# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The source of one run, verified: what it offers, and its content when that is needed."""

from __future__ import annotations

import hashlib
import os

from ..cni.errors import NodenetError
from . import archive, elf, manifest, offers, products
from .checksum import wanted_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence


class Supply:
    """The verified source of one run, as open_supply() gives it; on its own, one that holds nothing.

    ``label``: what the user calls it. ``digest``: sha256 of an archive, "" for a directory. ``offers``: what it holds.
    ``wanted``: offers to install, by name, the embedded ones among them. ``ignored``: names of other files.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.digest = ""
        self.offers: list[offers.Offer] = []
        self.wanted: dict[str, offers.Offer] = {}
        self.ignored: list[str] = []
        self._source: archive.ArchiveSource | archive.DirectorySource | None = None
        self._absence: NodenetError | None = None
        self._embedded: dict[str, bytes] = {}

    @property
    def source(self) -> str:
        """What the record calls it: an archive is the same wherever it lies."""
        return os.path.basename(self.label) if self.digest else self.label

    def verify(self, demanded: tuple[str, str] | None, record: manifest.Manifest) -> None:
        """Open the source and check its digest; demanded: see checksum.wanted_digest. Errors: NodenetError."""
        try:
            self._source = archive.open_source(self.label)
        except NodenetError as exc:
            # An archive that was removed after it was installed is not needed to see that all of it is in place.
            if not exc.facts.get("src_missing") or not demanded or demanded[1] not in record.archives:
                raise
            self._absence = exc
            self.digest = demanded[1]
            return
        _verify(self._source, demanded)
        self.digest = self._source.digest

    def choose(self, include: Sequence[str], record: manifest.Manifest, embedded: Collection[str] = ()) -> None:
        """Settle what is wanted of the source, which need not have the embedded ones. Errors: NodenetError, OSError."""
        others = [name for name in include if name not in embedded]
        if include and not others:
            return
        include = others
        known = record.archives.get(self.digest)
        if known:
            self.offers = [offers.Offer(**values) for values in known["files"]]
        elif self._source:
            self.offers = offers.inspect(self._source, include)
        self.wanted, self.ignored = offers.select(self.offers, include, elf.node_architectures(), self.label)

    def outdated(self, record: manifest.Manifest, keep: Collection[str]) -> list[str]:
        """Return the names of what an older version of this source brought and it has not; *keep* are none of them."""
        names = self.names()
        return products.outdated(record.plugins, self.source, names, keep) if names else []

    def names(self) -> set[str]:
        """Return the names of the files at the top of the source, whatever is wanted of it."""
        if isinstance(self._source, archive.DirectorySource):
            return set(os.listdir(self._source.path))
        return {offer.name for offer in self.offers}

    def demand(self, digests: Mapping[str, str]) -> None:
        """See that what is wanted of the source has these digests. Errors: NodenetError."""
        for name, digest in sorted(digests.items()):
            if name in self.wanted and self.wanted[name].sha256 != digest:
                raise NodenetError(
                    f"Cannot install {name} from {self.label}: its sha256 is {self.wanted[name].sha256}, "
                    f"file_checksums demands {digest}",
                    plugin=name,
                    actual=self.wanted[name].sha256,
                    demanded=digest,
                )

    def embed(self, contents: Mapping[str, bytes]) -> None:
        """Provide these plugins in place of what the source has under their names."""
        self._embedded = dict(contents)
        self.ignored = sorted([*self.ignored, *(name for name in contents if name in self.wanted)])
        for name, content in contents.items():
            self.wanted[name] = offers.scan(name, len(content), [content])

    def need_content(self, names: Collection[str]) -> None:
        """See that the source is there if one of these plugins is to come from it. Errors: NodenetError."""
        if self._absence and any(name not in self._embedded for name in names):
            raise self._absence

    def contents(self, names: Sequence[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Yield (name, pieces) of these plugins, in the source's order; what differs from what was verified fails."""
        for name in names:
            if name in self._embedded:
                yield name, iter([self._embedded[name]])
        by_path = {self.wanted[name].path: self.wanted[name] for name in names if name not in self._embedded}
        if self._source is None or not by_path:
            return
        for entry in self._source.entries(frozenset(by_path)):
            offer = by_path.pop(entry.path)
            yield offer.name, self._verified(entry.pieces(), offer)
        if by_path:
            raise self._moved(sorted(by_path)[0])

    def _verified(self, pieces: Iterator[bytes], offer: offers.Offer) -> Iterator[bytes]:
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
            yield piece
        if digest.hexdigest() != offer.sha256:
            raise self._moved(offer.name)

    def _moved(self, name: str) -> NodenetError:
        return NodenetError(f"Cannot install {name} from {self.label}: it changed while it was read", plugin=name)

    def close(self) -> None:
        if self._source:
            self._source.close()


def open_supply(
    src: str,
    bin_dir: str,
    checksum: str | None,
    include: Sequence[str],
    record: manifest.Manifest,
    embedded: Collection[str] = (),
) -> Supply:
    """Verify *src* and choose from it; close() the result. Arguments as for binaries.install().

    Errors: NodenetError, OSError.
    """
    refuse_url(src)
    if elf.ARCHITECTURE_MARK in src + (checksum or ""):
        architecture = elf.published_architecture(os.uname().machine)
        src = src.replace(elf.ARCHITECTURE_MARK, architecture)
        checksum = checksum and checksum.replace(elf.ARCHITECTURE_MARK, architecture)
    if os.path.realpath(src) == os.path.realpath(bin_dir):
        raise NodenetError(
            f"Cannot install plugins from {src} into {bin_dir}: they are the same directory; leave out src to only "
            "look after the required ones"
        )
    demanded = wanted_digest(checksum, os.path.basename(src)) if checksum else None
    supply = Supply(src)
    try:
        supply.verify(demanded, record)
        supply.choose(include, record, embedded)
    except BaseException:
        supply.close()
        raise
    return supply


def refuse_url(src: str) -> None:
    """Refuse what only looks like a path. Errors: NodenetError."""
    if "://" in src:
        raise NodenetError(
            f"Cannot take plugins from {src}: nothing is fetched from a URL; download it before and give the path"
        )


def _verify(source: archive.ArchiveSource | archive.DirectorySource, demanded: tuple[str, str] | None) -> None:
    if demanded is None:
        return
    if isinstance(source, archive.DirectorySource):
        raise NodenetError(f"Cannot verify {source.path}: checksum is for archives, this is a directory")
    algorithm, digest = demanded
    actual = source.digest if algorithm == "sha256" else source.hexdigest(algorithm)
    if actual != digest:
        raise NodenetError(
            f"Cannot use {source.path}: its {algorithm} is {actual}, the checksum demands {digest}",
            actual=actual,
            demanded=digest,
        )
