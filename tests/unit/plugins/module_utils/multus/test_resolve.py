# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which networks a pod gets: annotations, objects and configuration in, delegates out. The reported cases among it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import gojson
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import CniError, NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.multus import (
    attachments,
    confdir,
    config,
    ifnames,
    podargs,
    resolve,
)

CASES = Path(__file__).resolve().parents[4] / "cases"
LAN = {"cniVersion": "0.3.1", "name": "lan", "type": "macvlan"}
NETWORKS = "k8s.v1.cni.cncf.io/networks"
DEFAULT = "v1.multus-cni.io/default-network"


def case(name: str) -> dict:
    return json.loads((CASES / (name + ".json")).read_text())


def configuration(**keys) -> config.Config:
    values = {"name": "multus", "type": "multus", "delegates": [{"name": "main", "type": "bridge"}], **keys}
    return config.load_config(gojson.parse(json.dumps(values)))


class Cluster:
    """The objects of the API, and what was asked for."""

    def __init__(self, *nads) -> None:
        self.nads = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in nads}
        self.asked: list = []

    def nad(self, namespace: str, name: str) -> dict:
        self.asked.append((namespace, name))
        if (namespace, name) not in self.nads:
            raise NodenetError('network-attachment-definitions.k8s.cni.cncf.io "%s" not found' % name)
        return self.nads[namespace, name]


def nad(name: str, namespace: str = "prod", text: str | None = None, **annotations) -> dict:
    text = json.dumps(dict(LAN, name=name)) if text is None else text
    return {
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"config": text} if text else {},
    }


def decide(networks=None, cluster=None, default=None, namespace="prod", faults=None, device=None, **keys):
    annotations = {key: value for key, value in ((NETWORKS, networks), (DEFAULT, default)) if value is not None}
    pod = {"metadata": {"namespace": namespace, "name": "web-0", "annotations": annotations}}
    cluster = cluster or Cluster(nad("lan"))
    resolver = resolve.Resolver(configuration(**keys), pod, resolve.Sources(cluster.nad, device), faults)
    delegates = resolver.default_networks()
    resolver.pod_networks(delegates)
    return delegates


def names(delegates) -> list:
    return attachments.interface_names(delegates, "eth0")


def of_case(name: str, networks: str | None = None):
    given = case(name)["input"]
    annotations = given["pod"]["annotations"]
    keys = given.get("multus") or {}
    return decide(networks or annotations[NETWORKS], Cluster(*given["nads"]), namespace="prod", **keys)


# --- reported cases


def test_automatic_names_count_positions():
    wanted = case("annotation-auto-names")["check"]["ifnames"]
    assert names(of_case("annotation-auto-names")) == ["eth0", *wanted]


def test_a_missing_bracket_is_an_error():
    with pytest.raises(CniError, match="failed to parse pod Network Attachment Selection Annotation JSON format"):
        of_case("annotation-bad-json")


def test_the_namespace_of_the_pod_is_the_default():
    given = case("annotation-default-namespace")
    cluster = Cluster(*given["input"]["nads"])
    with pytest.raises(CniError, match=r"cannot find a network-attachment-definition \(lan\) in namespace \(prod\)"):
        decide("lan", cluster)
    assert ["%s/%s" % one for one in cluster.asked] == [given["check"]["looked_up"]]
    assert names(decide(given["check"]["hint"], cluster)) == ["eth0", "net1"]


def test_an_interface_name_twice_is_a_fault_before_anything_runs():
    given = case("annotation-duplicate-ifname")
    for networks in [given["input"]["pod"]["annotations"][NETWORKS], *given["check"]["also_errors"]]:
        delegates = of_case("annotation-duplicate-ifname", networks)
        faults = ifnames.name_faults(delegates, names(delegates))
        assert len(faults) == 1
        assert "is used twice" in str(faults[0])
        assert faults[0].index == (1 if networks == "lan@eth0" else 2)


def test_an_interface_name_has_at_most_15_characters():
    with pytest.raises(CniError, match="interface name 'storage_if_0001x'$"):
        of_case("annotation-ifname-too-long")
    accepted = case("annotation-ifname-too-long")["check"]["accepted"]
    assert names(of_case("annotation-ifname-too-long", accepted)) == ["eth0", "storage_if_0001"]


def test_a_long_name_in_json_is_a_fault_as_well():
    delegates = decide('[{"name": "lan", "interface": "storage_if_0001x"}]')
    assert [str(one) for one in ifnames.name_faults(delegates, names(delegates))] == [
        "interface name is too long; interface name should be less than 16 characters"
    ]


