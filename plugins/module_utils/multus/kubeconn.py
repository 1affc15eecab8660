# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""HTTP/1.1 over one connection, as much of it as talking to an API server takes.

Built on the C half of socket: socket, ssl and http.client cost four times the start of an interpreter.
"""

from __future__ import annotations

import _socket
import errno
import time

from ..cni.errors import go_strerror
from .kubeaccess import is_number
from .kubedial import Broken, Overdue, Unusable, dial, remaining, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .kubeaccess import Access

_CHUNK = 1 << 16
_MOST_HEAD = 1 << 16
_MOST_BODY = 1 << 24  # an object is at most 1.5 MB, a list of resource slices may be longer
_HANDSHAKE_LIMIT = 5.0
_IDLE_LIMIT = 5.0  # what has forgotten a connection in between answers nothing at all


class Response:
    """An answer. ``headers``: by name in lower case; of repeated ones the last."""

    __slots__ = ("status", "headers", "body")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class Connection:
    """A connection to the server of *access*, opened when it is needed and kept for the next request."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._socket: Any = None
        self._tls: Any = None
        self._rest = b""
        self._used = 0.0

    def request(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes, deadline: float
    ) -> Response:
        """Send a request and return the answer, whatever its status.

        :param target: path and query, encoded
        :param deadline: on the clock of time.monotonic
        :raises Broken, Overdue, Unusable: the connection is closed then
        """
        head = self._head(method, target, headers, body)
        if self._socket is not None and time.monotonic() - self._used > _IDLE_LIMIT:
            self.close()
        kept = self._socket is not None
        try:
            try:
                response = self._exchange(head + body, deadline)
            except Broken:
                if not kept:
                    raise
                # the server may close a kept connection at any time; all of our requests may be repeated
                self.close()
                response = self._exchange(head + body, deadline)
        except BaseException:
            self.close()
            raise
        self._used = time.monotonic()
        return response

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._tls = None
        self._rest = b""

    def _head(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> bytes:
        access = self._access
        lines = ["%s %s%s HTTP/1.1" % (method, access.absolute_form(), target), "Host: " + access.authority]
        lines += ["%s: %s" % pair for pair in [*headers, *access.proxy_headers()]]
        if body:
            lines.append("Content-Length: %d" % len(body))
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8")

    def _exchange(self, data: bytes, deadline: float) -> Response:
        if self._socket is None:
            self._open(deadline)
        sending = self._socket if self._tls is None else self._tls
        view = memoryview(data)
        while view:
            self._limit(deadline)
            try:
                view = view[(sending.send if self._tls is None else sending.write)(view) :]
            except _socket.timeout:
                raise Overdue from None
            except OSError as error:
                raise self._fault("write", error) from None
        status, headers = self._read_head(deadline)
        while 100 <= status < 200:
            status, headers = self._read_head(deadline)
        body, reusable = self._read_body(status, headers, deadline)
        # what comes unasked would be taken for the next answer
        if self._rest or not reusable or headers.get("connection", "").lower() == "close":
            self.close()
        return Response(status, headers, body)

    def _open(self, deadline: float) -> None:
        access = self._access
        host, port = access.endpoint()
        fault: Exception = Broken("dial tcp: lookup %s: no such host" % host)
        for address in resolve(host, port, deadline):
            try:
                self._socket = dial(address, host, port, deadline)
                access.prepare(self, deadline)
                return
            except Broken as broken:
                self.close()
                fault = broken
        raise fault

    def start_tls(self, context: Any, server_name: str, deadline: float) -> None:
        """Make the connection a TLS one. *context* is an ``_ssl._SSLContext``."""
        import _ssl

        self._socket.settimeout(min(remaining(deadline), _HANDSHAKE_LIMIT))
        try:
            tls = context._wrap_socket(self._socket, False, server_name, owner=None, session=None)
            tls.do_handshake()
        except _socket.timeout:
            raise Broken("net/http: TLS handshake timeout") from None
        except _ssl.SSLCertVerificationError as error:
            reason = getattr(error, "verify_message", "") or str(error)
            raise Unusable("tls: failed to verify certificate: x509: %s" % reason) from None
        except _ssl.SSLError as error:
            if _is_end_of_tls(error):
                raise Broken("EOF") from None
            raise Unusable("tls: %s" % _tls_reason(error)) from None
        except OSError as error:
            raise self._broken("read", error) from None
        except (ValueError, TypeError) as error:  # a name that cannot be one of a certificate
            raise Unusable("tls: cannot verify a certificate for %r: %s" % (server_name, error)) from None
        self._tls = tls

    def exchange_head(self, data: bytes, deadline: float) -> int:
        """Send something to a proxy before all else, and return the status it answers."""
        self._limit(deadline)
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._broken("write", error) from None
        return self._read_head(deadline)[0]

    def _limit(self, deadline: float) -> None:
        self._socket.settimeout(remaining(deadline))

    def _fault(self, what: str, error: OSError) -> Exception:
        if self._tls is not None and _is_end_of_tls(error):
            return Broken("EOF")
        if self._tls is not None and _is_of_tls(error):
            return Unusable("remote error: tls: %s" % _tls_reason(error))
        return self._broken(what, error)

    @staticmethod
    def _broken(what: str, error: OSError) -> Broken:
        if error.errno in (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED):
            return Broken("%s tcp: connection reset by peer" % what)
        return Broken("%s tcp: %s" % (what, go_strerror(error)))

    # --- reading

    def _more(self, deadline: float) -> bytes:
        """Return some more bytes, none at the end of the stream."""
        self._limit(deadline)
        try:
            return bytes(self._socket.recv(_CHUNK) if self._tls is None else self._tls.read(_CHUNK))
        except _socket.timeout:
            raise Overdue from None
        except OSError as error:
            if self._tls is not None and _is_end_of_tls(error):
                return b""
            raise self._fault("read", error) from None

    def _read_head(self, deadline: float) -> tuple[int, dict[str, str]]:
        data = self._rest
        while True:
            end = data.find(b"\r\n\r\n")
            if end >= 0:
                break
            if len(data) > _MOST_HEAD:
                raise Unusable("the header of the answer is too long")
            more = self._more(deadline)
            if not more:
                raise Broken("unexpected EOF" if data else "EOF")
            data += more
        self._rest = data[end + 4 :]
        lines = data[:end].decode("latin-1").split("\r\n")
        version, _space, rest = lines[0].partition(" ")
        code = rest.partition(" ")[0]
        if version not in ("HTTP/1.1", "HTTP/1.0") or len(code) != 3 or not is_number(code, 3):
            raise Unusable(
                "the answer is no HTTP; is this the port of an API server, and https or http as it should be?"
            )
        headers = {"connection": "close"} if version == "HTTP/1.0" else {}
        for line in lines[1:]:
            name, _colon, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(code), headers

    def _read_body(self, status: int, headers: dict[str, str], deadline: float) -> tuple[bytes, bool]:
        """Return the body, and whether the connection can take another request."""
        if status in (204, 304):
            return b"", True
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._read_chunks(deadline), True
        length = headers.get("content-length")
        if length is None:
            body = b""
            while True:
                more = self._take(len(self._rest), deadline) if self._rest else self._more(deadline)
                if not more:
                    return body, False
                body += more
                _check_length(len(body))
        if not is_number(length, 18):
            raise Unusable("the answer has no valid length")
        return self._take(int(length), deadline), True

    def _read_chunks(self, deadline: float) -> bytes:
        pieces: list[bytes] = []
        total = 0
        while True:
            line = self._line(deadline)
            size = line.partition(b";")[0].strip()
            if not size or len(size) > 8 or size.strip(b"0123456789abcdefABCDEF"):
                raise Unusable("the answer is not chunked as it says")
            length = int(size, 16)
            total += length
            _check_length(total)
            if not length:
                while self._line(deadline):  # trailers
                    pass
                return b"".join(pieces)
            pieces.append(self._take(length, deadline))
            if self._line(deadline):
                raise Unusable("the answer is not chunked as it says")

    def _line(self, deadline: float) -> bytes:
        while b"\r\n" not in self._rest:
            if len(self._rest) > _MOST_HEAD:
                raise Unusable("the answer is not chunked as it says")
            self._fill(deadline)
        line, _end, self._rest = self._rest.partition(b"\r\n")
        return line

    def _take(self, length: int, deadline: float) -> bytes:
        _check_length(length)
        if len(self._rest) < length:
            pieces = [self._rest]
            missing = length - len(self._rest)
            while missing > 0:
                more = self._more(deadline)
                if not more:
                    raise Broken("unexpected EOF")
                pieces.append(more)
                missing -= len(more)
            self._rest = b"".join(pieces)
        taken, self._rest = self._rest[:length], self._rest[length:]
        return taken

    def _fill(self, deadline: float) -> None:
        more = self._more(deadline)
        if not more:
            raise Broken("unexpected EOF")
        self._rest += more


def _check_length(length: int) -> None:
    if length > _MOST_BODY:
        raise Unusable("the answer is longer than %d MiB" % (_MOST_BODY >> 20))


def _is_of_tls(error: OSError) -> bool:
    import _ssl

    return isinstance(error, _ssl.SSLError)


def _tls_reason(error: OSError) -> str:
    """Return what OpenSSL says, as words: certificate required."""
    words = str(getattr(error, "reason", None) or error).lower().replace("_", " ")
    return words.rpartition(" alert ")[2]


def _is_end_of_tls(error: OSError) -> bool:
    import _ssl

    if isinstance(error, (_ssl.SSLEOFError, _ssl.SSLZeroReturnError)):
        return True
    return getattr(error, "reason", "") == "UNEXPECTED_EOF_WHILE_READING"  # Python before 3.10 with OpenSSL 3
