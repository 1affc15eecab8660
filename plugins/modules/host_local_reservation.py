#!/usr/bin/python
# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_local_reservation
short_description: Reserve static addresses in the data directory of the host-local IPAM plugin
version_added: 0.1.0
author:
  - The nodenet.cni authors (@nodenet)
description:
  - Reserves addresses for owners of your choice, moves and releases them, in the directory from which the CNI plugin
    C(host-local) hands out addresses. The plugin never gives a reserved address to a container.
  - Use it for addresses that something outside of the container runtime uses, and to give back what a container left
    behind.
  - The whole list is planned and written under one hold of the plugin's own lock. If anything in it is refused, nothing
    is changed.
extends_documentation_fragment:
  - nodenet.cni._attributes
  - nodenet.cni._attributes.actiongroup_all
  - nodenet.cni._attributes.platform
  - nodenet.cni._options.conf_dir
  - nodenet.cni._options.flannel
  - nodenet.cni._options.lock
  - nodenet.cni._options.state_dir
attributes:
  check_mode:
    support: full
    details:
      - The same plan is made from the same files, under a shared lock if there is a lock file. Nothing is created.
  diff_mode:
    support: full
    details:
      - Shows the reservations that the task concerns, one line each.
  idempotent:
    support: full
options:
  network:
    description:
      - Name of the network, looked up in O(conf_dir). It is an error when more than one file defines it.
      - Exactly one of O(network), O(config) and O(conflist) is needed.
    type: str
  config:
    description:
      - Configuration of the network, as a conflist or as that of a single plugin.
    type: dict
  conflist:
    description:
      - Path of a file on the node that holds the configuration of the network.
    type: path
  ranges:
    description:
      - Range sets to use instead of those of the configuration, in the form of C(ipam.ranges). Each set is a list of
        dictionaries with the keys C(subnet), C(rangeStart), C(rangeEnd) and C(gateway).
      - With O(network), O(ranges) and O(data_dir) no configuration is read at all.
    type: list
    elements: list
  data_dir:
    description:
      - Data directory to use instead of the C(dataDir) of the configuration. The network's files are in a directory
        below it that has the network's name.
      - The plugin's own default is C(/var/lib/cni/networks).
    type: path
  reservations:
    description:
      - What each owner shall hold. Needed without O(restore).
      - Write an empty list together with O(purge=true) to release all static reservations.
    type: list
    elements: dict
    suboptions:
      owner:
        description:
          - Name of the owner of a static reservation. Starts with a letter or digit, goes on with letters, digits,
            C(_), C(.) and C(-), and has at most 241 characters.
          - It is stored as the container id C(static.<owner>).
          - Exactly one of O(reservations[].owner) and O(reservations[].container_id) is needed.
        type: str
      container_id:
        description:
          - Id of a container, as its runtime passes it to CNI plugins. May not start with C(static.).
        type: str
      ifname:
        description:
          - Name of the container's network interface.
        type: str
        default: eth0
      addresses:
        description:
          - With O(reservations[].state=present), the owner holds exactly these addresses afterwards, at most one of
            each range set, IPv4 and IPv6 in any order.
          - When left out, the owner keeps what it holds and gets the lowest free address of each range set of which it
            holds none. After a change of the ranges an address outside of them counts as well.
          - With O(reservations[].state=absent), only these addresses are released, and only if the owner holds them.
        type: list
        elements: str
      state:
        description:
          - Whether the owner shall hold addresses or not.
          - Releasing works without valid ranges.
          - A file of an old plugin release, which names a container but no interface, belongs to an entry that lists
            its address or lists none. A release frees it if it lists its address, or if the interface has no file of
            its own, as the plugin does.
        type: str
        choices:
          - present
          - absent
        default: present
  purge:
    description:
      - Release all static reservations of the network that O(reservations) does not list. Reservations of
        containers are never touched.
    type: bool
    default: false
  purge_prefix:
    description:
      - With O(purge=true), release only those whose owner begins with this text.
    type: str
  on_conflict:
    description:
      - What to do when a listed address is held by somebody else, or a container has an address that is to be released.
    type: str
    choices:
      fail: Fail and name the holder.
      keep: Leave the holder and whoever wants the address as they are, and list the address in RV(conflicts).
    default: fail
  restore:
    description:
      - Put back what a run of M(nodenet.cni.host_local_gc) freed in O(network), named by the C(run_id) that it
        returned. The files get the content, mode and time that they had, and M(nodenet.cni.host_local_gc_timer) leaves
        them alone from then on.
      - An address that somebody else holds by now is left alone and listed in RV(conflicts), whatever O(on_conflict)
        says.
      - No configuration is read for it. With O(data_dir), only what was freed below that directory is meant.
    type: str
