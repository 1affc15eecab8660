# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The calls of Multus to an API server that misbehaves in every way they do, over real sockets."""

from __future__ import annotations

import json
import socket
import time
from types import SimpleNamespace

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.multus import kube, kubeconn, kubedial
from ansible_collections.nodenet.cni.tests.unit.api_server import ApiServer, Fault, kubeconfig

POD = "/api/v1/namespaces/ns1/pods/p1"
STATUS = '[{\n    "name": "net"\n}]'


@pytest.fixture
def api():
    with ApiServer() as server:
        server.add_pod("ns1", "p1", {"k8s.v1.cni.cncf.io/networks": "net-a"})
        yield server


@pytest.fixture
def client(api, tmp_path):
    made = connect(api.url, tmp_path)
    yield made
    made.close()


def connect(url, tmp_path, deadline=5.0, environ=None, **more):
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(kubeconfig(url, **more)), encoding="utf-8")
    return kube.Client.from_config(SimpleNamespace(kubeconfig=str(path)), deadline, environ or {})


def error_of(call, kind=kube.KubeError):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


# --- what is asked


def test_the_objects_that_multus_reads(api, client):
    api.nads["ns1", "net-a"] = {"kind": "NetworkAttachmentDefinition", "spec": {"config": "{}"}}
    api.objects["/apis/resource.k8s.io/v1/namespaces/ns1/resourceclaims/c1"] = {"kind": "ResourceClaim"}
    api.objects["/apis/resource.k8s.io/v1/resourceslices"] = {"items": [{"spec": {"driver": "d"}}]}
    assert client.pod("ns1", "p1")["metadata"]["uid"] == "uid-1"
    assert client.nad("ns1", "net-a")["spec"] == {"config": "{}"}
    assert client.resource_claim("ns1", "c1") == {"kind": "ResourceClaim"}
    assert client.resource_slices("d", "node-1") == [{"spec": {"driver": "d"}}]
    assert api.requests[-1].query == "fieldSelector=spec.nodeName%3Dnode-1%2Cspec.driver%3Dd"
    assert {request.headers["accept"] for request in api.requests} == {"application/json"}


def test_one_connection_serves_all_calls(api, client):
    for _call in range(3):
        client.pod("ns1", "p1")
    assert [request.connection for request in api.requests] == [1, 1, 1]


def test_a_path_before_the_api_and_a_slash_at_the_end_of_the_server(api, tmp_path):
    api.objects["/k8s/clusters/c-1" + POD] = {"kind": "Pod"}
    client = connect(api.url + "/k8s/clusters/c-1/", tmp_path)
    assert client.pod("ns1", "p1") == {"kind": "Pod"}
    client.close()


def test_a_server_by_its_name_and_one_with_an_ipv6_address(api, tmp_path):
    client = connect("http://localhost:%d" % api.port, tmp_path)
    assert client.pod("ns1", "p1")["kind"] == "Pod"
    client.close()
    with ApiServer(host="::1") as other:
        other.add_pod("ns1", "p1")
        client = connect(other.url, tmp_path)
        assert client.pod("ns1", "p1")["kind"] == "Pod"
        assert other.requests[0].headers["host"] == "[::1]:%d" % other.port
        client.close()


@pytest.mark.parametrize(
    ("namespace", "name", "text"),
    [
        ("ns1", "", "resource name may not be empty"),
        ("", "", "resource name may not be empty"),
        ("ns1", "a/b", "invalid resource name \"a/b\": [may not contain '/']"),
        ("ns1", "%2e", "invalid resource name \"%2e\": [may not contain '%']"),
        ("ns1", "..", "invalid resource name \"..\": [may not be '..']"),
        ("../x", "p", "invalid namespace \"../x\": [may not contain '/']"),
        ("", "p1", "an empty namespace may not be set when a resource name is provided"),
    ],
)
def test_names_that_no_request_can_have_send_none(api, client, namespace, name, text):
    assert error_of(lambda: client.nad(namespace, name)) == text
    assert api.requests == []


def test_other_odd_names_cannot_leave_their_place_in_the_request(api, client):
    error_of(lambda: client.pod("ns1", "p 1?x=y#z\r\nInjected: yes"), kube.NotFound)
    assert api.requests[0].path == "/api/v1/namespaces/ns1/pods/p 1?x=y#z\r\nInjected: yes"
    assert "injected" not in api.requests[0].headers


# --- answers


