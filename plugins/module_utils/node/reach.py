# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find out whether a gateway answers, from inside a network namespace and without the program ``ping``."""

from __future__ import annotations

import os
import socket
import struct
import time

from ..cni import links, netlink, netns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ECHO, NEIGHBOUR, SILENT, UNKNOWN = "echo", "neighbour", "silent", "unknown"
_REQUEST = {netlink.AF_INET: 8, netlink.AF_INET6: 128}
_REPLY = {netlink.AF_INET: 0, netlink.AF_INET6: 129}
_PROTOCOL = {netlink.AF_INET: socket.IPPROTO_ICMP, netlink.AF_INET6: socket.IPPROTO_ICMPV6}
_HEADER = struct.Struct("!BBHHH")
_INTERVAL = 0.2
_ECHOES = 5  # so many stay without answer before the hardware address is proof enough


class Answer:
    """``how`` a gateway answered: ECHO, NEIGHBOUR (only its hardware address is known, as behind a firewall), SILENT,
    or UNKNOWN, as the question could not be put. ``detail``: text for people."""

    def __init__(self, how: str, detail: str) -> None:
        self.how = how
        self.detail = detail


def ask(
    kernel: netlink.Netlink, path: str, gateway: str, index: int, seconds: float, stop: Callable[[], bool]
) -> Answer:
    """Ask a gateway until it answers or *seconds* are over.

    :param kernel: a socket in the namespace at *path*
    :param index: of the link on which a link-local gateway lies
    :param stop: asked again and again; once it returns true the question is given up
    """
    family = netlink.family_of(gateway)
    try:
        opened = netns.open_inside(path, lambda: socket.socket(family, socket.SOCK_RAW, _PROTOCOL[family]))
    except OSError as error:
        return Answer(UNKNOWN, f"no raw socket: {(error.strerror or str(error)).lower()}")
    target: tuple[object, ...] = (gateway, 0) if family == netlink.AF_INET else (gateway, 0, 0, _scope(gateway, index))
    mark = os.urandom(2)
    trouble = ""
    deadline = time.monotonic() + seconds
    number = 0
    with opened:
        while time.monotonic() < deadline and not stop():
            number += 1
            try:
                opened.sendto(_request(family, mark, number), target)
            except OSError as error:  # an IPv6 address that is still being looked at, a route that settles
                trouble = (error.strerror or str(error)).lower()
            if _reply(opened, family, mark, gateway, time.monotonic() + _INTERVAL):
                return Answer(ECHO, "answers an echo request")
            if number >= _ECHOES and links.resolved(kernel, gateway):
                break
    hardware = links.resolved(kernel, gateway)
    if hardware:
        return Answer(NEIGHBOUR, f"its hardware address is {hardware}, an echo request stays without answer")
    return Answer(SILENT, trouble or "no answer")


def _scope(gateway: str, index: int) -> int:
    return index if netlink.packed(gateway)[:2] == b"\xfe\x80" else 0


def _request(family: int, mark: bytes, number: int) -> bytes:
    """Return an echo request; the kernel fills in the checksum of IPv6."""
    identity = int.from_bytes(mark, "big")
    data = b"nodenet.cni probe"
    plain = _HEADER.pack(_REQUEST[family], 0, 0, identity, number & 0xFFFF) + data
    checksum = _checksum(plain) if family == netlink.AF_INET else 0
    return _HEADER.pack(_REQUEST[family], 0, checksum, identity, number & 0xFFFF) + data


def _checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _reply(opened: socket.socket, family: int, mark: bytes, gateway: str, deadline: float) -> bool:
    """Wait for an answer to one of our requests; take the whole time when there is none."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        opened.settimeout(left)
        try:
            data, sender = opened.recvfrom(2048)
        except socket.timeout:
            return False
        except OSError:  # the kernel reports here that a request was refused
            time.sleep(min(0.02, left))
            continue
        start = (data[0] & 0x0F) * 4 if family == netlink.AF_INET and data else 0
        answer = data[start:]
        same = netlink.packed(str(sender[0]).partition("%")[0]) == netlink.packed(gateway)
        if same and len(answer) >= _HEADER.size and answer[0] == _REPLY[family] and answer[4:6] == mark:
            return True
