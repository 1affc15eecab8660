# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import json
import os
import re
import time

import pytest

NAME = "multus_config"
CALICO = {
    "name": "k8s-pod-network",
    "cniVersion": "0.3.1",
    "plugins": [
        {"type": "calico", "ipam": {"type": "calico-ipam"}},
        {"type": "portmap", "capabilities": {"portMappings": True}},
        {"type": "bandwidth", "capabilities": {"bandwidth": True}},
    ],
}
LATER = dict(CALICO, cniVersion="1.0.0")
API = {"server": "https://10.96.0.1:443", "ca": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"}


def token(**claims):
    payload = dict({"sub": "system:serviceaccount:kube-system:multus"}, **claims)
    parts = [json.dumps(one).encode() for one in ({"alg": "none"}, payload)]
    return ".".join([base64.urlsafe_b64encode(one).decode().rstrip("=") for one in parts] + ["c2ln"])


def lasting(left, age=60):
    now = int(time.time())
    return token(exp=now + left, iat=now - age)


class Node:
    """A node with a conf dir, a directory of plugins and a cache of Multus."""

    def __init__(self, root):
        self.root = root
        self.conf = root / "net.d"
        self.bin = root / "bin"
        self.cache = root / "multus"
        for one in (self.conf, self.bin, self.cache):
            one.mkdir()
        for name in ("multus", "calico", "portmap", "bandwidth", "calico-ipam", "loopback"):
            self.plugin(name)

    def plugin(self, name):
        (self.bin / name).write_text("#!/bin/sh\nexit 1\n")

    def write(self, **files):
        for name, content in files.items():
            self.put(name, content)
        return self

    def put(self, name, content):
        path = self.conf / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    def read(self, name):
        return json.loads((self.conf / name).read_text())

    def names(self):
        return sorted(os.listdir(str(self.conf)))

    def options(self, **more):
        paths = {
            "conf_dir": str(self.conf),
            "bin_dir": str(self.bin),
            "cache_dir": str(self.cache),
            "state_dir": str(self.root / "state"),
            "containerd_config": str(self.root / "containerd.toml"),
            "crio_config": str(self.root / "crio.conf"),
        }
        return dict(paths, **more)


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


@pytest.fixture
def calico(node):
    node.put("10-calico.conflist", CALICO)
    return node


# --- present


@pytest.mark.parametrize("document", [CALICO, LATER], ids=["conf", "conflist"])
def test_check_mode_predicts_then_it_is_written_then_nothing_changes(run_module, node, tmp_path, tree, document):
    node.put("10-calico.conflist", document)
    options = node.options(kubeconfig=dict(API, token=lasting(86400)))
    before = tree(tmp_path)
    predicted = run_module(NAME, options, check=True, diff=True)
    assert tree(tmp_path) == before
    done = run_module(NAME, options, diff=True)
    for result in (predicted, done):
        assert 86300 < result["kubeconfig"].pop("expires_in_s") <= 86400
        assert 60 <= result["kubeconfig"].pop("token_age_s") < 160
    assert predicted == done
    assert done["changed"] is True
    name = "00-multus.conf" if document is CALICO else "00-multus.conflist"
    written = node.read(name)
    assert written == done["config"]
    plugin = written if document is CALICO else written["plugins"][0]
    assert written["cniVersion"] == document["cniVersion"]
    assert plugin["type"] == "multus"
    assert plugin["delegates"] == [document]
    assert plugin["kubeconfig"] == str(node.conf / "multus.d" / "multus.kubeconfig")
    assert oct((node.conf / name).stat().st_mode & 0o777) == "0o600"
    assert done["file"] == str(node.conf / name)
    assert done["master"] == {
        "network": "k8s-pod-network",
        "file": "10-calico.conflist",
        "cni_version": document["cniVersion"],
        "types": ["calico", "portmap", "bandwidth"],
    }
    assert {runtime: one["network"] for runtime, one in done["effective"]["before"].items()} == {
        "containerd": "k8s-pod-network",
        "crio": "k8s-pod-network",
    }
    assert {one["network"] for one in done["effective"]["after"].values()} == {"multus-cni-network"}
    after = tree(tmp_path)
    again = run_module(NAME, options, diff=True)
    assert (again["changed"], again["diff"], again["drift"], again["removed"]) == (False, [], [], [])
    assert tree(tmp_path) == after


def test_case_capabilities_merged(run_module, node, case):
    one = case("multus-capabilities-merged")
    node.write(**one["input"]["conf_dir"])
    done = run_module(NAME, node.options(**one["input"]["params"]))
    assert done["capabilities"] == one["check"]["capabilities"]
    assert done["config"]["capabilities"] == one["check"]["capabilities"]


def test_case_cni_versions_have_to_agree(run_module, fails, node, case, tree, tmp_path):
    one = case("multus-cniversion-mismatch")
    assert one["check"]["failed"] is True  # what fails() asserts
    node.write(**one["input"]["conf_dir"])
    before = tree(tmp_path)
    message = fails(NAME, node.options(**one["input"]["params"]))
    assert "0.4.0" in message
    assert "0.3.1" in message
    assert tree(tmp_path) == before
    done = run_module(NAME, node.options(master=one["input"]["params"]["master"]))
    assert done["cni_version"] == done["config"]["cniVersion"] == one["check"]["auto_version"]


def test_a_version_can_be_forced_into_the_copy(run_module, calico):
    done = run_module(NAME, calico.options(cni_version="1.0.0", force_cni_version=True))
    assert done["file"].endswith("/00-multus.conflist")
    assert done["config"]["plugins"][0]["delegates"][0]["cniVersion"] == "1.0.0"
    assert calico.read("10-calico.conflist") == CALICO
    assert run_module(NAME, calico.options(cni_version="1.0.0", force_cni_version=True))["changed"] is False


@pytest.mark.parametrize("version", ["0.5.0", "1.2.0", "x"])
def test_a_version_that_multus_does_not_speak_is_refused(fails, node, version):
    node.put("10-calico.conflist", dict(CALICO, cniVersion=version))
    assert "does not speak" in fails(NAME, node.options(master="k8s-pod-network"))
    assert "does not speak" in fails(NAME, node.options(cni_version=version, force_cni_version=True))


def test_a_master_without_a_version_is_refused(fails, node):
    node.put("10-a.conf", {"name": "a", "type": "calico"})
    assert fails(NAME, node.options()).endswith("the master 10-a.conf has no cniVersion; Multus' has to be the same")


def test_a_master_without_a_name_is_refused(fails, node):
    node.put("10-a.conf", {"cniVersion": "0.3.1", "type": "calico"})
    assert "the master 10-a.conf has no name" in fails(NAME, node.options())


def test_case_master_by_path_file_or_name(run_module, node, case):
    one = case("multus-master-file-path")
    node.write(**one["input"]["conf_dir"])
    found = []
    for wanted in one["input"]["params_each"]:
        wanted = wanted.replace("/etc/cni/net.d", str(node.conf))
        found.append(run_module(NAME, node.options(master=wanted), check=True))
    assert [each["master"]["network"] for each in found] == [one["check"]["delegate"]] * 3
    assert found[0] == found[1] == found[2]


def test_a_master_that_lies_elsewhere(run_module, node):
    (node.root / "10-calico.conflist").write_text(json.dumps(CALICO))
    options = node.options(master=str(node.root / "10-calico.conflist"))
    assert run_module(NAME, options)["master"]["network"] == "k8s-pod-network"
    assert run_module(NAME, options)["changed"] is False


def test_case_master_not_there_yet(fails, node, case, tree, tmp_path):
    one = case("multus-master-not-there-yet")
    assert one["check"] == {"failed": True, "written": []}  # what fails() and the tree assert
    node.write(**one["input"]["conf_dir"])
    before = tree(tmp_path)
    message = fails(NAME, node.options(**one["input"]["params"]))
    assert f"master network k8s-pod-network not found in {node.conf} (seen: loopback)" in message
    assert tree(tmp_path) == before
    for wanted in ("", "loopback", "200-loopback.conflist", str(node.conf / "200-loopback.conflist")):
        message = fails(NAME, node.options(master=wanted, kubeconfig=dict(API, token="opaque-1")))
        assert "loopback" in message
    assert tree(tmp_path) == before


@pytest.mark.parametrize("wanted", ["multus-cni-network", "00-multus.conf", "multi", "70-own.conflist"])
def test_multus_is_never_its_own_master(fails, calico, wanted, tree, tmp_path):
    calico.put(
        "00-multus.conf", {"cniVersion": "0.3.1", "name": "multus-cni-network", "type": "multus", "delegates": [CALICO]}
    )
    calico.put("70-own.conflist", {"cniVersion": "1.0.0", "name": "multi", "plugins": [{"type": "multus-shim"}]})
    before = tree(tmp_path)
    assert "Multus would call itself" in fails(NAME, calico.options(master=wanted))
    assert "Multus would call itself" in fails(NAME, calico.options(master=str(calico.conf / "00-multus.conf")))
    assert tree(tmp_path) == before


def test_the_master_is_by_default_what_the_runtimes_use_without_multus(run_module, calico):
    calico.put("05-loopback.conf", {"cniVersion": "0.3.1", "name": "lo", "type": "loopback"})
    calico.put("20-other.conf", {"cniVersion": "0.3.1", "name": "other", "type": "portmap"})
    for _run in range(2):
        assert run_module(NAME, calico.options())["master"]["network"] == "k8s-pod-network"


def test_runtimes_that_use_different_networks_need_a_master(fails, calico):
    calico.put("05-new.conf", {"cniVersion": "0.3.1", "name": "new", "type": "not-installed"})
    message = fails(NAME, calico.options())
    assert "new (05-new.conf), k8s-pod-network (10-calico.conflist); name the master" in message


def test_a_network_that_two_files_define_is_no_master(fails, calico):
    calico.put("20-calico.conflist", CALICO)
    assert "10-calico.conflist, 20-calico.conflist" in fails(NAME, calico.options(master="k8s-pod-network"))


def test_a_broken_master_is_named(fails, node):
    node.put("10-a.conf", "{")
    assert "not usable: 10-a.conf (" in fails(NAME, node.options(master="a"))
    assert "no runtime can load it" in fails(NAME, node.options(master="10-a.conf"))
    assert "cannot be read" in fails(NAME, node.options(master="/nonexistent/x.conf"))
    assert "has to end in" in fails(NAME, node.options(master="/nonexistent/x.old"))


def test_case_the_copy_follows_a_changed_master(run_module, node, case):
    one = case("multus-snapshot-drift")
    node.write(**one["input"]["conf_dir"])
    runs = [run_module(NAME, node.options(**one["input"]["params"])) for _run in range(2)]
    assert runs[0]["drift"] == one["check"]["drift"]
    assert [each["changed"] for each in runs] == one["check"]["changed"]
    assert node.read("00-multus.conf")["delegates"][0]["plugins"][0]["mtu"] == 1450
    assert runs[1]["drift"] == []


@pytest.mark.parametrize(
    ("change", "places"),
    [
        (lambda one: one["plugins"].pop(), ["delegates.0.plugins"]),
        (lambda one: one["plugins"][0].update(mtu="1450"), ["delegates.0.plugins.0.mtu"]),
        (lambda one: one["plugins"][0].pop("ipam"), ["delegates.0.plugins.0.ipam"]),
        (lambda one: one["plugins"][1]["capabilities"].update(portMappings=False),
         ["delegates.0.plugins.1.capabilities.portMappings"]),
    ],
)  # fmt: skip
def test_drift_names_the_place(run_module, calico, change, places):
    calico.put(
        "10-calico.conflist", dict(CALICO, plugins=[dict(CALICO["plugins"][0], mtu=1450), *CALICO["plugins"][1:]])
    )
    run_module(NAME, calico.options())
    document = calico.read("10-calico.conflist")
    change(document)
    calico.put("10-calico.conflist", document)
    done = run_module(NAME, calico.options())
    assert (done["changed"], done["drift"]) == (True, places)


def test_numbers_of_the_master_keep_their_spelling(run_module, node):
    text = '{"cniVersion":"0.3.1","name":"n","type":"calico","a":9007199254740993,"b":1.0,"c":1e400,"d":"a&b"}'
    node.put("10-n.conf", text)
    run_module(NAME, node.options())
    written = (node.conf / "00-multus.conf").read_text()
    assert '"a": 9007199254740993' in written
    assert '"b": 1.0' in written
    assert '"c": 1e400' in written
    assert json.loads(written)["delegates"][0]["d"] == "a&b"
    assert run_module(NAME, node.options())["changed"] is False


def test_case_the_twin_of_another_ending_goes(run_module, node, case):
    one = case("multus-stale-conf-beside-conflist")
    node.write(**one["input"]["conf_dir"])
    done = run_module(NAME, node.options(**one["input"]["params"]))
    assert set(one["check"]["present"]) <= set(node.names())
    assert not set(one["check"]["absent"]) & set(node.names())
    assert done["removed"] == [str(node.conf / "00-multus.conf")]
    assert done["effective"]["after"]["containerd"]["file"] == "00-multus.conflist"
    node.put("10-calico.conflist", CALICO)  # and back again
    done = run_module(NAME, node.options(**dict(one["input"]["params"], cni_version="0.3.1")))
    assert "00-multus.conflist" not in node.names()
    assert done["effective"]["after"]["containerd"]["file"] == "00-multus.conf"


def test_a_broken_file_of_multus_is_replaced(run_module, calico):
    calico.put("00-multus.conf", "")
    done = run_module(NAME, calico.options())
    assert (done["changed"], done["drift"]) == (True, [])
    assert calico.read("00-multus.conf")["type"] == "multus"


def test_a_foreign_file_in_its_place_is_left_alone(fails, calico, tree, tmp_path):
    calico.put("00-multus.conf", {"cniVersion": "0.3.1", "name": "mine", "type": "portmap"})
    before = tree(tmp_path)
    assert "defines network mine, which is not Multus'" in fails(NAME, calico.options(master="k8s-pod-network"))
    assert tree(tmp_path) == before


def test_without_the_plugin_nothing_is_written(run_module, fails, calico, tree, tmp_path):
    (calico.bin / "multus").unlink()
    before = tree(tmp_path)
    message = fails(NAME, calico.options(kubeconfig=dict(API, token="opaque-1")))
    assert f"there is no plugin multus in {calico.bin}" in message
    assert tree(tmp_path) == before
    assert run_module(NAME, calico.options(bin_dir=str(tmp_path / "later")))["changed"] is True


def test_all_members(run_module, calico):
    done = run_module(
        NAME,
        calico.options(
            name="",
            namespace_isolation=True,
            global_namespaces=["default", "a b"],
            log_to_stderr=False,
            log_level="debug",
            log_file="/var/log/m.log",
            delegate_conf_dir="/x/mnet",
            delegate_bin_dir="/opt/multus/bin",
            readiness_indicator_file="/run/ready",
            kubeconfig=dict(API, token="sa-token-1"),
            settings={"systemNamespaces": ["kube-system", "x"], "apiTimeoutSeconds": 5, "retryDeleteOnError": True},
        ),
    )
    assert done["config"] == {
        "cniVersion": "0.3.1",
        "name": "k8s-pod-network",
        "type": "multus",
        "capabilities": {"bandwidth": True, "portMappings": True},
        "namespaceIsolation": True,
        "globalNamespaces": "default,a b",
        "logToStderr": False,
        "logLevel": "debug",
        "logFile": "/var/log/m.log",
        "confDir": "/x/mnet",
        "cniDir": str(calico.cache),
        "binDir": "/opt/multus/bin",
        "readinessindicatorfile": "/run/ready",
        "kubeconfig": str(calico.conf / "multus.d" / "multus.kubeconfig"),
        "systemNamespaces": ["kube-system", "x"],
        "apiTimeoutSeconds": 5,
        "retryDeleteOnError": True,
        "delegates": [CALICO],
    }
    # Multus' network has the master's name, and that is told
    assert "CONF" in json.dumps(done["findings"])


def test_directories_that_multus_takes_by_itself_are_left_out(run_module, calico):
    done = run_module(NAME, calico.options(cache_dir="/var/lib/cni/multus", delegate_bin_dir="/opt/cni/bin"))
    assert "binDir" not in done["config"]
    assert "cniDir" not in done["config"]
    assert done["config"]["confDir"] == "/etc/cni/multus/net.d"


@pytest.mark.parametrize("settings", [{"delegates": []}, {"ClusterNetwork": "x"}, {"kubeconfig": "/k"}])
def test_settings_do_not_take_what_has_an_option(fails, calico, settings):
    assert next(iter(settings)) in fails(NAME, calico.options(settings=settings))


def test_settings_of_a_wrong_type_are_refused(fails, calico, tree, tmp_path):
    before = tree(tmp_path)
    assert "systemNamespaces" in fails(NAME, calico.options(settings={"systemNamespaces": "kube-system"}))
    assert tree(tmp_path) == before


def test_a_fault_of_the_master_is_a_finding(run_module, node):
    node.put("10-a.conf", {"cniVersion": "0.3.1", "name": "a", "type": "portmap", "snat": "yes"})
    done = run_module(NAME, node.options())
    assert any("snat" in one["text"] and one["where"].endswith("00-multus.conf") for one in done["findings"])


def test_plugins_of_the_masters_sub_directory_are_missed(run_module, calico):
    calico.put("10-calico.conflist", LATER)
    calico.put("k8s-pod-network/10-tuning.conf", {"type": "tuning"})
    done = run_module(NAME, calico.options())
    assert "MULTUS006" in [one["code"] for one in done["findings"]]


# --- what the runtimes use


def test_a_file_that_is_read_before_multus_is_in_the_way(run_module, fails, calico, tree, tmp_path):
    calico.put("00-a.conf", {"cniVersion": "0.3.1", "name": "first", "type": "portmap"})
    before = tree(tmp_path)
    message = fails(NAME, calico.options(master="k8s-pod-network"))
    assert "containerd would use network first instead of multus-cni-network" in message
    assert message.endswith("; set expect_effective to the network that is meant (roles: multus_expect_effective)")
    assert tree(tmp_path) == before
    done = run_module(NAME, calico.options(master="k8s-pod-network", expect_effective="first"))
    assert done["changed"] is True


def test_a_runtime_that_nobody_understands(run_module, fails, calico):
    (calico.root / "containerd.toml").write_text("[broken")
    options = calico.options()
    assert "unknown network" in fails(NAME, dict(options, expect_effective="multus-cni-network"))
    done = run_module(NAME, options)
    assert done["effective"]["after"]["containerd"]["known"] is False


# --- the kubeconfig


def kubeconfig_of(node):
    return node.read("multus.d/multus.kubeconfig")


def test_the_kubeconfig_is_json_for_its_owner_alone(run_module, calico):
    text = lasting(86400)
    done = run_module(NAME, calico.options(kubeconfig=dict(API, token=text + "\n")), diff=True)
    path = calico.conf / "multus.d" / "multus.kubeconfig"
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    document = kubeconfig_of(calico)
    assert document["users"] == [{"name": "multus", "user": {"token": text}}]
    (cluster,) = document["clusters"]
    assert cluster["cluster"]["server"] == API["server"]
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode() == API["ca"]
    assert document["contexts"] == [{"name": "multus-context", "context": {"cluster": "local", "user": "multus"}}]
    assert document["current-context"] == "multus-context"
    assert text not in json.dumps(done)
    assert "VALUE_HIDDEN" in done["diff"][-1]["after"]
    row = done["kubeconfig"]
    assert 86300 < row.pop("expires_in_s") <= 86400
    assert 60 <= row.pop("token_age_s") < 120
    assert row == {
        "path": str(path),
        "changed": True,
        "mode": "0600",
        "server": API["server"],
        "account": "system:serviceaccount:kube-system:multus",
        "age_s": 0,
        "renew": False,
    }


@pytest.mark.parametrize(
    ("given", "user", "cluster"),
    [
        ({"token_file": "/run/token"}, {"tokenFile": "/run/token"}, {}),
        (
            {"client_certificate": "/c.pem", "client_key": "/k.pem"},
            {"client-certificate": "/c.pem", "client-key": "/k.pem"},
            {},
        ),
        ({"token": "opaque-1", "ca_file": "/ca.crt"}, {"token": "opaque-1"}, {"certificate-authority": "/ca.crt"}),
        ({"token": "opaque-1", "validate_certs": False}, {"token": "opaque-1"}, {"insecure-skip-tls-verify": True}),
        ({"token": "opaque-1", "tls_server_name": "kube"}, {"token": "opaque-1"}, {"tls-server-name": "kube"}),
    ],
)
def test_other_credentials(run_module, calico, given, user, cluster):
    options = calico.options(kubeconfig=dict({"server": "https://[fd00::1]:6443"}, **given))
    run_module(NAME, options)
    document = kubeconfig_of(calico)
    assert document["users"][0]["user"] == user
    assert document["clusters"][0]["cluster"] == dict({"server": "https://[fd00::1]:6443"}, **cluster)
    assert run_module(NAME, options)["changed"] is False


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "needs token"),
        ({"client_certificate": "/c.pem"}, "needs token"),
        ({"token": "a b"}, "white space"),
        ({"token": "opaque-1", "ca": API["ca"], "validate_certs": False}, "exclude each other"),
        ({"token": "opaque-1", "ca": API["ca"], "ca_file": "/ca.crt"}, "mutually exclusive: ca|ca_file"),
        ({"token": "opaque-1", "token_file": "/run/token"}, "mutually exclusive: token|token_file"),
        ({"token": "opaque-1", "server": "10.96.0.1"}, "has to be a URL"),
        ({"token": "opaque-1", "server": "ftp://h"}, "h does not begin with https:// or http://"),
        ({"token": "opaque-1", "server": "https://"}, " is no host and port"),
        ({"token": "opaque-1", "server": "https://h:99999"}, "h:99999 is no host and port"),
        ({"token": "opaque-1", "server": "https://h /x"}, "the server https://h /x is no plain URL"),
        ({"token": "opaque-1", "ca": "garbage"}, "kubeconfig.ca holds no certificate"),
        ({"token": "opaque-1", "ca": API["ca"][:-20]}, "kubeconfig.ca holds no certificate"),
        ({"token": "opaque-1", "ca": API["ca"] + API["ca"].replace("MIIB", "?")}, "kubeconfig.ca holds no certificate"),
        ({"token": "opaque-1", "ca": API["ca"].replace("MIIB", "")}, "kubeconfig.ca holds no certificate"),
    ],
)
def test_a_kubeconfig_that_makes_no_sense_changes_nothing(fails, calico, tree, tmp_path, given, reason):
    before = tree(tmp_path)
    assert reason in fails(NAME, calico.options(kubeconfig=dict({"server": API["server"]}, **given)))
    assert tree(tmp_path) == before


