# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a boot takes away, by files of tmpfiles.d on disk."""

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import ipam_report, tmpfiles

PODMAN = "# podman\nx /tmp/podman-run-*\nD! /var/lib/containers/storage/tmp 0700 root root\nD! /var/lib/cni/networks\n"


@pytest.fixture
def emptied(tmp_path):
    """Call emptied(path, etc={...}, lib={...}): the name of the file that empties it, of files by name."""

    def ask(path, **files):
        places = [tmp_path / "etc", tmp_path / "lib"]
        for place in places:
            place.mkdir()
            for name, text in files.get(place.name, {}).items():
                (place / name).write_text(text)
        found = tmpfiles.emptied_at_boot(path, [str(place) for place in places])
        return found and found[len(str(tmp_path)) + 1 :]

    return ask


@pytest.mark.parametrize(
    ("path", "line", "wanted"),
    [
        ("/var/lib/cni/networks", "D! /var/lib/cni/networks", True),
        ("/var/lib/cni/networks/", "D\t/var/lib/cni/networks\t0755 root root", True),
        ("/var/lib/cni/networks/lan", "D! /var/lib/cni/networks", True),
        ("/var/lib/cni/networks", 'R! "/var/lib/cni/*"', True),
        ("/var/lib/cni/networks", "R /var/lib/cni", True),
        ("/run/cni", "R! /run/cn[a-i]", True),
        ("/var/lib/cni/networks", "d /var/lib/cni/networks", False),
        ("/var/lib/cni/networks", "D! /var/lib/cni/networks/lan", False),
        ("/var/lib/cni/networks", "D! /var/lib/cni/net", False),
        ("/var/lib/cni/networks", "#D! /var/lib/cni/networks", False),
        ("/var/lib/cni/networks", "r! /var/lib/cni/networks", False),
        ("/var/lib/cni/networks", "D!", False),
    ],
)
def test_lines(emptied, path, line, wanted):
    assert emptied(path, lib={"a.conf": f"\n{line}\n"}) == ("lib/a.conf" if wanted else None)


def test_what_podman_brings(emptied):
    assert emptied("/var/lib/cni/networks", lib={"podman.conf": PODMAN}) == "lib/podman.conf"


@pytest.mark.parametrize(
    "etc",
    [
        {"podman.conf": ""},
        {"podman.conf": PODMAN.replace("D! /var/lib/cni/networks", "")},
        {"cni.conf": "d /var/lib/cni/networks 0755 root root\n"},
    ],
)
def test_what_an_administrator_does_against_it(emptied, etc):
    assert emptied("/var/lib/cni/networks", etc=etc, lib={"podman.conf": PODMAN}) is None


def test_what_comes_too_late_or_is_no_such_file(emptied):
    etc = {"z.conf": "d /var/lib/cni/networks\n", "podman.txt": ""}
    assert emptied("/var/lib/cni/networks", etc=etc, lib={"podman.conf": PODMAN}) == "lib/podman.conf"


def test_what_cannot_be_read_is_passed_over(tmp_path):
    (tmp_path / "a.conf").mkdir()
    (tmp_path / "b.conf").symlink_to("/dev/null")
    (tmp_path / "c.conf").symlink_to("nowhere")
    (tmp_path / "d.conf").write_bytes(b"\xff\xfe\nD! /x\n")
    assert tmpfiles.emptied_at_boot("/y", [str(tmp_path), str(tmp_path / "none")]) is None
    assert tmpfiles.emptied_at_boot("/x", [str(tmp_path)]) == str(tmp_path / "d.conf")


@pytest.mark.parametrize(("owner", "told"), [("static.web", True), ("a" * 64, False)])
def test_a_report_tells_of_static_reservations_that_will_be_gone(tmp_path, monkeypatch, owner, told):
    data_dir = tmp_path / "data"
    (data_dir / "lan").mkdir(parents=True)
    (data_dir / "lan" / "192.0.2.2").write_text(owner + "\r\neth0")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "podman.conf").write_text(f"D! {data_dir}\n")
    monkeypatch.setattr(tmpfiles, "PLACES", (str(tmp_path / "d"),))
    monkeypatch.setattr(tmpfiles, "TEMPORARY", ("/run/",))
    found = ipam_report.report(str(tmp_path), "/none", data_dir=str(data_dir), names=["lan"])["findings"]
    texts = [one["text"] for one in found if one["code"] == "IPAM042"]
    wanted = f"1 static reservation(s) will be gone after the next boot: {tmp_path}/d/podman.conf empties {data_dir}"
    assert texts == ([wanted] if told else [])
    monkeypatch.setattr(tmpfiles, "TEMPORARY", (f"{tmp_path}/",))
    assert tmpfiles.forgotten([{"data_dir": str(data_dir), "reservations": [{"static": True}]}]) == []
