# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import embedded, executables, manifest
from ansible_collections.nodenet.cni.plugins.modules import plugin_binaries
from ansible_collections.nodenet.cni.tests.unit import plugin_files

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(executables.__file__)))
OTHER = "s390x" if plugin_files.HERE != "s390x" else "amd64"


@pytest.fixture
def run(tmp_path):
    """Run the module; returns its result, with "rc"."""

    def call(check_mode=False, diff=False, **options):
        arguments = {"bin_dir": str(tmp_path / "bin"), "state_dir": str(tmp_path / "state"), "remote_src": True}
        arguments.update(options, _ansible_check_mode=check_mode, _ansible_diff=diff)
        output = io.StringIO()
        with patch_module_args(arguments), contextlib.redirect_stdout(output), pytest.raises(SystemExit) as caught:
            plugin_binaries.main()
        return dict(json.loads(output.getvalue()), rc=caught.value.code)

    return call


@pytest.fixture
def src(tmp_path):
    return plugin_files.tar(tmp_path / "cni.tgz", {"bridge": plugin_files.elf("1"), "LICENSE": b"free"})


def test_check_apply_again_absent(run, src, tmp_path):
    predicted = run(src=src, check_mode=True, diff=True)
    assert not (tmp_path / "bin").exists()
    applied = run(src=src, diff=True)
    again = run(src=src, diff=True)
    assert [result["rc"] for result in (predicted, applied, again)] == [0, 0, 0]
    assert [result["changed"] for result in (predicted, applied, again)] == [True, True, False]
    assert predicted["diff"] == applied["diff"]
    assert applied["diff"]["before"] == ""
    assert re.search(r"(?m)^bridge mode=0755 owner=\d+:\d+ sha256=[0-9a-f]{64}$", applied["diff"]["after"])
    assert applied["diff"]["after_header"] == str(tmp_path / "bin")
    assert again["diff"]["after"] == ""
    assert applied["ignored"] == ["LICENSE"]

    removal = run(state="absent", check_mode=True)
    assert os.listdir(str(tmp_path / "bin")) == ["bridge"]
    # The variables of the installation, given again to remove it, are no reason to keep anything.
    gone = run(state="absent", src=src, required=["bridge"])
    assert removal["removed"] == gone["removed"] == ["bridge"]
    assert os.listdir(str(tmp_path / "bin")) == []
    assert run(state="absent")["changed"] is False


def test_diff_only_when_asked(run, src):
    assert "diff" not in run(src=src)


PREVIOUS = {"state": "previous"}


def test_result_has_every_key_in_every_state(run, src):
    keys = {"bin_dir", "brought", "changed", "findings", "ignored", "plugins", "removed"}
    for options in (
        {"src": src},
        {"src": src, "check_mode": True},
        {"required": ["bridge"]},
        PREVIOUS,
        {"state": "absent"},
    ):
        result = run(**options)
        assert keys <= set(result), options
        for plugin in result["plugins"]:
            assert sorted(plugin) == (
                ["action", "cni_versions", "drift", "embedded", "name", "needed_by", "path", "sha256", "version"]
            )


def test_doubtful_plugin_is_a_warning(run, src, capsys):
    result = run(src=src)
    (item,) = result["findings"]
    assert set(item) == {"code", "severity", "where", "text", "hint", "go"}
    # Where the controller's code is loaded too, a warning goes straight to the screen.
    warned = str(result.get("warnings")) + capsys.readouterr().err.replace("\n", " ")
    assert "does not answer VERSION" in warned
    assert item["code"] in warned


