# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.nodenet.cni.plugins.filter import lint_conflist as plugin

CASES = Path(__file__).resolve().parents[3] / "cases"
GOOD = {"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "bridge", "mtu": 1450}]}
BAD = dict(GOOD, plugins=[{"type": "bridge", "mtu": "1450", "brigde": "x"}])


def lint(*arguments, **options):
    (function,) = plugin.FilterModule().filters().values()
    return function(*arguments, **options)


@pytest.mark.parametrize("form", [lambda value: value, json.dumps, lambda value: json.dumps(value).encode()])
def test_text_and_dictionary_are_the_same(form):
    assert lint(form(GOOD)) == []
    found = lint(form(BAD))
    assert [(one["code"], one["severity"], one["where"]) for one in found] == [
        ("CONF026", "error", "net.conflist"),
        ("CONF025", "warning", "net.conflist"),
    ]
    assert list(found[0]) == ["code", "severity", "where", "text", "hint", "go"]


def test_the_least_grave_severity():
    assert [one["severity"] for one in lint(BAD, severity="error")] == ["error"]
    assert len(lint(BAD, severity="warning")) == len(lint(BAD, severity="info")) == 2


def test_the_name_of_the_file_decides_what_it_is():
    assert lint(GOOD, "conflists/10-net.conflist") == []
    assert [one["code"] for one in lint(GOOD, "conflists/10-net.conf")] == ["CONF009"]
    single = {"cniVersion": "1.0.0", "name": "net", "type": "loopback"}
    assert lint(single) == []
    (found,) = lint(single, filename="conflists/10-net.conflist")
    assert (found["code"], found["where"]) == ("CONF010", "conflists/10-net.conflist")


def test_text_that_is_no_configuration():
    assert [one["code"] for one in lint("")] == ["CONF003"]
    assert [one["code"] for one in lint("[]")] == ["CONF008"]
    assert [one["where"] for one in lint("{")] == ["network.conflist"]


def test_what_only_the_node_knows_is_left_out(tmp_path):
    subnets = tmp_path / "subnet.env"
    subnets.write_text("FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.0.1/31\n")
    assert lint(dict(GOOD, plugins=[{"type": "flannel", "subnetFile": str(subnets)}])) == []


@pytest.mark.parametrize(
    ("value", "options", "words"),
    [
        (None, {}, "wants a conflist as text or as a dictionary, not NoneType"),
        ([GOOD], {}, "not list"),
        (dict(GOOD, when=datetime.date(2026, 11, 29)), {}, "cannot be written as JSON"),
        (GOOD, {"severity": "fatal"}, "severity has to be one of error, warning, info, not 'fatal'"),
        (GOOD, {"filename": "10-net.yaml"}, "filename has to end in one of .conf, .conflist, .json, not '10-net.yaml'"),
    ],
)
def test_what_the_filter_refuses(value, options, words):
    with pytest.raises(AnsibleFilterError) as caught:
        lint(value, **options)
    assert str(caught.value).startswith("nodenet.cni.lint_conflist: ")
    assert words in str(caught.value)


@pytest.mark.parametrize("path", sorted(CASES.glob("conflist-*.json")), ids=lambda path: path.stem)
def test_cases(path):
    """Each public case with a file that is wrong by itself, and none that is right."""
    data = json.loads(path.read_text(encoding="utf-8"))
    check = data["check"]
    asks_the_node = "plugin_versions" in data["input"]
    for name, content in data["input"]["conf_dir"].items():
        if "/" in name:
            continue
        found = lint(content.get("raw") or content, name)
        wrong = [one for one in found if one["severity"] == "error"]
        if name in check.get("invalid", []) or (check.get("valid") is False and not asks_the_node):
            assert wrong, name
        else:
            assert not wrong, name
