# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Executables of this collection after what a distribution's upgrade does to their Python."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import embedded_health, executables, findings

PYTHON = os.path.realpath(sys.executable)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(executables.__file__)))


@pytest.fixture
def bin_dir(tmp_path):
    path = tmp_path / "bin"
    executables.build(ROOT, str(path), ["host-local"], PYTHON)
    return path


def look(bin_dir):
    rows, facts = embedded_health.look(str(bin_dir))
    findings.from_facts(facts)  # each has all that its text names
    return rows, [fact["kind"] for fact in facts]


def edit(bin_dir, old, new):
    """Change what the launcher or, where it names one, its starter says."""
    edited = 0
    for path in [bin_dir / "host-local", *(bin_dir / executables.STORE).glob("*/host-local")]:
        data = path.read_bytes()
        edited += old in data
        path.write_bytes(data.replace(old, new))
    assert edited


def byte_code(bin_dir):
    return sorted((bin_dir / executables.STORE).rglob("*.code"))


def test_as_installed(bin_dir):
    (row,), kinds = look(bin_dir)
    assert kinds == []
    assert row["name"] == "host-local"
    assert row["byte_code"] == "fresh"
    assert row["python"] == PYTHON
    assert row["python_version"] == ".".join(str(part) for part in sys.version_info[:3])
    assert os.path.isdir(str(bin_dir / executables.STORE / row["version"]))


def test_nothing_of_ours(tmp_path):
    (tmp_path / "host-local").write_bytes(b"\x7fELF somebody's")
    assert look(tmp_path) == ([], [])
    assert look(tmp_path / "nowhere") == ([], [])


def test_a_python_that_is_gone(bin_dir):
    edit(bin_dir, PYTHON.encode(), b"/usr/bin/python3.0")
    (row,), kinds = look(bin_dir)
    assert kinds == ["bin-embedded-python"]
    assert (row["python"], row["python_version"]) == ("/usr/bin/python3.0", None)


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho what\n", "#!/nowhere\n"])
def test_a_python_that_is_none(bin_dir, tmp_path, script):
    other = tmp_path / "python3"
    other.write_text(script)
    other.chmod(0o755)
    edit(bin_dir, PYTHON.encode(), str(other).encode())
    assert look(bin_dir)[1] == ["bin-embedded-python"]


def test_another_version_of_python_in_its_place(bin_dir, tmp_path):
    """As when 3.11.2 becomes 3.12.1 under the path that the launcher names."""
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho ff0d0d0a cpython-399 3 99 1\n")
    other.chmod(0o755)
    edit(bin_dir, PYTHON.encode(), str(other).encode())
    (row,), kinds = look(bin_dir)
    assert kinds == ["bin-embedded-stale"]
    assert (row["byte_code"], row["python_version"]) == ("stale", "3.99.1")


def test_another_interpreter_is_asked(bin_dir, tmp_path):
    """A script that runs this very Python: what it says is what we know of ourselves."""
    other = tmp_path / "python3"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    edit(bin_dir, PYTHON.encode(), str(other).encode())
    assert look(bin_dir)[0][0]["byte_code"] == "fresh"


@pytest.mark.parametrize("damage", ["gone", "magic", "cut", "half", "bit"])
def test_byte_code_that_python_does_not_take(bin_dir, damage):
    victim = byte_code(bin_dir)[0]
    if damage == "gone":
        victim.unlink()
    else:
        data = victim.read_bytes()
        damaged = {"magic": b"\0\0\0\0" + data[4:], "cut": b"", "half": data[: len(data) // 2]}
        victim.write_bytes(damaged.get(damage, data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]))
    assert look(bin_dir)[1] == ["bin-embedded-stale"]


def test_code_that_is_gone(bin_dir):
    shutil.rmtree(str(bin_dir / executables.STORE))
    (row,), kinds = look(bin_dir)
    assert kinds == ["bin-embedded-code"]
    assert row["byte_code"] == "missing"


def test_a_directory_that_was_moved_away_from_what_the_launcher_names(bin_dir, tmp_path):
    moved = tmp_path / "moved"
    os.rename(str(bin_dir), str(moved))
    assert look(moved)[1] == ["bin-embedded-code"]
