# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reported faults (tests/cases) as far as the plugin and its library answer for them.

Each case names the right outcome in ``check``. Every key of every ``check`` is either tested here or stands in LEFT
with the tests that assert it, which are looked up; a new case or key fails until it has one of the two.
"""

from __future__ import annotations

import ast
import copy
import importlib
import json
import os
import time
from pathlib import Path

import pytest
from plugin_drivers import PACKAGE

CASES = Path(__file__).resolve().parents[1] / "cases"
OLD_S = 100000
PATTERNS = ("netconf-*.json", "datadir-*.json", "audit-*.json")

UNIT = "tests/unit/plugins/"
RECLAIM = "tests/conformance/test_reclaim.py::"
INFO = UNIT + "modules/test_host_local_info.py::TestCases::"
RESERVATION = UNIT + "modules/test_host_local_reservation.py::TestCases::"
CHECKED = UNIT + "module_utils/node/test_confcheck.py::"
FLEET = UNIT + "plugin_utils/test_fleet.py::TestCases::"
GC_CASE = RECLAIM + "test_case"

#: case -> key of its check -> the tests elsewhere that assert it. Each of them names the case and the key.
LEFT = {
    "netconf-duplicate-json-keys": {"validator": [CHECKED + "test_case_duplicate_keys"]},
    "netconf-exhausted-vs-leaked": {
        "leaked": [RECLAIM + "test_case_exhausted_or_leaked", INFO + "test_exhausted_vs_leaked"]
    },
    "netconf-gateway-outside-subnet": {"warn": [CHECKED + "test_case_gateway_outside_the_subnet"]},
    "netconf-host-bits-set": {"hint": [CHECKED + "test_cases_of_addresses"]},
    "netconf-requested-ip-same-owner": {"module_changed": [RESERVATION + "test_same_owner_again"]},
    "netconf-second-static-same-owner": {"module_files": [RESERVATION + "test_same_owner_again"]},
    "datadir-custom-datadir": {"leaked": [RECLAIM + "test_case_custom_datadir", INFO + "test_custom_datadir"]},
    "datadir-empty-ip-files": {"gc_removed": [GC_CASE], "kept": [GC_CASE], "changed": [GC_CASE]},
    "datadir-foreign-files": {"gc_removed": [GC_CASE]},
    "datadir-gc-race-young-entry": {"gc_removed": [GC_CASE], "kept": [GC_CASE]},
    "datadir-legacy-id-only": {
        "gc_removed": [GC_CASE, INFO + "test_legacy_id_only"],
        "kept": [GC_CASE, INFO + "test_legacy_id_only"],
    },
    "datadir-live-query-failed": {
        "failed": [RECLAIM + "test_case_live_query_failed"],
        "gc_removed": [RECLAIM + "test_case_live_query_failed"],
    },
    "datadir-orphan-network": {"orphan_networks": [INFO + "test_orphan_network", RECLAIM + "test_case_orphan_network"]},
    "datadir-reserve-static-idempotent": {"changed": [RESERVATION + "test_reserve_static_idempotent"]},
    "datadir-short-id-prefix": {"gc_removed": [GC_CASE, INFO + "test_short_id_prefix"]},
    "datadir-two-runtimes-one-network": {
        "gc_removed": [
            RECLAIM + "test_case_two_runtimes_one_network",
            RECLAIM + "test_case_two_runtimes_one_network_seen_by_containerd",
            INFO + "test_two_runtimes_one_network",
        ],
        "with_cri_only": [RECLAIM + "test_case_two_runtimes_one_network", INFO + "test_two_runtimes_one_network"],
    },
    "audit-exhaustion": {key: [FLEET + "test_exhaustion"] for key in ("usable", "reserved", "n1", "n2")},
    "audit-node-local-not-duplicate": {"duplicates": [FLEET + "test_duplicates"]},
    "audit-results-cache": {
        key: [UNIT + "modules/test_host_local_info.py::test_case_of_the_result_cache"]
        for key in ("empty", "stale", "ok")
    },
    "audit-same-podcidr": {
        "duplicates": [FLEET + "test_same_podcidr"],
        "overlapping_ranges": [FLEET + "test_same_podcidr"],
    },
    "audit-stale-podcidr": {"drift": [FLEET + "test_stale_podcidr"], "duplicates": [FLEET + "test_duplicates"]},
    "audit-static-plan": {"findings": [FLEET + "test_static_plan"]},
    "audit-v6-spelling": {"duplicates": [FLEET + "test_duplicates"]},
}
#: Keys that name another outcome that would be right as well; ours is the first one.
OTHER_OUTCOMES = {"datadir-short-id-prefix": {"alternatively"}}


def load(name):
    return json.loads((CASES / (name + ".json")).read_text("utf-8"))


def names():
    return sorted(path.stem for pattern in PATTERNS for path in CASES.glob(pattern))


def module(name):
    return importlib.import_module(PACKAGE + ".plugins.module_utils." + name)


class Case:
    """One case below a private data directory, and the calls it asks for."""

    def __init__(self, name, root, driver):
        self.document = load(name)
        self.input = self.document["input"]
        self.check = self.document["check"]
        self.base = str(root)
        self.driver = driver
        for where, entry in self.input.get("data_dir", {}).items():
            path = os.path.join(self.base, where)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(entry["content"].encode())
            then = time.time() - entry.get("age_s", OLD_S)
            os.utime(path, (then, then))

    @property
    def network(self):
        return self.input["network"] if "network" in self.input else json.loads(self.stdin())["name"]

    def stdin(self):
        if "raw_stdin" in self.input:
            return self.input["raw_stdin"].replace("$DIR", self.base).encode()
        if "stdin" in self.input:
            return json.dumps(self.input["stdin"]).replace("$DIR", self.base).encode()
        ranges = [[self.input["range"]]] if "range" in self.input else [[{"subnet": "192.0.2.0/24"}]]
        config = {
            "cniVersion": "1.1.0",
            "name": self.input["network"],
            "type": "bridge",
            "ipam": {"type": "host-local", "dataDir": self.base, "ranges": ranges},
        }
        if "valid_attachments" in self.input:
            config["cni.dev/valid-attachments"] = self.input["valid_attachments"]
        return json.dumps(config).encode()

    def env(self, **changes):
        # A case names the variables that matter to it; a runtime always sets these, too.
        env = {"CNI_NETNS": "/var/run/netns/no-such-ns", "CNI_PATH": "/opt/cni/bin"}
        env.update({key: value for key, value in self.input.get("env", {}).items() if value})
        return dict(env, **changes)

    def call(self, **changes):
        return self.driver.call(self.env(**changes), self.stdin(), self.base)

    def files(self):
        """Return all files below the data directory but lock and rotation, the network's own without its name."""
        found = []
        for folder, _folders, files in os.walk(self.base):
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), self.base)
                if name != "lock" and not name.startswith("last_reserved_ip."):
                    found.append(path)
        return sorted(found)

    def own_files(self):
        prefix = self.network + "/"
        return [path[len(prefix) :] for path in self.files() if path.startswith(prefix)]

    def tree(self):
        return {path: Path(self.base, path).read_bytes() for path in self.files()}

    def snapshot(self):
        store = module("host_local.store")
        with store.Store(self.base, self.network, create=False) as opened, opened.lock(5):
            return opened.snapshot()


