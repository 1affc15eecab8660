# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every recorded call of the Go Multus, against ours in this process: equal, or equal to the decided outcome."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

import multus_vectors as vectors
import pytest
import reporting
from multus_scenario import require_namespaces

VECTORS = 117
STEPS = 295

# What each decided difference covers. The numbers are those of docs/compatibility.md.
DIFFERENCES = {
    "M1": {
        "netns-own": (0,),
        "panic-annotations": (0, 1),
        "panic-cache": (0, 1),
        "status-clusternetwork-file-name-panics": (0, 1),
    },
    "M2": {"isolation-not-for-defnet": (0,)},
    "M3": {"del-cache-corrupt": (1,), "result-cache-corrupt": (1, 2, 3)},
    "M4": {
        "default-route-first-fails": (0,),
        "default-route-no-interface": (0,),
        "default-route-odd": (0, 2),
        "default-route-unreachable": (0,),
        "status-forbidden": (0,),
        "status-pod-vanished": (0,),
        "status-pod-vanished-on-put": (0,),
        "status-pod-vanished-second-get": (0,),
    },
    "M5": {"add-netns-bad": (0, 1), "ifname-exists": (0,), "nad-bad-config": (5,), "netconf-errors": (8,)},
    "M6": {
        "default-route-defnet": (0,),
        "default-route-empty": (0,),
        "default-route-odd": (4,),
        "default-route-v4": (0,),
        "default-route-v4-free": (0,),
        "default-route-v6": (0,),
        "gateway-nil-status": (0,),
        "status-annotation-full": (0,),
    },
    "M7": {"request-portmap-bandwidth": (0, 1)},
    "M8": {"nad-api-retry": (1,), "pod-api-slow": (1,)},
    "M9": {
        "del-errors-collected": (1, 2),
        "pod-api-down": (3,),
        "pod-api-forbidden": (3,),
        "pod-missing-add-031": (1,),
        "pod-missing-del-nocache": (0,),
        "pod-no-name": (1,),
        "pod-uid-mismatch": (3,),
    },
    "M10": {"device-duplicate-defaultnetworks": (0,)},
    "M11": {
        "add-delegate-version-differs": (0,),
        "conflist-member-errors": (2,),
        "conflist-mixed-result-versions": (0,),
        "json-number-precision": (0,),
        "rollback-second-delegate": (0,),
    },
    "M12": {"gc": (2,)},
    "M13": {"runtimeconfig-passthrough": (0, 1)},
    "M14": {"status-system-pod-name": (0, 1), "unknown-status-fields": (0,)},
    "M15": {"log-options-ignored": (0,)},
}

# Steps that are run through the executable only, and why.
ONLY_THERE = {"version-and-frame#12": "the option --version is for the executable, not for a call in process"}
# Where a library words the rest of a message, ours; all other texts are equal to the last character.
ENDINGS = {
    "kubeconfig-bad#2": "yaml: line 1: expected the node content, but found",
    "kubeconfig-https-unknown-ca#0": "x509: unable to get local issuer certificate",
    "nad-bad-config#0": "invalid character 'n'",
    "nad-bad-config#6": "json: cannot unmarshal object into Go struct field NetConfList.plugins of type "
    "[]types.PluginConf",
    "netconf-errors#5": "json: cannot unmarshal string into Go struct field NetConf.delegates[0] of type "
    "map[string]interface {}",
    "plugin-failure-forms#2": "invalid character 'n'",
    "pod-api-down#1": "dial tcp @APIHOST@: connect: connection refused "
    "(tried N times within the 2 s of apiTimeoutSeconds)",
    "version-and-frame#10": "invalid character 'n'",
}
# Steps that are not run through the executable, which waits as long as on a node.
TOO_LONG = {"readiness-never"}

# kubeconfigs as YAML: where PyYAML is missing, only the texts about it can be seen
NEEDS_YAML = ("kubeconfig-bad", "kubeconfig-https-token", "kubeconfig-https-unknown-ca", "kubeconfig-tokenfile")
HAS_YAML = importlib.util.find_spec("yaml") is not None

decided = vectors.load_decided()
counted = {"steps": 0, "vectors": 0, "decided": 0, "executable": 0}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return tmp_path_factory.mktemp("multus")


@pytest.fixture(scope="module")
def multus(_collection_path):
    require_namespaces()
    return vectors.MultusLibrary()


@pytest.mark.parametrize("name", vectors.names())
def test_vector(multus, shared, name):
    if name in NEEDS_YAML and not HAS_YAML:
        reporting.note("multus vector %s not run: this Python has no PyYAML" % name)
        pytest.skip("not run: no PyYAML")
    vector = vectors.load(name)
    outcomes = vectors.replay(multus, vector, shared)
    assert len(outcomes) == len(vector["steps"])
    wrong = []
    for number, (step, got) in enumerate(zip(vector["steps"], outcomes)):
        key = "%s#%d" % (name, number)
        if key in ONLY_THERE:
            continue
        counted["steps"] += 1
        if key in decided:
            counted["decided"] += 1
            shown = vectors.comparable(got, bool(vector.get("record_headers")))
            found = vectors.differences(decided[key]["outcome"], shown)
        else:
            found = vectors.judge(vector, step, got, ENDINGS.get(key, ""))
        wrong += ["step %d (%s): %s" % (number, step["env"].get("CNI_COMMAND", "-"), line) for line in found]
    counted["vectors"] += 1
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def executable_multus(_collection_path, tmp_path_factory):
    from ansible_collections.nodenet.cni.plugins.module_utils.node import executables, vendoring

    require_namespaces()
    root = str(_collection_path / "ansible_collections" / "nodenet" / "cni" / "plugins" / "module_utils")
    folder = str(tmp_path_factory.mktemp("bin"))
    made = executables.build(root, folder, ["multus"], os.path.realpath(sys.executable))[0]
    beside = Path(folder, executables.STORE, executables.launched_version(made) or "", executables.PACKAGE)
    for path, content in vendoring.collect(["multus"]).items():  # PyYAML, as an installed one has it
        (beside / path).parent.mkdir(parents=True, exist_ok=True)
        (beside / path).write_text(content, "utf-8")
    return vectors.MultusExecutable(made)


