# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Inputs that nobody should send: recorded calls, mutated, on directories full of odd things."""

from __future__ import annotations

import copy
import json
import os
import socket
import time

import calls
import vectors

COMMANDS = ["ADD"] * 10 + ["DEL"] * 6 + ["CHECK", "GC", "STATUS"] * 2 + ["VERSION", "add", "", "UPDATE", "ADD\n"]
CIDRS = ["10.1.2.0/24", "10.1.2.0/30", "10.1.2.0/32", "fd00::/64", "::/0", "0.0.0.0/0", "::ffff:10.1.2.0/120"]
ADDRESSES = ["10.1.2.5", "10.1.2.5/24", "fd00::5", "::", "::ffff:10.1.2.5", "010.1.2.5", "10.1.2", "fe80::1%eth0"]
VERSIONS = ["0.1.0", "0.2.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0", "1.1", "1.1.0.0", "9.9.9", "v1.0.0", "1.0.0-rc1", ""]
ODD = [
    "\ud800",
    "\x00",
    "\u2028<&>",
    "e\u0301" * 200,
    "..",
    "../..",
    "/",
    "a/b",
    "a" * 300,
    "-",
    "%s%n",
    "\r\n",
    "\x7f",
]
LITERALS = [None, True, False, 0, -1, 1.5, 1e308, 2**70, [], {}, [None], [[]], [{}], {"": None}, {"subnet": None}]
KEYS = [
    "ipam",
    "name",
    "cniVersion",
    "dataDir",
    "ranges",
    "subnet",
    "rangeStart",
    "rangeEnd",
    "gateway",
    "routes",
    "dst",
]
KEYS += ["gw", "mtu", "resolvConf", "runtimeConfig", "ipRanges", "ips", "args", "cni", "type", "prevResult", "dns"]
KEYS += ["cni.dev/valid-attachments", "gcGraceSeconds", "statusExhaustion", "stickyStatic", "Name", "IPAM", "SubNet"]
STICKY = (
    '{"cniVersion": "1.0.0", "name": "mynet", "ipam": {"type": "host-local", "dataDir": "@DATADIR@", '
    '"stickyStatic": true, "ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd00::/64"}]]}}'
)
FRAGMENTS = [b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"\\u", b"\\ud83d", b"\xff", b"\xc3", b"\xef\xbb\xbf"]
FRAGMENTS += [b"\0", b"-", b"1e", b"NaN", b"Infinity", b"-Infinity", b"//", b"01", b"\n", b"[" * 2000, b'{"a":' * 2000]
FILES = [
    "10.1.2.2",
    "10.1.2.3",
    "10.1.2.4",
    "10.1.2.5",
    "fd00::2",
    "fd00::0003",
    "::ffff:10.1.2.6",
    "010.1.2.7",
    "lock",
]
FILES += [
    "last_reserved_ip.0",
    "last_reserved_ip.1",
    "10.1.2.8.tmp",
    ".hidden",
    "10.1.2",
    "10.1.2.300",
    "10.1.2.2.holder",
    "10.1.2.5.holder",
    "fd00::2.holder",
]
FILES += ["\udcff\udcfe", "a\nb", "x" * 255, ":", "...", "10.1.2.9 "]


def recorded_calls():
    """Return the environments and the standard inputs of all recorded calls."""
    envs, inputs = [], []
    for name in vectors.names():
        for step in vectors.load(name)["steps"]:
            envs.append(step["env"])
            if "stdin" in step:
                inputs.append(step["stdin"])
    return envs, sorted(set(inputs))


