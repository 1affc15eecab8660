# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import chain, invoke, netconf, resultcache
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import CniError

RESULT = {"cniVersion": "1.0.0", "interfaces": [{"name": "eth0", "sandbox": "/n"}], "ips": [{"address": "10.1.0.2/24"}]}
# each call leaves what the plugin got in $RECORD/<type>.<command>
RECORDER = 'cat >"$RECORD/${0##*/}.$CNI_COMMAND"; echo ${0##*/} $CNI_COMMAND >>"$RECORD/order"\n'
CAPABILITIES = {"ips": ["10.1.0.2/24"], "bandwidth": {"ingressRate": 1}, "other": 1}


class Scene:
    def __init__(self, plugin, tmp_path):
        self.plugin = plugin
        self.record = tmp_path
        self.cache = resultcache.ResultCache(str(tmp_path / "cache"))
        self.attachment = invoke.Attachment("c1", "/n", "eth0", [("A", "1")], CAPABILITIES)
        self.warnings = []
        runner = invoke.Plugins([plugin.folder], {"PATH": os.environ["PATH"]}, 30)
        self.runtime = chain.Runtime(runner, self.cache, self.warnings.append)

    def answer(self, name, document=None, more=""):
        printed = "" if document is None else "[ $CNI_COMMAND != ADD ] || echo '%s'\n" % json.dumps(document)
        self.plugin(name, RECORDER + more + "\n" + printed)

    def got(self, name, command):
        return json.loads((self.record / (name + "." + command)).read_text())

    def order(self):
        path = self.record / "order"
        text = path.read_text().split("\n")[:-1] if path.exists() else []
        if path.exists():
            path.unlink()
        return text


@pytest.fixture
def scene(plugin, tmp_path):
    return Scene(plugin, tmp_path)


def network(*plugins, version="1.0.0", **more):
    document = dict({"name": "net", "cniVersion": version, "plugins": list(plugins)}, **more)
    return netconf.load_config(json.dumps(document).encode(), "net.conflist")


def test_a_chain(scene):
    scene.answer("one", RESULT)
    second = dict(RESULT, dns={"nameservers": ["10.1.0.1"]})
    scene.answer("two", second)
    net = network(
        {"type": "one", "name": "mine", "b": 1, "a": {"z": 9007199254740993, "y": "<"}, "capabilities": {"ips": True}},
        {"type": "two", "capabilities": {"bandwidth": True, "other": False, "mac": True}},
    )
    assert scene.runtime.add(net, scene.attachment) == second
    assert (scene.record / "one.ADD").read_text() == (
        '{"a":{"y":"\\u003c","z":9007199254740993},"b":1,"capabilities":{"ips":true},"cniVersion":"1.0.0","name":"net",'
        '"runtimeConfig":{"ips":["10.1.0.2/24"]},"type":"one"}'
    )
    got = scene.got("two", "ADD")
    assert got["prevResult"] == RESULT
    assert got["runtimeConfig"] == {"bandwidth": {"ingressRate": 1}}
    assert scene.order() == ["one ADD", "two ADD"]

    scene.runtime.check(net, scene.attachment)
    assert scene.order() == ["one CHECK", "two CHECK"]
    assert scene.got("one", "CHECK")["prevResult"] == second

    scene.runtime.delete(net, scene.attachment)
    assert scene.order() == ["two DEL", "one DEL"]
    assert scene.got("one", "DEL")["prevResult"] == second == scene.got("two", "DEL")["prevResult"]
    assert scene.cache.entries() == []
    scene.runtime.delete(net, scene.attachment)
    assert "prevResult" not in scene.got("one", "DEL")


