# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rtnetlink, the kernel's interface to links, addresses and routes: messages and the socket that carries them.

What is in the messages is known to `links` and `routes`.
"""

from __future__ import annotations

import _socket
import _struct
import errno
import posix

from . import netns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator

AF_INET = 2
AF_INET6 = 10
REQUEST, ACK, DUMP, EXCL, CREATE, REPLACE = 0x1, 0x4, 0x300, 0x200, 0x400, 0x100
_AF_NETLINK, _ROUTE = 16, 0
_ERROR, _DONE, _DUMP_INTERRUPTED = 2, 3, 0x10
_HEADER = _struct.Struct("=IHHII")
_ATTRIBUTE = _struct.Struct("=HH")
_U32 = _struct.Struct("=I")
_S32 = _struct.Struct("=i")
_TYPE_MASK = 0x3FFF
_BUFFER = 1 << 18
_DUMP_ATTEMPTS = 10
_ANSWER_LIMIT = 10.0


class Netlink:
    """A socket in one network namespace: this process's own, or that of *path*. Close it, or use it in a with block.

    Raises OSError, as do all who use it.
    """

    def __init__(self, path: str = "") -> None:
        self._socket = netns.open_inside(path, _open) if path else _open()
        self._sequence = 0

    def __enter__(self) -> Netlink:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def change(self, kind: int, payload: bytes, flags: int = 0) -> None:
        """Send a request that the kernel carries out or refuses; OSError has the kernel's error number."""
        self._send(kind, REQUEST | ACK | flags, payload)
        for _kind, _payload in self._answers():
            pass

    def dump(self, kind: int, payload: bytes) -> list[bytes]:
        """Return the payloads of all objects of a kind. A list that changed while it was read is read again."""
        found: list[bytes] = []
        for _attempt in range(_DUMP_ATTEMPTS):
            self._send(kind, REQUEST | DUMP, payload)
            try:
                found = [one for _kind, one in self._answers()]
                return found
            except InterruptedError:
                continue
        raise OSError(errno.EAGAIN, posix.strerror(errno.EAGAIN))

    def _send(self, kind: int, flags: int, payload: bytes) -> None:
        self._sequence += 1
        self._socket.send(_HEADER.pack(_HEADER.size + len(payload), kind, flags, self._sequence, 0) + payload)

    def _answers(self) -> Iterator[tuple[int, bytes]]:
        """Yield (type, payload) of each message that answers the last request, until the kernel says it is done."""
        interrupted = False
        while True:
            data = self._socket.recv(_BUFFER)
            start = 0
            while start + _HEADER.size <= len(data):
                length, kind, flags, sequence, _pid = _HEADER.unpack_from(data, start)
                payload = data[start + _HEADER.size : start + length]
                start += _aligned(max(length, _HEADER.size))
                if sequence != self._sequence:
                    continue  # the rest of an answer that nobody waited for
                interrupted = interrupted or bool(flags & _DUMP_INTERRUPTED)
                if kind in (_ERROR, _DONE):
                    code = -_S32.unpack_from(payload)[0] if len(payload) >= 4 else 0
                    if code > 0:
                        raise OSError(code, posix.strerror(code))
                    if interrupted:
                        raise InterruptedError(errno.EINTR, posix.strerror(errno.EINTR))
                    return
                yield kind, payload


def _open() -> _socket.socket:
    opened = _socket.socket(_AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, _ROUTE)
    try:
        opened.bind((0, 0))
        opened.settimeout(_ANSWER_LIMIT)
    except OSError:
        opened.close()
        raise
    return opened


def _aligned(length: int) -> int:
    return (length + 3) & ~3


def attributes(payload: bytes, start: int) -> dict[int, bytes]:
    """Return the attributes that follow the fixed part of a message."""
    found: dict[int, bytes] = {}
    while start + 4 <= len(payload):
        length, kind = _ATTRIBUTE.unpack_from(payload, start)
        if length < 4:
            break
        found[kind & _TYPE_MASK] = payload[start + 4 : start + length]
        start += _aligned(length)
    return found


def pack(pairs: Iterable[tuple[int, bytes]]) -> bytes:
    """Return attributes as a message carries them."""
    pieces = []
    for kind, value in pairs:
        length = 4 + len(value)
        pieces.append(_ATTRIBUTE.pack(length, kind) + value + b"\0" * (_aligned(length) - length))
    return b"".join(pieces)


def u32(value: int) -> bytes:
    return _U32.pack(value)


def number(value: bytes | None, default: int = 0) -> int:
    """Return an attribute that is a 32-bit number, *default* if the message has none."""
    return int(_U32.unpack_from(value)[0]) if value is not None and len(value) >= 4 else default


def text(value: bytes | None) -> str:
    """Return an attribute that is a C string."""
    return (value or b"").rstrip(b"\0").decode("utf-8", "surrogateescape")


def family_of(address: str) -> int:
    """Return the family of an address in text form. Raises ValueError for what is none."""
    return AF_INET6 if ":" in address else AF_INET


def packed(address: str) -> bytes:
    """Return the bytes of an address. Raises ValueError for a text that is none."""
    try:
        return _socket.inet_pton(family_of(address), address)
    except OSError:
        raise ValueError(f"invalid IP address: {address}") from None


def printed(value: bytes) -> str:
    """Return an address as text, its family judged by its length."""
    return _socket.inet_ntop(AF_INET6 if len(value) == 16 else AF_INET, value)
