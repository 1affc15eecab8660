# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The recorded scenarios of Multus, and what of an outcome has to be equal."""

from __future__ import annotations

import contextlib
import copy
import importlib
import json
import os
import re
from pathlib import Path

from multus_scenario import Scenario
from plugin_drivers import PACKAGE, CommandDriver, Outcome

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "vectors" / "multus"
DECIDED = HERE / "decided" / "multus.json"
OUTCOME_KEYS = (
    "rc",
    "stdout_json",
    "stdout_raw",
    "stderr",
    "delegate_calls",
    "api_calls",
    "cache_after",
    "netns_after",
    "log",
    "dir_after",
    "host_after",
)
# from here on Go's libraries word a message
LIBRARY = re.compile(
    r"json: |invalid character|unexpected end of JSON|yaml: |error converting YAML|x509: |tls: |dial |context deadline"
    r"|Client\.Timeout"
)
TRIED = re.compile(r"tried (once|\d+ times)")


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> dict:
    return json.loads((FOLDER / (name + ".json")).read_text("utf-8"))


def load_decided() -> dict:
    return json.loads(DECIDED.read_text("utf-8")) if DECIDED.exists() else {}


class MultusLibrary:
    """Calls multus in this process."""

    def __init__(self) -> None:
        base = PACKAGE + ".plugins.module_utils.multus."
        self.commands = importlib.import_module(base + "commands")
        self.devices = importlib.import_module(base + "devices")
        self.attachments = importlib.import_module(base + "attachments")
        self.deviceinfo = importlib.import_module(base + "deviceinfo")
        self.config = importlib.import_module(base + "config")
        self.session = importlib.import_module(base + "session")
        self.places = self.devices.SOCKET, self.devices.CHECKPOINT, self.attachments.DEVICE_INFO_DIR

    @contextlib.contextmanager
    def hurry(self, name: str):
        """Wait for what never comes for a shorter time than on a node."""
        before = self.config.API_TIMEOUT_S, self.session.READINESS_WAIT_S
        if name == "pod-api-down":
            self.config.API_TIMEOUT_S = 2
        self.session.READINESS_WAIT_S = 2.0
        try:
            yield
        finally:
            self.config.API_TIMEOUT_S, self.session.READINESS_WAIT_S = before

    def use_host(self, root: str) -> None:
        """Look for the node's own files below *root*."""
        found = (root + place for place in self.places)
        self.devices.SOCKET, self.devices.CHECKPOINT, self.attachments.DEVICE_INFO_DIR = found
        self.deviceinfo.DEVICE_INFO_DIR = self.attachments.DEVICE_INFO_DIR

    def leave_host(self) -> None:
        self.devices.SOCKET, self.devices.CHECKPOINT, self.attachments.DEVICE_INFO_DIR = self.places
        self.deviceinfo.DEVICE_INFO_DIR = self.attachments.DEVICE_INFO_DIR

    def call(self, env: dict, stdin: bytes, _cwd: str, _argv: list) -> Outcome:
        said: list[str] = []
        done = self.commands.run(env, stdin, said.append)
        return Outcome(done.rc, done.stdout, "".join(said) + done.stderr)


class MultusExecutable:
    """Calls multus as a process, in a mount namespace of its own where a scenario has files of the node."""

    def __init__(self, path: str) -> None:
        self.command = CommandDriver([path])
        self.path = path
        self.seconds = 0
        self.wrapped: list[str] = []

    def use_host(self, root: str) -> None:
        self.wrapped = ["unshare", "-m", "--propagation", "private", "sh", "-c", _HOST % {"root": root}, "sh"]

    def leave_host(self) -> None:
        self.wrapped = []

    @contextlib.contextmanager
    def hurry(self, name: str):
        """Wait for an API server that never comes for a shorter time than on a node."""
        self.seconds = 2 if name == "pod-api-down" else 0
        yield

    def call(self, env: dict, stdin: bytes, cwd: str, argv: list) -> Outcome:
        if self.seconds:
            stdin = json.dumps(dict(json.loads(stdin), apiTimeoutSeconds=self.seconds)).encode()
        wrapped = self.wrapped if os.path.isdir(os.path.join(cwd, "host")) else []
        self.command.argv = [*wrapped, self.path, *argv]
        return self.command.call(env, stdin, cwd)


