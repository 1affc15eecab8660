# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The network status of a result, and default routes in cached results."""

from __future__ import annotations

import json

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.multus import defaultroute, netstatus
from ansible_collections.nodenet.cni.plugins.module_utils.multus.delegate import Delegate


def result(**members):
    return {"cniVersion": "1.0.0", **members}


def inside(name, **more):
    return {"name": name, "sandbox": "/ns", **more}


def test_several_interfaces_share_the_addresses_by_index():
    found = netstatus.entries(
        "n",
        True,
        result(
            interfaces=[{"name": "veth1"}, inside("a", mac="m"), inside("b", mtu=1400)],
            ips=[
                {"address": "10.0.0.1/24", "interface": 1},
                {"address": "10.0.0.2/24", "interface": 2, "gateway": "10.0.0.254"},
                {"address": "10.0.0.3/24"},
                {"address": "10.0.0.4/24", "interface": 0},
            ],
            dns={"search": ["x"]},
        ),
    )
    # mtu is a member of results from 1.1.0 on; a result of 1.0.0 has none
    assert [{key: value for key, value in one.items() if key != "mtu"} for one in found] == [
        {"name": "n", "interface": "a", "ips": ["10.0.0.1"], "mac": "m", "dns": {"search": ["x"]}},
        {"name": "n", "interface": "b", "ips": ["10.0.0.2", "10.0.0.3"], "default": True, "dns": {"search": ["x"]}},
    ]


def test_without_a_gateway_the_first_interface_in_the_pod_is_the_default():
    found = netstatus.entries("n", True, result(interfaces=[{"name": "x"}, inside("a"), inside("b")]))
    assert [one.get("default") for one in found] == [True, None]
    assert not any("default" in one for one in netstatus.entries("n", False, result(interfaces=[inside("a")])))


def test_nothing_in_the_pod_has_no_entry():
    assert netstatus.entries("n", True, result(ips=[{"address": "10.0.0.1/24"}])) == []
    assert netstatus.entries("n", True, {"cniVersion": "0.2.0", "ip4": {"ip": "10.0.0.1/24"}}) == []


def test_the_value_has_the_layout_of_multus():
    text = netstatus.text([{"name": "a", "dns": {}}, {"name": "b<", "dns": {}}])
    assert text == '[{\n    "name": "a",\n    "dns": {}\n},{\n    "name": "b\\u003c",\n    "dns": {}\n}]'
    assert json.loads(text)[1]["name"] == "b<"
    assert netstatus.text([]) == "[]"


def delegate(gateways=None, filter_ipv4=False):
    made = Delegate((), b"", {}, None)
    made.request.gateways = gateways
    made.filter_ipv4 = filter_ipv4
    return made


def test_whose_default_routes_are_to_go():
    asking, other = delegate(["10.0.0.1"]), delegate(filter_ipv4=True)
    assert defaultroute.to_replace(other, [asking, other]) == [True]
    assert defaultroute.to_replace(asking, [asking, other]) == [True]
    alone, rest = delegate(["fd00::1", "10.0.0.1"]), delegate()
    assert defaultroute.to_replace(alone, [alone, rest]) == [True, False]
    assert defaultroute.to_replace(rest, [alone, rest]) == []
    empty = delegate([], filter_ipv4=True)
    assert defaultroute.to_replace(empty, [empty, delegate(filter_ipv4=True)]) == []


@pytest.mark.parametrize("version", ["0.4.0", "1.0.0", "1.1.0"])
def test_default_routes_of_a_cached_result(version):
    from ansible_collections.nodenet.cni.plugins.module_utils.cni import results

    routes = [
        {"dst": "0.0.0.0/0", "gw": "10.0.0.9"},
        {"dst": "::/0", "gw": "fd00::9"},
        {"dst": "10.0.0.0/8"},
        {"dst": "0.0.0.0/1"},
    ]
    before = results.render({"ips": [{"address": "10.0.0.5/24"}], "routes": routes, "dns": {}}, version)
    edited = defaultroute.edited(before, delegate(["10.0.0.1"]), [True])
    assert edited["cniVersion"] == version
    assert edited["routes"] == [*routes[1:], {"dst": "0.0.0.0/0", "gw": "10.0.0.1"}]
    assert defaultroute.edited(before, delegate(), [False])["routes"] == [routes[0], *routes[2:]]
    assert defaultroute.gateways(before, delegate(["fd00::1"]), [False]) == ["10.0.0.9", "fd00::1"]


def test_default_routes_of_an_old_result():
    before = {"cniVersion": "0.2.0", "ip4": {"ip": "10.0.0.5/24", "routes": [{"dst": "0.0.0.0/0"}]}, "dns": {}}
    edited = defaultroute.edited(before, delegate(["10.0.0.1"]), [True])
    assert edited["ip4"]["routes"] == [{"dst": "0.0.0.0/0", "gw": "10.0.0.1"}]
    assert "routes" not in defaultroute.edited(before, delegate(), [True])["ip4"]
