# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An SSH server for the nodes of tests: this machine's own, else one that is unpacked and never installed.

Installing the distribution's package would start a server on this machine.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess

import packages
import venvs

SERVER = "/usr/sbin/sshd"


def layer() -> str | None:
    """The folder with the server's files as they lie below /, None if this machine has them itself.

    :raises OSError: there is none and none can be had; the text says why
    """
    if os.path.exists(SERVER):
        return None
    folder = os.path.join(venvs.cache(), "sshd")
    if os.path.exists(os.path.join(folder, "complete")):
        return os.path.join(folder, "root")
    why = packages.obstacle()
    if why is not None:
        raise OSError("there is no %s (Debian package openssh-server) and %s" % (SERVER, why))
    os.makedirs(venvs.cache(), exist_ok=True)
    with venvs.only_one(folder + ".lock"):
        if not os.path.exists(os.path.join(folder, "complete")):
            shutil.rmtree(folder, ignore_errors=True)
            _unpack(folder)
    return os.path.join(folder, "root")


def _unpack(folder: str) -> None:
    archives, root = os.path.join(folder, "archives"), os.path.join(folder, "root")
    os.makedirs(os.path.join(archives, "partial"))
    fetch = ["--download-only", "--no-install-recommends", "-y", "-o", "Dir::Cache::archives=" + archives]
    wanted = [*fetch, "install", "openssh-server"]
    if not (packages.apt(*wanted) or (packages.apt("update") and packages.apt(*wanted))):
        raise OSError("there is no %s and fetching the Debian package openssh-server failed" % SERVER)
    for name in sorted(glob.glob(os.path.join(archives, "*.deb"))):
        subprocess.run(["dpkg-deb", "-x", name, root], stdin=subprocess.DEVNULL, check=True)
    for name in ("bin", "sbin", "lib"):
        # on the machine these are links into /usr; a directory in a layer above would hide all that is behind them
        if os.path.isdir(os.path.join(root, name)) and os.path.islink("/" + name):
            shutil.copytree(
                os.path.join(root, name), os.path.join(root, "usr", name), symlinks=True, dirs_exist_ok=True
            )
            shutil.rmtree(os.path.join(root, name))
    for name in ("bin", "share"):  # the client, and what nobody reads
        shutil.rmtree(os.path.join(root, "usr", name), ignore_errors=True)
    shutil.rmtree(os.path.join(root, "etc"), ignore_errors=True)
    if not os.path.exists(root + SERVER):
        raise OSError("the Debian package openssh-server has no %s" % SERVER)
    shutil.rmtree(archives)
    with open(os.path.join(folder, "complete"), "w", encoding="ascii"):
        pass
