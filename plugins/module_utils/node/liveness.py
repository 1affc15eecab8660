# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which attachments of a node are alive, by all the evidence that it has (DESIGN section 6).

Authoritative sources are the runtimes (their commands and their state directories) and a list that the caller gives.
Supporting ones are processes, network namespaces and the result caches: they only ever prove life. Nothing here changes
anything on the node.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from ..cni.paths import RESULTS_DIRS
from ..host_local.idforms import SANDBOX_ID, id_form
from ..host_local.live import LiveAttachments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Sequence

    from .liveness_cache import CacheEntry

#: What the option ``sources`` may name, in the order in which they are asked.
SOURCES = ("containerd", "crio", "podman", "processes", "namespaces", "caches")

CONTAINERD = (
    {"root": "/var/lib/containerd", "state": "/run/containerd"},
    {"root": "/var/lib/rancher/k3s/agent/containerd", "state": "/run/k3s/containerd"},
    {"root": "/var/lib/rancher/rke2/agent/containerd", "state": "/run/k3s/containerd"},
    {"root": "/var/lib/k0s/containerd", "state": "/run/k0s/containerd"},
    {"root": "/var/snap/microk8s/common/var/lib/containerd", "state": "/var/snap/microk8s/common/run/containerd"},
)
STORAGE_ROOT = "/var/lib/containers/storage"
CRIO_ADDRESS = "/run/crio/crio.sock"
COMMAND_TIMEOUT = 20.0
_LARGEST_FILE = 64 << 20


class Source:
    """What one source says.

    ``name`` is one of `SOURCES`, ``list``, ``cri``, or a command; ``place`` the directory or command that was asked.
    ``forms`` are the forms of id (`id_form`) for which an authoritative source can say that an id is dead.
    ``failed`` is why nothing can be believed, empty if all went well. ``up`` is true for a runtime that was found to
    work, even if it has no container. ``in_use`` maps addresses to where they are in use, ``running`` are those of
    them that belong to processes of containers, and ``inhabited`` the inodes of all namespaces with processes, None for
    a source that does not see any. ``command`` is true for an answer of another program, which is not asked again while
    the lock is held: podman waits for the plugin, the plugin for the lock.
    """

    def __init__(self, name: str, place: str, authoritative: bool, command: bool = False) -> None:
        self.name = name
        self.place = place
        self.authoritative = authoritative
        self.command = command
        self.up = False
        self.failed = ""
        self.forms: set[str] = set()
        self.in_use: dict[str, str] = {}
        self.running: set[str] = set()
        self.inhabited: set[int] | None = None
        self.entries: list[CacheEntry] = []
        # ids that are alive whatever stands before their last dash
        self.tails: set[str] = set()
        self._listed: list[Mapping[str, Any]] = []
        self._live: LiveAttachments | None = None

    def add(self, container_id: str, ifname: str | None = None) -> None:
        """Note an attachment that is alive; without *ifname* all interfaces of the container."""
        self._listed.append({"container_id": container_id, "ifname": ifname})
        self._live = None

    @property
    def found(self) -> int:
        """How many attachments, or addresses, the source says are alive."""
        return len(self._listed) + len(self.tails) + len(self.in_use)

    @property
    def state(self) -> str:
        """``failed``, ``found`` or ``empty``."""
        return "failed" if self.failed else "found" if self.found else "empty"

    def says_alive(self, container_id: str, ifname: str) -> bool:
        """Tell whether the source lists the attachment, the id whole or by a prefix of 12 or more characters."""
        if self._live is None:
            self._live = LiveAttachments(self._listed)
        return self._live.is_alive(container_id, ifname) or container_id.rpartition("-")[2] in self.tails

    def can_judge(self, container_id: str) -> bool:
        """Tell whether an id that the source does not list is dead as far as it knows."""
        if self._live is None:
            self._live = LiveAttachments(self._listed)
        return self._live.lists(container_id) or id_form(container_id) in self.forms

    def document(self) -> dict[str, Any]:
        """Return the source as the modules return it."""
        return {
            "name": self.name,
            "place": self.place,
            "authoritative": self.authoritative,
            "state": self.state,
            "found": self.found,
            "id_forms": sorted(shown_form(form) for form in self.forms),
            "reason": self.failed or None,
        }


def shown_form(form: str) -> str:
    """Return a form of id as people read it: ``<64 hex>``, ``default-<64 hex>``, ``uuid``."""
    head, dash, tail = form.rpartition("-")
    if not dash:
        return form
    kind = "hex" if tail.startswith("hex") else "text"
    return f"{head + '-' if head else ''}<{tail[len(kind) :]} {kind}>"


