# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Replay recorded plugin calls in a sandbox and compare what happened with what was recorded.

The format of a vector is described in README.md beside this file.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "vectors" / "host_local"
DECIDED = HERE / "decided" / "host_local.json"

LOG_TIME = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d ", re.MULTILINE)
BUILD_NAME = re.compile(r"\A(CNI host-local plugin ).*")


def load(name: str) -> dict:
    return json.loads((FOLDER / (name + ".json")).read_text("utf-8"))


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load_decided() -> dict:
    return json.loads(DECIDED.read_text("utf-8"))


class Sandbox:
    """One private directory with ``data`` (not made beforehand) and ``tmp`` (empty)."""

    def __init__(self) -> None:
        self.root = tempfile.mkdtemp(prefix="nodenet-vector.")
        self.data = os.path.join(self.root, "data")
        self.tmp = os.path.join(self.root, "tmp")
        os.mkdir(self.tmp)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *exc_info: object) -> None:
        shutil.rmtree(self.root)

    def expand(self, value: str) -> str:
        return value.replace("@DATADIR@", self.data).replace("@TMP@", self.tmp)

    def mask(self, value: str) -> str:
        return value.replace(self.data, "@DATADIR@").replace(self.tmp, "@TMP@")

    def prepare(self, files: dict) -> None:
        """Make the files of a step's ``before``."""
        for where, what in files.items():
            path = self.expand(where) if where.startswith("@TMP@/") else os.path.join(self.data, where)
            entry = {"content": what} if isinstance(what, str) else what
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            if entry.get("dir"):
                os.makedirs(path, mode=0o755, exist_ok=True)
            elif "symlink" in entry:
                os.symlink(self.expand(entry["symlink"]), path)
            else:
                with open(path, "wb") as out:
                    out.write(
                        base64.b64decode(entry["b64"])
                        if "b64" in entry
                        else entry["content"].encode("utf-8", "surrogateescape")
                    )
                os.chmod(path, int(entry.get("mode", "0600"), 8))

    def tree(self) -> tuple[dict, dict]:
        """Return contents and octal modes of everything below the data directory."""
        contents: dict = {}
        modes: dict = {}

        def visit(path: str, name: str) -> None:
            status = os.lstat(path)
            mode = "%04o" % stat.S_IMODE(status.st_mode)
            if stat.S_ISLNK(status.st_mode):
                contents[name] = {"symlink": self.mask(os.readlink(path))}
            elif stat.S_ISDIR(status.st_mode):
                contents[name + "/"] = None
                modes[name + "/"] = mode
                for child in os.listdir(path):
                    visit(os.path.join(path, child), child if name == "." else name + "/" + child)
            else:
                modes[name] = mode
                with open(path, "rb") as source:
                    raw = source.read()
                try:
                    contents[name] = raw.decode("utf-8")
                except UnicodeDecodeError:
                    contents[name] = {"b64": base64.b64encode(raw).decode("ascii")}

        if os.path.lexists(self.data):
            visit(self.data, ".")
        return contents, modes


def stdin_of(step: dict, sandbox: Sandbox) -> bytes:
    if "stdin_b64" in step:
        return base64.b64decode(step["stdin_b64"])
    return sandbox.expand(step.get("stdin", "")).encode("utf-8", "surrogateescape")


def normal_stderr(value: str) -> str:
    """Hide what differs from run to run: log times and the build name of the about text."""
    return BUILD_NAME.sub(r"\1@BUILD@", LOG_TIME.sub("@LOGTIME@ ", value))


def run_step(driver, step: dict, sandbox: Sandbox) -> dict:
    """Run one step and return the whole outcome in the words of the vectors."""
    umask = os.umask(0o022)
    try:
        sandbox.prepare(step.get("before", {}))
        env = {key: sandbox.expand(value) for key, value in step["env"].items()}
        done = driver.call(env, stdin_of(step, sandbox), sandbox.expand(step.get("cwd", "@TMP@")))
    finally:
        os.umask(umask)
    contents, modes = sandbox.tree()
    return {
        "rc": done.rc,
        "stdout": sandbox.mask(done.stdout),
        "stderr": normal_stderr(sandbox.mask(done.stderr)),
        "tree_after": contents,
        "modes_after": modes,
    }


def replay(driver, vector: dict) -> list[dict]:
    """Run all steps of a vector in one fresh sandbox."""
    with Sandbox() as sandbox:
        return [run_step(driver, step, sandbox) for step in vector["steps"]]


def error_code(stdout: str):
    try:
        return json.loads(stdout)["code"]
    except (ValueError, KeyError, TypeError):
        return None


def differences(wanted: dict, got: dict) -> list[str]:
    """Compare one outcome with one wanted outcome; an empty list means that they agree."""
    found = []
    policy = wanted.get("stdout_policy", "exact")
    if policy == "panic":
        if got["rc"] == 0:
            found.append("rc: wanted any failure, got 0")
    else:
        if wanted["rc"] != got["rc"]:
            found.append("rc: wanted %r, got %r" % (wanted["rc"], got["rc"]))
        code = error_code(wanted["stdout"]) if policy == "code" else None
        if code is not None:
            if code != error_code(got["stdout"]):
                found.append("error code: wanted %r, got %r" % (code, got["stdout"]))
        elif wanted["stdout"] != got["stdout"]:
            found.append("stdout: wanted %r, got %r" % (wanted["stdout"], got["stdout"]))
        if normal_stderr(wanted["stderr"]) != got["stderr"]:
            found.append("stderr: wanted %r, got %r" % (wanted["stderr"], got["stderr"]))
    for key in ("tree_after", "modes_after"):
        for name in sorted(set(wanted[key]) | set(got[key])):
            left, right = wanted[key].get(name, "(absent)"), got[key].get(name, "(absent)")
            if left != right:
                found.append("%s %s: wanted %r, got %r" % (key, name, left, right))
    return found


def accepted(step: dict, entry: dict | None) -> list[dict]:
    """Return every outcome that is right for a step: the recorded one (or ones), or the decided one (or ones)."""
    if entry is None:
        return [dict(outcome, stdout_policy=step["stdout_policy"]) for outcome in step.get("alternatives", [step])]
    own = [dict(outcome) for outcome in entry.get("alternatives", [entry])]
    return own + (accepted(step, None) if entry.get("upstream_too") else [])


def judge(step: dict, entry: dict | None, got: dict) -> list[str]:
    """Return the shortest list of differences to an accepted outcome."""
    return min((differences(wanted, got) for wanted in accepted(step, entry)), key=len)
