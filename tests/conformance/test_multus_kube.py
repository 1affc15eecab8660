# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The multus executable and an API server over TLS: what RBAC refuses, what fails for a while, what stays secret."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time

import pytest
from loading import NO_API, loaded
from multus_scenario import require_namespaces

# every secret is one that no other text has a part of
TOKEN = "eyJhbGciOiJSUzI1NiJ9.zQ7wXv.k3Yp9-t0k3n"
DELEGATE = """\
#!/bin/sh
read -r config
echo "$CNI_COMMAND" >> {calls}
[ "$CNI_COMMAND" != ADD ] || \\
    echo '{{"cniVersion":"1.0.0","interfaces":[{{"name":"eth0","sandbox":"'$CNI_NETNS'"}}],"ips":[]}}'
"""
STATUS = "k8s.v1.cni.cncf.io/network-status"


@pytest.fixture(scope="module")
def api_server(_collection_path):
    from ansible_collections.nodenet.cni.tests.unit import api_server

    return api_server


@pytest.fixture(scope="module")
def certificates(api_server, tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("not run: there is no openssl command")
    return api_server.Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def netns():
    require_namespaces()
    process = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    try:
        path = "/proc/%d/ns/net" % process.pid
        for _wait in range(500):
            if os.readlink(path) != os.readlink("/proc/self/ns/net"):
                break
            time.sleep(0.01)
        yield path
    finally:
        process.kill()
        process.wait()


class Node:
    """A node with multus, one network in front of which it is, and a kubeconfig."""

    def __init__(self, folder, multus, netns, document):
        self.folder = folder
        self._multus = multus
        self._netns = netns
        self.calls = folder / "calls"
        delegate = folder / "delegate"
        delegate.write_text(DELEGATE.format(calls=self.calls))
        delegate.chmod(0o755)
        (folder / "kubeconfig").write_text(json.dumps(document))

    def given(self, command, timeout=10):
        """Return the environment and the configuration of a call."""
        config = {
            "cniVersion": "1.0.0", "name": "multus", "type": "multus", "kubeconfig": str(self.folder / "kubeconfig"),
            "cniDir": str(self.folder / "cni"), "binDir": str(self.folder), "apiTimeoutSeconds": timeout,
            "logLevel": "debug", "logFile": str(self.folder / "log"), "logToStderr": True,
            "delegates": [{"cniVersion": "1.0.0", "name": "inner", "type": "delegate"}],
        }  # fmt: skip
        env = {
            "CNI_COMMAND": command, "CNI_CONTAINERID": "c1", "CNI_NETNS": self._netns, "CNI_IFNAME": "eth0",
            "CNI_PATH": str(self.folder), "CNI_ARGS": "K8S_POD_NAMESPACE=ns1;K8S_POD_NAME=p1;K8S_POD_UID=uid-1",
        }  # fmt: skip
        return env, config

    def call(self, command, timeout=10):
        env, config = self.given(command, timeout)
        begin = time.monotonic()
        done = subprocess.run(
            [self._multus], input=json.dumps(config).encode(), env=env, capture_output=True, check=False
        )
        self.seconds = time.monotonic() - begin
        assert TOKEN.encode() not in done.stdout + done.stderr
        return done.returncode, json.loads(done.stdout) if done.stdout else None

    def delegate_calls(self):
        return self.calls.read_text().split() if self.calls.exists() else []

    def files_with(self, secret):
        found = []
        for here, _folders, names in os.walk(str(self.folder)):
            for name in names:
                with open(os.path.join(here, name), "rb") as stream:
                    if secret.encode() in stream.read():
                        found.append(name)
        return found


@pytest.fixture
def api(api_server, certificates):
    with api_server.ApiServer(certificates) as server:
        server.token = TOKEN
        server.add_pod("ns1", "p1")
        yield server


@pytest.fixture
def node(api, api_server, certificates, multus, netns, tmp_path):
    ca = base64.b64encode(certificates.ca.read_bytes()).decode()
    document = api_server.kubeconfig(api.url, {"certificate-authority-data": ca}, {"token": TOKEN})
    node = Node(tmp_path, multus, netns, document)
    yield node
    assert (tmp_path / "log").stat().st_size > 0
    assert node.files_with(TOKEN) == ["kubeconfig"]


def annotation(api):
    return api.pods["ns1", "p1"]["metadata"].get("annotations", {}).get(STATUS)


def test_tls_loads_its_c_half_and_no_more(multus, node):
    foreign, ours = loaded(multus, *node.given("ADD"))
    assert "_ssl" in foreign
    assert foreign <= NO_API | {"_ssl"}
    assert "kubetls" in ours
    assert not {"resolve", "selection", "deciding", "kubeproxy", "kubeexec", "vendored"} & ours


@pytest.mark.parametrize("may_patch", [True, False])
def test_a_pod_comes_and_goes(api, node, may_patch):
    if not may_patch:
        api.forbidden = {("PATCH", "/api/v1/namespaces/ns1/pods/p1/status")}
    rc, result = node.call("ADD")
    assert rc == 0, result
    assert [entry["name"] for entry in json.loads(annotation(api))] == ["inner"]
    assert node.call("CHECK")[0] == 0
    assert node.call("DEL") == (0, None)
    assert node.delegate_calls() == ["ADD", "CHECK", "DEL"]


def test_the_pod_has_an_event_of_each_network(api, node):
    assert node.call("ADD")[0] == 0
    assert [(one["reason"], one["message"]) for one in api.events] == [("AddedInterface", "Add eth0 [] from inner")]
    assert node.call("DEL")[0] == 0
    assert len(api.events) == 1


@pytest.mark.parametrize("how", ["", "hang", "reset"])
def test_a_pod_is_attached_also_without_its_event(api, api_server, node, how):
    api.faults = [api_server.Fault("/events$", code=0 if how else 403, message="no", how=how, times=None)]
    rc, result = node.call("ADD")
    assert rc == 0, result
    assert node.seconds < 8
    assert annotation(api) is not None
    # a connection that was in use before may just have come to its end
    assert len(api.event_requests) == (2 if how == "reset" else 1)
    assert api.events == []


def test_a_token_that_is_none_any_more_is_told_and_attaches_nothing(api, node):
    api.token = "another"
    rc, error = node.call("ADD")
    assert rc == 1
    assert error["msg"] == "Multus: [ns1/p1/uid-1]: error waiting for pod: Unauthorized"
    assert node.delegate_calls() == []


def test_a_status_that_may_not_be_written_takes_back_what_was_attached(api, node):
    path = "/api/v1/namespaces/ns1/pods/p1/status"
    api.forbidden = {("PATCH", path), ("PUT", path)}
    rc, error = node.call("ADD")
    assert rc == 1
    assert error["msg"].endswith("status update failed for pod ns1/p1: %s is forbidden" % path)
    assert node.delegate_calls() == ["ADD", "DEL"]


@pytest.mark.parametrize("how", ["503", "reset", "truncate"])
def test_what_passes_is_waited_for(api, api_server, node, how):
    fault = {"code": 503, "message": "starting"} if how == "503" else {"how": how}
    api.faults = [api_server.Fault("p1$", times=2, **fault), api_server.Fault("status$", times=2, **fault)]
    rc, result = node.call("ADD")
    assert rc == 0, result
    assert annotation(api) is not None


def test_a_server_that_repeats_the_token_in_its_errors(api, api_server, node):
    api.faults = [api_server.Fault(code=500, message="bad header: Bearer " + TOKEN, times=None)]
    rc, error = node.call("ADD", timeout=2)
    assert rc == 1
    assert "bad header: Bearer ***" in error["msg"]


def test_the_time_is_bounded_while_the_server_is_down(api, node):
    assert node.call("ADD")[0] == 0
    api.stop()
    rc, error = node.call("ADD", timeout=1)
    assert rc == 1
    assert "connect: connection refused" in error["msg"]
    assert node.seconds < 8
    assert node.call("DEL", timeout=1) == (0, None)
    assert node.seconds < 8
    assert node.delegate_calls() == ["ADD", "DEL"]


def test_a_server_of_another_ca_learns_nothing(api, api_server, certificates, multus, netns, tmp_path):
    ca = base64.b64encode(certificates.other_ca.read_bytes()).decode()
    document = api_server.kubeconfig(api.url, {"certificate-authority-data": ca}, {"token": TOKEN})
    node = Node(tmp_path, multus, netns, document)
    rc, error = node.call("ADD")
    assert rc == 1
    assert ": tls: failed to verify certificate: x509: " in error["msg"]
    assert api.requests == []
    assert node.delegate_calls() == []
