# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import confdir, effective


def conflist(name, *types):
    return {"cniVersion": "1.0.0", "name": name, "plugins": [{"type": kind} for kind in types or ("bridge",)]}


def write(directory, **files):
    for name, content in files.items():
        write_file(directory, name.replace("__", "."), content)


def write_file(directory, name, content):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def names(directory):
    return [one.name for one in confdir.read_conf_dir(str(directory)).files]


def test_load_order_is_byte_order(tmp_path):
    # runtimes.md 2.1: .a < 10- < 100- < 9- < A- < a-
    wanted = [".a.conflist", "10-x.conf", "100-x.json", "9-x.conflist", "A-x.conflist", "a-x.conflist"]
    for name in reversed(wanted):
        write_file(tmp_path, name, conflist("n"))
    assert names(tmp_path) == wanted


def test_only_the_last_extension_counts_and_case_matters(tmp_path):
    counted = [".conflist", ".x.conflist", "a.bak.conflist"]
    for name in [*counted, "x.conflist.bak", "x.conflist~", "x.CONFLIST", "x.conflist.12.2026@10~", "conflist", "x"]:
        write_file(tmp_path, name, conflist("n"))
    (tmp_path / "dir.conflist").mkdir()
    assert names(tmp_path) == counted


def test_a_missing_directory_is_an_empty_one(tmp_path):
    found = confdir.read_conf_dir(str(tmp_path / "none"))
    assert not found.exists
    assert found.files == []


def test_a_file_as_conf_dir_is_an_error(tmp_path):
    write_file(tmp_path, "file", "x")
    with pytest.raises(NotADirectoryError):
        confdir.read_conf_dir(str(tmp_path / "file"))


def test_what_cannot_be_read_is_a_file_with_an_error(tmp_path):
    os.symlink("nowhere", str(tmp_path / "10-a.conflist"))
    (tmp_path / "folder").mkdir()
    os.symlink("folder", str(tmp_path / "20-b.conflist"))
    os.mkfifo(str(tmp_path / "30-c.conflist"))
    write_file(tmp_path, "target", conflist("d"))
    os.symlink("target", str(tmp_path / "40-d.conflist"))
    errors = {one.name: one.error for one in confdir.read_conf_dir(str(tmp_path)).files}
    assert errors["10-a.conflist"] == "a link that points nowhere"
    assert errors["20-b.conflist"] == "a directory"
    assert errors["30-c.conflist"] == "not a file"
    assert errors["40-d.conflist"] == ""


def test_a_file_gives_network_version_and_types(tmp_path):
    write_file(tmp_path, "10-a.conflist", conflist("n", "bridge", "portmap"))
    write_file(tmp_path, "20-b.conf", {"name": "m", "type": "ptp", "cniVersion": "0.3.1"})
    first, second = confdir.read_conf_dir(str(tmp_path)).files
    assert (first.network, first.cni_version, first.types) == ("n", "1.0.0", ["bridge", "portmap"])
    assert (second.network, second.cni_version, second.types) == ("m", "0.3.1", ["ptp"])


def test_plugins_of_the_networks_directory_are_found(tmp_path, case):
    data = case("conflist-subdir-chaining")
    for name, content in data["input"]["conf_dir"].items():
        write_file(tmp_path, name, content)
    write_file(tmp_path, "net/30-ignored.conflist", conflist("x"))
    found = confdir.read_conf_dir(str(tmp_path))
    chain = found.files[0].types + [kind for one in found.chained["net"] for kind in one.types]
    assert chain == data["check"]["chain"]


def test_a_list_may_refuse_further_plugins(tmp_path):
    write_file(tmp_path, "10-net.conflist", dict(conflist("net"), loadOnlyInlinedPlugins=True))
    write_file(tmp_path, "net/20-tuning.conf", {"type": "tuning"})
    assert confdir.read_conf_dir(str(tmp_path)).chained == {}


def test_a_change_can_be_looked_at_before_it_is_made(tmp_path):
    write(tmp_path, b__conflist=conflist("n"), c__conflist=conflist("m"))
    files = confdir.read_conf_dir(str(tmp_path)).files
    new = confdir.ConfFile("a.conflist", json.dumps(conflist("first")).encode())
    after = confdir.with_change(files, [new], ["b.conflist"])
    assert [one.name for one in after] == ["a.conflist", "c.conflist"]
    assert effective.predict(after)["containerd"]["network"] == "first"
    assert names(tmp_path) == ["b.conflist", "c.conflist"]


def test_names_that_are_no_text_can_be_shown(tmp_path):
    for name in (b"1\xff.conflist", b"2\xfe.conflist"):
        with open(os.path.join(os.fsencode(str(tmp_path)), name), "wb") as stream:
            stream.write(b"{")
    found = confdir.read_conf_dir(str(tmp_path))
    assert [one.fault(found.path)["where"] for one in found.files] == [
        str(tmp_path / "1\\xff.conflist"),
        str(tmp_path / "2\\xfe.conflist"),
    ]
    for said in effective.predict(found.files).values():
        str(said).encode()


def test_a_conf_dir_that_no_path_can_be():
    with pytest.raises(NodenetError, match=r"^Cannot read conf dir '/a\\x00b': a path holds no NUL byte$"):
        confdir.read_conf_dir("/a\0b")
