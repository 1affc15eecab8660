# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import http.server
import json
import os
import threading
import time

import pytest

NAME = "multus_info"
MASTER = {"cniVersion": "0.3.1", "name": "cbr0", "type": "bridge"}
LAN = {
    "cniVersion": "0.3.1",
    "name": "lan",
    "type": "macvlan",
    "master": "ens1",
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "192.0.2.0/24"}]]},
}
CONTAINER = "315bbe38938f72661913b5ed4c645249fdb913219e9898d43a39ccb85abfe0f4"


def config(**more):
    return dict({"cniVersion": "0.3.1", "name": "multus", "type": "multus", "delegates": [MASTER]}, **more)


def network(name="lan", namespace="prod", **more):
    return dict({"name": name, "namespace": namespace, "config": LAN}, **more)


@pytest.fixture
def ask(run_module, tmp_path, tree):
    """Call ask(annotation, networks, **options): what one pod would get; nothing is changed by it."""

    def run(annotation=None, networks=(), pod=None, **options):
        given = dict({"name": "web-0", "namespace": "prod"}, **(pod or {}))
        if annotation is not None:
            given["networks"] = annotation
        paths = {"conf_dir": str(tmp_path), "cache_dir": str(tmp_path / "cache")}
        asked = dict({"config": config(), "pods": [given], "networks": list(networks)}, **paths, **options)
        before = tree(tmp_path)
        result = run_module(NAME, asked)
        assert tree(tmp_path) == before
        assert not result.get("failed"), result
        assert result["changed"] is False
        return result["pods"][0]

    return run


@pytest.mark.parametrize("value", [["lan"], [{"name": "lan"}], {"name": "lan"}, 5, True, None])
@pytest.mark.parametrize("key", ["k8s.v1.cni.cncf.io/networks", "v1.multus-cni.io/default-network", "other"])
def test_an_annotation_that_is_no_text_is_one_sentence(fails, tmp_path, key, value):
    pod = {"name": "web-0", "namespace": "prod", "annotations": {key: value}}
    options = {"conf_dir": str(tmp_path), "cache_dir": str(tmp_path / "cache"), "config": config(), "pods": [pod]}
    assert fails(NAME, options) == (
        f"Cannot use the annotations of pod prod/web-0: the value of {key} is no text; "
        "make it one with the filter nodenet.cni.format_networks"
    )


def codes(pod):
    return [one["code"] for one in pod["findings"]]


def texts(pod):
    return " | ".join(one["text"] + "; " + one["hint"] for one in pod["findings"])


# --- the cases


def case_of(ask, case, name, annotation=None):
    one = case(name)
    pod = one["input"]["pod"]
    given = {"name": pod["name"], "namespace": pod["namespace"], "annotations": dict(pod["annotations"])}
    if annotation is not None:
        given["annotations"]["k8s.v1.cni.cncf.io/networks"] = annotation
    return one, ask(None, one["input"]["nads"], given, config=config(**one["input"]["multus"]))


def extra(pod):
    return [one["interface"] for one in pod["delegates"] if not one["master"]]


def test_case_automatic_names(ask, case):
    one, pod = case_of(ask, case, "annotation-auto-names")
    assert extra(pod) == one["check"]["ifnames"]
    assert pod["usable"] is True


def test_case_bad_json(ask, case):
    one, pod = case_of(ask, case, "annotation-bad-json")
    assert "not valid JSON at line 1, column 35" in texts(pod)
    assert pod["usable"] is not one["check"]["error"]
    assert extra(pod) == []


def test_case_default_namespace(ask, case):
    one, pod = case_of(ask, case, "annotation-default-namespace")
    assert codes(pod) == ["MULTUS010"]
    assert pod["usable"] is not one["check"]["error"]
    assert one["check"]["looked_up"] in texts(pod)
    assert one["check"]["hint"] in texts(pod)
    assert 'network-attachment-definitions.k8s.cni.cncf.io "lan" not found' in pod["refusal"]


def test_case_duplicate_interfaces(ask, case):
    one, pod = case_of(ask, case, "annotation-duplicate-ifname")
    assert codes(pod) == ["MULTUS013"]
    assert pod["usable"] is not one["check"]["error"]
    assert "the interface lan0 of prod/lan is that of prod/lan already" in texts(pod)
    for annotation in one["check"]["also_errors"]:
        _one, pod = case_of(ask, case, "annotation-duplicate-ifname", annotation)
        assert codes(pod) == ["MULTUS013"], annotation
        assert pod["usable"] is False


