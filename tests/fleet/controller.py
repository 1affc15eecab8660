# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A controller with an inventory: runs playbooks of the collection on nodes, and reads their log."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import nodes

ROOT = Path(__file__).resolve().parents[2]
_RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
# With pipelining each module that runs on a node is one call of its Python over SSH, whichever task or item it is of.
_MODULE = re.compile(r"^<(\S+)> SSH: EXEC .*/usr/bin/python3\b", re.MULTILINE)
_TASK = re.compile(r"^TASK \[(.*)\] \*+$", re.MULTILINE)


class Run:
    """What a run did: ``code``, ``text``, and by host ``changed``, ``failed`` and ``modules`` (calls on the node)."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        self.text = text
        recap = {match[0]: [int(one) for one in match[1:]] for match in _RECAP.findall(text)}
        self.changed = {host: row[1] for host, row in recap.items()}
        self.failed = {host: row[2] + row[3] for host, row in recap.items()}
        self.modules = dict.fromkeys(recap, 0)
        for host in _MODULE.findall(text):
            self.modules[host] = self.modules.get(host, 0) + 1

    def modules_by_task(self, host: str) -> dict[str, int]:
        """How often a module ran on a host, by the name of the task."""
        found: dict[str, int] = {}
        parts = _TASK.split(self.text)
        for name, said in zip(parts[1::2], parts[2::2]):
            calls = _MODULE.findall(said).count(host)
            if calls:
                found[name] = found.get(name, 0) + calls
        return found

    @property
    def words(self) -> str:
        """The output with single spaces, to look for sentences."""
        return " ".join(self.text.split())


class Controller:
    """Runs playbooks on the nodes of a fleet, with these variables for all of them."""

    def __init__(self, fleet: nodes.Fleet, folder: Path, variables: dict) -> None:
        self.fleet = fleet
        self.folder = folder
        self.variables = variables
        self.limit_s = 600.0
        self.of_host: dict[str, dict] = {}
        self.environment = dict(
            os.environ,
            **nodes.ansible_environment(fleet.folder),
            ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".dev"),
            ANSIBLE_HOME=tempfile.mkdtemp(prefix="home", dir=fleet.folder),
            ANSIBLE_NOCOLOR="1",
            ANSIBLE_FORKS="8",
            ANSIBLE_INVENTORY_UNPARSED_FAILED="true",
            ANSIBLE_SSH_RETRIES="0",
            PYTHONDONTWRITEBYTECODE="1",
        )
        self.environment.pop("ANSIBLE_CONFIG", None)

    def command(self, name: str, *arguments: str, **variables: object) -> list[str]:
        """Write the inventory and return the command for a playbook."""
        settings = dict({"ansible_python_interpreter": nodes.PYTHON}, **self.variables)
        hosts = {host: self.of_host.get(host, {}) for host in self.fleet.names}
        inventory = {"all": {"children": {"nodes": {"hosts": hosts}}, "vars": settings}}
        (self.folder / "inventory.yml").write_text(json.dumps(inventory))
        command = [os.path.join(os.path.dirname(sys.executable), "ansible-playbook"), "-vvv", "-i", "inventory.yml"]
        return [*command, "nodenet.cni." + name, "-e", json.dumps(variables), *arguments]

    def play(self, name: str, *arguments: str, **variables: object) -> Run:
        """Run a playbook to its end. One that hangs ends the test, with what it said and what runs on the nodes."""
        command = self.command(name, *arguments, **variables)
        path = self.folder / "play.log"
        options = {"cwd": self.folder, "env": self.environment, "stdin": subprocess.DEVNULL}
        with open(path, "wb") as log:
            try:
                code = subprocess.run(
                    command, check=False, stdout=log, stderr=subprocess.STDOUT, timeout=self.limit_s, **options
                ).returncode
            except subprocess.TimeoutExpired:
                processes = [
                    self.fleet.run(host, "ps", "-eo", "pid,ppid,wchan:20,args").stdout for host in self.fleet.names
                ]
                said = path.read_text(errors="replace")[-4000:]
                raise AssertionError("the play hangs\n%s\n%s" % (said, "\n".join(processes))) from None
        return Run(code, path.read_text(errors="replace"))

    def play_killed(self, name: str, seconds: float, **variables: object) -> bool:
        """Run a playbook and kill it, with everything of it on the nodes, after a time; tell whether it still ran."""
        command = self.command(name, **variables)
        with open(self.folder / "killed.log", "wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            process.wait(seconds)
            return False
        except subprocess.TimeoutExpired:
            return True
        finally:
            # its workers have sessions of their own, and an SSH connection that is shared outlives them
            for pid in [*_family(process.pid), *_clients(self.fleet.folder)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
            for host in self.fleet.names:
                self.fleet.kill_all(host)


def _family(pid: int) -> list[int]:
    """A process and all that it started, as far as it still has them."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):
                found += [int(child) for child in Path(f"/proc/{one}/task/{task}/children").read_text().split()]
    return found


def _clients(folder: str) -> list[int]:
    """The SSH clients that reach into a fleet."""
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            command = Path("/proc", entry, "cmdline").read_bytes() if entry.isdigit() else b""
            if command.startswith(b"ssh") and folder.encode() in command:
                found.append(int(entry))
    return found
