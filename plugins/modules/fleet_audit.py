#!/usr/bin/python
# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_audit
short_description: Compare the IPAM reports of many nodes
version_added: 0.1.0
author:
  - The nodenet.cni authors (@nodenet)
description:
  - Puts side by side what M(nodenet.cni.host_local_info) returned on each node, and finds what no node can see alone -
    an address held twice on a network that reaches over nodes, and ranges that overlap there.
  - Also lists the range sets that are nearly full, and the hosts that did not report.
  - Runs on the controller and connects to no host. Use it with C(run_once).
  - One static owner may hold the same address on many nodes. That keeps the address from all of them and is no fault.
extends_documentation_fragment:
  - nodenet.cni._attributes
  - nodenet.cni._attributes.actiongroup_all
  - nodenet.cni._attributes.controller
attributes:
  check_mode:
    support: full
    details:
      - O(dest) and O(output_dir) are not written.
  diff_mode:
    support: none
  idempotent:
    support: partial
    details:
      - The files hold the age of each reservation, so they change with time.
options:
  variable:
    description:
      - Name of the variable in which each host registered the result of M(nodenet.cni.host_local_info).
      - Not used with O(reports).
    type: str
    default: nodenet_ipam
  hosts:
    description:
      - Hosts that ought to have reported. The default is all hosts of the play, also those that failed or are
        unreachable.
    type: list
    elements: str
  reports:
    description:
      - The reports themselves, by host. Replaces O(variable).
    type: dict
  scopes:
    description:
      - Names of networks with V(shared) or V(node), to correct what the reports say.
      - A name that is in no report is a warning.
      - A bridge counts as V(node), since its configuration does not tell whether a physical port belongs to it.
    type: dict
    default: {}
  threshold:
    description:
      - Share of reserved addresses from which a range set is listed in RV(pools), above 0 and at most 1.
    type: float
    default: 0.8
  dest:
    description:
      - File on the controller to which the result is written as JSON, together with the reports.
    type: path
  output_dir:
    description:
      - Directory on the controller for C(fleet.json), which is what O(dest) gets, and for the report of each host in
        C(<host>.json). It is made if need be.
      - A relative path starts at the directory in which Ansible was started.
    type: path
seealso:
  - module: nodenet.cni.host_local_info
"""

EXAMPLES = r"""
- name: Report the networks of each node
  nodenet.cni.host_local_info:
  register: nodenet_ipam

- name: Compare the nodes
  nodenet.cni.fleet_audit:
    dest: /tmp/fleet.json
  run_once: true
  register: fleet

- name: Compare the nodes and keep all reports
  nodenet.cni.fleet_audit:
    output_dir: /tmp/audit
  run_once: true

- name: Fail if an address is held twice
  ansible.builtin.assert:
    that: not fleet.duplicates
  run_once: true

- name: Compare two saved reports, on a bridge with a physical port
  nodenet.cni.fleet_audit:
    scopes:
      lan: shared
    reports:
      n1: "{{ lookup('ansible.builtin.file', 'n1.json') | from_json }}"
      n2: "{{ lookup('ansible.builtin.file', 'n2.json') | from_json }}"
  run_once: true
"""

RETURN = r"""
report_version:
  description: Version of the form of this result.
  returned: success
  type: int
  sample: 1
complete:
  description: Whether every host reported.
  returned: success
  type: bool
  sample: true
hosts:
  description: The hosts.
  returned: success
  type: list
  elements: dict
  contains:
    host:
      description: Name of the host.
      type: str
      sample: n1
    reported:
      description: Whether its report could be used.
      type: bool
      sample: true
    reason:
      description: Why not. Null if it could.
      type: str
      sample: it reported nothing
    networks:
      description: How many networks it has.
      type: int
      sample: 2
    reservations:
      description: How many reservations it has.
      type: int
      sample: 17
    errors:
      description: How many findings of its own are errors.
      type: int
      sample: 0
    warnings:
      description: How many findings of its own are warnings.
      type: int
      sample: 1
duplicates:
  description: Addresses of shared networks that more than one node holds.
  returned: success
  type: list
  elements: dict
  contains:
    network:
      description: Name of the network.
      type: str
      sample: lan
    address:
      description: The address.
      type: str
      sample: 192.0.2.50
    hosts:
      description: The hosts.
      type: list
      elements: str
      sample:
        - n1
        - n2
    holders:
      description: Who holds it there, with the keys C(host), C(owner), C(container_id) and C(ifname).
      type: list
      elements: dict
overlaps:
  description: Ranges of shared networks that have addresses in common although they are of different nodes.
  returned: success
  type: list
  elements: dict
  contains:
    network:
      description: Name of the network.
      type: str
      sample: lan
    hosts:
      description: The hosts.
      type: list
      elements: str
      sample:
        - n1
        - n2
    members:
      description: The ranges, with the keys C(host) and C(range).
      type: list
      elements: dict
pools:
  description: Range sets of which at least O(threshold) is reserved.
  returned: success
  type: list
  elements: dict
  contains:
    host:
      description: Name of the host.
      type: str
      sample: n1
    network:
      description: Name of the network.
      type: str
      sample: cbr0
    range_set:
      description: Index of the range set.
      type: int
      sample: 0
    usable:
      description: How many addresses can be handed out in all.
      type: int
      sample: 13
    reserved:
      description: How many of them are not free.
      type: int
      sample: 12
    leaked:
      description: How many of them leaked. Null if the node was not told who is alive.
      type: int
      sample: 9
    free:
      description: How many are left.
      type: int
      sample: 1
    usage:
      description: Share of reserved addresses.
      type: float
      sample: 0.923
    action:
      description: What helps, V(gc), V(enlarge), or V(unknown) if the node was not told who is alive.
      type: str
      sample: gc
tables:
  description: For each host its report as a text table, with its findings below.
  returned: success
  type: dict
findings:
  description: What is wrong or doubtful in the fleet, the gravest first. Those of the nodes are in RV(node_findings).
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: Stable code of the finding.
      type: str
      sample: FLEET001
    severity:
      description: One of V(error), V(warning) and V(info).
      type: str
      sample: error
    where:
      description: The network or host that the finding is about.
      type: str
      sample: network lan
    text:
      description: What was found.
      type: str
      sample: address 192.0.2.50 of network 'lan' is held by n1 (vip-db), n2 (vip-web)
    hint:
      description: What to do about it.
      type: str
      sample: two nodes use one address on one segment; release it on all but one
    go:
      description: What the Go plugins do about it, one of V(fails), V(carries_on) and V(unaffected).
      type: str
      sample: carries_on
node_findings:
  description: The findings of all reports, the gravest first, each with its C(host) and the keys of RV(findings).
  returned: success
  type: list
  elements: dict
output_dir:
  description: Directory that the reports were written to.
  returned: with O(output_dir)
  type: str
  sample: /tmp/audit
dest:
  description: File that was written.
  returned: with O(dest)
  type: str
  sample: /tmp/fleet.json
"""
