# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task of host_local_gc: look, decide, and do what was decided.

The order makes it safe. First the directories are read, then who is alive: a container that came later is in no list of
what goes. Then, one network after the other, everything is read again under the network's lock, what is not as it was
stays, the journal is written, and only then files go.
"""

from __future__ import annotations

import os
import stat

from ..cni.errors import NodenetError
from ..host_local.lock import LockTimeout, check_timeout
from ..host_local.rows import printable, row, short_list
from ..host_local.snapshot import strip_space
from ..host_local.store import Store, StoreError
from . import ipam_report, liveness, liveness_cache, mounts, reclaim, reclaim_journal
from . import networks as definitions
from .targets import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    from .liveness import Evidence
    from .reclaim import Fate, Look

#: File systems that several nodes may have mounted: who is alive there only all of them together know.
SHARED_FILE_SYSTEMS = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "ocfs2", "orangefs"),
    *("prl_fs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"),
)
# programs that serve what this node alone has; of any other one nobody knows
_FUSE_OF_ONE_NODE = ("fuse.fuse-overlayfs", "fuse.lxcfs", "fuse.ntfs-3g")
_MAX_CACHE_FILE = 4 << 20


class Outcome:
    """What became of the task: ``result`` for the user, ``difference`` the files concerned, before and after; ``facts``
    are what its findings are made of."""

    def __init__(
        self, result: dict[str, Any], lines: Sequence[str], place: str, facts: Sequence[dict[str, Any]]
    ) -> None:
        self.result = result
        self.facts = list(facts)
        self.place = place
        self.difference: tuple[list[str], list[str]] = (list(lines), [])

    @property
    def changed(self) -> bool:
        """True if an address was freed, or would be."""
        return bool(self.result["changed"])


def reclaim_addresses(options: Mapping[str, Any], check_mode: bool) -> Outcome:
    """Free the addresses whose owners are dead, by the options of the module.

    The option ``unattended``, which the module has not, leaves alone what somebody restored, names a timer in the
    journal, and makes no findings.

    :raises NodenetError: the evidence is not to be relied on, or something cannot be read or done; what was freed
        before that is in the message and in the journal
    """
    for name in ("lock_timeout", "command_timeout"):
        check_timeout(options[name], name)
    if not options["grace"] >= 0:
        raise NodenetError(f"Cannot free addresses: grace must be a number of seconds from 0, not {options['grace']:g}")
    targets, facts = _targets(options)
    looks, more = _look(targets, options["lock_timeout"], options["networks"] is not None)
    facts = facts + more
    evidence = liveness.gather(_liveness_options(options))
    fates = _decide(looks, evidence, options)
    going = [one for one in fates if one.goes]
    journal = None
    if going and check_mode:
        reclaim_journal.check_writable(options["state_dir"])
    elif going:
        by = reclaim_journal.TIMER if options.get("unattended") else reclaim_journal.MODULE
        journal = reclaim_journal.Journal(options["state_dir"], evidence.documents(), by)
        fates = _carry_out(looks, fates, evidence, options, journal)
        going = [one for one in fates if one.goes]
    facts = facts + _facts(looks, fates)
    result = {
        "changed": bool(going),
        "run_id": journal.run_id if journal and going else None,
        "journal": journal.path if journal and going else None,
        "networks": sorted({one.network for one in looks if one.selected}),
        "removed": [_shown(one) for one in fates if one.goes],
        "kept": [_shown(one) for one in fates if not one.goes],
        "sources": evidence.documents(),
        "findings": [] if options.get("unattended") else findings_of(facts),
    }
    return Outcome(result, [_line(one) for one in going], "reservations", facts)


def _liveness_options(options: Mapping[str, Any]) -> dict[str, Any]:
    live = options["live"] or {}
    return dict(options, attachments=live.get("attachments"), list_age=live.get("age") or 0.0)


def _decide(looks: Sequence[Look], evidence: Evidence, options: Mapping[str, Any]) -> list[Fate]:
    # who is at the keyboard may free again what was restored, a timer would do so within the hour
    restored = reclaim_journal.restored(options["state_dir"]) if options.get("unattended") else ()
    return reclaim.decide(looks, evidence, options["grace"], options["force_empty"], restored)


def is_shared(kind: str) -> bool:
    """Tell whether several nodes may have mounted a file system of this kind."""
    return kind in SHARED_FILE_SYSTEMS or (kind.startswith("fuse.") and kind not in _FUSE_OF_ONE_NODE)


# --- looking


def _targets(options: Mapping[str, Any]) -> tuple[list[tuple[Target, bool]], list[dict[str, Any]]]:
    """Return each network of the node with whether the task is to free addresses in it, and what is doubtful."""
    found, facts = definitions.all_networks(options["conf_dir"], options["flannel_subnet_file"])
    networks = [Target(one.name, network=one) for one in found]
    data_dir = options["data_dir"]
    for one in networks:
        one.data_dir = data_dir or one.data_dir
    orphans, more = ipam_report.orphans(networks, ipam_report.data_dirs_of(networks, data_dir))
    wanted = options["networks"]
    if wanted is None:
        if not options["all"]:
            raise NodenetError("Cannot free addresses: name networks, or set all=true")
        listed = [(one, True) for one in networks] + [(one, bool(options["orphans"])) for one in orphans]
        return listed, facts + more
    for name in wanted:
        if any(one.name == name for one in networks):
            continue
        if not any(one.name == name for one in orphans):
            raise NodenetError(
                f"Cannot free addresses of network {name} in {options['conf_dir']}: no file defines it with "
                "host-local, and no data directory holds reservations of it"
            )
        if not options["orphans"]:
            raise NodenetError(
                f"Cannot free addresses of network {name}: no configuration in {options['conf_dir']} names it any "
                "more; set orphans=true if that is right"
            )
    # a directory elsewhere with the name of a configured network is none of its own
    named = [(one, one.name in wanted) for one in networks]
    named += [(one, one.name in wanted and bool(options["orphans"])) for one in orphans]
    return named, [fact for fact in facts if fact.get("network") in wanted]


def _look(
    targets: Sequence[tuple[Target, bool]], lock_timeout: float, named: bool
) -> tuple[list[Look], list[dict[str, Any]]]:
    looks, facts = [], []
    for target, selected in targets:
        path = target.path
        try:
            kind = mounts.file_system(path) if selected and os.path.isdir(path) else ""
            if is_shared(kind):
                raise NodenetError(f"it is on a file system ({kind}) that other nodes may use as well")
            with Store(target.data_dir, target.name, create=False) as store, store.lock(lock_timeout):
                snapshot = store.snapshot()
        except (NodenetError, OSError) as error:
            if selected and named:
                raise NodenetError(
                    f"Cannot free addresses of network {target.name} in {path}: {error}", where=path
                ) from None
            if selected:
                facts.append({"kind": "ipam-dir-unusable", "where": path, "reason": str(error)})
            continue
        looks.append(reclaim.Look(target.name, target.data_dir, path, snapshot, selected))
    return looks, facts


# --- doing


def _carry_out(
    looks: Sequence[Look],
    fates: Sequence[Fate],
    evidence: Evidence,
    options: Mapping[str, Any],
    journal: reclaim_journal.Journal,
) -> list[Fate]:
    """Free what goes, network by network; return the fates as they turned out."""
    done: list[Fate] = []
    for look in looks:
        mine = [one for one in fates if one.look is look]
        if any(one.goes for one in mine):
            try:
                confirmed = _free(look, looks, mine, evidence, options, journal)
            except (NodenetError, OSError) as error:
                before, facts = "", {}
                if journal.written:
                    before = f"; what was freed before that stands in {journal.path}"
                    removed = [_shown(one) for one in done if one.goes]
                    facts = {"run_id": journal.run_id, "journal": journal.path, "removed": removed}
                raise NodenetError(
                    f"Cannot free addresses of network {look.network} in {look.path}: {error}{before}", **facts
                ) from None
            mine = [one for one in mine if not one.goes] + confirmed
            mine.sort(key=lambda one: (one.reservation.address, one.reservation.name))
        done += mine
    return done


def _free(
    look: Look,
    looks: Sequence[Look],
    fates: Sequence[Fate],
    evidence: Evidence,
    options: Mapping[str, Any],
    journal: reclaim_journal.Journal,
) -> list[Fate]:
    """Read everything again under the network's lock and free what is still to go; return what became of it."""
    try:
        with Store(look.data_dir, look.network) as store, store.lock(options["lock_timeout"]):
            now = reclaim.Look(look.network, look.data_dir, look.path, store.snapshot())
            others = [reclaim.Look(o.network, o.data_dir, o.path, o.snapshot, False) for o in looks if o is not look]
            fresh = liveness.gather(_liveness_options(options), evidence)
            again = _decide([now, *others], fresh, options)
            confirmed = reclaim.confirm(fates, again)
            going = [one for one in confirmed if one.goes]
            entries = [_entry(store, one) for one in going]
            cache = _cache_entries(look, confirmed, again, fresh)
            if going:
                journal.add(look.network, look.data_dir, entries, cache)
                store.release(now.snapshot, [one.reservation for one in going])
                for one in cache:
                    _remove_cache_entry(one)
            else:
                store.discard()  # the directory went meanwhile, and opening it made a new one
            return confirmed
    except (StoreError, LockTimeout) as error:
        raise NodenetError(str(error)) from None


