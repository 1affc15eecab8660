# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a conflist that takes the place of another moves the addresses that a node hands out.

Where one layer 2 segment reaches over nodes, what a node newly hands out may still be in use on the node that had it
before, and what it gives up another node may hand out a moment later. And a network of another name, or with another
data dir, knows nothing of what is in use by the directory of before. Then two pods have one address.
"""

from __future__ import annotations

import os

from ..cni.errors import ConfigError
from ..host_local.addresses import Address, parse_address
from ..host_local.config import load_ipam_config
from ..host_local.layout import network_dir
from . import networks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import Any, Tuple

    from .confdir import ConfFile

    # width of the addresses in bits, first and last number
    Span = Tuple[int, int, int]


def check(
    conf_dir: str,
    files: Sequence[ConfFile],
    later: Sequence[ConfFile],
    written: Iterable[ConfFile],
    flannel_subnet_file: str,
) -> list[dict[str, Any]]:
    """Return a fact for each network of *written* that hands out other addresses than before; reads the data dirs.

    :param files: the files at present, *later* as they would be
    """
    before = {one.name: one for one in _networks(conf_dir, files, flannel_subnet_file)}
    staying = {_directory(one) for one in _networks(conf_dir, later, flannel_subnet_file)}
    left_behind = [one for one in before.values() if _directory(one) not in staying]
    facts: list[dict[str, Any]] = []
    for after in _networks(conf_dir, written, flannel_subnet_file):
        try:
            # one by one, to keep what was found before a directory that cannot be read
            for fact in _moves(after, before.get(after.name), left_behind):
                facts.append(dict(fact, where=after.source, network=after.name))
        except OSError as error:
            params = {"where": after.source, "network": after.name, "path": str(error.filename)}
            facts.append(dict(params, kind="conf-held-unknown", reason=error.strerror or str(error)))
    return facts


def _moves(
    after: networks.Network, before: networks.Network | None, left_behind: Iterable[networks.Network]
) -> Iterator[dict[str, Any]]:
    new = _spans(after)
    old = _spans(before) if before is not None else []
    shared = after.scope == "shared"
    added = list(_beyond(new, old)) if old else []
    if added and shared:
        yield {"kind": "conf-range-new", "new": _text(added), "old": _text(old)}
    if new and new != old:
        # without ranges of before whatever is there counts
        outside = [one for one in _held(after) if not _lies_in(one, new) and (not old or _lies_in(one, old))]
        if outside:
            kind = "conf-range-left-shared" if shared else "conf-range-left"
            yield {"kind": kind, "new": _text(new), **_counted(outside)}
    for one in left_behind:  # its directory no network uses any more, but pods do
        unknown = {each for each in _held(one) if _lies_in(each, new)}.difference(_held(after))
        if unknown:
            yield {"kind": "conf-held-elsewhere", "old": _path(one), "new": _path(after), **_counted(unknown)}


def _counted(found: Collection[Address]) -> dict[str, Any]:
    return {"count": len(found), "example": str(min(found, key=_order))}


def _path(network: networks.Network) -> str:
    return network_dir(network.data_dir, network.name)


def _directory(network: networks.Network) -> str:
    return os.path.realpath(_path(network))


def _held(network: networks.Network) -> list[Address]:
    """Return the addresses that have a file in a network's directory, whatever the file says. Raises OSError."""
    try:
        names = os.listdir(_path(network))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = []
    for name in names:
        try:
            found.append(parse_address(name))
        except ValueError:
            continue
    return found


def _networks(conf_dir: str, files: Iterable[ConfFile], flannel_subnet_file: str) -> list[networks.Network]:
    found: list[networks.Network] = []
    for one in files:
        if not one.error:
            found += networks.network_of(os.path.join(conf_dir, one.name), one.tree, flannel_subnet_file)
    return networks.each_once(found)[0]


def _spans(network: networks.Network) -> list[Span]:
    try:
        sets = load_ipam_config(network.config).sets
    except ConfigError:  # it is reported elsewhere
        return []
    return sorted((one.start.bits, one.start.number, one.end.number) for each in sets for one in each.ranges)


def _beyond(spans: list[Span], others: list[Span]) -> Iterator[Span]:
    """Yield the parts of *spans* that lie in none of *others*; both are sorted."""
    for bits, start, end in spans:
        for _bits, first, last in (one for one in others if one[0] == bits):
            if last < start or first > end:
                continue
            if first > start:
                yield bits, start, first - 1
            start = last + 1
        if start <= end:
            yield bits, start, end


def _lies_in(address: Address, spans: list[Span]) -> bool:
    return any(bits == address.bits and start <= address.number <= end for bits, start, end in spans)


def _order(address: Address) -> tuple[int, int]:
    return address.bits, address.number


def _text(spans: list[Span]) -> str:
    bits, start, end = spans[0]
    more = f" and {len(spans) - 1} more" if len(spans) > 1 else ""
    return f"{Address(bits, start)}-{Address(bits, end)}{more}"
