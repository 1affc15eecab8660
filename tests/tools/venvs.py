# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the virtual environments of the tests, outside the clone, once for each set of requirements and interpreter."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys

import packages
import pythons

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PREFIX = "Cannot make a virtual environment with %s: "


def cache() -> str:
    """The folder that holds them: nodenet-cni below XDG_CACHE_HOME."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(folder, "nodenet-cni")


def clean_environment(**extra: str) -> dict[str, str]:
    """The caller's environment without what redirects imports; pip's own settings stay."""
    dropped = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    return dict({key: value for key, value in os.environ.items() if key not in dropped}, **extra)


def call(command: list[str], **extra: str) -> None:
    """Run a set-up command; its output is shown only when it fails."""
    done = subprocess.run(
        command,
        env=clean_environment(**extra),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(done.stdout.decode(errors="replace")[-8000:])
        raise SystemExit("Cannot set up the test environment: %s ended with code %d" % (command, done.returncode))


def can(python: str, *arguments: str) -> bool:
    command = [python, *arguments]
    return subprocess.run(command, env=clean_environment(), capture_output=True, check=False).returncode == 0


def create(python: str, folder: str) -> None:
    """Make an empty environment: by the standard module, else by virtualenv from pip, else say what to install."""
    if not can(python, "-c", "import ensurepip, venv") and not can(python, "-m", "pip", "--version"):
        why = packages.obstacle()
        if why is not None or not packages.install(["python3-venv"]) or not can(python, "-c", "import ensurepip, venv"):
            raise SystemExit(
                (PREFIX % python)
                + "it has neither ensurepip nor pip; install pip for it (Debian: python3-venv or python3-pip)"
            )
    if can(python, "-c", "import ensurepip, venv"):
        call([python, "-m", "venv", folder])
        return
    tool = os.path.join(cache(), "virtualenv-%s" % os.path.basename(folder))
    try:
        call([python, "-m", "pip", "install", "--quiet", "--target", tool, "virtualenv"])
        call([python, "-m", "virtualenv", "--quiet", folder], PYTHONPATH=tool)
    finally:
        shutil.rmtree(tool, ignore_errors=True)


@contextlib.contextmanager
def only_one(path: str):
    with open(path, "w", encoding="ascii") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def ensure(name: str, python: str) -> str:
    """The folder of the environment for tests/requirements-<name>.txt on `python`, made when it is missing."""
    requirements = os.path.join(ROOT, "tests", "requirements-%s.txt" % name)
    with open(requirements, "rb") as stream:
        content = stream.read()
    answer = pythons.probe(python)
    if answer is None:
        raise SystemExit((PREFIX % python) + "it does not run")
    release = subprocess.run([python, "-V"], capture_output=True, check=True).stdout
    key = hashlib.sha256(content + release + answer[1].encode()).hexdigest()[:12]
    folder = os.path.join(cache(), "%s-py%d.%d-%s" % (name, answer[0][0], answer[0][1], key))
    marker = os.path.join(folder, "complete")
    if os.path.exists(marker):
        return folder
    os.makedirs(cache(), exist_ok=True)
    with only_one(folder + ".lock"):
        if not os.path.exists(marker):
            print("setting up %s" % os.path.basename(folder), file=sys.stderr, flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            create(answer[1], folder)
            call([os.path.join(folder, "bin", "python"), "-m", "pip", "install", "--quiet", "-r", requirements])
            with open(marker, "w", encoding="ascii"):
                pass
    return folder


if __name__ == "__main__":
    print(ensure(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else pythons.base()))
