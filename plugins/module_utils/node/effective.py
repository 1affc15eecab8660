# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which network a new pod gets from which runtime: containerd takes the first file or nothing, CRI-O skips."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .confdir import ConfFile

#: The runtimes whose choice is predicted: key in results, and what people call it.
RUNTIMES = {"containerd": "containerd", "crio": "CRI-O"}


class Settings:
    """What is known of the runtimes on this node.

    installed: test for a plugin's executable (confdir.installed_plugins); None: take all as present. speaks: tells the
    CNI versions of a plugin, [] if it cannot be asked; None: take all as fit. containerd_max: how many files containerd
    loads, 0 for all. crio_default_network: CRI-O's ``cni_default_network``. unknown: by runtime, why nobody can tell.
    notes: by runtime, what to add to the reason.
    """

    def __init__(
        self,
        installed: Callable[[str], bool] | None = None,
        speaks: Callable[[str], list[str]] | None = None,
        crio_default_network: str = "",
    ) -> None:
        self.installed = installed
        self.speaks = speaks
        self.containerd_max = 1
        self.crio_default_network = crio_default_network
        self.unknown: dict[str, str] = {}
        self.notes: dict[str, str] = {}

    def read_runtimes(self, conf_dir: str, containerd_config: str, crio_config: str) -> None:
        """Take over what the runtimes' configurations say, if these name *conf_dir*; "" means the defaults."""
        for runtime, path in (("containerd", containerd_config), ("crio", crio_config)):
            if not path or not (os.path.lexists(path) or (runtime == "crio" and os.path.lexists(path + ".d"))):
                continue
            from . import runtime_config  # many nodes have one of the two

            config = getattr(runtime_config, runtime)(path)
            if config.unknown:
                self.unknown[runtime] = config.unknown
            elif config.disabled:
                self.notes[runtime] = "; if its CRI plugin ran, but that is switched off"
            elif os.path.realpath(config.conf_dir) != os.path.realpath(conf_dir):
                self.notes[runtime] = f"; if it read this directory, but it is set to {config.conf_dir}"
            elif runtime == "containerd":
                self.containerd_max = config.max_networks
            else:
                self.crio_default_network = self.crio_default_network or config.default_network


def predict(files: list[ConfFile], settings: Settings | None = None) -> dict[str, dict[str, Any]]:
    """Tell for each runtime which network a new pod would get with these files, and why.

    :param files: in load order
    :returns: by runtime ``{"network": name or None, "file": file name or None, "known": bool, "reason": text}``
    """
    settings = settings or Settings()
    found = {"containerd": _containerd(files, settings.containerd_max), "crio": _crio(files, settings)}
    for runtime, answer in found.items():
        answer["known"] = runtime not in settings.unknown
        if not answer["known"]:
            answer.update(network=None, file=None, reason=f"unknown: {settings.unknown[runtime]}")
        answer["reason"] += settings.notes.get(runtime, "")
    return found


def _containerd(files: list[ConfFile], most: int) -> dict[str, Any]:
    if not files:
        return _nothing("the directory holds no configuration file")
    for one in files[: most or len(files)]:
        if one.error:
            which = "first file" if one is files[0] else "file"
            return _nothing(f"the {which} {one.shown} cannot be loaded ({one.error}), so no file is")
    return _chosen(files[0].network, files[0], "first file in load order")


def _crio(files: list[ConfFile], settings: Settings) -> dict[str, Any]:
    skipped = []
    wanted = settings.crio_default_network
    for one in files:
        fault = one.error or _unfit(one, settings)
        network = one.network or one.shown
        if fault:
            skipped.append(f"{one.shown} ({fault})")
        elif not wanted or network == wanted:
            note = f"; skipped: {', '.join(skipped)}" if skipped else ""
            return _chosen(
                network, one, ("its default network" if wanted else "first usable file in load order") + note
            )
    note = f"; skipped: {', '.join(skipped)}" if skipped else ""
    if wanted:
        return _nothing(f"its default network {wanted} is defined by no usable file{note}")
    return _nothing(f"the directory holds no usable configuration file{note}")


def _unfit(one: ConfFile, settings: Settings) -> str:
    """Return why CRI-O does not take a file that can be loaded: it looks for each plugin and asks its versions."""
    installed, speaks = settings.installed, settings.speaks
    missing = [name for name in one.types if installed is not None and not installed(name)]
    if missing:
        return f"no plugin {', '.join(missing)}"
    if speaks is None or not one.cni_version:
        return ""
    for name in one.types:
        told = speaks(name)
        if told and one.cni_version not in told:
            return f"{name} does not speak {one.cni_version}"
    return ""


def _chosen(network: str, one: ConfFile, reason: str) -> dict[str, Any]:
    return {"network": network, "file": one.shown, "reason": reason}


def _nothing(reason: str) -> dict[str, Any]:
    return {"network": None, "file": None, "reason": reason}
