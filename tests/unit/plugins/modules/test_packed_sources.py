# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Code that action plugins send along: it is no secret, but does not belong in a node's log or in a result."""

from __future__ import annotations

import importlib
import json

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

PACKED = "eNo" + "x" * 100000


@pytest.mark.usefixtures("_process_of_a_module")
@pytest.mark.parametrize(
    ("name", "option", "more"),
    [
        ("host_local_gc_timer", "program_sources", {"networks": [], "apply": False}),
        ("plugin_binaries", "embedded_sources", {"required": []}),
    ],
)
def test_code_is_neither_logged_nor_returned(name, option, more, monkeypatch, capsys, tmp_path):
    logged = []
    monkeypatch.setattr(AnsibleModule, "log", lambda _self, text, **_more: logged.append(str(text)))
    folders = {
        "host_local_gc_timer": ("unit_dir", "settings_dir", "program_dir", "state_dir", "conf_dir"),
        "plugin_binaries": ("bin_dir", "state_dir"),
    }
    options = dict(more, **{key: str(tmp_path / key) for key in folders[name]}, **{option: PACKED})
    for folder in folders[name]:
        (tmp_path / folder).mkdir()
    module = importlib.import_module("ansible_collections.nodenet.cni.plugins.modules." + name)
    with patch_module_args(dict(options, _ansible_diff=True)), pytest.raises(SystemExit):
        module.main()
    out = capsys.readouterr().out
    assert not json.loads(out).get("failed"), out
    assert logged
    assert PACKED not in "".join(logged) + out
