# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import stat

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import gojson
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import CniError
from ansible_collections.nodenet.cni.plugins.module_utils.multus import cache, config, delegate, podargs

MAIN = {"name": "main", "type": "bridge"}


def load(**keys):
    return config.load_config(gojson.parse(json.dumps({"delegates": [MAIN], **keys})))


def loaded(value):
    text = json.dumps(value).encode()
    return delegate.load_delegate(gojson.parse(text), text)


def test_defaults():
    found = load()
    assert (found.conf_dir, found.cni_dir, found.bin_dir) == (
        "/etc/cni/multus/net.d",
        "/var/lib/cni/multus",
        "/opt/cni/bin",
    )
    assert (found.multus_namespace, found.system_namespaces) == ("kube-system", ["kube-system"])
    assert (found.allowed_namespaces, found.namespace_isolation) == (["default"], False)
    assert (found.log_to_stderr, found.api_timeout_s, found.runtime_config) == (True, 10, {})
    assert [one.is_master for one in found.delegates] == [True]


def test_null_keeps_the_default_and_the_empty_text_does_not():
    found = load(cniDir=None, binDir="", systemNamespaces=[], globalNamespaces=" a , b", logOptions=None)
    assert (found.cni_dir, found.bin_dir, found.system_namespaces) == ("/var/lib/cni/multus", "", [])
    assert found.allowed_namespaces == ["a", "b"]
    assert load(systemNamespaces=None).system_namespaces == ["kube-system"]


def test_keys_match_in_any_case_and_the_last_one_wins():
    text = '{"delegates": [{"type": "a"}], "CNIDIR": "/a", "cnidir": "/b", "ReadinessIndicatorFile": "/r"}'
    found = config.load_config(gojson.parse(text))
    assert (found.cni_dir, found.readiness_indicator_file) == ("/b", "/r")


def test_a_cluster_network_makes_delegates_needless():
    assert config.load_config(gojson.parse('{"clusterNetwork": "x", "delegates": [{}]}')).delegates == []


def test_delegates_are_printed_in_order_with_all_their_digits():
    text = '{"delegates": [{"z": 9007199254740993, "type": "a", "list": [{"y": 1.50, "x": null}]}]}'
    (found,) = config.load_config(gojson.parse(text)).delegates
    assert found.data == b'{"list":[{"x":null,"y":1.50}],"type":"a","z":9007199254740993}'


@pytest.mark.parametrize(
    ("version", "previous", "part"),
    [
        ("0.4.0", {"cniVersion": "1.0.0"}, 'supports [0.3.0 0.3.1 0.4.0] but unmarshalled CNIVersion is "1.0.0"'),
        ("1.0.0", {"ips": [{"address": "x"}]}, "could not parse prevResult: invalid CIDR address: x"),
    ],
)
def test_a_previous_result_that_is_none(version, previous, part):
    with pytest.raises(CniError) as caught:
        load(cniVersion=version, prevResult=previous)
    assert part in str(caught.value)
    load(cniVersion=version, prevResult={"cniVersion": version, "ips": [{"address": "10.0.0.1/24", "version": "4"}]})


@pytest.mark.parametrize("plugins", [[], [None], [{}], [{"type": ""}], None])
def test_a_list_needs_a_first_plugin(plugins):
    with pytest.raises(CniError, match="LoadDelegateNetConf: failed with: LoadDelegateNetConfList"):
        loaded({"name": "l", "plugins": plugins})


def test_type_beats_plugins():
    assert not loaded({"type": "a", "plugins": [{"type": "b"}]}).is_list


def test_the_version_of_a_list_is_the_highest_that_both_speak():
    found = loaded({"name": "l", "cniVersion": "0.3.1", "cniVersions": ["0.4.0", "9.0.0"], "plugins": [{"type": "a"}]})
    assert (found.load().cni_version, found.cni_version) == ("0.4.0", "0.3.1")


