# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices from the kubelet: its socket (a server of gRPC in this process), its checkpoint file, and who gets which."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import CniError
from ansible_collections.nodenet.cni.plugins.module_utils.multus import devices, podresources, vendored

POD = {"metadata": {"namespace": "ns1", "name": "p1", "uid": "u1"}, "spec": {}, "status": {}}


def member(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def pod_resources(pods) -> bytes:
    message = b""
    for namespace, name, listed in pods:
        body = member(1, name.encode()) + member(2, namespace.encode())
        for resource, ids in listed:
            device = member(1, resource.encode()) + b"".join(member(2, one.encode()) for one in ids)
            device += member(3, varint(1 << 3) + varint(0))  # topology
            body += member(3, member(1, b"c") + member(2, device))
        message += member(1, body)
    return message


class Kubelet:
    """Answers one call."""

    def __init__(self, path: str, message: bytes, status: str = "0", text: str = "") -> None:
        self.headers: dict = {}
        self.message, self.status, self.text = message, status, text
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(1)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self) -> None:
        from h2.config import H2Configuration
        from h2.connection import H2Connection
        from h2.events import RequestReceived, StreamEnded

        connection, _peer = self.socket.accept()
        state = H2Connection(H2Configuration(client_side=False))
        state.initiate_connection()
        left = b""
        with connection, contextlib.suppress(OSError):  # the client leaves as soon as it knows enough
            connection.settimeout(5)
            while True:
                connection.sendall(state.data_to_send())
                data = connection.recv(1 << 16)
                if not data:
                    return
                for event in state.receive_data(data):
                    if isinstance(event, RequestReceived):
                        self.headers = {_text(key): _text(value) for key, value in event.headers}
                    elif isinstance(event, StreamEnded):
                        state.send_headers(1, [(":status", "200"), ("content-type", "application/grpc")])
                        left = b"\0" + len(self.message).to_bytes(4, "big") + self.message
                while left and state.local_flow_control_window(1):
                    size = min(len(left), state.local_flow_control_window(1), state.max_outbound_frame_size)
                    state.send_data(1, left[:size])
                    left = left[size:]
                    if not left:
                        trailers = [("grpc-status", self.status)]
                        trailers += [("grpc-message", self.text)] if self.text else []
                        state.send_headers(1, trailers, end_stream=True)

    def close(self) -> None:
        self.thread.join()
        self.socket.close()


def _text(value) -> str:
    return value.decode() if isinstance(value, bytes) else value


@pytest.fixture
def kubelet(tmp_path):
    started = []

    def start(*arguments) -> Kubelet:
        started.append(Kubelet(str(tmp_path / "kubelet.sock"), *arguments))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_devices_of_one_pod_are_asked_for_over_the_socket(kubelet, tmp_path):
    server = kubelet(
        pod_resources(
            [
                ("ns1", "other", [("r", ["x"])]),
                ("ns1", "p1", [("r", ["b", "a"]), ("q", ["1"]), ("r", ["c"])]),
                ("ns2", "p1", [("r", ["y"])]),
            ]
        )
    )
    found = podresources.devices(str(tmp_path / "kubelet.sock"), "ns1", "p1")
    assert found == {"r": ["b", "a", "c"], "q": ["1"]}
    assert server.headers[":path"] == "/v1.PodResourcesLister/List"
    assert server.headers["content-type"] == "application/grpc"


def test_an_answer_larger_than_the_first_window(kubelet, tmp_path):
    ids = ["device-%06d" % number for number in range(20000)]
    kubelet(pod_resources([("ns1", "p1", [("r", ids)])]))
    assert podresources.devices(str(tmp_path / "kubelet.sock"), "ns1", "p1") == {"r": ids}


def test_what_the_kubelet_refuses_is_told(kubelet, tmp_path):
    kubelet(b"", "12", "unknown method List")
    with pytest.raises(CniError, match="failed to list pod resources, unknown method List$"):
        podresources.devices(str(tmp_path / "kubelet.sock"), "ns1", "p1")


