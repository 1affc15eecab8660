# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The few calls that Multus makes to the API server (multus spec 3), within one time limit for all of them (M8)."""

from __future__ import annotations

import posix
import time

from ..cni import gojson, goprint
from ..cni.args import go_quote
from ..cni.errors import NodenetError
from . import kubeconfig, trees
from .kubeaccess import Fault, is_number
from .kubeconn import Connection
from .kubedial import Broken, Overdue, Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from .kubeaccess import Access
    from .kubeconn import Response

DEADLINE = 10.0
NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status"

_PODS = "/api/v1/namespaces/%s/pods/%s"
_NADS = "/apis/k8s.cni.cncf.io/v1/namespaces/%s/network-attachment-definitions/%s"
_EVENTS = "/api/v1/namespaces/%s/events"
_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/%s"
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_QUERY = "timeout=1m0s"  # what the server is told, as client-go does; the limit that counts is ours
_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0
_LONGEST_MESSAGE = 4096
EVENTS_LIMIT_S = 1.0
_CONFLICTS = 5
_CONFLICT_PAUSE = 0.01
_UNRESERVED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:@!$&'()*+,;=")
_FOR_GOOD = (501, 505)  # of 5xx: what the server will never do


class KubeError(NodenetError):
    """A call failed. ``status``: that of the answer, 0 if there was none; ``str()`` is worded as client-go words it."""

    status = 0


class NotFound(KubeError):
    """There is no such object (404)."""


class Forbidden(KubeError):
    """The credentials do not permit it (403)."""


class Conflict(KubeError):
    """The object has changed meanwhile (409)."""


_ERRORS = {403: Forbidden, 404: NotFound, 409: Conflict}