def test_the_cached_file_is_that_of_libcni(scene):
    scene.answer("one", RESULT)
    net = network({"type": "one"})
    scene.runtime.add(net, scene.attachment)
    path = scene.record / "cache" / "results" / "net-c1-eth0"
    document = json.loads(path.read_text())
    assert list(document) == [
        "kind",
        "containerId",
        "config",
        "ifName",
        "networkName",
        "netns",
        "cniArgs",
        "capabilityArgs",
        "result",
    ]
    assert (document["kind"], document["cniArgs"], document["result"]) == ("cniCacheV1", [["A", "1"]], RESULT)
    assert document["capabilityArgs"] == CAPABILITIES
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(str(scene.record / "cache")) == ["results"]
    (entry,) = scene.cache.entries()
    assert (entry.network, entry.container_id, entry.ifname, entry.netns) == ("net", "c1", "eth0", "/n")
    assert (entry.args, entry.capability_args, entry.config) == ([("A", "1")], CAPABILITIES, net.data)


def test_a_failing_plugin_ends_the_chain(scene):
    scene.answer("one", RESULT)
    scene.answer("two", more='echo \'{"code": 11, "msg": "later", "details": "soon"}\'; exit 1')
    scene.answer("three", RESULT)
    net = network({"type": "one"}, {"type": "two", "name": "b"}, {"type": "three"})
    with pytest.raises(invoke.PluginError) as caught:
        scene.runtime.add(net, scene.attachment)
    assert str(caught.value) == 'plugin type="two" name="b" failed (add): later; soon'
    assert (caught.value.code, caught.value.plugin) == (11, "two")
    assert scene.order() == ["one ADD", "two ADD"]
    assert scene.cache.entries() == []
    with pytest.raises(invoke.PluginError, match=r'plugin type="two" name="b" failed \(delete\): later'):
        scene.runtime.delete(net, scene.attachment)
    assert scene.order() == ["three DEL", "two DEL"]


def test_delete_that_fails_keeps_the_cached_result(scene):
    scene.answer("one", RESULT, '[ $CNI_COMMAND = ADD ] || [ -e "$RECORD/repaired" ] || exit 1')
    net = network({"type": "one"})
    scene.runtime.add(net, scene.attachment)
    with pytest.raises(CniError):
        scene.runtime.delete(net, scene.attachment)
    assert len(scene.cache.entries()) == 1
    (scene.record / "repaired").write_text("")
    scene.runtime.delete(net, scene.attachment)
    assert scene.cache.entries() == []


@pytest.mark.parametrize("content", ["", "{", '{"kind": "cniCacheV1", "result": {"cniVersion": "9.0.0"}}', "[]"])
def test_delete_with_a_broken_cached_result(scene, content):
    scene.answer("one", RESULT)
    net = network({"type": "one"})
    scene.runtime.add(net, scene.attachment)
    path = scene.record / "cache" / "results" / "net-c1-eth0"
    path.write_text(content)
    with pytest.raises(CniError):
        scene.runtime.check(net, scene.attachment)
    scene.order()
    scene.runtime.delete(net, scene.attachment)
    assert scene.order() == ["one DEL"]
    assert "prevResult" not in scene.got("one", "DEL")
    assert len(scene.warnings) == 1
    assert not path.exists()


def test_a_cached_bare_result_of_the_first_libcni(scene):
    scene.answer("one", RESULT)
    net = network({"type": "one"}, version="0.4.0")
    folder = scene.record / "cache" / "results"
    folder.mkdir(parents=True)
    (folder / "net-c1-eth0").write_text(json.dumps(RESULT))
    scene.runtime.delete(net, scene.attachment)
    assert scene.got("one", "DEL")["prevResult"] == {
        "cniVersion": "0.4.0",
        "interfaces": RESULT["interfaces"],
        "ips": [{"version": "4", "address": "10.1.0.2/24"}],
        "dns": {},
    }
    assert not (folder / "net-c1-eth0").exists()


