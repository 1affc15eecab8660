# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a module in this process, and looking at the disk before and after."""

from __future__ import annotations

import importlib
import json
import os
import time
from pathlib import Path

import pytest
from ansible.module_utils.common import warnings
from ansible.module_utils.testing import patch_module_args

CASES = Path(__file__).resolve().parents[3] / "cases"


@pytest.fixture
def _process_of_a_module(monkeypatch):
    """What Ansible keeps for each process: warnings given so far, and whether it is the controller's."""
    monkeypatch.setattr(warnings, "_global_warnings", type(warnings._global_warnings)())
    internal = getattr(warnings, "_internal", None)  # cores before 2.19 have none
    if internal is not None:
        monkeypatch.setattr(internal, "is_controller", False)


@pytest.fixture
def run_module(capsys, _process_of_a_module):
    """Call run_module(name, options, check=False, diff=False): the module's result as a user would register it."""

    def run(name, options, check=False, diff=False):
        module = importlib.import_module("ansible_collections.nodenet.cni.plugins.modules." + name)
        capsys.readouterr()
        warnings._global_warnings.clear()
        # no_log is what the setting no_target_syslog does: newer cores refuse a NUL in what they send to syslog
        arguments = dict(options, _ansible_check_mode=check, _ansible_diff=diff, _ansible_no_log=True)
        with patch_module_args(arguments), pytest.raises(SystemExit) as left:
            module.main()
        result = json.loads(capsys.readouterr().out)
        assert bool(left.value.code) == bool(result.get("failed"))
        result.pop("invocation", None)
        return result

    return run


@pytest.fixture
def fails(run_module):
    """Like run_module for a task that has to fail: the message, which names its object and changes nothing."""

    def run(name, options, **more):
        result = run_module(name, options, **more)
        assert result.get("failed"), result
        assert "Traceback" not in json.dumps(result)
        assert "\n" not in result["msg"]
        return result["msg"]

    return run


@pytest.fixture
def case():
    """Load a public case of tests/cases by its id."""
    return lambda name: json.loads((CASES / (name + ".json")).read_text(encoding="utf-8"))


@pytest.fixture
def fill():
    """Call fill(root, files): write a case's data dir; a file without ``age_s`` is old."""

    def write(root, files):
        for name, one in files.items():
            path = Path(str(root)) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(one["content"].encode())
            when = time.time() - one.get("age_s", 90000)
            os.utime(str(path), (when, when))

    return write


@pytest.fixture
def tree():
    """Call tree(root): every path below it with type, mode, times and content."""

    def look(root):
        found = {}
        for here, directories, names in os.walk(str(root)):
            for name in ["", *directories, *names]:
                path = os.path.join(here, name)
                status = os.lstat(path)
                content = Path(path).read_bytes() if os.path.isfile(path) else b""
                found[path] = (status.st_mode, status.st_mtime_ns, status.st_ctime_ns, content)
        return found

    return look
