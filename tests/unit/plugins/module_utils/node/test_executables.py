# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Making the executables: what lies on the node, while calls are running and after interruptions."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import bundling, executables

PYTHON = os.path.realpath(sys.executable)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(executables.__file__)))


@pytest.fixture
def bin_dir(tmp_path):
    return tmp_path / "bin"


def build(bin_dir, root=ROOT):
    return executables.build(str(root), str(bin_dir), ["host-local"], PYTHON)[0]


def version(path):
    return subprocess.run([path], env={"CNI_COMMAND": "VERSION"}, stdout=subprocess.PIPE, check=True).stdout


def versions(bin_dir):
    return sorted(os.listdir(os.path.join(str(bin_dir), executables.STORE)))


@pytest.fixture
def changed_root(tmp_path):
    """The sources with one more line."""
    root = tmp_path / "root"
    for package in ("cni", "host_local"):
        shutil.copytree(os.path.join(ROOT, package), str(root / package), ignore=shutil.ignore_patterns("__pycache__"))
    with open(str(root / "cni" / "versions.py"), "a", encoding="utf-8") as stream:
        stream.write("# another release\n")
    return root


def test_what_lies_there(bin_dir):
    old = os.umask(0o077)
    try:
        path = build(bin_dir)
    finally:
        os.umask(old)
    assert version(path).startswith(b'{"cniVersion":"1.1.0"')
    for here, directories, names in os.walk(str(bin_dir / executables.STORE)):
        for name in directories:
            assert stat.S_IMODE(os.stat(os.path.join(here, name)).st_mode) == 0o755
        for name in names:
            mode = 0o755 if name == "host-local" else 0o644
            assert stat.S_IMODE(os.stat(os.path.join(here, name)).st_mode) == mode
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o755
    assert executables.launched_python(path) == PYTHON
    assert executables.launched_version(path) == versions(bin_dir)[0]


def first_line(path):
    with open(path, encoding="utf-8") as stream:
        return stream.readline()


def test_launcher_is_not_what_python_reads_unless_its_path_is_too_long():
    """A call whose launcher is replaced by another plugin, or removed, while Python starts must not notice."""
    with tempfile.TemporaryDirectory(prefix="cni-") as short:
        path = build(short)
        starter = os.path.join(os.path.realpath(short), executables.STORE, versions(short)[0], "host-local")
        assert first_line(path) == f"#!{starter}\n"
        assert first_line(starter) == f"#!{PYTHON} -IBS\n"
        for name in ("l" * 80, "with space"):
            deep = os.path.join(short, name)
            path = build(deep)
            assert first_line(path) == f"#!{PYTHON} -IBS\n"
            assert version(path).startswith(b'{"cniVersion"')
            assert (executables.launched_python(path), executables.launched_version(path)) == (
                PYTHON,
                versions(deep)[0],
            )


def test_only_what_the_plugin_imports_is_there_and_all_of_it_runs_from_byte_code(bin_dir):
    path = build(bin_dir)
    root = bin_dir / executables.STORE / versions(bin_dir)[0] / executables.PACKAGE
    names = {name for name in os.listdir(str(root / "host_local")) if name.endswith(".py")}
    assert {"commands.py", "adding.py", "upkeep.py", "store.py", "resolvconf.py", "beside.py"} <= names
    assert not {"reservations.py", "report.py", "transaction.py", "batch.py"} & names
    for here, _directories, sources in os.walk(str(root)):
        for name in sources:
            if name.endswith(".py"):
                (root.parent / "moved").mkdir(exist_ok=True)
                os.truncate(os.path.join(here, name), 0)
    assert version(path).startswith(b'{"cniVersion"')


@pytest.mark.parametrize(
    "damage", ["gone", "of another Python", "cut in the head", "cut in the table", "cut behind it", "empty"]
)
def test_without_byte_code_of_this_python_it_runs_from_the_sources_and_writes_none(bin_dir, damage):
    """After an upgrade of the node's Python."""
    path = build(bin_dir)
    root = bin_dir / executables.STORE / versions(bin_dir)[0]
    code = root / "host-local.code"
    if damage == "gone":
        code.unlink()
    elif damage == "of another Python":
        code.write_bytes(b"\0\0\r\n" + code.read_bytes()[4:])
    else:
        size = {"cut in the head": 20, "cut in the table": bundling.HEAD + 100, "cut behind it": 10000, "empty": 0}
        os.truncate(str(code), size[damage])
    assert version(path).startswith(b'{"cniVersion"')
    assert not [here for here, _directories, _names in os.walk(str(root)) if here.endswith("__pycache__")]


