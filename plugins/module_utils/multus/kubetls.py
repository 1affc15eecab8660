# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whom to trust on a TLS connection, and who we are there (multus spec 3).

The C half of ssl does all of it, verification of names included; what the Python half adds takes longer to import than
the interpreter to start.
"""

from __future__ import annotations

import _ssl
import posix

from .kubedial import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .kubeaccess import Access

_PROTOCOL_TLS_CLIENT = 16
_TLS_1_2 = 0x0303
_PARTIAL_CHAIN = 0x80000


def context(access: Access) -> Any:
    """Return the TLS context for an access. Raises Unusable."""
    made: Any = _ssl._SSLContext(_PROTOCOL_TLS_CLIENT)
    made.minimum_version = _TLS_1_2
    if access.insecure:
        made.check_hostname = False
        made.verify_mode = _ssl.CERT_NONE
    else:
        made._host_flags |= _ssl.HOSTFLAG_NEVER_CHECK_SUBJECT
        if not made.check_hostname or made.verify_mode != _ssl.CERT_REQUIRED:
            raise Unusable("tls: this Python does not verify certificates")
        _trust(made, access)
    if access.cert:
        _load_pair(made, access.cert, access.key)
    return made


def _trust(made: Any, access: Access) -> None:
    if not access.ca:
        made.set_default_verify_paths()
        return
    # as in Go, what is trusted need not be the root of its own chain
    made.verify_flags |= _PARTIAL_CHAIN
    try:
        made.load_verify_locations(None, None, access.ca)
    except (_ssl.SSLError, ValueError, TypeError):
        raise Unusable("tls: the certificate-authority holds no certificates in PEM form") from None


def _load_pair(made: Any, cert: str, key: str) -> None:
    """Load a certificate and its key; OpenSSL takes them from files, which here exist in memory only."""
    fds: list[int] = []
    try:
        for text in (cert, key):
            fd = posix.memfd_create("nodenet", posix.MFD_CLOEXEC)
            fds.append(fd)
            data = text.encode("utf-8", "replace")
            while data:
                data = data[posix.write(fd, data) :]
        made.load_cert_chain(*("/proc/self/fd/%d" % fd for fd in fds), _no_password)
    except (_ssl.SSLError, OSError, ValueError, AttributeError):
        raise Unusable("tls: client certificate and client key are no pair of PEM texts without a password") from None
    finally:
        for fd in fds:
            posix.close(fd)


def _no_password() -> bytes:
    """Stand in for the terminal at which OpenSSL would ask."""
    raise ValueError("the key has a password")