def test_failure_is_one_sentence_with_facts_and_no_change(run, tmp_path):
    src = plugin_files.tar(tmp_path / "cni.tgz", {"bridge": plugin_files.elf(architecture=OTHER)})
    result = run(src=src)
    assert (result["rc"], result["failed"]) == (1, True)
    assert result["msg"].startswith(f"Cannot install bridge from {src}: it is built for {OTHER}, this node runs ")
    assert result["plugin"] == "bridge"
    assert sorted(os.listdir(str(tmp_path))) == ["cni.tgz"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "state is present but any of the following are missing: src, embedded, required"),
        ({"state": "absent", "checksum": "sha256:x"}, "missing parameter(s) required by 'checksum': src"),
        ({"src": "/none.tgz", "checksum": "md5:1"}, "Cannot use checksum md5:1: it must be sha256:<hex digest> or "),
        ({"src": "/none.tgz"}, "Cannot read /none.tgz on this node: there is no such file; put it there"),
        ({"required": ["../sh"]}, "Cannot use '../sh' in required: a plugin is named by letters"),
        ({"state": "absent", "include": ["/etc/passwd"]}, "Cannot use '/etc/passwd' in include: "),
    ],
)
def test_bad_input(run, tmp_path, options, message):
    result = run(**options)
    assert (result["rc"], result["failed"]) == (1, True)
    assert result["msg"].startswith(message)
    assert os.listdir(str(tmp_path)) == []


@pytest.fixture
def sources(monkeypatch):
    """What the action plugin sends; the tests' own interpreter is one that launchers must not name."""
    monkeypatch.setattr(executables, "node_python", lambda: os.path.realpath(sys.executable))
    return executables.collect_sources(ROOT, ["host-local"])


@pytest.fixture
def embed(run, sources):
    def call(more="", **options):
        packed = embedded.pack(dict(sources, **{"cni/versions.py": sources["cni/versions.py"] + more}))
        return run(embedded=["host-local"], embedded_sources=packed, **options)

    return call


def versions(tmp_path):
    return executables.versions(str(tmp_path / "bin"))


def answer(tmp_path):
    environment = {"CNI_COMMAND": "VERSION"}
    path = str(tmp_path / "bin" / "host-local")
    return json.loads(subprocess.run([path], env=environment, stdout=subprocess.PIPE, check=True).stdout)


def test_embedded_check_apply_again_absent(run, embed, tmp_path):
    predicted = embed(check_mode=True, diff=True)
    assert os.listdir(str(tmp_path)) == []
    applied = embed(diff=True)
    assert predicted["diff"] == applied["diff"]
    (plugin,) = applied["plugins"]
    assert (plugin["action"], plugin["embedded"], plugin["name"]) == ("installed", True, "host-local")
    assert plugin["cni_versions"] == answer(tmp_path)["supportedVersions"]
    assert f"host-local embedded={versions(tmp_path)[0]} mode=0755" in applied["diff"]["after"]
    assert applied["findings"] == []
    again = embed(diff=True)
    assert (again["changed"], again["diff"]["after"]) == (False, "")
    assert (again["plugins"][0]["action"], again["plugins"][0]["cni_versions"]) == ("unchanged", plugin["cni_versions"])
    # a later task that names it only as required sees whose it is
    assert [(one["action"], one["embedded"]) for one in run(required=["host-local"])["plugins"]] == [("kept", True)]

    assert run(state="absent", check_mode=True)["removed"] == ["host-local"]
    assert versions(tmp_path) != []
    gone = run(state="absent")
    assert (gone["removed"], gone["plugins"][0]["embedded"]) == (["host-local"], True)
    # calls that began before may still need the code; the next run takes it away
    assert os.listdir(str(tmp_path / "bin")) == [executables.STORE]
    assert len(versions(tmp_path)) == 1
    assert embed(state="absent", check_mode=True)["changed"] is False
    assert len(versions(tmp_path)) == 1
    assert embed(state="absent")["changed"] is False
    assert os.listdir(str(tmp_path / "bin")) == []


def test_embedded_version_before_stays_for_one_run(embed, tmp_path):
    embed()
    (first,) = versions(tmp_path)
    changed = embed("# another release\n", diff=True, keep_previous=False)
    assert changed["plugins"][0]["action"] == "replaced"
    assert f"host-local embedded={first} " in changed["diff"]["before"]
    assert len(versions(tmp_path)) == 2
    assert embed("# another release\n", check_mode=True)["changed"] is False
    assert len(versions(tmp_path)) == 2
    assert embed("# another release\n")["changed"] is False
    assert f"host-local embedded={versions(tmp_path)[0]} " in changed["diff"]["after"]