def _entry(store: Store, fate: Fate) -> dict[str, Any]:
    """Return the journal's entry of an address file, with its very bytes. Raises OSError if it changed meanwhile."""
    one = fate.reservation
    fd = os.open(one.name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=store.directory)
    try:
        found = os.fstat(fd)
        content = os.read(fd, 1 << 20)
    finally:
        os.close(fd)
    if strip_space(content) != one.content or found.st_mtime != one.mtime:
        raise NodenetError(f"{one.name} was changed by somebody who does not hold the lock")
    return {
        "name": one.name,
        "address": str(one.address),
        "content": reclaim_journal.encoded(content),
        "mode": stat.S_IMODE(found.st_mode),
        "mtime_ns": found.st_mtime_ns,
        "container_id": one.container_id,
        "ifname": one.ifname,
        "reason": fate.reason,
    }


def _cache_entries(
    look: Look, confirmed: Sequence[Fate], again: Sequence[Fate], evidence: Evidence
) -> list[dict[str, Any]]:
    """Return the dead entries of the result caches of attachments that keep nothing in this network."""
    going = {one.reservation.name for one in confirmed if one.goes}
    staying = {one.reservation.container_id for one in again if one.reservation.name not in going}
    found: dict[str, dict[str, Any]] = {}
    for fate in confirmed:
        one = fate.reservation
        if not fate.goes or not one.container_id or one.container_id in staying:
            continue
        for entry in evidence.dead_entries(look.network, one.container_id, one.ifname):
            try:
                status = os.lstat(entry.path)
                if stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_CACHE_FILE:
                    with open(entry.path, "rb") as stream:
                        content = reclaim_journal.encoded(stream.read())
                    mode = stat.S_IMODE(status.st_mode)
                    found[entry.path] = {"path": entry.path, "content": content, "mode": mode}
            except OSError:
                continue  # gone by itself
    return list(found.values())


