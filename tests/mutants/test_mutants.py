# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Planted faults: each one must turn the test red that mutants.json names for it.

A fault is one exact replacement of text in a copy of the tree. The same tests must be green in the copy without it, and
red must mean a failed assertion, not a file that no longer loads.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = json.loads(Path(__file__).with_name("mutants.json").read_text("utf-8"))
FOLDERS = (
    "plugins/module_utils",
    "plugins/plugin_utils",
    "tests/conformance",
    "tests/cases",
    "tests/unit/plugins/module_utils",
    "tests/unit/plugins/plugin_utils",
)
FILES = (
    "pytest.ini",
    "tests/conftest.py",
    *(f"tests/unit/{name}.py" for name in ("api_server", "audits", "plugin_files")),
)
# The races need this long to show a fault surely.
RACE_SECONDS = "2"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of what the tests need, where it is importable as the collection."""
    base = tmp_path_factory.mktemp("mutants")
    root = base / "ansible_collections" / "nodenet" / "cni"
    for folder in FOLDERS:
        shutil.copytree(str(ROOT / folder), str(root / folder), ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        if (ROOT / name).exists():
            shutil.copy(str(ROOT / name), str(root / name))
    yield root
    shutil.rmtree(str(base))


def run(root, *tests):
    """Run tests in the copy; return exit code and output."""
    env = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "NODENET_TALLY", "NODENET_SOAK")
    }
    env.update(PYTHONPATH=str(root.parents[2]), PYTHONDONTWRITEBYTECODE="1", NODENET_RACE_SECONDS=RACE_SECONDS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "--tb=line", "-p", "no:cacheprovider", *tests],
        cwd=str(root),
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def test_all_is_green_without_a_fault(copy):
    code, output = run(copy, *sorted({mutant["test"] for mutant in MUTANTS}))
    assert code == 0, output


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant["name"].replace(" ", "-") for mutant in MUTANTS])
def test_fault_is_seen(copy, mutant):
    path = copy / mutant["file"]
    original = path.read_text("utf-8")
    assert original.count(mutant["replace"]) == 1, "%s has changed: bring mutants.json up to date" % mutant["file"]
    path.write_text(original.replace(mutant["replace"], mutant["with"]), "utf-8")
    try:
        code, output = run(copy, mutant["test"])
    finally:
        path.write_text(original, "utf-8")
    assert code == 1, "%s went unseen:\n%s" % (mutant["name"], output)
    assert re.search(r"^1 failed\b", output, re.MULTILINE), "not a failed assertion:\n%s" % output
    assert "SyntaxError" not in output
    assert not re.search(r"\bImportError", output)  # a ZipImportError is a fault that a program of ours met