notes:
  - C(last_reserved_ip.N), the plugin's rotation, is neither read nor written. A static reservation does not move it.
  - An address that is held already is kept when it has come to lie outside of the ranges, and RV(findings) says so. A
    new address outside of the ranges is refused, and so is a gateway.
  - An address that is held under an odd spelling, such as C(2001:DB8::5), is taken for nobody but this module. Its file
    is replaced by one with the canonical name, and RV(moved) says so.
  - An empty address file that is older than 60 seconds was left by a crash and is replaced when its address is wanted.
  - In a network with C(stickyStatic), an owner C(<namespace>.<pod>) stands for a pod, which gets the owner's addresses.
    While a container has such an address, its reservation is neither released nor moved - that is a conflict as well.
    An entry with the O(reservations[].container_id) of that container and O(reservations[].state=absent) makes it free
    for the next container of the pod.
seealso:
  - module: nodenet.cni.host_local_info
  - module: nodenet.cni.host_local_gc
"""

EXAMPLES = r"""
- name: Reserve an address for a virtual IP
  nodenet.cni.host_local_reservation:
    network: lan
    reservations:
      - owner: vip-db
        addresses:
          - 192.0.2.50

# One task for the whole list. Owners of the former plan that are no longer listed lose their addresses.
- name: Own the static addresses of a network
  nodenet.cni.host_local_reservation:
    network: lan
    purge: true
    reservations:
      - owner: vip-db
        addresses:
          - 192.0.2.50
          - 2001:db8::50
      - owner: vip-web
        addresses:
          - 192.0.2.51
      - owner: printer # gets the lowest free address of each range set, and keeps it

- name: See what would change, and where somebody else holds an address
  nodenet.cni.host_local_reservation:
    network: lan
    on_conflict: keep
    reservations: "{{ address_plan }}"
  check_mode: true
  diff: true
  register: plan

- name: Give back what a container left behind
  nodenet.cni.host_local_reservation:
    network: cbr0
    reservations:
      - container_id: 315bbe38938f72661913b5ed4c645249fdb913219e9898d43a39ccb85abfe0f4
        state: absent

- name: Reserve in a network that has no configuration on this node yet
  nodenet.cni.host_local_reservation:
    network: storage
    data_dir: /var/lib/cni/networks
    ranges:
      - - subnet: 198.51.100.0/24
          rangeStart: 198.51.100.10
    reservations:
      - owner: nas

- name: Take back what a run of host_local_gc freed
  nodenet.cni.host_local_reservation:
    network: cbr0
    restore: 20261129T201500Z-3fa2c1
"""

RETURN = r"""
network:
  description: Name of the network.
  returned: success
  type: str
  sample: lan
data_dir:
  description: Data directory in which the directory of the network lies.
  returned: success
  type: str
  sample: /var/lib/cni/networks
reservations:
  description:
    - What the listed owners hold after the task, in order of addresses. With O(restore), what the run had freed and is
      held again; RV(reservations[].range_set) is null then.
  returned: success
  type: list
  elements: dict
  contains: &reservation
    address:
      description: The address.
      type: str
      sample: 192.0.2.50
    owner:
      description: Owner of a static reservation, null for one of a container.
      type: str
      sample: vip-db
    container_id:
      description: The id in the address file.
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
added:
  description: Reservations that the task made, without those of RV(moved).
  returned: success
  type: list
  elements: dict
  contains: *reservation