def test_an_answer_of_the_server_is_told_in_its_words(api, client):
    assert error_of(lambda: client.pod("ns1", "gone"), kube.NotFound) == 'pods "gone" not found'
    missing = 'network-attachment-definitions.k8s.cni.cncf.io "missing" not found'
    assert error_of(lambda: client.nad("ns1", "missing"), kube.NotFound) == missing
    api.faults = [Fault("p1", code=403, message='pods "p1" is forbidden: no')]
    assert error_of(lambda: client.pod("ns1", "p1"), kube.Forbidden) == 'pods "p1" is forbidden: no'
    api.faults = [Fault("p1", code=401, message="Unauthorized")]
    assert error_of(lambda: client.pod("ns1", "p1")) == "Unauthorized"
    assert len(api.requests) == 4  # none of them is worth another attempt


@pytest.mark.parametrize("how", ["chunked", "until-close", "close-after", "continue"])
def test_forms_of_an_answer(api, client, how):
    api.faults = [Fault(how=how)]
    for _call in range(2):
        assert client.pod("ns1", "p1")["metadata"]["name"] == "p1"
    assert len(api.requests) == 2


def test_a_long_answer(api, client):
    api.pods["ns1", "p1"]["metadata"]["annotations"]["long"] = "x" * 1500000
    assert len(client.pod("ns1", "p1")["metadata"]["annotations"]["long"]) == 1500000


def test_an_answer_longer_than_any_object_is_refused(api, client):
    api.faults = [Fault(headers={"Content-Length": "99999999999"})]
    assert "the answer is longer than 16 MiB" in error_of(lambda: client.pod("ns1", "p1"))


@pytest.mark.parametrize("length", ["9" * 5000, "\u00b2", "-1", "", "0x10"])
def test_a_length_that_is_none_is_refused(api, client, length):
    api.faults = [Fault(headers={"Content-Length": length})]
    assert error_of(lambda: client.pod("ns1", "p1")).endswith(": the answer has no valid length")


def test_what_the_server_sends_unasked_is_not_taken_for_the_next_answer(api, client):
    api.faults = [Fault(how="more")]
    for _call in range(2):
        assert client.pod("ns1", "p1")["kind"] == "Pod"
    assert [request.connection for request in api.requests] == [1, 2]


def test_only_kubernetes_can_say_that_there_is_no_such_pod(api, client):
    """A pod that is not there counts as one that went meanwhile; another web server's 404 must not."""
    api.faults = [Fault(how="html", code=404)]
    text = error_of(lambda: client.pod("ns1", "p1"))
    assert text == 'Get "%s%s?timeout=1m0s": the server could not find the requested resource' % (api.url, POD)
    api.faults = [Fault(how="html", code=404)]
    with pytest.raises(kube.KubeError) as caught:
        client.pod("ns1", "p1")
    assert caught.value.status == 404
    assert not isinstance(caught.value, kube.NotFound)


@pytest.mark.parametrize("code", [0, 403])
@pytest.mark.parametrize("depth", [5000, 200000])
def test_an_answer_nested_deeper_than_any_object(api, client, depth, code):
    api.faults = [Fault(how="deep-%d" % depth, code=code)]
    text = error_of(lambda: client.pod("ns1", "p1"))
    assert ("the server answered with 403" if code else "the answer is no JSON") in text


def test_a_long_message_is_cut(api, client):
    api.faults = [Fault(code=403, message="x" * 100000)]
    assert error_of(lambda: client.pod("ns1", "p1"), kube.Forbidden) == "x" * 4096


def test_redirects_are_refused(api, tmp_path):
    with ApiServer() as other:
        client = connect(api.url, tmp_path)
        api.faults = [Fault(how="redirect", headers={"Location": other.url + POD})]
        text = error_of(lambda: client.pod("ns1", "p1"))
        assert text.endswith("the server answered with a redirect, which is not followed")
        assert other.requests == []
        client.close()


@pytest.mark.parametrize("how", ["garbage", "html", "no-object"])
def test_what_is_no_api_server_is_told_at_once(api, client, how):
    api.faults = [Fault(how=how)]
    api.objects = {"/api/v1/namespaces/ns1/pods/x": [1]}
    text = error_of(lambda: client.pod("ns1", "x"))
    assert text.startswith('Get "%s/api/v1/namespaces/ns1/pods/x?timeout=1m0s": the answer is no ' % api.url)
    assert len(api.requests) == 1


# --- faults that pass


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_later_is_tried_again(api, client, code):
    api.faults = [Fault(POD, code=code, message="not now", times=2)]
    assert client.pod("ns1", "p1")["kind"] == "Pod"
    assert len(api.requests) == 3


@pytest.mark.parametrize("how", ["reset", "close", "truncate"])
def test_a_broken_connection_is_tried_again_on_another(api, client, how):
    api.faults = [Fault(POD, how=how, times=2)]
    assert client.pod("ns1", "p1")["kind"] == "Pod"
    assert [request.connection for request in api.requests] == [1, 2, 3]


