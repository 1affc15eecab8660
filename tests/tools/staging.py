# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A copy of the collection for ansible-test and for the build, and the link for everything else.

ansible-test wants the collection below a folder `ansible_collections` that is no part of another git repository, and
the build packs whatever lies around. So both get a copy of exactly the files that git knows or would accept.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile

import venvs

ROOT = venvs.ROOT
COLLECTION = os.path.join("ansible_collections", "nodenet", "cni")
STAND_IN = """\
# Stands in for the bootstrap script of pip that ansible-test would download: runs pip from its own wheel.
import sys
sys.path.insert(0, {wheel!r})
from pip._internal.cli.main import main
dropped = ("--no-setuptools", "--no-wheel")
sys.exit(main(["install", "--upgrade", "--find-links", {folder!r}] + [a for a in sys.argv[1:] if a not in dropped]))
"""


def link() -> str:
    """The folder for PYTHONPATH and ANSIBLE_COLLECTIONS_PATH, in which the clone appears as the collection."""
    folder = os.path.join(ROOT, ".dev")
    path = os.path.join(folder, COLLECTION)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.islink(path):
        with contextlib.suppress(FileExistsError):
            os.symlink(os.path.join("..", "..", ".."), path)
    return folder


def files() -> list[str]:
    command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError) as exc:
        raise SystemExit(
            "Cannot list the files of the collection in %s: git is needed for it (%s)" % (ROOT, exc)
        ) from exc
    return [name for name in listed if name and os.path.lexists(os.path.join(ROOT, name))]


@contextlib.contextmanager
def copy():
    """Yield the root of a staged copy of the collection; it is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="nodenet-cni-") as top:
        target = os.path.join(top, COLLECTION)
        for name in files():
            destination = os.path.join(target, name)
            os.makedirs(os.path.dirname(destination), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), destination, follow_symlinks=False)
        yield target


def seed(venv: str) -> None:
    """Put a stand-in for pip's bootstrap script where ansible-test looks before it downloads one."""
    site = subprocess.run(
        [os.path.join(venv, "bin", "python"), "-c", "import ansible_test; print(list(ansible_test.__path__)[0])"],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.decode()
    with open(os.path.join(site.strip(), "_internal", "python_requirements.py"), encoding="utf-8") as stream:
        versions = sorted(set(re.findall(r"\bpip='([0-9.]+)'", stream.read())))
    if not versions:
        raise SystemExit("Cannot find in ansible-test of %s which pip it wants" % venv)
    for version in versions:
        script = os.path.join(
            os.path.expanduser("~"), ".ansible", "test", "cache", "get_pip_%s.py" % version.replace(".", "_")
        )
        if os.path.exists(script):
            continue
        folder = os.path.join(venvs.cache(), "wheels")
        wheel = os.path.join(folder, "pip-%s-py3-none-any.whl" % version)
        if not os.path.exists(wheel):
            pip = [
                os.path.join(venv, "bin", "python"),
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--dest",
                folder,
            ]
            venvs.call([*pip, "--ignore-requires-python", "pip==%s" % version])
        os.makedirs(os.path.dirname(script), exist_ok=True)
        with open(script + ".new", "w", encoding="utf-8") as stream:
            stream.write(STAND_IN.format(wheel=wheel, folder=folder))
        os.replace(script + ".new", script)
