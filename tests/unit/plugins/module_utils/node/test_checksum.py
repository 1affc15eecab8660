# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import checksum

CASE = json.loads((Path(__file__).resolve().parents[4] / "cases" / "install-checksum-of-wrong-file.json").read_text())
A, B = "a" * 64, "b" * 64


def spelled_out(text):
    """The case abbreviates digests: aaaa... stands for 64 digits."""
    return re.sub(r"([0-9a-f])\1{3}\.\.\.", lambda match: match.group(1) * 64, text)


def test_case_checksum_of_wrong_file():
    given, wanted = CASE["input"], CASE["input"]["wanted"]
    text = spelled_out(given["checksum_file"])
    assert checksum.choose_digest(text, wanted, "sha256", "f") == spelled_out(CASE["check"]["chosen"])
    with pytest.raises(NodenetError, match="no line of it names other.tgz, only cni-plugins-linux-amd64-v1.5.1.tgz, "):
        checksum.choose_digest(text, "other.tgz", "sha256", "f")


@pytest.mark.parametrize(
    "text",
    [
        A + "\n",
        A + "  cni.tgz\n",
        A + " *cni.tgz\n" + B + " *other.tgz\n",
        A.upper() + "\t./out/cni.tgz",
        f"SHA256 (cni.tgz) = {A}\nSHA256 (other.tgz) = {B}\n",
        f"# comment\n\n{A}  cni.tgz\n",
        f"{A}  cni.tgz\n{'c' * 128}  cni.tgz\n",
        f"{B}\n{A}  cni.tgz\n",
    ],
)
def test_chosen_by_name(text):
    assert checksum.choose_digest(text, "cni.tgz", "sha256", "f") == A


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it holds no sha256 digest"),
        ("<html>", "it holds no sha256 digest"),
        ("a" * 40 + "  cni.tgz", "it holds no sha256 digest"),
        (f"{A}\n{B}\n", "it holds 2 sha256 digests without a file name"),
        (f"{A}  cni.tgz\n{B}  cni.tgz\n", "it gives more than one sha256 digest for cni.tgz"),
        (f"{A}  other.tgz\n", "no line of it names cni.tgz, only other.tgz"),
        (f"{B}\n{A}  other.tgz\n", "no line of it names cni.tgz, only other.tgz"),
    ],
)
def test_refused(text, reason):
    with pytest.raises(NodenetError) as caught:
        checksum.choose_digest(text, "cni.tgz", "sha256", "/m/SUMS")
    assert str(caught.value) == "Cannot choose the checksum of cni.tgz in /m/SUMS: " + reason


def test_digest_or_file(tmp_path):
    (tmp_path / "SUMS").write_text(A + "  cni.tgz\n")
    assert checksum.wanted_digest("sha256:" + A.upper(), "cni.tgz") == ("sha256", A)
    assert checksum.wanted_digest("sha512:" + "d" * 128, "cni.tgz") == ("sha512", "d" * 128)
    assert checksum.wanted_digest(f"sha256:{tmp_path}/SUMS", "cni.tgz") == ("sha256", A)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (A, "it must be sha256:<hex digest>"),
        ("md5:" + "a" * 32, "it must be sha256:<hex digest>"),
        ("sha256:" + "a" * 63, "a sha256 digest has 64 hex digits, this one 63"),
        ("sha256:", "a sha256 digest has 64 hex digits, this one 0"),
        ("sha256:https://host.example/SUMS", "nothing is fetched from a URL; download it before and give the path"),
        ("sha256:SUMS", "Cannot read checksum file SUMS: No such file"),
        ("sha256:/none/SUMS", "Cannot read checksum file /none/SUMS: No such file"),
    ],
)
def test_bad_option(value, message):
    with pytest.raises(NodenetError, match=message):
        checksum.wanted_digest(value, "cni.tgz")
