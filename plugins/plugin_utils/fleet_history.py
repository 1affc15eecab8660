# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What audits found before, in an SQLite file: to tell what is new, what is gone, and what grows.

Of each audit the file holds whom it asked and how full the range sets were. Findings are those that were known last:
one is gone when an audit that could tell does not find it, so that a host that is away, that was not asked, or that
could not read a network loses none and gets none anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node.findings import entry
from ansible_collections.nodenet.cni.plugins.module_utils.node.ipam_trend import SHORTEST
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_pools import Before, Place
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_reports import Json

VERSION = 1
#: How many audits a file holds, unless more or less is asked for.
KEEP = 100
_LOCK_TIMEOUT = 30.0
# numbers of addresses are text: an IPv6 range has more than SQLite counts
_TABLES = """
CREATE TABLE audits (id INTEGER PRIMARY KEY AUTOINCREMENT, taken_at INTEGER NOT NULL, complete INTEGER NOT NULL);
CREATE TABLE pools (audit INTEGER NOT NULL REFERENCES audits (id) ON DELETE CASCADE, host TEXT NOT NULL,
    network TEXT NOT NULL, range_set INTEGER NOT NULL, ranges TEXT NOT NULL, usable TEXT NOT NULL,
    reserved TEXT NOT NULL, leaked TEXT, PRIMARY KEY (audit, host, network, range_set)) WITHOUT ROWID;
CREATE TABLE findings (host TEXT NOT NULL, code TEXT NOT NULL, place TEXT NOT NULL, subject TEXT NOT NULL,
    severity TEXT NOT NULL, text TEXT NOT NULL, hosts TEXT NOT NULL,
    PRIMARY KEY (host, code, place, subject)) WITHOUT ROWID;
"""
_ASKED = """CREATE TABLE IF NOT EXISTS asked (audit INTEGER NOT NULL REFERENCES audits (id) ON DELETE CASCADE,
    host TEXT NOT NULL, PRIMARY KEY (audit, host)) WITHOUT ROWID"""
_POD_CIDR = entry("fleet-pod-cidr-stale")[0]
#: Findings that compare a host with most others.
_DRIFT = {entry(f"fleet-{what}-drift")[0] for what in ("conflist", "multus", "plugin", "effective")}
#: host ("" for the fleet), code, where, subject
_Identity = tuple[str, str, str, str]


class History:
    """A history file. To be used in a ``with``; without `append` everything is as before, also that there is none."""

    def __init__(self, path: str, write: bool = True) -> None:
        """Open or make the file; without *write* it is only read, and may be missing.

        Raises NodenetError when it cannot be used.
        """
        self._path = path
        self._write = write
        self._unused = write and not os.path.exists(path)
        self._db = self._open()

    def __enter__(self) -> History:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._unused:  # before it is unlocked
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        self._db.close()

    def _open(self) -> sqlite3.Connection:
        exists = os.path.exists(self._path) and os.path.getsize(self._path) > 0
        name = ":memory:" if not self._write and not exists else self._path
        mode = "rwc" if self._write else "ro"
        if self._write and not exists:
            # it tells who runs what where; SQLite gives the files beside it the same mode
            with contextlib.suppress(OSError):  # SQLite says what is wrong
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            if name != ":memory:":
                name = f"file:{_quoted(os.path.abspath(name))}?mode={mode}"
            database = sqlite3.connect(name, timeout=_LOCK_TIMEOUT, isolation_level=None, uri=name != ":memory:")
        except sqlite3.Error as error:
            raise self._fault(error) from None
        try:
            database.execute("PRAGMA foreign_keys = ON")
            # two audits at once: the second one waits, and then compares itself with the first
            database.execute("BEGIN IMMEDIATE" if self._write else "BEGIN")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not tables and not version:
                for statement in _TABLES.split(";\n"):
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {VERSION}")
            elif version != VERSION:
                reason = f"it is no history of this module, or one of another version ({version})"
                raise NodenetError(f"Cannot use the history in {self._path}: {reason}")
            if self._write:
                database.execute(_ASKED)
        except sqlite3.Error as error:
            database.close()
            raise self._fault(error) from None
        except NodenetError:
            database.close()
            raise
        return database

    def _fault(self, error: sqlite3.Error) -> NodenetError:
        advice = "" if isinstance(error, sqlite3.OperationalError) else "; remove the file to begin anew"
        return NodenetError(f"Cannot use the history in {self._path}: {error}{advice}")

    def before(self, now: int) -> dict[Place, Before]:
        """Return what was known of each range set at *now*, from the last audit that is not too recent for a trend."""
        found: dict[Place, Before] = {}
        for latest in (now, now - SHORTEST):
            query = (
                "SELECT host, network, range_set, ranges, reserved, taken_at, max(audit) FROM pools "
                "JOIN audits ON audits.id = audit WHERE taken_at <= ? GROUP BY host, network, range_set"
            )
            try:
                rows = self._db.execute(query, (latest,)).fetchall()
            except sqlite3.Error as error:
                raise self._fault(error) from None
            for host, network, index, ranges, reserved, taken_at, _audit in rows:
                found[host, network, index] = Before(json.loads(ranges), int(reserved), now - taken_at)
        return found

    def compare(self, merged: t.Mapping[str, t.Any], before: t.Mapping[Place, Before]) -> Json:
        """Return what docs/audit-schema.md calls ``history`` for a merged audit."""
        try:
            count, previous = self._db.execute("SELECT count(*), max(taken_at) FROM audits").fetchone()
            known = {row[:4]: row for row in self._db.execute("SELECT * FROM findings")}
            sight = self._sight(merged)
        except sqlite3.Error as error:
            raise self._fault(error) from None
        present = _identities(merged)
        gone = [_told(row) for identity, row in known.items() if identity not in present and sight.judges(row)]
        growing, changed = [], []
        for one in merged["usage"]:
            earlier = before.get((one["host"], one["network"], one["range_set"]))
            place = {key: one[key] for key in ("host", "network", "range_set")}
            if earlier is None:
                continue
            if earlier.ranges != one["ranges"]:
                changed.append(dict(place, before=earlier.ranges, ranges=one["ranges"]))
            elif one["reserved"] > earlier.reserved:
                numbers = {key: one[key] for key in ("reserved", "usable", "per_day", "full_in_s")}
                growing.append(dict(place, before=earlier.reserved, **numbers))
        new = [_told(row) for identity, row in present.items() if identity not in known] if count else []
        return {
            "previous_at": previous,
            "audits": count + 1,
            "new": new,
            "gone": gone,
            "growing": growing,
            "ranges_changed": changed,
        }

    def append(self, merged: t.Mapping[str, t.Any], keep: int = KEEP) -> None:
        """Write a merged audit down, and forget all but the last *keep* ones."""
        present = _identities(merged)
        try:
            sight = self._sight(merged)
            taken = (merged["taken_at"], int(merged["complete"]))
            audit = self._db.execute("INSERT INTO audits (taken_at, complete) VALUES (?, ?)", taken).lastrowid
            self._db.executemany(
                "INSERT INTO pools VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (audit, one["host"], one["network"], one["range_set"], json.dumps(one["ranges"]))
                    + tuple(None if one[key] is None else str(one[key]) for key in ("usable", "reserved", "leaked"))
                    for one in merged["usage"]
                ),
            )
            asked = ((audit, one["host"]) for one in merged["hosts"])
            self._db.executemany("INSERT INTO asked VALUES (?, ?)", asked)
            self._db.execute("DELETE FROM audits WHERE id <= ?", ((audit or 0) - keep,))
            hosts = {host for (host,) in self._db.execute("SELECT host FROM asked UNION SELECT host FROM pools")}
            known = self._db.execute("SELECT * FROM findings").fetchall()
            # of a host that no audit on file asked nobody will say more
            stay = {row[:4]: row for row in known if _about(row) <= hosts and not sight.judges(row)}
            self._db.execute("DELETE FROM findings")
            rows = {**stay, **present}
            self._db.executemany("INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?, ?)", rows.values())
            self._db.execute("COMMIT")
            self._unused = False
        except sqlite3.Error as error:
            raise self._fault(error) from None

    def _sight(self, merged: t.Mapping[str, t.Any]) -> _Sight:
        query = "SELECT max(hosts) FROM (SELECT count(DISTINCT host) AS hosts FROM pools GROUP BY audit)"
        (most,) = self._db.execute(query).fetchone()
        return _Sight(merged, most or 0)


