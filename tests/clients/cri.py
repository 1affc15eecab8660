# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet asks of containerd, with the standard library: the few calls of CRI v1 about pods.

gRPC is one HTTP/2 stream a call. Every call has a connection of its own, so there is one stream and nothing is
multiplexed. Header blocks of the answer are not decoded: a call that succeeded has a message, one that failed has none
(its reason stands in containerd's log).
"""

from __future__ import annotations

import socket
import struct

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4


class CallFailed(Exception):
    """The server did not answer a call with a message."""


# --- protocol buffers: only strings, messages and flags occur


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _encode(*fields: tuple[int, object]) -> bytes:
    """Return a message of (number, text, message or flag) fields."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += _varint(number << 3) + _varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += _varint(number << 3 | 2) + _varint(len(data)) + data
    return out


def _decode(data: bytes) -> dict[int, list]:
    """Return field number -> values of a message; nested messages stay bytes."""
    fields: dict[int, list] = {}
    position = 0

    def varint() -> int:
        nonlocal position
        number = shift = 0
        while True:
            byte = data[position]
            position += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    while position < len(data):
        key = varint()
        if key & 7 == 0:
            value: object = varint()
        elif key & 7 == 2:
            length = varint()
            value = data[position : position + length]
            position += length
        else:
            raise CallFailed(f"field {key >> 3} has the unexpected wire type {key & 7}")
        fields.setdefault(key >> 3, []).append(value)
    return fields


# --- one call


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _literal(name: str, value: str) -> bytes:
    """Return a header field, not indexed and not compressed (RFC 7541, 6.2.2)."""
    out = b"\0"
    for text in (name.encode(), value.encode()):
        assert len(text) < 127
        out += bytes([len(text)]) + text
    return out


def _call(path: str, method: str, message: bytes, timeout_s: float = 60) -> bytes:
    headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", f"/runtime.v1.RuntimeService/{method}"),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ]
    block = b"".join(_literal(*header) for header in headers)
    body = b"\0" + struct.pack(">I", len(message)) + message
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        connection.connect(path)
        connection.sendall(
            _PREFACE
            + _frame(_SETTINGS, 0, 0, b"")
            + _frame(_HEADERS, _END_HEADERS, 1, block)
            + _frame(_DATA, _END_STREAM, 1, body)
        )
        answer = _read_answer(connection, method)
    if len(answer) < 5:
        raise CallFailed(f"{method} failed")
    return answer[5:]


def _read_answer(connection: socket.socket, method: str) -> bytes:
    answer = b""
    with connection.makefile("rb") as stream:
        while True:
            head = stream.read(9)
            if len(head) < 9:
                raise CallFailed(f"{method}: the connection was closed")
            kind, flags = head[3], head[4]
            payload = stream.read(int.from_bytes(head[:3], "big"))
            if kind == _SETTINGS and not flags & _ACK:
                connection.sendall(_frame(_SETTINGS, _ACK, 0, b""))
            elif kind == _PING and not flags & _ACK:
                connection.sendall(_frame(_PING, _ACK, 0, payload))
            elif kind == _DATA:
                answer += payload
            elif kind in (_RST_STREAM, _GOAWAY):
                raise CallFailed(f"{method}: the server ended the stream with {payload.hex()}")
            if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
                return answer


class Cri:
    """The pods of a containerd.

    :param path: of its socket
    :param cgroup: parent of the pods' cgroups
    """

    def __init__(self, path: str, cgroup: str) -> None:
        self._path = path
        self._cgroup = cgroup

    def _call(self, method: str, *fields: tuple[int, object]) -> dict[int, list]:
        return _decode(_call(self._path, method, _encode(*fields)))

    def ready(self) -> dict[str, bool]:
        """Return the conditions RuntimeReady and NetworkReady."""
        status = _decode(self._call("Status")[1][0])
        conditions = [_decode(one) for one in status.get(1, ())]
        return {one[1][0].decode(): bool(one.get(2, [0])[0]) for one in conditions}

    def run(self, name: str, namespace: str = "default", uid: str = "") -> str:
        """Start a pod; return its id, which is the container id of the plugins."""
        metadata = _encode((1, name), (2, uid or f"uid-of-{name}"), (3, namespace))
        linux = _encode((1, f"/{self._cgroup}"))
        config = _encode((1, metadata), (2, name), (3, "/run/pod-logs"), (8, linux))
        return self._call("RunPodSandbox", (1, config))[1][0].decode()

    def addresses(self, pod: str) -> list[str]:
        """Return the addresses that a kubelet would put into the pod's status."""
        status = _decode(self._call("PodSandboxStatus", (1, pod))[1][0])
        network = _decode(status[5][0])
        return [network[1][0].decode()] + [_decode(one)[1][0].decode() for one in network.get(2, ())]

    def stop(self, pod: str) -> None:
        self._call("StopPodSandbox", (1, pod))

    def remove(self, pod: str) -> None:
        self._call("RemovePodSandbox", (1, pod))
