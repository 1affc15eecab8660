# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.cni.links import Link
from ansible_collections.nodenet.cni.plugins.module_utils.node import probe_target

IPAM = {"type": "host-local", "ranges": [[{"subnet": "10.5.0.0/24"}]]}


def conflist(name="net", *plugins):
    return {"cniVersion": "1.0.0", "name": name, "plugins": list(plugins) or [{"type": "bridge", "ipam": IPAM}]}


def find(tmp_path, **options):
    known = {"network": None, "conflist": None, "config": None, "conf_dir": str(tmp_path)}
    return probe_target.find(dict(known, flannel_subnet_file=str(tmp_path / "subnet.env"), **options))


def write(path, document):
    path.write_text(document if isinstance(document, str) else json.dumps(document))


def test_by_name(tmp_path):
    write(tmp_path / "10-net.conflist", conflist())
    write(tmp_path / "20-other.conflist", conflist("other"))
    write(tmp_path / "30-broken.conflist", "{")
    target = find(tmp_path, network="net")
    assert target.source == str(tmp_path / "10-net.conflist")
    assert (target.types, target.executables) == (["bridge"], ["bridge", "host-local"])
    assert target.host_local == [("/var/lib/cni/networks", "net")]
    assert target.data == (tmp_path / "10-net.conflist").read_bytes()
    with pytest.raises(NodenetError, match=r"no file defines it; defined are net, other; not usable: 30-broken"):
        find(tmp_path, network="lan")
    write(tmp_path / "11-net.conflist", conflist())
    with pytest.raises(NodenetError, match=r"more than one file defines it \(10-net.conflist, 11-net.conflist\)"):
        find(tmp_path, network="net")
    with pytest.raises(NodenetError, match="there is no such directory"):
        find(tmp_path / "none", network="net")


def test_plugins_of_a_subdirectory_are_told(tmp_path):
    write(tmp_path / "10-net.conflist", conflist())
    (tmp_path / "net").mkdir()
    write(tmp_path / "net" / "a.conf", {"type": "tuning"})
    (fact,) = find(tmp_path, network="net").facts
    assert (fact["kind"], fact["types"], fact["count"]) == ("conf-subdir-plugins", "tuning", 1)


def test_by_path_and_as_given(tmp_path):
    path = tmp_path / "try.conflist"
    write(path, conflist())
    assert find(tmp_path, conflist=str(path)).network.is_list
    assert find(tmp_path, config=conflist()).network.is_list
    single = find(tmp_path, config={"type": "bridge", "name": "one", "cniVersion": "0.4.0"})
    assert (single.network.is_list, single.network.name) == (False, "one")
    with pytest.raises(NodenetError, match="Cannot probe the network in .*none: no such file or directory"):
        find(tmp_path, conflist=str(tmp_path / "none"))
    for wrong, said in (
        ({"plugins": []}, "no name"),
        (conflist("a b"), "it has 'a b', which no runtime takes"),
        ({"type": "bridge"}, "it has no name"),
        ({"name": "x"}, "missing 'type'"),
    ):
        with pytest.raises(NodenetError, match="Cannot probe the network in config: .*" + said):
            find(tmp_path, config=wrong)


def host(*links):
    return [Link(number, name, kind, "", 1500, 0, master) for number, (name, kind, master) in enumerate(links, 1)]


@pytest.mark.parametrize(
    ("plugins", "links", "reason"),
    [
        ([{"type": "bridge"}], (), ""),
        ([{"type": "bridge"}], (("cni0", "bridge", 0), ("eth0", "", 0), ("v", "veth", 1)), ""),
        ([{"type": "bridge"}], (("cni0", "bridge", 0), ("eth0", "", 1)), "eth0 is a port of its bridge"),
        ([{"type": "bridge", "bridge": "br"}], (("cni0", "bridge", 0), ("eth0", "", 1)), ""),
        ([{"type": "bridge", "bridge": "br"}], (("br", "bridge", 0), ("eth0.5", "vlan", 1)), "eth0.5 is a port"),
        ([{"type": "ptp"}, {"type": "host-device"}], (), "plugin host-device"),
        ([{"type": "ptp", "ipam": {"type": "dhcp"}}], (), "DHCP server"),
        ([{"type": "multus", "delegates": [conflist("x", {"type": "ipvlan"})]}], (), "plugin ipvlan"),
        ([{"type": "flannel", "delegate": {"type": "macvlan"}}], (), "plugin macvlan"),
        ([{"type": "flannel"}], (("cni0", "bridge", 0), ("eth0", "", 1)), "eth0 is a port"),
    ],
)
def test_segments_that_reach_beyond_the_node(tmp_path, plugins, links, reason):
    said = find(tmp_path, config=conflist("net", *plugins)).shared(host(*links))
    assert reason in said
    assert bool(said) == bool(reason)


def test_what_delegates_need(tmp_path):
    target = find(tmp_path, config=conflist("net", {"type": "flannel"}, {"type": "portmap"}))
    assert target.executables == ["flannel", "bridge", "host-local", "portmap"]
    assert target.types == ["flannel", "portmap"]
