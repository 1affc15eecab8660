# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of the plugins that we installed: ``<state_dir>/plugin_binaries.json``.

It says which files of a bin directory are ours to remove, and what an archive holds, so that the same archive need not
be unpacked, nor even be there, to see that everything is in place::

    {"version": 1, "bin_dirs": {"/opt/cni/bin": {
        "plugins": {"bridge": {"sha256": ..., "source": "cni-plugins-linux-amd64-v1.5.1.tgz", "archive": <its sha256>}},
        "archives": {<sha256>: {"source": ..., "files": [<offers.Offer as a dict>]}}}}}
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time

from ..cni.errors import NodenetError
from . import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

VERSION = 1
_LOCK_TIMEOUT_S = 30.0


class Manifest:
    """The part of the record that belongs to one bin directory: ``plugins`` and ``archives``, plain dicts."""

    def __init__(self, state_dir: str, bin_dir: str) -> None:
        self.path = os.path.join(state_dir, "plugin_binaries.json")
        self._key = os.path.realpath(bin_dir)
        self._document: dict[str, Any] = {}
        self.plugins: dict[str, dict[str, Any]] = {}
        self.archives: dict[str, dict[str, Any]] = {}
        self._load()

    def _load(self) -> None:
        self._document = {"version": VERSION, "bin_dirs": {}}
        try:
            with open(self.path, encoding="utf-8") as stream:
                document = json.load(stream)
            if document["version"] != VERSION:
                raise self._refusal(f"it has version {document['version']}, this release knows {VERSION}")
            own = document["bin_dirs"].get(self._key, {"plugins": {}, "archives": {}})
            self.plugins, self.archives = dict(own["plugins"]), dict(own["archives"])
            self._document = document
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as exc:
            raise self._refusal(exc.strerror or str(exc)) from exc
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise self._refusal("it is not what this collection wrote; move it away to start anew") from exc

    def save(self) -> bool:
        """Write the record if it differs from the file; False if it did not. Call it within locked()."""
        bin_dirs = dict(self._document["bin_dirs"])
        if self.plugins:
            used = {entry.get("archive") for entry in self.plugins.values()}
            archives = {digest: archive for digest, archive in self.archives.items() if digest in used}
            bin_dirs[self._key] = {"plugins": self.plugins, "archives": archives}
        else:
            bin_dirs.pop(self._key, None)
        if bin_dirs == self._document["bin_dirs"]:
            return False
        self._document = {"version": VERSION, "bin_dirs": bin_dirs}
        text = json.dumps(self._document, indent=1, sort_keys=True) + "\n"
        files.replace_file(self.path, text.encode("utf-8"), 0o644)
        return True

    def _refusal(self, reason: str) -> NodenetError:
        return NodenetError(f"Cannot read the record of installed plugins in {self.path}: {reason}", file=self.path)


@contextlib.contextmanager
def updating(state_dir: str, bin_dir: str) -> Iterator[Manifest]:
    """Give the record as it is now, and save it afterwards, with no other run of ours in between.

    Creates the state directory. Errors: OSError, NodenetError.
    """
    files.make_directory(state_dir)
    fd = os.open(os.path.join(state_dir, "plugin_binaries.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(fd, state_dir)
        manifest = Manifest(state_dir, bin_dir)
        yield manifest
        manifest.save()
    finally:
        os.close(fd)


def _lock(fd: int, state_dir: str) -> None:
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as exc:
            if exc.errno not in (errno.EAGAIN, errno.EACCES):
                raise
        if time.monotonic() > deadline:
            raise NodenetError(
                f"Cannot update the record of installed plugins in {state_dir}: another run has held its lock for "
                f"{_LOCK_TIMEOUT_S:g} s"
            )
        time.sleep(0.05)