class Box:
    """A private directory in which calls may do what they like; ``data`` is where the data dir ought to be.

    With the module *index* the networks have indexes beside them, which `look` does not show.
    """

    def __init__(self, root: str, index=None) -> None:
        self.root = root
        self.data = os.path.join(root, "data")
        self.index = index

    def fill(self, chance) -> None:
        """Make the directories of some networks, with what should not be in them."""
        if chance.random() < 0.1:
            return
        for network in ("mynet", "net"):
            folder = os.path.join(self.data, network)
            roll = chance.random()
            os.makedirs(self.data, exist_ok=True)
            if roll < 0.05:
                os.symlink("elsewhere", folder)
            elif roll < 0.1:
                with open(folder, "wb") as stream:
                    stream.write(b"a file")
            else:
                os.makedirs(folder)
                for name in chance.sample(FILES, chance.randrange(8)):
                    self.plant(chance, os.path.join(folder, name))
                reserved = os.path.join(folder, chance.choice(["10.1.2.5", "10.1.2.7", "fd00::2"]))
                if chance.random() < 0.8 and not os.path.lexists(reserved):
                    with open(reserved, "wb") as stream:
                        stream.write(b"static.default.web\r\neth0")

    def plant(self, chance, path: str) -> None:
        kind = chance.choice(["file"] * 12 + ["directory", "loop", "dangling", "link", "fifo", "socket"])
        if kind in ("dangling", "link") and os.path.basename(path) == "lock":
            kind = "loop"  # the lock is made where a link points to, as Go does
        if kind == "file":
            with open(path, "wb") as stream:
                stream.write(content(chance))
            then = time.time() + chance.choice([-1000000, -100, 0, 1000000])
            os.utime(path, (then, then))
        elif kind == "directory":
            os.mkdir(path)
            with open(os.path.join(path, "10.1.2.99"), "wb") as stream:
                stream.write(content(chance))
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "socket":
            here = os.open(os.path.dirname(path), os.O_RDONLY)
            made = socket.socket(socket.AF_UNIX)
            try:
                # by way of a short path: the name of a socket may have 107 bytes
                made.bind("/proc/self/fd/%d/s" % here)
                os.rename("s", os.path.basename(path), src_dir_fd=here, dst_dir_fd=here)
            finally:
                made.close()
                os.close(here)
        else:
            os.symlink({"loop": os.path.basename(path), "dangling": "nothing", "link": "10.1.2.3"}[kind], path)

    def look(self) -> dict:
        """Return everything in the box: path -> what it is; regular files with content and mode."""
        found: dict = {}
        waiting = [self.root]
        while waiting:
            here = waiting.pop()
            for entry in os.scandir(here):
                if self.index and entry.name.startswith(".nodenet-") and entry.name.endswith("~index"):
                    continue
                if entry.is_symlink():
                    found[entry.path] = ("link", os.readlink(entry.path))
                elif entry.is_dir():
                    found[entry.path] = ("directory",)
                    waiting.append(entry.path)
                elif entry.is_file():
                    with open(entry.path, "rb") as stream:
                        found[entry.path] = ("file", stream.read(), entry.stat().st_mode)
                else:
                    found[entry.path] = ("special",)
        return found

    def spoil_an_index(self, chance) -> None:
        """Damage an index, put something else in its place, or write one that lies."""
        network = chance.choice(["mynet", "net"])
        path = os.path.join(self.data, self.index.index_name(network))
        data = b""
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as stream:
                data = stream.read()
        what = chance.choice(["lie"] * 4 + ["bytes"] * 2 + ["cut", "none", "directory", "fifo", "link"])
        if not os.path.isdir(self.data) or (what == "bytes" and not data):
            return
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        elif os.path.lexists(path):
            os.unlink(path)
        if what in ("bytes", "cut"):
            at = chance.randrange(len(data) + 1)
            noise = bytes(chance.randrange(256) for _number in range(chance.choice([1, 1, 4, 8])))
            with open(path, "wb") as stream:
                stream.write(data[:at] + (noise + data[at + len(noise) :] if what == "bytes" else b""))
        elif what == "directory":
            os.mkdir(path)
        elif what == "fifo":
            os.mkfifo(path)
        elif what == "link":
            os.symlink("net", path)
        elif what == "lie" and os.path.isdir(os.path.join(self.data, network)):
            self.lie(chance, network)

    def lie(self, chance, network: str) -> None:
        """Write an index that will be believed, with what was made up about a directory."""
        entries: list = [[], [], [], []]
        for name in sorted({name for name in [*FILES, "10.1.2.1", "10.1.2.254", "fd00::9"] if self.index.place(name)}):
            if chance.random() < 0.5:
                number, key = self.index.place(name)
                entries[number].append((key, self.index.checksum(content(chance).strip()), chance.choice([0, 1]), name))
        fd = os.open(os.path.join(self.data, network), os.O_RDONLY | os.O_DIRECTORY)
        try:
            times = os.fstat(fd)
            odd = chance.sample(FILES[5:8], chance.randrange(3))
            assert self.index.save(fd, network, times.st_mtime_ns, times.st_ctime_ns, time.time_ns() - 1, entries, odd)
        finally:
            os.close(fd)

    def holds(self, path: str) -> bool:
        """Tell whether a data dir of this name is in the box: nothing outside is any business of a test."""
        return os.path.normpath(os.path.join(self.root, path)).startswith(self.root + "/")


def content(chance) -> bytes:
    whole = calls.CONTAINER.encode()
    return chance.choice(
        [
            whole + b"\r\neth0",
            whole + b"\r\neth0",
            whole + b"\r\neth1",
            b"c0\r\neth0",
            b"c1\r\neth0",
            whole,
            whole + b"\neth0",
            b"  " + whole + b"\r\neth0 \r\n",
            b"static.default.web\r\neth0",
            b"",
            b"\r\n",
            b"\xff\xfe\x00",
            b"10.1.2.3",
            b"fd00::3",
            b"y" * 5000,
        ]
    )


