# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tarfile
import tracemalloc

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import archive
from ansible_collections.nodenet.cni.tests.unit import plugin_files

CONTENT = {
    "bridge": os.urandom((1 << 20) + 5),
    "sub/tool": b"tool",
    "LICENSE": b"free",
    "exact": b"x" * 5120,
    "empty": b"",
}


def read(path, wanted=None):
    source = archive.open_source(str(path))
    try:
        return {entry.path: b"".join(entry.pieces()) for entry in source.entries(wanted)}
    finally:
        source.close()


@pytest.fixture(params=["gz", "xz", "bz2", "", "zip"])
def packed(request, tmp_path):
    # The name says nothing: the content does.
    path = tmp_path / "archive"
    if request.param == "zip":
        plugin_files.zip_file(path, CONTENT)
    else:
        plugin_files.tar(path, CONTENT, request.param)
    return path


def test_every_kind_is_read_whole_and_in_order(packed):
    assert read(packed) == CONTENT
    assert list(read(packed)) == list(CONTENT)


def test_a_part_can_be_read_and_a_second_time(packed):
    source = archive.open_source(str(packed))
    try:
        for _round in range(2):
            got = {entry.path: b"".join(entry.pieces()) for entry in source.entries(frozenset(["exact", "sub/tool"]))}
            assert got == {"exact": CONTENT["exact"], "sub/tool": b"tool"}
    finally:
        source.close()


def test_content_may_be_passed_over(packed):
    source = archive.open_source(str(packed))
    try:
        assert [entry.path for entry in source.entries()] == list(CONTENT)
    finally:
        source.close()


def test_digest_is_of_the_opened_file(packed):
    content = packed.read_bytes()
    source = archive.open_source(str(packed))
    packed.unlink()
    try:
        assert source.digest == hashlib.sha256(content).hexdigest()
        assert source.hexdigest("sha512") == hashlib.sha512(content).hexdigest()
        assert {entry.path for entry in source.entries()} == set(CONTENT)
    finally:
        source.close()


@pytest.mark.parametrize("part", [0.3, 0.99])
def test_truncated_archive(packed, part):
    content = packed.read_bytes()
    packed.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(NodenetError, match=f"^Cannot read archive {packed}: it is damaged or incomplete"):
        read(packed)


def test_damaged_archive(packed):
    if tarfile.is_tarfile(str(packed)) and packed.read_bytes()[257:262] == b"ustar":
        return  # a plain tar has no checksum of its content
    content = bytearray(packed.read_bytes())
    content[len(content) // 2] ^= 0xFF
    packed.write_bytes(bytes(content))
    with pytest.raises(NodenetError, match="damaged or incomplete"):
        read(packed)


@pytest.mark.parametrize(
    ("content", "end"),
    [(b"", ", it is empty"), (b"<!DOCTYPE html>\n<p>", ", it starts with '<!DOCTYPE html>'")],
)
def test_no_archive(tmp_path, content, end):
    (tmp_path / "cni.tgz").write_bytes(content)
    with pytest.raises(NodenetError) as caught:
        archive.open_source(str(tmp_path / "cni.tgz"))
    assert str(caught.value).startswith(f"Cannot read {tmp_path}/cni.tgz: it is no tar archive")
    assert str(caught.value).endswith(end)


def test_missing_source_can_be_told_from_other_faults(tmp_path):
    with pytest.raises(NodenetError) as caught:
        archive.open_source(str(tmp_path / "none.tgz"))
    assert caught.value.facts["src_missing"] is True
    assert str(caught.value) == (
        f"Cannot read {tmp_path}/none.tgz on this node: there is no such file; put it there, or set remote_src to "
        "false if it is on the controller (roles: plugin_binaries_remote_src)"
    )


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (("../../etc/cron.d/x", b"", 0o644), "its member ../../etc/cron.d/x points outside of the archive"),
        (("a/../../b", b"", 0o644), "its member a/../../b points outside of the archive"),
        (("/etc/passwd", b"", 0o644), "its member /etc/passwd points outside of the archive"),
        (("a\\..\\b", b"", 0o644), "points outside of the archive"),
        (("bridge", b"again", 0o755), "it holds bridge more than once"),
        (("./bridge", b"again", 0o755), "it holds bridge more than once"),
        (plugin_files.odd("link", tarfile.SYMTYPE, "/etc/shadow"), "its member link is a link to /etc/shadow"),
        (plugin_files.odd("sub/link", tarfile.SYMTYPE, "../bridge"), "its member sub/link is a link to ../bridge"),
        (plugin_files.odd("hard", tarfile.LNKTYPE, "bridge"), "its member hard is a link to bridge"),
        (plugin_files.odd("dev", tarfile.CHRTYPE), "its member dev is no plain file"),
        (plugin_files.odd("disk", tarfile.BLKTYPE), "its member disk is no plain file"),
        (plugin_files.odd("pipe", tarfile.FIFOTYPE), "its member pipe is no plain file"),
        (plugin_files.odd("/abs", tarfile.DIRTYPE), "its member /abs points outside of the archive"),
    ],
)
def test_odd_member_of_a_tar(tmp_path, member, message):
    plugin_files.tar(tmp_path / "a.tgz", [("bridge", b"x", 0o755), member])
    with pytest.raises(NodenetError) as caught:
        read(tmp_path / "a.tgz")
    assert str(caught.value).startswith(f"Cannot take plugins from {tmp_path}/a.tgz: ")
    assert message in str(caught.value)
    # also when it is not among those wanted
    with pytest.raises(NodenetError):
        read(tmp_path / "a.tgz", frozenset(["bridge"]))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("../x", b"", "its member ../x points outside of the archive"),
        ("/x", b"", "its member /x points outside of the archive"),
        ("link", (b"/etc/shadow", stat.S_IFLNK | 0o777), "its member link is a link"),
        ("dev", (b"", stat.S_IFCHR | 0o644), "its member dev is no plain file"),
    ],
)
def test_odd_member_of_a_zip(tmp_path, name, content, message):
    plugin_files.zip_file(tmp_path / "a.zip", {"bridge": b"x", name: content})
    with pytest.raises(NodenetError, match="^Cannot take plugins from .*: " + message):
        read(tmp_path / "a.zip")