def test_a_fresh_token_waits_until_the_old_one_is_about_to_expire(run_module, calico):
    first, second = lasting(86400), lasting(86000)
    run_module(NAME, calico.options(kubeconfig=dict(API, token=first)))
    kept = run_module(NAME, calico.options(kubeconfig=dict(API, token=second)), diff=True)
    assert (kept["changed"], kept["diff"], kept["kubeconfig"]["changed"]) == (False, [], False)
    assert kubeconfig_of(calico)["users"][0]["user"]["token"] == first
    done = run_module(NAME, calico.options(kubeconfig=dict(API, token=second, renew_before=100000)), diff=True)
    assert kubeconfig_of(calico)["users"][0]["user"]["token"] == second
    assert (done["changed"], done["kubeconfig"]["changed"]) == (True, True)
    (diff,) = done["diff"]
    assert "VALUE_HIDDEN (a new token)" in diff["after"]
    assert first not in json.dumps(done)
    assert second not in json.dumps(done)


def test_by_default_a_fifth_of_the_time_is_the_margin(run_module, calico):
    old, new = lasting(100, age=900), lasting(86400)
    run_module(NAME, calico.options(kubeconfig=dict(API, token=old)))
    assert run_module(NAME, calico.options())["kubeconfig"]["renew"] is True
    assert run_module(NAME, calico.options(kubeconfig=dict(API, token=new)))["changed"] is True
    assert kubeconfig_of(calico)["users"][0]["user"]["token"] == new