def test_a_kept_connection_that_the_server_has_closed_costs_no_pause(api, client, monkeypatch):
    monkeypatch.setattr(kube, "_FIRST_PAUSE", 3600.0)  # more than there is, so it would be an error
    api.faults = [Fault(POD, how="close-after", times=1)]
    client.pod("ns1", "p1")
    client.pod("ns1", "p1")
    assert [request.connection for request in api.requests] == [1, 2]


def test_a_connection_that_was_idle_for_long_is_not_trusted(api, client, monkeypatch):
    """What lies in between may have forgotten it, and then nobody answers."""
    monkeypatch.setattr(kubeconn, "_IDLE_LIMIT", 1.0)
    for pause in (0, 0, 1.1):
        time.sleep(pause)
        client.pod("ns1", "p1")
    assert [request.connection for request in api.requests] == [1, 1, 2]


def test_the_server_says_how_long_to_wait(api, client):
    api.faults = [Fault(POD, code=429, message="slow down", headers={"Retry-After": "1"})]
    begin = time.monotonic()
    client.pod("ns1", "p1")
    assert 1.0 <= time.monotonic() - begin < 4.0


def test_a_wait_beyond_the_deadline_is_not_begun(api, client):
    api.faults = [Fault(POD, code=429, message="slow down", headers={"Retry-After": "3600"})]
    begin = time.monotonic()
    text = error_of(lambda: client.pod("ns1", "p1"))
    assert text == "slow down (tried once within the 5 s of apiTimeoutSeconds)"
    assert time.monotonic() - begin < 4.0


def test_what_the_server_will_never_do_is_not_tried_again(api, client):
    api.faults = [Fault(POD, code=501, message="never", times=None)]
    assert error_of(lambda: client.pod("ns1", "p1")) == "never"
    assert len(api.requests) == 1


def test_a_slow_server_is_waited_for(api, client):
    api.faults = [Fault(POD, delay=0.6, times=2)]
    assert client.pod("ns1", "p1")["kind"] == "Pod"
    assert len(api.requests) == 1


# --- the deadline


