# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of one directory."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import parse_address
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.config import load_ipam_config
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.foreign import foreign_contents
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.live import LiveAttachments
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.report import Report
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.snapshot import Snapshot
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.store import Store

NOW = 1_800_000_000.0
A, B, C = "a" * 64, "b" * 64, "c" * 64


def sets_of(*ranges):
    ipam = {"type": "host-local", "ranges": list(ranges)}
    return load_ipam_config({"name": "lan", "cniVersion": "1.0.0", "ipam": ipam}).sets


def snapshot_of(files, directories=(), unreadable=()):
    """files: name -> content or (content, age)."""
    read = {}
    for name, value in files.items():
        content, age = value if isinstance(value, tuple) else (value, 1000)
        read[name] = (content, NOW - age)
    names = set(read) | set(directories) | set(unreadable) | {"lock"}
    return Snapshot(names, read, set(directories), dict.fromkeys(unreadable, OSError()), NOW)


def report_of(files, *ranges, last=(), live=None, **more):
    return Report(snapshot_of(files, **more), sets_of(*ranges) if ranges else [], last, live, "/d/lan")


def kinds(report):
    return {fact["kind"]: fact for fact in report.facts}


SLASH29 = [{"subnet": "192.0.2.0/29"}]


def test_shape():
    report = report_of({"192.0.2.3": b"static.vip\r\neth0", "192.0.2.2": (A.encode() + b"\r\nnet1", 5)}, SLASH29)
    assert report.reservations == [
        {
            "address": "192.0.2.2",
            "owner": None,
            "container_id": A,
            "ifname": "net1",
            "static": False,
            "range_set": 0,
            "age_s": 5,
        },
        {
            "address": "192.0.2.3",
            "owner": "vip",
            "container_id": "static.vip",
            "ifname": "eth0",
            "static": True,
            "range_set": 0,
            "age_s": 1000,
        },
    ]
    assert report.range_sets == [
        {
            "ranges": ["192.0.2.1-192.0.2.6"],
            "gateways": ["192.0.2.1"],
            "usable": 5,
            "reserved": 2,
            "static": 1,
            "leaked": None,
            "free": 3,
            "last_reserved": None,
        }
    ]
    assert report.facts == []


def test_order_is_by_address_v4_first():
    names = ["2001:db8::1", "10.0.0.10", "10.0.0.9", "2001:db8::", "9.255.255.255", "::1"]
    report = report_of(dict.fromkeys(names, b"x\r\neth0"))
    expected = ["9.255.255.255", "10.0.0.9", "10.0.0.10", "::1", "2001:db8::", "2001:db8::1"]
    assert [one["address"] for one in report.reservations] == expected


def test_an_age_in_the_future_is_none():
    assert report_of({"192.0.2.3": (b"x\r\neth0", -500)}).reservations[0]["age_s"] == 0


def test_sets_count_for_themselves():
    ranges = ([{"subnet": "192.0.2.0/29"}, {"subnet": "198.51.100.0/29"}], [{"subnet": "2001:db8::/126"}])
    files = dict.fromkeys(["192.0.2.2", "198.51.100.2", "198.51.100.6", "2001:db8::2", "203.0.113.1"], b"x\r\neth0")
    report = report_of(files, *ranges)
    assert [(one["usable"], one["reserved"], one["free"]) for one in report.range_sets] == [(10, 3, 7), (2, 1, 1)]
    assert [one["range_set"] for one in report.reservations] == [0, 0, 0, None, 1]
    assert kinds(report)["ipam-outside-ranges"]["names"] == "203.0.113.1"


def test_a_reserved_gateway_takes_no_usable_address():
    report = report_of({"192.0.2.1": b"x\r\neth0", "192.0.2.2": b"y\r\neth0"}, SLASH29)
    assert (report.range_sets[0]["reserved"], report.range_sets[0]["free"]) == (2, 4)
    assert kinds(report)["ipam-gateway-reserved"]["names"] == "192.0.2.1"


def test_what_blocks_an_address_without_being_a_reservation():
    report = report_of({}, SLASH29, directories=["192.0.2.3"], unreadable=["192.0.2.4"])
    assert (report.range_sets[0]["reserved"], report.range_sets[0]["free"]) == (0, 3)
    assert report.foreign == ["192.0.2.3/"]
    assert kinds(report)["ipam-unreadable-file"]["names"] == "192.0.2.4"