def _remove_cache_entry(entry: Mapping[str, Any]) -> None:
    """Remove a file of a result cache if it still is what the journal has: an ADD may have come in between."""
    try:
        found = liveness_cache.read_entry(entry["path"])
        with open(entry["path"], "rb") as stream:
            same = reclaim_journal.encoded(stream.read()) == entry["content"]
        if same and found is not None and not found.alive:
            os.unlink(entry["path"])
    except OSError:
        pass  # the address is free all the same


# --- telling


def _shown(fate: Fate) -> dict[str, Any]:
    one = fate.reservation
    age = max(int(fate.look.snapshot.now - one.mtime), 0)
    shown = row(printable(one.name), one.container_id, one.ifname, None, age)
    del shown["range_set"]
    return dict(shown, network=fate.look.network, data_dir=fate.look.data_dir, reason=fate.reason, by=fate.by)


def _line(fate: Fate) -> str:
    one = fate.reservation
    holder = " ".join(part for part in (one.container_id, one.ifname) if part) or "(empty)"
    return f"{fate.look.network} {printable(one.name)} {holder}"


def _facts(looks: Sequence[Look], fates: Sequence[Fate]) -> list[dict[str, Any]]:
    kinds = {
        reclaim.UNKNOWN: "ipam-unknown-owner",
        reclaim.UNCLEAR: "ipam-bad-content",
        reclaim.DOUBTFUL: "ipam-owner-doubtful",
    }
    facts = []
    for look in looks:
        names = {
            kind: [one.reservation.name for one in fates if one.look.path == look.path and one.reason == reason]
            for reason, kind in kinds.items()
        }
        if look.selected:
            names["ipam-unreadable-file"] = sorted(look.snapshot.unreadable)
        for kind, found in names.items():
            if found:
                shown = short_list(printable(one) for one in found)
                facts.append({"kind": kind, "where": look.path, "count": len(found), "names": shown})
    return facts


def findings_of(facts: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the findings of an `Outcome`."""
    if not facts:
        return []
    from . import findings  # the registry is long, and a healthy node has nothing to tell

    return findings.from_facts(facts)