def test_case_interface_too_long(ask, case):
    one, pod = case_of(ask, case, "annotation-ifname-too-long")
    assert "'storage_if_0001x' has 16 characters, at most 15" in texts(pod)
    assert pod["usable"] is not one["check"]["error"]
    _one, pod = case_of(ask, case, "annotation-ifname-too-long", one["check"]["accepted"])
    assert (pod["usable"], extra(pod)) == (True, ["storage_if_0001"])


def test_case_old_key(ask, case):
    one, pod = case_of(ask, case, "annotation-interface-request-old-key")
    assert extra(pod) == one["check"]["ifnames"]
    assert codes(pod) == ["MULTUS008"] * one["check"]["warnings"]
    assert pod["usable"] is True


def test_case_ips_as_text(ask, case):
    one, pod = case_of(ask, case, "annotation-ips-as-string")
    assert "ips has to be a list, not text" in texts(pod)
    assert pod["usable"] is not one["check"]["error"]
    _one, pod = case_of(ask, case, "annotation-ips-as-string", '[{"name":"lan","ips":["192.0.2.77/24"]}]')
    assert len(extra(pod)) == one["check"]["as_list"]["delegates"]
    assert codes(pod) == ["MULTUS015"]
    assert one["check"]["as_list"]["warnings"][0] in texts(pod)
    assert pod["usable"] is True


def test_case_global_namespaces_replace_default(ask, case):
    one, pod = case_of(ask, case, "annotation-ns-isolation-global-replaces-default")
    assert codes(pod) == ["MULTUS012"]
    assert pod["usable"] is not one["check"]["error"]
    assert "default/lan is not open to pods of namespace prod, only those of kube-system, shared are" in texts(pod)
    assert "namespace isolation enabled" in pod["refusal"]


def test_case_trailing_comma(ask, case):
    one, pod = case_of(ask, case, "annotation-trailing-comma")
    assert "element 2: empty network name" in texts(pod)
    assert pod["usable"] is not one["check"]["error_or_warning"]


def test_case_cluster_network(run_module, tmp_path, case):
    one = case("multus-clusternetwork-lookup")
    folders = {"multus_conf_dir": tmp_path / "multus", "net_d": tmp_path / "net.d"}
    for key, folder in folders.items():
        folder.mkdir()
        for name, content in one["input"][key].items():
            (folder / name).write_text(json.dumps(content))
    found = {}
    for value in one["input"]["values"]:
        asked = config(
            **dict(one["input"]["multus"], confDir=str(folders["multus_conf_dir"])),
            clusterNetwork=value.replace("/etc/cni/net.d", str(folders["net_d"])),
        )
        result = run_module(NAME, {"config": asked, "pods": [{"name": "a"}], "cached": False})
        (pod,) = result["pods"]
        found[value] = [each["network"] for each in pod["delegates"]]
        assert pod["usable"] is bool(found[value])
        assert codes(pod) == ([] if found[value] else ["MULTUS016"])
    assert found == {
        **{value: ["k8s-pod-network"] for value in one["check"]["found"]},
        **{value: [] for value in one["check"]["not_found"]},
    }


# --- what a pod gets


