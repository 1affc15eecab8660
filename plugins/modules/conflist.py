#!/usr/bin/python
# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: conflist
short_description: Write and remove CNI network configuration lists
version_added: 0.1.0
description:
  - Keeps conflists in the directory from which container runtimes read their networks.
  - A file is checked before it is written, since a broken first file takes the network from the whole node. It
    appears whole, by a rename inside of the directory, which is what containerd notices.
  - Compares what the files mean. Another order of keys or other white space is no change; the number C(1) and the
    string C("1") are different.
  - Reports which network each runtime uses for a new pod before and after.
author:
  - The nodenet.cni authors (@nodenet)
extends_documentation_fragment:
  - nodenet.cni._attributes
  - nodenet.cni._attributes.actiongroup_all
  - nodenet.cni._attributes.platform
  - nodenet.cni._options.conf_dir
  - nodenet.cni._options.bin_dir
  - nodenet.cni._options.flannel
  - nodenet.cni._options.runtimes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  conflists:
    description:
      - The conflists to write or to remove. All of them are checked before the first one is written, and if one file
        cannot be replaced or removed in the end, the others are put back.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - Name of the network.
          - The task fails when another file of the directory defines the same network.
        type: str
        required: true
      plugins:
        description:
          - The chain of plugins, as dictionaries.
          - Exactly one of O(conflists[].plugins) and O(conflists[].content) is needed, unless
            O(conflists[].state=absent).
        type: list
        elements: dict
      content:
        description:
          - The whole conflist, as JSON text or as a dictionary. Text is written as it is.
        type: raw
      cni_version:
        description:
          - Version of the CNI specification, for O(conflists[].plugins) and for a dictionary that names none.
          - With O(conflists[].plugins) the default is V(1.0.0).
        type: str
      filename:
        description:
          - Name of the file. Runtimes read the files in the order of their names.
          - The default is C(10-<name>.conflist). With O(conflists[].state=absent) it is whatever file defines the
            network.
        type: str
      state:
        description:
          - Whether the file shall exist.
          - To give a network's file another name, list the new name as V(present) and the old
            O(conflists[].filename) as V(absent) in one task.
        type: str
        choices:
          - present
          - absent
        default: present
  validate:
    description:
      - What is refused.
      - V(strict) refuses every finding of severity C(error) in what is to be written, for example repeated keys.
      - V(upstream) refuses only what the runtime or a plugin refuses too.
      - V(none) writes what it is given; findings are still reported. Addresses that would move need O(move_ranges) all
        the same.
      - Unless it is V(none), a network is not written beside a broken file for which containerd would load none at all,
        nor on a bridge to which another network gives another address.
    type: str
    choices:
      - strict
      - upstream
      - none
    default: strict
  expect_effective:
    description:
      - Name of the network that a new pod has to get, from containerd and from CRI-O, when the task is done.
      - If it would be another one, the task fails and nothing is written.
      - Without this option a pod has to get the network that it gets before the task. Where there was none, any will
        do, and a network that the task removes may be the last one.
    type: str
  crio_default_network:
    description:
      - The value of C(cni_default_network), in place of the one in O(crio_config).
    type: str
  move_ranges:
    description:
      - Whether a network that other nodes share, one of macvlan, ipvlan, vlan or host-device, may hand out other
        addresses on this node than before.
      - Another node may still use some of what it newly hands out, and may hand out what it gives up while it is in use
        here. So this is for one run, when you know that neither is the case.
      - Also whether a network may get another name or another data dir while addresses that it hands out are in use by
        the old one, of which it would know nothing.
    type: bool
    default: false
  backup_dir:
    description:
      - Directory that keeps a copy of what is replaced or removed. It cannot lie in O(conf_dir).
    type: path
  mode:
    description:
      - Permissions of the files, in octal as a quoted string. A number is taken as it is, so a YAML C(0644) without
        quotes does the same.
    type: raw
    default: "0644"
seealso:
  - module: nodenet.cni.host_local_info
  - module: nodenet.cni.plugin_binaries
notes:
  - Findings of severity C(error) and C(warning) are shown as warnings too.
  - Plugins are looked up in O(bin_dir) only if that directory exists. A missing one is a finding and no error,
    because other tools may install it later. Those that are there are run with C(VERSION), to see whether they speak
    the network's version.
