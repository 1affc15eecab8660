# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages of others beside the multus executable: what goes along, and what becomes of those that do not fit."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import embedded, executables, vendoring

PYTHON = os.path.realpath(sys.executable)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(executables.__file__)))


NAMES = ("somexml", "somenet", "somepack", "someframe")


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Packages that no Python has, in two groups as the real ones are."""
    folder = tmp_path / "site"
    for name in NAMES:
        (folder / name / "inner").mkdir(parents=True)
        (folder / name / "__init__.py").write_text("from .inner import WORD\n")
        (folder / name / "inner" / "__init__.py").write_text("WORD = 'W\u00f6rd of %s'\n" % name, encoding="utf-8")
        (folder / name / "_speed.so").write_bytes(b"\x7fELF")
        (folder / name / "__pycache__").mkdir()
        (folder / name / "__pycache__" / "x.py").write_text("")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(vendoring, "PACKAGES", {"multus": (NAMES[:1], NAMES[1:])})
    importlib.invalidate_caches()
    return folder


def names(sources):
    return sorted({path.split("/")[1] for path in sources if vendoring.is_others(path)})


def test_what_goes_along(packages):
    sources = executables.collect_sources(ROOT, ["multus"])
    assert names(sources) == sorted(NAMES)
    assert [path for path in sources if path.startswith("vendored/somexml/")] == [
        "vendored/somexml/__init__.py",
        "vendored/somexml/inner/__init__.py",
    ]
    assert embedded.unpack(embedded.pack(sources)) == sources
    assert names(executables.collect_sources(ROOT, ["host-local"])) == []
    assert vendoring.missing(sources, ["multus"]) == []


@pytest.mark.parametrize(("gone", "left"), [("somepack", ["somexml"]), ("somexml", sorted(NAMES[1:]))])
def test_a_package_goes_with_those_it_needs_or_not_at_all(packages, gone, left):
    shutil.rmtree(str(packages / gone))
    sources = vendoring.collect(["multus"])
    assert names(sources) == left
    assert vendoring.missing(sources, ["multus", "host-local"]) == [{"somepack": "somenet"}.get(gone, gone)]


def test_a_file_of_that_name_or_a_package_without_a_beginning_is_none(packages):
    (packages / "somexml" / "__init__.py").unlink()
    shutil.rmtree(str(packages / "somenet"))
    (packages / "somenet.py").write_text("")
    assert vendoring.collect(["multus"]) == {}


def test_one_that_cannot_be_read_is_as_good_as_not_there(packages):
    (packages / "someframe" / "inner" / "old.py").write_bytes(b"# caf\xe9\n")
    assert names(vendoring.collect(["multus"])) == ["somexml"]


def test_of_the_real_ones_what_is_python():
    sources = vendoring.collect(["multus"])
    assert all(path.endswith(".py") for path in sources)
    assert "vendored/yaml/cyaml.py" not in sources
    assert vendoring.unfit(sources) == []


def build(tmp_path):
    sources = executables.collect_sources(ROOT, ["multus"])
    bin_dir = str(tmp_path / "bin")
    (path,) = executables.build(ROOT, bin_dir, ["multus"], PYTHON)
    version = executables.launched_version(path)
    return path, os.path.join(bin_dir, executables.STORE, version, executables.PACKAGE), sources, version


LOAD = "import sys; sys.path.insert(0, %r); from nodenet_cni.multus import vendored; print(vendored.load(%r).WORD)"


def load(package_dir, name):
    command = [sys.executable, "-IBS", "-c", LOAD % (os.path.dirname(package_dir), name)]
    return subprocess.run(command, check=False, capture_output=True)


def test_the_executable_finds_them(packages, tmp_path):
    _path, package_dir, _sources, _version = build(tmp_path)
    for name in ("somexml", "somenet"):
        assert load(package_dir, name).stdout.decode("utf-8") == "W\u00f6rd of %s\n" % name
    assert os.path.exists(os.path.join(package_dir, "vendored", "somexml", "__pycache__"))


def test_one_that_this_python_cannot_compile_is_left_out_with_its_group(packages, tmp_path):
    (packages / "somepack" / "inner" / "new.py").write_text("def f(:\n")
    path, package_dir, sources, version = build(tmp_path)
    assert sorted(os.listdir(os.path.join(package_dir, "vendored"))) == [
        "someframe.unfit",
        "somenet.unfit",
        "somepack.unfit",
        "somexml",
    ]
    assert executables.is_whole(str(tmp_path / "bin"), version, sources, PYTHON)
    assert b"ModuleNotFoundError: No module named 'somepack'" in load(package_dir, "somepack").stderr
    stamp = os.stat(package_dir).st_mtime_ns
    build(tmp_path)
    assert os.stat(package_dir).st_mtime_ns == stamp
    os.unlink(os.path.join(package_dir, "vendored", "somenet.unfit"))
    assert not executables.is_whole(str(tmp_path / "bin"), version, sources, PYTHON)
    build(tmp_path)
    assert executables.is_whole(str(tmp_path / "bin"), version, sources, PYTHON)


def test_one_that_fails_when_it_is_imported_is_as_good_as_not_there(packages, tmp_path):
    (packages / "somexml" / "inner" / "__init__.py").write_text("WORD = int | None if False else 1 / 0\n")
    _path, package_dir, _sources, _version = build(tmp_path)
    assert (
        b"ImportError: somexml cannot be used with this Python: division by zero" in load(package_dir, "somexml").stderr
    )


@pytest.mark.parametrize("damage", ["change", "remove", "byte-code"])
def test_damage_is_repaired(packages, tmp_path, damage):
    _path, package_dir, sources, version = build(tmp_path)
    place = os.path.join(package_dir, "vendored", "somexml")
    if damage == "change":
        with open(os.path.join(place, "__init__.py"), "a", encoding="utf-8") as stream:
            stream.write("import evil\n")
    elif damage == "remove":
        shutil.rmtree(place)
    else:
        shutil.rmtree(os.path.join(place, "__pycache__"))
    assert not executables.is_whole(str(tmp_path / "bin"), version, sources, PYTHON)
    build(tmp_path)
    assert executables.is_whole(str(tmp_path / "bin"), version, sources, PYTHON)


def test_a_kubeconfig_in_yaml_with_the_packages_that_this_python_really_has(tmp_path):
    if "yaml" not in names(vendoring.collect(["multus"])):
        pytest.skip("not run: PyYAML is not installed")
    path, _package_dir, _sources, _version = build(tmp_path)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: l}}]\n"
        "clusters: [{name: l, cluster: {server: 'http://127.0.0.1:1'}}]\n"
    )
    config = {
        "cniVersion": "1.0.0", "name": "net", "type": "multus", "kubeconfig": str(kubeconfig),
        "apiTimeoutSeconds": 1, "cniDir": str(tmp_path / "cni"), "delegates": [{"type": "none", "name": "x"}],
    }  # fmt: skip
    env = {
        "CNI_COMMAND": "ADD", "CNI_CONTAINERID": "c1", "CNI_NETNS": "/proc/1/none", "CNI_IFNAME": "eth0",
        "CNI_PATH": str(tmp_path), "CNI_ARGS": "K8S_POD_NAMESPACE=ns1;K8S_POD_NAME=p1",
    }  # fmt: skip
    done = subprocess.run([path], input=json.dumps(config).encode(), env=env, stdout=subprocess.PIPE, check=False)
    assert "dial tcp 127.0.0.1:1: connect: connection refused" in json.loads(done.stdout)["msg"]
