# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An API server in this process, with pods, networks and faults, for the vectors of Multus."""

from __future__ import annotations

import copy
import http.server
import json
import re
import socket
import ssl
import struct
import threading
import time

POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)(/status)?")
NAD = re.compile(r"/apis/k8s\.cni\.cncf\.io/v1/namespaces/([^/]+)/network-attachment-definitions/([^/]+)")
STATUS_ANNOTATION = "k8s.v1.cni.cncf.io/network-status"
SHOWN_METADATA = ("name", "namespace", "uid", "resourceVersion", "annotations")
SHOWN_HEADERS = ("accept", "content-type", "authorization", "impersonate-user")


def failure(code: int, reason: str, message: str, details=None) -> dict:
    document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    if details:
        document["details"] = details
    return document


class ApiServer:
    """``calls`` are the requests of the present step, ``rules`` the faults that are still to come.

    Events are no part of either: they are in ``events``, by their names.
    """

    def __init__(self, certificate: tuple[str, str] | None = None) -> None:
        self.pods: dict = {}
        self.nads: dict = {}
        self.objects: dict = {}
        self.rules: list = []
        self.calls: list = []
        self.events: dict = {}
        self.looked_for: list = []
        self.version = 100
        self.lock = threading.Lock()
        self.server = _Server(("127.0.0.1", 0), _handler(self))
        self.port = self.server.server_address[1]
        self.scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
            self.scheme = "https"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()
        self.running = True

    @property
    def url(self) -> str:
        return "%s://127.0.0.1:%d" % (self.scheme, self.port)

    def stop(self) -> None:
        if self.running:
            self.running = False
            self.server.shutdown()
            self.server.server_close()
            self.thread.join()

    def put_pod(self, pod: dict) -> None:
        metadata = pod["metadata"]
        self.pods[metadata.get("namespace", "default"), metadata["name"]] = copy.deepcopy(pod)

    def put_nad(self, nad: dict) -> None:
        metadata = nad["metadata"]
        self.nads[metadata.get("namespace", "default"), metadata["name"]] = copy.deepcopy(nad)

    def fault(self, method: str, path: str):
        """Return the rule that a request meets, or None. A patch of a pod's status reads the pod and writes it."""
        if method != "PATCH":
            return self.rule_for(method, path)
        pod = path[: -len("/status")]
        steps = [("GET", pod), ("GET", pod), ("PUT", path), ("PATCH", path)]
        return next((rule for rule in (self.rule_for(*step) for step in steps) if rule is not None), None)

    def rule_for(self, method: str, path: str):
        for rule in self.rules:
            if rule.get("times", 1) == 0 or rule.get("method", method) != method:
                continue
            if not re.search(rule.get("path", ""), path):
                continue
            if rule.get("skip", 0) > 0:
                rule["skip"] -= 1
                continue
            if rule.get("times") is not None:
                rule["times"] -= 1
            return rule
        return None

    def add_event(self, event: dict) -> tuple[int, dict]:
        name = event["metadata"]["name"]
        if name in self.events:
            return 409, failure(409, "AlreadyExists", 'events "%s" already exists' % name)
        self.events[name] = event
        return 201, event

    def answer(self, method: str, path: str, body) -> tuple[int, dict]:
        pod = POD.fullmatch(path)
        if pod:
            return self.answer_pod(method, (pod.group(1), pod.group(2)), body)
        nad = NAD.fullmatch(path)
        if nad:
            found = self.nads.get((nad.group(1), nad.group(2)))
            if found is not None:
                return 200, found
            kind = "network-attachment-definitions.k8s.cni.cncf.io"
            return 404, failure(404, "NotFound", '%s "%s" not found' % (kind, nad.group(2)))
        if path in self.objects:
            return 200, self.objects[path]
        return 404, failure(404, "NotFound", "the server could not find the requested resource")

    def answer_pod(self, method: str, key: tuple[str, str], body) -> tuple[int, dict]:
        pod = self.pods.get(key)
        if pod is None:
            return 404, failure(404, "NotFound", 'pods "%s" not found' % key[1], {"name": key[1], "kind": "pods"})
        if method != "GET":
            self.version += 1
            pod["metadata"]["resourceVersion"] = str(self.version)
            given = dict((body or {}).get("metadata", {}).get("annotations") or {})
            if method == "PATCH":
                given = dict(pod["metadata"].get("annotations") or {}, **given)
            pod["metadata"]["annotations"] = given
        return 200, copy.deepcopy(pod)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass


def _handler(api: ApiServer):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def log_message(self, *_args):
            pass

        def serve(self):
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length) if length else b""
            path = self.path.partition("?")[0]
            body = json.loads(raw) if raw else None
            if self.command == "POST" and path.endswith("/events"):
                with api.lock:
                    return self.reply(*api.add_event(body), {})
            call = {"method": self.command, "path": path}
            if body is not None:
                metadata = body.get("metadata", {})
                shown = {key: metadata[key] for key in SHOWN_METADATA if metadata.get(key)}
                call["body"] = {
                    "apiVersion": body.get("apiVersion", ""),
                    "kind": body.get("kind", ""),
                    "metadata": shown,
                }
                text = shown.get("annotations", {}).get(STATUS_ANNOTATION)
                if text is not None:
                    call["network_status"] = json.loads(text)
                if api.looked_for:
                    call["body_contains"] = {word: word.encode() in raw for word in api.looked_for}
            call["headers"] = {
                key.lower(): value for key, value in self.headers.items() if key.lower() in SHOWN_HEADERS
            }
            with api.lock:
                api.calls.append(call)
                rule = api.fault(self.command, path)
                if rule is None:
                    call["status"], document = api.answer(self.command, path, body)
                    return self.reply(call["status"], document, {})
            if rule.get("delay_ms"):
                call["status"] = "delayed"
                time.sleep(rule["delay_ms"] / 1000)
            if rule.get("drop"):
                call["status"] = "connection dropped"
                self.close_connection = True
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return self.connection.close()
            if rule.get("status"):
                call.setdefault("status", rule["status"])
                document = failure(rule["status"], rule.get("reason", ""), rule.get("message", ""), rule.get("details"))
                return self.reply(rule["status"], document, rule.get("headers") or {})
            with api.lock:
                code, document = api.answer(self.command, path, body)
            call.setdefault("status", code)
            return self.reply(code, document, {})

        do_GET = do_PUT = do_POST = do_PATCH = serve

        def reply(self, code, document, headers):
            data = json.dumps(document).encode()
            try:
                self.send_response(code)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()
            except OSError:
                self.close_connection = True

    return Handler
