# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expected failures: the base of all of them, and the error document of the CNI protocol.

Private to the collection: nothing here is an interface for others, and all of it may change.
"""

from __future__ import annotations

INCOMPATIBLE_VERSION = 1
INVALID_ENVIRONMENT = 4
IO_FAILURE = 5
DECODING_FAILURE = 6
INVALID_NETWORK_CONFIG = 7
INVALID_NETNS = 8
TRY_AGAIN_LATER = 11
PLUGIN_NOT_AVAILABLE = 50
INTERNAL = 999


class NodenetError(Exception):
    """Something the user can act on; ``str()`` is the whole message, ``facts`` carries values for machines."""

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.facts = facts


class CniError(NodenetError):
    """A failure with a code of the CNI protocol.

    ``msg`` and ``details`` are the fields of the error document (host-local spec 1.4).
    """

    def __init__(self, code: int, msg: str, details: str = "") -> None:
        super().__init__(msg + "; " + details if details else msg)
        self.code = code
        self.msg = msg
        self.details = details

    def document(self) -> dict[str, object]:
        """Return the error document, keys in the order in which Go prints them."""
        document: dict[str, object] = {"code": self.code, "msg": self.msg}
        if self.details:
            document["details"] = self.details
        return document


class ConfigError(CniError):
    """A fault in a network configuration.

    ``path`` names the place for people (``ipam.ranges[0][1].subnet``); plugins print only ``msg``, as Go does.
    ``kind`` tells faults apart for which there is more to say, ``wanted`` is the value that would be right.
    """

    def __init__(self, msg: str, path: str = "", code: int = INTERNAL, kind: str = "", wanted: str = "") -> None:
        super().__init__(code, msg)
        self.path = path
        self.kind = kind
        self.wanted = wanted


def go_strerror(error: OSError | ValueError) -> str:
    """Return the text of an OS error as Go words it: strerror in lower case.

    A path that cannot be one (it has a null byte) is a ValueError to Python.
    """
    text = getattr(error, "strerror", None) or str(error)
    return text[:1].lower() + text[1:]