def begun(bin_dir):
    """Return where a version lies, and the beginning of its starter: all but the call."""
    build(bin_dir)
    root = bin_dir / executables.STORE / versions(bin_dir)[0]
    return root, (root / "host-local").read_text().partition("from nodenet_cni")[0]


def run_python(program):
    return subprocess.run([PYTHON, "-IBSc", program], stdout=subprocess.PIPE, check=True).stdout.decode()


def test_a_call_ends_with_the_code_it_began_with(bin_dir):
    """Only the sources are left to fall back upon, and they go as well: nothing is looked for again."""
    root, begin = begun(bin_dir)
    more = "import shutil; shutil.rmtree(%r)\nfrom nodenet_cni.host_local import upkeep\nprint(upkeep.__file__)\n"
    assert run_python(begin + more % str(root)) == f"{root}/nodenet_cni/host_local/upkeep.py\n"
    assert not root.exists()


ALL_MODULES = """
import importlib, json
found = {}
for name in %r:
    module = importlib.import_module(name)
    parent, _dot, last = name.rpartition(".")
    known = getattr(sys.modules[parent], last, None) is module if parent else True
    path = list(getattr(module, "__path__", []))
    found[name] = [module.__name__, module.__package__, module.__file__, path, known]
for name in found:
    classes = [one for one in vars(sys.modules[name]).values() if isinstance(one, type) and one.__module__ in found]
    twice = [one.__name__ for one in classes if getattr(sys.modules[one.__module__], one.__name__) is not one]
    found[name].append(twice)
print(json.dumps(found))
"""


def test_modules_are_the_same_from_byte_code_as_from_the_sources(bin_dir):
    """In whatever order they are loaded, with what they need, before it, and one after the other."""
    root, begin = begun(bin_dir)
    paths = sorted((root / executables.PACKAGE).rglob("*.py"))
    dotted = [".".join(path.relative_to(root).with_suffix("").parts) for path in paths]
    names = [name[: -len(".__init__")] if name.endswith(".__init__") else name for name in dotted]
    assert len(names) > 30

    def loaded(order):
        return json.loads(run_python(begin + ALL_MODULES % order))

    from_bundle = [loaded(names), loaded(names[::-1])]
    (root / "host-local.code").unlink()
    assert from_bundle == [loaded(names)] * 2


def test_no_directory_is_searched_for_what_a_call_needs(bin_dir):
    """Neither for our modules nor for those of Python itself: the path entries that Python has looked into are those
    into which it looks before a program begins."""
    root, begin = begun(bin_dir)
    needed = "import nodenet_cni.cni.process\nfrom nodenet_cni.host_local import commands, adding, indexed, upkeep\n"
    show = "import sys\nprint(sorted(sys.path_importer_cache))\n"
    assert run_python(begin + needed + show) == run_python(show)


def test_a_module_of_python_that_has_moved_is_found_by_python(bin_dir, monkeypatch):
    """As after a change of the node's Python that kept its byte code."""
    monkeypatch.setattr(bundling, "_extensions", lambda _sources: {"_json": "/nowhere/_json.so"})
    launcher = build(bin_dir)
    assert version(launcher).startswith(b'{"cniVersion"')
    done = subprocess.run([launcher], env={"CNI_COMMAND": "ADD"}, input=b"", stdout=subprocess.PIPE, check=False)
    assert json.loads(done.stdout)["code"] == 4


def test_a_fault_shows_where_it_is_in_the_sources(bin_dir):
    root, begin = begun(bin_dir)
    more = "from nodenet_cni.cni import paths\npaths.parent(None)\n"
    done = subprocess.run([PYTHON, "-IBSc", begin + more], stderr=subprocess.PIPE, check=False)
    text = done.stderr.decode()
    assert f'  File "{root}/nodenet_cni/cni/paths.py", line ' in text
    assert "in parent\n    " in text


def test_the_second_time_nothing_is_written(bin_dir):
    build(bin_dir)
    before = os.stat(str(bin_dir / executables.STORE / versions(bin_dir)[0])).st_mtime_ns
    build(bin_dir)
    assert os.stat(str(bin_dir / executables.STORE / versions(bin_dir)[0])).st_mtime_ns == before


def test_the_version_before_stays_until_the_next_change(bin_dir, changed_root):
    first = executables.launched_version(build(bin_dir))
    second = executables.launched_version(build(bin_dir, changed_root))
    assert first != second
    assert versions(bin_dir) == sorted([first, second])
    with open(str(changed_root / "cni" / "versions.py"), "a", encoding="utf-8") as stream:
        stream.write("# and another\n")
    third = executables.launched_version(build(bin_dir, changed_root))
    assert versions(bin_dir) == sorted([second, third])


