# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Taking a run of host_local_gc back: the task of host_local_reservation with the option ``restore``."""

from __future__ import annotations

import os

from ..cni.errors import NodenetError
from ..cni.names import valid_name
from ..host_local import transaction
from ..host_local.addresses import parse_address
from ..host_local.layout import HOLDER_SUFFIX, network_dir
from ..host_local.lock import LockTimeout, check_timeout
from ..host_local.rows import label, printable, row
from ..host_local.snapshot import Reservation, strip_space
from ..host_local.store import Store, StoreError
from . import files, reclaim_journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    from ..host_local.addresses import Address
    from ..host_local.newfile import NewFile
    from ..host_local.snapshot import Snapshot


class Restored:
    """What became of the task, in the shape of `reserving.Outcome`."""

    def __init__(self, result: dict[str, Any], path: str, warnings: list[str]) -> None:
        self.result = result
        self.path = path
        self.warnings = warnings

    def difference(self) -> tuple[list[str], list[str]]:
        """Return the files that come back, before and after, one text line each."""
        held = [one for one in self.result["reservations"] if one not in self.result["added"]]
        return [_line(one) for one in held], [_line(one) for one in self.result["reservations"]]


class _Plan:
    """``add`` are the journal's entries that come back, ``held`` those that are there, ``conflicts`` the others."""

    def __init__(self) -> None:
        self.add: list[Mapping[str, Any]] = []
        self.held: list[Mapping[str, Any]] = []
        self.conflicts: list[dict[str, str]] = []
        self.now = 0.0


def restore(options: Mapping[str, Any], check_mode: bool) -> Restored:
    """Put back what a run freed in one network, but for addresses that somebody has got since.

    Files come back as they were, with content, mode and time, and so do the entries of result caches. Timers would free
    them again within the hour, so it is noted that these are to be left alone.

    :raises NodenetError: unknown run or network, or something cannot be written; nothing is changed then
    """
    network, run_id = options["network"], options["restore"]
    if network is None or not valid_name(network):
        raise NodenetError(f"Cannot restore run {run_id}: name the network by the option network")
    lock_timeout = check_timeout(options["lock_timeout"], "lock_timeout")
    freed = reclaim_journal.read(options["state_dir"], run_id, network, options["data_dir"])
    data_dir = freed["data_dir"]
    path = network_dir(data_dir, network)
    entries = sorted(freed["entries"], key=lambda one: (_address(one), one["name"]))
    warnings: list[str] = []
    try:
        with Store(data_dir, network, create=False) as store, store.lock(lock_timeout):
            plan = _plan(entries, store.snapshot())
        cache = _missing_cache(freed["cache"], plan)
        unmarked = _unmarked(options["state_dir"], network, plan)
        if check_mode:
            if plan.add:
                files.check_writable(path)
        elif plan.add or cache or unmarked:
            with Store(data_dir, network) as store, store.lock(lock_timeout):
                plan = _plan(entries, store.snapshot())
                unmarked = _unmarked(options["state_dir"], network, plan)
                if unmarked:  # first, for a timer may run at any moment
                    reclaim_journal.mark_restored(options["state_dir"], run_id, unmarked)
                _write(store, plan.add)
                cache = _missing_cache(freed["cache"], plan)
                warnings = store.warnings
                warnings += _write_cache(cache)
    except (StoreError, LockTimeout) as error:
        raise NodenetError(f"Cannot restore run {run_id} in {path}: {error}", where=path) from None
    warnings += [
        f"{one['address']} was not restored for {one['wanted_by']}, it is held by {one['held_by']}"
        for one in plan.conflicts
    ]
    added = [_row(one, plan.now) for one in plan.add]
    back = sorted(plan.add + plan.held, key=lambda one: (_address(one), one["name"]))
    result = {
        "changed": bool(plan.add or cache or unmarked),
        "network": network,
        "data_dir": data_dir,
        "reservations": [_row(one, plan.now) for one in back],
        "added": added,
        "removed": [],
        "moved": [],
        "conflicts": plan.conflicts,
        "findings": [],
    }
    return Restored(result, path, warnings)


