# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

NAME = "network_probe"
# the loopback interface of any namespace is a network of its own
LOOPBACK = """#!/bin/sh
case $CNI_COMMAND in
ADD) cat <<END
{"cniVersion": "1.0.0", "interfaces": [{"name": "lo", "sandbox": "$CNI_NETNS"}],
 "ips": [{"interface": 0, "address": "127.0.0.1/8"}]}
END
esac
"""


@pytest.fixture
def options(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("not run: network namespaces need root")
    for name in ("bin", "net.d"):
        (tmp_path / name).mkdir()
    plugin = tmp_path / "bin" / "self"
    plugin.write_text(LOOPBACK)
    plugin.chmod(0o755)
    conflist = {"cniVersion": "1.0.0", "name": "own", "plugins": [{"type": "self"}]}
    (tmp_path / "net.d" / "10-own.conflist").write_text(json.dumps(conflist))
    return {
        "network": "own",
        "conf_dir": str(tmp_path / "net.d"),
        "bin_dir": str(tmp_path / "bin"),
        "state_dir": str(tmp_path / "state"),
        "netns_dir": str(tmp_path / "netns"),
    }


def test_a_probe(run_module, options, tmp_path):
    found = run_module(NAME, options)
    assert not found.get("failed"), found
    assert (found["probed"], found["changed"], found["network"]) == (True, False, "own")
    assert found["source"] == str(tmp_path / "net.d" / "10-own.conflist")
    assert [one["command"] for one in found["calls"]] == ["ADD", "CHECK", "DEL"]
    assert [one["ok"] for one in found["checks"]] == [True, True, None]
    assert [item["code"] for item in found["findings"]] == ["NODE029"]
    assert os.listdir(str(tmp_path / "netns")) == []
    assert not run_module(NAME, options)["changed"]


def test_other_ways_to_name_the_network(run_module, options, tmp_path):
    path = options["conf_dir"] + "/10-own.conflist"
    name = options.pop("network")
    assert run_module(NAME, dict(options, conflist=path))["network"] == name
    with open(path) as stream:
        assert run_module(NAME, dict(options, config=json.load(stream)))["source"] == "config"


@pytest.mark.parametrize("more", [{"network": None}, {"conflist": "/x"}, {"config": {}}])
def test_one_network_is_named(fails, options, more):
    message = fails(NAME, {key: value for key, value in dict(options, **more).items() if value is not None})
    assert "network" in message


def test_check_mode_changes_nothing(run_module, options, tree, tmp_path):
    before = tree(tmp_path)
    found = run_module(NAME, options, check=True)
    assert (found["probed"], found["changed"], found["calls"]) == (False, False, [])
    assert tree(tmp_path) == before


def test_a_failure_names_the_plugin_and_carries_everything(run_module, options, tmp_path):
    (tmp_path / "bin" / "self").write_text("#!/bin/sh\n[ $CNI_COMMAND = DEL ] || { echo no >&2; exit 1; }\n")
    found = run_module(NAME, options)
    assert found["failed"]
    assert found["msg"] == (
        'Cannot prove network own (%s): plugin self failed at ADD: netplugin failed: "no\\n"'
        % (tmp_path / "net.d" / "10-own.conflist")
    )
    assert [one["command"] for one in found["calls"]] == ["ADD", "DEL"]
    assert [item["code"] for item in found["findings"]] == ["NODE021"]


def test_a_skipped_network(run_module, options):
    options.pop("network")
    config = {"cniVersion": "1.0.0", "name": "lan", "plugins": [{"type": "macvlan"}]}
    found = run_module(NAME, dict(options, config=config))
    assert (found["skipped"], found["probed"], found["changed"]) == (True, False, False)
    assert found["msg"].startswith("Skipped the probe of network lan (config): plugin macvlan puts it on a segment")
