# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The events of a pod over real sockets: what they say, and that nobody waits for them."""

from __future__ import annotations

import re
import time

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.multus import events, kube
from ansible_collections.nodenet.cni.plugins.module_utils.multus.kubeaccess import Access
from ansible_collections.nodenet.cni.tests.unit.api_server import ApiServer, Fault

EVENTS = "/api/v1/namespaces/ns1/events"
RESULT = {
    "cniVersion": "1.0.0",
    "interfaces": [{"name": "eth0", "sandbox": "/run/netns/x"}],
    "ips": [{"address": "10.1.0.2/24", "interface": 0}, {"address": "fd00::2/64", "interface": 0}],
}


@pytest.fixture
def api():
    with ApiServer() as server:
        server.add_pod("ns1", "p1")
        yield server


@pytest.fixture
def client(api):
    made = kube.Client(Access(api.url), 5.0)
    yield made
    made.close()


@pytest.fixture
def pod(api):
    return api.pods["ns1", "p1"]


def test_what_is_said_of_an_attachment():
    assert events.addition("main", "eth0", RESULT) == "Add eth0 [10.1.0.2/24 fd00::2/64] from main"
    assert events.addition("", "eth0", RESULT) == "Add eth0 [10.1.0.2/24 fd00::2/64]"
    assert events.addition("ns1/lan", "net1", dict(RESULT, ips=[])) == "Add net1 [] from ns1/lan"
    old = {"cniVersion": "0.2.0", "ip4": {"ip": "10.1.0.2/24"}}
    assert events.addition("lan", "net1", old) == "Add net1 [10.1.0.2/24] from lan"


@pytest.mark.parametrize("result", [{"cniVersion": "1.0.0"}, {"cniVersion": "0.4.0", "ips": [], "interfaces": []}])
def test_of_nothing_nothing_is_said(api, client, pod, result):
    assert events.addition("main", "eth0", result) == ""
    events.tell_added(client, pod, ["", "Add net1 [] from lan"])
    assert [one["message"] for one in api.events] == ["Add net1 [] from lan"]


def test_an_event_as_kubernetes_takes_it(api, client, pod):
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    events.tell_added(client, pod, ["Add eth0 [10.1.0.2/24] from main"])
    (request,) = api.event_requests
    assert (request.method, request.path, request.query) == ("POST", EVENTS, "timeout=1m0s")
    assert request.headers["content-type"] == "application/json"
    (event,) = api.events
    assert before <= event.pop("firstTimestamp") == event.pop("lastTimestamp")
    name = event["metadata"].pop("name")
    assert re.fullmatch(r"p1\.[0-9a-f]{16}", name)
    told = {"apiVersion": "v1", "kind": "Pod", "namespace": "ns1", "name": "p1", "uid": "uid-1", "resourceVersion": "7"}
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "ns1"},
        "involvedObject": told,
        "type": "Normal",
        "reason": "AddedInterface",
        "message": "Add eth0 [10.1.0.2/24] from main",
        "source": {"component": "multus"},
        "count": 1,
        "reportingComponent": "multus",
        "reportingInstance": "",
    }


def test_names_differ_and_are_none_too_long(api, client, pod):
    pod["metadata"]["name"] = "x" * 235 + "." + "y" * 17
    events.tell_added(client, pod, ["Add eth0 []", "Add net1 []"])
    events.tell_not_found(client, pod, "cannot find it")
    names = [one["metadata"]["name"] for one in api.events]
    assert len(set(names)) == 3
    assert all(re.fullmatch(r"x{235}(\.y+)?\.[0-9a-f]+", one) and len(one) <= 253 for one in names)
    assert {one["involvedObject"]["name"] for one in api.events} == {pod["metadata"]["name"]}


def test_a_network_that_is_missing_is_told_once(api, client, pod):
    for _try in range(3):
        events.tell_not_found(client, pod, "cannot find lan" + "!" * 2000)
    events.tell_not_found(client, pod, "cannot find dmz")
    pod["metadata"]["uid"] = "uid-2"
    events.tell_not_found(client, pod, "cannot find dmz")
    assert [(one["type"], one["reason"]) for one in api.events] == [("Warning", "NoNetworkFound")] * 3
    assert [len(one["message"]) for one in api.events] == [1024, 15, 15]


@pytest.mark.parametrize("code", [403, 404, 429, 500, 503])
@pytest.mark.parametrize("later", [{}, {"Retry-After": "0"}, {"Retry-After": "1"}])
def test_what_is_refused_is_not_tried_again(api, client, pod, code, later):
    api.faults = [Fault(EVENTS, code=code, message="no", headers=later, times=None)]
    events.tell_added(client, pod, ["Add eth0 []", "Add net1 []", "Add net2 []"])
    assert (len(api.event_requests), api.events) == (1, [])


@pytest.mark.parametrize("how", ["hang", "reset", "close", "garbage", "html", "truncate"])
def test_nobody_waits_for_an_event(api, client, pod, how):
    api.faults = [Fault(EVENTS, how=how, times=None)]
    begin = time.monotonic()
    events.tell_added(client, pod, ["Add eth0 []", "Add net1 []"])
    assert time.monotonic() - begin < 4
    assert len(api.event_requests) <= (2 if how == "html" else 1)


def test_all_events_of_a_call_have_a_second_together(api, client, pod):
    api.faults = [Fault(EVENTS, delay=0.4, times=None)]
    begin = time.monotonic()
    events.tell_added(client, pod, ["Add net%d []" % number for number in range(8)])
    assert time.monotonic() - begin < 2
    assert len(api.event_requests) <= 3


def test_without_time_nothing_is_said(api, pod):
    client = kube.Client(Access(api.url), 0.0)
    events.tell_added(client, pod, ["Add eth0 []"])
    events.tell_not_found(client, pod, "cannot find lan")
    assert api.event_requests == []
