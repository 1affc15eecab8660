#!/usr/bin/python
# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_local_info
short_description: Report who holds which address of the host-local IPAM plugin
version_added: 0.1.0
author:
  - The nodenet.cni authors (@nodenet)
description:
  - Reports the networks of a node whose addresses the CNI plugin C(host-local) hands out - range sets, usage, every
    reservation with its holder, where the rotation stands, and what is wrong or doubtful.
  - Finds the data directories from the configurations, also through the C(flannel) plugin and the delegates of
    Multus, and reports directories that no configuration speaks of any more.
  - With O(live) it also says whose owner is alive and which addresses leaked.
extends_documentation_fragment:
  - nodenet.cni._attributes
  - nodenet.cni._attributes.info_module
  - nodenet.cni._attributes.actiongroup_all
  - nodenet.cni._attributes.platform
  - nodenet.cni._options.conf_dir
  - nodenet.cni._options.flannel
  - nodenet.cni._options.lock
  - nodenet.cni._options.live
options:
  networks:
    description:
      - Names of the networks to report. A name that neither a configuration nor a directory has is an error.
      - When left out, all networks of O(conf_dir) are reported, and all directories beside theirs that hold
        reservations. One whose directory or lock cannot be used is left out then, and RV(findings) says so; of a
        network that is named here it is an error.
    type: list
    elements: str
  config:
    description:
      - Report the networks of this configuration (a conflist, or that of a single plugin) instead of those of
        O(conf_dir).
    type: dict
  data_dir:
    description:
      - Look for the networks in this data directory instead of those that the configurations name.
    type: path
  results_dirs:
    description:
      - Directories of result caches, in which libcni and Multus keep what each ADD returned. They are compared with the
        reservations, to find entries that are of no use and addresses in use that nothing reserves.
      - A directory that is not there is passed over. An empty list reads none.
    type: list
    elements: path
    default:
      - /var/lib/cni/results
      - /var/lib/cni/multus/results
  previous:
    description:
      - What this module returned on the node earlier. RV(findings) then says of a range set that fills when it will be
        full, and which ranges changed. Reports that lie less than 10 minutes apart tell nothing.
    type: dict
  compact:
    description:
      - Return RV(networks[].rows) instead of RV(networks[].reservations), which is less than half as long.
        M(nodenet.cni.fleet_audit) reads both.
    type: bool
    default: false
seealso:
  - module: nodenet.cni.host_local_gc
  - module: nodenet.cni.host_local_reservation
  - module: nodenet.cni.fleet_audit
"""

EXAMPLES = r"""
- name: Report all networks of the node
  nodenet.cni.host_local_info:
  register: ipam

- name: Show how full they are
  ansible.builtin.debug:
    msg: "{{ item.name }}: {{ item.range_sets | map(attribute='free') | sum }} addresses free"
  loop: "{{ ipam.networks }}"
  loop_control:
    label: "{{ item.name }}"

- name: Report one network
  nodenet.cni.host_local_info:
    networks:
      - cbr0

- name: Report for an audit of thousands of nodes
  nodenet.cni.host_local_info:
    compact: true
    live:
      discover: true
  register: nodenet_ipam

- name: Find leaked addresses
  nodenet.cni.host_local_info:
    live:
      attachments:
        - container_id: 315bbe38938f72661913b5ed4c645249fdb913219e9898d43a39ccb85abfe0f4
          ifname: eth0
  register: ipam
"""

RETURN = r"""
report_version:
  description: Version of the form of this report.
  returned: success
  type: int
  sample: 1
taken_at:
  description: When the report was made by the clock of the node, in seconds since the epoch.
  returned: success
  type: int
  sample: 1764439200