# what lies in the scenario's own tree takes the place of the node's; network namespaces stay reachable
_HOST = """set -e
mkdir -p %(root)s/var/lib %(root)s/var/run %(root)s/../namespaces
mount --rbind /run/netns %(root)s/../namespaces
mount --bind %(root)s/var/lib /var/lib
mount --bind %(root)s/var/run /run
mkdir -p /run/netns
mount --rbind %(root)s/../namespaces /run/netns
exec "$@"
"""


def replay(driver, vector: dict, folder: Path, number: int = 0) -> list[dict]:
    """Run all steps of a vector and return their outcomes."""
    scenario = Scenario(driver, vector, folder, number)
    try:
        with driver.hurry(vector["name"]):
            return [scenario.run(step) for step in vector["steps"]]
    finally:
        scenario.close()


def comparable(outcome: dict, headers: bool) -> dict:
    """Return an outcome without what no other implementation has to repeat.

    That is how often the pod is asked for, how the status is written (a whole pod, or a patch), and whether there are
    ``query`` parameters.
    """
    shown = {key: copy.deepcopy(outcome[key]) for key in OUTCOME_KEYS if key in outcome}
    calls = []
    for call in shown.get("api_calls") or []:
        if call["method"] == "GET" and "/pods/" in call["path"]:
            continue
        call.pop("query", None)
        call.pop("repeated", None)
        if call["method"] in ("PUT", "PATCH"):
            call["method"] = "PUT"
            annotations = (call.get("body") or {}).get("metadata", {}).get("annotations", {})
            call["body"] = {key: value for key, value in annotations.items() if key.endswith("/network-status")}
        kept = ("authorization", "impersonate-user") if headers else ()
        call["headers"] = {key: value for key, value in call.get("headers", {}).items() if key in kept}
        calls.append(call)
    if "api_calls" in shown:
        shown["api_calls"] = calls
    shown.setdefault("stderr", "")
    return shown


def differences(wanted, got, path: str = "") -> list[str]:
    """Compare two outcomes; an empty list means that they agree."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        found = []
        for key in sorted(set(wanted) | set(got)):
            here = "%s.%s" % (path, key)
            if key not in got:
                found.append("%s: missing, wanted %s" % (here, short(wanted[key])))
            elif key not in wanted:
                found.append("%s: unexpected %s" % (here, short(got[key])))
            else:
                found += differences(wanted[key], got[key], here)
        return found
    if isinstance(wanted, list) and isinstance(got, list):
        found = []
        if len(wanted) != len(got):
            found.append("%s: wanted %d elements, got %d" % (path, len(wanted), len(got)))
        for index, (one, other) in enumerate(zip(wanted, got)):
            found += differences(one, other, "%s[%d]" % (path, index))
        return found
    if wanted == got and isinstance(wanted, bool) == isinstance(got, bool):
        return []
    return ["%s: wanted %s, got %s" % (path, short(wanted), short(got))]


def short(value) -> str:
    text = json.dumps(value)
    return text if len(text) < 500 else text[:500] + "..."


def judge(vector: dict, step: dict, got: dict, ending: str = "") -> list[str]:
    """Return how an outcome differs from the recorded one.

    :param ending: what our message has where a library of Go words the rest of the recorded one; where it says how
        often something was tried, the number does not count
    """
    headers = bool(vector.get("record_headers"))
    wanted, found = comparable(step, headers), comparable(got, headers)
    if ending:
        message = wanted["stdout_json"]["msg"]
        wanted["stdout_json"]["msg"] = message[: list(LIBRARY.finditer(message))[-1].start()] + ending
        found["stdout_json"]["msg"] = TRIED.sub("tried N times", found["stdout_json"]["msg"])
    return differences(wanted, found)