@pytest.mark.parametrize(
    "damage", ["source", "byte code", "a bit of the byte code", "file", "starter", "mode of the starter"]
)
def test_a_damaged_version_is_made_again(bin_dir, damage):
    path = build(bin_dir)
    root = bin_dir / executables.STORE / versions(bin_dir)[0]
    if damage == "source":
        (root / executables.PACKAGE / "cni" / "skel.py").write_text("x")
    elif damage == "starter":
        (root / "host-local").unlink()
    elif damage == "mode of the starter":
        (root / "host-local").chmod(0o644)
    elif damage == "byte code":
        (root / "host-local.code").unlink()
    elif damage == "a bit of the byte code":
        data = bytearray((root / "host-local.code").read_bytes())
        data[-100] ^= 1
        (root / "host-local.code").write_bytes(data)
    else:
        shutil.rmtree(str(root))
        root.write_text("not a directory")
    build(bin_dir)
    assert version(path).startswith(b'{"cniVersion"')
    assert (root / executables.PACKAGE / "cni" / "skel.py").stat().st_size > 100


def test_left_overs_of_an_interrupted_run_go(bin_dir):
    build(bin_dir)
    left = bin_dir / executables.STORE / ("0" * 32 + ".123")
    (left / "x").mkdir(parents=True)
    (bin_dir / executables.STORE / "not ours").mkdir()
    build(bin_dir)
    assert [name for name in versions(bin_dir) if not executables._HASH.fullmatch(name)] == ["not ours"]


CALLER = """
import os, subprocess, sys
done, failed = 0, []
while not os.path.exists(sys.argv[2]):
    process = subprocess.run([sys.argv[1]], env={"CNI_COMMAND": "VERSION"}, capture_output=True, check=False)
    done += 1
    if process.returncode or process.stderr:
        failed.append(process.stderr)
print(done, failed)
"""


def test_calls_go_on_while_it_is_replaced(bin_dir, changed_root, tmp_path):
    """From processes of their own: a child of this one would hold open what is being written."""
    path = build(bin_dir)
    stop = tmp_path / "stop"
    command = [sys.executable, "-c", CALLER, path, str(stop)]
    callers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _number in range(2)]
    try:
        for number in range(6):
            build(bin_dir, changed_root if number % 2 else ROOT)
    finally:
        stop.touch()
        said = [caller.communicate(timeout=60)[0].decode().partition(" ") for caller in callers]
    assert [failed for _done, _blank, failed in said] == ["[]\n"] * 2
    assert sum(int(done) for done, _blank, _failed in said) > 10


def test_a_python_that_may_go_away_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(NodenetError, match="^Cannot make executables that run with .*: it runs in the virtual environ"):
        executables.node_python()
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(sys, "executable", os.path.expanduser("~/python"))
    with pytest.raises(NodenetError, match="it lies in a home directory; set ansible_python_interpreter"):
        executables.node_python()
    monkeypatch.setattr(sys, "executable", "/usr/local/bin/python 3")
    with pytest.raises(NodenetError, match="first line of a script"):
        executables.node_python()
    monkeypatch.setattr(sys, "executable", "/usr/bin/env")
    assert executables.node_python() == os.path.realpath("/usr/bin/env")


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"x/.nodenet-cni/short'"])
def test_foreign_files_are_no_launchers(tmp_path, content):
    path = tmp_path / "host-local"
    path.write_bytes(content)
    assert executables.launched_version(str(path)) is None
    assert executables.launched_version(str(tmp_path / "none")) is None


@pytest.mark.parametrize("option", ["--version", "-v"])
def test_multus_tells_its_version(bin_dir, option):
    """Vector version-and-frame#12: the plugin is named, and the tree it was made of."""
    path = executables.build(ROOT, str(bin_dir), ["multus"], PYTHON)[0]
    told = subprocess.run([path, option], env={}, stdout=subprocess.PIPE, check=True).stdout.decode()
    version_hash = executables.launched_version(path)
    assert told == "multus: version:nodenet.cni(%s), commit:unknown commit, date:unknown date\n" % version_hash


def test_other_options_are_none(bin_dir):
    """The Go host-local has no options, and neither has ours."""
    for path in executables.build(ROOT, str(bin_dir), ["host-local", "multus"], PYTHON):
        env = {"CNI_COMMAND": "VERSION"}
        option = "--version" if path.endswith("host-local") else "--other"
        told = subprocess.run([path, option], env=env, stdout=subprocess.PIPE, check=True).stdout
        assert told.startswith(b'{"cniVersion":"1.1.0"')