def test_directories_and_dots_in_names_are_harmless(tmp_path):
    members = [plugin_files.odd("./", tarfile.DIRTYPE), ("./bridge", b"b", 0o755), (".//sub/./x", b"x", 0o644)]
    plugin_files.tar(tmp_path / "a.tgz", members)
    assert read(tmp_path / "a.tgz") == {"bridge": b"b", "sub/x": b"x"}


def test_directory_gives_files_and_links_that_stay_inside(tmp_path):
    top = tmp_path / "cni"
    plugin_files.write(top / "bridge", b"b")
    plugin_files.write(top / "real" / "ptp", b"p")
    (top / "ptp").symlink_to("real/ptp")
    (top / "alias").symlink_to(top / "bridge")
    os.mkfifo(str(top / "pipe"))
    (tmp_path / "to-cni").symlink_to("cni")
    for path in (top, tmp_path / "to-cni"):
        assert read(path) == {"alias": b"b", "bridge": b"b", "ptp": b"p"}
    assert read(top, frozenset(["ptp", "none"])) == {"ptp": b"p"}


@pytest.mark.parametrize(
    ("target", "message"), [("../outside", "its link x leads out of it, to "), ("gone", "its link x leads nowhere")]
)
def test_directory_with_a_link_elsewhere(tmp_path, target, message):
    plugin_files.write(tmp_path / "outside", b"o")
    plugin_files.write(tmp_path / "cni" / "bridge", b"b")
    (tmp_path / "cni" / "x").symlink_to(target)
    with pytest.raises(NodenetError, match="^Cannot take plugins from .*/cni: " + message):
        read(tmp_path / "cni")
    assert read(tmp_path / "cni", frozenset(["bridge"])) == {"bridge": b"b"}


class Endless:
    """So many zero bytes, which compress to next to nothing."""

    def __init__(self, size):
        self._left = size

    def read(self, size):
        data = bytes(min(size, self._left))
        self._left -= len(data)
        return data


def bomb(path, kind, behind=0):
    """A small archive with a header for gigabytes: of one that names a member, or of nothing, behind the end."""
    with tarfile.open(str(path), "w:" + kind) as archive_file:
        if behind:
            archive_file.addfile(tarfile.TarInfo("bridge"))
        else:
            member = tarfile.TarInfo("././@PaxHeader")
            member.type, member.size = tarfile.XHDTYPE, 64 << 20
            archive_file.fileobj.write(member.tobuf(tarfile.USTAR_FORMAT))
            shutil.copyfileobj(Endless(64 << 20), archive_file.fileobj)
        if behind:
            archive_file.fileobj.write(bytes(1024))
            shutil.copyfileobj(Endless(behind), archive_file.fileobj)
    return path


@pytest.mark.parametrize("kind", ["gz", "xz"])
@pytest.mark.parametrize("behind", [0, 64 << 20])
def test_small_archive_that_swells_is_refused(tmp_path, kind, behind):
    path = bomb(tmp_path / "bomb", kind, behind)
    assert path.stat().st_size < 200000
    tracemalloc.start()
    try:
        with pytest.raises(NodenetError, match="^Cannot take plugins from .*/bomb: it holds far more than plugins$"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 48 << 20
    finally:
        tracemalloc.stop()


def test_large_member_is_no_bomb(tmp_path):
    path = plugin_files.tar(tmp_path / "cni.tgz", {"a": bytes(40 << 20), "b": bytes(20 << 20)})
    assert {name: len(content) for name, content in read(path).items()} == {"a": 40 << 20, "b": 20 << 20}
    assert list(read(path, frozenset(["b"]))) == ["b"]


def test_zip_member_that_is_larger_than_it_says(tmp_path):
    path = plugin_files.zip_file(tmp_path / "cni.zip", {"bridge": bytes(1 << 20)})
    with open(path, "r+b") as stream:
        content = stream.read()
        for signature, offset in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
            at = content.index(signature) + offset
            content = content[:at] + (1000).to_bytes(4, "little") + content[at + 4 :]
        stream.seek(0)
        stream.write(content)
    with pytest.raises(NodenetError, match="^Cannot read archive .*: it is damaged or incomplete"):
        read(path)
