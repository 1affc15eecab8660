# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the interfaces of all delegates can be made, asked before the first is (multus spec 7.2, M5)."""

from __future__ import annotations

import posix

from ..cni import links, netlink, netns
from ..cni.errors import INTERNAL, CniError, go_strerror
from ..cni.names import interface_fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from .delegate import Delegate


class NameFault(CniError):
    """The interface of the delegate at *index* cannot be made."""

    def __init__(self, index: int, msg: str, details: str = "") -> None:
        super().__init__(INTERNAL, msg, details)
        self.index = index


def name_faults(delegates: Sequence[Delegate], names: Sequence[str]) -> list[NameFault]:
    """Return a fault for each name that is none, or that an earlier delegate wants. Asks nothing of the system."""
    found = []
    seen: dict[str, int] = {}
    for index, (delegate, name) in enumerate(zip(delegates, names)):
        fault = interface_fault(name)
        if fault is not None:
            found.append(NameFault(index, *fault))
        elif name in seen:
            first = delegates[seen[name]].name
            text = f"interface name {name} is used twice, {first} has it too"
            found.append(NameFault(index, _cannot_set(delegate, name) + text))
        seen.setdefault(name, index)
    return found


def check_netns(path: str, delegates: Sequence[Delegate], names: Sequence[str]) -> None:
    """Refuse what is no network namespace, and names that interfaces in it have already. Raises NameFault."""
    try:
        posix.stat(path)
    except (OSError, ValueError) as error:
        text = f'no net namespace {path} found: failed to Statfs "{path}": {go_strerror(error)}'
        raise NameFault(0, _cannot_set(delegates[0], names[0]) + text) from None
    if not netns.is_namespace(path):
        text = f'no net namespace {path} found: "{path}" is none'
        raise NameFault(0, _cannot_set(delegates[0], names[0]) + text)
    try:
        with netlink.Netlink(path) as kernel:
            there = {one.name for one in links.links(kernel)}
    except OSError as error:
        text = f"cannot look into net namespace {path}: {go_strerror(error)}"
        raise NameFault(0, _cannot_set(delegates[0], names[0]) + text) from None
    for index, (delegate, name) in enumerate(zip(delegates, names)):
        if name in there:
            raise NameFault(index, _cannot_set(delegate, name) + f"interface name {name} already exists")


def _cannot_set(delegate: Delegate, name: str) -> str:
    return f'DelegateAdd: cannot set "{delegate.kind}" interface name to "{name}": validateIfName: '