class Mutator:
    """Makes inputs from recorded ones; everything comes from *chance*."""

    def __init__(self, chance, box: Box, envs, inputs) -> None:
        self.chance = chance
        self.box = box
        self.envs = envs
        self.inputs = inputs

    def environment(self) -> dict:
        chance = self.chance
        env = dict(chance.choice(self.envs))
        if chance.random() < 0.8:
            env.update(calls.environment(chance.choice(COMMANDS), chance.choice(["c0", "c1", calls.CONTAINER])))
        while chance.random() < 0.15:
            key = chance.choice(["CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS", "CNI_ARGS", "CNI_PATH", "CNI_COMMAND"])
            env[key] = chance.choice(
                [*ODD, "", "c0", "eth0", "IP=10.1.2.5", "IP=10.1.2.5;IP=fd00::5", "IP", "a=b;IP=x"]
            )
        if chance.random() < 0.4:
            more = chance.choice(["", "", "", ";IP=10.1.2.5", ";IP=10.1.2.9", ";x=y", ";IgnoreUnknown=0", ";"])
            env["CNI_ARGS"] = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web" + more
        if chance.random() < 0.05:
            env["CNI_LOCK_TIMEOUT"] = chance.choice(
                ["1", "0", "-1", "nan", "inf", "1e400", "x", "1_0", "\udcff", "0.5"]
            )
        env = {key: self.box_names(value).replace("\0", "").replace("\ud800", "\udc80") for key, value in env.items()}
        while chance.random() < 0.05 and env:
            del env[chance.choice(sorted(env))]
        return env

    def box_names(self, value: str) -> str:
        return value.replace("@DATADIR@", self.box.data).replace("@TMP@", self.box.root)

    def stdin(self) -> bytes:
        chance = self.chance
        source = self.box_names(STICKY if chance.random() < 0.15 else chance.choice(self.inputs))
        roll = chance.random()
        if roll < 0.2:
            return source.encode("utf-8", "surrogateescape")
        try:
            tree = json.loads(source) if roll < 0.75 else None
        except (ValueError, RecursionError):
            tree = None
        if isinstance(tree, dict):
            if chance.random() < 0.2:
                tree["cniVersion"] = "1.1.0"
                tree["cni.dev/valid-attachments"] = [{"containerID": calls.CONTAINER, "ifname": "eth0"}]
            for _number in range(chance.choice([1, 1, 1, 2, 3, 5])):
                self.change(tree)
            data = json.dumps(tree, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
            if chance.random() < 0.9:
                return data
            source = data.decode("utf-8", "surrogateescape")
        data = bytearray(source.encode("utf-8", "surrogateescape"))
        for _number in range(chance.choice([1, 1, 2, 4])):
            self.damage(data)
        return bytes(data)

    def change(self, tree) -> None:
        """Change one place of a document."""
        chance = self.chance
        node = tree
        while True:
            places = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not places:
                break
            place = chance.choice(places)
            if isinstance(node[place], (dict, list)) and node[place] and chance.random() < 0.8:
                node = node[place]
                continue
            break
        roll = chance.random()
        if isinstance(node, list):
            if places and roll < 0.6:
                node[place] = self.value()
            elif places and roll < 0.75:
                del node[place]
            else:
                node.append(copy.deepcopy(chance.choice(node)) if node and roll < 0.9 else self.value())
        elif places and roll < 0.55:
            node[place] = self.value()
        elif places and roll < 0.7:
            del node[place]
        elif places and roll < 0.8:
            node[place.swapcase() if roll < 0.75 else chance.choice(KEYS)] = node.pop(place)
        else:
            node[chance.choice(KEYS)] = self.value()

    def value(self):
        chance = self.chance
        texts = chance.choice(
            [CIDRS, CIDRS, ADDRESSES, ADDRESSES, VERSIONS, ODD, [self.box.data, "data", self.box.root]]
        )
        return copy.deepcopy(chance.choice(LITERALS)) if chance.random() < 0.35 else chance.choice(texts)

    def damage(self, data: bytearray) -> None:
        """Change some bytes."""
        chance = self.chance
        at = chance.randrange(len(data) + 1)
        length = chance.choice([1, 1, 2, 5, 20])
        roll = chance.random()
        if roll < 0.3:
            data[at:at] = chance.choice(FRAGMENTS)
        elif roll < 0.5:
            del data[at : at + length]
        elif roll < 0.6:
            del data[at:]
        elif roll < 0.8:
            data[at : at + length] = bytes(chance.randrange(256) for _number in range(length))
        else:
            other = chance.choice(self.inputs).encode("utf-8", "surrogateescape")
            start = chance.randrange(len(other) + 1)
            data[at:at] = other[start : start + chance.choice([10, 50, 500])]