"""

EXAMPLES = r"""
- name: Have a bridge network with NAT
  nodenet.cni.conflist:
    conflists:
      - name: podnet
        plugins:
          - type: bridge
            bridge: cni0
            isGateway: true
            ipMasq: true
            ipam:
              type: host-local
              ranges:
                - - subnet: 10.22.0.0/16
              routes:
                - dst: 0.0.0.0/0
          - type: portmap
            capabilities:
              portMappings: true

- name: See what two changes would do, and fail if pods would land on another network
  nodenet.cni.conflist:
    conflists:
      - name: storage
        filename: 20-storage.conflist
        cni_version: 0.4.0
        plugins:
          - type: macvlan
            master: eth1
            ipam:
              type: host-local
              ranges:
                - - subnet: 192.0.2.0/24
                    rangeStart: 192.0.2.100
      - name: oldnet
        state: absent
    expect_effective: podnet
    backup_dir: /var/backups/cni
  check_mode: true
  diff: true

- name: Write a conflist that comes as a file, under another name than before
  nodenet.cni.conflist:
    conflists:
      - name: cbr0
        filename: 10-flannel.conflist
        content: "{{ lookup('ansible.builtin.file', 'flannel.json') }}"
      - name: cbr0
        filename: 10-flannel.conf
        state: absent
"""

RETURN = r"""
conf_dir:
  description: The directory.
  type: str
  returned: success
  sample: /etc/cni/net.d
conflists:
  description: The conflists of the task, in its order.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name of the network.
      type: str
      sample: podnet
    filename:
      description: Name of the file; null if the network is absent already.
      type: str
      sample: 10-podnet.conflist
    path:
      description: Path of the file; null if the network is absent already.
      type: str
      sample: /etc/cni/net.d/10-podnet.conflist
    state:
      description: V(present) or V(absent).
      type: str
      sample: present
    changed:
      description: Whether this file changed, or would change in check mode.
      type: bool
      sample: true
