# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a bin directory holds and what is to be done about it: the decisions of plugin_binaries, nothing is written."""

from __future__ import annotations

import os
import stat

from . import archive, executables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

MODE = 0o755

INSTALLED = "installed"
REPLACED = "replaced"
ADJUSTED = "adjusted"
UNCHANGED = "unchanged"
KEPT = "kept"
REMOVED = "removed"
WRITES = (INSTALLED, REPLACED)


class Present:
    """What has a plugin's name in the bin directory: ``kind`` is "file", "link", "directory" or "other".

    ``embedded``: the version that a launcher of our own plugins names, "" for other files. ``target``: of a link.
    """

    def __init__(
        self,
        kind: str,
        sha256: str = "",
        mode: int = 0,
        owner: tuple[int, int] = (0, 0),
        embedded: str = "",
        target: str = "",
    ) -> None:
        self.kind = kind
        self.sha256 = sha256
        self.mode = mode
        self.owner = owner
        self.embedded = embedded
        self.target = target

    def as_dict(self) -> dict[str, Any]:
        """Return what must be known to make it again, but for the content."""
        if self.kind == "link":
            return {"kind": "link", "target": self.target}
        values = {"sha256": self.sha256, "mode": self.mode, "owner": list(self.owner), "embedded": self.embedded}
        return dict(values, kind="file")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Present:
        if values["kind"] == "link":
            return cls("link", target=values["target"])
        uid, gid = values["owner"]
        return cls("file", values["sha256"], values["mode"], (uid, gid), values["embedded"])

    def is_like(self, other: Present | None) -> bool:
        """Tell whether both are the same to who executes them; mode and owner do not count."""
        return other is not None and (self.kind, self.sha256, self.target) == (other.kind, other.sha256, other.target)

    def words(self) -> dict[str, str]:
        if self.kind != "file":
            return {"kind": self.kind, "target": self.target} if self.target else {"kind": self.kind}
        words = {"sha256": self.sha256, "mode": f"0{self.mode:o}", "owner": "{}:{}".format(*self.owner)}
        return dict(words, embedded=self.embedded) if self.embedded else words


def plan(
    wanted: Mapping[str, str], present: Mapping[str, Present], owner: tuple[int, int] | None
) -> list[tuple[str, str]]:
    """Decide for each wanted plugin what to do: [(name, action)], by name.

    wanted: sha256 by name. present: what is there now, by name; missing ones are left out.
    owner: (uid, gid) that the files should have, None if anybody will do.
    """
    return [(name, _action(digest, present.get(name), owner)) for name, digest in sorted(wanted.items())]


def _action(digest: str, there: Present | None, owner: tuple[int, int] | None) -> str:
    if there is None:
        return INSTALLED
    if there.kind != "file" or there.sha256 != digest:
        return REPLACED
    if there.mode != MODE or owner not in (None, there.owner):
        return ADJUSTED
    return UNCHANGED


def plan_removal(
    recorded: Mapping[str, str], include: Sequence[str], present: Mapping[str, Present], needed: Collection[str] = ()
) -> list[tuple[str, str]]:
    """Decide for each plugin that may go: [(name, REMOVED or KEPT)], by name; what is not there is left out.

    recorded: sha256 by name of what counts as ours. include: names to remove whatever they hold; if given, only these.
    A file that was changed since is somebody else's and stays. needed: names that stay unless *include* has them.
    """
    result = []
    for name in sorted(set(include or recorded) & set(present)):
        there = present[name]
        ours = there.kind == "file" and there.sha256 == recorded.get(name)
        result.append((name, REMOVED if include or (ours and name not in needed) else KEPT))
    return result


def plan_return(
    kept: Mapping[str, dict[str, Any]], forced: Sequence[str], present: Mapping[str, Present]
) -> list[tuple[str, str]]:
    """Decide for each plugin with an entry of previous.py how it becomes again what it was: [(name, action)], by name.

    forced: names that become so whatever they hold; of others a file that was changed since is somebody else's and
    stays. What was not there before and is not there now is left out.
    """
    result = []
    for name, entry in sorted(kept.items()):
        there = present.get(name)
        before = Present.from_dict(entry["before"]) if entry["before"] else None
        if there is None and before is None:
            continue
        if there is not None and there.is_like(before):
            action = UNCHANGED
        elif there is None:
            action = INSTALLED
        elif name not in forced and (there.kind != "file" or there.sha256 != entry["written"]):
            action = KEPT
        else:
            action = REPLACED if before else REMOVED
        result.append((name, action))
    return result


def look(bin_dir: str, names: Sequence[str]) -> dict[str, Present]:
    """Read what has these names in the bin directory; links are not followed. Errors: OSError."""
    found = {}
    for name in names:
        path = os.path.join(bin_dir, name)
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISREG(status.st_mode):
            with open(path, "rb") as stream:
                digest = archive.digest_of_stream(stream)
            version = executables.launched_version(path) if name in executables.PLUGINS else None
            owner = (status.st_uid, status.st_gid)
            found[name] = Present("file", digest, stat.S_IMODE(status.st_mode), owner, version or "")
        elif stat.S_ISLNK(status.st_mode):
            found[name] = Present("link", target=os.readlink(path))
        else:
            found[name] = Present("directory" if stat.S_ISDIR(status.st_mode) else "other")
    return found
