# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NetworkManager and firewalld: what they make of the interfaces of containers, and telling them to leave these alone.

NetworkManager reads ``unmanaged-devices`` of the section keyfile, a list to which later files can add with ``+=``; a
plain ``=`` forgets what came before (NetworkManager.conf(5)). firewalld has one zone for each interface; one with the
target ACCEPT lets everything through. A new zone is only known to it after a reload, and a reload would flush the rules
that plugins made for running pods. So our zone counts from its next start on, and until then ``trusted``, which means
the same.
"""

from __future__ import annotations

import fnmatch
import os
import signal
import subprocess

from ..cni.errors import NodenetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ZONE = "nodenet-cni"
_TRUSTED = (ZONE, "trusted")
_PREFIX = "interface-name:"
#: drop-ins that come before NetworkManager.conf; one of the same name in /etc takes its place
_NM_VENDOR_DIRS = ("/usr/lib/NetworkManager/conf.d", "/run/NetworkManager/conf.d")
_FIREWALL_CMD = ("/usr/bin/firewall-cmd", "/bin/firewall-cmd")
_TIMEOUT_S = 30


def running(name: str, proc: str = "/proc") -> int:
    """Return the process id of a daemon in our network namespace, 0 if it does not run there.

    One in a container has nothing to say about this node's interfaces.
    """
    try:
        own = os.stat(os.path.join(proc, "self/ns/net")).st_ino
        pids = sorted(int(one) for one in os.listdir(proc) if one.isdigit())
    except OSError:
        return 0
    for pid in pids:
        try:
            with open(os.path.join(proc, str(pid), "comm"), encoding="utf-8", errors="replace") as stream:
                if stream.read().strip() != name:
                    continue
            if os.stat(os.path.join(proc, str(pid), "ns/net")).st_ino == own:
                return pid
        except OSError:
            continue  # it ended meanwhile
    return 0


# --- NetworkManager


def nm_installed(conf_dir: str) -> bool:
    """Tell whether NetworkManager is on this node, by the directory around its conf.d."""
    return os.path.isdir(os.path.dirname(os.path.abspath(conf_dir)))


def nm_render(interfaces: Iterable[str], head: str) -> bytes:
    """Return the drop-in that makes NetworkManager leave these names and patterns alone."""
    devices = ";".join(_PREFIX + one for one in interfaces)
    return f"{head}\n[keyfile]\nunmanaged-devices+={devices}\n".encode()


def nm_unmanaged(
    conf_dir: str, ours: str, data: bytes | None, vendor_dirs: Sequence[str] = _NM_VENDOR_DIRS
) -> tuple[list[str], str]:
    """Return the device specifications that NetworkManager will not manage, and the file that forgot ours ("" if none).

    :param ours: path of our drop-in; *data* is what it holds or will hold, None for nothing
    """
    main = os.path.join(os.path.dirname(os.path.abspath(conf_dir)), "NetworkManager.conf")
    by_name: dict[str, str] = {}
    for directory in vendor_dirs:
        by_name.update({name: os.path.join(directory, name) for name in _conf_names(directory)})
    own = set(_conf_names(conf_dir)) | ({os.path.basename(ours)} if data is not None else set())
    early = [by_name[name] for name in sorted(by_name) if name not in own]
    devices: list[str] = []
    forgotten_by = ""
    for path in [*early, main, *(os.path.join(conf_dir, name) for name in sorted(own))]:
        text = _read(path) if path != ours else (data or b"").decode("utf-8", "replace")
        if path == ours:
            forgotten_by = ""
        for operator, values in _unmanaged_lines(text):
            if operator == "=":
                devices = []
                forgotten_by = path
            if operator == "-=":
                devices = [one for one in devices if one not in values]
            else:
                devices += values
    return devices, forgotten_by if data is not None else ""


def nm_managed(interfaces: Iterable[str], devices: Sequence[str]) -> list[str]:
    """Return those of the names and patterns that no specification in *devices* covers."""
    patterns = [one[len(_PREFIX) :].lstrip("=~") for one in devices if one.startswith(_PREFIX)]
    return [one for one in interfaces if not any(one == it or fnmatch.fnmatchcase(one, it) for it in patterns)]


def nm_reload(pid: int) -> None:
    """Have NetworkManager read its configuration again; connections stay as they are. Errors: NodenetError."""
    try:
        os.kill(pid, signal.SIGHUP)
    except ProcessLookupError:
        return  # it reads its files when it starts
    except OSError as exc:
        raise NodenetError(f"Cannot reload NetworkManager on this node: {exc.strerror}", pid=pid) from exc


def cloud_setup_enabled(systemd_dir: str = "/etc/systemd/system") -> bool:
    """Tell whether nm-cloud-setup is enabled, whose routing rules take the packets of pods elsewhere."""
    try:
        folders = [one for one in os.listdir(systemd_dir) if one.endswith(".wants")]
    except OSError:
        return False
    units = ("nm-cloud-setup.service", "nm-cloud-setup.timer")
    return any(os.path.lexists(os.path.join(systemd_dir, folder, unit)) for folder in folders for unit in units)


def _conf_names(directory: str) -> list[str]:
    try:
        return [name for name in os.listdir(directory) if name.endswith(".conf")]
    except OSError:
        return []


def _unmanaged_lines(text: str) -> list[tuple[str, list[str]]]:
    found = []
    section = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        key, equals, value = line.partition("=")
        operator = "=" if key.rstrip()[-1:] not in ("+", "-") else key.rstrip()[-1] + "="
        if section == "keyfile" and equals and key.rstrip(" +-") == "unmanaged-devices":
            found.append((operator, [one.strip() for one in value.replace(",", ";").split(";") if one.strip()]))
    return found


# --- firewalld


class Firewalld:
    """The zones of firewalld.

    :param directory: its configuration, as /etc/firewalld
    :param proc: where procfs is mounted, to see whether it runs
    :param programs: paths at which firewall-cmd may be
    """

    def __init__(self, directory: str, proc: str = "/proc", programs: Sequence[str] = _FIREWALL_CMD) -> None:
        self.installed = os.path.isdir(directory)
        self.path = os.path.join(directory, "zones", f"{ZONE}.xml")
        self.running = self.installed and running("firewalld", proc) != 0
        self._directory = directory
        self._programs = programs

    def bound_elsewhere(self) -> dict[str, str]:
        """Return the zone of interfaces and subnets that files name, "trusted" for any that accepts; ours left out."""
        from xml.etree import ElementTree  # nodes without firewalld need not load it

        bound = {}
        folder = os.path.join(self._directory, "zones")
        for name in _xml_names(folder):
            if name == f"{ZONE}.xml":
                continue
            try:
                root = ElementTree.fromstring(_read(os.path.join(folder, name)))
            except ElementTree.ParseError:
                continue  # firewalld does not load it either
            for element in root:
                what = element.get("name") if element.tag == "interface" else element.get("address")
                if element.tag in ("interface", "source") and what:
                    bound[what] = "trusted" if root.get("target") == "ACCEPT" else name[: -len(".xml")]
        return bound

    def zone_of(self, what: str) -> str:
        """Return the zone that an interface or a subnet has now, "" if it has none."""
        answer = self._ask(f"--get-zone-of-{_kind(what)}={what}")
        return "" if answer == "no zone" else answer

    def bind(self, what: str) -> None:
        """Let through what comes from an interface or subnet, until firewalld starts anew. Errors: NodenetError."""
        self._ask("--zone=trusted", f"--add-{_kind(what)}={what}")

    def _ask(self, *arguments: str) -> str:
        program = next((one for one in self._programs if os.access(one, os.X_OK)), "")
        reason = "it runs, and firewall-cmd is not on this node"
        if program:
            try:
                done = subprocess.run(
                    [program, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    timeout=_TIMEOUT_S,
                    check=False,
                )
                said = done.stdout.decode("utf-8", "replace").strip()
                if done.returncode == 0 or said == "no zone":
                    return said
                reason = said[:200] or f"exit code {done.returncode}"
            except subprocess.TimeoutExpired:
                reason = f"no answer within {_TIMEOUT_S} s"
            except OSError as exc:
                reason = exc.strerror or str(exc)
        raise NodenetError(f"Cannot use firewalld on this node ({arguments[-1]}): {reason}")


def zone_render(names: Iterable[str], subnets: Iterable[str], head: str) -> bytes:
    """Return the file of our zone."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<!-- {head.lstrip('# ')} -->", '<zone target="ACCEPT">']
    lines.append("  <short>CNI networks</short>")
    lines += [f'  <interface name="{_escaped(one)}"/>' for one in names]
    lines += [f'  <source address="{_escaped(one)}"/>' for one in subnets]
    return ("\n".join([*lines, "</zone>"]) + "\n").encode()


def is_trusted(zone: str) -> bool:
    """Tell whether a zone lets everything through."""
    return zone in _TRUSTED


def _kind(what: str) -> str:
    return "source" if "/" in what else "interface"


def _xml_names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".xml"))
    except OSError:
        return []


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""