class Evidence:
    """All that is known of who is alive; ``started`` is when looking began, ``boot`` when the node did, both in seconds
    since the epoch."""

    def __init__(self, sources: Sequence[Source], started: float, boot: float) -> None:
        self.sources = list(sources)
        self.started = started
        self.boot = boot

    @property
    def failures(self) -> list[Source]:
        """The sources of which nothing can be believed."""
        return [one for one in self.sources if one.failed]

    @property
    def authoritative(self) -> list[Source]:
        """The sources that can say of an attachment that it is dead."""
        return [one for one in self.sources if one.authoritative]

    @property
    def a_runtime_is_up(self) -> bool:
        """True if a runtime was found to work."""
        return any(one.up and not one.failed for one in self.sources)

    def witnesses(self, container_id: str, ifname: str, address: str) -> tuple[list[str], list[str]]:
        """Return who says that an attachment is alive: authoritative sources, and supporting ones."""
        strong: list[str] = []
        weak: list[str] = []
        for one in self.sources:
            if container_id and one.says_alive(container_id, ifname):
                (strong if one.authoritative else weak).append(one.name)
            elif address in one.in_use:
                weak.append(one.in_use[address])
        return strong, weak

    def runs(self, container_id: str, ifname: str, address: str | None) -> bool:
        """Tell whether processes of an attachment are seen; *address* is None if it is known whose it is.

        A namespace without any may be left of one that is gone, as leaked as its reservation.
        """
        inhabited = [one.inhabited for one in self.sources if one.inhabited is not None]
        for one in self.sources:
            if address in one.running or container_id.rpartition("-")[2] in one.tails:
                return True
            if one.authoritative or not one.says_alive(container_id, ifname):
                continue
            namespaces = {
                inode
                for entry in one.entries
                if entry.container_id == container_id and ifname in ("", entry.ifname)
                for inode in entry.namespaces
            }
            if not inhabited or not namespaces or any(namespaces & found for found in inhabited):
                return True
        return False

    def can_judge(self, container_id: str) -> bool:
        """Tell whether some authoritative source knows ids of this form."""
        return any(one.can_judge(container_id) for one in self.authoritative if not one.failed)

    def dead_entries(self, network: str, container_id: str, ifname: str) -> list[CacheEntry]:
        """Return the entries of the result caches for an attachment; those of a mounted namespace are not among them.

        Without *ifname* (a file of an old plugin release) those of all interfaces.
        """
        return [
            entry
            for one in self.sources
            for entry in one.entries
            if not entry.alive
            and (entry.network, entry.container_id) == (network, container_id)
            and ifname in ("", entry.ifname)
        ]

    def documents(self) -> list[dict[str, Any]]:
        """Return the sources as the modules return them."""
        return [one.document() for one in self.sources]


class Judge(LiveAttachments):
    """The evidence in the place of a list of live attachments, for reports; ``fault`` is why it cannot judge."""

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(())
        self._evidence = evidence
        self.fault = "; ".join(f"{one.name}: {one.failed}" for one in evidence.failures)
        if not self.fault and not evidence.authoritative:
            self.fault = "no container runtime was found"

    def judge(self, container_id: str, ifname: str, _address: str = "") -> bool | None:
        """Tell whether the holder of a reservation is alive; None if that is not known."""
        if self.fault:
            return None
        strong, weak = self._evidence.witnesses(container_id, ifname, _address)
        if strong or weak:
            return True
        return False if self._evidence.can_judge(container_id) else None


def defaults() -> dict[str, Any]:
    """Return the options of `gather` with which everything is asked at its usual place."""
    return {
        "sources": list(SOURCES),
        "attachments": None,
        "containerd": [dict(one) for one in CONTAINERD],
        "storage_root": STORAGE_ROOT,
        "crio_address": CRIO_ADDRESS,
        "results_dirs": list(RESULTS_DIRS),
        "command_timeout": COMMAND_TIMEOUT,
    }


def given(attachments: Iterable[Mapping[str, Any]]) -> Source:
    """Return a list of the caller as a source. It can judge ids of the forms that it lists; an empty one plain ids."""
    source = Source("list", "the option live", authoritative=True)
    listed = list(attachments)
    for one in listed:
        source.add(one["container_id"], one.get("ifname"))
    source.forms = LiveAttachments(listed).forms if listed else {SANDBOX_ID}
    return source


def gather(options: Mapping[str, Any], earlier: Evidence | None = None) -> Evidence:
    """Ask all sources.

    :param options: ``sources`` (a list of `SOURCES`), ``attachments`` (a list, or None when nobody gave one), and where
        things are: ``containerd`` (a list of dicts with ``root``, ``state`` and perhaps ``address``),
        ``storage_root``, ``crio_address``, ``results_dirs``; ``command_timeout`` in seconds; ``list_age``, how many
        seconds ago the list was taken
    :param earlier: take over the answers of commands from it instead of asking again, and when it began
    """
    started = time.time() - max(options.get("list_age") or 0.0, 0.0)
    wanted = options["sources"]
    sources: list[Source] = []
    if options.get("attachments") is not None:
        sources.append(given(options["attachments"]))
    if "containerd" in wanted or "crio" in wanted or "podman" in wanted:
        from . import liveness_dirs

        sources += liveness_dirs.read(options)
        if earlier is not None:
            sources += [one for one in earlier.sources if one.command]
        else:
            from . import liveness_commands

            sources += liveness_commands.ask(options, sources)
    if "processes" in wanted:
        from . import liveness_processes

        sources.append(liveness_processes.read())
    if "namespaces" in wanted:
        from . import liveness_netns

        sources.append(liveness_netns.read())
    if "caches" in wanted:
        from . import liveness_cache

        sources += [liveness_cache.read(place) for place in options["results_dirs"]]
    if earlier is not None:
        started = earlier.started
    return Evidence(sources, started, boot_time())


def content_of(path: str) -> bytes:
    """Return the content of a regular file that a runtime wrote.

    :raises OSError: it cannot be read; also for a FIFO, which would hold us up, and for a file so large that
        no runtime wrote it
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        if found.st_size > _LARGEST_FILE:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        with open(fd, "rb", closefd=False) as stream:
            return stream.read()
    finally:
        os.close(fd)


def boot_time(path: str = "/proc/stat") -> float:
    """Return when the node was booted, in seconds since the epoch; 0 if that cannot be told (then nothing is older)."""
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            for line in stream:
                if line.startswith("btime "):
                    return float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return 0.0
