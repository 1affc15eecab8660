# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""System calls for namespaces and mounts that Python lacks, or has only from 3.12 on.

They go through ``_ctypes``, the C half of ctypes: importing the other half takes half the time in which an interpreter
starts.
"""

from __future__ import annotations

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLONE_NEWNET = 0x40000000
MS_BIND = 4096
MNT_DETACH = 2
UMOUNT_NOFOLLOW = 8
_CDECL_WITH_ERRNO = 1 | 8
_functions: dict[str, Any] = {}


def setns(fd: int, kind: int = CLONE_NEWNET) -> None:
    """Move this thread into the namespace that the open file *fd* stands for. Raises OSError."""
    _call("setns", fd, kind)


def unshare(kind: int = CLONE_NEWNET) -> None:
    """Move this thread into a new namespace of that kind. Raises OSError."""
    _call("unshare", kind)


def bind_mount(source: str, target: str) -> None:
    """Make *source* appear at *target*, which exists. Raises OSError that names the target."""
    _call("mount", source, target, "none", MS_BIND, None)


def unmount(target: str) -> None:
    """Take the topmost mount away from *target*, at once or as soon as nobody uses it. Raises OSError."""
    _call("umount2", target, MNT_DETACH | UMOUNT_NOFOLLOW)


def _call(name: str, *arguments: object) -> None:
    values = [one.encode("utf-8", "surrogateescape") if isinstance(one, str) else one for one in arguments]
    function = _functions.get(name) or _load(name)
    errno = function(*values)
    if errno:
        path = next((one for one in reversed(arguments) if isinstance(one, str) and one[:1] == "/"), None)
        raise OSError(errno, posix.strerror(errno), path)


def _load(name: str) -> Any:
    """Return a function that calls the C library and returns 0 or the error number."""
    try:
        import _ctypes
    except ImportError:
        raise OSError(38, f"this Python has no ctypes, which {name} needs") from None

    data: Any = _ctypes._SimpleCData
    int_, long_, text = (type(data)(code, (data,), {"_type_": code}) for code in "iLz")

    class Function(_ctypes.CFuncPtr):
        _flags_ = _CDECL_WITH_ERRNO
        _restype_ = int_

    signatures = {
        "setns": (int_, int_),
        "unshare": (int_,),
        "mount": (text, text, text, long_, text),
        "umount2": (text, int_),
    }
    library: Any = _ctypes.dlopen
    called: Any = Function(_ctypes.dlsym(library(None, 0), name))
    called.argtypes = signatures[name]

    def call(*values: object) -> int:
        _ctypes.set_errno(0)
        return _ctypes.get_errno() if called(*values) == -1 else 0

    _functions[name] = call
    return call
