# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import invoke

ATTACHMENT = invoke.Attachment("c1", "/run/netns/x", "eth0", [("IgnoreUnknown", "1"), ("K8S_POD_NAME", "p")])


def plugins(plugin, *more, **options):
    return invoke.Plugins([plugin.folder, *more], {"PATH": os.environ["PATH"], "CNI_ARGS": "old"}, **options)


def test_a_plugin_finds_the_variables_of_the_protocol(plugin):
    plugin("p", "env | grep ^CNI_ | sort; cat")
    output = plugins(plugin, "/opt/more").call("p", "ADD", b"{}", ATTACHMENT).decode()
    assert output.splitlines() == [
        "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAME=p",
        "CNI_COMMAND=ADD",
        "CNI_CONTAINERID=c1",
        "CNI_IFNAME=eth0",
        "CNI_NETNS=/run/netns/x",
        "CNI_PATH=%s:/opt/more" % plugin.folder,
        "{}",
    ]


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("exit 2", 0, "netplugin failed with no error message: exit status 2"),
        ("kill -SEGV $$", 0, "netplugin failed with no error message: signal: segmentation fault"),
        ("echo 'no \"luck\"' >&2; exit 1", 0, 'netplugin failed: "no \\"luck\\"\\n"'),
        ('echo \'{"code": 11, "msg": "later", "details": "soon"}\'; exit 1', 11, "later; soon"),
        ('echo \'{"MSG": "odd"}\'; exit 1', 0, "odd"),
        (
            "echo oops; exit 1",
            0,
            'netplugin failed but error parsing its diagnostic message "oops\\n": '
            "invalid character 'o' looking for beginning of value",
        ),
    ],
)
def test_forms_of_failure(plugin, script, code, message):
    plugin("p", script)
    with pytest.raises(invoke.PluginError) as caught:
        plugins(plugin).call("p", "ADD", b"{}", ATTACHMENT)
    got = caught.value
    # what the runtime prints in front of a syntax fault differs between versions of Go's parser
    assert str(got).startswith(message[:70])
    assert (got.code, got.plugin, got.reason) == (code, "p", invoke.FAILED)


def test_what_cannot_be_executed_is_a_failure(plugin):
    os.chmod(plugin("p", ""), 0o644)
    with pytest.raises(invoke.PluginError, match=r"no error message: fork/exec .*/p: permission denied"):
        plugins(plugin).call("p", "ADD", b"{}", ATTACHMENT)


def test_a_plugin_that_hangs(plugin):
    plugin("p", "exec sleep 60")
    with pytest.raises(invoke.PluginError, match=r"no answer within 0\.3 s") as caught:
        plugins(plugin, time_limit=0.3).call("p", "ADD", b"{}", ATTACHMENT)
    assert caught.value.reason == invoke.OVERDUE


def test_each_call_is_told(plugin):
    plugin("p", "echo out; echo log >&2")
    plugin("q", "exit 1")
    calls = []
    runner = plugins(plugin, told=calls.append)
    runner.call("p", "ADD", b"{}", ATTACHMENT)
    with pytest.raises(invoke.PluginError):
        runner.call("q", "DEL", b"{}", ATTACHMENT)
    first, second = calls
    assert (first.command, first.plugin, first.output, first.log, first.error) == ("ADD", "p", b"out\n", b"log\n", None)
    assert first.path == plugin.folder + "/p"
    assert 0 < first.seconds < 10
    assert (second.command, second.plugin, second.error.reason) == ("DEL", "q", invoke.FAILED)


def test_where_a_plugin_is_found(plugin, tmp_path):
    other = tmp_path / "other"
    (other / "dir").mkdir(parents=True)
    (other / "p").write_text("")
    wanted = plugin("p", "")
    path = [str(tmp_path / "none"), plugin.folder + "/", str(other)]
    assert invoke.find("p", path) == wanted
    for name, said in (
        ("dir", r'failed to find plugin "dir" in path \[.*none .*bin/ .*other\]'),
        ("", "no plugin name provided"),
        ("../bin/p", r"invalid plugin name: \.\./bin/p"),
    ):
        with pytest.raises(invoke.PluginError, match=said) as caught:
            invoke.find(name, path)
        assert caught.value.reason == invoke.NOT_FOUND
    with pytest.raises(invoke.PluginError, match="no paths provided"):
        invoke.find("p", [])