@pytest.mark.parametrize("damage", ["gone", "source", "byte code", "mode"])
def test_embedded_damage_is_seen_and_repaired(embed, tmp_path, damage):
    embed()
    top = tmp_path / "bin" / executables.STORE
    root = top / versions(tmp_path)[0] / executables.PACKAGE / "cni"
    if damage == "gone":
        shutil.rmtree(str(top))
    elif damage == "source":
        (root / "skel.py").write_text("")
    elif damage == "byte code":
        for path in top.glob("*/*.code"):
            os.truncate(str(path), path.stat().st_size - 1)
    else:
        (tmp_path / "bin" / "host-local").chmod(0o600)
    before = plugin_files.tree(tmp_path)
    predicted = embed(check_mode=True, diff=True)
    assert plugin_files.tree(tmp_path) == before
    repaired = embed(diff=True)
    assert (predicted["changed"], predicted["diff"]) == (True, repaired["diff"])
    assert repaired["diff"]["before"] != repaired["diff"]["after"]
    assert repaired["plugins"][0]["action"] == ("adjusted" if damage == "mode" else "replaced")
    assert answer(tmp_path)["supportedVersions"]
    assert embed()["changed"] is False


def test_embedded_wins_over_the_source_and_both_can_be_exchanged(run, embed, tmp_path):
    files = {"bridge": plugin_files.elf("1"), "host-local": plugin_files.elf("2")}
    src = plugin_files.tar(tmp_path / "cni.tgz", files)
    for include in ([], ["bridge"], ["bridge", "host-local"]):
        result = embed(src=src, include=include, required=["host-local"])
        assert [(one["name"], one["embedded"]) for one in result["plugins"]] == [
            ("bridge", False),
            ("host-local", True),
        ]
        assert result["changed"] is (not include)
        assert result["ignored"] == ["host-local"]
    result = embed(src=src, include=["host-local"])
    assert [one["name"] for one in result["plugins"]] == ["host-local"]
    assert result["changed"] is False

    back = run(src=src)
    assert [(one["action"], one["embedded"]) for one in back["plugins"]] == [("unchanged", False), ("replaced", False)]
    assert (tmp_path / "bin" / "host-local").read_bytes() == files["host-local"]
    assert len(versions(tmp_path)) == 1  # calls may be running, and it can be put back
    assert run(src=src)["changed"] is False
    assert len(versions(tmp_path)) == 1
    put_back = run(state="previous")
    assert [(one["name"], one["action"], one["embedded"]) for one in put_back["plugins"]] == [
        ("host-local", "replaced", True)
    ]
    assert answer(tmp_path)["supportedVersions"]
    assert run(src=src, keep_previous=False)["changed"] is True
    assert run(src=src)["changed"] is False
    assert sorted(os.listdir(str(tmp_path / "bin"))) == ["bridge", "host-local"]
    assert embed(src=src)["changed"] is True
    os.unlink(src)
    digest = "sha256:" + "0" * 64
    assert embed(src=src, checksum=digest)["failed"] is True
    assert answer(tmp_path)["supportedVersions"]
    assert run(state="absent")["removed"] == ["bridge", "host-local"]
    run(state="absent")
    assert os.listdir(str(tmp_path / "bin")) == []


def test_embedded_beside_an_archive_that_is_gone(embed, tmp_path):
    src = plugin_files.tar(tmp_path / "cni.tgz", {"bridge": plugin_files.elf("1")})
    digest = "sha256:" + hashlib.sha256((tmp_path / "cni.tgz").read_bytes()).hexdigest()
    embed(src=src, checksum=digest)
    os.unlink(src)
    (tmp_path / "bin" / "host-local").unlink()
    assert embed(src=src, checksum=digest)["changed"] is True
    assert embed(src=src, checksum=digest, include=["host-local"])["changed"] is False
    assert embed(src=src, checksum=digest)["changed"] is False
    (tmp_path / "bin" / "bridge").unlink()
    assert "there is no such file" in embed(src=src, checksum=digest)["msg"]


def test_embedded_made_by_something_else_is_removed_only_if_named(run, embed, tmp_path):
    executables.build(ROOT, str(tmp_path / "bin"), ["host-local"], os.path.realpath(sys.executable))
    assert embed()["changed"] is False
    assert run(state="absent")["changed"] is False
    assert answer(tmp_path)["supportedVersions"]
    assert embed(state="absent")["removed"] == ["host-local"]
    embed(state="absent")
    assert os.listdir(str(tmp_path / "bin")) == []
    plugin_files.write(tmp_path / "bin" / "host-local", plugin_files.elf("1"))
    assert embed(state="absent")["changed"] is False


