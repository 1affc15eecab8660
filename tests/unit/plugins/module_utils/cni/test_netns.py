# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Namespaces, links and routes; the program ip is the judge of what the kernel really has."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import links, netlink, netns, routes
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError

OWN = os.stat("/proc/self/ns/net").st_ino


def add_pair(ip):
    ip("link", "add", "name", "va", "type", "veth", "peer", "name", "vb")
    for name in ("va", "vb"):
        ip("link", "set", name, "up")
    ip("addr", "add", "10.1.1.2/24", "dev", "va")
    ip("-6", "addr", "add", "fd00::2/64", "dev", "va", "nodad")


def defaults(ip):
    found = []
    for family in ("-4", "-6"):
        for route in json.loads(ip("-json", family, "route", "show", "default") or "[]"):
            hops = route.get("nexthops") or [route]
            found += [(hop["gateway"], hop["dev"]) for hop in hops]
    return found


def test_a_named_namespace(namespace):
    assert netns.is_namespace(namespace.path)
    assert os.stat(namespace.path).st_ino != OWN
    assert os.stat("/proc/self/ns/net").st_ino == OWN
    with pytest.raises(NodenetError, match="Cannot make network namespace .*: file exists"):
        netns.create(namespace.path)
    assert netns.is_namespace(namespace.path)
    netns.remove(namespace.path)
    assert not os.path.exists(namespace.path)
    netns.remove(namespace.path)


def test_entering_and_coming_back(namespace):
    with netns.Entered(namespace.path):
        assert os.stat("/proc/thread-self/ns/net").st_ino == os.stat(namespace.path).st_ino
    assert os.stat("/proc/thread-self/ns/net").st_ino == OWN
    with pytest.raises(ZeroDivisionError), netns.Entered(namespace.path):
        raise ZeroDivisionError
    assert os.stat("/proc/thread-self/ns/net").st_ino == OWN


