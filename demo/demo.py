# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show the collection at work on this machine, below build/demo and nowhere else.

Installs the built archive into a private environment, runs the playbooks as a user would, and fails when the second
run changes something or when a conflict is not refused. Where it may, it also lets a real bridge plugin hand out
addresses, which it gets from the collection's own host-local, in network namespaces of its own.

Usage: python3 demo/demo.py [ARCHIVE]; ARCHIVE holds the other plugins, for machines without the
distribution's package.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))

import packages
import pod_network
import pythons
import staging
import venvs

BUILD = os.path.join(ROOT, "build", "demo")
NODE = os.path.join(BUILD, "node")
BIN_DIR = os.path.join(NODE, "opt", "cni", "bin")
HOST_LOCAL = os.path.join(BIN_DIR, "host-local")
CONFLIST = os.path.join(NODE, "etc", "cni", "net.d", "10-podnet.conflist")
NETWORK_DIR = os.path.join(NODE, "var", "lib", "cni", "networks", "podnet")
OUTSIDE = ("/etc/cni/net.d", "/opt/cni/bin", "/var/lib/cni/networks", "/var/lib/nodenet-cni")
STOLEN, HOLDER = "10.88.0.53", "dns"


class DemoFailed(Exception):
    """Something did not behave as the collection promises."""


def say(text: str) -> None:
    print("\n\033[1m== %s\033[0m" % text if sys.stdout.isatty() else "\n== %s" % text, flush=True)


class Controller:
    """A private ansible-core with the collection installed from its archive."""

    def __init__(self) -> None:
        self.venv = venvs.ensure("demo", pythons.base())
        collections = os.path.join(BUILD, "collections")
        self.environment = venvs.clean_environment(
            PATH=pythons.search_path(os.path.join(self.venv, "bin")),
            ANSIBLE_COLLECTIONS_PATH=collections,
            ANSIBLE_HOME=os.path.join(BUILD, "ansible"),
            ANSIBLE_NOCOWS="1",
            PYTHONDONTWRITEBYTECODE="1",
        )
        for name in ("ANSIBLE_CONFIG", "ANSIBLE_INVENTORY", "ANSIBLE_STDOUT_CALLBACK"):
            self.environment.pop(name, None)
        galaxy = ["ansible-galaxy", "collection"]
        with staging.copy() as staged:
            self.quiet([*galaxy, "build", "--force", "--output-path", BUILD, staged])
        archives = [name for name in os.listdir(BUILD) if name.startswith("nodenet-cni-") and name.endswith(".tar.gz")]
        self.archive = os.path.join(BUILD, archives[0])
        self.quiet([*galaxy, "install", "--offline", "--force", "-p", collections, self.archive])

    def quiet(self, command: list[str]) -> None:
        done = self.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise DemoFailed("`%s` failed:\n%s" % (" ".join(command[:3]), done.stdout.decode(errors="replace")))

    def start(self, command: list[str], **options) -> subprocess.CompletedProcess:
        return subprocess.run(
            command, cwd=BUILD, env=self.environment, stdin=subprocess.DEVNULL, check=False, **options
        )

    def playbook(self, name: str, *arguments: str, succeed: bool = True) -> tuple[str, int]:
        """Run a playbook of the collection; its output and the number of changed tasks."""
        command = ["ansible-playbook", "-i", os.path.join(ROOT, "demo", "inventory.yml"), "nodenet.cni." + name]
        command += arguments
        print("$ " + " ".join(os.path.relpath(part, ROOT) if part.startswith(ROOT) else part for part in command))
        done = self.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = done.stdout.decode(errors="replace")
        print(re.sub(r"\n{2,}", "\n", text).rstrip(), flush=True)
        if succeed != (done.returncode == 0):
            raise DemoFailed("playbook %s ended with code %d" % (name, done.returncode))
        recap = re.search(r"this-machine\s*: ok=\d+\s+changed=(\d+)", text)
        if not recap:
            raise DemoFailed("playbook %s did not reach the node" % name)
        return text, int(recap.group(1))


def plugin_source(arguments: list[str]) -> tuple[list[str], str]:
    """Extra variables that name where the other plugins come from, and a sentence for the summary."""
    if arguments:
        return ["-e", "plugin_binaries_src=" + os.path.abspath(arguments[0])], "from " + arguments[0]
    problem = packages.ensure(packages.GO_PLUGIN)
    if problem is None:
        folder = os.path.dirname(packages.GO_PLUGIN)
        return ["-e", "plugin_binaries_src=" + folder], "from " + folder
    return [], "not run: %s; `make demo ARGS=<archive>` takes them from an archive" % problem