@pytest.mark.parametrize("flag", ["disableCheck", "disableGC"])
def test_flags_of_a_list(flag):
    found = loaded({"name": "l", flag: True, "plugins": [{"type": "a"}]}).load()
    assert (found.disable_check, found.disable_gc) == (flag == "disableCheck", flag == "disableGC")


def test_arguments_for_delegates():
    pod = podargs.parse("IgnoreUnknown=1;K8S_POD_NAME=;K8S_POD_NAME=p;X=1;X=1;K8S_POD_UID=")
    head = [("IgnoreUnknown", "true"), ("K8S_POD_NAMESPACE", ""), ("K8S_POD_NAME", "p")]
    assert str(pod) == "/p/"
    with pytest.raises(CniError, match="Multus: error getting k8s args: ARGS: error parsing value of pair"):
        podargs.parse("IP=x")
    assert pod.for_delegates()[:3] == head
    assert pod.for_delegates()[5:] == [
        ("IgnoreUnknown", "1"),
        ("K8S_POD_NAME", "p"),
        ("X", "1"),
        ("X", "1"),
        ("K8S_POD_UID", ""),
    ]


# --- the cache of delegates


def test_what_is_written_is_read_again(tmp_path):
    first, second = loaded(MAIN), loaded({"name": "l", "plugins": [{"type": "a", "capabilities": {"mac": True}}]})
    second.name = "ns/l"
    second.device_id, second.resource_name = "d", "r"
    request = second.request
    request.interface, request.mac, request.infiniband_guid, request.ips = "i", "m", "g", ["10.0.0.1"]
    request.port_mappings = [{"hostPort": 1, "containerPort": 2}]
    request.bandwidth = {"ingressRate": 1, "ingressBurst": 2, "egressRate": 3, "egressBurst": 4}
    request.gateways = []
    folder = tmp_path / "a" / "b"
    cache.write(str(folder), "cid", [first, second])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "cid").stat().st_mode) == 0o600
    again = cache.read(str(folder), "cid")
    assert [one.is_master for one in again] == [True, False]
    assert [one.data for one in again] == [first.data, second.data]
    assert (again[1].name, again[1].device_id, again[1].resource_name) == ("ns/l", "d", "r")
    for key in ("interface", "mac", "infiniband_guid", "ips", "port_mappings", "bandwidth", "gateways"):
        assert getattr(again[1].request, key) == getattr(request, key), key
    assert cache.containers(str(folder)) == ["cid"]
    cache.remove(str(folder), "cid")
    assert cache.read(str(folder), "cid") is None
    assert list(folder.iterdir()) == []


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path):
    cache.write(str(tmp_path), "cid", [loaded(MAIN)])
    before = (tmp_path / "cid").read_bytes()
    (tmp_path / "dir").mkdir()
    with pytest.raises(
        CniError, match=r'failed to write container data in the path\(".*/dir"\): open .*: is a directory'
    ):
        cache.write(str(tmp_path), "dir", [loaded(MAIN)])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["cid", "dir"]
    assert (tmp_path / "cid").read_bytes() == before
    with pytest.raises(CniError, match="failed to create the multus data directory"):
        cache.write(str(tmp_path / "cid" / "x"), "cid", [loaded(MAIN)])


@pytest.mark.parametrize(
    "text", ["", "{", "{}", "[]", "null", "[{}]", '[{"Bytes": "e30="}]', '[{"Bytes": "a"}]', '[{"Bytes": 1}]']
)
def test_a_file_that_cannot_be_used(tmp_path, text):
    (tmp_path / "cid").write_text(text)
    with pytest.raises(cache.Unusable):
        cache.read(str(tmp_path), "cid")
    assert cache.set_aside(str(tmp_path), "cid") == str(tmp_path / "cid.corrupt")
    assert cache.containers(str(tmp_path)) == []
    assert cache.read(str(tmp_path), "cid") is None
