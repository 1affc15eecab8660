# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel modules: which ones the running kernel has, built in or loaded, and loading one."""

from __future__ import annotations

import os
import subprocess

from ..cni.errors import NodenetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOADED = "loaded"
BUILTIN = "builtin"
AVAILABLE = "available"  # its file is there, it is not loaded
ABSENT = "absent"  # this kernel has no such module
UNKNOWN = "unknown"  # nothing here tells, as in a container without /lib/modules

#: what shows in procfs that a module works, also inside of a container
_EVIDENCE = {
    "br_netfilter": "sys/net/bridge",
    "nf_conntrack": "sys/net/netfilter/nf_conntrack_max",
    "8021q": "net/vlan",
}
#: options in the kernel's configuration; for other modules it does not tell
_OPTIONS = {
    "bridge": "BRIDGE",
    "br_netfilter": "BRIDGE_NETFILTER",
    "veth": "VETH",
    "macvlan": "MACVLAN",
    "ipvlan": "IPVLAN",
    "8021q": "VLAN_8021Q",
    "dummy": "DUMMY",
    "tun": "TUN",
    "vrf": "NET_VRF",
    "ifb": "IFB",
    "sch_ingress": "NET_SCH_INGRESS",
    "sch_tbf": "NET_SCH_TBF",
    "sch_htb": "NET_SCH_HTB",
    "cls_u32": "NET_CLS_U32",
    "act_mirred": "NET_ACT_MIRRED",
    "nf_conntrack": "NF_CONNTRACK",
    "nf_nat": "NF_NAT",
}
_MODPROBE_DIRS = ("/sbin", "/usr/sbin", "/bin", "/usr/bin")
_TIMEOUT_S = 60


class Kernel:
    """The running kernel as this node shows it.

    :param proc: where procfs is mounted
    :param sys: where sysfs is mounted
    :param modules: directory with a directory of modules for each kernel release
    :param boot: directory that may hold the kernel's configuration
    :param programs: directories in which modprobe is looked for
    """

    def __init__(
        self,
        proc: str = "/proc",
        sys: str = "/sys",
        modules: str = "/lib/modules",
        boot: str = "/boot",
        programs: Iterable[str] = _MODPROBE_DIRS,
    ) -> None:
        self._proc = proc
        self._sys = sys
        self._boot = boot
        self._programs = tuple(programs)
        self.release = self._text(os.path.join(proc, "sys/kernel/osrelease")) or os.uname().release
        self._modules = os.path.join(modules, self.release)
        self._builtin: set[str] | None = None
        self._files: set[str] | None = None
        self._config: dict[str, str] | None = None

    def state(self, module: str) -> str:
        """Return LOADED, BUILTIN, AVAILABLE, ABSENT or UNKNOWN."""
        folder = os.path.join(self._sys, "module", module)
        if os.path.isdir(folder):
            # built-in ones have a directory there only for their parameters, and never a state
            return LOADED if os.path.exists(os.path.join(folder, "initstate")) else BUILTIN
        if module in self._listed_builtin():
            return BUILTIN
        if module in self._listed_files():
            return AVAILABLE
        configured = self._configured(module)
        if configured == "y":
            return BUILTIN
        if module in _EVIDENCE and os.path.exists(os.path.join(self._proc, _EVIDENCE[module])):
            return LOADED
        return ABSENT if configured == "n" or self._listed_files() else UNKNOWN

    def modprobe(self) -> str:
        """Return the path of modprobe, "" if the node has none."""
        for folder in self._programs:
            path = os.path.join(folder, "modprobe")
            if os.access(path, os.X_OK):
                return path
        return ""

    def load(self, module: str) -> None:
        """Load a module with what it depends on. Errors: NodenetError."""
        try:
            done = subprocess.run(
                [self.modprobe(), module],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_TIMEOUT_S,
                check=False,
            )
            said = done.stdout.decode("utf-8", "replace").strip().splitlines()
            reason = "" if done.returncode == 0 else (said[-1][:200] if said else f"exit code {done.returncode}")
        except subprocess.TimeoutExpired:
            reason = f"modprobe did not end within {_TIMEOUT_S} s"
        except OSError as exc:
            reason = exc.strerror or str(exc)
        if reason:
            raise NodenetError(f"Cannot load kernel module {module} on this node: {reason}", module=module)

    def _listed_builtin(self) -> set[str]:
        if self._builtin is None:
            self._builtin = set(_names(self._lines(os.path.join(self._modules, "modules.builtin"))))
        return self._builtin

    def _listed_files(self) -> set[str]:
        if self._files is None:
            self._files = set(_names(self._lines(os.path.join(self._modules, "modules.dep"))))
        return self._files

    def _configured(self, module: str) -> str:
        """Return "y", "m" or "n" as the kernel's configuration says, "" if it cannot be read."""
        if self._config is None:
            self._config = dict(self._read_config())
        if not self._config or module not in _OPTIONS:
            return ""
        return self._config.get(_OPTIONS[module], "n")

    def _read_config(self) -> Iterator[tuple[str, str]]:
        lines = self._lines(os.path.join(self._boot, f"config-{self.release}"))
        if not lines:
            import gzip  # hardly any distribution's kernel shows it

            try:
                with gzip.open(
                    os.path.join(self._proc, "config.gz"), "rt", encoding="ascii", errors="replace"
                ) as stream:
                    lines = stream.read().splitlines()
            except (OSError, EOFError):
                return
        for line in lines:
            name, equals, value = line.partition("=")
            if equals and name.startswith("CONFIG_"):
                yield name[len("CONFIG_") :], value

    def _lines(self, path: str) -> list[str]:
        return self._text(path).splitlines()

    @staticmethod
    def _text(path: str) -> str:
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                return stream.read().strip()
        except OSError:
            return ""


def _names(lines: Iterable[str]) -> Iterator[str]:
    """Yield the modules that modules.builtin or modules.dep name: ``kernel/net/8021q/8021q.ko.xz: ...``."""
    for line in lines:
        name = line.partition(":")[0].rpartition("/")[2].partition(".ko")[0]
        if name:
            yield name.replace("-", "_")