class Client:
    """The calls to one API server. The time limit is for what all calls take together, not for what is between them.

    Every call raises KubeError or one of its kinds. Answers that say "later" (429, 5xx) and broken connections are
    tried again for as long as there is time; all of the requests may be repeated.
    """

    def __init__(self, access: Access, deadline_s: float = DEADLINE) -> None:
        self._access = access
        self._limit = deadline_s
        self._left = deadline_s
        self._connection = Connection(access)
        self._headers: list[tuple[str, str]] | None = None

    @classmethod
    def from_config(
        cls, config: Any, deadline_s: float = DEADLINE, environ: Mapping[str, str] | None = None
    ) -> Client | None:
        """Return the client that a multus configuration asks for, None if it asks for none (no-Kubernetes mode).

        :param config: its ``kubeconfig`` is a path or empty
        :param deadline_s: seconds for all calls together
        :param environ: that of the process if not given
        :raises KubeError: ``GetK8sClient: ...``
        """
        if environ is None:
            environ = {_text(key): _text(value) for key, value in posix.environ.items()}
        try:
            access = kubeconfig.load(config.kubeconfig, environ)
        except Fault as fault:
            raise KubeError(str(fault), **fault.facts) from None
        return None if access is None else cls(access, deadline_s)

    def close(self) -> None:
        """Close the connection. A later call opens another."""
        self._connection.close()

    # --- the calls

    def pod(self, namespace: str, name: str) -> dict[str, Any]:
        """Return a pod. Numbers are as `trees.document` leaves them."""
        return self._object("GET", _path(_PODS, namespace, name))

    def nad(self, namespace: str, name: str) -> dict[str, Any]:
        """Return a network-attachment-definition."""
        return self._object("GET", _path(_NADS, namespace, name))

    def resource_claim(self, namespace: str, name: str) -> dict[str, Any]:
        """Return a resource claim (dynamic resource allocation)."""
        return self._object("GET", _path(_CLAIMS, namespace, name))

    def resource_slices(self, driver: str, node: str = "") -> list[dict[str, Any]]:
        """Return the resource slices of a driver, those of one node if it is given."""
        selector = "spec.driver=" + driver
        if node:
            selector = "spec.nodeName=%s,%s" % (node, selector)
        found = self._object("GET", _SLICES, "fieldSelector=" + _encode(selector, _UNRESERVED - frozenset(b"&+;=,")))
        items = found.get("items") or []
        return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []

    def add_event(self, namespace: str, event: Mapping[str, Any], limit_s: float = EVENTS_LIMIT_S) -> None:
        """Make an event: one attempt, of *limit_s* seconds at most, since it is worth no more."""
        self._call("POST", _EVENTS % _encode(namespace), _QUERY, event, _JSON, limit_s)

    def set_network_status(self, namespace: str, name: str, pod: Mapping[str, Any], status_json: str) -> None:
        """Write the network-status annotation of a pod; nothing else of the pod changes (M14).

        :param pod: the pod that the networks were attached for; one of the same name with another UID is left alone
        """
        uid = _metadata(pod).get("uid") or ""
        path = _path(_PODS, namespace, name) + "/status"
        metadata: dict[str, Any] = {"annotations": {NETWORK_STATUS: status_json}}
        if uid:
            metadata["uid"] = uid  # a merge patch for another UID is refused as a conflict
        try:
            self._call("PATCH", path, _QUERY, {"metadata": metadata}, _MERGE_PATCH)
            return
        except KubeError as error:
            # the ClusterRole that Multus ships grants update, not patch; proxies may not know the method
            if error.status not in (403, 405, 409, 415):
                raise
        self._replace_status(namespace, name, path, uid, status_json)

    def _replace_status(self, namespace: str, name: str, path: str, uid: str, status_json: str) -> None:
        """Write the annotation with an update of the whole pod, which keeps what this version does not know."""
        for attempt in range(_CONFLICTS):
            current = self.pod(namespace, name)
            metadata = current["metadata"] = _metadata(current)
            found = metadata.get("uid") or ""
            if uid and found != uid:
                raise KubeError(
                    'SetNetworkStatus: expected pod %s/%s UID "%s" but got "%s" from Kube API'
                    % (namespace, name, uid, found)
                )
            annotations = metadata.get("annotations")
            metadata["annotations"] = dict(
                annotations if isinstance(annotations, dict) else {}, **{NETWORK_STATUS: status_json}
            )
            try:
                self._call("PUT", path, _QUERY, current, _JSON)
                return
            except Conflict:
                if attempt == _CONFLICTS - 1:
                    raise
            time.sleep(_CONFLICT_PAUSE)

    # --- one call

    def _object(self, method: str, path: str, query: str = _QUERY) -> dict[str, Any]:
        response = self._call(method, path, query)
        try:
            found = trees.document(gojson.parse(response.body))
        except (gojson.SyntaxFault, RecursionError) as fault:
            raise self._error(method, path, query, "the answer is no JSON: %s" % fault) from None
        if not isinstance(found, dict):
            raise self._error(method, path, query, "the answer is no object")
        return found

    def _call(
        self, method: str, path: str, query: str, body: Any = None, content_type: str = "", once_s: float = 0.0
    ) -> Response:
        """Make a call, again and again while there is time; with *once_s* one attempt within so many seconds."""
        if self._left <= 0:
            reason = "context deadline exceeded (nothing is left of the %g s of apiTimeoutSeconds)" % self._limit
            raise self._error(method, path, query, reason)
        started = time.monotonic()
        try:
            most = min(self._left, once_s) if once_s else self._left
            return self._repeat(method, path, query, body, content_type, started + most, bool(once_s))
        finally:
            self._left = max(0.0, self._left - (time.monotonic() - started))

    def _repeat(
        self, method: str, path: str, query: str, body: Any, content_type: str, deadline: float, once: bool
    ) -> Response:
        data = b"" if body is None else goprint.dumps(body, indent=0).encode("utf-8", "replace")
        pause = _FIRST_PAUSE
        attempts = 0
        fault: KubeError | None = None
        while True:
            attempts += 1
            try:
                headers = self._common_headers(deadline)
                if content_type:
                    headers = [*headers, ("Content-Type", content_type)]
                target = "%s%s?%s" % (self._access.prefix, path, query)
                response = self._connection.request(method, target, headers, data, deadline)
            except Overdue:
                if fault is None:
                    fault = self._error(method, path, query, "context deadline exceeded")
                raise self._given_up(fault, attempts) from None
            except Unusable as error:
                raise self._error(method, path, query, str(error)) from None
            except Broken as error:
                fault = self._error(method, path, query, str(error))
                wait = pause
            else:
                if 200 <= response.status < 300:
                    return response
                fault = self._answer(response, method, path, query)
                if not _may_change(response.status):
                    raise fault
                wait = _retry_after(response, pause)
            if once or time.monotonic() + wait >= deadline:
                raise self._given_up(fault, attempts)
            time.sleep(wait)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _common_headers(self, deadline: float) -> list[tuple[str, str]]:
        """Return the headers of every request. A credential plugin is run for the first."""
        if self._headers is None:
            access = self._access
            if access.exec is not None:
                from . import kubeexec

                kubeexec.obtain(access, deadline)
            headers = [("User-Agent", "multus (nodenet.cni)"), ("Accept", _JSON), *access.impersonate]
            if access.token:
                headers.append(("Authorization", "Bearer " + access.token))
            elif any(access.basic):
                headers.append(("Authorization", "Basic " + access.basic_text()))
            self._headers = headers
        return self._headers

    # --- errors

    def _answer(self, response: Response, method: str, path: str, query: str) -> KubeError:
        """Return the error for an answer that is none of success: in the server's words, if it is one of Kubernetes."""
        status = response.status
        message = ""
        try:
            found = trees.document(gojson.parse(response.body))
            if isinstance(found, dict) and found.get("kind") == "Status" and isinstance(found.get("message"), str):
                message = found["message"][:_LONGEST_MESSAGE]
        except (gojson.SyntaxFault, RecursionError):
            pass
        if message:
            error = _ERRORS.get(status, KubeError)(self._without_secrets(message))
        else:  # not in the words of Kubernetes, so it is no answer about the object either: no NotFound
            error = self._error(method, path, query, _told_by(status))
        error.status = status
        return error

    def _error(self, method: str, path: str, query: str, reason: str) -> KubeError:
        """Return an error as Go's HTTP client words it."""
        url = "%s%s?%s" % (self._access.server, path, query)
        return KubeError(self._without_secrets("%s %s: %s" % (method.capitalize(), go_quote(url), reason)))

    def _given_up(self, fault: KubeError, attempts: int) -> KubeError:
        """Return *fault* with how long it was tried."""
        tried = "tried once" if attempts == 1 else "tried %d times" % attempts
        told = fault.__class__("%s (%s within the %g s of apiTimeoutSeconds)" % (fault, tried, self._limit))
        told.status = fault.status
        return told

    def _without_secrets(self, text: str) -> str:
        for secret in self._access.secrets:
            text = text.replace(secret, "***")
        return text


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _metadata(found: Mapping[str, Any]) -> Any:
    metadata = found.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _told_by(status: int) -> str:
    if status == 404:
        return "the server could not find the requested resource"
    return "the server answered with " + ("a redirect, which is not followed" if 300 <= status < 400 else str(status))


