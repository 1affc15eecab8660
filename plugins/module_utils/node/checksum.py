# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options ``checksum``, ``sha256:<hex>`` or ``sha256:<path>`` of a file as sha256sum writes it, and
``file_checksums``.
"""

from __future__ import annotations

import os
import re

from ..cni.errors import NodenetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_DIGITS = {"sha256": 64, "sha512": 128}
_LINE = re.compile(r"([0-9A-Fa-f]+)(?:[ \t]+[*]?(\S.*))?")
_BSD_LINE = re.compile(r"[A-Za-z0-9-]+ ?\((.+)\) ?= ?([0-9A-Fa-f]+)")


def wanted_digest(checksum: str, file_name: str) -> tuple[str, str]:
    """Return (algorithm, hex digest) that *checksum* demands of the file called *file_name*.

    checksum: ``<algorithm>:<hex digest>`` or ``<algorithm>:<path>``; algorithms are sha256 and sha512.
    file_name: the name under which the file was published, without directories.
    Errors: NodenetError.
    """
    algorithm, digest, path = split_checksum(checksum)
    if digest:
        return algorithm, digest
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read(1 << 20)
    except OSError as exc:
        raise NodenetError(f"Cannot read checksum file {path}: {exc.strerror}", file=path) from exc
    return algorithm, choose_digest(text, file_name, algorithm, path)


def split_checksum(checksum: str) -> tuple[str, str, str]:
    """Return (algorithm, hex digest, path of a checksum file); one of the last two is "".

    Only what consists of nothing but hex digits is a digest, everything else is a path. Errors: NodenetError.
    """
    algorithm, colon, value = checksum.partition(":")
    if not colon or algorithm not in _DIGITS:
        raise NodenetError(
            f"Cannot use checksum {checksum}: it must be sha256:<hex digest> or sha512:<hex digest>, or have the path "
            "of a checksum file in place of the digest"
        )
    if _is_digest(value, algorithm):
        return algorithm, value.lower(), ""
    if re.fullmatch(r"[0-9A-Fa-f]*", value):
        raise NodenetError(
            f"Cannot use checksum {checksum}: a {algorithm} digest has {_DIGITS[algorithm]} hex digits, this one "
            f"{len(value)}"
        )
    if "://" in value:
        raise NodenetError(
            f"Cannot use checksum {checksum}: nothing is fetched from a URL; download it before and give the path"
        )
    return algorithm, "", value


def file_digests(checksums: Mapping[str, object]) -> dict[str, str]:
    """Return the sha256 that the option file_checksums demands of each plugin, by name. Errors: NodenetError."""
    digests = {}
    for name, checksum in checksums.items():
        algorithm, colon, digest = str(checksum).partition(":")
        if not colon or algorithm != "sha256" or not _is_digest(digest, algorithm):
            raise NodenetError(
                f"Cannot use checksum {checksum} for {name}: in file_checksums it must be sha256:<hex digest>"
            )
        digests[name] = digest.lower()
    return digests


def choose_digest(text: str, file_name: str, algorithm: str, where: str) -> str:
    """Return the digest that the text of a checksum file gives for *file_name*.

    Only a line that names the file counts, in the form of sha256sum or of BSD; a file that holds nothing but one bare
    digest speaks of whatever it was published beside. Case install-checksum-of-wrong-file.
    where: the checksum file, for messages. Errors: NodenetError.
    """
    named: dict[str, set[str]] = {}
    bare = set()
    for line in text.splitlines():
        line = line.strip()
        match = _BSD_LINE.fullmatch(line)
        if match:
            digest, name = match.group(2), match.group(1)
        else:
            match = _LINE.fullmatch(line)
            if not match:
                continue
            digest, name = match.groups()
        if not _is_digest(digest, algorithm):
            continue
        if name:
            named.setdefault(os.path.basename(name.strip()), set()).add(digest.lower())
        else:
            bare.add(digest.lower())
    found = named.get(file_name, set())
    if not named and len(bare) == 1:
        found = bare
    if len(found) == 1:
        return found.pop()
    if found:
        reason = f"it gives more than one {algorithm} digest for {file_name}"
    elif named:
        reason = f"no line of it names {file_name}, only {', '.join(sorted(named))}"
    elif bare:
        reason = f"it holds {len(bare)} {algorithm} digests without a file name"
    else:
        reason = f"it holds no {algorithm} digest"
    raise NodenetError(f"Cannot choose the checksum of {file_name} in {where}: {reason}", file=where)


def _is_digest(value: str, algorithm: str) -> bool:
    return len(value) == _DIGITS[algorithm] and re.fullmatch(r"[0-9A-Fa-f]+", value) is not None
