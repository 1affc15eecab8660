# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import CniError, ConfigError
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.config import load_ipam_config


def load(ipam, arguments="", **rest):
    return load_ipam_config(dict({"name": "n", "cniVersion": "1.0.0", "ipam": ipam}, **rest), arguments)


def test_what_is_read():
    config = load(
        {"type": "host-local", "dataDir": "/d", "resolvConf": "/r", "subnet": "10.1.2.0/24",
         "ranges": [[{"subnet": "fd00::/64"}]], "routes": [{"dst": "0.0.0.0/0", "table": 0}, None]},
        "IP=10.1.2.9/24",
        runtimeConfig={"ipRanges": [[{"subnet": "10.9.0.0/24"}]], "ips": ["fd00::5", "10.1.2.9"]},
        args={"cni": {"ips": ["10.9.0.7/8"]}},
    )  # fmt: skip
    assert (config.name, config.cni_version, config.data_dir, config.resolv_conf) == ("n", "1.0.0", "/d", "/r")
    assert [str(one) for one in config.sets] == [
        "10.9.0.1-10.9.0.254", "10.1.2.1-10.1.2.254", "fd00::1-fd00::ffff:ffff:ffff:ffff",
    ]  # fmt: skip
    assert [str(one) for one in config.requested] == ["10.1.2.9", "10.9.0.7", "fd00::5"]
    assert [route and str(route["dst"]) for route in config.routes] == ["0.0.0.0/0", None]


def test_a_document_its_tree_and_a_dict_are_the_same():
    text = '{"name": "n", "ipam": {"subnet": "10.1.2.0/24"}}'
    assert load_ipam_config(text).data_dir == load_ipam_config(text.encode()).data_dir == "/var/lib/cni/networks"


@pytest.mark.parametrize(
    ("ipam", "message", "path"),
    [
        (None, "IPAM config missing 'ipam' key", "ipam"),
        ({}, "no IP ranges specified", "ipam.ranges"),
        ({"rangeStart": "10.0.0.1", "gateway": "10.0.0.1"}, "no IP ranges specified", "ipam.ranges"),
        ({"ranges": [[]]}, "invalid range set 0: empty range set", "ipam.ranges[0]"),
        ({"ranges": [None]}, "invalid range set 0: empty range set", "ipam.ranges[0]"),
        ({"subnet": ""}, "invalid CIDR address: ", "ipam.subnet"),
        ({"subnet": None}, "invalid CIDR address: ", "ipam.subnet"),
        ({"subnet": "10.0.0.0/8", "rangeStart": "10.0.0.1.2"}, "invalid IP address: 10.0.0.1.2", "ipam.rangeStart"),
        ({"subnet": "10.0.0.0/8", "rangeStart": ""}, None, ""),
        (
            {"subnet": "10.0.0.0/8", "rangeEnd": "11.0.0.1"},
            "invalid range set 0: RangeEnd 11.0.0.1 not in network 10.0.0.0/8",
            "ipam.rangeEnd",
        ),
        (
            {"ranges": [[{"subnet": "10.0.0.0/8"}], [{"subnet": "fd00::/64"}, {"subnet": "fd01::1/127"}]]},
            "invalid range set 1: Network fd01::1/127 too small to allocate from",
            "ipam.ranges[1][1].subnet",
        ),
        (
            {"ranges": [[{"subnet": "10.0.0.0/8"}], [{"subnet": "10.1.0.0/16"}]]},
            "range set 0 overlaps with 1",
            "ipam.ranges[1]",
        ),
        ({"subnet": "10.0.0.0/8", "routes": [{"dst": ""}]}, "invalid CIDR address: ", "ipam.routes[0].dst"),
    ],
)
def test_faults_name_their_place(ipam, message, path):
    if message is None:
        load(ipam)
        return
    with pytest.raises(ConfigError) as caught:
        load(ipam)
    assert (caught.value.msg, caught.value.path, caught.value.code) == (message, path, 999)


