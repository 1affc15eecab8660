# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server of Kubernetes for tests: real sockets and TLS, a few objects, and faults on demand.

It needs nothing but Python and, for TLS, the openssl command.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
import socket
import ssl
import struct
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

NADS = "/apis/k8s.cni.cncf.io/v1/namespaces/%s/network-attachment-definitions/%s"
PODS = "/api/v1/namespaces/%s/pods/%s"


class Certificates:
    """A throw-away CA with certificates for the server and for a client, and a CA that nobody knows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.ca = self._authority("ca")
        self.other_ca = self._authority("other")
        self.server = self._signed("server", "subjectAltName=IP:127.0.0.1,DNS:api.test\n")
        self.unnamed = self._signed("api.test", "basicConstraints=CA:FALSE\n")  # the name stands in the subject only
        self.client = self._signed("multus-client", "extendedKeyUsage=clientAuth\n")
        self.expired = self._signed("late", "subjectAltName=IP:127.0.0.1\n", days="0")

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *map(str, arguments)], cwd=self.folder, check=True, capture_output=True)

    def _key(self):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

    def _authority(self, name):
        cert, key = self.folder / (name + ".pem"), self.folder / (name + ".key")
        subject = "/CN=nodenet-test-" + name
        self._openssl("req", "-x509", *self._key(), "-days", "30", "-subj", subject, "-keyout", key, "-out", cert)
        return cert

    def _signed(self, name, extensions, days="30"):
        cert, key, request = (self.folder / (name + suffix) for suffix in (".pem", ".key", ".csr"))
        options = self.folder / (name + ".ext")
        options.write_text(extensions, encoding="ascii")
        self._openssl("req", *self._key(), "-subj", "/CN=" + name, "-keyout", key, "-out", request)
        self._openssl(
            "x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.folder / "ca.key", "-CAcreateserial",
            "-days", days, "-extfile", options, "-out", cert,
        )  # fmt: skip
        return cert, key


class Request:
    """What came in. ``connection``: the number of the connection, from 1."""

    def __init__(self, method, target, headers, body, connection, peer):
        self.method = method
        parts = urlsplit(target)
        self.path, self.query = unquote(parts.path), parts.query
        self.target = target
        self.headers = headers
        self.body = body
        self.connection = connection
        self.peer = peer

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return "%s %s" % (self.method, self.target)


def status(code, reason, message):
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    }  # fmt: skip


class Fault:
    """What is to happen to requests instead of, or before, an answer; *times* None: for ever."""

    def __init__(self, path="", method=None, times=1, code=0, message="", headers=None, delay=0.0, how=""):
        self.path = path
        self.method = method
        self.times = times
        self.code = code
        self.message = message
        self.headers = headers or {}
        self.delay = delay
        self.how = how

    def takes(self, request):
        if self.times == 0 or (self.method or request.method) != request.method:
            return False
        if not re.search(self.path, request.path):
            return False
        if self.times is not None:
            self.times -= 1
        return True


class ApiServer:
    """Serves on a port of its own. Use it as a context; ``requests`` are those so far, ``faults`` may be changed.

    Requests that make events are in ``event_requests``, what came of them in ``events``.

    ``how`` of a fault: reset, close (without an answer), hang, truncate, chunked, until-close, close-after, continue,
    more (than one answer), deep-<levels>, garbage, html, redirect.
    """

    def __init__(self, certificates=None, server=None, client_ca=None, host="127.0.0.1", must_have=False):
        self.requests = []
        self.event_requests = []
        self.events = []
        self.faults = []
        self.pods = {}
        self.nads = {}
        self.objects = {}
        self.forbidden = set()  # of (method, path)
        self.token = None
        self.connections = 0
        self._version = 100
        self._lock = threading.Lock()
        self._open = set()
        self._tls = None
        if certificates is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(*map(str, server or certificates.server))
            if client_ca:
                self._tls.verify_mode = ssl.CERT_REQUIRED if must_have else ssl.CERT_OPTIONAL
                self._tls.load_verify_locations(str(client_ca))
        self._listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.port = self._listener.getsockname()[1]
        where = "[%s]" % host if ":" in host else host
        self.url = "%s://%s:%d" % ("https" if self._tls else "http", where, self.port)
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_unused):
        self.stop()

    def stop(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            threads = [thread for thread, _sock in self._open]
            for _thread, sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        for thread in [self._thread, *threads]:
            thread.join(5)

    def add_pod(self, namespace, name, annotations=None, uid="uid-1", **more):
        metadata = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": "7"}
        if annotations is not None:
            metadata["annotations"] = annotations
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Pending"}, **more}
        self.pods[namespace, name] = pod
        return pod

    # --- connections

    def _accept(self):
        while True:
            try:
                sock, _address = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(sock, self.connections))
            with self._lock:
                self._open.add((thread, sock))
            thread.start()

    def _serve(self, raw, number):
        sock = raw
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls:
                sock = self._tls.wrap_socket(raw, server_side=True)
            with sock.makefile("rb") as stream:
                while self._one(sock, stream, number):
                    pass
        except (OSError, ValueError):
            pass
        finally:
            sock.close()
            raw.close()
            with self._lock:
                self._open = {pair for pair in self._open if pair[1] is not raw}

    def _one(self, sock, stream, number):
        line = stream.readline().decode("latin-1").split()
        if len(line) != 3:
            return False
        headers = {}
        for field in iter(stream.readline, b"\r\n"):
            if not field:
                return False
            name, _colon, value = field.decode("latin-1").partition(":")
            headers.setdefault(name.strip().lower(), []).append(value.strip())
        body = stream.read(int(headers.get("content-length", ["0"])[0]))
        peer = sock.getpeercert() if self._tls else None
        subject = dict(pair for part in (peer or {}).get("subject", ()) for pair in part)
        headers = {name: ", ".join(values) for name, values in headers.items()}
        request = Request(line[0], line[1], headers, body, number, subject.get("commonName"))
        with self._lock:
            is_event = request.method == "POST" and request.path.endswith("/events")
            (self.event_requests if is_event else self.requests).append(request)
            fault = next((one for one in self.faults if one.takes(request)), None) or Fault()
        time.sleep(fault.delay)
        if fault.how == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if fault.how == "close":
            return False
        if fault.how == "hang":
            stream.read(1)
            return False
        if fault.code:
            code, answer = fault.code, status(fault.code, "", fault.message)
        else:
            code, answer = self._answer(request)
        return self._send(sock, code, answer, fault)

    @staticmethod
    def _send(sock, code, answer, fault):
        data = json.dumps(answer).encode()
        lines = ["HTTP/1.1 %d Whatever" % code, "Content-Type: application/json"]
        lines += ["%s: %s" % pair for pair in fault.headers.items()]
        if fault.how == "garbage":
            sock.sendall(b"\x15\x03\x01 not http at all\r\n\r\n")
            return False
        if fault.how == "html":
            data = b"<html>a page</html>"
        if fault.how.startswith("deep-"):
            depth = int(fault.how.partition("-")[2])
            data = b'{"x": ' + b"[" * depth + b"]" * depth + b"}"
        if fault.how == "more":
            lines.append("Content-Length: %d" % len(data))
            data += b'HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{"kind": "Smuggled"}'
        if fault.how == "redirect":
            lines[0] = "HTTP/1.1 302 Found"
        if fault.how == "chunked":
            lines.append("Transfer-Encoding: chunked")
            middle = len(data) // 2
            pieces = [data[:middle], data[middle:], b""]
            data = b"".join(b"%x;some=thing\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        elif fault.how == "until-close":
            lines.append("Connection: close")
        elif "Content-Length" not in fault.headers and fault.how != "more":
            lines.append("Content-Length: %d" % len(data))
        head = ("\r\n".join(lines) + "\r\n\r\n").encode()
        if fault.how == "truncate":
            data = data[:-5]
        sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" + head + data if fault.how == "continue" else head + data)
        return fault.how not in ("truncate", "until-close", "close-after")

    # --- objects

    def _answer(self, request):
        if self.token is not None and request.headers.get("authorization") != "Bearer " + self.token:
            return 401, status(401, "Unauthorized", "Unauthorized")
        if (request.method, request.path) in self.forbidden:
            return 403, status(403, "Forbidden", "%s is forbidden" % request.path)
        if request.method == "POST" and request.path.endswith("/events"):
            return self._add_event(request.json())
        with self._lock:
            for (namespace, name), nad in self.nads.items():
                if request.path == NADS % (namespace, name):
                    return 200, nad
            for (namespace, name), pod in self.pods.items():
                path = PODS % (namespace, name)
                if request.path == path and request.method == "GET":
                    return 200, copy.deepcopy(pod)
                if request.path == path + "/status":
                    return self._change(request, (namespace, name), pod)
            if request.path in self.objects:
                return 200, self.objects[request.path]
        name = request.path.rpartition("/")[2]
        kind = "network-attachment-definitions.k8s.cni.cncf.io" if "k8s.cni.cncf.io" in request.path else "pods"
        return 404, status(404, "NotFound", '%s "%s" not found' % (kind, name))

    def _add_event(self, event):
        name = event["metadata"]["name"]
        with self._lock:
            if name in [one["metadata"]["name"] for one in self.events]:
                return 409, status(409, "AlreadyExists", 'events "%s" already exists' % name)
            self.events.append(event)
        return 201, event

    def _change(self, request, key, pod):
        new = request.json()
        metadata = new["metadata"]
        if request.method == "PATCH":
            if request.headers.get("content-type") != "application/merge-patch+json":
                return 415, status(415, "UnsupportedMediaType", "the body is of no type that is known")
            if metadata.get("uid", pod["metadata"]["uid"]) != pod["metadata"]["uid"]:
                return 409, status(409, "Conflict", "Precondition failed: UID in precondition")
            self.pods[key] = pod = merged(pod, new)
        elif metadata.get("resourceVersion") != pod["metadata"]["resourceVersion"]:
            return 409, status(409, "Conflict", "the object has been modified")
        else:
            self.pods[key] = pod = new
        self._version += 1
        pod["metadata"]["resourceVersion"] = str(self._version)
        return 200, copy.deepcopy(pod)


def merged(before, patch):
    """A merge patch as RFC 7386 has it."""
    if not isinstance(patch, dict) or not isinstance(before, dict):
        return patch
    result = dict(before)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(before.get(key), value) if isinstance(value, dict) else value
    return result


def kubeconfig(url, cluster=None, user=None):
    """The document of a kubeconfig."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "multus-context",
        "contexts": [{"name": "multus-context", "context": {"cluster": "local", "user": "multus"}}],
        "clusters": [{"name": "local", "cluster": {"server": url, **(cluster or {})}}],
        "users": [{"name": "multus", "user": user or {}}],
    }