def test_a_server_that_is_down_is_given_up_in_time(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    client = connect("http://127.0.0.1:%d" % port, tmp_path, deadline=0.5)
    begin = time.monotonic()
    text = error_of(lambda: client.pod("ns1", "p1"))
    assert time.monotonic() - begin < 3.0
    assert text.startswith('Get "http://127.0.0.1:%d%s?timeout=1m0s": dial tcp 127.0.0.1:%d: ' % (port, POD, port))
    assert "connect: connection refused (tried " in text
    assert text.endswith(" times within the 0.5 s of apiTimeoutSeconds)")


@pytest.mark.parametrize("fault", [{"how": "hang"}, {"code": 503, "message": "starting"}])
def test_all_calls_share_one_deadline(api, tmp_path, fault):
    client = connect(api.url, tmp_path, deadline=1.0)
    api.faults = [Fault(POD, times=None, **fault)]
    begin = time.monotonic()
    error_of(lambda: client.pod("ns1", "p1"))
    error_of(lambda: client.nad("ns1", "net-a"))
    text = error_of(lambda: client.set_network_status("ns1", "p1", {}, STATUS))
    assert time.monotonic() - begin < 1.9
    if fault.get("how") == "hang":
        assert text.endswith("context deadline exceeded (nothing is left of the 1 s of apiTimeoutSeconds)")
    client.close()


def test_time_between_the_calls_does_not_count(api, tmp_path):
    client = connect(api.url, tmp_path, deadline=1.0)
    client.pod("ns1", "p1")
    time.sleep(1.1)
    client.pod("ns1", "p1")
    client.close()


def test_a_resolver_that_does_not_answer_is_not_waited_for(tmp_path, monkeypatch):
    ask = kubedial._socket.getaddrinfo

    def stuck(host, *arguments):
        if arguments[-1] & kubedial._socket.AI_NUMERICHOST if len(arguments) == 5 else False:
            return ask(host, *arguments)
        time.sleep(2)
        return []

    monkeypatch.setattr(kubedial._socket, "getaddrinfo", stuck)
    client = connect("http://api.test:1", tmp_path, deadline=0.3)
    begin = time.monotonic()
    text = error_of(lambda: client.pod("ns1", "p1"))
    assert time.monotonic() - begin < 1.9
    assert ": context deadline exceeded (tried once within the 0.3 s of apiTimeoutSeconds)" in text


def test_a_name_that_is_none(tmp_path):
    client = connect("http://no-such-name.invalid:1", tmp_path, deadline=1)
    text = error_of(lambda: client.pod("ns1", "p1"))
    assert ": dial tcp: lookup no-such-name.invalid: " in text or "deadline exceeded" in text


def test_a_server_that_accepts_and_says_nothing(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = connect("http://127.0.0.1:%d" % silent.getsockname()[1], tmp_path, deadline=0.5)
        text = error_of(lambda: client.pod("ns1", "p1"))
        assert text.endswith(": context deadline exceeded (tried once within the 0.5 s of apiTimeoutSeconds)")


# --- the status


def test_the_status_is_a_merge_patch_and_nothing_else_changes(api, client):
    pod = api.pods["ns1", "p1"]
    pod["status"]["futureField"] = {"n": 12345678901234567890}
    client.set_network_status("ns1", "p1", client.pod("ns1", "p1"), STATUS)
    after = api.pods["ns1", "p1"]
    assert after["metadata"]["annotations"] == {
        "k8s.v1.cni.cncf.io/networks": "net-a", "k8s.v1.cni.cncf.io/network-status": STATUS,
    }  # fmt: skip
    assert after["status"] == {"phase": "Pending", "futureField": {"n": 12345678901234567890}}
    assert [request.method for request in api.requests] == ["GET", "PATCH"]
    sent = api.requests[-1].json()
    assert sent == {"metadata": {"uid": "uid-1", "annotations": {"k8s.v1.cni.cncf.io/network-status": STATUS}}}


@pytest.mark.parametrize("code", [403, 405, 415])
def test_an_update_where_patching_is_refused(api, client, code):
    pod = api.pods["ns1", "p1"]
    pod["status"]["futureField"] = {"n": 12345678901234567890, "f": 1.5, "e": 1e300}
    api.faults = [Fault("/status$", "PATCH", code=code, message="no", times=None)]
    client.set_network_status("ns1", "p1", pod, STATUS)
    assert [request.method for request in api.requests] == ["PATCH", "GET", "PUT"]
    after = api.pods["ns1", "p1"]
    assert after["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"] == STATUS
    assert after["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] == "net-a"
    assert after["status"]["futureField"] == {"n": 12345678901234567890, "f": 1.5, "e": 1e300}
    assert api.requests[-1].headers["content-type"] == "application/json"


def test_an_update_of_a_pod_without_annotations(api, client):
    api.add_pod("ns1", "p2", uid="uid-2")
    api.forbidden = {("PATCH", "/api/v1/namespaces/ns1/pods/p2/status")}
    client.set_network_status("ns1", "p2", {"metadata": {"uid": "uid-2"}}, STATUS)
    assert api.pods["ns1", "p2"]["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/network-status": STATUS}


def test_conflicts_of_an_update_are_tried_again_with_the_new_pod(api, client):
    api.forbidden = {("PATCH", POD + "/status")}
    api.faults = [Fault("/status$", "PUT", code=409, message="the object has been modified", times=2)]
    client.set_network_status("ns1", "p1", {"metadata": {"uid": "uid-1"}}, STATUS)
    assert [request.method for request in api.requests] == ["PATCH", "GET", "PUT", "GET", "PUT", "GET", "PUT"]
    api.faults = [Fault("/status$", "PUT", code=409, message="the object has been modified", times=None)]
    text = error_of(lambda: client.set_network_status("ns1", "p1", {}, STATUS), kube.Conflict)
    assert text == "the object has been modified"
    assert [request.method for request in api.requests].count("PUT") == 3 + 5


@pytest.mark.parametrize("patch", [True, False])
def test_another_pod_of_the_same_name_is_left_alone(api, client, patch):
    if not patch:
        api.forbidden = {("PATCH", POD + "/status")}
    text = error_of(lambda: client.set_network_status("ns1", "p1", {"metadata": {"uid": "uid-0"}}, STATUS))
    assert text == 'SetNetworkStatus: expected pod ns1/p1 UID "uid-0" but got "uid-1" from Kube API'
    assert "k8s.v1.cni.cncf.io/network-status" not in api.pods["ns1", "p1"]["metadata"]["annotations"]


def test_a_pod_that_vanished_and_one_that_may_not_be_changed(api, client):
    text = error_of(lambda: client.set_network_status("ns1", "gone", {}, STATUS), kube.NotFound)
    assert text == 'pods "status" not found'
    api.forbidden = {(method, POD + "/status") for method in ("PATCH", "PUT")}
    text = error_of(lambda: client.set_network_status("ns1", "p1", {}, STATUS), kube.Forbidden)
    assert text == POD + "/status is forbidden"


@pytest.mark.parametrize("how", ["reset", "close", "truncate"])
@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_a_write_whose_answer_was_lost_is_repeated(api, client, method, how):
    if method == "PUT":
        api.forbidden = {("PATCH", POD + "/status")}
    api.faults = [Fault("/status$", method, how=how)]
    client.set_network_status("ns1", "p1", {"metadata": {"uid": "uid-1"}}, STATUS)
    assert api.pods["ns1", "p1"]["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"] == STATUS
