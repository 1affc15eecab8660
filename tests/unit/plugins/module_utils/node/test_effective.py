# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import confdir, dircheck, effective, findings


def conflist(name, *types):
    return {"cniVersion": "1.0.0", "name": name, "plugins": [{"type": kind} for kind in types or ("bridge",)]}


def write(directory, **files):
    for name, content in files.items():
        write_file(directory, name.replace("__", "."), content)


def write_file(directory, name, content):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def chosen(directory, **arguments):
    settings = effective.Settings(**arguments)
    found = effective.predict(confdir.read_conf_dir(str(directory)).files, settings)
    return {runtime: one["file"] for runtime, one in found.items()}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("10-a.conflist", "{"),
        ("10-a.conflist", ""),
        ("10-a.conflist", {"name": "n", "plugins": []}),
        ("10-a.conflist", {"name": "n"}),
        ("10-a.conflist", {"plugins": [{"type": "bridge"}]}),
        ("10-a.conflist", {"name": "n", "plugins": [{"bridge": "cni0"}]}),
        ("10-a.conflist", {"cniVersion": "1.0.0", "type": "loopback"}),
        ("10-a.conf", conflist("n")),
        ("10-a.json", conflist("n")),
    ],
)
def test_a_broken_first_file_stops_containerd_and_is_skipped_by_crio(tmp_path, name, content):
    # runtimes.md 2.2 and 2.3
    write_file(tmp_path, name, content)
    write_file(tmp_path, "20-b.conflist", conflist("second"))
    found = effective.predict(confdir.read_conf_dir(str(tmp_path)).files)
    assert found["containerd"]["network"] is None
    assert name in found["containerd"]["reason"]
    assert (found["crio"]["network"], found["crio"]["file"]) == ("second", "20-b.conflist")
    assert name in found["crio"]["reason"]


def test_a_broken_later_file_hurts_neither(tmp_path):
    write(tmp_path, a__conflist=conflist("n"), b__conflist="{")
    assert chosen(tmp_path) == {"containerd": "a.conflist", "crio": "a.conflist"}


def test_case_first_file_broken(tmp_path, case):
    data = case("conflist-first-file-broken")
    for name, content in data["input"]["conf_dir"].items():
        write_file(tmp_path, name, content.get("raw") or content)
    files = confdir.read_conf_dir(str(tmp_path)).files
    assert [one.name for one in files if one.error] == data["check"]["invalid"]
    found = effective.predict(files)
    wanted = data["check"]["effective"]
    assert (found["containerd"]["network"], found["crio"]["network"]) == (wanted["containerd"], wanted["cri-o"])


def test_crio_skips_a_file_whose_plugin_is_missing(tmp_path):
    write(tmp_path, a__conflist=conflist("n", "bridge", "gone"), b__conflist=conflist("m"))
    bin_dir = tmp_path / "bin"
    assert confdir.installed_plugins(str(bin_dir)) is None
    bin_dir.mkdir()
    (bin_dir / "bridge").write_text("")
    (bin_dir / "gone").mkdir()
    installed = confdir.installed_plugins(str(bin_dir))
    assert chosen(tmp_path, installed=installed) == {"containerd": "a.conflist", "crio": "b.conflist"}
    assert chosen(tmp_path) == {"containerd": "a.conflist", "crio": "a.conflist"}


def test_crio_waits_for_its_default_network(tmp_path):
    write(tmp_path, a__conflist=conflist("n"), b__conflist=conflist("m"))
    assert chosen(tmp_path, crio_default_network="m")["crio"] == "b.conflist"
    assert chosen(tmp_path, crio_default_network="none")["crio"] is None


def test_an_empty_directory_gives_no_network(tmp_path):
    assert chosen(tmp_path) == {"containerd": None, "crio": None}


# --- what the configurations of the runtimes say


def toml_file(directory, text, name="config.toml"):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def with_configs(conf_dir, containerd="", crio=""):
    settings = effective.Settings()
    settings.read_runtimes(str(conf_dir), containerd, crio)
    return effective.predict(confdir.read_conf_dir(str(conf_dir)).files, settings)


def test_containerd_loads_as_many_as_it_is_told(tmp_path):
    conf_dir = tmp_path / "net.d"
    for name, content in (("a.conflist", conflist("a")), ("b.conflist", "{"), ("c.conflist", conflist("c"))):
        write_file(conf_dir, name, content)
    for count, network in ((1, "a"), (2, None), (0, None)):
        text = (
            f'version = 2\n[plugins."io.containerd.grpc.v1.cri".cni]\nconf_dir = "{conf_dir}"\nmax_conf_num = {count}\n'
        )
        found = with_configs(conf_dir, toml_file(tmp_path, text))["containerd"]
        assert (found["network"], found["known"]) == (network, True), count
    assert "the file b.conflist cannot be loaded" in found["reason"]


def test_a_configuration_of_another_directory_is_only_told(tmp_path):
    conf_dir = tmp_path / "net.d"
    write_file(conf_dir, "a.conflist", conflist("a"))
    path = toml_file(tmp_path, '[plugins.cri.cni]\nconf_dir = "/somewhere"\nmax_conf_num = 0\n')
    found = with_configs(conf_dir, path)["containerd"]
    assert found["network"] == "a"
    assert found["reason"] == "first file in load order; if it read this directory, but it is set to /somewhere"