def test_odd_spelling_and_held_twice():
    report = report_of({"2001:db8::a": b"x\r\neth0", "2001:DB8:0::A": b"y\r\neth0"}, [{"subnet": "2001:db8::/64"}])
    assert [one["address"] for one in report.reservations] == ["2001:db8::a", "2001:db8::a"]
    found = kinds(report)
    assert found["ipam-odd-name"]["names"] == "2001:DB8:0::A"
    assert found["ipam-held-twice"] == {
        "kind": "ipam-held-twice",
        "where": "/d/lan",
        "count": 1,
        "names": "2001:db8::a",
    }
    assert report.range_sets[0]["reserved"] == 2
    assert report.range_sets[0]["free"] == report.range_sets[0]["usable"] - 1


@pytest.mark.parametrize(
    ("content", "container_id", "ifname", "kind"),
    [
        (b"abc\r\neth0", "abc", "eth0", None),
        (b"abc", "abc", "", "ipam-legacy-entry"),
        (b"", "", "", "ipam-empty-file"),
        (b"abc\neth0", "abc", "eth0", "ipam-bad-content"),
        (b"abc eth0", "abc", "eth0", "ipam-bad-content"),
        (b"abc \r\neth0", "abc", "eth0", "ipam-bad-content"),
        (b"abc\r\neth@0", "abc", "eth@0", None),
        (b"a\rb\nc", "a", "b\nc", "ipam-bad-content"),
    ],
)
def test_contents(content, container_id, ifname, kind):
    report = report_of({"192.0.2.3": content})
    (one,) = report.reservations
    assert (one["container_id"], one["ifname"]) == (container_id, ifname)
    assert [fact["kind"] for fact in report.facts] == ([kind] if kind else [])


def test_usage_findings():
    def found(count, live=None):
        files = {f"192.0.2.{n}": f"{n:064x}\r\neth0".encode() for n in range(2, 2 + count)}
        return set(kinds(report_of(files, SLASH29, live=live)))

    listed = [{"container_id": f"{n:064x}"} for n in range(2, 9)]
    assert found(3) == set()
    assert found(4) == {"ipam-pool-high"}
    assert found(5) == {"ipam-pool-high", "ipam-pool-full"}
    assert found(5, LiveAttachments(listed)) == {"ipam-pool-high", "ipam-pool-full"}
    assert found(4, LiveAttachments(listed[:2])) == {"ipam-pool-leaked", "ipam-leaked"}


@pytest.mark.parametrize(
    ("text", "odd"), [("192.0.2.3", False), ("", False), ("10.0.0.1", True), ("192.0.2.3\n", True), ("x", True)]
)
def test_rotation(text, odd):
    report = report_of({}, SLASH29, last=[text])
    assert report.range_sets[0]["last_reserved"] == (text or None)
    assert ("ipam-rotation-odd" in kinds(report)) is odd


def test_live():
    files = {
        "192.0.2.2": A.encode() + b"\r\neth0",
        "192.0.2.3": B.encode() + b"\r\neth0",
        "192.0.2.4": b"static.x\r\neth0",
        "192.0.2.5": (C.encode() + b"\r\neth0", 59),
        "192.0.2.6": b"default-" + C.encode() + b"\r\neth0",
        "192.0.2.7": b"",
    }
    live = LiveAttachments([{"container_id": A, "ifname": "eth0"}])
    report = report_of(files, [{"subnet": "192.0.2.0/24"}], live=live)
    assert {one["address"]: one["alive"] for one in report.reservations} == {
        "192.0.2.2": True,
        "192.0.2.3": False,
        "192.0.2.4": None,
        "192.0.2.5": None,  # may be younger than the list
        "192.0.2.6": None,
        "192.0.2.7": None,
    }
    assert report.range_sets[0]["leaked"] == 1
    assert kinds(report)["ipam-leaked"]["names"] == "192.0.2.3"
    assert kinds(report)["ipam-unknown-owner"]["names"] == "192.0.2.6"


def test_many_names_stay_readable():
    report = report_of({f"192.0.2.{n}": b"" for n in range(2, 200)})
    fact = kinds(report)["ipam-empty-file"]
    assert fact["count"] == 198
    assert fact["names"].endswith(" and 190 more")


