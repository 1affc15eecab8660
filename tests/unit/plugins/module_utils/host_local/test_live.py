# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.live import LiveAttachments

A = "315bbe38938f72661913b5ed4c645249fdb913219e9898d43a39ccb85abfe0f4"
B = "56c4723cbd9b4b6b7edd6b9ed83f67948833f935b85829576f54e39d7bb79617"


def live(*ids):
    pairs = [one if isinstance(one, tuple) else (one, None) for one in ids]
    return LiveAttachments([{"container_id": container_id, "ifname": ifname} for container_id, ifname in pairs])


@pytest.mark.parametrize(
    ("listed", "holder", "alive"),
    [
        ([(A, "eth0")], (A, "eth0"), True),
        ([(A, "eth0")], (B, "eth0"), False),
        # exact: another interface of a live container is not alive
        ([(A, "eth0")], (A, "net1"), False),
        ([(A, "eth0"), (A, "net1")], (A, "net1"), True),
        ([A], (A, "net1"), True),
        ([(A, "eth0"), A], (A, "net1"), True),
        # an old entry without interface is alive with any
        ([(A, "eth0")], (A, ""), True),
        ([(B, "eth0")], (A, ""), False),
        # the beginning of an id
        ([A[:12]], (A, "eth0"), True),
        ([A[:13]], (A, "eth0"), True),
        ([A[:13]], (B, "eth0"), False),
        ([(A[:13], "eth0")], (A, "net1"), False),
        # too short to prove anything, and no form to compare with
        ([A[:11]], (A, "eth0"), None),
        # forms of ids
        ([A], ("default-" + B, "eth0"), None),
        ([A, "default-" + A], ("default-" + B, "eth0"), False),
        (["default-" + A], ("k8s.io-" + B, "eth0"), None),
        (["default-" + A], (B, "eth0"), None),
        (["default-" + A[:12]], ("default-" + A, "eth0"), True),
        (["my-ns-" + A], ("my-ns-" + B, "eth0"), False),
        ([A], ("mypod", "eth0"), None),
        ([A], ("x" + B, "eth0"), None),
        ([A], (B[:63], "eth0"), None),
        ([A], (B.upper(), "eth0"), None),
        (["mypod"], ("mypod", "eth0"), True),
        (["mypod"], ("otherpod", "eth0"), None),
        ([("mypod", "eth0")], ("mypod", "net1"), False),
        (["11111111-1111-1111-1111-111111111111"], ("22222222-2222-2222-2222-222222222222", "eth0"), False),
        (["11111111-1111-1111-1111-111111111111"], (A, "eth0"), None),
        ([A], ("22222222-2222-2222-2222-222222222222", "eth0"), None),
        ([A[:32]], (B[:32], "eth0"), False),
        ([A], (B[:32], "eth0"), None),
        # nothing is alive: only plain ids can be judged
        ([], (A, "eth0"), False),
        ([], ("default-" + A, "eth0"), None),
        ([], ("mypod", "eth0"), None),
    ],
)
def test_judgement(listed, holder, alive):
    assert live(*listed).judge(*holder) is alive


def test_a_prefix_that_fits_two_keeps_both():
    other = A[:20] + B[20:]
    judge = live(A[:12]).judge
    assert (judge(A, "eth0"), judge(other, "eth0")) == (True, True)


def test_an_empty_id_is_refused():
    with pytest.raises(NodenetError, match="a container_id is empty"):
        live("")