@pytest.fixture
def case(request, tmp_path, library):
    return Case(request.param, tmp_path, library)


def cases(*chosen):
    return pytest.mark.parametrize("case", chosen, indirect=True)


def with_key(*keys):
    """Return the cases whose check has one of these keys, and whose input is a call of the plugin."""
    return [name for name in names() if set(keys) & set(load(name)["check"]) - set(LEFT.get(name, {}))]


TESTED = {}


def covers(*keys):
    """Note which keys of a check a test covers, and run it for every case that has one of them."""
    chosen = with_key(*keys)
    for name in chosen:
        TESTED.setdefault(name, set()).update(keys)
    return cases(*chosen)


def addresses_of(outcome):
    document = json.loads(outcome.stdout)
    return [one["address"] for one in document["ips"]]


@covers("error", "error_contains", "plugin_error")
def test_is_refused_and_changes_nothing(case):
    before = case.tree()
    begin = time.monotonic()
    outcome = case.call()
    seconds = time.monotonic() - begin
    assert outcome.rc == 1
    error = json.loads(outcome.stdout)
    assert error["code"]
    assert case.check.get("error_contains", "") in error["msg"]
    assert case.tree() == before
    assert seconds < case.check.get("max_seconds", 2)


@covers("max_seconds")
def test_full_range_leaves_the_rotation(case):
    rotation = Path(case.base, case.network, "last_reserved_ip.0")
    before = rotation.read_bytes() if rotation.exists() else None
    assert case.call().rc == 1
    assert (rotation.read_bytes() if rotation.exists() else None) == before