def test_foreign_copies_are_what_go_would_delete(tmp_path):
    directory = tmp_path / "lan"
    (directory / "old").mkdir(parents=True)
    for name, content in (
        ("192.0.2.2", b"x\r\neth0"),
        ("192.0.2.3", b""),
        ("192.0.2.2.bak", b"x\r\neth0\n"),
        ("192.0.2.2.", b"x\r\neth0"),
        ("cafe", b"x\r\neth0"),
        ("2001:DB8::2", b"x\r\neth0"),
        ("old/note", b"x\r\neth0"),
        ("empty", b""),
        ("README", b"x"),
    ):
        (directory / name).write_bytes(content)
    with Store(str(tmp_path), "lan", create=False) as store:
        snapshot = store.snapshot()
        report = Report(snapshot, [], where="w")
        report.add_foreign_copies(snapshot, foreign_contents(store))
    assert report.foreign == ["192.0.2.2.", "192.0.2.2.bak", "README", "cafe", "empty", "old/"]
    fact = kinds(report)["ipam-foreign-copy"]
    assert set(fact["names"].split(", ")) == {"192.0.2.2.", "192.0.2.2.bak", "cafe", "old/note"}
    assert fact["count"] == 4


def test_names_that_are_no_text_can_be_shown(tmp_path):
    directory = tmp_path / "lan"
    directory.mkdir()
    (directory / "192.0.2.2").write_bytes(b"x\r\neth0")
    for name in (b"\xff\xfe", b"gr\xc3\xbcn", b"old\xff"):
        with open(os.path.join(os.fsencode(str(directory)), name), "wb") as stream:
            stream.write(b"x\r\neth0")
    os.mkdir(os.path.join(os.fsencode(str(directory)), b"d\x80"))
    with Store(str(tmp_path), "lan", create=False) as store:
        snapshot = store.snapshot()
        report = Report(snapshot, [], where="w")
        report.add_foreign_copies(snapshot, foreign_contents(store))
    assert sorted(report.foreign) == ["\\xff\\xfe", "d\\x80/", "gr\u00fcn", "old\\xff"]
    assert set(kinds(report)["ipam-foreign-copy"]["names"].split(", ")) == {"\\xff\\xfe", "gr\u00fcn", "old\\xff"}
    for fact in report.facts:
        str(fact).encode()  # what is no text cannot be sent


NAMES = st.one_of(
    st.from_regex(r"[0-9a-fA-F.:]{1,20}", fullmatch=True),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(str),
    st.ip_addresses(v=6).map(lambda one: one.exploded),
    st.integers(0, 1 << 40).map(lambda n: "::%x:%x:%x" % (n >> 32, n >> 16 & 0xFFFF, n & 0xFFFF)),
    st.ip_addresses(v=4).map("::ffff:{}".format),
    st.ip_addresses(v=4).map("::{}".format),
    st.ip_addresses(v=4).map("64:ff9b::{}".format),
)


@given(st.sets(NAMES, max_size=20))
def test_names_are_read_as_the_store_reads_them(names):
    files = {name: (b"x\r\neth0", NOW) for name in names}
    snapshot = Snapshot(set(names), files, set(), {}, NOW)
    report = Report(snapshot, [])
    assert [one["address"] for one in report.reservations] == [str(one.address) for one in snapshot.reservations]
    assert report.foreign == sorted(names - {one.name for one in snapshot.reservations})
    odd = [name for name in names if name not in report.foreign and str(parse_address(name)) != name]
    assert sum(fact["count"] for fact in report.facts if fact["kind"] == "ipam-odd-name") == len(odd)


@given(st.binary(max_size=20) | st.text("ab \r\n\t\u00a0.", max_size=8).map(str.encode))
def test_contents_are_read_as_the_store_reads_them(content):
    content = content.strip()
    snapshot = Snapshot({"192.0.2.2"}, {"192.0.2.2": (content, NOW)}, set(), {}, NOW)
    (one,) = snapshot.reservations
    (shown,) = Report(snapshot, []).reservations
    assert (shown["container_id"], shown["ifname"]) == (one.container_id, one.ifname)


def test_a_big_directory_is_reported_about_as_fast_as_its_files_are_read(tmp_path):
    directory = tmp_path / "lan"
    directory.mkdir()
    for number in range(5000):
        (directory / ("10.1.%d.%d" % (number >> 8, number & 255))).write_bytes(b"%064x\r\neth0" % number)
    sets = sets_of([{"subnet": "10.1.0.0/16"}])

    def plain():
        for name in os.listdir(str(directory)):
            with open(str(directory / name), "rb") as stream:
                stream.read()

    def ours():
        with Store(str(tmp_path), "lan", create=False) as store, store.lock(5):
            Report(store.snapshot(), sets)

    def best(function):
        times = []
        for _round in range(5):
            started = time.process_time()
            function()
            times.append(time.process_time() - started)
        return min(times)

    # measured: 1.3 times; the target is 2, the rest is for a busy machine
    assert best(ours) < 4 * best(plain)
