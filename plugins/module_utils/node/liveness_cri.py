# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which sandboxes there are, asked of containerd or CRI-O by CRI's ListPodSandbox: gRPC with nothing but a socket.

One call needs one HTTP/2 stream: what we send is fixed, and of what comes only the data frames matter. The headers of
the answer are not decoded, as an error is an answer without a message.
"""

from __future__ import annotations

import os
import socket
import time

from ..cni import protobuf

SERVICES = ("runtime.v1.RuntimeService", "runtime.v1alpha2.RuntimeService")
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS, _PADDED = 1, 1, 4, 8
_WINDOW = 0x7FFFFFFF
_DEFAULT_WINDOW = 65535
_INITIAL_WINDOW_SIZE = 4
_MOST = 64 << 20
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class NoAnswer(Exception):
    """The server has no message for us: it does not know the service, or the call failed."""


def sandboxes(address: str, timeout: float) -> list[str]:
    """Return the ids of all sandboxes, whatever their state.

    :raises NoAnswer: the server does not speak CRI, or is not able to now
    :raises OSError: nobody answers on the socket in time, or what comes is no gRPC
    """
    for service in SERVICES[:-1]:
        try:
            return _ids(_call(address, service, timeout))
        except NoAnswer:
            continue
    return _ids(_call(address, SERVICES[-1], timeout))


def connect(address: str, timeout: float) -> socket.socket:
    """Return a connection to a unix socket whose path may be longer than the system takes. Raises OSError."""
    directory = os.open(os.path.dirname(address) or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.settimeout(timeout)
        client.connect(f"/proc/self/fd/{directory}/{os.path.basename(address)}")
        return client
    except BaseException:
        client.close()
        raise
    finally:
        os.close(directory)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _header(name: str, value: str) -> bytes:
    """Return a field that is neither indexed nor compressed (RFC 7541, 6.2.2); both parts are short."""
    return b"\0" + b"".join(bytes([len(text)]) + text.encode() for text in (name, value))


def _call(address: str, service: str, timeout: float) -> bytes:
    """Return the message with which ListPodSandbox of everything is answered."""
    headers = (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", f"/{service}/ListPodSandbox"),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    )
    # windows as large as can be, so that none has to be opened again while the answer comes
    settings = _INITIAL_WINDOW_SIZE.to_bytes(2, "big") + _WINDOW.to_bytes(4, "big")
    request = (
        _PREFACE
        + _frame(_SETTINGS, 0, 0, settings)
        + _frame(_WINDOW_UPDATE, 0, 0, (_WINDOW - _DEFAULT_WINDOW).to_bytes(4, "big"))
        + _frame(_HEADERS, _END_HEADERS, 1, b"".join(_header(*one) for one in headers))
        + _frame(_DATA, _END_STREAM, 1, bytes(5))
    )
    deadline = time.monotonic() + timeout
    with connect(address, timeout) as connection:
        connection.sendall(request)
        answer = _read_answer(connection, deadline)
    if not answer:
        raise NoAnswer(f"{address} has no answer to ListPodSandbox of {service}")
    if len(answer) < 5 or answer[0] != 0 or int.from_bytes(answer[1:5], "big") != len(answer) - 5:
        raise OSError(f"{address} answered ListPodSandbox with something that is no whole message")
    return answer[5:]


def _read_answer(connection: socket.socket, deadline: float) -> bytes:
    answer = bytearray()
    while True:
        head = _read(connection, 9, deadline)
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:9], "big") & _WINDOW
        payload = _read(connection, int.from_bytes(head[:3], "big"), deadline)
        if kind == _SETTINGS and not flags & _ACK:
            _acknowledge(connection, _SETTINGS, b"")
        elif kind == _PING and not flags & _ACK:
            _acknowledge(connection, _PING, payload)
        elif kind == _DATA and stream == 1:
            answer += payload[1 : len(payload) - payload[0]] if flags & _PADDED else payload
            if len(answer) > _MOST:
                raise OSError("the answer to ListPodSandbox is too long")
        elif kind in (_RST_STREAM, _GOAWAY):
            raise OSError("the server ended the call ListPodSandbox")
        if kind in (_DATA, _HEADERS) and stream == 1 and flags & _END_STREAM:
            # an error after data would be in these last headers; the length of the message tells a cut one
            return bytes(answer)


def _acknowledge(connection: socket.socket, kind: int, payload: bytes) -> None:
    try:
        connection.sendall(_frame(kind, _ACK, 0, payload))
    except (BrokenPipeError, ConnectionResetError):
        pass  # all may have been said; if not, reading tells


def _read(connection: socket.socket, count: int, deadline: float) -> bytes:
    found = b""
    while len(found) < count:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        piece = connection.recv(count - len(found))
        if not piece:
            raise OSError("the server closed the connection amid the call ListPodSandbox")
        found += piece
    return found


def _ids(message: bytes) -> list[str]:
    """Return field 1 (id) of each field 1 (items) of the message. Raises OSError if it is not of that form."""
    try:
        found = [dict(protobuf.fields(one)).get(1) for number, one in protobuf.fields(message) if number == 1]
        ids = [one.decode("ascii") for one in found if one]
    except ValueError:
        raise OSError("the answer to ListPodSandbox cannot be understood") from None
    if len(ids) != len(found):
        raise OSError("the answer to ListPodSandbox has a sandbox without an id")
    return ids
