# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let the bridge plugin of a bin dir hand out addresses to two containers, in network namespaces made for it.

One namespace plays the node, so that the bridge does not appear on this machine; two more play the containers.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess

import packages


class CannotRun(Exception):
    """This machine cannot do it; the text says why."""


class PluginFailed(Exception):
    """The plugin answered with an error document."""


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        raise CannotRun("`ip %s` says: %s" % (" ".join(arguments), done.stderr.decode(errors="replace").strip()))


@contextlib.contextmanager
def namespaces(names: list[str]):
    made = []
    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
        ip("-n", names[0], "link", "set", "lo", "up")
        yield
    finally:
        for name in reversed(made):
            subprocess.run(["ip", "netns", "delete", name], stdin=subprocess.DEVNULL, check=False)


def call(bin_dir: str, config: dict, command: str, node: str, pod: str, arguments: str = "") -> dict:
    """Run the plugin as a runtime does, inside the node's namespace."""
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": pod,
        "CNI_NETNS": os.path.join("/run/netns", pod),
        "CNI_IFNAME": "eth0",
        "CNI_PATH": bin_dir,
        "CNI_ARGS": arguments,
    }
    done = subprocess.run(
        ["ip", "netns", "exec", node, os.path.join(bin_dir, config["type"])],
        input=json.dumps(config).encode(),
        env=environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    answer = json.loads(done.stdout.decode() or "{}")
    if done.returncode:
        raise PluginFailed(answer.get("msg") or done.stderr.decode(errors="replace").strip())
    return answer


def hand_out(bin_dir: str, conflist: str, reserved: list[str]) -> list[str]:
    """The addresses that two containers got; everything is taken down again.

    Raises CannotRun where this machine does not allow it, and PluginFailed when the plugin fails where it should not,
    or gives a container a reserved address that it asks for by name.
    """
    if os.geteuid() != 0:
        raise CannotRun("network namespaces need root")
    problem = packages.ensure("ip")
    if problem:
        raise CannotRun(problem)
    for name in ("bridge", "host-local"):
        if not shutil.which(name, path=bin_dir):
            raise CannotRun("there is no plugin %s in %s" % (name, bin_dir))
    with open(conflist, encoding="utf-8") as stream:
        network = json.load(stream)
    config = dict(network["plugins"][0], name=network["name"], cniVersion=network["cniVersion"])
    prefix = "nodenet-demo-%s" % secrets.token_hex(3)
    node, pods = prefix + "-node", [prefix + "-pod1", prefix + "-pod2"]
    given = []
    with namespaces([node, *pods]):
        try:
            for pod in pods:
                result = call(bin_dir, config, "ADD", node, pod)
                addresses = [entry["address"].split("/")[0] for entry in result["ips"]]
                print("%s got %s" % (pod, ", ".join(addresses)))
                given.extend(addresses)
            print("reserved: %s" % ", ".join(reserved))
            wanted = reserved[0]
            call(bin_dir, config, "DEL", node, pods[1])
            try:
                call(bin_dir, config, "ADD", node, pods[1], "IgnoreUnknown=1;IP=%s" % wanted)
            except PluginFailed as exc:
                print("a container that asks for %s is refused: %s" % (wanted, exc))
            else:
                raise PluginFailed("a container got %s, which is reserved" % wanted)
        finally:
            for pod in pods:
                call(bin_dir, config, "DEL", node, pod)
    return given