def tree() -> str:
    """A hash of the names, contents and times of the reservations."""
    digest = hashlib.sha256()
    for name in sorted(os.listdir(NETWORK_DIR)):
        path = os.path.join(NETWORK_DIR, name)
        with open(path, "rb") as stream:
            digest.update(repr((name, stream.read(), os.stat(path).st_mtime_ns)).encode())
    return digest.hexdigest()


def outside() -> list[tuple[str, int]]:
    """The directories that a node has by default, with their times: the demo may not touch them."""
    return [(path, os.stat(path).st_mtime_ns) for path in OUTSIDE if os.path.isdir(path)]


def reservations() -> dict[str, str]:
    """Address -> owner id, read from the files as the plugin leaves them."""
    held = {}
    for name in sorted(os.listdir(NETWORK_DIR)):
        if name == "lock" or name.startswith("last_reserved_ip"):
            continue
        with open(os.path.join(NETWORK_DIR, name), encoding="ascii") as stream:
            held[name] = stream.read().split()[0]
    return held


def show(arguments: list[str]) -> list[str]:
    """The steps; returns the lines of the summary."""
    say("A private environment with the collection in it")
    shutil.rmtree(BUILD, ignore_errors=True)
    os.makedirs(BUILD)
    controller = Controller()
    print("%s in %s" % (os.path.basename(controller.archive), os.path.relpath(BUILD, ROOT)))
    source, plugins = plugin_source(arguments)

    say("Bootstrap this machine as a node: plugins, a network, static addresses")
    untouched = outside()
    changed = controller.playbook("bootstrap", *source)[1]
    if not changed or outside() != untouched:
        raise DemoFailed("the first run changed nothing, or something outside of %s" % os.path.relpath(NODE, ROOT))
    with open(HOST_LOCAL, "rb") as stream:
        if b"nodenet.cni" not in stream.read(1024):
            raise DemoFailed("%s is not the collection's own" % os.path.relpath(HOST_LOCAL, ROOT))

    say("The same again: nothing may change")
    before = tree()
    changed = controller.playbook("bootstrap", *source)[1]
    if changed or tree() != before:
        raise DemoFailed("the second run changed something (changed=%d)" % changed)

    say("Somebody wants %s, which %s holds: it has to be refused" % (STOLEN, HOLDER))
    text = controller.playbook("reserve", "-e", "@" + os.path.join(ROOT, "demo", "conflict.yml"), succeed=False)[0]
    refusal = re.search(r"Cannot reserve [^\"\n]*%s[^\"\n]*%s[^\"\n]*" % (re.escape(STOLEN), HOLDER), text)
    if not refusal or tree() != before:
        raise DemoFailed("the conflict was not refused with the name of the holder, or something was changed")

    say("One owner is gone: release what it holds")
    held = reservations()
    controller.playbook("reserve", "-e", "@" + os.path.join(ROOT, "demo", "release.yml"))
    released = sorted(set(held) - set(reservations()))
    if not released or set(reservations()) != set(held) - set(released):
        raise DemoFailed("the release took away %s" % (released or "nothing"))

    say("What is in the data directory now")
    controller.playbook("audit", "-e", "audit_output_dir=" + os.path.join(BUILD, "audit"))

    say("Do containers get the reserved addresses? A bridge network in namespaces of its own")
    held = reservations()
    try:
        given = pod_network.hand_out(BIN_DIR, CONFLIST, list(held))
    except pod_network.CannotRun as exc:
        containers = "not run: %s" % exc
        print(containers)
    else:
        if set(given) & set(held) or reservations() != held:
            raise DemoFailed("the plugin handed out %s while %s are reserved" % (given, sorted(held)))
        containers = "our host-local gave containers %s, and refused to give a reserved address" % ", ".join(given)

    width = max(len(address) for address in held)
    return [
        "plugins        %s" % os.path.relpath(BIN_DIR, ROOT),
        "                 host-local        the collection's own",
        "                 bridge, loopback  %s" % plugins,
        "network        %s" % os.path.relpath(CONFLIST, ROOT),
        "reservations   %s" % os.path.relpath(NETWORK_DIR, ROOT),
        *("                 %-*s  %s" % (width, address, owner) for address, owner in held.items()),
        "second run     changed=0",
        "conflict       refused: %s" % refusal.group(0).strip().replace(ROOT + os.sep, ""),
        "released       %s" % ", ".join(released),
        "containers     %s" % containers,
        "audit          %s" % os.path.relpath(os.path.join(BUILD, "audit", "fleet.json"), ROOT),
        "collection     %s" % os.path.relpath(controller.archive, ROOT),
    ]


def main(arguments: list[str]) -> int:
    try:
        lines = show(arguments)
    except (DemoFailed, pod_network.PluginFailed) as exc:
        print("\ndemo failed: %s" % exc, file=sys.stderr)
        return 1
    say("What exists now")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
