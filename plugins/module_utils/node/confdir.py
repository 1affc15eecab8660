# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The conf dir as the runtimes see it: which files count, and in which order.

Reading touches the disk (read_conf_dir); everything else works on what was read, so that a plan can ask what would be
in effect after a change that nobody has made yet.

The rules were read in and tried with containerd 1.6-2.3, CRI-O (ocicni) and libcni 0.8-1.3: names that end in exactly
.conf, .conflist or .json count, hidden ones too, in byte order.
"""

from __future__ import annotations

import errno
import os
import stat

from ..cni import gojson, netconf
from ..cni.errors import CniError, NodenetError
from ..cni.names import valid_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

EXTENSIONS = (".conf", ".conflist", ".json")


def extension(name: str) -> str:
    """Return the last extension as Go sees it: that of ``.conflist`` is ``.conflist``."""
    dot = name.rfind(".")
    return name[dot:] if dot >= 0 else ""


def load_order(name: str) -> bytes:
    """Sort key of file names: byte order, so ``.a`` < ``10-`` < ``100-`` < ``9-`` < ``A-`` < ``a-``."""
    return os.fsencode(name)


class ConfFile:
    """One file of the conf dir.

    name: file name. data: content, None if it cannot be read. error: why a runtime cannot load it, "" if it can.
    tree: the document (gojson), None if it is none. network: name of the network ("" if it has none).
    plugins: the trees of its plugins, in order; none if a runtime cannot load the file. cni_version: "" if absent.
    """

    def __init__(self, name: str, data: bytes | None, error: str = "") -> None:
        self.name = name
        self.data = data
        self.error = error
        self.tree: Any = None
        self.network = ""
        self.cni_version = ""
        self.plugins: list[Any] = []
        if data is not None:
            self._load(data)

    def _load(self, data: bytes) -> None:
        try:
            self.tree = gojson.parse(data)
        except gojson.SyntaxFault as fault:
            self.error = str(fault)
            return
        try:
            config = netconf.load_config(data, self.name)
        except CniError as fault:
            # what it would have been: to name things in messages, and to find what uses its network
            self.error = str(fault)
            self.network = text_of(gojson.field(self.tree, "name"))
            return
        self.network, self.cni_version, self.plugins = config.name, config.cni_version, config.plugins

    @property
    def shown(self) -> str:
        """Its name as results and messages can carry it."""
        if self.name.isascii():
            return self.name
        from ..host_local.rows import printable

        return printable(self.name)

    @property
    def is_list(self) -> bool:
        """A list of plugins by its name, which is what decides for the runtimes."""
        return extension(self.name) == ".conflist"

    @property
    def types(self) -> list[str]:
        """The types of its plugins, in order."""
        return [text_of(gojson.field(plugin, "type")) for plugin in self.plugins]

    @property
    def inline_only(self) -> bool:
        """Whether the list asks not to be extended by the plugins of its network's sub-directory."""
        return gojson.field(self.tree, "loadOnlyInlinedPlugins") in (True, "true")

    def fault(self, conf_dir: str) -> dict[str, Any]:
        """Return the fact that says why a runtime cannot load the file."""
        kind = "conf-unreadable" if self.data is None else "conf-broken"
        return {"kind": kind, "where": os.path.join(conf_dir, self.shown), "reason": self.error}


class ConfDir:
    """What read_conf_dir found: files in load order, by network the plugin files of its sub-directory, and the names of
    others, which the runtimes pass over."""

    def __init__(
        self,
        path: str,
        exists: bool,
        files: list[ConfFile],
        chained: dict[str, list[ConfFile]],
        others: Iterable[str] = (),
    ) -> None:
        self.path = path
        self.exists = exists
        self.files = files
        self.chained = chained
        self.others = list(others)


def read_conf_dir(path: str) -> ConfDir:
    """Read all files of the conf dir that a runtime counts.

    A missing directory is an empty one. Raises OSError when the directory itself cannot be read, NodenetError when
    *path* cannot be one; a file that cannot be read is one with an error.
    """
    if "\0" in path:
        raise NodenetError(f"Cannot read conf dir {path!r}: a path holds no NUL byte")
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return ConfDir(path, False, [], {})
    files = _read_files(path, names, EXTENSIONS)
    chained = {}
    for one in files:
        network = one.network
        if one.error or not one.is_list or network in chained or not valid_name(network) or one.inline_only:
            continue
        directory = os.path.join(path, network)
        try:
            chained[network] = _read_files(directory, os.listdir(directory), (".conf",))
        except (FileNotFoundError, NotADirectoryError):
            continue
    others = sorted(
        name for name in names if extension(name) not in EXTENSIONS and not os.path.isdir(os.path.join(path, name))
    )
    return ConfDir(path, True, files, {network: found for network, found in chained.items() if found}, others)


def _read_files(directory: str, names: Iterable[str], extensions: tuple[str, ...]) -> list[ConfFile]:
    wanted = sorted((name for name in names if extension(name) in extensions), key=load_order)
    found = (_read_file(os.path.join(directory, name), name) for name in wanted)
    return [one for one in found if one is not None]


def _read_file(path: str, name: str) -> ConfFile | None:
    """Read one file; None if it is a directory or vanished meanwhile."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            return None
        return ConfFile(name, read_regular(path))
    except FileNotFoundError:
        return ConfFile(name, None, "a link that points nowhere") if os.path.islink(path) else None
    except OSError as fault:
        return ConfFile(name, None, (fault.strerror or str(fault)).lower())


def read_regular(path: str) -> bytes:
    """Return the content of a file that a user or a configuration names.

    Raises OSError, also for what is no regular file: a FIFO must not hold us up.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, "a path holds no NUL byte")
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "a directory" if stat.S_ISDIR(mode) else "not a file")
        with open(fd, "rb", closefd=False) as stream:
            return stream.read()
    finally:
        os.close(fd)


def with_change(files: Iterable[ConfFile], written: Iterable[ConfFile], removed: Iterable[str]) -> list[ConfFile]:
    """Return the files as they would be after *written* were put in place and the names *removed* taken away."""
    after = {one.name: one for one in files}
    for name in removed:
        after.pop(name, None)
    after.update({one.name: one for one in written})
    return sorted(after.values(), key=lambda one: load_order(one.name))


def installed_plugins(bin_dir: str) -> Callable[[str], bool] | None:
    """Return a test whether a plugin type has an executable in *bin_dir*; None if there is no such directory."""
    if not os.path.isdir(bin_dir):
        return None
    return lambda name: bool(name) and "/" not in name and os.path.isfile(os.path.join(bin_dir, name))


def plugin_versions(bin_dir: str) -> Callable[[str], list[str]]:
    """Return a function that tells which CNI versions a plugin in *bin_dir* speaks, [] if it does not tell.

    It runs the plugin with VERSION, each one once.
    """
    known: dict[str, list[str]] = {}

    def speaks(name: str) -> list[str]:
        if name not in known:
            from . import plugin_version  # most tasks have no plugin to ask

            path = os.path.join(bin_dir, name)
            known[name] = plugin_version.ask(path).cni_versions if "/" not in name and os.access(path, os.X_OK) else []
        return known[name]

    return speaks


def text_of(value: Any) -> str:
    """Return a value of a gojson tree if it is a string, "" for everything else."""
    return value if isinstance(value, str) else ""
