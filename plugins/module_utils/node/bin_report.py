# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is said of the plugins of a bin directory: their versions, and what keeps them from being run."""

from __future__ import annotations

import os

from . import archive, elf, offers, plugin_version, selinux
from .bin_dir import KEPT, REMOVED, UNCHANGED, WRITES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from .bin_dir import Present
    from .manifest import Manifest


class Report:
    """Describes plugins one by one: ``facts`` and the ``answers`` of those that were asked gather meanwhile.

    named: what the user names; of other files only those with the name of a known plugin are ever run, since an archive
    may hold any program. versions: former answers, by sha256. absent: nothing was written (check mode), so that a new
    plugin is not there to be asked.
    """

    def __init__(
        self, bin_dir: str, named: Collection[str], versions: Mapping[str, dict[str, Any]], absent: bool
    ) -> None:
        self._bin_dir = bin_dir
        self._named = named
        self._versions = versions
        self._absent = absent
        self.facts: list[dict[str, Any]] = []
        self.answers: dict[str, dict[str, Any]] = {}

    def describe(self, name: str, action: str, digest: str, embedded: bool, drift: bool) -> dict[str, Any]:
        """Return the plugin's entry in the module's result; arguments as for entry(). Errors: OSError."""
        answer = self._versions.get(digest)
        if (answer is None or action in WRITES) and self._can_be_asked(name, action):
            answer = self._ask(name, action, digest)
        label = None if action == REMOVED else selinux.fault(os.path.join(self._bin_dir, name))
        if label:
            self.facts.append(label)
        return entry(self._bin_dir, name, action, digest, embedded, drift, answer)

    def _can_be_asked(self, name: str, action: str) -> bool:
        if action == REMOVED or (action == KEPT and not os.path.isfile(os.path.join(self._bin_dir, name))):
            return False
        if self._absent and action not in (UNCHANGED, KEPT):
            return False
        return name in self._named or offers.is_known(name)

    def _ask(self, name: str, action: str, digest: str) -> dict[str, Any] | None:
        path = os.path.join(self._bin_dir, name)
        fact = _fault(path) if action == KEPT else None
        if fact is None:
            answer = plugin_version.ask(path)
            if not answer.problem:
                self.answers[digest] = {"release": answer.release, "cni_versions": answer.cni_versions}
                return self.answers[digest]
            fact = {"kind": "bin-silent", "where": path, "reason": answer.problem}
        self.facts.append(fact)
        return None


def entry(
    bin_dir: str,
    name: str,
    action: str,
    digest: str,
    embedded: bool,
    drift: bool,
    answer: Mapping[str, Any] | None = None,
    needed_by: Sequence[str] = (),
) -> dict[str, Any]:
    """One element of the module's ``plugins``.

    embedded: it is our own. drift: it was changed since we wrote it.
    answer: {"release", "cni_versions"} of the plugin, if it is known. needed_by: networks that keep it.
    """
    return {
        "name": name,
        "path": os.path.join(bin_dir, name),
        "action": action,
        "sha256": digest or None,
        "embedded": embedded,
        "drift": drift,
        "version": answer["release"] if answer else None,
        "cni_versions": answer["cni_versions"] if answer else [],
        "needed_by": list(needed_by),
    }


def drift_facts(
    bin_dir: str,
    record: Manifest,
    present: Mapping[str, Present],
    names: Iterable[str],
    staying: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return a fact for each of these plugins that somebody changed or removed since we wrote it.

    staying: those that were to go and stay because of that.
    """
    facts = []
    for name in names:
        if not record.drifted(name, _sha256(present, name)):
            continue
        fact = {"where": os.path.join(bin_dir, name), "source": record.plugins[name]["source"]}
        if name in staying:
            facts.append(dict(fact, kind="bin-changed-since"))
        else:
            facts.append(dict(fact, kind="bin-drift", what="changed" if name in present else "removed"))
    return facts


def drifted(record: Manifest, present: Mapping[str, Present], name: str) -> bool:
    """Tell whether somebody changed or removed the plugin since we wrote it."""
    return record.drifted(name, _sha256(present, name))


def _sha256(present: Mapping[str, Present], name: str) -> str | None:
    return present[name].sha256 if name in present else None


def diff(
    bin_dir: str,
    actions: Sequence[tuple[str, str]],
    before: Mapping[str, Present],
    after: Mapping[str, Present],
) -> dict[str, Any]:
    """What these plugins were and will be, of those that change; as_lines() makes the module's ``diff`` of it."""
    changed = [name for name, action in actions if action not in (UNCHANGED, KEPT)]
    return {
        "before": {name: before[name].words() for name in changed if name in before},
        "after": {name: after[name].words() for name in changed if name in after},
        "before_header": bin_dir,
        "after_header": bin_dir,
    }


def as_lines(difference: dict[str, Any]) -> dict[str, str]:
    """Return a diff that shows each plugin on a line of its own, for the terminal."""
    lines = {
        when: "".join(
            "%s %s\n" % (name, " ".join(f"{key}={value}" for key, value in sorted(words.items())))
            for name, words in sorted(difference[when].items())
        )
        for when in ("before", "after")
    }
    return dict(difference, **lines)


def _fault(path: str) -> dict[str, Any] | None:
    """See whether an executable that we did not bring can be run at all."""
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        offer = offers.scan(path, size, iter(lambda: stream.read(archive.PIECE), b""))
    architectures = elf.node_architectures()
    if offer.missing:
        return {"kind": "bin-truncated", "where": path, "reason": offer.missing}
    if offer.architecture and offer.architecture not in architectures:
        wanted = " and ".join(architectures)
        return {"kind": "bin-wrong-architecture", "where": path, "found": offer.architecture, "wanted": wanted}
    if not os.stat(path).st_mode & 0o111:
        return {"kind": "bin-not-executable", "where": path, "reason": "no execute bit in its mode"}
    return None