def test_a_token_that_ends_sooner_is_no_renewal(run_module, fails, calico):
    old = lasting(100, age=900)
    run_module(NAME, calico.options(kubeconfig=dict(API, token=old)))
    assert run_module(NAME, calico.options(kubeconfig=dict(API, token=lasting(50, age=900))))["changed"] is False
    assert run_module(NAME, calico.options(kubeconfig=dict(API, token=old)))["changed"] is False
    assert kubeconfig_of(calico)["users"][0]["user"]["token"] == old
    gone = lasting(-5, age=900)
    calico.put("multus.d/multus.kubeconfig", json.dumps(kubeconfig_of(calico)).replace(old, gone))
    assert "expired" in fails(NAME, calico.options(kubeconfig=dict(API, token=gone)))


@pytest.mark.parametrize("change", ["account", "made anew", "server", "ca", "plain"])
def test_another_account_server_or_authority_is_written_at_once(run_module, calico, change):
    run_module(NAME, calico.options(kubeconfig=dict(API, token=lasting(86400))))
    wanted = dict(API, token=lasting(86300))
    if change == "account":
        now = int(time.time())
        wanted["token"] = token(sub="system:serviceaccount:kube-system:other", exp=now + 900, iat=now)
    elif change == "made anew":
        now = int(time.time())
        bound = {"namespace": "kube-system", "serviceaccount": {"name": "multus", "uid": "u-2"}}
        wanted["token"] = token(**{"kubernetes.io": bound}, exp=now + 900, iat=now)
    elif change == "plain":
        wanted["token"] = "opaque"
    else:
        wanted[change] = "https://10.0.0.1" if change == "server" else API["ca"].replace("MIIB", "MIIC")
    assert run_module(NAME, calico.options(kubeconfig=wanted))["changed"] is True
    assert kubeconfig_of(calico)["users"][0]["user"]["token"] == wanted["token"]