def test_the_old_key_of_the_interface_counts_where_the_new_one_is_missing():
    delegates = of_case("annotation-interface-request-old-key")
    assert names(delegates)[1:] == case("annotation-interface-request-old-key")["check"]["ifnames"]


def test_addresses_are_a_list():
    with pytest.raises(CniError, match="JSON format: json: cannot unmarshal string"):
        of_case("annotation-ips-as-string")
    assert of_case("annotation-ips-as-string", '[{"name":"lan","ips":["192.0.2.77/24"]}]')[1].request.ips == [
        "192.0.2.77/24"
    ]


def test_global_namespaces_take_the_place_of_default():
    with pytest.raises(CniError, match="pod is in namespace prod but refers to target namespace default$"):
        of_case("annotation-ns-isolation-global-replaces-default")
    given = case("annotation-ns-isolation-global-replaces-default")["input"]
    assert len(decide("default/lan", Cluster(*given["nads"]), namespaceIsolation=True)) == 2


def test_a_trailing_comma_asks_for_an_object_without_a_name():
    with pytest.raises(CniError, match=r"cannot find a network-attachment-definition \(\) in namespace \(prod\)"):
        of_case("annotation-trailing-comma")


def test_where_a_cluster_network_is_looked_for(tmp_path):
    given = case("multus-clusternetwork-lookup")
    confdir, net_d = tmp_path / "multus.d", tmp_path / "net.d"
    for folder, files in ((confdir, given["input"]["multus_conf_dir"]), (net_d, given["input"]["net_d"])):
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content))
    found, missed = [], []
    for value in given["input"]["values"]:
        asked = value.replace("/etc/cni/net.d", str(net_d))
        faults: list = []
        delegates = decide(cluster=Cluster(), clusterNetwork=asked, confDir=str(confdir), faults=faults)
        if delegates:
            assert [one.network for one in delegates] == ["k8s-pod-network"]
            assert delegates[0].is_master
            found.append(value)
        else:
            assert "failed to get clusterNetwork %s in namespace kube-system" % asked in str(faults[0])
            missed.append(value)
    assert found == given["check"]["found"]
    assert missed == given["check"]["not_found"]


# --- what the vectors do not show


def test_all_faults_at_once():
    faults: list = []
    cluster = Cluster(nad("lan"), nad("bad", text="{"), nad("none", text='{"name": "x"}'))
    delegates = decide("gone,lan,bad,other/lan,none", cluster, "a,b", faults=faults, namespaceIsolation=True)
    assert names(delegates) == ["eth0", "net1"]
    said = [str(one) for one in faults]
    assert len(said) == 5
    for text, part in zip(
        said, ("more than one default", "(gone)", "Spec.Config", "isolation", "must have the 'type' or 'plugin' field")
    ):
        assert part in text


def test_with_faults_collected_the_cause_of_a_missing_cluster_network_is_told():
    faults: list = []
    decide(cluster=Cluster(), clusterNetwork="/nowhere", faults=faults)
    assert str(faults[0]).endswith("in namespace kube-system: stat /nowhere: no such file or directory")


def test_isolation_of_the_default_network():
    cluster = Cluster(nad("a", "kube-system"), nad("b", "other"))
    assert decide(default="a", cluster=cluster, namespaceIsolation=True)[0].name == "kube-system/a"
    with pytest.raises(CniError, match="refers to target namespace other$"):
        decide(default="other/b", cluster=cluster, namespaceIsolation=True)
    assert cluster.asked == [("kube-system", "a")]


def test_a_default_network_may_name_the_interface_of_the_pod():
    delegates = decide("lan", Cluster(nad("lan"), nad("a", "kube-system")), '[{"name": "a", "interface": "main0"}]')
    assert names(delegates) == ["main0", "net1"]
    assert [one.is_master for one in delegates] == [True, False]


def test_devices_go_into_every_plugin():
    ids = iter(["d1", "d2", ""])
    text = json.dumps({"name": "l", "plugins": [{"type": "a"}, {"type": "b", "deviceID": "old"}]})
    annotations = {"k8s.v1.cni.cncf.io/resourceName": "r"}
    cluster = Cluster(nad("lan", **annotations), nad("l", text=text, **annotations))
    delegates = decide(
        '[{"name":"lan"},{"name":"l"},{"name":"lan","deviceID":"asked"}]', cluster, device=lambda _resource: next(ids)
    )
    assert [one.device_id for one in delegates[1:]] == ["d1", "d2", "asked"]
    assert [one.resource_name for one in delegates[1:]] == ["r", "r", ""]
    assert json.loads(delegates[2].data)["plugins"] == [
        {"type": "a", "deviceID": "d2", "pciBusID": "d2"},
        {"type": "b", "deviceID": "d2", "pciBusID": "d2"},
    ]
    assert "deviceID" not in json.loads(delegates[3].data)


