# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guides print: playbooks and commands that Ansible takes, and errors as the programs spell them.

That modules, options and variables of the examples exist is the business of test_house.py.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import yaml

from ansible_collections.nodenet.cni.plugins.filter.node_ranges import node_ranges

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "docs" / "docsite" / "rst").glob("guide_*.rst"))
UTILS = ROOT / "plugins" / "module_utils"
TROUBLE = ROOT / "docs" / "docsite" / "rst" / "guide_troubleshooting.rst"
# heading -> how a source of ours spells it, if one does; the others are of containerd, kubelet, bridge, flannel and an
# older Multus
ERRORS = {
    "no IP addresses available in range set: 10.22.0.1-10.22.0.14": "no IP addresses available in range set: {",
    "requested IP address 10.22.0.5 is not available in range set 10.22.0.1-10.22.0.14": (
        "requested IP address {requested} is not available in range set {"
    ),
    "10.22.0.2 has been allocated to d4735e3a..., duplicate allocation is not allowed": (
        "has been allocated to {container_id}, duplicate allocation is not allowed"
    ),
    "cannot lock /var/lib/cni/networks/podnet/lock within 60 s: process 16 (flock) holds it": (
        "cannot lock {path}/{LOCK_NAME} within {asked:g} s: {holder or 'another process'} holds it"
    ),
    "10.22.0.9 is reserved for shop.db-0 and still held by container p interface eth0": (
        "{reserved} and still {described(present)}"
    ),
    "NetworkPluginNotReady": "",
    "cni plugin not initialized": "",
    "no network config found in /etc/cni/net.d": "",
    "no networks found in /etc/cni/net.d": "",
    'failed to find plugin "bridge" in path [/opt/cni/bin]': "failed to find plugin {go_quote(plugin)} in path [{",
    "loadFlannelSubnetEnv failed: open /run/flannel/subnet.env: no such file or directory": "",
    "netplugin failed with no error message: exit status 1": "netplugin failed with no error message: {",
    "incompatible CNI versions": "incompatible CNI versions",
    'failed to set bridge addr: "cni0" already has an IP address different from 10.23.0.1/28': "",
    "Multus: error getting k8s client": "Multus: error getting k8s client: {",
    "error waiting for pod: Unauthorized": "error waiting for pod: {",
    "cannot find a network-attachment-definition (lan) in namespace (prod)": (
        "cannot find a network-attachment-definition ({request.name}) in namespace ("
    ),
    'error adding container to network "lan"': ('error adding container to network "{network}"'),
    "delegateAdd: error invoking DelegateAdd": "",
    "have you checked that your default network is ready?": "have you checked that your default network is ready?",
}


def blocks(path, language):
    """Yield the code blocks of a guide or README as (line, text)."""
    text = path.read_text(encoding="utf-8")
    for match in re.finditer(r"^( *)\.\. code-block:: %s\n\n((?:\1 +.*\n|\n)+)" % language, text, re.M):
        yield text.count("\n", 0, match.start()) + 1, textwrap.dedent(match.group(2))
    for match in re.finditer(r"^```%s\n(.*?)^```" % language, text, re.M | re.S):
        yield text.count("\n", 0, match.start()) + 1, match.group(1)


def plays(path):
    """Yield the blocks that are plays or tasks, tasks with a play around them, as (line, text)."""
    for line, text in blocks(path, "yaml"):
        document = yaml.safe_load(text)
        if not isinstance(document, list) or not all(isinstance(one, dict) for one in document):
            continue
        if all("hosts" in one for one in document):
            yield line, text
        elif all(any("." in key for key in one) for one in document):
            yield line, "- hosts: all\n  gather_facts: false\n  tasks:\n" + textwrap.indent(text, "    ")


