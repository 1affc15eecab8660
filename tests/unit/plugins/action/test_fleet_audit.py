# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action as a playbook runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - nodenet.cni.host_local_info:
        conf_dir: "{{ conf_dir }}"
        data_dir: "{{ data_dir }}"
      register: nodenet_ipam
      when: ask
    - nodenet.cni.fleet_audit: "{{ audit }}"
      run_once: true
      register: fleet
    - ansible.builtin.copy:
        content: "{{ fleet | to_json }}"
        dest: "{{ out }}"
      run_once: true
      check_mode: false
"""


@pytest.fixture
def play(tmp_path):
    """Two nodes that hold one address of a shared network, and a third that cannot report."""
    hosts = {}
    for host in ("n1", "n2", "n3"):
        conf_dir, data_dir = tmp_path / host / "net.d", tmp_path / host / "data"
        (data_dir / "lan").mkdir(parents=True)
        conf_dir.mkdir()
        ipam = {"type": "host-local", "ranges": [[{"subnet": "192.0.2.0/29"}]]}
        document = {"cniVersion": "1.0.0", "name": "lan", "plugins": [{"type": "macvlan", "ipam": ipam}]}
        (conf_dir / "10-lan.conflist").write_text(json.dumps(document))
        (data_dir / "lan" / "192.0.2.2").write_bytes(host.encode() * 20 + b"\r\neth0")
        hosts[host] = {"conf_dir": str(conf_dir), "data_dir": str(data_dir)}
    hosts["n3"]["conf_dir"] = str(tmp_path / "n3" / "net.d" / "10-lan.conflist")  # a file
    inventory = {
        "all": {
            "hosts": hosts,
            "vars": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable},
        }
    }
    (tmp_path / "inventory.yml").write_text(json.dumps(inventory))
    (tmp_path / "play.yml").write_text(PLAY)

    def run(audit, *arguments, ask=False):
        out = tmp_path / "out.json"
        out.unlink(missing_ok=True)
        command = [os.path.join(os.path.dirname(sys.executable), "ansible-playbook"), "-i", "inventory.yml", "play.yml"]
        command += ["-e", json.dumps({"audit": audit, "out": str(out), "ask": ask}), *arguments]
        environment = dict(
            os.environ,
            ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".dev"),
            ANSIBLE_LOCAL_TEMP=str(tmp_path / "tmp"),
            ANSIBLE_REMOTE_TEMP=str(tmp_path / "tmp"),
            ANSIBLE_NOCOLOR="1",
        )
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr, json.loads(out.read_text()) if out.exists() else None

    return run


def test_the_hosts_of_the_play_are_compared(play, tmp_path):
    dest = tmp_path / "fleet.json"
    text, fleet = play({"dest": str(dest)}, "--check", ask=True)
    assert fleet is not None, text
    assert fleet["changed"]
    assert not dest.exists()
    text, fleet = play({"dest": str(dest)}, ask=True)
    assert fleet["changed"], text
    assert [one["hosts"] for one in fleet["duplicates"]] == [["n1", "n2"]]
    assert [one["hosts"] for one in fleet["overlaps"]] == [["n1", "n2"]]
    assert not fleet["complete"]
    assert [one["host"] for one in fleet["hosts"] if not one["reported"]] == ["n3"]
    assert "not a directory" in fleet["hosts"][2]["reason"].lower()
    assert sorted(fleet["tables"]) == ["n1", "n2", "n3"]
    document = json.loads(dest.read_text())
    assert document["duplicates"] == fleet["duplicates"]
    assert document["reports"]["n1"]["networks"][0]["name"] == "lan"
    assert os.stat(dest).st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".*.tmp"))


def test_reports_may_be_given(play, tmp_path):
    report = {"report_version": 1, "findings": [], "networks": []}
    dest = tmp_path / "fleet.json"
    audit = {"reports": {"a": report, "b": report}, "hosts": ["a", "b", "c"], "dest": str(dest)}
    fleet = play(audit)[1]
    assert [(one["host"], one["reported"]) for one in fleet["hosts"]] == [("a", True), ("b", True), ("c", False)]
    assert fleet["changed"]
    assert not play(audit)[1]["changed"]


def test_a_directory_for_all_reports_is_made_where_ansible_was_started(play, tmp_path):
    text, fleet = play({"output_dir": "audit/today"}, "--check", ask=True)
    assert fleet["changed"], text
    assert not (tmp_path / "audit").exists()
    text, fleet = play({"output_dir": "audit/today"}, ask=True)
    assert fleet["changed"], text
    names = sorted(path.name for path in (tmp_path / "audit" / "today").iterdir())
    assert [one for one in names if one.endswith(".json")] == ["fleet.json", "n1.json", "n2.json", "n3.json"]
    others = ["addresses.csv", "findings.csv", "fleet.html", "fleet.prom", "pools.csv"]
    assert [one for one in names if not one.endswith(".json")] == others
    report = json.loads((tmp_path / "audit" / "today" / "n1.json").read_text())
    assert report["networks"][0]["name"] == "lan"
    assert json.loads((tmp_path / "audit" / "today" / "fleet.json").read_text())["reports"]["n1"] == report


def test_report_files(play, tmp_path):
    report = {"report_version": 1, "findings": [], "networks": []}
    files = {"html": "page.html", "prometheus": "x.prom", "findings_csv": "f.csv", "addresses_csv": "a.csv"}
    audit = {"reports": {"a": report, "<b>": report}, "output_dir": "out", "output_formats": ["csv"], "files": files}
    text, fleet = play(audit, "--check")
    assert fleet["changed"], text
    assert not (tmp_path / "page.html").exists()
    text, fleet = play(dict(audit, mode="0640"))
    assert fleet["changed"], text
    written = [*(tmp_path / "out").iterdir(), *(tmp_path / name for name in files.values())]
    assert {one.stat().st_mode & 0o777 for one in written} == {0o640}
    text, fleet = play(audit)
    assert fleet["changed"], text
    assert {one.stat().st_mode & 0o777 for one in written if one.name != "x.prom"} == {0o600}
    assert {one.name for one in (tmp_path / "out").iterdir() if one.suffix != ".json"} == {
        "addresses.csv",
        "findings.csv",
        "pools.csv",
    }
    assert (tmp_path / "f.csv").read_text() == "severity,code,hosts,where,text,hint,go\n"
    assert 'nodenet_cni_host_reported{host="<b>"} 1\n' in (tmp_path / "x.prom").read_text()
    page = (tmp_path / "page.html").read_text()
    assert "Nothing wrong found" in page
    assert page.count("<b>") == 0
    assert not play(audit)[1]["changed"]


def test_scopes_of_unknown_networks_are_warned_of(play):
    report = {"report_version": 1, "findings": [], "networks": []}
    text, fleet = play({"reports": {"a": report}, "scopes": {"lna": "shared"}})
    assert "scopes names networks of which no report tells: lna" in " ".join(text.split())


@pytest.mark.parametrize(
    ("audit", "words"),
    [
        ({"threshold": 1.5}, "Cannot compare the nodes: threshold 1.5 is not above 0 and at most 1"),
        (
            {"scopes": {"lan": "global"}},
            "Cannot compare the nodes: scope 'global' of network lan is not shared or node",
        ),
        ({"reports": {}}, "Cannot compare the nodes: there is no host to compare"),
        ({"dest": "/nonexistent/fleet.json"}, "Cannot write the report to /nonexistent/fleet.json: No such directory"),
        ({"output_dir": "inventory.yml/out"}, "Cannot make the directory inventory.yml/out: Not a directory"),
        (
            {"files": {"html": "page.html", "prometheus": "/nonexistent/x"}, "history": "fleet.db"},
            "Cannot write the report to /nonexistent/x: No such directory",
        ),
        ({"history": "fleet.db", "pod_cidrs": {"n1": "nonsense"}}, "nonsense"),
        ({"history": "fleet.db", "plan": {"n1": [{"network": "lan"}]}}, "Cannot compare the nodes: "),
        ({"history": "fleet.db", "fail_on": ["eror"]}, "fail_on takes error, warning, info, never and codes"),
        ({"history": "fleet.db", "history_keep": 0}, "history_keep 0 is not at least 1"),
        (
            {"reports": {"fleet": None}, "output_dir": "out", "history": "fleet.db"},
            "Cannot write the reports of host fleet and of the whole fleet to output_dir: both would be fleet.json",
        ),
        (
            {"reports": {"a_b": None, "a/b": None}, "output_dir": "out"},
            "Cannot write the reports of host a/b and of host a_b to output_dir: both would be a_b.json",
        ),
        ({"mode": 416, "dest": "x"}, "Cannot compare the nodes: mode 416 is not"),
        ({"mode": "640", "dest": "x"}, "Cannot compare the nodes: mode '640' is not"),
        ({"mode": "u=rw", "dest": "x"}, "an octal number in quotes, such as '0640'"),
        ({"files": {"htm": "x"}}, "Unsupported parameters"),
        ({"output_formats": ["pdf"]}, "value of output_formats must be one or more of: html, csv, prometheus"),
        ({"treshold": 0.5}, "Unsupported parameters"),
    ],
)
def test_bad_input(play, audit, words, tmp_path):
    before = set(os.listdir(tmp_path))
    text, fleet = play(audit)
    assert words in " ".join(text.split())
    assert fleet is None
    assert set(os.listdir(tmp_path)) - {"tmp"} == before