documents:
  description:
    - The conflists of the task that are present, by name of the network, as they are after the task or would be after
      check mode. The option O(nodenet.cni.host_local_reservation#module:config) takes one of them.
  type: dict
  returned: success
  sample:
    podnet:
      cniVersion: 1.0.0
      name: podnet
      plugins:
        - type: bridge
not_put_back:
  description: The files that the task had changed when it failed and that could not be put back either.
  type: list
  elements: str
  returned: failure, if there are any
  sample: [10-podnet.conflist]
effective:
  description: The network that a new pod gets on this node.
  type: dict
  returned: success
  contains:
    before:
      description: Before the task.
      type: dict
      contains:
        containerd:
          description: What containerd does.
          type: dict
          contains:
            network:
              description: Name of the network; null if there is none, or if nobody can tell.
              type: str
              sample: podnet
            known:
              description: Whether one can tell, that is, whether the runtime's configuration was understood.
              type: bool
              sample: true
            file:
              description: Name of the file that defines it; null if there is none.
              type: str
              sample: 10-podnet.conflist
            reason:
              description: Why, and which files were skipped.
              type: str
              sample: first file in load order
        crio:
          description: What CRI-O does.
          type: dict
          contains:
            network:
              description: Name of the network; null if there is none, or if nobody can tell.
              type: str
              sample: podnet
            known:
              description: Whether one can tell, that is, whether the runtime's configuration was understood.
              type: bool
              sample: true
            file:
              description: Name of the file that defines it; null if there is none.
              type: str
              sample: 10-podnet.conflist
            reason:
              description: Why, and which files were skipped.
              type: str
              sample: first file in load order
    after:
      description: After the task.
      type: dict
      contains:
        containerd:
          description: What containerd does.
          type: dict
          contains:
            network:
              description: Name of the network; null if there is none, or if nobody can tell.
              type: str
              sample: podnet
            known:
              description: Whether one can tell, that is, whether the runtime's configuration was understood.
              type: bool
              sample: true
            file:
              description: Name of the file that defines it; null if there is none.
              type: str
              sample: 10-podnet.conflist
            reason:
              description: Why, and which files were skipped.
              type: str
              sample: first file in load order
        crio:
          description: What CRI-O does.
          type: dict
          contains:
            network:
              description: Name of the network; null if there is none, or if nobody can tell.
              type: str
              sample: podnet
            known:
              description: Whether one can tell, that is, whether the runtime's configuration was understood.
              type: bool
              sample: true
            file:
              description: Name of the file that defines it; null if there is none.
              type: str
              sample: 10-podnet.conflist
            reason:
              description: Why, and which files were skipped.
              type: str
              sample: first file in load order
findings:
  description: What is wrong or doubtful with the files, as they are after the task. When the task refuses a file, why.
  type: list
  elements: dict
  returned: always
  contains:
    code:
      description: Code that never changes its meaning.
      type: str
      sample: IPAM001
    severity:
      description: V(error), V(warning) or V(info).
      type: str
      sample: warning
    where:
      description: The file.
      type: str
      sample: /etc/cni/net.d/10-podnet.conflist
    text:
      description: What it is.
      type: str
      sample: the gateway 10.1.3.1 lies outside the subnet 10.1.2.0/24
    hint:
      description: What to do.
      type: str
      sample: name an address of the subnet, or leave it out; only an IPv6 link-local gateway may lie elsewhere
    go:
      description: Whether runtime or Go plugin V(fails), V(carries_on) or is V(unaffected).
      type: str
      sample: carries_on
backups:
  description: Paths of the copies made in O(backup_dir).
  type: list
  elements: str
  returned: when O(backup_dir) is given and something changed, not in check mode
  sample:
    - /var/backups/cni/10-podnet.conflist.20261103T101500Z
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nodenet.cni.plugins.module_utils import _ansible, _options
from ansible_collections.nodenet.cni.plugins.module_utils.node import confdir, conflists, effective


def argument_spec() -> dict[str, object]:
    """The options of the module."""
    element = {
        "name": {"type": "str", "required": True},
        "plugins": {"type": "list", "elements": "dict"},
        "content": {"type": "raw"},
        "cni_version": {"type": "str"},
        "filename": {"type": "str"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    }
    return {
        "conflists": {"type": "list", "elements": "dict", "required": True, "options": element},
        **_ansible.CONF_DIR_OPTIONS,
        **_ansible.BIN_DIR_OPTIONS,
        **_ansible.FLANNEL_OPTIONS,
        **_options.RUNTIMES,
        "validate": {"type": "str", "choices": ["strict", "upstream", "none"], "default": "strict"},
        "expect_effective": {"type": "str"},
        "crio_default_network": {"type": "str"},
        "move_ranges": {"type": "bool", "default": False},
        "backup_dir": {"type": "path"},
        "mode": {"type": "raw", "default": "0644"},
    }


def manage(module: AnsibleModule) -> dict[str, object]:
    """Plan, and carry the plan out unless in check mode."""
    params = module.params
    if params["backup_dir"]:
        conflists.refuse_backup_dir(params["conf_dir"], params["backup_dir"])
    installed = confdir.installed_plugins(params["bin_dir"])
    speaks = confdir.plugin_versions(params["bin_dir"]) if installed else None
    runtimes = effective.Settings(installed, speaks, params["crio_default_network"] or "")
    runtimes.read_runtimes(params["conf_dir"], params["containerd_config"], params["crio_config"])
    options = conflists.Options(
        validate=params["validate"],
        expect_effective=params["expect_effective"] or "",
        runtimes=runtimes,
        bin_dir=params["bin_dir"],
        mode=conflists.parse_mode(params["mode"]),
        flannel_subnet_file=params["flannel_subnet_file"],
        move_ranges=params["move_ranges"],
    )
    modes = conflists.modes_of(params["conf_dir"], [conflists.file_name(one) for one in params["conflists"]])
    plan = conflists.make_plan(confdir.read_conf_dir(params["conf_dir"]), params["conflists"], modes, options)
    result = dict(plan.result)
    if module._diff:
        result["diff"] = plan.diff
    if not module.check_mode and plan.result["changed"]:
        from ansible_collections.nodenet.cni.plugins.module_utils.node import confwrite  # most tasks change nothing

        backups = confwrite.apply_plan(plan, params["backup_dir"])
        if params["backup_dir"]:
            result["backups"] = backups
    _ansible.warn_findings(module, plan.result["findings"])
    return result


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    _ansible.run(module, lambda: manage(module))


if __name__ == "__main__":
    main()
