# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks as a user runs them, on hosts that are directories of this machine."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


@pytest.fixture
def play(tmp_path):
    """Call play(name, arguments, variables): output and return code of a playbook on the hosts n1 and n2."""
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "node_conf_dir": "{{ inventory_dir }}/{{ inventory_hostname }}/net.d",
    }
    (tmp_path / "inventory.yml").write_text(json.dumps({"all": {"hosts": {"n1": {}, "n2": {}}, "vars": variables}}))
    for host in ("n1", "n2"):
        data_dir = tmp_path / host / "data"
        ipam = {"type": "host-local", "dataDir": str(data_dir), "ranges": [[{"subnet": "192.0.2.0/29"}]]}
        document = {"cniVersion": "1.0.0", "name": "lan", "plugins": [{"type": "macvlan", "ipam": ipam}]}
        (tmp_path / host / "net.d").mkdir(parents=True)
        (tmp_path / host / "net.d" / "10-lan.conflist").write_text(json.dumps(document))
        (data_dir / "lan").mkdir(parents=True)

    def run(name, *arguments, **more):
        command = [os.path.join(os.path.dirname(sys.executable), "ansible-playbook"), "-i", "inventory.yml"]
        collections = [str(ROOT / ".dev"), *[str(path) for path in [more.pop("collections", None)] if path]]
        command += [name if "." in name else "nodenet.cni." + name, "-e", json.dumps(more), *arguments]
        environment = dict(
            os.environ,
            ANSIBLE_COLLECTIONS_PATH=os.pathsep.join(collections),
            ANSIBLE_LOCAL_TEMP=str(tmp_path / "tmp"),
            ANSIBLE_REMOTE_TEMP=str(tmp_path / "tmp"),
            ANSIBLE_NOCOLOR="1",
        )
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return " ".join((done.stdout + done.stderr).split()), done.returncode

    return run


def plan(address):
    return [{"network": "lan", "reservations": [{"owner": "printer", "addresses": [address]}]}]


def test_reserve_finds_the_networks_where_bootstrap_writes_them(play, tmp_path):
    text, code = play("reserve", reservations_networks=plan("192.0.2.4"))
    assert code == 0, text
    for host in ("n1", "n2"):
        assert (tmp_path / host / "data" / "lan" / "192.0.2.4").read_bytes() == b"static.printer\r\neth0"
    text, code = play("reserve", reservations_networks=plan("192.0.2.4"), reservations_conf_dir="/nonexistent/net.d")
    assert code != 0
    assert "Cannot use network lan in /nonexistent/net.d" in text
    text, code = play("reserve", reservations_networks=plan("192.0.2.4"), networks_conf_dir="/nonexistent/net.d")
    assert "Cannot use network lan in /nonexistent/net.d" in text


def lan(data_dir, **more):
    subnets = {"n1": "192.0.2.8/29", "n2": "192.0.2.0/29"}
    network = {"name": "lan", "preset": "macvlan", "master": "eth0", "data_dir": data_dir}
    return [dict(network, subnet="{{ %s[inventory_hostname] }}" % json.dumps(subnets).replace('"', "'"), **more)]


def test_no_node_gets_what_moves_from_another_one(play, tmp_path):
    """n2 is new and is to get the part of n1, which is told to take another one."""
    (tmp_path / "n2" / "net.d" / "10-lan.conflist").unlink()
    old = (tmp_path / "n1" / "net.d" / "10-lan.conflist").read_bytes()
    networks = lan("{{ inventory_dir }}/{{ inventory_hostname }}/data")
    more = {"networks_conflists": networks, "node_probe": False, "node_prerequisites": False}
    text, code = play("bootstrap", **more)
    assert code != 0
    assert "network lan would hand out 192.0.2.9-192.0.2.14 on this node, and before 192.0.2.1-192.0.2.6" in text
    assert "addresses of a network that they share would move from n1, see there" in text
    assert (tmp_path / "n1" / "net.d" / "10-lan.conflist").read_bytes() == old
    assert os.listdir(str(tmp_path / "n2" / "net.d")) == []
    text, code = play("bootstrap", networks_move_ranges=True, **more)
    assert code == 0, text
    assert os.listdir(str(tmp_path / "n2" / "net.d")) == ["10-lan.conflist"]


@pytest.mark.parametrize("variables", [{}, {"reservations_networks": []}])
def test_reserve_without_a_plan_is_an_error(play, variables):
    text, code = play("reserve", **variables)
    assert code != 0
    assert "Cannot reserve addresses on n1, set reservations_networks for it" in text