def test_what_is_no_namespace(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    before = len(os.listdir("/proc/self/fd"))
    assert not netns.is_namespace(str(plain))
    assert not netns.is_namespace(str(tmp_path / "none"))
    assert not netns.is_namespace("")
    for path in (plain, tmp_path / "none"):
        with pytest.raises(OSError, match=path.name):
            netlink.Netlink(str(path))
    assert len(os.listdir("/proc/self/fd")) == before
    netns.remove(str(plain))  # the file that a reboot leaves where a namespace was
    assert not plain.exists()


def test_what_prepares_a_namespace_runs_in_it(namespace, tmp_path):
    path = str(tmp_path / "second")

    def prepare():
        with open(str(tmp_path / "inode"), "w") as stream:
            stream.write(str(os.stat("/proc/self/ns/net").st_ino))

    def fail():
        raise PermissionError(13, "no")

    netns.create(path, prepare)
    assert (tmp_path / "inode").read_text() == str(os.stat(path).st_ino)
    netns.remove(path)
    with pytest.raises(NodenetError, match="permission denied"):
        netns.create(path, fail)
    assert not os.path.exists(path)


def test_an_anonymous_namespace(namespace):
    with netns.Anonymous() as path:
        assert netns.is_namespace(path)
        with netlink.Netlink(path) as kernel:
            assert [one.name for one in links.links(kernel)] == ["lo"]
    assert not os.path.exists(path)


def test_links(namespace):
    add_pair(namespace)
    namespace("link", "add", "name", "br", "mtu", "1400", "type", "bridge")
    namespace("link", "set", "vb", "master", "br")
    with netlink.Netlink(namespace.path) as kernel:
        found = {one.name: one for one in links.links(kernel)}
        shown = {one["ifname"]: one for one in json.loads(namespace("-json", "-details", "link", "show"))}
        assert set(found) == set(shown)
        for name, one in found.items():
            assert (one.index, one.mtu, one.mac) == (shown[name]["ifindex"], shown[name]["mtu"], shown[name]["address"])
            assert one.kind == shown[name].get("linkinfo", {}).get("info_kind", "")
            assert one.up == ("UP" in shown[name]["flags"])
            assert one.running == ("LOWER_UP" in shown[name]["flags"])
        assert found["vb"].master == found["br"].index
        assert found["va"].master == 0
        assert not found["lo"].up
        links.set_up(kernel, found["lo"].index)
        assert links.find(kernel, "lo").up
        assert links.find(kernel, "none") is None
        links.delete(kernel, found["va"].index)
        assert [one.name for one in links.links(kernel)] == ["lo", "br"]
        links.delete(kernel, found["va"].index)


def test_addresses(namespace):
    add_pair(namespace)
    namespace("addr", "add", "10.2.0.1", "peer", "10.2.0.9/32", "dev", "vb")
    with netlink.Netlink(namespace.path) as kernel:
        index = links.find(kernel, "va").index
        found = {(one.address, one.prefix) for one in links.addresses(kernel, index) if one.address[:4] != "fe80"}
        assert found == {("10.1.1.2", 24), ("fd00::2", 64)}
        assert ("10.2.0.1", 32) in {(one.address, one.prefix) for one in links.addresses(kernel)}
        assert not any(
            one.tentative or one.duplicate for one in links.addresses(kernel, index) if "fd00" in one.address
        )
        namespace("-6", "addr", "add", "fd00::3/64", "dev", "va")
        assert [one.tentative for one in links.addresses(kernel, index) if one.address == "fd00::3"] == [True]


def test_neighbours(namespace):
    add_pair(namespace)
    namespace("neigh", "add", "10.1.1.9", "lladdr", "02:00:00:00:00:09", "dev", "va", "nud", "reachable")
    namespace("-6", "neigh", "add", "fd00::9", "lladdr", "02:00:00:00:00:0a", "dev", "va", "nud", "stale")
    namespace("neigh", "add", "10.1.1.7", "lladdr", "02:00:00:00:00:07", "dev", "va", "nud", "permanent")
    with netlink.Netlink(namespace.path) as kernel:
        assert links.resolved(kernel, "10.1.1.9") == "02:00:00:00:00:09"
        assert links.resolved(kernel, "fd00::9") == "02:00:00:00:00:0a"
        assert links.resolved(kernel, "10.1.1.8") == ""
        assert links.resolved(kernel, "10.1.1.7") == ""


def test_routes(namespace):
    add_pair(namespace)
    namespace("route", "add", "10.9.0.0/16", "nexthop", "via", "10.1.1.5", "nexthop", "via", "10.1.1.6")
    namespace("route", "add", "10.8.0.0/16", "via", "inet6", "fd00::9", "dev", "va", "metric", "7")
    namespace("route", "add", "10.7.0.0/16", "via", "10.1.1.5", "table", "1000")
    namespace("route", "add", "blackhole", "10.6.0.0/16")
    with netlink.Netlink(namespace.path) as kernel:
        index = links.find(kernel, "va").index
        found = {"%s/%d" % (one.destination, one.prefix): one for one in routes.routes(kernel)}
        assert found["10.9.0.0/16"].hops == [("10.1.1.5", index), ("10.1.1.6", index)]
        assert (found["10.8.0.0/16"].hops, found["10.8.0.0/16"].metric) == ([("fd00::9", index)], 7)
        assert found["10.1.1.0/24"].hops == [("", index)]
        assert "10.7.0.0/16" not in found
        assert "10.6.0.0/16" not in found
        assert [one.destination for one in routes.routes(kernel, 1000)] == ["10.7.0.0"]


def test_default_routes_are_really_replaced(namespace):
    add_pair(namespace)
    namespace("route", "add", "default", "nexthop", "via", "10.1.1.5", "nexthop", "via", "10.1.1.6")
    namespace("route", "add", "default", "via", "10.1.1.7", "metric", "50")
    namespace("-6", "route", "add", "default", "via", "fd00::5", "dev", "va")
    namespace("-6", "route", "append", "default", "via", "fd00::6", "dev", "va")
    with netlink.Netlink(namespace.path) as kernel:
        index = links.find(kernel, "va").index
        assert len(routes.default_routes(kernel, netlink.AF_INET)) == 2
        routes.replace_default(kernel, "10.1.1.1", index)
        assert defaults(namespace)[0] == ("10.1.1.1", "va")
        assert len(defaults(namespace)) == 3
        routes.replace_default(kernel, "fd00::1", index)
        assert defaults(namespace) == [("10.1.1.1", "va"), ("fd00::1", "va")]
        assert [one.hops for one in routes.default_routes(kernel, 0, index)] == [
            [("10.1.1.1", index)],
            [("fd00::1", index)],
        ]
        assert routes.default_routes(kernel, 0, index + 100) == []
        for route in routes.default_routes(kernel):
            routes.delete(kernel, route)
            routes.delete(kernel, route)
        assert defaults(namespace) == []


def test_a_default_route_that_cannot_be_had_changes_nothing(namespace):
    add_pair(namespace)
    namespace("route", "add", "default", "nexthop", "via", "10.1.1.5", "nexthop", "via", "10.1.1.6")
    namespace("-6", "route", "add", "default", "via", "fd00::5", "dev", "va")
    before = defaults(namespace)
    assert len(before) == 3
    with netlink.Netlink(namespace.path) as kernel:
        index = links.find(kernel, "va").index
        for gateway in ("192.0.2.1", "2001:db8::1"):
            with pytest.raises(OSError, match="unreachable|No route to host"):
                routes.replace_default(kernel, gateway, index)
        with pytest.raises(ValueError, match="invalid IP address: nowhere"):
            routes.replace_default(kernel, "nowhere", index)
    assert defaults(namespace) == before