def test_what_plugins_are_called_with(ask):
    lan = dict(LAN, capabilities={"ips": True, "mac": True, "bandwidth": False})
    chain = {
        "cniVersion": "1.0.0",
        "name": "chain",
        "plugins": [lan, {"type": "tuning", "capabilities": {"mac": True}}],
    }
    element = {
        "name": "lan",
        "interface": "lan0",
        "ips": ["192.0.2.77/24"],
        "mac": "02:00:00:00:00:01",
        "bandwidth": {"ingressRate": 1},
        "cni-args": {"vlan": 7},
        "default-route": ["192.0.2.1"],
    }
    pod = ask(
        json.dumps([element]), [network(config=chain)], {"uid": "u-1", "container_id": CONTAINER, "ifname": "net0"}
    )
    master, delegate = pod["delegates"]
    common = "IgnoreUnknown=true;K8S_POD_NAMESPACE=prod;K8S_POD_NAME=web-0;"
    common += f"K8S_POD_INFRA_CONTAINER_ID={CONTAINER};K8S_POD_UID=u-1"
    assert master["interface"] == "net0"
    assert master["config"] == MASTER
    assert master["cni_args"].startswith(common)
    assert "MAC" not in master["cni_args"]
    assert (delegate["index"], delegate["name"], delegate["network"]) == (1, "prod/lan", "chain")
    assert delegate["cni_version"] == "1.0.0"
    assert delegate["interface"] == "lan0"
    assert delegate["cni_args"].startswith(common)
    assert delegate["cni_args"].endswith(";MAC=02:00:00:00:00:01;IP=192.0.2.77/24")
    assert delegate["plugins"] == [
        {"type": "macvlan", "runtime_config": {"ips": ["192.0.2.77/24"], "mac": "02:00:00:00:00:01"}},
        {"type": "tuning", "runtime_config": {"mac": "02:00:00:00:00:01"}},
    ]
    assert [each["args"] for each in delegate["config"]["plugins"]] == [{"cni": {"vlan": 7}}] * 2
    assert delegate["default_route"] == ["192.0.2.1"]
    assert codes(pod) == ["MULTUS015"]
    assert "capabilities.bandwidth" in texts(pod)
    assert (pod["usable"], pod["refusal"], pod["uid"]) == (True, None, "u-1")


def test_every_fault_at_once_and_the_names_of_the_rest_are_right(ask):
    broken = network("broken", config="{")
    listless = network("listless", config={"cniVersion": "0.3.1", "name": "x"})
    pod = ask("Bad, gone, lan, broken, listless, other/lan, lan@eth0", [network(), broken, listless])
    assert codes(pod) == ["MULTUS007", "MULTUS009", "MULTUS011", "MULTUS011", "MULTUS010", "MULTUS013"]
    assert "'Bad' has to consist of lower case letters" in texts(pod)
    assert "there is no network prod/gone" in texts(pod)
    assert "prod/broken cannot be used: its configuration is not valid JSON at line 1, column 2: " in texts(pod)
    assert "prod/listless cannot be used" in texts(pod)
    assert "there is no network other/lan, but there is prod/lan" in texts(pod)
    assert [(one["index"], one["interface"]) for one in pod["delegates"]] == [(0, "eth0"), (3, "net3"), (7, "eth0")]
    assert pod["usable"] is False
    assert "mismatch @ 'Bad'" in pod["refusal"]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"cniVersion": "1.0.0", "name": "x", "plugins": [LAN, {"snat": True}]}, "missing 'type'"),
        ({"cniVersion": "1.0.0", "name": "a b", "type": "macvlan"}, "'a b' cannot be the name of a network"),
        ({"cniVersion": "1.0.0", "name": "x", "plugins": [LAN], "disableCheck": "perhaps"}, "disableCheck"),
    ],
)
def test_what_fails_only_when_it_runs(ask, document, reason):
    pod = ask("lan", [network(config=document)])
    assert "MULTUS011" in codes(pod)
    assert reason in texts(pod)
    assert pod["usable"] is False
    assert reason in pod["refusal"]


def test_a_default_network(ask):
    given = network("other", "kube-system", config=dict(LAN, name="other"))
    pod = ask("lan", [network(), given], {"default_network": "other@x0"})
    assert [(one["name"], one["interface"], one["master"]) for one in pod["delegates"]] == [
        ("kube-system/other", "x0", True),
        ("prod/lan", "net1", False),
    ]
    pod = ask(None, [], {"default_network": "other"})
    assert codes(pod) == ["MULTUS009"]
    assert "kube-system/other" in texts(pod)
    pod = ask(None, [given], {"default_network": "other,other"})
    assert codes(pod) == ["MULTUS016"]
    assert "more than one default network" in texts(pod)


def test_two_default_routes_of_a_family(ask):
    routes = [{"name": "lan", "default-route": ["192.0.2.1"]}, {"name": "lan", "default-route": ["192.0.2.2"]}]
    pod = ask(json.dumps(routes), [network()])
    assert codes(pod) == ["MULTUS016"]
    assert "does not support ECMP" in texts(pod)


