# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the kubelet which devices a pod has: one call of gRPC over its socket (multus spec 8, D).

HTTP/2 is spoken by the package h2, which lies beside the executable when the controller has it.
"""

from __future__ import annotations

import _socket
import time

from ..cni import protobuf
from ..cni.errors import INTERNAL, CniError, go_strerror
from . import vendored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List

    Map = Dict[str, List[str]]

_PREFIX = (
    "getKubernetesDelegate: failed to get a ResourceClient instance: getKubeletClient: error getting pod resources "
    "from client: getPodResources: failed to list pod resources, "
)
_METHOD = "/v1.PodResourcesLister/List"
_LIMIT_S = 10.0
_MOST_BYTES = 1 << 24
_EMPTY_REQUEST = b"\0\0\0\0\0"


class Unavailable(CniError):
    """The package that speaks HTTP/2 is not there."""


def devices(path: str, namespace: str, name: str) -> Map:
    """Return the device ids by resource of a pod, of all its containers.

    Raises Unavailable when h2 is missing, CniError (code 999) when the kubelet does not answer.
    """
    try:
        connection = vendored.load("h2.connection")
    except ImportError:
        text = (
            "the kubelet's socket speaks HTTP/2, and the Python package h2 is not beside this plugin; install h2 on "
            "the controller, and the plugin again"
        )
        raise Unavailable(INTERNAL, _PREFIX + text) from None
    message = _call(path, connection.H2Connection())
    found: Map = {}
    try:
        for pod in _members(message, 1):
            if _text(pod, 1) == name and _text(pod, 2) == namespace:
                for container in _members(pod, 3):
                    for device in _members(container, 2):
                        ids = [one.decode("utf-8", "replace") for one in _members(device, 2)]
                        found.setdefault(_text(device, 1), []).extend(ids)
    except ValueError:
        raise CniError(INTERNAL, f"{_PREFIX}the answer cannot be read") from None
    return found


def _call(path: str, state: Any) -> bytes:
    """Return the message of the answer. Raises CniError (code 999)."""
    socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        socket.settimeout(_LIMIT_S)
        socket.connect(path)
        return _exchange(socket, state)
    except OSError as error:
        reason = f"no answer within {_LIMIT_S:g} s" if isinstance(error, _socket.timeout) else go_strerror(error)
        raise CniError(INTERNAL, _PREFIX + reason) from None
    except Exception as error:
        if isinstance(error, CniError) or not error.__class__.__module__.startswith("h2"):
            raise
        raise CniError(INTERNAL, f"{_PREFIX}it does not speak HTTP/2: {error}") from None
    finally:
        socket.close()


def _exchange(socket: _socket.socket, state: Any) -> bytes:
    deadline = time.monotonic() + _LIMIT_S
    state.initiate_connection()
    headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", _METHOD),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ]
    state.send_headers(1, headers)
    state.send_data(1, _EMPTY_REQUEST, end_stream=True)
    answer = _Answer()
    while True:
        pending = state.data_to_send()
        if pending:
            socket.sendall(pending)
        if answer.complete:
            return answer.message()
        socket.settimeout(max(0.001, deadline - time.monotonic()))
        data = socket.recv(1 << 16)
        if not data:
            raise CniError(INTERNAL, f"{_PREFIX}the connection was closed")
        for event in state.receive_data(data):
            answer.take(event, state)


class _Answer:
    """What has come of the answer."""

    def __init__(self) -> None:
        self.complete = False
        self._headers: dict[str, str] = {}
        self._data = b""

    def take(self, event: Any, state: Any) -> None:
        kind = event.__class__.__name__
        if kind in ("ResponseReceived", "TrailersReceived"):
            self._headers.update((_str(key), _str(value)) for key, value in event.headers)
        elif kind == "DataReceived":
            self._data += event.data
            state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if len(self._data) > _MOST_BYTES:
                raise CniError(INTERNAL, f"{_PREFIX}the answer is larger than 16 MiB")
        elif kind in ("StreamEnded", "StreamReset", "ConnectionTerminated"):
            self.complete = True

    def message(self) -> bytes:
        status = self._headers.get("grpc-status", "")
        if status != "0":
            text = self._headers.get("grpc-message") or f"grpc status {status or 'missing'}"
            raise CniError(INTERNAL, _PREFIX + text)
        if len(self._data) < 5 or self._data[0] or len(self._data) - 5 != int.from_bytes(self._data[1:5], "big"):
            raise CniError(INTERNAL, f"{_PREFIX}the answer is not one uncompressed message")
        return self._data[5:]


def _str(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _members(message: bytes, number: int) -> Iterator[bytes]:
    """Yield the members of a message that have that number."""
    return (content for found, content in protobuf.fields(message) if found == number)


def _text(message: bytes, number: int) -> str:
    return next(_members(message, number), b"").decode("utf-8", "replace")
