# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which addresses are in use in the network namespaces of this node, named, bound somewhere, or of a process.

It is the plainest evidence there is: whatever runtime an owner is of, an address that an interface carries is not free.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time

from ..host_local.addresses import Address, parse_address
from .liveness import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

_CLONE_NEWNET = 0x40000000
# how the kernel writes blanks and backslashes of a path
_OCTAL = re.compile(r"\\([0-7]{3})")


def read() -> Source:
    """Return the addresses of all namespaces, with the namespace in which each is."""
    source = Source("namespaces", "/proc", authoritative=False)
    try:
        os.stat("/proc/self/net/fib_trie")  # else no IPv4 address would ever show
        by_inode = _of_processes()
        bound = _bound()
        own = _own().st_ino
        source.inhabited = set(by_inode)
        here = os.stat("/proc/self/ns/net").st_ino
        where = "the network namespace of this node" if here == own else f"network namespace of process {os.getpid()}"
        source.in_use.update(dict.fromkeys(_addresses_here(), where))
        bound.pop(here, None)
        for inode, pids in by_inode.items():
            if inode == here:
                continue
            # one process is enough, but any may end while it is looked at; a bound namespace is there without them
            if any(_note_process(source, pid, inode != own) for pid in pids):
                bound.pop(inode, None)
        if bound:
            _read_bound(source, bound)
    except OSError as error:
        source.failed = f"{error.filename or '/proc'} cannot be read ({(error.strerror or str(error)).lower()})"
    return source


def is_namespace(path: str) -> bool:
    """Tell whether there is a network namespace at a path, and not that of the node itself."""
    return namespace_of(path) != 0


def namespace_of(path: str) -> int:
    """Return the inode of the network namespace at a path, 0 if there is none, or that of the node itself.

    A name in /run/netns may be a plain file that a crash left.
    """
    try:
        found, own = os.stat(path), _own()
    except (OSError, ValueError):  # a path with a NUL byte is a ValueError
        return 0
    return found.st_ino if found.st_dev == own.st_dev and found.st_ino != own.st_ino else 0


def _own() -> os.stat_result:
    """Return the status of the node's own namespace."""
    try:
        return os.stat("/proc/1/ns/net")
    except OSError:
        return os.stat("/proc/self/ns/net")


def addresses(net: str) -> set[str]:
    """Return the addresses that interfaces carry, by a directory like /proc/<pid>/net, in canonical text.

    A missing file is one of a kernel without that family; a missing directory is an error.
    """
    os.stat(net)
    found: set[str] = set()
    leaf = ""
    for line in _lines(f"{net}/fib_trie"):
        words = line.split()
        if words[:1] == ["|--"]:
            leaf = words[1]
        elif words[-2:] == ["host", "LOCAL"]:
            found.add(leaf)
    for line in _lines(f"{net}/if_inet6"):
        found.add(str(Address(128, int(line.split()[0], 16))))
    return found


def _addresses_here() -> set[str]:
    """Return the addresses of our own namespace, asked of the kernel: reading fib_trie there may take minutes, as the
    time grows with the square of the number of routes."""
    from ..cni import links
    from ..cni.netlink import Netlink

    with Netlink() as kernel:
        return {str(parse_address(one.address)) for one in links.addresses(kernel)}


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            return [line for line in stream if line.strip()]
    except FileNotFoundError:
        return []


def _note_process(source: Source, pid: int, container: bool) -> bool:
    try:
        found = addresses(f"/proc/{pid}/net")
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENXIO):  # answers for a process that is just ending
            raise
        return False
    for address in found:
        source.in_use.setdefault(address, f"network namespace of process {pid}")
    if container:
        source.running |= found
    return True


def _of_processes() -> dict[int, list[int]]:
    """Return inode -> processes for the network namespaces of processes."""
    found: dict[int, list[int]] = {}
    names = os.listdir("/proc")
    if "1" not in names:  # its option hidepid
        raise PermissionError(errno.EACCES, "it does not show the processes of others", "/proc")
    for name in names:
        if name.isdigit():
            try:
                found.setdefault(_namespace_of(name), []).append(int(name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def _namespace_of(pid: str) -> int:
    path = f"/proc/{pid}/ns/net"
    try:
        return os.stat(path).st_ino
    except PermissionError:  # seen, once in some ten thousand looks, of a process that is just ending
        time.sleep(0.02)
        return os.stat(path).st_ino


def _bound() -> dict[int, list[str]]:
    """Return inode -> paths of the mounted network namespaces."""
    found: dict[int, list[str]] = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream:
            fields = line.split(" ")
            if fields[3].startswith("net:["):
                path = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
                found.setdefault(int(fields[3][5:-1]), []).append(path)
    return found


def _read_bound(source: Source, bound: dict[int, list[str]]) -> None:
    """Look into namespaces that have no process: a child of ours goes into one after the other."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            with open(writer, "w", encoding="utf-8", errors="surrogateescape") as stream:
                status = _visit(bound, stream)
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader, encoding="utf-8", errors="surrogateescape") as stream:
        lines = stream.read().splitlines()
    ended = os.waitpid(pid, 0)[1]
    for line in lines:
        inode, path, fault, found = json.loads(line)
        # one that is gone by now was unmounted meanwhile, as pods end at all times
        if fault and inode in _bound():
            source.failed = f"{path} cannot be entered ({fault})"
        for address in found:
            source.in_use.setdefault(address, path)
    if ended != 0 and not source.failed:
        source.failed = "the process that looks into bound namespaces failed"


def _visit(bound: dict[int, list[str]], stream: IO[str]) -> int:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    for inode, paths in bound.items():
        fault, found = "", set()
        fd = _open_namespace(inode, paths)
        if fd < 0:
            fault = "another mount hides it"
        elif libc.setns(fd, _CLONE_NEWNET) != 0:
            fault = os.strerror(ctypes.get_errno()).lower()
        else:
            found = addresses("/proc/self/net")
        if fd >= 0:
            os.close(fd)
        stream.write(json.dumps([inode, paths[0], fault, sorted(found)]) + "\n")
    return 0


def _open_namespace(inode: int, paths: list[str]) -> int:
    """Return a descriptor of the namespace, -1 if there is something else at all its paths."""
    for path in paths:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            continue
        if os.fstat(fd).st_ino == inode:
            return fd
        os.close(fd)
    return -1