def test_embedded_failures_change_nothing(run, sources, tmp_path):
    result = run(embedded=["host-local"])
    assert result["msg"].startswith(f"Cannot install host-local in {tmp_path}/bin: the sources did not come")
    assert (
        "value of embedded must be one or more of: host-local, multus. Got no match for: bridge"
        in run(embedded=["bridge"])["msg"]
    )
    (tmp_path / "bin" / "host-local").mkdir(parents=True)
    result = run(embedded=["host-local"], embedded_sources=embedded.pack(sources))
    assert result["msg"] == f"Cannot install host-local in {tmp_path}/bin: a directory of that name is in the way"
    assert os.listdir(str(tmp_path / "bin")) == ["host-local"]
    (tmp_path / "bin" / "host-local").rmdir()
    (tmp_path / "bin" / executables.STORE).write_text("")
    result = run(embedded=["host-local"], embedded_sources=embedded.pack(sources))
    assert re.fullmatch(f"Cannot install host-local in {tmp_path}/bin: .*; nothing was changed", result["msg"])
    assert os.listdir(str(tmp_path / "bin")) == [executables.STORE]


def test_embedded_version_goes_again_when_the_record_cannot_be_kept(embed, tmp_path, monkeypatch):
    def fail(*_arguments):
        raise NodenetError("Cannot keep it")

    with monkeypatch.context() as patch:
        patch.setattr(manifest.Manifest, "save", fail)
        assert embed()["msg"] == "Cannot keep it"
    assert not (tmp_path / "bin").exists()
    embed()
    before = versions(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(manifest.Manifest, "save", fail)
        assert embed("# another release\n")["failed"] is True
    assert versions(tmp_path) == before
    assert embed()["changed"] is False


def test_embedded_needs_a_python_that_stays(run, tmp_path, monkeypatch):
    packed = embedded.pack(executables.collect_sources(ROOT, ["host-local"]))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    for check in (True, False):
        result = run(embedded=["host-local"], embedded_sources=packed, check_mode=check)
        assert result["msg"].startswith("Cannot make executables that run with ")
        assert "set ansible_python_interpreter to a Python of the system" in result["msg"]
        assert os.listdir(str(tmp_path)) == []


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    ("bin_dir", "state_dir", "message"),
    [
        ("ro", "state", "Cannot write plugins into {top}/ro: Read-only file system"),
        ("ro/bin", "state", "Cannot create {top}/ro/bin: Read-only file system ({top}/ro)"),
        (
            "bin",
            "ro/state",
            "Cannot keep the record of installed plugins in {top}/ro/state: Read-only file system ({top}/ro)",
        ),
    ],
)
def test_read_only_file_system(src, tmp_path, bin_dir, state_dir, message, check):
    if os.geteuid() != 0:
        pytest.skip("not run: needs root to mount")
    mount = tmp_path / "ro"
    mount.mkdir()
    places = {"bin_dir": str(tmp_path / bin_dir), "state_dir": str(tmp_path / state_dir)}
    arguments = json.dumps(dict(places, src=src, _ansible_check_mode=check))
    program = (
        "import sys\n"
        "from ansible.module_utils.testing import patch_module_args\n"
        "from ansible_collections.nodenet.cni.plugins.modules import plugin_binaries\n"
        "import json\n"
        "with patch_module_args(json.loads(sys.argv[1])):\n"
        "    plugin_binaries.main()\n"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o ro none "$1" && exec "$0" -c "$2" "$3"']
        + [sys.executable, str(mount), program, arguments],
        stdout=subprocess.PIPE,
        check=False,
    )
    result = json.loads(done.stdout)
    assert result["msg"] == message.format(top=tmp_path)
    assert sorted(os.listdir(str(tmp_path))) == ["cni.tgz", "ro"]


def test_url_is_not_fetched(run):
    for options in ({"src": "https://host.example/cni.tgz"}, {"src": "x", "checksum": "sha256:http://host.example/S"}):
        message = run(**options)["msg"]
        assert message.endswith("nothing is fetched from a URL; download it before and give the path"), message


