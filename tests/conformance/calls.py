# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Short hand for calls of the plugin in tests that are not recorded vectors."""

from __future__ import annotations

import json
import os

CONTAINER = "315bbe38938f72661913b5ed4c645249fdb913219e9898d43a39ccb85abfe0f4"


def environment(command: str, container: str = CONTAINER, ifname: str = "eth0", **more: str) -> dict[str, str]:
    env = {
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": container,
        "CNI_IFNAME": ifname,
        "CNI_NETNS": "/var/run/netns/no-such-ns",
        "CNI_PATH": "/opt/cni/bin",
    }
    env.update(more)
    return env


def configuration(data_dir: object, ipam: dict, version: str = "1.0.0", name: str = "net", **more: object) -> bytes:
    ipam = dict(ipam, type="host-local", dataDir=str(data_dir))
    return json.dumps(dict(more, cniVersion=version, name=name, ipam=ipam)).encode()


def address(outcome) -> str:
    """Return the first address of a successful ADD, without its prefix."""
    assert outcome.rc == 0, outcome
    return json.loads(outcome.stdout)["ips"][0]["address"].split("/")[0]


def error(outcome) -> dict:
    assert outcome.rc == 1, outcome
    return json.loads(outcome.stdout)


def is_address_file(name: str) -> bool:
    return name != "lock" and not name.startswith("last_reserved_ip.")


def held(data_dir: object, name: str = "net") -> dict[str, str]:
    """Return the address files of a network with their contents."""
    folder = os.path.join(str(data_dir), name)
    found = {}
    for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, entry)
        if is_address_file(entry) and os.path.isfile(path):
            with open(path, "rb") as source:
                found[entry] = source.read().decode("utf-8", "surrogateescape")
    return found
