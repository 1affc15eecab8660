# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import results, versions
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import CniError

RESULT = {
    "interfaces": [{"name": "eth0", "mac": "02:00:00:00:00:01", "sandbox": "/ns", "mtu": 1400}],
    "ips": [
        {"interface": 0, "address": "10.1.2.5/24", "gateway": "10.1.2.1"},
        {"interface": 0, "address": "fd00::5/64", "gateway": "fd00::1"},
        {"interface": 0, "address": "10.9.0.5/24", "gateway": "10.9.0.1"},
    ],
    "routes": [
        {"dst": "0.0.0.0/0", "gw": "10.1.2.1", "mtu": 1400, "table": 0},
        {"dst": "::/0", "mtu": 0},
        {"dst": "10.0.0.0/8"},
    ],
    "dns": {"nameservers": ["192.0.2.3"], "search": []},
}


def test_every_version_keeps_what_it_can_hold():
    for version in versions.SUPPORTED:
        document = results.render(RESULT, version)
        assert document["cniVersion"] == version
        again = results.parse(document)
        count = 2 if version in ("0.1.0", "0.2.0") else 3
        assert [one["address"] for one in again["ips"]] == [one["address"] for one in RESULT["ips"][:count]]
        assert again["dns"] == {"nameservers": ["192.0.2.3"]}
        assert results.render(again, version) == document


@pytest.mark.parametrize("source", versions.SUPPORTED)
@pytest.mark.parametrize("target", versions.SUPPORTED)
def test_converting_twice_is_converting_once(source, target):
    document = results.render(RESULT, source)
    converted = results.convert(document, target)
    assert results.convert(converted, target) == converted


def test_the_layouts():
    assert list(results.render(RESULT, "1.1.0")) == ["cniVersion", "dns", "interfaces", "ips", "routes"]
    assert results.render(RESULT, "1.1.0")["routes"][0] == {
        "dst": "0.0.0.0/0", "gw": "10.1.2.1", "mtu": 1400, "table": 0,
    }  # fmt: skip
    assert results.render(RESULT, "1.0.0")["interfaces"] == [
        {"mac": "02:00:00:00:00:01", "name": "eth0", "sandbox": "/ns"}
    ]
    assert list(results.render(RESULT, "0.4.0")) == ["cniVersion", "interfaces", "ips", "routes", "dns"]
    assert [one["version"] for one in results.render(RESULT, "0.4.0")["ips"]] == ["4", "6", "4"]
    old = results.render(RESULT, "0.2.0")
    assert list(old) == ["cniVersion", "ip4", "ip6", "dns"]
    assert old["ip4"]["routes"] == [{"dst": "0.0.0.0/0", "gw": "10.1.2.1"}, {"dst": "10.0.0.0/8"}]
    assert old["ip6"]["routes"] == [{"dst": "::/0"}]


def test_a_route_without_target_is_one_of_ipv6_in_the_old_layouts():
    given = {"dst": "<nil>", "gw": "10.0.0.1"}
    kept = results.render(dict(RESULT, routes=[given]), "0.2.0")
    assert "routes" not in kept["ip4"]
    assert kept["ip6"]["routes"] == [given]
    only = dict(RESULT, routes=[given], ips=[one for one in RESULT["ips"] if ":" not in one["address"]])
    assert "routes" not in results.render(only, "0.2.0")["ip4"]


def test_no_address_has_no_old_layout():
    with pytest.raises(CniError, match="no valid IP addresses"):
        results.render({"ips": [], "routes": []}, "0.2.0")


def test_unknown_versions():
    with pytest.raises(CniError, match="no converter"):
        results.render(RESULT, "2.0.0")
    with pytest.raises(CniError, match="no converter"):
        results.parse({"cniVersion": "2.0.0"})


@pytest.mark.parametrize(
    ("address", "family"),
    [("10.0.0.1/8", "4"), ("::1/128", "6"), ("::ffff:10.0.0.1/96", "4"), ("::ffff:1/96", "6"), ("::1.2.3.4", "6")]
    + [("<nil>", "6"), ("", "6")],
)
def test_families(address, family):
    assert results.family(address) == family