def test_results_keep_their_version_in_the_chain_and_lose_what_no_version_knows(scene):
    scene.answer("one", {"cniVersion": "0.3.1", "ips": [{"version": "4", "address": "10.1.0.2/24", "x": 1}], "y": 2})
    scene.answer("two", None, "[ $CNI_COMMAND != ADD ] || echo null")
    result = scene.runtime.add(network({"type": "one"}, {"type": "two"}), scene.attachment)
    expected = {"cniVersion": "0.3.1", "ips": [{"version": "4", "address": "10.1.0.2/24"}], "dns": {}}
    assert scene.got("two", "ADD")["prevResult"] == expected
    assert result == {"cniVersion": "1.0.0"}


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", "failed to unmarshal raw result: unexpected end of JSON input"),
        ("[]", "failed to unmarshal raw result: json: cannot unmarshal array"),
        ('{"cniVersion": "2.0.0"}', 'unsupported CNI result version "2.0.0"'),
        ('{"ips": [{"address": "10.1.0.300/24"}]}', "invalid CIDR address: 10.1.0.300/24"),
        ('{"ips": [{"address": "10.1.0.3/33"}]}', "invalid CIDR address: 10.1.0.3/33"),
        ('{"ips": [{"address": "10.1.0.3/24", "gateway": "x"}]}', "invalid IP address: x"),
        ('{"cniVersion": "0.3.1", "ips": [{"version": "4"}]}', "invalid CIDR address: <nil>"),
        ('{"cniVersion": "1.0.0", "ips": [{"address": null}]}', "invalid CIDR address: <nil>"),
        ('{"cniVersion": "0.2.0", "ip4": {"gateway": "10.1.0.1"}}', "invalid CIDR address: <nil>"),
        ('{"ips": {}}', "cannot unmarshal object"),
        ('{"routes": [{"dst": "default"}]}', "invalid CIDR address: default"),
    ],
)
def test_results_that_libcni_refuses(scene, output, said):
    scene.answer("one", None, "printf '%%s' '%s'" % output)
    with pytest.raises(CniError) as caught:
        scene.runtime.add(network({"type": "one"}), scene.attachment)
    assert said in str(caught.value)
    assert caught.value.code == 999


def test_versions_without_check(scene):
    scene.answer("one", RESULT)
    old = network({"type": "one"}, version="0.3.1")
    scene.runtime.add(old, scene.attachment)
    with pytest.raises(CniError, match='configuration version "0.3.1" does not support the CHECK command'):
        scene.runtime.check(old, scene.attachment)
    scene.order()
    scene.runtime.check(network({"type": "one"}, disableCheck="true"), scene.attachment)
    assert scene.order() == []
    scene.runtime.delete(old, scene.attachment)
    assert "prevResult" not in scene.got("one", "DEL")


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"container_id": ""}, 4, "missing containerID"),
        ({"container_id": "a/b"}, 4, "invalid characters in containerID; a/b"),
        ({"ifname": ""}, 4, "interface name is empty"),
        ({"ifname": "a" * 16}, 4, "interface name is too long"),
    ],
)
def test_add_checks_its_input(scene, change, code, said):
    scene.answer("one", RESULT)
    for key, value in change.items():
        setattr(scene.attachment, key, value)
    with pytest.raises(CniError) as caught:
        scene.runtime.add(network({"type": "one"}), scene.attachment)
    assert said in str(caught.value)
    assert caught.value.code == code
    assert scene.order() == []


def test_add_needs_a_name_and_the_plugin(scene):
    scene.answer("one", RESULT)
    with pytest.raises(CniError, match="invalid characters found in network name; a b"):
        scene.runtime.add(netconf.load_config(b'{"type": "one", "name": "a b"}', "x.conf"), scene.attachment)
    with pytest.raises(invoke.PluginError, match='failed to find plugin "none" in path') as caught:
        scene.runtime.add(network({"type": "none"}), scene.attachment)
    assert caught.value.reason == invoke.NOT_FOUND