def test_a_socket_where_nobody_listens(tmp_path):
    path = str(tmp_path / "kubelet.sock")
    held = socket.socket(socket.AF_UNIX)
    held.bind(path)
    held.close()
    with pytest.raises(CniError, match="failed to list pod resources, connection refused$"):
        podresources.devices(path, "ns1", "p1")


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A node whose kubelet has a socket, though nothing speaks HTTP/2 here."""
    path = tmp_path / "kubelet.sock"
    held = socket.socket(socket.AF_UNIX)
    held.bind(str(path))
    monkeypatch.setattr(devices, "SOCKET", str(path))
    monkeypatch.setattr(devices, "CHECKPOINT", str(tmp_path / "checkpoint"))

    def load(name):
        raise ImportError(name)

    monkeypatch.setattr(vendored, "load", load)
    yield tmp_path
    held.close()


def checkpoint(folder, *entries) -> None:
    listed = [{"PodUID": uid, "ResourceName": resource, "DeviceIDs": ids} for uid, resource, ids in entries]
    (folder / "checkpoint").write_text(json.dumps({"Data": {"PodDeviceEntries": listed}, "Checksum": 1}))


def test_without_h2_the_checkpoint_file_serves(node):
    checkpoint(node, ("u1", "r", {"0": ["b"], "1": ["a"]}), ("u2", "r", {"0": ["x"]}), ("u1", "r", ["c"]))
    given = devices.Devices(POD)
    assert [given.take("r") for _number in range(4)] == ["a", "b", "c", ""]
    assert given.take("nothing") == ""


def test_without_h2_and_without_checkpoint_the_error_says_what_to_install(node):
    with pytest.raises(CniError, match="install h2 on the controller, and the plugin again$"):
        devices.Devices(POD).take("r")


def test_a_pod_without_uid_has_no_entries(node):
    checkpoint(node, ("", "r", {"0": ["b"]}))
    with pytest.raises(CniError, match="^GetPodResourceMap: invalid Pod cannot be empty$"):
        devices.Devices({"metadata": {"namespace": "ns1", "name": "p1"}}).take("r")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"Data": 1}'])
def test_a_checkpoint_that_cannot_be_read(node, text):
    (node / "checkpoint").write_text(text)
    with pytest.raises(CniError, match="error unmarshalling file"):
        devices.Devices(POD).take("r")


class Claims:
    """The API's part of dynamic resource allocation."""

    def __init__(self, results, slices) -> None:
        self.results, self.slices, self.asked = results, slices, []

    def resource_claim(self, _namespace, name):
        devices_of = {"devices": {"results": self.results}} if self.results is not None else None
        return {"metadata": {"name": name}, "status": {"allocation": devices_of}}

    def resource_slices(self, driver, node):
        self.asked.append((driver, node))
        return self.slices


def device(name, device_id, resource="r"):
    attributes = {
        "k8s.cni.cncf.io/deviceID": {"string": device_id},
        "k8s.cni.cncf.io/resourceName": {"string": resource},
    }
    return {"name": name, "attributes": {key: value for key, value in attributes.items() if value["string"]}}


def slices(*listed):
    return [{"spec": {"driver": "d", "pool": {"name": "p"}, "devices": list(listed)}}]


def result(name, request="vf"):
    return {"request": request, "driver": "d", "pool": "p", "device": name}


def extended(request="vf", resource="r"):
    mapping = [{"requestName": request, "resourceName": resource}]
    return dict(POD, status={"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": mapping}})


def test_claims_are_joined_with_the_checkpoint_and_each_driver_is_asked_once(node):
    checkpoint(node, ("u1", "r", {"0": ["b"]}))
    client = Claims([result("one"), result("two"), result("bare")], slices(device("one", "c"), device("two", "a")))
    pod = dict(POD, status={"resourceClaimStatuses": [{"resourceClaimName": "c"}, {}]}, spec={"nodeName": "n"})
    given = devices.Devices(pod, client)
    assert [given.take("r") for _number in range(4)] == ["a", "b", "c", ""]
    assert client.asked == [("d", "n")]


@pytest.mark.parametrize(
    ("pod", "results", "text"),
    [
        (
            dict(POD, status={"resourceClaimStatuses": [{"resourceClaimName": "c"}]}),
            None,
            "claim c has no device alloc",
        ),
        (extended("gone"), [result("one")], "request gone not found in claim c"),
        (extended(), [result("bare")], "device bare missing required attribute"),
        (extended("vf", "q"), [result("one")], 'device one: k8s.cni.cncf.io/resourceName is "r" but extended resource'),
    ],
)
def test_claims_that_cannot_be_used(node, pod, results, text):
    checkpoint(node)
    client = Claims(results, slices(device("one", "c"), device("bare", "")))
    with pytest.raises(CniError, match="failed to get resourceMap from DRA client: " + text):
        devices.Devices(pod, client).take("r")


def test_an_extended_claim(node):
    checkpoint(node)
    client = Claims([result("one"), result("two", "gpu")], slices(device("one", "c"), device("two", "g", "gpu")))
    given = devices.Devices(extended(), client)
    assert [given.take("r"), given.take("r"), given.take("gpu")] == ["c", "", ""]
