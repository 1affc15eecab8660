# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reaching a server: names and addresses, each within a deadline on the clock of time.monotonic."""

from __future__ import annotations

import _socket
import time

from ..cni.errors import go_strerror

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CONNECT_LIMIT = 3.0  # of one address; a lost packet is sent again after one second, and after three


class Broken(Exception):
    """The server could not be reached or the connection broke; another attempt may succeed."""


class Overdue(Exception):
    """The time is up."""


class Unusable(Exception):
    """Another attempt would fare no better: a certificate that is not trusted, an answer that is no HTTP."""


class _Socket(_socket.socket):
    """A socket that TLS can hold by a weak reference."""

    __slots__ = ("__weakref__",)


def remaining(deadline: float) -> float:
    """Return the seconds that are left. Raises Overdue."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise Overdue
    return left


def dial(address: Any, host: str, port: int, deadline: float) -> Any:
    """Return a socket that is connected to one of the addresses of `resolve`. Raises Broken, Overdue."""
    family, kind, protocol, _name, place = address
    limit = min(remaining(deadline), _CONNECT_LIMIT)
    sock = _Socket(family, kind, protocol)
    try:
        sock.settimeout(limit)
        sock.connect(place)
        sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    except OSError as error:
        sock.close()
        where = "[%s]:%d" % (host, port) if ":" in host else "%s:%d" % (host, port)
        if isinstance(error, _socket.timeout):
            raise Broken("dial tcp %s: i/o timeout" % where) from None
        raise Broken("dial tcp %s: connect: %s" % (where, go_strerror(error))) from None
    return sock


def resolve(host: str, port: int, deadline: float) -> list[Any]:
    """Return what getaddrinfo gives. Only names are looked up, in a thread, as a resolver knows no deadline.

    Raises Broken, Overdue.
    """
    numeric = _socket.AI_NUMERICHOST | _socket.AI_NUMERICSERV
    try:
        return _socket.getaddrinfo(host.encode(), port, 0, _socket.SOCK_STREAM, 0, numeric)
    except _socket.gaierror:
        pass
    import _thread

    found: list[Any] = []
    done = _thread.allocate_lock()

    def look_up() -> None:
        try:
            found.append(_socket.getaddrinfo(host.encode(), port, 0, _socket.SOCK_STREAM))
        except OSError as error:
            found.append(error)
        finally:
            done.release()

    done.acquire()
    _thread.start_new_thread(look_up, ())
    if not done.acquire(True, remaining(deadline)):
        raise Overdue
    if isinstance(found[0], OSError):
        raise Broken("dial tcp: lookup %s: %s" % (host, go_strerror(found[0])))
    return list(found[0])