def test_an_expired_token_is_refused_unless_a_good_one_is_there(run_module, fails, calico, tree, tmp_path):
    before = tree(tmp_path)
    message = fails(NAME, calico.options(kubeconfig=dict(API, token=lasting(-3600, age=7200))))
    assert re.search(r"expired 36\d\d s ago", message)
    assert tree(tmp_path) == before
    run_module(NAME, calico.options(kubeconfig=dict(API, token=lasting(86400))))
    assert run_module(NAME, calico.options(kubeconfig=dict(API, token=lasting(-60, age=7200))))["changed"] is False


@pytest.mark.parametrize("mode", [0o644, 0o400])
def test_the_mode_is_put_right(run_module, calico, mode):
    options = calico.options(kubeconfig=dict(API, token=lasting(86400)))
    run_module(NAME, options)
    path = calico.conf / "multus.d" / "multus.kubeconfig"
    path.chmod(mode)
    assert ("MULTUS004" in json.dumps(run_module(NAME, calico.options())["findings"])) == (mode == 0o644)
    done = run_module(NAME, options, diff=True)
    assert done["changed"] is True
    assert f"(mode {mode:04o})" in done["diff"][0]["before_header"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text",
    ["token: secret-1\n", "{", "[]", '{"users": [{"user": {"password": "secret-1"}}]}', '{"users": 1}', '"secret-1"'],
)
def test_a_foreign_kubeconfig_is_replaced_and_not_shown(run_module, calico, text):
    calico.put("multus.d/multus.kubeconfig", text)
    done = run_module(NAME, calico.options(kubeconfig=dict(API, token="new-one")), diff=True)
    assert done["kubeconfig"]["changed"] is True
    assert "secret-1" not in json.dumps(done)
    assert "new-one" not in json.dumps(done["diff"])