def test_reserve_can_go_host_by_host(play):
    text, code = play("reserve", reservations_networks=plan("192.0.2.4"), target_serial=1)
    assert code == 0, text
    assert text.count("PLAY [Bring the static addresses") == 2


def test_audit_shows_errors_of_nodes_and_leaves_reports_where_it_was_started(play, tmp_path):
    # the gateway is reserved: an error of that node, which no comparison of nodes shows
    (tmp_path / "n2" / "data" / "lan" / "192.0.2.1").write_bytes(b"x" * 64 + b"\r\neth0")
    # what the machine of the test lacks is no concern of it
    text, code = play("audit", audit_output_dir="out", audit_gather=["addresses"])
    assert code == 0, text
    assert {"fleet.json", "n1.json", "n2.json"} <= set(os.listdir(str(tmp_path / "out")))
    report = json.loads((tmp_path / "out" / "n2.json").read_text())
    (found,) = [one for one in report["findings"] if one["severity"] == "error"]
    shown = text.split("Show the fleet")[1]
    assert f'"n2: {found["where"]}: {found["text"]} ({found["code"]}): {found["hint"]}"' in shown


def shown_by(text):
    """What the audit shows of the fleet. A playbook's output with its white space folded holds it as JSON."""
    start = text.index("{", text.index("TASK [Show the fleet]"))
    return json.JSONDecoder().raw_decode(text[start:])[0]["msg"]


def test_audit_shows_findings_with_code_hosts_and_what_to_do(play, tmp_path):
    for host in ("n1", "n2"):
        (tmp_path / host / "data" / "lan" / "192.0.2.2").write_bytes(host.encode() * 20 + b"\r\neth0")
        (tmp_path / host / "data" / "lan" / "192.0.2.77").write_bytes(b"x" * 20 + b"\r\neth0")
    text, code = play("audit", audit_gather=["addresses"], audit_show_nodes=False, audit_threshold=0.9)
    assert code == 0, text
    shown = shown_by(text)
    assert [str(shown[key]) for key in ("complete", "duplicates", "overlaps", "not_read")] == ["True", "2", "1", "[]"]
    assert str(shown["pools_nearly_full"]) == "0"
    assert [re.findall(r"\((FLEET[0-9]+)\): ", line) for line in shown["errors"]] == [
        ["FLEET002"],
        ["FLEET001"],
        ["FLEET001"],
    ]
    assert ": give each node its own part of the subnet; " in shown["errors"][0]
    warnings = [line for line in shown["warnings"] if "IPAM017" in line]
    assert [line.partition(":")[0] for line in warnings] == ["n1", "n2"]
    assert not [line for line in shown["warnings"] if "FLEET" in line]


def test_audit_of_a_network_that_cannot_be_read(play, tmp_path):
    lan = tmp_path / "n2" / "data" / "lan"
    (lan / "lock").mkdir()
    plan = [{"network": "lan", "reservations": [{"owner": "dns", "addresses": ["192.0.2.3"]}]}]
    text, code = play("audit", audit_gather=["addresses"], reservations_networks=plan, audit_output_dir="out")
    assert code == 0, text
    shown = shown_by(text)
    assert (shown["complete"], shown["missing"]) == (False, [])
    assert shown["duplicates"] == "0 in what was read"
    assert shown["overlaps"] == "0 in what was read"
    (unread,) = shown["not_read"]
    assert unread.startswith(f"n2: network lan in {lan}: ")
    # what n1 does not hold of the plan is told, of n2 nothing
    assert [re.findall("dns on n[0-9]", line) for line in shown["warnings"] if "FLEET016" in line] == [["dns on n1"]]
    assert json.loads((tmp_path / "out" / "fleet.json").read_text())["complete"] is False


# another user than whoever runs the tests, else Ansible leaves it out
BECOME = "ansible_become_exe=/nonexistent/sudo ansible_become_user=nobody"


