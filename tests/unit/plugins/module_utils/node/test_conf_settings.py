# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

from ansible_collections.nodenet.cni.plugins.module_utils.cni import gojson
from ansible_collections.nodenet.cni.plugins.module_utils.node.conf_settings import settings


def of(document):
    return settings(gojson.parse(json.dumps(document).encode()))


def test_paths_and_values():
    found = of(
        {"name": "lan", "plugins": [{"type": "bridge", "mtu": 1450, "isGateway": True, "x": None, "e": [], "o": {}}]}
    )
    assert found == {
        "name": "lan",
        "plugins[0].type": "bridge",
        "plugins[0].mtu": "1450",
        "plugins[0].isGateway": "true",
        "plugins[0].x": "null",
        "plugins[0].e": "[]",
        "plugins[0].o": "{}",
    }


def test_what_each_node_has_for_itself_is_left_out():
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}
    assert of({"type": "calico", "nodename": "n1", "mtu": 0}) == {"type": "calico", "mtu": "0"}
    old = {"type": "host-local", "subnet": "10.2.0.0/24", "rangeStart": "10.2.0.9", "gateway": "10.2.0.1"}
    found = of(
        {"delegates": [{"plugins": [{"ipam": ipam}, {"ipam": old}, {"ipam": {"type": "static", "gateway": "g"}}]}]}
    )
    assert found == {
        "delegates[0].plugins[0].ipam.type": "host-local",
        "delegates[0].plugins[0].ipam.routes[0].dst": "0.0.0.0/0",
        "delegates[0].plugins[1].ipam.type": "host-local",
        "delegates[0].plugins[2].ipam.type": "static",
        "delegates[0].plugins[2].ipam.gateway": "g",
    }


def test_secrets_and_long_values_are_digests():
    found = of({"policy": {"k8s_auth_token": "t0p", "key": "x" * 500}, "Password": ["hunter2"]})
    assert all(value.startswith("sha256:") and len(value) == 19 for value in found.values())
    assert len(set(found.values())) == 3
    assert of({"token": "a"}) != of({"token": "b"})


def test_it_stays_small():
    big = {str(number): number for number in range(3000)}
    found = of(big)
    assert len(found) == 401
    assert of(dict(big, **{"2999": 1}))["..."] != found["..."]
