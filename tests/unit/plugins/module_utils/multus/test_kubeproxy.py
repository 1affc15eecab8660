# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proxy on the way to an API server."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from types import SimpleNamespace

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.multus import kube, kubeproxy
from ansible_collections.nodenet.cni.plugins.module_utils.multus.kubeaccess import Access
from ansible_collections.nodenet.cni.tests.unit import api_server
from ansible_collections.nodenet.cni.tests.unit.api_server import ApiServer


class HttpProxy:
    """Reads one request head; refuses, or passes everything on to one server."""

    def __init__(self, port, refuse=False):
        self.heads = []
        self._port = port
        self._refuse = refuse
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.where = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *_unused):
        for thread in self._threads:
            thread.join(5)
        self._listener.close()

    def _serve(self):
        client, _address = self._listener.accept()
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(65536)
            self.heads.append(head.decode())
            if self._refuse:
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            with socket.create_connection(("127.0.0.1", self._port)) as server:
                if head.startswith(b"CONNECT "):
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    server.sendall(head)
                back = threading.Thread(target=pump, args=(server, client))
                back.start()
                pump(client, server)
                back.join(5)


def pump(source, sink):
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def read_pod(tmp_path, url, cluster, environ=None):
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(api_server.kubeconfig(url, cluster, {"token": "t0k3n"})))
    client = kube.Client.from_config(SimpleNamespace(kubeconfig=str(path)), 3.0, environ or {})
    try:
        return client.pod("ns1", "p1")
    finally:
        client.close()


@pytest.mark.skipif(not shutil.which("openssl"), reason="not run: there is no openssl command")
def test_a_tunnel_to_a_server_that_is_verified(tmp_path):
    certificates = api_server.Certificates(tmp_path / "certificates")
    with ApiServer(certificates) as api, HttpProxy(api.port) as proxy:
        api.add_pod("ns1", "p1")
        cluster = {"certificate-authority": str(certificates.ca), "proxy-url": "http://me:s%40cret@" + proxy.where}
        assert read_pod(tmp_path, api.url, cluster)["kind"] == "Pod"
    (head,) = proxy.heads
    assert head.startswith("CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % (api.port, api.port))
    assert "Proxy-Authorization: Basic bWU6c0BjcmV0\r\n" in head
    assert "t0k3n" not in head


def test_a_tunnel_that_is_refused(tmp_path):
    with HttpProxy(0, refuse=True) as proxy, pytest.raises(kube.KubeError) as caught:
        read_pod(tmp_path, "https://api.test", {"proxy-url": "http://me:s3cr3t@" + proxy.where})
    reason = "proxyconnect tcp: the proxy %s answered with status 407"
    assert str(caught.value).endswith(reason % proxy.where)
    assert "s3cr3t" not in str(caught.value)


def test_plain_requests_are_passed_on_with_their_whole_address(tmp_path):
    with ApiServer() as api, HttpProxy(api.port) as proxy:
        api.objects["http://api.test" + api_server.PODS % ("ns1", "p1")] = {}
        environ = {"http_proxy": "http://me:secret@" + proxy.where}
        with pytest.raises(kube.NotFound):
            read_pod(tmp_path, "http://api.test", {}, environ)
    (head,) = proxy.heads
    assert head.startswith(
        "GET http://api.test/api/v1/namespaces/ns1/pods/p1?timeout=1m0s HTTP/1.1\r\nHost: api.test\r\n"
    )
    assert "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n" in head
    assert "t0k3n" not in head


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://api.test", {}, None),
        ("https://api.test", {"HTTPS_PROXY": "http://proxy:3128"}, ("proxy", 3128)),
        ("https://api.test", {"https_proxy": "proxy:3128"}, ("proxy", 3128)),
        ("https://api.test", {"HTTPS_PROXY": "http://proxy"}, ("proxy", 80)),
        ("http://api.test", {"HTTPS_PROXY": "proxy:3128"}, None),
        ("https://10.96.0.1", {"HTTPS_PROXY": "p:1", "NO_PROXY": "10.96.0.0/12"}, None),
        ("https://10.96.0.1", {"HTTPS_PROXY": "p:1", "NO_PROXY": "10.97.0.0/16,x/y,10.96.0.1:80"}, ("p", 1)),
        ("https://10.96.0.1", {"HTTPS_PROXY": "p:1", "no_proxy": "a, 10.96.0.1:443"}, None),
        ("https://[fd00::1]:6443", {"HTTPS_PROXY": "p:1", "NO_PROXY": "fd00::/8"}, None),
        ("https://[fd00::1]:6443", {"HTTPS_PROXY": "p:1", "NO_PROXY": "fd00::1"}, None),
        ("https://api.test", {"HTTPS_PROXY": "p:1", "NO_PROXY": ".test"}, None),
        ("https://api.test", {"HTTPS_PROXY": "p:1", "NO_PROXY": "TEST"}, None),
        ("https://api.test", {"HTTPS_PROXY": "p:1", "NO_PROXY": "*.test"}, None),
        ("https://api.test", {"HTTPS_PROXY": "p:1", "NO_PROXY": "pi.test,,1.2.3.0/24"}, ("p", 1)),
        ("https://api.test", {"HTTPS_PROXY": "p:1", "NO_PROXY": "*"}, None),
        ("https://localhost:6443", {"HTTPS_PROXY": "p:1"}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "p:1"}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": "p:1"}, None),
    ],
)
def test_what_the_environment_says(server, environ, expected):
    access = Access(server)
    access.environ = environ
    assert access.endpoint() == (expected or (access.host, access.port))


@pytest.mark.parametrize("url", ["socks5://p:1", "https://p:1", "http://p:x", "http://"])
def test_proxies_that_cannot_be_used(url):
    access = Access("https://api.test")
    access.proxy = url
    with pytest.raises(kubeproxy.Unusable, match="^proxyconnect: "):
        access.endpoint()