def test_two_sets_of_a_family_need_a_newer_version():
    ranges = {"ranges": [[{"subnet": "10.0.0.0/8"}], [{"subnet": "11.0.0.0/8"}]]}
    with pytest.raises(ConfigError, match="^CNI version  does not support more than 1 address per family$"):
        load_ipam_config({"name": "n", "ipam": ranges})
    dual = {"ranges": [[{"subnet": "10.0.0.0/8"}], [{"subnet": "fd00::/64"}]]}
    assert len(load_ipam_config({"name": "n", "ipam": dual}).sets) == 2


@pytest.mark.parametrize("place", ["runtimeConfig", "args"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_request_that_is_none_is_an_error(place, value):
    """H8: a null crashes Go."""
    rest = {"runtimeConfig": {"ips": [value]}} if place == "runtimeConfig" else {"args": {"cni": {"ips": [value]}}}
    with pytest.raises(ConfigError, match="^cannot understand ip: IP <nil> not v4 nor v6$") as caught:
        load({"subnet": "10.0.0.0/8"}, **rest)
    assert caught.value.path.endswith("ips[0]")


def test_a_null_route_is_an_error_where_go_crashes():
    ipam = {"subnet": "10.0.0.0/8", "routes": [{"dst": "0.0.0.0/0"}, None]}
    for version in ("", "0.1.0", "0.2.0"):
        with pytest.raises(ConfigError, match="route 1 is null"):
            load_ipam_config({"name": "n", "cniVersion": version, "ipam": ipam})
    assert load_ipam_config({"name": "n", "cniVersion": "0.4.0", "ipam": ipam}).routes[1] is None


def test_arguments_come_before_the_ranges():
    with pytest.raises(CniError, match="^ARGS: unknown args"):
        load({"subnet": "10.0.0.1/8"}, "X=1")


def test_no_document():
    with pytest.raises(ConfigError, match="^unexpected end of JSON input$"):
        load_ipam_config(b"{")


def test_faults_that_can_be_told_apart():
    with pytest.raises(ConfigError) as caught:
        load({"ranges": [[{"subnet": "10.0.0.0/8"}, {"subnet": "10.9.8.7/16"}]]})
    assert (caught.value.kind, caught.value.wanted) == ("host-bits", "10.9.0.0/16")
    with pytest.raises(ConfigError) as caught:
        load({"ranges": [[{"subnet": "10.0.0.0/8"}, {"subnet": "fd00::/64"}]]})
    assert (caught.value.kind, caught.value.path) == ("mixed-families", "ipam.ranges[0][1].subnet")


def test_a_version_that_is_none():
    ranges = {"ranges": [[{"subnet": "10.0.0.0/8"}], [{"subnet": "11.0.0.0/8"}]]}
    with pytest.raises(ConfigError, match='^failed to convert major version part "latest"') as caught:
        load_ipam_config({"name": "n", "cniVersion": "latest", "ipam": ranges})
    assert (caught.value.path, caught.value.code) == ("cniVersion", 6)
    assert len(load_ipam_config({"name": "n", "cniVersion": "0.3.0", "ipam": ranges}).sets) == 2


POD = "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=db-0"


def test_the_pod_of_a_sticky_network():
    ipam = {"subnet": "10.0.0.0/8", "stickyStatic": True}
    config = load(ipam, POD + ";IP=10.0.0.9")
    assert config.static_id == "static.shop.db-0"
    assert [str(one) for one in config.requested] == ["10.0.0.9"]
    assert load(ipam).static_id == ""
    assert load(ipam, "IgnoreUnknown=1;K8S_POD_NAME=db-0").static_id == ""
    for off in (False, None):
        assert load(dict(ipam, stickyStatic=off), "IgnoreUnknown=1;" + POD).static_id == ""
        with pytest.raises(CniError, match="^ARGS: unknown args"):
            load(dict(ipam, stickyStatic=off), POD)
    with pytest.raises(CniError, match='^ARGS: unknown args \\["X=1"\\]'):
        load(ipam, POD + ";X=1")
    with pytest.raises(ConfigError) as caught:
        load(dict(ipam, stickyStatic="true"))
    assert caught.value.path == "ipam.stickyStatic"