networks:
  description: The networks, in the order in which the runtimes load them, orphan directories last.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the network.
      type: str
      sample: lan
    data_dir:
      description: Data directory in which the directory of the network lies.
      type: str
      sample: /var/lib/cni/networks
    source:
      description: File that defines the network, null for an orphan directory.
      type: str
      sample: /etc/cni/net.d/10-lan.conflist
    scope:
      description:
        - V(shared) when one layer 2 segment reaches over nodes, V(node) when each node has the subnet for itself.
        - Null for an orphan directory.
      type: str
      sample: node
    range_sets:
      description: The range sets in the order that numbers them. Empty when the configuration is missing or faulty.
      type: list
      elements: dict
      contains:
        ranges:
          description: The ranges, each as first and last address.
          type: list
          elements: str
          sample:
            - 192.0.2.1-192.0.2.254
        gateways:
          description: The gateways of the ranges, which are never handed out.
          type: list
          elements: str
          sample:
            - 192.0.2.1
        usable:
          description: How many addresses can be handed out in all.
          type: int
          sample: 253
        reserved:
          description: How many reservations there are.
          type: int
          sample: 12
        static:
          description: How many of them are static.
          type: int
          sample: 2
        leaked:
          description: How many of them have an owner who is not alive. Null without O(live).
          type: int
          sample: 0
        free:
          description: How many addresses are left.
          type: int
          sample: 241
        last_reserved:
          description: Where the rotation stands, as the file says. Null if there is none.
          type: str
          sample: 192.0.2.13
    rows:
      description:
        - All reservations, in order of addresses, a line each - address, container id, interface name, index of the
          range set, age in seconds, V(1) or V(0) for alive or not, and container id and interface of a
          holder, with a tab between. The last two are there only if there is a holder.
        - A backslash, tab, line feed or carriage return in an id or name is written as C(\\), C(\t), C(\n) or C(\r).
      returned: with O(compact=true)
      type: str
      sample: "192.0.2.50\tstatic.vip-db\teth0\t0\t86400\t"
    reservations:
      description: All reservations, in order of addresses.
      returned: with O(compact=false)
      type: list
      elements: dict
      contains:
        address:
          description: The address.
          type: str
          sample: 192.0.2.50
        owner:
          description: Owner of a static reservation, null for one of a container.
          type: str
          sample: vip-db
        container_id:
          description: The id in the address file, empty if the file is.
          type: str
          sample: static.vip-db
        ifname:
          description: The interface name, empty in files of old plugin releases.
          type: str
          sample: eth0
        static:
          description: Whether an operator made the reservation, not a runtime.
          type: bool
          sample: true
        range_set:
          description: Index of the range set that contains the address, null if there is none.
          type: int
          sample: 0
        age_s:
          description: Seconds since the address file was written.
          type: int
          sample: 86400
        alive:
          description:
            - With O(live), whether the holder is alive. Null if that is not known, and for static reservations.
          type: bool
          sample: true
        holder:
          description:
            - The container that has this static address at present. Only there when one has, in a network with
              C(stickyStatic).
          type: dict
          contains:
            container_id:
              description: Id of the container.
              type: str
              sample: 315bbe38938f72661913b5ed4c645249fdb913219e9898d43a39ccb85abfe0f4
            ifname:
              description: Name of its interface.
              type: str
              sample: eth0
            alive:
              description: With O(live), whether it is alive. Null if that is not known.
              type: bool
              sample: true
    foreign:
      description: Names in the directory that are not of the plugin. A directory has a slash at its end.
      type: list
      elements: str
      sample:
        - README
unread:
  description: Networks that could not be read, of which nothing is known. Each one is a finding too (IPAM028).
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the network. Null for a data directory whose orphan directories could not be listed.
      type: str
      sample: lan
    path:
      description: The directory that could not be read.
      type: str
      sample: /var/lib/cni/networks/lan
    reason:
      description: Why not.
      type: str
      sample: Permission denied
findings:
  description: What is wrong or doubtful, the gravest first.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: Stable code of the finding.
      type: str
      sample: IPAM011
    severity:
      description: One of V(error), V(warning) and V(info).
      type: str
      sample: warning
    where:
      description: The file or directory that the finding is about.
      type: str
      sample: /var/lib/cni/networks/cbr0
    text:
      description: What was found.
      type: str
      sample: "1 empty address file(s), owner unknown: 10.244.1.3"
    hint:
      description: What to do about it.
      type: str
      sample: left by a power cut or a full file system; no DEL ever matches them, so the addresses stay blocked
    go:
      description: What the Go plugins do about it, one of V(fails), V(carries_on) and V(unaffected).
      type: str
      sample: carries_on
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nodenet.cni.plugins.module_utils import _ansible, _options
from ansible_collections.nodenet.cni.plugins.module_utils.cni.paths import RESULTS_DIRS
from ansible_collections.nodenet.cni.plugins.module_utils.node.ipam_report import report


def main():
    module = AnsibleModule(
        argument_spec=dict(
            _ansible.CONF_DIR_OPTIONS,
            **_ansible.FLANNEL_OPTIONS,
            **_ansible.LOCK_OPTIONS,
            **_options.LIVE,
            networks={"type": "list", "elements": "str"},
            config={"type": "dict"},
            data_dir={"type": "path"},
            results_dirs={"type": "list", "elements": "path", "default": list(RESULTS_DIRS)},
            previous={"type": "dict"},
            compact={"type": "bool", "default": False},
        ),
        supports_check_mode=True,
    )
    params = module.params

    def function():
        names = ("data_dir", "config", "live", "lock_timeout", "results_dirs", "previous", "compact")
        more = {name: params[name] for name in names}
        return report(params["conf_dir"], params["flannel_subnet_file"], names=params["networks"], **more)

    _ansible.run(module, function)


if __name__ == "__main__":
    main()
