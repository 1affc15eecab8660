# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two ways to call a host-local: in this process through the library, or as an executable.

Both give the same Outcome, so every comparison works for both.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "ansible_collections.nodenet.cni"


class Outcome:
    """Exit code, stdout and stderr of one call; texts carry undecodable bytes as lone surrogates."""

    def __init__(self, rc: int, stdout: str, stderr: str) -> None:
        self.rc = rc
        self.stdout = stdout
        self.stderr = stderr

    def __repr__(self) -> str:
        return "Outcome(rc=%r, stdout=%r, stderr=%r)" % (self.rc, self.stdout, self.stderr)


@contextlib.contextmanager
def import_root(given: str = ""):
    """Put a directory on sys.path in which ``ansible_collections/nodenet/cni`` is this tree; yields it.

    *given* is one that another process made: a process that will be killed must not make its own.
    """
    scratch = None
    if given:
        base = Path(given)
    elif ROOT.parts[-3:] == ("ansible_collections", "nodenet", "cni"):
        base = ROOT.parents[2]
    else:
        scratch = tempfile.mkdtemp(prefix="nodenet-import.")
        base = Path(scratch)
        (base / "ansible_collections" / "nodenet").mkdir(parents=True)
        (base / "ansible_collections" / "nodenet" / "cni").symlink_to(ROOT)
    sys.path.insert(0, str(base))
    try:
        yield base
    finally:
        sys.path.remove(str(base))
        if scratch:
            shutil.rmtree(scratch)


def text(value: bytes | str) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def library_modules() -> dict[str, object]:
    return {name: value for name, value in sys.modules.items() if name.startswith(PACKAGE + ".plugins.module_utils.")}


@contextlib.contextmanager
def library_put_back():
    """Leave the library as imported before, so that other drivers do not meet classes of two imports."""
    before = library_modules()
    try:
        yield
    finally:
        for name in library_modules():
            del sys.modules[name]
        sys.modules.update(before)


class LibraryDriver:
    """Calls the plugin in this process, with the umask and working directory that a vector asks for."""

    name = "library"
    in_process = True

    def __init__(self) -> None:
        self.commands = importlib.import_module(PACKAGE + ".plugins.module_utils.host_local.commands")

    @classmethod
    def restarted(cls) -> LibraryDriver:
        """Return a driver whose library was imported anew, so that nothing it remembered is left.

        Only within `library_put_back`.
        """
        for name in library_modules():
            del sys.modules[name]
        return cls()

    def call(self, env: dict[str, str], stdin: bytes, cwd: str = "/") -> Outcome:
        here = os.getcwd()
        umask = os.umask(0o022)
        os.chdir(cwd)
        try:
            done = self.commands.run(dict(env), stdin)
        finally:
            os.chdir(here)
            os.umask(umask)
        return Outcome(done.rc, text(done.stdout), text(done.stderr))


class CommandDriver:
    """Calls an executable with nothing but the given variables in its environment."""

    in_process = False

    def __init__(self, argv: list[str], name: str = "command", timeout_s: float = 30) -> None:
        self.argv = argv
        self.name = name
        self.timeout_s = timeout_s

    def call(self, env: dict[str, str], stdin: bytes, cwd: str = "/") -> Outcome:
        umask = os.umask(0o022)
        try:
            done = subprocess.run(
                self.argv,
                input=stdin,
                capture_output=True,
                env={key.encode(): value.encode("utf-8", "surrogateescape") for key, value in env.items()},
                cwd=cwd,
                timeout=self.timeout_s,
                check=False,
            )
        finally:
            os.umask(umask)
        return Outcome(done.returncode, text(done.stdout), text(done.stderr))
