#!/usr/bin/python
# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_local_gc
short_description: Free the addresses of dead containers in the data directories of host-local
version_added: 0.1.0
author:
  - The nodenet.cni authors (@nodenet)
description:
  - Finds out which containers of the node are alive and frees the addresses of the CNI plugin C(host-local) whose
    owners are not, the leaked ones.
  - Use it when a pool runs full although few containers run, after a crash or a power cut, or when a container runtime
    was reset.
  - It is careful. Each doubt keeps a reservation, and doubt about who is alive ends the task with nothing freed.
    What goes is written to a journal first, and M(nodenet.cni.host_local_reservation) puts it back with the option
    C(restore).
extends_documentation_fragment:
  - nodenet.cni._attributes
  - nodenet.cni._attributes.actiongroup_all
  - nodenet.cni._attributes.platform
  - nodenet.cni._options.conf_dir
  - nodenet.cni._options.flannel
  - nodenet.cni._options.liveness
  - nodenet.cni._options.lock
  - nodenet.cni._options.state_dir
attributes:
  check_mode:
    support: full
    details:
      - The same sources are asked, and RV(removed) has exactly what would go. Nothing is written, but for what
        C(podman) itself does in its storage when it is asked.
  diff_mode:
    support: full
    details:
      - Shows the reservations that go, one line each.
  idempotent:
    support: full
options:
  networks:
    description:
      - Names of the networks in which to free addresses.
      - One of O(networks) and O(all) is needed. The reservations of other networks are looked at as well, since they
        show whether the sources know the containers of this node.
    type: list
    elements: str
  all:
    description:
      - Free addresses in all networks of O(conf_dir) that use C(host-local).
    type: bool
  orphans:
    description:
      - Also free addresses in directories of networks that no configuration names any more. With O(networks), it allows
        such names; with O(all), all such directories beside the others are included.
    type: bool
    default: false
  data_dir:
    description:
      - Look for the networks in this data directory instead of those that the configurations name.
    type: path
  live:
    description:
      - A list of who is alive, from somebody who knows, such as a runtime that this module does not. It counts
        together with what the sources on the node say.
      - The ids have to be those that the runtime passes to CNI plugins. In Kubernetes these are ids of sandboxes
        (C(crictl pods -q --no-trunc)). The ids of containers in the status of a pod are others, and with a list of
        those everybody seems dead.
    type: dict
    suboptions:
      attachments:
        description:
          - All live attachments of the node.
        type: list
        elements: dict
        required: true
        suboptions:
          container_id:
            description:
              - Id of the sandbox or container as the runtime passes it to CNI plugins, or its first 12 or more
                characters.
            type: str
            required: true
          ifname:
            description:
              - Name of the interface. When left out, all interfaces of the container are alive.
            type: str
      age:
        description:
          - How old the list is, in seconds. A container that is younger than that, and O(grace), is kept.
        type: float
        default: 0
  force_empty:
    description:
      - Believe sources that know none of the reservations. Without it the task fails then, because such a list is more
        often wrong than right, unless a container runtime is up and all reservations are older than the last boot of
        the node.
    type: bool
    default: false
notes:
  - Static reservations are never touched. Of a sticky address, the file that names its present holder goes when that
    container is dead, the reservation stays.
  - An id of a form that no source lists (such as C(<namespace>-<id>) where only plain ids are known) is kept, and
    RV(findings) says so. Empty address files past the grace age go, since nobody can own them.
  - What was restored is freed again if its owner still seems dead. Only M(nodenet.cni.host_local_gc_timer) leaves it
    alone.
  - A network whose data directory lies on a file system that other nodes may share, such as NFS, is refused.
  - Neither plugins nor containers are called or changed. To look into namespaces without processes it needs root.
seealso:
  - module: nodenet.cni.host_local_info
  - module: nodenet.cni.host_local_reservation
"""

EXAMPLES = r"""
- name: See which addresses leaked
  nodenet.cni.host_local_gc:
    all: true
  check_mode: true
  diff: true
  register: leaked

- name: Free the leaked addresses of one network
  nodenet.cni.host_local_gc:
    networks:
      - cbr0
  register: freed

- name: Take that back
  nodenet.cni.host_local_reservation:
    network: cbr0
    restore: "{{ freed.run_id }}"
  when: freed.run_id

- name: Free what a former network left, on a node that was drained
  nodenet.cni.host_local_gc:
    networks:
      - old-net
    orphans: true
    force_empty: true

- name: Give the list of the living, on a node whose runtime this module does not know
  nodenet.cni.host_local_gc:
    all: true
    live:
      attachments:
        - container_id: 315bbe38938f72661913b5ed4c645249fdb913219e9898d43a39ccb85abfe0f4
          ifname: eth0
      age: 30
"""

RETURN = r"""
run_id:
  description: Name of this run, for the option C(restore). Null if nothing was freed.
  returned: success
  type: str
  sample: 20261129T201500Z-3fa2c1