def _address(entry: Mapping[str, Any]) -> Address:
    name = entry["name"]
    try:
        return parse_address(name[: -len(HOLDER_SUFFIX)] if name.endswith(HOLDER_SUFFIX) else name)
    except ValueError:
        raise NodenetError(f"Cannot restore {printable(name)!r}: that is no name of an address file") from None


def _plan(entries: Sequence[Mapping[str, Any]], snapshot: Snapshot) -> _Plan:
    plan = _Plan()
    plan.now = snapshot.now
    present = {one.name: one for one in [*snapshot.reservations, *snapshot.holding]}
    by_address: dict[tuple[Address, bool], Reservation] = {}
    for one in present.values():
        by_address.setdefault((one.address, one.name.endswith(HOLDER_SUFFIX)), one)
    for entry in entries:
        name, content = entry["name"], strip_space(entry["content"])
        holder = name.endswith(HOLDER_SUFFIX)
        own = present.get(name)
        if own is not None and own.content == content:
            plan.held.append(entry)
            continue
        other = own or by_address.get((_address(entry), holder))
        if other is None and not holder:
            other = snapshot.present_holder(_address(entry))
        held_by = "" if other is None else label(other.container_id)
        if other is None and name in snapshot.names:
            held_by = "something that is no readable address file"
        elif holder and other is None and (_address(entry), False) not in by_address:
            held_by = "nobody, its static reservation is gone"
        if held_by:
            wanted_by = label(entry["container_id"])
            plan.conflicts.append({"address": printable(name), "wanted_by": wanted_by, "held_by": held_by})
        else:
            plan.add.append(entry)
    return plan


def _unmarked(state_dir: str, network: str, plan: _Plan) -> set[tuple[str, str, bytes]]:
    back = {(network, one["name"], strip_space(one["content"])) for one in plan.add + plan.held}
    return back - reclaim_journal.restored(state_dir)


def _write(store: Store, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write files whole before they get their names, many at a time; take the names away again if one fails."""
    linked: list[str] = []
    try:
        step = transaction.at_a_time()
        for start in range(0, len(entries), step):
            _write_some(store, entries[start : start + step], linked)
        store.sync_directory()
    except BaseException:
        for done in linked:
            os.unlink(done, dir_fd=store.directory)
        raise


def _write_some(store: Store, entries: Sequence[Mapping[str, Any]], linked: list[str]) -> None:
    made: list[tuple[str, NewFile]] = []
    name = ""
    try:
        for entry in entries:
            name = entry["name"]
            made.append((name, store.new_file(entry["content"])))
            fd = made[-1][1].fd
            os.fchmod(fd, entry["mode"] & 0o7777)
            os.utime(fd, ns=(entry["mtime_ns"], entry["mtime_ns"]))
        transaction.sync_files(store, [one for _name, one in made])
        for name, one in made:
            one.link(name, store.directory)
            linked.append(name)
    except OSError as error:
        raise StoreError("open", f"{store.path}/{name}", error) from None
    finally:
        for _name, one in made:
            one.close()


def _missing_cache(entries: Sequence[Mapping[str, Any]], plan: _Plan) -> list[Mapping[str, Any]]:
    """Return the entries of result caches that are to come back with what is held, or was put back by a run that ended
    before it came to them."""
    marks = [f"-{one['container_id']}-" for one in plan.add + plan.held if one["container_id"]]
    return [
        entry
        for entry in entries
        if os.path.isdir(os.path.dirname(entry["path"]))
        and not os.path.lexists(entry["path"])
        and any(one in os.path.basename(entry["path"]) for one in marks)
    ]


def _write_cache(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Put back files of result caches; a failure is told, the reservations count."""
    warnings = []
    for entry in entries:
        try:
            files.sweep_temporary(os.path.dirname(entry["path"]))
            files.replace_file(entry["path"], entry["content"], entry["mode"] & 0o777)
        except OSError as error:
            warnings.append(f"cannot restore {entry['path']}: {(error.strerror or str(error)).lower()}")
    return warnings


def _row(entry: Mapping[str, Any], now: float) -> dict[str, Any]:
    age = max(int(now - entry["mtime_ns"] / 1e9), 0)
    return row(printable(entry["name"]), entry["container_id"], entry["ifname"], None, age)


def _line(one: Mapping[str, Any]) -> str:
    return " ".join(part for part in (one["address"], one["container_id"], one["ifname"]) if part)