def test_audit_says_why_become_failed_and_fails_when_nobody_has_reported(play):
    text, code = play("audit", "--become", "-e", BECOME, audit_gather=["addresses"])
    assert code != 0
    (missing, _other) = [line for line in shown_by(text)["errors"] if "FLEET005" in line]
    assert "/nonexistent/sudo: not found" in missing or "/nonexistent/sudo: No such file" in missing
    assert "No host has reported. n1: " in text
    assert text.count("/nonexistent/sudo: ") > 2


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["FLEET002"], "Findings that audit_fail_on names: FLEET002"),
        (["error"], "Findings that audit_fail_on names: FLEET002"),
        (["eror"], "fail_on takes error, warning, info, never and codes of findings, not eror"),
        ("warning", "Findings that audit_fail_on names: FLEET002"),
        (["FLEET001", "MULTUS001"], ""),
        ("never", ""),
        ([], ""),
    ],
)
def test_audit_fails_on_what_it_is_told_to(play, names, words):
    text, code = play("audit", audit_fail_on=names, audit_gather=["addresses"])
    assert (code != 0) == bool(words), text
    assert words in text


def test_reclaim_is_dry_unless_told_to_apply(play, tmp_path):
    alive, dead = "a" * 64, "b" * 64
    for host in ("n1", "n2"):
        for address, owner in (("192.0.2.2", alive), ("192.0.2.3", dead)):
            path = tmp_path / host / "data" / "lan" / address
            path.write_bytes(owner.encode() + b"\r\neth0")
            os.utime(str(path), (1e9, 1e9))
    options = {
        "reclaim_live": {"attachments": [{"container_id": alive}]},
        "reclaim_sources": ["caches"],
        "reclaim_results_dirs": [],
        "reclaim_state_dir": str(tmp_path / "state"),
    }
    text, code = play("reclaim", **options)
    assert code == 0, text
    assert '"removed": [ "lan 192.0.2.3" ]' in text
    assert '"sources": [ "list the option live found 1" ]' in text
    assert "run it again with -e reclaim_apply=true" in text
    assert '"kept": { "alive": 1 }' in text
    assert not (tmp_path / "state").exists()
    assert all((tmp_path / host / "data" / "lan" / "192.0.2.3").exists() for host in ("n1", "n2"))
    text, code = play("reclaim", "--check", reclaim_apply=True, **options)
    assert (code, (tmp_path / "state").exists()) == (0, False), text
    text, code = play("reclaim", reclaim_apply="true", reclaim_networks=["lan"], **options)
    assert code == 0, text
    assert '"applied": true' in text
    (command,) = re.findall(r'"(ansible -i [^" ]* n1 --become -m [^"]*)"', text)
    assert "-a 'network=lan restore=" in command
    assert [sorted(os.listdir(str(tmp_path / host / "data" / "lan"))) for host in ("n1", "n2")] == [
        ["192.0.2.2", "lock"]
    ] * 2
    # what it prints takes it back, wherever it is typed
    program = os.path.join(os.path.dirname(sys.executable), "ansible")
    words = [program, *[one for one in shlex.split(command)[1:] if one != "--become"]]
    environment = dict(
        os.environ, ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".dev"), ANSIBLE_REMOTE_TEMP=str(tmp_path / "tmp")
    )
    done = subprocess.run(words, cwd="/", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "n1" / "data" / "lan" / "192.0.2.3").exists()
    assert not (tmp_path / "n2" / "data" / "lan" / "192.0.2.3").exists()


def fake_kubernetes(root):
    """A collection kubernetes.core whose module k8s writes down what it is given."""
    plugins = root / "ansible_collections" / "kubernetes" / "core" / "plugins"
    for folder in ("filter", "modules"):
        (plugins / folder).mkdir(parents=True)
    (plugins / "filter" / "k8s.py").write_text(
        "class FilterModule:\n    def filters(self):\n        return {'k8s_config_resource_name': str}\n"
    )
    (plugins / "modules" / "k8s.py").write_text(
        "#!/usr/bin/python\nimport json\nfrom ansible.module_utils.basic import AnsibleModule\n"
        "spec = dict(definition=dict(type='dict'), state=dict(default='present'), wait=dict(type='bool'),\n"
        "            wait_condition=dict(type='dict'))\n"
        "module = AnsibleModule(spec)\n"
        f"with open({str(root / 'log')!r}, 'a') as log:\n"
        "    log.write(json.dumps([module.params['state'], module.params['definition']]) + '\\n')\n"
        "module.exit_json(changed=True)\n"
    )
    return root / "log"


def test_multus_cluster_says_what_it_needs(play):
    text, code = play("multus_cluster", target_hosts="n1")
    assert code == 2
    assert "Cannot make Multus' objects in the cluster: the collection kubernetes.core is not installed" in text