def run(program, folder, *arguments):
    """Run a program of Ansible in a folder and return its output; it has to succeed."""
    environment = dict(
        os.environ,
        ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".dev"),
        ANSIBLE_LOCAL_TEMP=str(folder / "tmp"),
        ANSIBLE_REMOTE_TEMP=str(folder / "tmp"),
        ANSIBLE_NOCOLOR="1",
    )
    command = [os.path.join(os.path.dirname(sys.executable), program), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_ansible_takes_the_plays_and_tasks_of_the_guides(tmp_path):
    imports = []
    for path in [ROOT / "README.md", *GUIDES]:
        for line, text in plays(path):
            name = f"{path.stem}-line-{line}.yml"
            (tmp_path / name).write_text(text, encoding="utf-8")
            imports.append({"import_playbook": name})
    assert len(imports) > 20
    (tmp_path / "all.yml").write_text(json.dumps(imports), encoding="utf-8")
    run("ansible-playbook", tmp_path, "-i", "nodes,", "--syntax-check", "all.yml")


# --- a range for each node, from the empty file to a host that has gone


def named(path, name):
    """The block of a guide that begins with the name of a file."""
    (text,) = [text for _line, text in blocks(path, "yaml") if text.startswith(f"# {name}\n")]
    return text


def test_the_plan_of_the_ranges_runs_as_printed_and_moves_nobody(tmp_path):
    guide = ROOT / "docs" / "docsite" / "rst" / "guide_bootstrap.rst"
    commands = [text for _line, text in blocks(guide, "console") if "mkdir" in text]
    for command in re.findall(r"^\$ (.*)", "".join(commands), re.M):
        subprocess.run(["sh", "-ec", command], cwd=tmp_path, check=True)
    files = tmp_path / "group_vars" / "nodes"
    assert [path.name for path in files.iterdir()] == ["ranges.yml"]
    (files / "lan.yml").write_text("lan_ranges: {}\n")
    for name in ("plan.yml", "plan-lan.yml"):
        (tmp_path / name).write_text(named(guide, name))
    show = {"copy": {"dest": "{{ inventory_dir }}/{{ inventory_hostname }}", "content": "{{ shown | to_json }}"}}
    (tmp_path / "show.yml").write_text(
        json.dumps([{"hosts": "nodes", "gather_facts": False, "tasks": [dict(show, delegate_to="localhost")]}])
    )
    shown = [text for _line, text in blocks(guide, "yaml") if text.startswith("# group_vars/nodes/main.yml\n")]
    networks = [one for text in shown for one in yaml.safe_load(text)["networks_conflists"]]
    (files / "main.yml").write_text(json.dumps({"shown": networks}))
    # a sixth host takes the last part of the segment; without what they have some would move when one goes
    hosts = [f"node{number}" for number in range(1, 7)]

    def plan(names):
        (tmp_path / "inventory.yml").write_text(json.dumps({"nodes": {"hosts": dict.fromkeys(names, {})}}))
        text = run("ansible-playbook", tmp_path, "-i", "inventory.yml", "plan.yml", "plan-lan.yml")
        kept = {name: yaml.safe_load((files / name).read_text()) for name in ("ranges.yml", "lan.yml")}
        return kept["ranges.yml"]["node_subnets"], kept["lan.yml"]["lan_ranges"], text

    subnets, ranges, _text = plan(hosts[1:])
    assert sorted(subnets) == sorted(ranges) == hosts[1:]
    more_subnets, more_ranges, _text = plan(hosts)
    assert {name: more_subnets[name] for name in subnets} == subnets
    assert {name: more_ranges[name] for name in ranges} == ranges
    gone = next(one for one in hosts if moved(hosts, one))
    left = [one for one in hosts if one != gone]
    *after, text = plan(left)
    assert after == [more_subnets, more_ranges]
    assert set(re.findall(r"changed=\d+", text)) == {"changed=0"}
    run("ansible-playbook", tmp_path, "-i", "inventory.yml", "show.yml")
    for name in left:
        podnet, lan = json.loads((tmp_path / name).read_text())
        assert podnet["subnet"] == more_subnets[name]["subnet"]
        assert dict(lan, **more_ranges[name]) == lan
        assert lan["master"] == "eth1"


def moved(hosts, gone):
    """Whether somebody would move when a host goes, if nobody said who has what."""
    before, after = (
        node_ranges("192.0.2.0/24", names, 27, shared=True, skip=2)
        for names in (hosts, [one for one in hosts if one != gone])
    )
    return any(before[name] != part for name, part in after.items())


# --- commands


def commands():
    """Yield the commands of Ansible that the guides and the README print, as (place, words)."""
    for path in [ROOT / "README.md", *GUIDES]:
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"^ {4}(?:\$ )?(ansible(?:-playbook)? (?:.*\\\n)*.*)", text, re.M):
            place = f"{path.name}:{text.count(chr(10), 0, match.start()) + 1}"
            command = match.group(1).replace("\\\n", " ")
            words = shlex.split(re.sub(r" \| grep .*", "", command), comments=True)
            yield place, words


def values(words, *options):
    return [words[number + 1] for number, word in enumerate(words[:-1]) if word in options]


def test_the_printed_commands_name_what_there_is():
    known = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "playbooks").glob("*.yml"))
    known += "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("roles/*/meta/argument_specs.yml"))
    wrong, seen = [], 0
    for place, words in commands():
        for name in [word[len("nodenet.cni.") :] for word in words if word.startswith("nodenet.cni.")]:
            seen += 1
            kind = "playbooks/%s.yml" if words[0] == "ansible-playbook" else "plugins/modules/%s.py"
            if not (ROOT / (kind % name)).is_file():
                wrong.append(f"{place}: there is no {kind % name}")
            elif words[0] == "ansible":
                source = (ROOT / (kind % name)).read_text(encoding="utf-8")
                for given in values(words, "-a"):
                    names = json.loads(given) if given.startswith("{") else dict(re.findall(r"(\w+)=(\S+)", given))
                    wrong += [f"{place}: {name} has no option {one}" for one in names if f"\n  {one}:" not in source]
        for given in values(words, "-e"):
            names = json.loads(given) if given.startswith("{") else [given.partition("=")[0]]
            wrong += [f"{place}: nothing knows {one}" for one in names if one[0] != "@" and one not in known]
    assert seen > 30
    assert not wrong, "\n" + "\n".join(wrong)


# --- errors as headings


def test_headings_are_errors_as_programs_spell_them():
    titles = re.findall(r"^(``.*``)\n-+$", TROUBLE.read_text(encoding="utf-8"), re.M)
    headings = [text for title in titles for text in re.findall(r"``(.*?)``", title)]
    assert headings == list(ERRORS)
    paths = [path for floor in ("cni", "host_local", "multus") for path in (UTILS / floor).rglob("*.py")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    joined = re.sub(r'"\s*\n\s*f?"', "", sources)
    assert not [spelled for spelled in ERRORS.values() if spelled not in joined]


def test_a_guide_that_is_not_linked_is_not_found():
    listed = (ROOT / "docs" / "docsite" / "extra-docs.yml").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in GUIDES:
        assert f"- {path.stem}\n" in listed + "\n", path.name
        assert path.name in readme, path.name