@pytest.mark.parametrize("scheme", ["https://", "http://", "ftp://", ""])
def test_a_password_in_the_server_is_refused_and_not_shown(fails, calico, scheme):
    given = {"server": scheme + "admin:secret-1@h:6443", "token": "opaque-1"}
    message = fails(NAME, calico.options(kubeconfig=given))
    assert "has to be a URL" in message
    assert "secret-1" not in message


@pytest.mark.parametrize("change", ["proxy", "server", "cluster", "two clusters", "context", "user", "key", "token"])
def test_what_others_added_to_the_kubeconfig_is_not_shown(run_module, calico, change):
    run_module(NAME, calico.options(kubeconfig=dict(API, token="opaque-1")))
    document = kubeconfig_of(calico)
    (cluster,), (context,), (user,) = document["clusters"], document["contexts"], document["users"]
    secret = "http://admin:secret-1@proxy"
    if change == "proxy":
        cluster["cluster"]["proxy-url"] = secret
    elif change == "server":
        cluster["cluster"]["server"] = secret
    elif change == "cluster":
        cluster["x"] = secret
    elif change == "two clusters":
        document["clusters"].append({"name": "b", "cluster": {"server": secret}})
    elif change == "context":
        context["context"]["extensions"] = [secret]
    elif change == "user":
        user["x"] = secret
    elif change == "token":
        user["user"]["token"] = [secret]
    else:
        document["preferences"] = {"x": secret}
    calico.put("multus.d/multus.kubeconfig", json.dumps(document))
    done = run_module(NAME, calico.options(kubeconfig=dict(API, token="opaque-1")), diff=True)
    (diff,) = [one for one in done["diff"] if "kubeconfig" in one["before_header"]]
    assert "secret-1" not in json.dumps(diff)
    assert "VALUE_HIDDEN" in diff["before"]
    assert '"server": "https://10.96.0.1:443"' in diff["after"]
    shown = diff["before"].count("VALUE_HIDDEN")
    assert shown == (1 if change in ("user", "token") else 2), "the token, and what was added"