def test_multus_cluster_makes_the_objects(play, tmp_path):
    log = fake_kubernetes(tmp_path / "fake")
    networks = [
        {"name": "lan", "namespace": "prod", "config": {"cniVersion": "1.0.0", "type": "macvlan"}},
        {"name": "text", "config": '{"type": "bridge"}', "annotations": {"a": "b"}},
        {"name": "file"},
        {"name": "old", "state": "absent"},
    ]
    text, code = play(
        "multus_cluster", target_hosts="n1", multus_cluster_networks=networks, collections=tmp_path / "fake"
    )
    assert code == 0, text
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [row[1]["kind"] for row in rows] == [
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        *["NetworkAttachmentDefinition"] * 4,
    ]
    made = {row[1]["metadata"]["name"]: row for row in rows[4:]}
    assert json.loads(made["lan"][1]["spec"]["config"]) == networks[0]["config"]
    assert made["lan"][1]["metadata"]["namespace"] == "prod"
    assert made["text"][1]["spec"]["config"] == '{"type": "bridge"}'
    assert made["text"][1]["metadata"]["annotations"] == {"a": "b"}
    assert made["file"][1]["spec"]["config"] == ""
    assert [row[0] for row in rows[4:]] == ["present", "present", "present", "absent"]


@pytest.mark.parametrize("state", ["present", "absent"])
def test_role_multus(tmp_path, play, state):
    playbook = [{"hosts": "n1", "gather_facts": False, "roles": [{"role": "nodenet.cni.multus"}]}]
    (tmp_path / "multus.yml").write_text(json.dumps(playbook))
    (tmp_path / "bin").mkdir()
    for name in ("multus", "macvlan"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
    conf = tmp_path / "n1" / "net.d"
    more = {
        "multus_conf_dir": str(conf),
        "multus_bin_dir": str(tmp_path / "bin"),
        "multus_cache_dir": str(tmp_path / "cache"),
        "multus_state_dir": str(tmp_path / "state"),
        "multus_containerd_config": "",
        "multus_crio_config": "",
        "multus_kubeconfig": {"server": "https://10.96.0.1:443", "ca": CA, "token": "opaque-1"},
    }
    for asked, changed in (("present", 1), ("present", 0), *([("absent", 1), ("absent", 0)] * (state == "absent"))):
        text, code = play("multus.yml", **dict(more, multus_state=asked))
        assert code == 0, text
        assert f"ok=2 changed={changed} " in text, text
        assert "opaque-1" not in text
    left = sorted(path.name for path in conf.iterdir())
    assert left == (["10-lan.conflist"] if state == "absent" else ["00-multus.conflist", "10-lan.conflist", "multus.d"])
    if state == "present":
        (plugin,) = json.loads((conf / "00-multus.conflist").read_text())["plugins"]
        assert sorted(plugin) == ["binDir", "cniDir", "confDir", "delegates", "kubeconfig", "type"]


def test_multus_on_the_way_of_a_node(play, tmp_path):
    """Bootstrap writes a network and puts Multus in front, a second run changes nothing, the way back goes in order."""
    (tmp_path / "bin").mkdir()
    for name in ("multus", "macvlan", "bridge", "host-local", "portmap"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "n1" / "net.d" / "10-lan.conflist").unlink()
    more = {
        "node_bin_dir": str(tmp_path / "bin"),
        "node_state_dir": str(tmp_path / "state"),
        "node_prerequisites": False,
        "node_probe": False,
        "networks_conflists": [{"name": "podnet", "preset": "bridge", "subnet": "10.22.0.0/16"}],
        "networks_containerd_config": "",
        "networks_crio_config": "",
        "multus_containerd_config": "",
        "multus_crio_config": "",
        "multus_cache_dir": str(tmp_path / "cache"),
        "multus_kubeconfig": {"server": "https://10.96.0.1:443", "ca": CA, "token": "opaque-1"},
    }
    conf = tmp_path / "n1" / "net.d"
    text, code = play("bootstrap", "--limit", "n1", "--check", **more)
    assert code == 0, text
    assert list(conf.iterdir()) == []
    text, code = play("bootstrap", "--limit", "n1", **more)
    assert code == 0, text
    assert "changed=2 " in text, text
    assert sorted(path.name for path in conf.iterdir()) == ["00-multus.conflist", "10-podnet.conflist", "multus.d"]
    (plugin,) = json.loads((conf / "00-multus.conflist").read_text())["plugins"]
    assert plugin["delegates"][0]["name"] == "podnet"
    # a changed network reaches Multus' copy in the same run
    more["networks_conflists"][0]["subnet"] = "10.23.0.0/16"
    text, code = play("bootstrap", "--limit", "n1", **more)
    assert code == 0, text
    assert "10.23.0.0/16" in (conf / "00-multus.conflist").read_text()
    # a network with a fault changes nothing at all, so Multus is still there
    before = sorted((path.name, path.read_bytes()) for path in conf.rglob("*") if path.is_file())
    faulty = [dict(more["networks_conflists"][0], subnet="10.23.0.1/16")]
    text, code = play("bootstrap", "--limit", "n1", **dict(more, multus_state="absent", networks_conflists=faulty))
    assert code != 0
    assert "host bits" in " ".join(text.split()), text
    assert sorted((path.name, path.read_bytes()) for path in conf.rglob("*") if path.is_file()) == before
    # a removal that the network behind Multus refuses leaves Multus where it is, too
    (conf / "90-other.conflist").write_text(
        '{"cniVersion": "1.0.0", "name": "other", "plugins": [{"type": "macvlan"}]}'
    )
    before = sorted((path.name, path.read_bytes()) for path in conf.rglob("*") if path.is_file())
    away = dict(more, node_reservations=False, node_plugin_binaries=False, multus_remove_plugin="never")
    text, code = play("remove", "--limit", "n1", **away)
    assert code != 0
    assert "containerd would use network other instead of" in " ".join(text.split()), text
    assert sorted((path.name, path.read_bytes()) for path in conf.rglob("*") if path.is_file()) == before
    text, code = play("remove", "--limit", "n1", **dict(away, node_remove_expect_effective="other"))
    assert code == 0, text
    assert "changed=2 " in text, text
    assert [path.name for path in conf.iterdir()] == ["90-other.conflist"]
    (conf / "90-other.conflist").unlink()
    text, code = play("bootstrap", "--limit", "n1", **more)
    assert code == 0, text
    text, code = play("bootstrap", "--limit", "n1", **dict(more, multus_state="absent", multus_remove_plugin="never"))
    assert code == 0, text
    assert [path.name for path in conf.iterdir()] == ["10-podnet.conflist"]


def test_role_reclaim_installs_what_a_node_runs_by_itself(play, tmp_path):
    """With the Python of the system, as that of the tests lies where none of a node may."""
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("not run: there is no /usr/bin/python3")
    playbook = [{"hosts": "n1", "gather_facts": False, "roles": [{"role": "nodenet.cni.reclaim"}]}]
    (tmp_path / "reclaim.yml").write_text(json.dumps(playbook))
    lan = tmp_path / "n1" / "data" / "lan"
    owners = {"192.0.2.2": "a" * 64, "192.0.2.3": "b" * 64}
    for address, owner in owners.items():
        (lan / address).write_bytes(owner.encode() + b"\r\neth0")
        os.utime(str(lan / address), (1e9, 1e9))
    storage = tmp_path / "storage" / "vfs-containers"
    storage.mkdir(parents=True)
    (storage / "containers.json").write_text(json.dumps([{"id": "a" * 64, "metadata": "{}"}]))
    (tmp_path / "storage" / "libpod").mkdir()
    more = {
        "ansible_python_interpreter": "/usr/bin/python3",
        "reclaim_timer_networks": ["lan"],
        "reclaim_timer_apply": False,
        "reclaim_timer_unit_dir": str(tmp_path / "units"),
        "reclaim_timer_settings_dir": str(tmp_path / "settings"),
        "reclaim_timer_program_dir": str(tmp_path / "lib"),
        "reclaim_state_dir": str(tmp_path / "state"),
        "reclaim_sources": ["podman"],
        "reclaim_storage_root": str(tmp_path / "storage"),
    }
    for arguments, changed in ((["--check"], 1), ([], 1), ([], 0)):
        text, code = play("reclaim.yml", *arguments, **more)
        assert code == 0, text
        assert f"ok=2 changed={changed} " in text, text
        assert (tmp_path / "units").exists() == (arguments == [])
    service = (tmp_path / "units" / "nodenet-reclaim-lan.service").read_text()
    (command,) = [line.partition("=")[2] for line in service.splitlines() if line.startswith("ExecStart=")]
    done = subprocess.run(command.split(), env={"PATH": "/nonexistent"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "lan: freed 1, kept 1 (1 alive)" in done.stdout
    assert sorted(path.name for path in lan.iterdir()) == ["192.0.2.2", "lock"]
    text, code = play("reclaim.yml", **dict(more, reclaim_timer_networks=[]))
    assert (code, list((tmp_path / "units").glob("**/nodenet*"))) == (0, []), text