@pytest.mark.parametrize("name", sorted(set(vectors.names()) - TOO_LONG))
def test_vector_through_the_executable(executable_multus, shared, name):
    if name in NEEDS_YAML and not HAS_YAML:
        pytest.skip("not run: no PyYAML")
    vector = vectors.load(name)
    wrong = []
    for number, (step, got) in enumerate(zip(vector["steps"], vectors.replay(executable_multus, vector, shared))):
        key = "%s#%d" % (name, number)
        if key in ONLY_THERE:
            assert (got["rc"], got["stdout_raw"].split()[0]) == (0, "multus:")
            counted["executable"] += 1
            continue
        shown = vectors.comparable(got, bool(vector.get("record_headers")))
        counted["executable"] += 1
        if key in decided:
            found = vectors.differences(decided[key]["outcome"], shown)
        else:
            found = vectors.judge(vector, step, got, ENDINGS.get(key, ""))
        wrong += ["step %d (%s): %s" % (number, step["env"].get("CNI_COMMAND", "-"), line) for line in found]
    assert not wrong, "\n".join(wrong)


def test_all_steps_ran(request):
    """The run above was complete: nothing was left out by an empty folder, a filter or a lost step."""
    files = vectors.names()
    assert len(files) == VECTORS
    steps = {name: len(vectors.load(name)["steps"]) for name in files}
    assert sum(steps.values()) == STEPS
    chosen = [item for item in request.session.items if getattr(item, "originalname", "") == "test_vector"]
    chosen = [item for item in chosen if item.module.__name__ == __name__]
    if len(chosen) != VECTORS or not counted["vectors"]:
        pytest.skip("not run: only %d of %d vectors were selected" % (len(chosen), VECTORS))
    missing = [] if HAS_YAML else list(NEEDS_YAML)
    assert counted["vectors"] == VECTORS - len(missing)
    assert counted["steps"] == STEPS - len(ONLY_THERE) - sum(steps[name] for name in missing)
    assert counted["decided"] == len([key for key in decided if key.split("#")[0] not in missing])
    through = STEPS - sum(steps[name] for name in [*missing, *TOO_LONG])
    assert counted["executable"] == through
    reporting.note(
        "multus vectors: %d steps of %d vectors ran, %d through the executable, %d with a decided outcome, %d with an "
        "ending of our own; only through the executable: %s"
        % (
            *(counted[key] for key in ("steps", "vectors", "executable", "decided")),
            len(ENDINGS),
            ", ".join(ONLY_THERE),
        )
    )


@pytest.mark.parametrize("key", sorted(decided))
def test_decided_entry_is_complete_and_needed(key):
    name, number = key.split("#")
    entry = decided[key]
    vector = vectors.load(name)
    assert {"rc", "stderr", "delegate_calls", "api_calls", "cache_after"} <= set(entry["outcome"])
    wanted = vectors.comparable(vector["steps"][int(number)], bool(vector.get("record_headers")))
    assert vectors.differences(wanted, entry["outcome"]), "it says what was recorded"
    if "follows" in entry:
        cause = decided[entry["follows"]]
        assert cause["m"] == entry["m"]
        assert int(entry["follows"].split("#")[1]) < int(number)
    else:
        assert int(number) in DIFFERENCES[entry["m"]][name]


@pytest.mark.parametrize("key", sorted(ENDINGS))
def test_an_ending_of_our_own_is_needed(key):
    name, number = key.split("#")
    assert key not in decided
    assert not vectors.load(name)["steps"][int(number)]["stdout_json"]["msg"].endswith(ENDINGS[key])


@pytest.mark.parametrize("m", sorted(DIFFERENCES, key=lambda m: int(m[1:])))
def test_every_difference_has_its_entries(m):
    for name, steps in DIFFERENCES[m].items():
        for number in steps:
            assert decided["%s#%d" % (name, number)]["m"] == m


def test_the_docs_name_every_step_that_differs():
    table = {}
    for line in (vectors.HERE.parents[1] / "docs" / "compatibility.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in DIFFERENCES and len(cells) == 4:
            table[cells[0]] = {
                name: tuple(step for part in steps.rstrip(",").split(",") for step in expanded(part))
                for name, steps in re.findall(r"([\w-]+)#([\d,-]+)", cells[3])
            }
    assert table == DIFFERENCES


def expanded(part):
    first, _mark, last = part.partition("-")
    return range(int(first), int(last or first) + 1)


def test_every_crash_of_upstream_has_a_decided_outcome():
    for name in vectors.names():
        for number, step in enumerate(vectors.load(name)["steps"]):
            if step["rc"] == 2:
                assert "%s#%d" % (name, number) in decided