def _may_change(status: int) -> bool:
    return status == 429 or (status >= 500 and status not in _FOR_GOOD)


def _retry_after(response: Response, pause: float) -> float:
    """Return the seconds to wait before the next attempt: what the server says, else *pause*."""
    said = response.headers.get("retry-after", "")
    if is_number(said, 5):
        return max(float(said), _FIRST_PAUSE)
    return pause


def _path(form: str, namespace: str, name: str) -> str:
    """Return the path of an object. Raises KubeError for what no request could name, as client-go does."""
    _check_segment("namespace", namespace)
    if not name:
        raise KubeError("resource name may not be empty")
    _check_segment("resource name", name)
    if not namespace:
        raise KubeError("an empty namespace may not be set when a resource name is provided")
    return form % (_encode(namespace), _encode(name))


def _check_segment(what: str, text: str) -> None:
    faults = []
    if text in (".", ".."):
        faults.append("may not be '%s'" % text)
    faults += ["may not contain '%s'" % char for char in "/%" if char in text]
    if faults:
        raise KubeError("invalid %s %s: [%s]" % (what, go_quote(text), " ".join(faults)))


def _encode(text: str, plain: frozenset[int] = _UNRESERVED) -> str:
    raw = text.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in plain else "%%%02X" % byte for byte in raw)
