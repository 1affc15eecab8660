# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way to one API server: where it is, whom to trust, who we are (multus spec 3)."""

from __future__ import annotations

from ..cni.errors import NodenetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from .kubeconn import Connection

_PORTS = {"http": 80, "https": 443}


class Fault(NodenetError):
    """A configuration that cannot be used; ``str()`` is worded as client-go words it."""


class Access:
    """The way to one API server.

    ``server``: the URL as configured, without a slash at its end. ``ca``: PEM text of the trusted certificates, empty:
    those of the system. ``cert``, ``key``: PEM. ``proxy``: URL, None: as the environment says. ``exec``: the
    credential plugin. ``secrets``: what no message may show.
    """

    def __init__(self, server: str, has_tls_options: bool = False) -> None:
        scheme, rest = "", server
        if "://" in server:
            scheme, rest = server.split("://", 1)
            scheme = scheme.lower()
        else:
            scheme = "https" if has_tls_options else "http"
        if scheme not in _PORTS:
            raise Fault("invalid configuration: the server %s is neither http nor https" % _without_user(server))
        authority, slash, prefix = rest.partition("/")
        if "@" in authority or any(char in rest for char in "?# ") or not rest.isascii() or not rest.isprintable():
            raise Fault("invalid configuration: the server %s is no plain URL" % _without_user(server))
        self.scheme = scheme
        self.host, self.port = split_authority(authority, _PORTS[scheme])
        self.authority = authority
        self.prefix = (slash + prefix).rstrip("/")
        self.server = "%s://%s%s" % (scheme, authority, self.prefix)
        self.is_tls = scheme == "https"
        self.server_name = self.host
        self.insecure = False
        self.ca = ""
        self.cert = ""
        self.key = ""
        self.token = ""
        self.basic = ("", "")
        self.impersonate: list[tuple[str, str]] = []
        self.proxy: str | None = None
        self.exec: dict[str, Any] | None = None
        self.exec_dir = ""
        self.environ: Mapping[str, str] = {}
        self._proxy: Any = None
        self._context: Any = None

    @property
    def secrets(self) -> list[str]:
        return [secret for secret in (self.token, self.basic_text(), self.basic[1]) if secret]

    def basic_text(self) -> str:
        """Return name and password as a header has them, "" if there are none."""
        if not any(self.basic):
            return ""
        import binascii

        text = ":".join(self.basic).encode("utf-8", "surrogateescape")
        return binascii.b2a_base64(text, newline=False).decode()

    # --- what a connection asks for

    def endpoint(self) -> tuple[str, int]:
        """Return host and port to connect to: those of the proxy, if there is one."""
        found = self._find_proxy()
        return (found.host, found.port) if found else (self.host, self.port)

    def absolute_form(self) -> str:
        """Return what a request line has before its path: something only for a proxy that passes requests on."""
        return "http://" + self.authority if not self.is_tls and self._find_proxy() else ""

    def proxy_headers(self) -> list[tuple[str, str]]:
        """Return the headers for a proxy that passes requests on."""
        found = None if self.is_tls else self._find_proxy()
        return list(found.headers()) if found else []

    def prepare(self, connection: Connection, deadline: float) -> None:
        """Make a connection to the endpoint one to the server."""
        if not self.is_tls:
            return
        found = self._find_proxy()
        if found:
            found.tunnel(connection, self.host, self.port, deadline)
        if self._context is None:
            from . import kubetls

            self._context = kubetls.context(self)
        connection.start_tls(self._context, self.server_name, deadline)

    def forget_certificate(self) -> None:
        """Make the next connection use the certificates that are set by then."""
        self._context = None

    def _find_proxy(self) -> Any:
        if self._proxy is None:
            self._proxy = False
            environ = self.environ
            if (
                self.proxy
                or environ.get("HTTPS_PROXY" if self.is_tls else "HTTP_PROXY")
                or environ.get("https_proxy" if self.is_tls else "http_proxy")
            ):
                from . import kubeproxy

                self._proxy = kubeproxy.find(self) or False
        return self._proxy


def split_authority(authority: str, default_port: int) -> tuple[str, int]:
    """Return host and port of ``host[:port]``, IPv6 in brackets. Raises Fault."""
    if authority.startswith("["):
        host, bracket, port = authority[1:].partition("]")
        valid = bracket and (not port or port[0] == ":") and ":" in host
        port = port[1:]
    else:
        host, _colon, port = authority.partition(":")
        valid = ":" not in port
    number = int(port) if is_number(port, 5) else 0 if port else default_port
    if not valid or not host or not 0 < number < 65536:
        raise Fault("invalid configuration: %s is no host and port" % authority.rpartition("@")[2])
    return host, number


def is_number(text: str, most_digits: int) -> bool:
    """Tell whether a text is nothing but so many digits; what Python takes for one is more."""
    return 0 < len(text) <= most_digits and text.isascii() and text.isdigit()


def _without_user(url: str) -> str:
    return url.rpartition("@")[2]
