# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plugins that are this collection's own code, as module plugin_binaries installs them beside those of a source."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import zlib

from ..cni.errors import NodenetError
from . import executables, manifest
from .bin_dir import ADJUSTED, REPLACED, UNCHANGED, Present

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: what the record and messages call the source of these plugins
SOURCE = "nodenet.cni"


def pack(sources: Mapping[str, str]) -> str:
    """Return sources as one short text, to travel as an argument of the module."""
    return base64.b64encode(zlib.compress(json.dumps(sources, sort_keys=True).encode("ascii"), 9)).decode("ascii")


def unpack(text: str) -> dict[str, str]:
    """Return what pack() was given."""
    sources: dict[str, str] = json.loads(zlib.decompress(base64.b64decode(text)))
    return sources


class Embedded:
    """The plugins of one run that are our own; nothing is written before installing().

    ``launchers``: content by name. ``version``: what they name, "" if there are none.
    Errors: NodenetError if this interpreter cannot be theirs, or the sources did not come.
    """

    def __init__(self, names: Sequence[str], bin_dir: str, packed: str | None) -> None:
        self._bin_dir = bin_dir
        self._before = executables.named_versions(bin_dir)
        self._sources: dict[str, str] = {}
        self._python = ""
        self._whole = True
        self.launchers: dict[str, bytes] = {}
        self.version = ""
        if not names:
            return
        if not packed:
            raise NodenetError(
                f"Cannot install {' and '.join(names)} in {bin_dir}: the sources did not come with the task; "
                "its action plugin sends them, so run it as nodenet.cni.plugin_binaries"
            )
        python = self._python = executables.node_python()
        self._sources = unpack(packed)
        self.version = executables.version_hash(self._sources, python)
        self._whole = executables.is_whole(bin_dir, self.version, self._sources, python)
        place = os.path.abspath(bin_dir)
        self.launchers = {name: executables.launcher(name, python, place, self.version) for name in names}

    def complete(self, actions: Sequence[tuple[str, str]], present: Mapping[str, Present]) -> list[tuple[str, str]]:
        """Correct what was planned from the launchers alone: one whose version is damaged is replaced."""
        if self._whole:
            return list(actions)
        for name in self.launchers:
            if name in present and present[name].embedded == self.version:
                present[name].embedded += " (damaged)"
        return [
            (name, REPLACED if name in self.launchers and action in (UNCHANGED, ADJUSTED) else action)
            for name, action in actions
        ]

    @contextlib.contextmanager
    def installing(self) -> Iterator[None]:
        """Have the version there before the block, in which the launchers take their names.

        If the block fails before one of them did, the version goes again. Errors: NodenetError; nothing was changed.
        """
        if self._whole:
            yield
            return
        there = executables.versions(self._bin_dir)
        try:
            try:
                executables.write_version(self._bin_dir, self.version, self._sources, self._python)
            except OSError as exc:
                raise NodenetError(
                    f"Cannot install {' and '.join(self.launchers)} in {self._bin_dir}: {exc.strerror or exc}; "
                    "nothing was changed",
                    file=exc.filename,
                ) from exc
            yield
        except BaseException:
            executables.remove_old_versions(self._bin_dir, [*there, *executables.named_versions(self._bin_dir)])
            raise

    def sweep(self, state_dir: str, kept: frozenset[str]) -> None:
        """Remove the versions that no launcher named before this run or names now; calls may be running on these."""
        sweep(state_dir, self._bin_dir, self._before | kept)


def sweep(state_dir: str, bin_dir: str, keep: frozenset[str]) -> None:
    """Remove the versions that no launcher names and no kept plugin needs, but those to *keep*; and what interrupted
    runs left.
    """
    if not executables.old_versions(bin_dir, keep | executables.named_versions(bin_dir)):
        return
    # Another run may be about to name one of them. Who cannot have the lock leaves the work to the next run.
    with contextlib.suppress(NodenetError), manifest.updating(state_dir, bin_dir) as record:
        executables.remove_old_versions(bin_dir, keep | executables.named_versions(bin_dir) | record.kept_code())
