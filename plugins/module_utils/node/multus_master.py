# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which network Multus gives to every pod first: its master, found among the files of the conf dir (multus spec 14.4).

The master is never Multus itself, by the type of its plugins whatever its file is called, and never the loopback, which
the first file of a node without a network often is.
"""

from __future__ import annotations

import os

from ..cni import gojson
from ..cni.errors import NodenetError
from . import confdir
from .confdir import text_of
from .effective import Settings, predict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .confdir import ConfDir, ConfFile

#: What the file of Multus is called without its ending; it has to be read before all others.
STEM = "00-multus"


def is_multus(kind: str) -> bool:
    """Tell whether a plugin's type is Multus: the plugin, the shim of its daemon, or one under another name."""
    return kind == "multus" or kind.startswith("multus-")


def of_multus(one: ConfFile) -> bool:
    """Tell whether a file is one of Multus, also one that cannot be loaded."""
    types = one.types or [text_of(gojson.field(plugin, "type")) for plugin in _plugins_of_broken(one)]
    return any(is_multus(kind) for kind in types) or (not any(types) and one.name.rpartition(".")[0] == STEM)


def is_loopback(one: ConfFile) -> bool:
    """Tell whether a file defines nothing but the loopback."""
    return bool(one.types) and set(one.types) == {"loopback"}


def without_multus(files: Iterable[ConfFile]) -> list[ConfFile]:
    """Return the files that are there when Multus is not."""
    return [one for one in files if not of_multus(one)]


def find(found: ConfDir, wanted: str, runtimes: Settings, verb: str) -> ConfFile:
    """Return the file of the master.

    :param wanted: name of a network, name of a file, or its whole path, which may lie elsewhere; "" for the network
        that the runtimes use when there is no Multus
    :param verb: how a message begins ("write Multus' configuration in /etc/cni/net.d")
    :raises NodenetError: there is no such network, more than one, or it cannot be a master
    """
    usable = [one for one in without_multus(found.files) if not one.error and not is_loopback(one)]
    if not wanted:
        return _in_effect(found, runtimes, verb)
    if "/" in wanted:
        return _at_path(found, wanted, verb)
    chosen = [one for one in usable if wanted in (one.network, one.name)]
    if len(chosen) > 1:
        names = ", ".join(one.shown for one in chosen)
        raise NodenetError(
            f"Cannot {verb}: more than one file is or defines master {wanted} ({names}); name one of the files",
            files=[os.path.join(found.path, one.shown) for one in chosen],
        )
    if not chosen:
        raise _not_found(found, wanted, verb)
    return chosen[0]


def _at_path(found: ConfDir, path: str, verb: str) -> ConfFile:
    directory, name = os.path.split(path)
    for one in found.files:
        if one.name == name and os.path.realpath(directory) == os.path.realpath(found.path):
            return _fit(one, path, verb)
    if confdir.extension(name) not in confdir.EXTENSIONS:
        raise NodenetError(
            f"Cannot {verb}: the master's file {path} has to end in one of {', '.join(confdir.EXTENSIONS)}", file=path
        )
    try:
        data = confdir.read_regular(path)
    except OSError as fault:
        raise NodenetError(
            f"Cannot {verb}: the master's file {path} cannot be read: {fault.strerror or fault}", file=path
        ) from fault
    return _fit(confdir.ConfFile(name, data), path, verb)


def _fit(one: ConfFile, shown: str, verb: str) -> ConfFile:
    reason = ""
    if one.error:
        reason = f"no runtime can load it: {one.error}"
    elif of_multus(one):
        reason = "it is Multus' own, and Multus would call itself"
    elif is_loopback(one):
        reason = "it defines nothing but the loopback"
    if reason:
        raise NodenetError(f"Cannot {verb}: {shown} cannot be the master: {reason}", file=shown)
    return one


def _in_effect(found: ConfDir, runtimes: Settings, verb: str) -> ConfFile:
    """Return the file that the runtimes use when neither Multus nor the loopback is there."""
    others = [one for one in without_multus(found.files) if not is_loopback(one)]
    told = {answer["file"] for answer in predict(others, runtimes).values() if answer["file"]}
    files = [one for one in others if one.shown in told]
    if len(files) > 1:
        names = ", ".join(f"{one.network} ({one.shown})" for one in files)
        raise NodenetError(f"Cannot {verb}: the runtimes use different networks, {names}; name the master")
    if not files:
        raise _not_found(found, "", verb)
    return files[0]


def _not_found(found: ConfDir, wanted: str, verb: str) -> NodenetError:
    for one in found.files:
        if wanted and wanted in (one.network, one.name):
            return _unfit(one, verb)
    seen = [one.network or one.shown for one in found.files if not one.error]
    broken = [f"{one.shown} ({one.error})" for one in found.files if one.error]
    reason = f"seen: {', '.join(dict.fromkeys(seen))}" if seen else "no file there defines a network"
    if not found.exists:
        reason = "there is no such directory"
    if broken:
        reason += f"; not usable: {', '.join(broken)}"
    what = f"master network {wanted} not found" if wanted else "no network for a master found"
    return NodenetError(f"Cannot {verb}: {what} in {found.path} ({reason})", seen=seen)


def _unfit(one: ConfFile, verb: str) -> NodenetError:
    try:
        _fit(one, one.shown, verb)
    except NodenetError as refused:
        return refused
    return NodenetError(f"Cannot {verb}: {one.shown} cannot be the master")


def _plugins_of_broken(one: ConfFile) -> list[object]:
    listed = gojson.field(one.tree, "plugins")
    return listed if isinstance(listed, list) else [one.tree]