@pytest.mark.parametrize(
    ("server", "shown"),
    [
        ("https://admin:secret-1@h:6443/x", "https://h:6443/x"),
        ("https://admin:secret-1@h", "https://h"),
        ("admin:secret-1@h:6443", "h:6443"),
        ("https://admin:secret-1/2@h", "VALUE_HIDDEN"),
        ("https://admin:secret-1://2@h", "VALUE_HIDDEN"),
        (["secret-1"], None),
        ("https://[fd00::1]:6443", "https://[fd00::1]:6443"),
    ],
)
def test_the_server_of_a_kubeconfig_is_told_without_a_password(run_module, calico, server, shown):
    run_module(NAME, calico.options(kubeconfig=dict(API, token="opaque-1")))
    document = kubeconfig_of(calico)
    document["clusters"][0]["cluster"]["server"] = server
    calico.put("multus.d/multus.kubeconfig", json.dumps(document))
    done = run_module(NAME, calico.options(), diff=True)
    assert done["kubeconfig"]["server"] == shown
    assert "secret-1" not in json.dumps(done)


def test_case_token_expired(run_module, calico, case):
    one = case("multus-token-expired")
    late = int(time.time()) + one["check"]["seconds_left"]
    text = token(**dict(one["input"]["kubeconfig"]["token_payload"], exp=late))
    calico.put("multus.d/multus.kubeconfig", f"users:\n- name: multus\n  user:\n    token: {text}\n")
    (calico.conf / "multus.d" / "multus.kubeconfig").chmod(int(one["input"]["kubeconfig"]["mode"], 8))
    done = run_module(NAME, calico.options())
    assert abs(done["kubeconfig"]["expires_in_s"] - one["check"]["seconds_left"]) < 30
    codes = {each["code"] for each in done["findings"]}
    assert ("MULTUS002" in codes) is one["check"]["expired"]
    assert ("MULTUS004" in codes) is not one["check"]["mode_ok"]
    assert text not in json.dumps(done)
    # it is named all the same: the file exists, and a renewal may come at any moment
    assert done["config"]["kubeconfig"] == str(calico.conf / "multus.d" / "multus.kubeconfig")