NETWORKS = {
    "20-old.conflist": {"name": "old", "plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}]},
    "30-both.conflist": {"name": "both", "plugins": [{"type": "bridge", "ipam": {"type": "static"}}]},
    "40-single.conf": {"name": "single", "type": "macvlan", "ipam": {"type": "dhcp"}},
    "50-ours.conflist": {"name": "ours", "plugins": [{"type": "ptp"}]},
    "60-deep.conflist": {
        "name": "deep",
        "plugins": [
            {"type": "multus", "delegates": [{"name": "inner", "plugins": [{"type": "flannel"}, {"type": "tuning"}]}]}
        ],
    },
    "70-gone.disabled": {"name": "gone", "plugins": [{"type": "vlan"}]},
}
BROKEN = '{"name": "broken", "plugins": [{"type": "ipvlan"},]}'
KEPT = {
    "bridge": ["both", "deep", "old"],
    "dhcp": ["single"],
    "firewall": ["old"],
    "flannel": ["deep"],
    "host-local": ["deep", "old"],
    "ipvlan": ["80-broken.conflist"],
    "macvlan": ["single"],
    "ptp": ["ours"],
    "static": ["both"],
    "tuning": ["deep"],
}


@pytest.fixture
def with_networks(run, tmp_path):
    """Plugins that the module brought, and networks of others that use some of them; returns the conf dir."""
    names = [*KEPT, "vlan", "loopback"]
    run(src=plugin_files.tar(tmp_path / "cni.tgz", {name: plugin_files.elf("1") for name in names}))
    conf = tmp_path / "net.d"
    (conf / "old").mkdir(parents=True)
    for name, document in NETWORKS.items():
        (conf / name).write_text(json.dumps(dict(document, cniVersion="1.0.0")))
    (conf / "80-broken.conflist").write_text(BROKEN)
    # what libcni adds to a network out of its own directory
    (conf / "old" / "10-firewall.conf").write_text('{"type": "firewall"}')
    return conf


def test_absent_keeps_what_networks_need(run, with_networks, tmp_path):
    options = {"state": "absent", "conf_dir": str(with_networks)}
    predicted = run(check_mode=True, diff=True, **options)
    applied = run(diff=True, **options)
    assert applied["removed"] == predicted["removed"] == ["loopback", "vlan"]
    assert applied["diff"] == predicted["diff"]
    assert sorted(os.listdir(str(tmp_path / "bin"))) == sorted(KEPT)
    for result in (predicted, applied):
        kept = {one["name"]: one["needed_by"] for one in result["plugins"] if one["action"] == "kept"}
        assert kept == KEPT
        assert [one["needed_by"] for one in result["plugins"] if one["action"] == "removed"] == [[], []]
        assert result["findings"] == []
    again = run(**options)
    assert (again["changed"], again["removed"]) == (False, [])
    # they are on record still, so they go once the networks have gone
    for path in with_networks.glob("*.con*"):
        path.unlink()
    assert run(**options)["removed"] == sorted(KEPT)
    assert os.listdir(str(tmp_path / "bin")) == []


def test_networks_that_leave_as_well_keep_nothing(run, with_networks):
    leaving = {"state": "absent", "conf_dir": str(with_networks), "leaving_networks": ["both", "ours", "old", "deep"]}
    predicted = run(check_mode=True, **leaving)
    kept = {one["name"]: one["needed_by"] for one in predicted["plugins"] if one["action"] == "kept"}
    assert kept == {"dhcp": ["single"], "ipvlan": ["80-broken.conflist"], "macvlan": ["single"]}


def test_what_is_named_goes_whoever_needs_it(run, with_networks, tmp_path):
    result = run(state="absent", conf_dir=str(with_networks), include=["bridge"])
    assert result["removed"] == ["bridge"]
    assert not (tmp_path / "bin" / "bridge").exists()


def test_networks_are_not_looked_at_unless_asked_for(run, with_networks, tmp_path):
    nowhere = run(state="absent", conf_dir=str(tmp_path / "none"), check_mode=True)
    assert nowhere["removed"] == run(state="absent")["removed"] == sorted([*KEPT, "loopback", "vlan"])
    assert os.listdir(str(tmp_path / "bin")) == []