@covers("files_left")
def test_leaves_exactly_these_files(case):
    case.call()
    wanted = case.check["files_left"]
    assert case.files() == sorted(
        path if "/" in path else "%s/%s" % (case.input["stdin"]["name"], path) for path in wanted
    )


@cases("netconf-nameless-network")
@pytest.mark.parametrize("bad", ["", "..", "a/b", ".", "-x", "other/../other"])
def test_bad_network_name_touches_nothing(case, bad):
    before = case.tree()
    config = dict(json.loads(case.stdin()), name=bad)
    outcome = case.driver.call(case.env(), json.dumps(config).encode(), case.base)
    assert outcome.rc == 1
    assert json.loads(outcome.stdout)["code"] == 7
    assert case.tree() == before


@covers("plugin_ip")
def test_gets_this_address(case):
    outcome = case.call()
    assert outcome.rc == 0, outcome.stdout
    assert addresses_of(outcome) == [case.check["plugin_ip"]]
    assert case.check["plugin_ip"].split("/")[0] in case.own_files()


@covers("plugin_files")
def test_both_addresses_are_held_until_del(case):
    assert case.call().rc == 0
    assert case.own_files() == case.check["plugin_files"]
    assert case.call(CNI_COMMAND="DEL").rc == 0
    assert case.own_files() == []


@covers("ips")
def test_gets_these_addresses(case):
    outcome = case.call()
    assert outcome.rc == 0, outcome.stdout
    assert addresses_of(outcome) == case.check["ips"]


@covers("names_field")
def test_error_names_the_field(case):
    config = module("host_local.config")
    errors = module("cni.errors")
    with pytest.raises(errors.ConfigError) as caught:
        config.load_ipam_config(case.stdin())
    assert case.check["names_field"] in caught.value.path
    assert case.input["stdin"]["ipam"][case.check["names_field"]] in caught.value.msg


@cases("netconf-duplicate-json-keys")
def test_repeated_key_is_seen(case):
    gojson = module("cni.gojson")
    assert any("ranges" in path for path in gojson.repeated_keys(gojson.parse(case.stdin())))


@covers("usable")
def test_capacity(case):
    config = module("host_local.config").load_ipam_config(case.stdin())
    assert config.sets[0].usable() == case.check["usable"]


@covers("release_module_frees")
def test_del_needs_no_valid_range(case):
    outcome = case.call()
    assert (outcome.rc, outcome.stdout) == (0, "")
    assert not set(case.check["release_module_frees"]) & set(case.own_files())


@covers("results")
def test_steps(case):
    results = []
    for step in case.input["steps"]:
        command, container_id = step.split()
        outcome = case.call(CNI_COMMAND=command, CNI_CONTAINERID=container_id, CNI_IFNAME="eth0")
        if outcome.rc:
            results.append("error")
        else:
            results.append(addresses_of(outcome)[0].split("/")[0] if command == "ADD" else "ok")
    assert results == case.check["results"]


@covers("rows")
def test_rows(case):
    found = {one.name: [one.container_id, one.ifname] for one in case.snapshot().reservations}
    assert found == case.check["rows"]


@covers("empty")
def test_empty_files_are_told_apart(case):
    assert [one.name for one in case.snapshot().reservations if one.empty] == case.check["empty"]