def test_without_a_kubeconfig_it_is_not_named(run_module, calico):
    done = run_module(NAME, calico.options())
    assert "kubeconfig" not in done["config"]
    assert done["kubeconfig"] is None
    assert "MULTUS005" in [one["code"] for one in done["findings"]]


def test_the_kubeconfig_alone(run_module, node):
    options = node.options(parts=["kubeconfig"], kubeconfig=dict(API, token=lasting(86400)))
    done = run_module(NAME, options)
    assert (done["changed"], done["file"], done["config"]) == (True, None, None)
    assert node.names() == ["multus.d"]
    assert run_module(NAME, options)["changed"] is False


def test_the_configuration_alone_leaves_the_credentials(run_module, calico):
    options = calico.options(parts=["config"], kubeconfig=dict(API, token=lasting(86400)))
    assert run_module(NAME, options)["kubeconfig"] is None
    assert calico.names() == ["00-multus.conf", "10-calico.conflist"]


# --- absent


def leftovers(node, one):
    node.write(**one["input"]["conf_dir"])
    for name, content in one["input"]["var_lib_cni_multus"].items():
        (node.cache / name).write_text(content)
    return one


def test_case_uninstall_goes_in_order(run_module, node, case, tree, tmp_path):
    one = leftovers(node, case("multus-uninstall-leftovers"))
    before = tree(tmp_path)
    predicted = run_module(NAME, node.options(remove_plugin="always", **one["input"]["params"]), check=True, diff=True)
    assert tree(tmp_path) == before
    done = run_module(NAME, node.options(remove_plugin="always", **one["input"]["params"]), diff=True)
    assert done == predicted
    names = [os.path.basename(path) for path in done["removed"]]
    names.remove("multus.kubeconfig")
    assert names == one["check"]["order"]
    assert {each["network"] for each in done["effective"]["after"].values()} == {one["check"]["effective_after"]}
    assert node.names() == ["10-calico.conflist"]
    assert not (node.bin / "multus").exists()
    assert os.listdir(str(node.cache))  # for the end of the pods
    again = run_module(NAME, node.options(remove_plugin="always", **one["input"]["params"]), diff=True)
    assert (again["changed"], again["diff"], again["removed"]) == (False, [], [])


@pytest.mark.parametrize(("choice", "cached", "goes"), [("unused", 1, False), ("unused", 0, True), ("never", 0, False)])
def test_the_executable_stays_while_pods_need_it(run_module, node, case, choice, cached, goes):
    one = leftovers(node, case("multus-uninstall-leftovers"))
    for name in os.listdir(str(node.cache))[cached:]:
        (node.cache / name).unlink()
    (node.cache / "315bbe38.corrupt").write_text("what a DEL has set aside")
    (node.cache / ".nodenet-1").write_text("what a killed ADD left")
    done = run_module(NAME, node.options(remove_plugin=choice, **one["input"]["params"]))
    assert done["plugin"]["removed"] is goes
    assert done["plugin"]["cached_delegates"] == cached
    assert ("MULTUS022" in [each["code"] for each in done["findings"]]) is bool(cached)
    assert (node.bin / "multus").exists() is not goes
    assert node.names() == ["10-calico.conflist"]


def test_what_plugin_binaries_installed_is_left_to_it(run_module, node, case):
    from ansible_collections.nodenet.cni.plugins.module_utils.node import manifest

    one = leftovers(node, case("multus-uninstall-leftovers"))
    with manifest.updating(str(node.root / "state"), str(node.bin)) as record:
        record.plugins["multus"] = {"sha256": "0", "source": "x", "archive": None}
        record.save()
    done = run_module(NAME, node.options(remove_plugin="always", **one["input"]["params"]))
    assert done["plugin"]["removed"] is False
    assert "plugin_binaries" in done["plugin"]["reason"]


def test_files_of_others_beside_the_kubeconfig_stay(run_module, node, case):
    one = leftovers(node, case("multus-uninstall-leftovers"))
    node.put("multus.d/notes", "x")
    run_module(NAME, node.options(**one["input"]["params"]))
    assert os.listdir(str(node.conf / "multus.d")) == ["notes"]


