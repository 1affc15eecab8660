# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel settings (sysctls): their names, what the node's files set at boot, and what holds now.

Inside, a key is the path below /proc/sys (``net/ipv4/ip_forward``): names of interfaces may hold dots. People write
``net.ipv4.ip_forward``, and a dot of a name as a slash (``net.ipv4.conf.eth0/100.rp_filter``), as sysctl(8) does.

Of files with one name the first directory's counts; all are read in the order of their names, the last value wins
(sysctl.d(5)). What a pattern (``net.ipv4.conf.*.rp_filter``) sets never counts against a key that is set by its name.
"""

from __future__ import annotations

import os

from ..cni.errors import NodenetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: read after and beside sysctl_dir, in this order of precedence; a file among them is read last
OTHER_PLACES = (
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
    "/etc/sysctl.conf",
)


class Setting:
    """One line of a file: ``path`` sets ``key`` to ``value``."""

    def __init__(self, path: str, key: str, value: str) -> None:
        self.path = path
        self.key = key
        self.value = value


def parse_key(name: str) -> str:
    """Return the key of a name as people write it. Errors: NodenetError for what cannot be one."""
    first = next((char for char in name if char in "./"), "")
    key = name.translate(str.maketrans("./", "/.")) if first == "." else name
    parts = key.split("/")
    if len(parts) < 2 or any(part in ("", ".", "..") for part in parts) or not name.isprintable() or " " in name:
        raise NodenetError(f"Cannot set sysctl {name!r} on this node: that is no name like net.ipv4.ip_forward")
    if any(char in name for char in "*?[=;#"):
        raise NodenetError(f"Cannot set sysctl {name!r} on this node: patterns are not taken, name each setting")
    return key


def parse_value(name: str, value: object) -> str:
    """Return a value as the kernel shows it. Errors: NodenetError."""
    if isinstance(value, bool):
        value = int(value)
    text = " ".join(str(value).split()) if isinstance(value, (str, int)) else ""
    if not text or not text.isprintable():
        raise NodenetError(f"Cannot set sysctl {name} to {value!r} on this node: give a number or a text of one line")
    return text


def shown(key: str) -> str:
    """Return a key as people write it."""
    return key.translate(str.maketrans("./", "/."))


def render(settings: Iterable[tuple[str, str]], head: str) -> bytes:
    """Return the content of a drop-in."""
    lines = [head, *(f"{shown(key)} = {value}" for key, value in settings)]
    return ("\n".join(lines) + "\n").encode()


def read_file(path: str) -> list[Setting]:
    """Return what a file sets by name, in order; [] if there is no such file. Errors: OSError."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except (FileNotFoundError, IsADirectoryError):
        return []
    return parse(lines, path)


def parse(lines: Iterable[str], path: str) -> list[Setting]:
    settings = []
    for line in lines:
        text = line.strip()
        name, equals, value = text.partition("=")
        name = name.strip().lstrip("-").strip()
        if not equals or text[0] in "#;":
            continue
        try:
            settings.append(Setting(path, parse_key(name), " ".join(value.split())))
        except NodenetError:
            continue  # a pattern, or nothing that the kernel would take
    return settings


def files_in_order(sysctl_dir: str, others: Sequence[str], ours: str) -> list[str]:
    """Return the files that set something at boot, in the order in which they count.

    :param ours: path of the drop-in that we own; it has its place among them whether it is there or not
    """
    by_name: dict[str, str] = {}
    last = [os.path.abspath(one) for one in others if os.path.isfile(one)]
    for directory in [sysctl_dir, *others]:
        try:
            names = os.listdir(directory)
        except (FileNotFoundError, NotADirectoryError):
            names = []
        for name in names:
            if name.endswith(".conf"):
                by_name.setdefault(name, os.path.join(directory, name))
    by_name[os.path.basename(ours)] = ours
    ordered = [by_name[name] for name in sorted(by_name)]
    known = {os.path.realpath(one) for one in ordered}  # Debian links sysctl.conf as 99-sysctl.conf
    return ordered + [one for one in last if os.path.realpath(one) not in known]


def contradictions(
    wanted: dict[str, str], sysctl_dir: str, others: Sequence[str], ours: str
) -> tuple[list[Setting], list[Setting]]:
    """Return what other files set differently: (what comes before our drop-in, what comes after it and so wins)."""
    before: dict[str, Setting] = {}
    after: dict[str, Setting] = {}
    passed = False
    for path in files_in_order(sysctl_dir, others, ours):
        if path == ours:
            passed = True
            continue
        try:
            settings = read_file(path)
        except OSError:
            continue  # nobody can tell what it says; at boot it is read by root
        for one in settings:
            if one.key in wanted:
                (after if passed else before)[one.key] = one
    differing = [one for one in before.values() if one.value != wanted[one.key]]
    return differing, [one for one in after.values() if one.value != wanted[one.key]]


def set_at_boot(keys: Iterable[str], sysctl_dir: str, others: Sequence[str], ours: str) -> dict[str, Setting]:
    """Return for each key that some file sets by name what counts at boot."""
    wanted = set(keys)
    found: dict[str, Setting] = {}
    for path in files_in_order(sysctl_dir, others, ours):
        try:
            found.update({one.key: one for one in read_file(path) if one.key in wanted})
        except OSError:
            continue
    return found


class Live:
    """The settings that hold now. proc: where procfs is mounted."""

    def __init__(self, proc: str = "/proc") -> None:
        self._root = os.path.join(proc, "sys")

    def path(self, key: str) -> str:
        return os.path.join(self._root, key)

    def get(self, key: str) -> str | None:
        """Return a value, None if the kernel has no such setting or does not let us read it."""
        try:
            with open(self.path(key), encoding="utf-8", errors="replace") as stream:
                return " ".join(stream.read().split())
        except OSError:
            return None

    def refusal(self, key: str) -> str:
        """Tell why a setting cannot be written, without writing; "" if it can."""
        path = self.path(key)
        try:
            if os.statvfs(path).f_flag & os.ST_RDONLY:
                return f"{self._root} is mounted read-only here, as in a container"
        except OSError as exc:
            return exc.strerror or str(exc)
        return "" if os.access(path, os.W_OK, effective_ids=True) else "permission denied"

    def set(self, key: str, value: str) -> None:
        """Write a value. Errors: OSError."""
        fd = os.open(self.path(key), os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, f"{value}\n".encode())
        finally:
            os.close(fd)
