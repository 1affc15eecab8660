# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of a pod agrees with what Multus would do, whatever annotation, network and configuration hold."""

from __future__ import annotations

import json
import random

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import multus_report, multus_requests

ODD = [
    None, True, 1, 1.5, "", "x", "lan", "a/b", "{}", "[]", [], {}, [1], {"a": 1}, [None], {"name": None}, {"type": "x"},
    {"plugins": []}, {"plugins": [{"type": "x"}]}, {"plugins": [None]}, "prod/lan@x", 10**30, {"cni": 1},
    {"args": 1, "type": "x"}, '{"type": "m", "args": 1}',
]  # fmt: skip
KEYS = ["name", "type", "plugins", "cniVersion", "args", "capabilities", "ipam", "delegates", "ips", "x"]
SETTINGS = [
    "clusterNetwork", "defaultNetworks", "namespaceIsolation", "globalNamespaces", "auxiliaryCNIChainName",
    "runtimeConfig", "delegates", "systemNamespaces",
]  # fmt: skip


def value(draw, depth=0):
    if depth < 2 and draw.random() < 0.4:
        return {draw.choice(KEYS): value(draw, depth + 1) for _each in range(draw.randint(0, 4))}
    return draw.choice(ODD)


def annotation(draw):
    elements = []
    for _each in range(draw.randint(0, 3)):
        keys = draw.sample([*multus_requests.KEYS, multus_requests.OLD_KEY], draw.randint(0, 4))
        elements.append({key: value(draw, 1) for key in keys})
        if draw.random() < 0.7:
            elements[-1]["name"] = "lan"
    short = "lan," + draw.choice(["A", "b@c", "x/y@z/", "", "lan", "lan@eth0", "lan@net1"])
    return draw.choice([json.dumps(elements), short, json.dumps(value(draw))])


def asked(draw):
    text = annotation(draw)
    config = {"type": "multus", "name": "m", "cniVersion": "1.0.0", "delegates": [{"type": "b", "name": "c"}]}
    if draw.random() < 0.3:
        config[draw.choice(SETTINGS)] = value(draw)
    network = {
        "name": "lan",
        "namespace": "prod",
        "config": draw.choice([json.dumps(value(draw)), value(draw), "{", '{"type": "macvlan", "name": "lan"}']),
        "annotations": draw.choice([None, {}, {"k8s.v1.cni.cncf.io/resourceName": "r"}]),
    }
    default = {"v1.multus-cni.io/default-network": draw.choice([text, "lan", "prod/lan", "[]", ""])}
    pod = {"name": "w", "namespace": "prod", "annotations": draw.choice([None, {}, default]), "networks": text}
    paths = {"conf_dir": "/nonexistent", "cache_dir": "/nonexistent"}
    return dict(paths, pods=[pod], networks=[network], config=config, api=False, api_timeout=1, cached=False, live=None)


@pytest.mark.parametrize("seed", range(4))
def test_usable_and_without_an_error_are_the_same(seed):
    draw = random.Random(seed)
    seen = {True: 0, False: 0}
    for _each in range(400):
        params = asked(draw)
        try:
            result = multus_report.report(params)
        except NodenetError:
            continue  # the configuration is none, or the network has no form at all
        json.dumps(result)
        (pod,) = result["pods"]
        errors = [one for one in pod["findings"] if one["severity"] == "error" and one["code"].startswith("MULTUS")]
        assert pod["usable"] is (not errors), params
        assert (pod["refusal"] is None) is pod["usable"]
        assert all(one in result["findings"] for one in pod["findings"])
        seen[pod["usable"]] += 1
    assert min(seen.values()) > 10


@pytest.mark.parametrize(
    ("elements", "told"),
    [
        ([{"name": "lan", "interface": "eth0", "mac": "zz"}], "eth0 of element 1 (lan) is that of cbr0 already"),
        (
            [{"name": "lan", "interfaceRequest": "x0", "ips": "192.0.2.7"}, {"name": "lan", "interface": "x0"}],
            "x0 of prod/lan is that of element 1 (lan) already",
        ),
        ([{"name": "lan", "mac": "zz"}, {"name": "lan", "interface": "net1"}], "net1 of prod/lan is that of element 1"),
        ([{"name": "lan", "interface": 5, "mac": "zz"}, {"name": "lan", "interface": "y"}], ""),
    ],
)
def test_an_element_that_cannot_be_used_has_its_interface(elements, told):
    lan = {"name": "lan", "namespace": "prod", "config": {"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1"}}
    delegate = {"cniVersion": "1.0.0", "type": "bridge", "name": "cbr0"}
    config = {"type": "multus", "name": "m", "cniVersion": "1.0.0", "delegates": [delegate]}
    pod = {"name": "w", "namespace": "prod", "annotations": None, "networks": json.dumps(elements)}
    options = {"conf_dir": "/nonexistent", "cache_dir": "/nonexistent", "api": False, "cached": False, "live": None}
    (pod,) = multus_report.report(dict(options, pods=[pod], networks=[lan], config=config))["pods"]
    texts = {one["code"]: one["text"] for one in pod["findings"]}
    assert "MULTUS007" in texts
    assert told in texts.get("MULTUS013", "")
    assert ("MULTUS013" in texts) is bool(told)


@pytest.mark.parametrize("config", ["", "{"])
def test_a_broken_file_is_not_taken_for_the_configuration_of_the_network(tmp_path, config):
    """A network without one is looked for in confDir, and the first file that cannot be read ends that."""
    (tmp_path / "10-broken.conf").write_text("[")
    lan = {"metadata": {"name": "lan", "namespace": "prod"}, "spec": {"config": config}}
    delegate = {"cniVersion": "1.0.0", "type": "bridge", "name": "cbr0"}
    multus = {"type": "multus", "name": "m", "cniVersion": "1.0.0", "delegates": [delegate], "confDir": str(tmp_path)}
    pod = {"name": "w", "namespace": "prod", "annotations": None, "networks": "lan"}
    options = {"conf_dir": "/nonexistent", "cache_dir": "/nonexistent", "api": False, "cached": False, "live": None}
    (pod,) = multus_report.report(dict(options, pods=[pod], networks=[lan], config=multus))["pods"]
    (told,) = [one["text"] for one in pod["findings"] if "prod/lan" in one["text"]]
    assert (str(tmp_path / "10-broken.conf") in told) is (not config), told
    assert ("its configuration" in told) is bool(config), told