@pytest.mark.parametrize(
    "text",
    [
        "version = 9\n",
        'version = "2"\n',
        "version = 2\nplugins = 3\n",
        "x = '''\nmany lines'''\n",
        '[plugins."io.containerd.grpc.v1.cri".cni]\nversion = \n',
        'version = 2\nimports = ["conf.d/*.toml"]\n',
    ],
)
def test_what_is_not_understood_is_unknown(tmp_path, text):
    conf_dir = tmp_path / "net.d"
    write_file(conf_dir, "a.conflist", conflist("a"))
    toml_file(tmp_path, '[plugins."io.containerd.grpc.v1.cri"]\nsandbox_image = "x"\n', "conf.d/a.toml")
    found = with_configs(conf_dir, toml_file(tmp_path, text))
    assert {key: found["containerd"][key] for key in ("network", "file", "known")} == {
        "network": None,
        "file": None,
        "known": False,
    }
    assert found["containerd"]["reason"].startswith("unknown: ")
    assert found["crio"]["network"] == "a"
    facts = dircheck.check_dir(confdir.read_conf_dir(str(conf_dir)), found)
    assert [fact["kind"] for fact in facts] == ["conf-runtime-unknown"]
    assert findings.from_facts(facts)[0]["text"].startswith("nobody can tell which network containerd uses: ")


def test_containerd_without_its_cri_plugin_uses_no_network(tmp_path):
    write_file(tmp_path / "net.d", "a.conflist", conflist("a"))
    path = toml_file(tmp_path, 'disabled_plugins = ["cri"]\n')
    reason = with_configs(tmp_path / "net.d", path)["containerd"]["reason"]
    assert reason.endswith("if its CRI plugin ran, but that is switched off")


def test_an_unreadable_configuration_is_unknown(tmp_path):
    write_file(tmp_path / "net.d", "a.conflist", conflist("a"))
    found = with_configs(tmp_path / "net.d", str(tmp_path), str(tmp_path / "net.d"))
    assert [one["known"] for one in found.values()] == [False, False]
    link = tmp_path / "link.toml"
    os.symlink("nowhere", str(link))
    assert with_configs(tmp_path / "net.d", str(link))["containerd"]["known"], "no file, so the defaults"


def test_drop_ins_that_leave_the_cri_plugin_alone_do_no_harm(tmp_path):
    write_file(tmp_path / "net.d", "a.conflist", conflist("a"))
    path = toml_file(tmp_path, 'version = 3\nimports = ["conf.d/*.toml", "config.toml"]\n')
    toml_file(tmp_path, "[debug]\nlevel = 'info'\n", "conf.d/a.toml")
    assert with_configs(tmp_path / "net.d", path)["containerd"]["network"] == "a"


def test_crio_reads_its_files_in_order_whatever_they_are_called(tmp_path):
    conf_dir = tmp_path / "net.d"
    for name in ("a", "b", "c"):
        write_file(conf_dir, name + ".conflist", conflist(name))
    path = toml_file(tmp_path, f'[crio.network]\nnetwork_dir = "{conf_dir}"\ncni_default_network = "a"\n', "crio.conf")
    assert with_configs(conf_dir, "", path)["crio"]["file"] == "a.conflist"
    toml_file(tmp_path, '[crio.network]\ncni_default_network = "b"\n', "crio.conf.d/10.conf~")
    toml_file(tmp_path, '[crio.network]\ncni_default_network = "c"\n', "crio.conf.d/05/x")
    assert with_configs(conf_dir, "", path)["crio"]["file"] == "b.conflist"
    os.unlink(path)
    found = with_configs(conf_dir, "", path)["crio"]
    assert found["reason"].endswith("it is set to /etc/cni/net.d"), "the drop-ins count without the main file"


def test_crio_passes_over_a_plugin_that_does_not_speak_the_version(tmp_path):
    write_file(tmp_path, "a.conflist", conflist("a", "old"))
    write_file(tmp_path, "b.conflist", conflist("b"))
    versions = {"old": ["0.4.0"], "bridge": []}
    settings = effective.Settings(speaks=lambda name: versions[name])
    found = effective.predict(confdir.read_conf_dir(str(tmp_path)).files, settings)
    assert found["containerd"]["network"] == "a"
    assert found["crio"]["network"] == "b"
    assert "a.conflist (old does not speak 1.0.0)" in found["crio"]["reason"]


def test_a_plugin_is_asked_once_for_its_versions(tmp_path):
    plugin = tmp_path / "old"
    plugin.write_text(
        '#!/bin/sh\n[ "$CNI_COMMAND" = VERSION ] || exit 1\necho run >> "%s/runs"\n'
        'echo \'{"cniVersion":"1.0.0","supportedVersions":["0.3.0","0.4.0"]}\'\n' % tmp_path
    )
    plugin.chmod(0o755)
    speaks = confdir.plugin_versions(str(tmp_path))
    assert speaks("old") == speaks("old") == ["0.3.0", "0.4.0"]
    assert (tmp_path / "runs").read_text() == "run\n"
    assert speaks("none") == speaks("../old") == []