@covers("legacy")
def test_files_of_old_releases(case):
    found = [one for one in case.snapshot().reservations if not one.ifname]
    assert [one.name for one in found] == case.check["legacy"]
    assert all(one.container_id == one.container_id.strip() for one in found)
    # The trailing newline is not part of the id: a DEL of that container, whatever its interface, finds the file.
    assert case.driver.call(
        case.env(CNI_COMMAND="DEL", CNI_CONTAINERID=found[-1].container_id, CNI_IFNAME="net7"), case.stdin()
    ).rc == 0  # fmt: skip
    assert found[-1].name not in case.own_files()
    assert found[0].name in case.own_files()


@covers("reservations", "foreign")
def test_foreign_files(case):
    from ansible_collections.nodenet.cni.plugins.module_utils.host_local.report import Report

    snapshot = case.snapshot()
    assert [one.name for one in snapshot.reservations] == case.check["reservations"]
    assert Report(snapshot, []).foreign == case.check["foreign"]
    owner = snapshot.reservations[0]
    before = case.own_files()
    outcome = case.call(CNI_COMMAND="DEL", CNI_CONTAINERID=owner.container_id, CNI_IFNAME=owner.ifname)
    assert outcome.rc == 0
    assert case.own_files() == [name for name in before if name != owner.name]


@covers("gc_removed", "kept", "must_exist")
def test_gc(case):
    before = case.own_files()
    outcome = case.call()
    assert (outcome.rc, outcome.stdout) == (0, "")
    assert sorted(set(before) - set(case.own_files())) == case.check["gc_removed"]
    assert set(case.check.get("kept", [])) <= set(case.own_files())
    for path in case.check.get("must_exist", []):
        assert os.path.exists(os.path.join(case.base, path))


@cases("datadir-cni-gc-empty-attachments")
@pytest.mark.parametrize("command", ["GC", "STATUS"])
@pytest.mark.parametrize("version", ["1.0.0", "0.4.0"])
def test_gc_and_status_need_1_1_0(case, command, version):
    before = case.tree()
    config = dict(copy.deepcopy(case.input["stdin"]), cniVersion=version)
    config["ipam"]["dataDir"] = case.base
    outcome = case.driver.call(case.env(CNI_COMMAND=command), json.dumps(config).encode())
    assert outcome.rc == 1
    assert json.loads(outcome.stdout)["msg"] == "config version does not allow " + command
    assert case.tree() == before


@cases("datadir-cni-gc-empty-attachments")
def test_gc_without_the_list_removes_nothing_and_says_so(case):
    before = case.tree()
    config = {key: value for key, value in json.loads(case.stdin()).items() if not key.startswith("cni.dev/")}
    outcome = case.driver.call(case.env(), json.dumps(config).encode())
    assert (outcome.rc, outcome.stdout) == (0, "")
    assert outcome.stderr.count("\n") == 1
    assert case.tree() == before


def source_of(test):
    """The text of a test, its decorators included; test is ``file::name`` or ``file::class::name``."""
    path, *parts = test.split("::")
    text = (CASES.parents[1] / path).read_text("utf-8")
    found = ast.parse(text)
    for part in parts:
        (found,) = [one for one in found.body if getattr(one, "name", "") == part]
    first = min([found.lineno, *(one.lineno for one in found.decorator_list)])
    return "\n".join(text.splitlines()[first - 1 : found.end_lineno])


def test_every_check_has_its_place():
    assert len(names()) == 43
    for name in names():
        keys = set(load(name)["check"])
        left = set(LEFT.get(name, {})) | OTHER_OUTCOMES.get(name, set())
        assert left <= keys, name
        assert not left & TESTED.get(name, set()), name
        assert keys <= left | TESTED.get(name, set()), "%s: nothing tests %s" % (name, keys - left)
    assert set(LEFT) | set(OTHER_OUTCOMES) <= set(names())


@pytest.mark.parametrize("name", sorted(LEFT))
def test_what_is_left_is_tested_where_it_says(name):
    for key, tests in LEFT[name].items():
        assert tests
        for test in tests:
            source = source_of(test)
            assert '"%s"' % name in source, "%s says nothing of %s" % (test, name)
            assert '"%s"' % key in source, "%s does not look at %s" % (test, key)
            assert "assert " in source