journal:
  description: File that has everything that was freed. Null if nothing was freed.
  returned: success
  type: str
  sample: /var/lib/nodenet-cni/reclaimed/20261129T201500Z-3fa2c1.json
networks:
  description: Names of the networks in which addresses were to be freed.
  returned: success
  type: list
  elements: str
  sample:
    - cbr0
removed:
  description: Reservations that went, or would go in check mode.
  returned: success
  type: list
  elements: dict
  contains: &fate
    network:
      description: Name of the network.
      type: str
      sample: cbr0
    data_dir:
      description: Data directory in which the directory of the network lies.
      type: str
      sample: /var/lib/cni/networks
    address:
      description: The address, as its file is named.
      type: str
      sample: 10.244.1.3
    container_id:
      description: The id in the address file, empty if the file is.
      type: str
      sample: 56c4723cbd9b4b6b7edd6b9ed83f67948833f935b85829576f54e39d7bb79617
    ifname:
      description: The interface name, empty in files of old plugin releases.
      type: str
      sample: eth0
    owner:
      description: Owner of a static reservation, null for one of a container.
      type: str
      sample: vip-db
    static:
      description: Whether an operator made the reservation, not a runtime.
      type: bool
      sample: false
    age_s:
      description: Seconds since the address file was written.
      type: int
      sample: 86400
    reason:
      description:
        - Why it goes, V(dead) or V(empty) (a file without content past the grace age).
        - Why it stays, V(static), V(alive), V(young), V(unknown_form) (no source knows ids of this form), V(unclear)
          (the file holds no id), V(doubtful) (somebody with such an id is alive whom no runtime lists) or V(changed)
          (the file was not the same any more when it was read again).
      type: str
      sample: dead
    by:
      description: Who says that it is alive; for V(doubtful), the address that is in use.
      type: list
      elements: str
      sample:
        - containerd
kept:
  description: Reservations that stay, static ones included.
  returned: success
  type: list
  elements: dict
  contains: *fate
sources:
  description: What was asked about who is alive.
  returned: success, or failure because of them
  type: list
  elements: dict
  contains:
    name:
      description: A value of O(sources), the name of a program, or V(list) for O(live).
      type: str
      sample: containerd
    place:
      description: Directory or socket that was asked.
      type: str
      sample: /var/lib/containerd
    authoritative:
      description: Whether the source can say that somebody is dead.
      type: bool
      sample: true
    state:
      description: One of V(found), V(empty) and V(failed).
      type: str
      sample: found
    found:
      description: How many attachments, ids or addresses it knows to be alive.
      type: int
      sample: 12
    id_forms:
      description: Forms of id that it can judge.
      type: list
      elements: str
      sample:
        - <64 hex>
    reason:
      description: Why it failed, else null.
      type: str
      sample: /run/containerd/containerd.sock does not answer (connection refused)
findings:
  description: What is wrong or doubtful, the gravest first.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: Stable code of the finding.
      type: str
      sample: IPAM024
    severity:
      description: One of V(error), V(warning) and V(info).
      type: str
      sample: info
    where:
      description: The file or directory that the finding is about.
      type: str
      sample: /var/lib/cni/networks/cbr0
    text:
      description: What was found.
      type: str
      sample: "1 reservation(s) with a form of id that no listed attachment has: 10.244.1.9"
    hint:
      description: What to do about it.
      type: str
      sample: another runtime may own them; list its attachments too
    go:
      description: What the Go plugins do about it, one of V(fails), V(carries_on) and V(unaffected).
      type: str
      sample: unaffected
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nodenet.cni.plugins.module_utils import _ansible, _liveness
from ansible_collections.nodenet.cni.plugins.module_utils.node import reclaim_run

ATTACHMENT = {"container_id": {"type": "str", "required": True}, "ifname": {"type": "str"}}
LIVE = {
    "attachments": {"type": "list", "elements": "dict", "required": True, "options": ATTACHMENT},
    "age": {"type": "float", "default": 0.0},
}


def collect(module):
    done = reclaim_run.reclaim_addresses(module.params, module.check_mode)
    if module._diff and done.changed:
        done.result["diff"] = _ansible.diff(*done.difference, done.place)
    _ansible.warn_findings(module, done.result["findings"])
    return done.result


def main():
    module = AnsibleModule(
        argument_spec=dict(
            _ansible.CONF_DIR_OPTIONS,
            **_ansible.FLANNEL_OPTIONS,
            **_liveness.OPTIONS,
            **_ansible.LOCK_OPTIONS,
            **_ansible.STATE_DIR_OPTIONS,
            networks={"type": "list", "elements": "str"},
            all={"type": "bool"},
            orphans={"type": "bool", "default": False},
            data_dir={"type": "path"},
            live={"type": "dict", "options": LIVE},
            force_empty={"type": "bool", "default": False},
        ),
        mutually_exclusive=[("networks", "all")],
        required_one_of=[("networks", "all")],
        supports_check_mode=True,
    )
    _ansible.run(module, lambda: collect(module))


if __name__ == "__main__":
    main()