class _Sight:
    """What an audit can tell of."""

    def __init__(self, merged: t.Mapping[str, t.Any], most: int) -> None:
        """Most: how many hosts the greatest audit on file had."""
        self._reported = {one["host"] for one in merged["hosts"] if one["reported"]}
        self._compares = 2 * len(self._reported) > most
        self._networks: dict[str, set[str | None]] = {}
        self._paths: dict[str, list[str]] = {}
        for one in merged["unread"]:
            self._networks.setdefault(one["host"], set()).add(one["network"])
            self._paths.setdefault(one["host"], []).append(one["where"])

    def judges(self, row: t.Sequence[str]) -> bool:
        """Tell whether a finding would have been made again, so that it is gone if it was not.

        Else one of its hosts was not asked, or is away, or could not read the network; or it is one against most of the
        hosts, and too few of them were asked.
        """
        host, code, place, _subject, _severity, _text, _hosts = row
        about = _about(row)
        if not about <= self._reported:
            return False
        if host:
            return not any(_one_holds_other(place, path) for path in self._paths.get(host, ()))
        if code in _DRIFT:
            return self._compares
        unread = {name for one in about for name in self._networks.get(one, ())}
        if code == _POD_CIDR:  # any network of the host may hand it out
            return not unread
        return not any(name is None or place == f"network {name}" for name in unread)


def _about(row: t.Sequence[str]) -> set[str]:
    """Return the hosts that a finding is of."""
    return {row[0]} if row[0] else set(json.loads(row[6]))


def _one_holds_other(one: str, other: str) -> bool:
    short, long = sorted((one.rstrip("/") + "/", other.rstrip("/") + "/"), key=len)
    return long.startswith(short)


def _quoted(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _identities(merged: t.Mapping[str, t.Any]) -> dict[_Identity, tuple[str, ...]]:
    """Return the findings of an audit as rows of the table, each once."""
    rows: dict[_Identity, tuple[str, ...]] = {}
    for one in merged["findings"]:
        identity = ("", one["code"], one["where"], one["subject"])
        rows.setdefault(identity, (*identity, one["severity"], one["text"], json.dumps(one["hosts"])))
    for one in merged["node_findings"]:
        identity = (one["host"], one["code"], one["where"], "")
        rows.setdefault(identity, (*identity, one["severity"], one["text"], "[]"))
    return rows


def _told(row: t.Sequence[str]) -> Json:
    host, code, where, _subject, severity, text, _hosts = row
    return {"code": code, "severity": severity, "host": host or None, "where": where, "text": text}