def test_a_single_configuration(scene):
    scene.answer("one", dict(RESULT, cniVersion=""))
    net = netconf.load_config(b'{"type": "one", "name": "net"}', "x.conf")
    result = scene.runtime.add(net, scene.attachment)
    assert result["cniVersion"] == "0.1.0"
    assert scene.got("one", "ADD") == {"type": "one", "name": "net", "cniVersion": ""}
    scene.answer("one", more="exit 1")
    with pytest.raises(invoke.PluginError, match="^netplugin failed with no error message: exit status 1$"):
        scene.runtime.delete(net, scene.attachment)


def test_status(scene):
    scene.answer("one")
    scene.answer("two", more='echo \'{"code": 50, "msg": "not now"}\'; exit 1')
    net = network({"type": "one"}, {"type": "two"}, version="1.1.0")
    with pytest.raises(invoke.PluginError, match="^not now$") as caught:
        scene.runtime.status(net)
    assert caught.value.code == 50
    assert scene.got("one", "STATUS") == {"cniVersion": "1.1.0", "name": "net", "type": "one"}
    scene.order()
    scene.runtime.status(network({"type": "two"}))
    assert scene.order() == []


def test_collect(scene):
    scene.answer("one", RESULT)
    net = network({"type": "one"}, version="1.1.0")
    for name in ("c1", "c2", "c3"):
        scene.runtime.add(net, invoke.Attachment(name, "/n", "eth0", [("P", name)]))
    other = network({"type": "one"}, name="other")
    scene.runtime.add(other, scene.attachment)
    scene.order()
    scene.runtime.collect(net, [("c2", "eth0")])
    assert scene.order() == ["one DEL", "one DEL", "one GC"]
    assert [(one.network, one.container_id) for one in scene.cache.entries()] == [("net", "c2"), ("other", "c1")]
    listed = [{"containerID": "c2", "ifname": "eth0"}]
    got = scene.got("one", "GC")
    assert got["cni.dev/valid-attachments"] == listed == got["cni.dev/attachments"]
    scene.runtime.collect(network({"type": "one"}, version="1.1.0", disableGC=True), [])
    assert scene.order() == []
    scene.answer("one", more="exit 1")
    with pytest.raises(CniError) as caught:
        scene.runtime.collect(net, None)
    assert str(caught.value).splitlines() == [
        'failed to delete stale attachment c2 eth0: plugin type="one" failed (delete): '
        "netplugin failed with no error message: exit status 1",
        "failed to GC plugin one: netplugin failed with no error message: exit status 1",
    ]
    assert "cni.dev/valid-attachments" not in scene.got("one", "GC")


def test_versions_and_validate(scene):
    scene.plugin("new", 'echo \'{"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}\'')
    scene.plugin("old", 'echo \'{"code": 1, "msg": "unknown CNI_COMMAND: VERSION"}\'; exit 1')
    assert scene.runtime.supported_versions("new") == ["0.4.0", "1.0.0"]
    assert scene.runtime.supported_versions("old") == ["0.1.0"]
    net = network({"type": "new", "capabilities": {"ips": True, "mac": False}}, {"type": "new"})
    assert scene.runtime.validate(net) == ["ips"]
    with pytest.raises(CniError) as caught:
        scene.runtime.validate(network({"type": "old"}, {"type": "none"}))
    assert 'plugin old does not support config version "1.0.0"' in str(caught.value)
    assert 'failed to find plugin "none"' in str(caught.value)


def test_a_cache_that_cannot_be_written_is_an_error_and_leaves_no_half_file(scene):
    scene.answer("one", RESULT)
    folder = scene.record / "cache" / "results"
    (folder / "net-c1-eth0").mkdir(parents=True)
    with pytest.raises(CniError, match='failed to set network "net" cached result'):
        scene.runtime.add(network({"type": "one"}), scene.attachment)
    assert os.listdir(str(scene.record / "cache")) == ["results"]
