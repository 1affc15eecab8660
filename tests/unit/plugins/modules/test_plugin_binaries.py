# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.nodenet.cni.plugins.modules import plugin_binaries
from ansible_collections.nodenet.cni.tests.unit import plugin_files

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
    assert applied["diff"]["before"] == {}
    assert applied["diff"]["after"]["bridge"]["mode"] == "0755"
    assert applied["diff"]["after_header"] == str(tmp_path / "bin")
    assert again["diff"]["after"] == {}
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


def test_result_has_every_key_in_every_state(run, src):
    keys = {"bin_dir", "changed", "findings", "ignored", "plugins", "removed"}
    for options in ({"src": src}, {"src": src, "check_mode": True}, {"required": ["bridge"]}, {"state": "absent"}):
        result = run(**options)
        assert keys <= set(result), options
        for plugin in result["plugins"]:
            assert set(plugin) == {"action", "cni_versions", "name", "path", "sha256", "version"}


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
        ({}, "state is present but any of the following are missing: src, required"),
        ({"state": "absent", "checksum": "sha256:x"}, "missing parameter(s) required by 'checksum': src"),
        ({"src": "/none.tgz", "checksum": "md5:1"}, "Cannot use checksum md5:1: it must be sha256:<hex digest> or "),
        ({"src": "/none.tgz"}, "Cannot read /none.tgz on this node: there is no such file"),
        ({"required": ["../sh"]}, "Cannot use '../sh' in required: a plugin is named by letters"),
        ({"state": "absent", "include": ["/etc/passwd"]}, "Cannot use '/etc/passwd' in include: "),
    ],
)
def test_bad_input(run, tmp_path, options, message):
    result = run(**options)
    assert (result["rc"], result["failed"]) == (1, True)
    assert result["msg"].startswith(message)
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