@pytest.mark.parametrize("args", [5, {"cni": [1]}, "text"])
def test_cni_args_beside_something_that_is_no_object(args):
    cluster = Cluster(nad("lan", text=json.dumps(dict(LAN, args=args))))
    with pytest.raises(CniError, match="args.cni of the network is no object"):
        decide('[{"name": "lan", "cni-args": {"a": 1}}]', cluster)


def test_cni_args_are_merged_and_numbers_keep_their_digits():
    cluster = Cluster(nad("lan", text='{"name":"lan","type":"x","big":9007199254740993,"args":{"cni":{"a":1,"b":2}}}'))
    delegate = decide('[{"name": "lan", "cni-args": {"a": {"x": []}}}]', cluster)[1]
    assert json.loads(delegate.data) == {
        "name": "lan",
        "type": "x",
        "big": 9007199254740993,
        "args": {"cni": {"a": {"x": []}, "b": 2}},
    }


def test_an_object_without_configuration_is_looked_for_by_its_name(tmp_path):
    (tmp_path / "10.conf").write_text(json.dumps(LAN))
    delegates = decide("lan", Cluster(nad("lan", text="")), confDir=str(tmp_path))
    assert delegates[1].name == "prod/lan"
    (tmp_path / "05.conf").write_text("{")
    with pytest.raises(CniError, match="GetCNIConfig: err in GetCNIConfigFromFile: Error loading CNI config file"):
        decide("lan", Cluster(nad("lan", text="")), confDir=str(tmp_path))


def test_what_a_delegate_is_called_with():
    runtime = {"portMappings": [{"hostPort": 1, "containerPort": 2, "protocol": ""}], "mac": "m", "dns": {"x": 1}}
    told = configuration(runtimeConfig=runtime)
    element = {"name": "lan", "mac": "02:00:00:00:00:01", "ips": ["10.0.0.1"], "bandwidth": {"ingressRate": 5}}
    delegates = decide(json.dumps([element]), runtimeConfig=runtime)
    assert attachments.capability_args(told, delegates[0], "c", "eth0") == {
        "portMappings": [{"hostPort": 1, "containerPort": 2}],
        "mac": "m",
        "dns": {"x": 1},
    }
    assert attachments.capability_args(told, delegates[1], "c", "net1") == {
        "mac": "02:00:00:00:00:01",
        "ips": ["10.0.0.1"],
        "bandwidth": {"ingressRate": 5, "ingressBurst": 0, "egressRate": 0, "egressBurst": 0},
    }
    pod = podargs.parse("K8S_POD_NAME=web-0;IgnoreUnknown=1;X=1;K8S_POD_UID=")
    added = attachments.attachment(told, delegates[1], "net1", pod, "c", "/ns", adding=True)
    assert added.args[-2:] == [("MAC", "02:00:00:00:00:01"), ("IP", "10.0.0.1")]
    removed = attachments.attachment(told, delegates[1], "net1", pod, "c", "/ns")
    assert removed.args == added.args[:-2]


def test_plugins_under_another_spelling_take_no_device_and_no_arguments():
    """libcni goes by the exact name, so such a list is refused when it is loaded, and before that nothing breaks."""
    text = json.dumps({"cniVersion": "1.0.0", "name": "lan", "Plugins": [{"type": "macvlan"}]})
    resource = {resolve.RESOURCE_NAME: "vendor/nic"}
    cluster = Cluster(nad("lan", text=text, **resource))
    delegates = decide('[{"name": "lan", "cni-args": {"a": 1}}]', cluster, device=lambda _resource: "0000:01:00.0")
    assert "0000:01:00.0" not in delegates[1].data.decode()
    with pytest.raises(CniError, match="error parsing configuration list: no 'plugins' key"):
        delegates[1].load()


@pytest.mark.parametrize("text", ["[1, 2]", "5", '"ab"', "true", "null", "[]", "0", '""', "{}", "[[1, 2]]"])
def test_a_list_file_that_is_no_object(tmp_path, text):
    path = tmp_path / "10-lan.conflist"
    path.write_text(text)
    for name in (str(path), str(tmp_path)):
        with pytest.raises(CniError, match=f"error loading CNI conflist file {path}: error parsing configuration list"):
            confdir.from_path(name)
