# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recorded runs of Multus' thin entrypoint, given to multus_config as a user would write the same wishes (M16).

Each flag becomes an option. What the entrypoint wrote has to come out: the same document, but for ``confDir`` in place
of ``cniConf`` (which Multus does not read), and a kubeconfig in JSON that says the same as the recorded YAML. Where the
entrypoint went wrong, FAILURES tells what comes instead. Its choice of a master passes over files that end in .json,
which runtimes read; ours is what they use, so one run has to name the master.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

VECTORS = Path(__file__).resolve().parents[3] / "conformance" / "vectors" / "multus_entrypoint"
NAMES = sorted(path.stem for path in VECTORS.glob("*.json"))

# what comes of a run that has to fail: part of its message; nothing is written
FAILURES = {
    "entrypoint-error-bad-json": "(no file there defines a network; not usable: 10-a.conf (",
    "entrypoint-error-bad-loglevel": "value of log_level must be one of: debug, verbose, error, panic, got: loud",
    "entrypoint-error-no-master": "no network for a master found in {conf} (no file there defines a network)",
    "entrypoint-error-no-token": "kubeconfig needs token, token_file, or client_certificate and client_key",
    "entrypoint-error-version-mismatch": "cni_version is 1.0.0, but the master 10-flannel.conf has 0.3.1",
    "entrypoint-panics": "10-a.conf (error parsing configuration: capability portMappings is neither true nor false",
}
# flags that have no option: the copy of the executable is plugin_binaries' work, and a configuration that is ready made
# is copied by conflist or ansible.builtin.copy; the master's file is never moved away, a removal falls back to it
IGNORED = {
    "cni-conf-dir", "multus-autoconfig-dir", "cni-bin-dir", "multus-bin-file", "skip-multus-binary-copy",
    "cleanup-config-on-exit", "rename-conf-file",
}  # fmt: skip
TEXTS = {
    "multus-cni-conf-dir": "delegate_conf_dir",
    "multus-log-level": "log_level",
    "multus-log-file": "log_file",
    "additional-bin-dir": "delegate_bin_dir",
    "readiness-indicator-file": "readiness_indicator_file",
    "cni-version": "cni_version",
}
SWITCHES = {
    "namespace-isolation": "namespace_isolation",
    "multus-log-to-stderr": "log_to_stderr",
    "force-cni-version": "force_cni_version",
}