def test_networks_as_the_api_gives_them(ask):
    document = {
        "metadata": {"name": "lan", "namespace": "prod", "annotations": {"k8s.v1.cni.cncf.io/resourceName": "a.b/c"}},
        "spec": {"config": json.dumps(LAN)},
    }
    pod = ask("lan", [document])
    assert pod["usable"] is True
    assert codes(pod) == ["MULTUS017"]
    assert "a.b/c" in texts(pod)


def test_a_network_without_a_configuration_is_a_file(ask, tmp_path):
    (tmp_path / "multus").mkdir()
    (tmp_path / "multus" / "10-lan.conf").write_text(json.dumps(LAN))
    pod = ask("lan", [{"name": "lan", "namespace": "prod"}], config=config(confDir=str(tmp_path / "multus")))
    assert pod["delegates"][1]["config"] == LAN
    pod = ask("lan", [{"name": "lan", "namespace": "prod"}], config=config(confDir=str(tmp_path / "none")))
    assert "No networks found in" in texts(pod)


def test_the_linter_looks_at_networks(ask):
    pod = ask("lan", [network(config=dict(LAN, mtu="1500"))])
    assert any("mtu" in one["text"] and one["where"] == "network prod/lan" for one in pod["findings"])


def test_the_configuration_of_the_node(run_module, tmp_path):
    (tmp_path / "10-a.conf").write_text(json.dumps(MASTER))
    document = {"cniVersion": "1.0.0", "name": "m", "plugins": [{"type": "multus", "delegates": [MASTER]}]}
    (tmp_path / "20-multus.conflist").write_text(json.dumps(document))
    result = run_module(NAME, {"conf_dir": str(tmp_path), "pods": [{"name": "a"}], "cached": False})
    assert result["config_source"] == str(tmp_path / "20-multus.conflist")
    assert [one["name"] for one in result["pods"][0]["delegates"]] == ["cbr0"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"config": None}, "no file there is of Multus; give config"),
        ({"config": {"type": "bridge", "name": "x"}}, "none of its plugins is multus"),
        ({"config": {"type": "multus", "name": "x"}}, "at least one delegate/clusterNetwork must be specified"),
        ({"config": {"name": "x"}}, "missing 'type'"),
        ({"networks": [{"namespace": "x"}]}, "networks[0]: it has no name"),
        ({"networks": [{"name": "x", "spec": {}}]}, "networks[0]: there is no spec"),
        ({"networks": [{"name": "x", "config": [1]}]}, "config has to be a dictionary or text"),
        ({"api": True}, "names no kubeconfig"),
        ({"api": True, "config": dict(config(), kubeconfig="/nonexistent")}, "no such file"),
    ],
)
def test_what_makes_no_sense(fails, tmp_path, more, reason):
    asked = {"conf_dir": str(tmp_path), "config": config(), "pods": [{"name": "a"}], "cached": False}
    message = fails(NAME, dict(asked, **more))
    assert message.startswith("Cannot ")
    assert reason in message


# --- the API server


@pytest.fixture
def api(tmp_path):
    """An API server with the objects of a dictionary by path; ``seen`` are the paths that were asked for."""
    objects, seen = {}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            path = self.path.partition("?")[0]
            seen.append(path)
            found = objects.get(path, {"kind": "Status", "message": f'"{path}" not found', "code": 404})
            data = json.dumps(found).encode()
            self.send_response(found.get("code", 200))
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    kubeconfig = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        "users": [],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))
    yield objects, seen, config(kubeconfig=str(tmp_path / "kubeconfig"))
    server.shutdown()
    thread.join()
    server.server_close()


NADS = "/apis/k8s.cni.cncf.io/v1/namespaces/{}/network-attachment-definitions/{}"


def test_pods_and_networks_of_the_api(ask, api):
    objects, seen, document = api
    annotations = {"k8s.v1.cni.cncf.io/networks": "lan,lan,gone,default-one"}
    objects["/api/v1/namespaces/prod/pods/web-0"] = {
        "metadata": {"name": "web-0", "namespace": "prod", "uid": "u-7", "annotations": annotations}
    }
    objects[NADS.format("prod", "lan")] = {"metadata": {"name": "lan"}, "spec": {"config": json.dumps(LAN)}}
    objects[NADS.format("default", "default-one")] = {"metadata": {}, "spec": {"config": json.dumps(LAN)}}
    pod = ask(api=True, config=document)
    assert pod["uid"] == "u-7"
    assert [one["interface"] for one in pod["delegates"]] == ["eth0", "net1", "net2"]
    assert codes(pod) == ["MULTUS009", "MULTUS010"]
    assert "there is no network prod/default-one, but there is default/default-one" in texts(pod)
    assert seen.count(NADS.format("prod", "lan")) == 1
    pod = ask("given", [network("given")], api=True, config=document)
    assert [one["name"] for one in pod["delegates"]] == ["cbr0", "prod/given"]