def test_a_kubeconfig_of_somebody_else_stays(run_module, calico):
    others, own = calico.root / "admin.conf", calico.root / "own.conf"
    others.write_text("current-context: admin\n")
    run_module(NAME, calico.options(kubeconfig_path=str(others)))
    assert calico.read("00-multus.conf")["kubeconfig"] == str(others)
    run_module(NAME, calico.options(state="absent", kubeconfig_path=str(others), remove_plugin="never"))
    run_module(NAME, calico.options(kubeconfig_path=str(own), kubeconfig=dict(API, token="opaque-1")))
    assert own.exists()
    run_module(NAME, calico.options(state="absent", kubeconfig_path=str(own)))
    assert (others.exists(), own.exists()) == (True, False)


def test_every_file_of_multus_goes_also_one_under_another_name(run_module, calico):
    run_module(NAME, calico.options())
    calico.put(
        "70-mine.conflist",
        {"cniVersion": "1.0.0", "name": "multi", "plugins": [{"type": "multus", "delegates": [LATER]}]},
    )
    calico.put("00-multus.conflist", "")
    done = run_module(NAME, calico.options(state="absent"))
    assert calico.names() == ["10-calico.conflist"]
    # the one that is in effect goes last, so that none of the others comes to the front in between
    assert done["removed"][2] == str(calico.conf / "00-multus.conf")


@pytest.mark.parametrize("others", [{}, {"05-other.conf": {"cniVersion": "0.3.1", "name": "other", "type": "portmap"}}])
def test_a_removal_that_leaves_no_network_or_another_one_is_refused(run_module, fails, calico, tree, tmp_path, others):
    run_module(NAME, calico.options())
    if not others:
        (calico.conf / "10-calico.conflist").unlink()
    calico.write(**others)
    before = tree(tmp_path)
    message = fails(NAME, calico.options(state="absent"))
    wanted = "network other" if others else "no network"
    assert f"containerd would use {wanted} instead of k8s-pod-network" in message
    assert tree(tmp_path) == before
    if others:
        assert run_module(NAME, calico.options(state="absent", expect_effective="other"))["changed"] is True


def test_nothing_to_remove(run_module, node):
    (node.bin / "multus").unlink()
    done = run_module(NAME, node.options(state="absent"), diff=True)
    assert (done["changed"], done["removed"], done["diff"]) == (False, [], [])
    assert done["plugin"]["reason"] == "it is not there"


# --- when writing fails


def test_a_kubeconfig_that_cannot_be_written_leaves_the_network(fails, calico):
    calico.put("multus.d", "a file")
    message = fails(NAME, calico.options(kubeconfig=dict(API, token="opaque-1")))
    assert message.startswith("Cannot write kubeconfig ")
    assert "00-multus.conf" not in calico.names()


def test_a_directory_in_its_place(fails, calico):
    (calico.conf / "multus.d" / "multus.kubeconfig").mkdir(parents=True)
    options = calico.options(kubeconfig=dict(API, token="opaque-1"))
    assert "cannot be read" in fails(NAME, options)
    assert "is a directory" in fails(NAME, calico.options(state="absent"))


def test_a_pipe_in_its_place_holds_nobody_up(fails, calico):
    (calico.conf / "multus.d").mkdir()
    os.mkfifo(str(calico.conf / "multus.d" / "multus.kubeconfig"))
    assert "cannot be read" in fails(NAME, calico.options(kubeconfig=dict(API, token="opaque-1")))
    assert "cannot be read" in fails(NAME, calico.options())


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: only root gives files away")
def test_a_kubeconfig_that_somebody_else_owns_is_written_anew(run_module, calico):
    options = calico.options(kubeconfig=dict(API, token="opaque-1"))
    run_module(NAME, options)
    path = calico.conf / "multus.d" / "multus.kubeconfig"
    os.chown(str(path), 65534, 65534)
    assert run_module(NAME, options)["changed"] is True
    assert path.stat().st_uid == 0
    assert run_module(NAME, options)["changed"] is False


# --- what Multus makes of it


@pytest.mark.parametrize("document", [CALICO, LATER], ids=["conf", "conflist"])
def test_multus_reads_both_files(run_module, node, document):
    from ansible_collections.nodenet.cni.plugins.module_utils.multus import kubeconfig

    node.put("10-calico.conflist", document)
    options = node.options(
        namespace_isolation=True,
        global_namespaces=["a", "b"],
        settings={"apiTimeoutSeconds": 3},
        kubeconfig={"server": "https://10.96.0.1:443", "token": "opaque-1", "validate_certs": False},
    )
    done = run_module(NAME, options)
    told = run_module("multus_info", {"conf_dir": str(node.conf), "pods": [{"name": "web-0"}], "cached": False})
    assert told["config_source"] == done["file"]
    (pod,) = told["pods"]
    (delegate,) = pod["delegates"]
    assert (delegate["config"], delegate["interface"], pod["usable"]) == (document, "eth0", True)
    assert [one["type"] for one in delegate["plugins"]] == ["calico", "portmap", "bandwidth"]
    access = kubeconfig.load(done["kubeconfig"]["path"], {})
    assert (access.server, access.token) == ("https://10.96.0.1:443", "opaque-1")