class Driver:
    """A node of a vector below one directory, and the options that its flags become."""

    def __init__(self, root, vector):
        self.root = root
        self.vector = vector
        self.conf, self.bin = root / "net.d", root / "bin"
        self.conf.mkdir()
        self.bin.mkdir()
        (self.bin / "multus").write_text("#!/bin/sh\nexit 1\n")
        for path, content in vector["files"].items():
            self.write(path, content)

    def path(self, text):
        for token, path in (("@CONFDIR@", self.conf), ("@BINDIR@", self.bin), ("@TMP@", self.root)):
            text = text.replace(token, str(path))
        return text

    def content(self, value):
        if isinstance(value, dict) and "$repeat" in value:
            return value["$repeat"] * value["times"]
        return self.path(value if isinstance(value, str) else json.dumps(value, indent=2))

    def write(self, path, content):
        path = Path(self.path(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.content(content))

    def options(self, step, **service_account):
        account = dict(self.vector["sa"], **service_account)
        options = {
            "conf_dir": str(self.conf),
            "bin_dir": str(self.bin),
            "delegate_bin_dir": "/opt/cni/bin",
            "state_dir": str(self.root / "state"),
            "containerd_config": "",
            "crio_config": "",
            "kubeconfig": {
                "server": "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}".format(**step["env"]),
                "ca": account["ca.crt"],
                "token": account.get("token"),
            },
        }
        for flag in step["argv"]:
            name, _equals, value = flag[2:].partition("=")
            value = self.path(value)
            if name in TEXTS:
                options[TEXTS[name]] = value.lower() if name == "multus-log-level" else value
            elif name in SWITCHES:
                options[SWITCHES[name]] = value == "true"
            elif name == "global-namespaces":
                options["global_namespaces"] = value.split(",")
            elif name == "override-network-name":
                options["name"] = ""
            elif name == "multus-kubeconfig-file-host":
                options["kubeconfig_path"] = str(self.root) + value
            elif name == "multus-conf-file":
                options["parts"] = ["kubeconfig"]
            else:
                assert name in IGNORED, name
        return options

    def recorded(self, text, options):
        """What the recorded document is to us."""
        document = json.loads(self.path(text))
        plugin = document["plugins"][0] if "plugins" in document else document
        plugin["confDir"] = plugin.pop("cniConf")
        plugin["kubeconfig"] = options.get("kubeconfig_path") or str(self.conf / "multus.d" / "multus.kubeconfig")
        return document

    def see_kubeconfig(self, recorded, options):
        path = Path(options.get("kubeconfig_path") or str(self.conf / "multus.d" / "multus.kubeconfig"))
        assert json.loads(path.read_text()) == yaml.safe_load(recorded["text"])
        assert f"{path.stat().st_mode & 0o7777:04o}" == recorded["mode"]


def load(name):
    return json.loads((VECTORS / (name + ".json")).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_run(run_module, fails, tmp_path, tree, name):
    vector = load(name)
    driver = Driver(tmp_path, vector)
    (step,) = vector["steps"]
    options = driver.options(step)
    if name == "entrypoint-upgrade-leaves-old":
        assert run_module("multus_config", options, check=True)["master"]["file"] == "05-a.json"
        options["master"] = "10-calico.conflist"
    if name in FAILURES:
        before = tree(tmp_path)
        message = fails("multus_config", options)
        assert FAILURES[name].format(conf=driver.conf) in message
        assert tree(tmp_path) == before
        return
    done = run_module("multus_config", options)
    assert done["changed"] is True
    files = step.get("files_during", [step.get("files_after")])[0]
    if name == "entrypoint-cleanup":
        files = dict(step["files_after"], **step["files_during"][-1])
        see_changes(run_module, driver, step, options)
    written = {path: one for path, one in files.items() if os.path.basename(path).startswith("00-multus.conf")}
    if name == "entrypoint-upgrade-leaves-old":
        del written["@CONFDIR@/00-multus.conf"]  # the stale twin goes
        assert not (driver.conf / "00-multus.conf").exists()
    assert len(written) == (0 if name == "entrypoint-custom-file" else 1)
    for path, one in written.items():
        text = json.dumps(one["json"]) if "json" in one else mended(one["text"])
        path = Path(driver.path(path))
        assert json.loads(path.read_text()) == driver.recorded(text, options)
        assert list(json.loads(path.read_text()))[:2] == ["cniVersion", "name"]
        assert path.stat().st_mode & 0o7777 == 0o600
    driver.see_kubeconfig(files["@CONFDIR@/multus.d/multus.kubeconfig"], options)
    for path, one in vector["files"].items():
        if "00-multus.conf" not in path and name != "entrypoint-cleanup":
            assert Path(driver.path(path)).read_text() == driver.content(one)  # the master's file stays where it is
    again = run_module("multus_config", options)
    assert again["changed"] is (name == "entrypoint-cleanup")


def mended(text):
    """A recorded document as it was meant: with the path escaped, and without the rest of an older file."""
    text = text.replace('"kubeconfig": "/a"b"', '"kubeconfig": "/a\\"b"')
    return json.dumps(json.JSONDecoder().raw_decode(text)[0])


def see_changes(run_module, driver, step, options):
    """What the watcher of the entrypoint did at each change, another run of the task does."""
    master = driver.conf / "10-flannel.conf"
    for change, recorded in zip(step["during"], step["files_during"]):
        if change["op"] == "rm":
            master.unlink()
            continue
        if change["op"] == "write":
            driver.write(change["path"], change["content"])
            done = run_module("multus_config", options)
            assert any(place.startswith("delegates.0.") for place in done["drift"])
        else:
            options = driver.options(step, token=change["content"])
            assert run_module("multus_config", options)["kubeconfig"]["changed"] is True
            driver.see_kubeconfig(recorded["@CONFDIR@/multus.d/multus.kubeconfig"], options)
        (document,) = [one for path, one in recorded.items() if path.endswith("00-multus.conf")]
        assert json.loads((driver.conf / "00-multus.conf").read_text()) == driver.recorded(document["text"], options)


def test_a_master_that_is_gone_leaves_the_file(run_module, fails, tmp_path, tree):
    """As the watcher does: it waits for the master and keeps what it made."""
    vector = load("entrypoint-cleanup")
    driver = Driver(tmp_path, vector)
    options = driver.options(vector["steps"][0])
    run_module("multus_config", options)
    (driver.conf / "10-flannel.conf").unlink()
    before = tree(tmp_path)
    assert "no network for a master found" in fails("multus_config", options)
    assert tree(tmp_path) == before


def test_all_recorded_runs_are_here():
    assert len(NAMES) == 14
    assert set(FAILURES) < set(NAMES)
