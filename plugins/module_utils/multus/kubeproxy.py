# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proxy on the way to an API server: ``proxy-url``, else HTTPS_PROXY, HTTP_PROXY and NO_PROXY (multus spec 3)."""

from __future__ import annotations

from .kubeaccess import Fault, split_authority
from .kubedial import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

    from .kubeaccess import Access
    from .kubeconn import Connection


class Proxy:
    """A plain HTTP proxy."""

    def __init__(self, host: str, port: int, credentials: str) -> None:
        self.host = host
        self.port = port
        self._credentials = credentials

    def headers(self) -> list[tuple[str, str]]:
        """Return what a request has to have for the proxy."""
        if not self._credentials:
            return []
        import binascii

        text = binascii.b2a_base64(_unescape(self._credentials), newline=False).decode()
        return [("Proxy-Authorization", "Basic " + text)]

    def tunnel(self, connection: Connection, host: str, port: int, deadline: float) -> None:
        """Have the proxy connect to a server."""
        where = "%s:%d" % ("[%s]" % host if ":" in host else host, port)
        lines = ["CONNECT %s HTTP/1.1" % where, "Host: " + where, *("%s: %s" % pair for pair in self.headers())]
        status = connection.exchange_head(("\r\n".join(lines) + "\r\n\r\n").encode(), deadline)
        if status != 200:
            raise Unusable("proxyconnect tcp: the proxy %s:%d answered with status %d" % (self.host, self.port, status))


def find(access: Access) -> Proxy | None:
    """Return the proxy for an access, None if there is none. Raises Unusable."""
    url = access.proxy
    if not url:
        environ = access.environ
        name = "HTTPS_PROXY" if access.is_tls else "HTTP_PROXY"
        url = environ.get(name) or environ.get(name.lower()) or ""
        if not url or not _is_proxied(access.host, access.port, environ):
            return None
        if "://" not in url:
            url = "http://" + url
    scheme, _mark, rest = url.partition("://")
    credentials, _at, authority = rest.partition("/")[0].rpartition("@")
    if scheme.lower() != "http":
        raise Unusable("proxyconnect: the proxy must be an http:// one, not %s://" % scheme)
    try:
        host, port = split_authority(authority, 80)
    except Fault:
        raise Unusable("proxyconnect: the proxy's URL has no valid host and port") from None
    return Proxy(host, port, credentials)


def _is_proxied(host: str, port: int, environ: Mapping[str, str]) -> bool:
    """Tell whether NO_PROXY leaves a host to the proxy; this very machine is never reached by one."""
    address = None
    if ":" in host or host.replace(".", "").isdigit():
        import ipaddress

        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            pass
    if host == "localhost" or (address is not None and address.is_loopback):
        return False
    for entry in (environ.get("NO_PROXY") or environ.get("no_proxy") or "").split(","):
        entry = entry.strip().lower()
        if entry == "*":
            return False
        if address is not None and "/" in entry:
            try:
                if address in ipaddress.ip_network(entry, False):
                    return False
            except ValueError:
                pass
            continue
        name, _colon, wanted = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
        if not name or (wanted and wanted != str(port)):
            continue
        own = host.lower()
        name = name[2:] if name.startswith("*.") else name
        if own == name or (address is None and own.endswith("." + name.lstrip("."))):
            return False
    return True


def _unescape(text: str) -> bytes:
    raw = text.encode()
    pieces = raw.split(b"%")
    out = pieces[0]
    for piece in pieces[1:]:
        digits = piece[:2]
        if len(digits) == 2 and not digits.strip(b"0123456789abcdefABCDEF"):
            out += bytes((int(digits, 16),)) + piece[2:]
        else:
            out += b"%" + piece
    return out