removed:
  description: Reservations that the task took away, without those of RV(moved).
  returned: success
  type: list
  elements: dict
  contains: *reservation
moved:
  description: Addresses of an owner that the task replaced by another one, or by the canonical spelling.
  returned: success
  type: list
  elements: dict
  contains:
    owner:
      description: Owner of a static reservation, null for one of a container.
      type: str
      sample: vip-db
    container_id:
      description: The id in the address file.
      type: str
      sample: static.vip-db
    ifname:
      description: The interface name.
      type: str
      sample: eth0
    from:
      description: The former address, as its file is named.
      type: str
      sample: 192.0.2.50
    to:
      description: The new address.
      type: str
      sample: 192.0.2.60
conflicts:
  description:
    - Listed addresses that somebody else holds, and sticky addresses that were to be released although a container has
      them. Without O(on_conflict=keep) the task fails and returns them too.
  returned: success, or failure because of them
  type: list
  elements: dict
  contains:
    address:
      description: The address.
      type: str
      sample: 192.0.2.50
    wanted_by:
      description: Owner or container id that wants it, or whose reservation was to go.
      type: str
      sample: vip-web
    held_by:
      description: Owner or container id that holds it.
      type: str
      sample: vip-db
findings:
  description: What is wrong or doubtful, the gravest first.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: Stable code of the finding.
      type: str
      sample: IPAM017
    severity:
      description: One of V(error), V(warning) and V(info).
      type: str
      sample: warning
    where:
      description: The file, network or address that the finding is about.
      type: str
      sample: network lan (/var/lib/cni/networks/lan)
    text:
      description: What was found.
      type: str
      sample: "1 reservation(s) outside every range: 192.0.2.50"
    hint:
      description: What to do about it.
      type: str
      sample: the ranges changed after these addresses were handed out; they stay until their owner gives them back
    go:
      description: What the Go plugins do about it, one of V(fails), V(carries_on) and V(unaffected).
      type: str
      sample: unaffected
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nodenet.cni.plugins.module_utils import _ansible
from ansible_collections.nodenet.cni.plugins.module_utils.node import reserving

NOT_WITH_RESTORE = ("config", "conflist", "ranges", "reservations", "purge_prefix")
RESERVATION_OPTIONS = {
    "owner": {"type": "str"},
    "container_id": {"type": "str"},
    "ifname": {"type": "str", "default": "eth0"},
    "addresses": {"type": "list", "elements": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def reserve(module):
    done = reserving.reserve(module.params, module.check_mode)
    for warning in done.warnings:
        module.warn(warning)
    if module._diff and done.result["changed"]:
        done.result["diff"] = _ansible.diff(*done.difference(), done.path)
    return done.result


def main():
    module = AnsibleModule(
        argument_spec=dict(
            _ansible.CONF_DIR_OPTIONS,
            **_ansible.FLANNEL_OPTIONS,
            **_ansible.LOCK_OPTIONS,
            **_ansible.STATE_DIR_OPTIONS,
            network={"type": "str"},
            config={"type": "dict"},
            conflist={"type": "path"},
            ranges={"type": "list", "elements": "list"},
            data_dir={"type": "path"},
            reservations={
                "type": "list",
                "elements": "dict",
                "options": RESERVATION_OPTIONS,
                "mutually_exclusive": [("owner", "container_id")],
                "required_one_of": [("owner", "container_id")],
            },
            purge={"type": "bool", "default": False},
            purge_prefix={"type": "str"},
            on_conflict={"type": "str", "choices": ["fail", "keep"], "default": "fail"},
            restore={"type": "str"},
        ),
        mutually_exclusive=[("network", "config", "conflist"), *(("restore", name) for name in NOT_WITH_RESTORE)],
        required_one_of=[("network", "config", "conflist"), ("reservations", "restore")],
        supports_check_mode=True,
    )
    _ansible.run(module, lambda: reserve(module))


if __name__ == "__main__":
    main()