def test_a_pod_that_the_api_does_not_give(ask, api):
    _objects, _seen, document = api
    pod = ask(api=True, config=document)
    assert codes(pod) == ["MULTUS018"]
    assert (pod["usable"], pod["delegates"]) == (False, [])


# --- the cache


def remember(folder, container, *delegates, age=3600):
    folder.mkdir(exist_ok=True)
    rows = []
    for name, document, ifname in delegates:
        data = base64.b64encode(json.dumps(document).encode()).decode()
        rows.append({"Conf": {}, "ConfList": {}, "Name": name, "ifnameRequest": ifname, "Bytes": data})
    (folder / container).write_text(json.dumps(rows))
    when = time.time() - age
    os.utime(str(folder / container), (when, when))


def attach(folder, container, name, ifname):
    (folder / "results").mkdir(exist_ok=True)
    entry = {
        "kind": "cniCacheV1",
        "containerId": container,
        "networkName": name,
        "ifName": ifname,
        "cniArgs": [["K8S_POD_NAMESPACE", "prod"], ["K8S_POD_NAME", "web-0"], ["K8S_POD_UID", ""]],
        "result": {"cniVersion": "0.3.1"},
    }
    (folder / "results" / f"{name}-{container}-{ifname}").write_text(json.dumps(entry))


def test_cached_delegates(run_module, tmp_path, tree):
    cache = tmp_path / "cache"
    remember(cache, CONTAINER, ("cbr0", MASTER, ""), ("prod/lan", LAN, ""), ("prod/lan", LAN, "lan0"))
    attach(cache, CONTAINER, "cbr0", "net0")
    other = CONTAINER.replace("3", "4")
    remember(cache, other, ("cbr0", MASTER, ""), age=60)
    (cache / "broken").write_text("[]")
    before = tree(tmp_path)
    options = {"cache_dir": str(cache), "conf_dir": str(tmp_path)}
    result = run_module(NAME, dict(options, live={"attachments": [{"container_id": CONTAINER}]}))
    assert tree(tmp_path) == before
    rows = {row["container_id"]: row for row in result["cached"]}
    assert sorted(rows) == sorted([CONTAINER, other, "broken"])
    row = rows[CONTAINER]
    assert 3600 <= row["age_s"] < 3700
    assert (row["namespace"], row["name"], row["uid"]) == ("prod", "web-0", None)
    assert (row["alive"], row["usable"]) == (True, True)
    assert row["delegates"] == [
        {"name": "cbr0", "network": "cbr0", "interface": "net0", "attached": True},
        {"name": "prod/lan", "network": "lan", "interface": "net1", "attached": False},
        {"name": "prod/lan", "network": "lan", "interface": "lan0", "attached": False},
    ]
    assert rows[other]["alive"] is False
    assert (rows["broken"]["usable"], rows["broken"]["alive"]) == (False, None)
    assert [one["code"] for one in result["findings"]] == ["MULTUS019", "MULTUS020"]
    assert other[:12] in result["findings"][1]["text"]
    without = run_module(NAME, options)
    assert {row["alive"] for row in without["cached"]} == {None}
    assert run_module(NAME, dict(options, cached=False))["cached"] == []
    assert without["config_source"] is None


def test_no_cache_is_an_empty_one(run_module, tmp_path):
    assert run_module(NAME, {"cache_dir": str(tmp_path / "none")})["cached"] == []
    (tmp_path / "file").write_text("")
    result = run_module(NAME, {"cache_dir": str(tmp_path / "file")})
    assert [one["code"] for one in result["findings"]] == ["NODE020"]


def test_who_is_alive_has_to_be_said_somehow(fails):
    assert "one of the following is required" in fails(NAME, {"live": {}})
