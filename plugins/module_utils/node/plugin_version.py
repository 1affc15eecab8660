# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plugin says of itself: its release, and the CNI versions it speaks."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TIMEOUT_S = 5.0
_MOST_BYTES = 65536
_REQUEST = b'{"cniVersion":"1.0.0"}'
_RELEASE = re.compile(r"(?<![\w.])(v?\d+\.\d+(?:\.\d+)?(?:[-+~][0-9A-Za-z.+~-]+)?)(?!\w|\.\d)")
_PRINTED = re.compile(r"CNI protocol versions supported: (\d[\d.]*(?:, \d[\d.]*)*)\s*$")


class PluginVersion:
    """``cni_versions``: that it speaks, [] if it does not tell. ``release``: such as "v1.5.1", None if it does not tell
    (Debian's build says "unknown"). ``problem``: why it does not tell its versions, "" if it does.
    """

    def __init__(self, release: str | None, cni_versions: list[str], problem: str) -> None:
        self.release = release
        self.cni_versions = cni_versions
        self.problem = problem


def ask(path: str, timeout_s: float = TIMEOUT_S) -> PluginVersion:
    """Run the plugin without a command, upon which most print their release and the versions that they speak.

    One that does not print the versions is run once more, with VERSION, which every plugin has to answer. Only for
    executables of this node's architecture that somebody wants to be run as plugins. Each run is ended, with everything
    it started, after *timeout_s* seconds. Never raises for what the plugin does.
    """
    try:
        _code, output, errors = _run([path], {}, timeout_s)
    except OSError as exc:
        return PluginVersion(None, [], f"it cannot be executed ({exc.strerror})")
    except subprocess.TimeoutExpired:
        output = errors = b""  # without a command a plugin may do as it likes
    text = (errors + b"\n" + output).decode("utf-8", "replace")
    cni_versions, problem = _printed_versions(text), ""
    if not cni_versions:
        cni_versions, problem = _cni_versions(path, timeout_s)
    return PluginVersion(None if problem else release_in(text), cni_versions, problem)


def _printed_versions(text: str) -> list[str]:
    """Return the versions of "CNI protocol versions supported: 0.4.0, 1.0.0", as the skeleton of Go plugins says it."""
    for line in text.splitlines():
        match = _PRINTED.match(line)
        if match:
            return match.group(1).split(", ")
    return []


def release_in(text: str) -> str | None:
    """Return the release in a plugin's own words, such as v1.5.1 in "CNI bridge plugin v1.5.1"; None if there is none.

    Lines that speak of protocol versions do not count.
    """
    for line in text.splitlines():
        if "protocol" in line.lower():
            continue
        match = _RELEASE.search(line)
        if match:
            return match.group(1)
    return None


def _cni_versions(path: str, timeout_s: float) -> tuple[list[str], str]:
    try:
        code, output, errors = _run([path], {"CNI_COMMAND": "VERSION"}, timeout_s, _REQUEST)
    except subprocess.TimeoutExpired:
        return [], f"no answer within {timeout_s:g} s"
    except OSError as exc:
        return [], f"it cannot be executed ({exc.strerror})"
    try:
        answer: Any = json.loads(output.decode("utf-8"))
        versions = answer["supportedVersions"]
        if code == 0 and versions and all(isinstance(version, str) for version in versions):
            return list(versions), ""
    except (ValueError, KeyError, TypeError):
        pass
    said = (output.strip() or errors.strip()).decode("utf-8", "replace")
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return [], f"{how}, it says {said.splitlines()[0][:200]!r}" if said else f"{how}, it says nothing"


def _run(
    command: list[str], environment: dict[str, str], timeout_s: float, request: bytes = b""
) -> tuple[int, bytes, bytes]:
    # Files instead of pipes: a plugin that leaves a child behind cannot hold us up, nor fill our memory.
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(request)
        stdin.seek(0)
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd="/",
            env=dict(environment, PATH=os.environ.get("PATH", os.defpath)),
            start_new_session=True,
        )
        try:
            code = process.wait(timeout_s)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # also what it started and left behind
            except (ProcessLookupError, PermissionError):
                pass
            process.wait()
        stdout.seek(0)
        stderr.seek(0)
        return code, stdout.read(_MOST_BYTES), stderr.read(_MOST_BYTES)
