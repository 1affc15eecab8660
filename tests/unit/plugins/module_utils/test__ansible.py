# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

from ansible_collections.nodenet.cni.plugins.module_utils import _ansible, _options
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import CniError, NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import sysctls

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def run(capsys):
    def call(function):
        with patch_module_args({}), pytest.raises(SystemExit) as left:
            _ansible.run(AnsibleModule(argument_spec={}), function)
        result = json.loads(capsys.readouterr().out)
        assert bool(left.value.code) == bool(result.get("failed"))
        return result

    return call


def raising(exc):
    def function():
        raise exc

    return function


def test_a_result_leaves_the_module(run):
    result = run(lambda: {"changed": True, "answer": 42})
    assert (result["changed"], result["answer"]) == (True, 42)


def test_an_expected_failure_is_its_text_and_its_facts(run):
    result = run(raising(NodenetError("Cannot do this in there: because", where="/x", msg="no", changed=True)))
    assert (result["msg"], result["where"]) == ("Cannot do this in there: because", "/x")
    assert not result.get("changed")


def test_an_error_of_the_protocol_is_one_too(run):
    assert run(raising(CniError(7, "missing network name")))["msg"] == "missing network name"


@pytest.mark.parametrize(
    ("exc", "text"),
    [
        (OSError(13, "Permission denied", "/etc/x"), "Cannot use /etc/x on this node: Permission denied"),
        (OSError(2, "No such file", b"/etc/\xff"), "Cannot use /etc/\udcff on this node: No such file"),
        (OSError(18, "Cross", "/a", None, "/b"), "Cannot use /a and /b on this node: Cross"),
        (OSError("odd"), "Cannot use a file on this node: odd"),
    ],
)
def test_an_operating_system_error_names_its_path(exc, text):
    assert _ansible.os_error_text(exc) == text


def test_no_fact_has_a_key_that_ansible_takes_for_a_file():
    """It adds the owner, group, mode and more of a file to any result with a key `path` or `dest`."""
    found = []
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "NodenetError":
                found += [f"{path.name}:{node.lineno}" for one in node.keywords if one.arg in ("path", "dest")]
    assert found == []


@pytest.mark.parametrize(
    ("exc", "text"),
    [
        (NodenetError("Cannot use \udcff: because"), "Cannot use \\xff: because"),
        (OSError(13, "Permission denied", b"/etc/\xff"), "Cannot use /etc/\\xff on this node: Permission denied"),
    ],
)
def test_a_name_that_is_no_text_can_be_sent(run, exc, text):
    assert run(raising(exc))["msg"] == text


def test_a_path_with_a_nul_byte(capsys):
    spec = {"conf_dir": {"type": "path"}, "name": {"type": "str"}, "other": {"type": "path"}}
    # as with no_target_syslog: newer cores refuse a NUL in what they send to syslog
    arguments = {"conf_dir": "/a\0b", "name": "c\0d", "_ansible_no_log": True}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        _ansible.run(AnsibleModule(argument_spec=spec), dict)
    result = json.loads(capsys.readouterr().out)
    assert result["msg"] == "Cannot use '/a\\x00b' as conf_dir: a path holds no NUL byte"
    assert result["failed"]


@pytest.mark.parametrize(
    ("option", "value", "bad"),
    [
        ("bin_dir", "opt/cni/bin", "opt/cni/bin"),
        ("bin_dir", "", ""),
        ("state_dir", "", ""),
        ("data_dir", "./networks", "./networks"),
        ("results_dirs", ["/var/lib/cni", "run/cni"], "run/cni"),
        ("bin_dir", None, None),
        ("data_dir", "", None),
        ("data_dir", "~/networks", None),
        ("src", "plugins.tgz", None),
    ],
)
def test_a_path_is_an_absolute_one(capsys, option, value, bad):
    kinds = {name: {"type": "path"} for name in ("bin_dir", "state_dir", "data_dir", "src")}
    spec = dict(kinds, results_dirs={"type": "list", "elements": "path"})
    with patch_module_args({option: value}), pytest.raises(SystemExit):
        _ansible.run(AnsibleModule(argument_spec=spec), dict)
    result = json.loads(capsys.readouterr().out)
    assert result.get("failed", False) == (bad is not None)
    if bad is not None:
        assert result["msg"] == f"Cannot use {bad!r} as {option}: it has to be an absolute path"


def test_a_defect_stays_a_traceback():
    with patch_module_args({}), pytest.raises(KeyError):
        _ansible.run(AnsibleModule(argument_spec={}), raising(KeyError("x")))


def test_diff():
    assert _ansible.diff(["a"], ["a", "b"], "/d") == {
        "before": "a\n",
        "after": "a\nb\n",
        "before_header": "/d",
        "after_header": "/d",
    }


def test_findings_are_warnings_unless_they_are_for_information():
    def found(severity):
        return dict(code="X1", severity=severity, where="/x", text="a " + severity, hint="mend it", go="fails")

    class Module:
        def __init__(self):
            self.warnings = []
            self.warn = self.warnings.append

    module = Module()
    _ansible.warn_findings(module, [found("error"), found("warning"), found("info")])
    assert module.warnings == ["/x: a error; mend it (X1)", "/x: a warning; mend it (X1)"]


def test_places_of_kernel_settings_stand_in_the_options_as_in_the_library():
    assert _options.BOOT["sysctl_others"]["default"] == list(sysctls.OTHER_PLACES)


@pytest.mark.parametrize("reason", ["Permission denied", "Operation not permitted", "no space left on device"])
@pytest.mark.parametrize("uid", [0, 1000])
def test_who_is_not_root_is_told_so_when_something_is_denied(run, monkeypatch, reason, uid):
    monkeypatch.setattr(_ansible.os, "geteuid", lambda: uid)
    for error in (NodenetError(f"Cannot write x in /etc: {reason}"), OSError(13, reason, "/etc/x")):
        told = run(raising(error))["msg"].endswith("; the task does not run as root, as become would let it")
        assert told is (uid != 0 and "device" not in reason)
