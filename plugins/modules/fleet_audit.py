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
  - Puts side by side what M(nodenet.cni.host_local_info), or M(nodenet.cni.node_info) with its option C(audit),
    returned on
    each node, and finds what no node can see alone.
  - On networks that reach over nodes, addresses that are held twice, also in different spelling, and ranges that
    overlap.
  - Nodes that hand out addresses of a former pod CIDR, static addresses that are planned twice, wrongly, or not as the
    nodes have them, and nodes that differ from the others in a network, in Multus, in a plugin's release, or in the
    network
    that new pods get.
  - Also lists the range sets that are nearly full, and the hosts that did not report.
  - With O(history) it says what is new, gone and growing, and when a range set will be full.
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
      - O(dest), O(files), O(output_dir) and O(history) are not written.
  diff_mode:
    support: none
  idempotent:
    support: partial
    details:
      - The files hold the age of each reservation, so they change with time.
      - With O(history) every run is a change, as each one is written down.
options:
  variable:
    description:
      - Name of the variable in which each host registered the result of M(nodenet.cni.host_local_info) or
        M(nodenet.cni.node_info).
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
  plan:
    description:
      - By host the static addresses that are planned for it, as the role P(nodenet.cni.reservations#role) takes them.
        They are compared with each other and with what the nodes have.
    type: dict
  plan_variable:
    description:
      - Name of the variable that has the plan of each host, such as C(reservations_networks). Hosts without it plan
        nothing.
    type: str
  pod_cidrs:
    description:
      - By host the pod CIDR, or the list of them, that was assigned to it. A host of which no network hands out
        addresses
        of it is a finding.
    type: dict
  pod_cidr_variable:
    description:
      - Name of the variable that has the pod CIDR of each host, or a list of them. Hosts without it are not compared.
    type: str
  pod_network:
    description:
      - Name of the network that has to hand out addresses of the pod CIDR. Any network of the host when empty.
    type: str
    default: ""
  drift:
    description:
      - What is compared between the nodes. The largest group of equal nodes is taken for what is right. Only reports of
        M(nodenet.cni.node_info) have what this needs.
      - V(conflists) are the configurations of networks without their ranges, V(multus) is that of Multus, V(plugins)
        are the
        releases of the plugins, V(effective) is the network that a new pod gets.
    type: list
    elements: str
    choices: [conflists, multus, plugins, effective]
    default: [conflists, multus, plugins, effective]
  history:
    description:
      - SQLite file on the controller to which the audit is appended. It is made if need be. RV(history) then says what
        changed since the audit before.
    type: path
  history_keep:
    description:
      - How many audits the file of O(history) holds. Older ones are removed.
    type: int
    default: 100
  fail_on:
    description:
      - Fail, after everything is written, when there are such findings - V(error), V(warning) (that or an error),
        V(info) (any),
        or codes such as V(FLEET001). V(never) names none.
    type: list
    elements: str
    default: [never]
  tables:
    description:
      - Return RV(tables).
    type: bool
    default: true
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
  mode:
    description:
      - Mode of every file that is written, such as V('0640'), an octal number in quotes.
      - When left out, files can be read by their owner only (C(0600)), as they tell which workload runs where. The
        figures name hosts and networks only, and are read by an exporter that is another user, so they are C(0644).
      - The file of O(history) is made with C(0600), and keeps the mode that it has.
    type: raw
  output_formats:
    description:
      - What O(output_dir) gets besides JSON.
      - V(html) is C(fleet.html), one page for people that needs no network and no other file. It shows the fleet at a
        glance, what to do, and each range set as a map of its addresses, and finds an address or an owner.
      - V(csv) is C(findings.csv), C(pools.csv) with a line for each range set of each host, and C(addresses.csv) with
        a line for each reservation. No cell is taken for a formula.
      - V(prometheus) is C(fleet.prom), figures for the textfile collector of the node exporter.
      - The guide of audits tells what each column and figure means.
    type: list
    elements: str
    choices: [html, csv, prometheus]
    default: [html, csv, prometheus]
  files:
    description:
      - Files on the controller to write elsewhere than in O(output_dir), or without it. Each is written beside its
        place and moved there, so that nobody ever reads half of it.
    type: dict
    suboptions:
      html:
        description:
          - Path of the page for people.
        type: path
      prometheus:
        description:
          - Path of the figures. The textfile collector reads files whose names end in C(.prom).
        type: path
      findings_csv:
        description:
          - Path of the findings of the fleet and of all hosts.
        type: path
      pools_csv:
        description:
          - Path of the table of range sets.
        type: path
      addresses_csv:
        description:
          - Path of the table of reservations.
        type: path
seealso:
  - module: nodenet.cni.host_local_info
  - module: nodenet.cni.node_info
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

- name: Give the figures to the node exporter of the controller, and a page to those who are on call
  nodenet.cni.fleet_audit:
    files:
      prometheus: /var/lib/prometheus/node-exporter/nodenet_cni.prom
      html: /srv/www/audit/index.html
    mode: "0644"
  run_once: true

- name: Fail if an address is held twice
  ansible.builtin.assert:
    that: not fleet.duplicates
  run_once: true

- name: Compare with the plan and with the audit before, and fail if something is wrong
  nodenet.cni.fleet_audit:
    plan_variable: reservations_networks
    history: /var/lib/audit/history.sqlite
    fail_on: error
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
taken_at:
  description: When the audit was made by the clock of the controller, in seconds since the epoch.
  returned: success
  type: int
  sample: 1764439200
threshold:
  description: The value of O(threshold).
  returned: success
  type: float
  sample: 0.8
summary:
  description:
    - Numbers of the fleet - C(hosts), C(reported), C(missing), C(unread) (networks that could not be read),
      C(networks), C(pools) (range sets of all hosts),
      C(usable),
      C(reserved), C(static), C(leaked), C(free) (addresses of these), C(reservations), C(duplicates), C(overlaps),
      C(errors),
      C(warnings), C(infos) (findings of both lists) and C(codes) (how often each one occurs).
  returned: success
  type: dict
  sample:
    hosts: 20
    missing: 0
    errors: 1
complete:
  description: Whether every host reported and read all of its networks. If not, that nothing was found proves nothing.
  returned: success
  type: bool
  sample: true
unread:
  description:
    - Networks that their nodes could not read. What a node has in them is not known, so they are not compared with the
      plan or with pod CIDRs, and findings about them that O(history) knows are not gone.
  returned: success
  type: list
  elements: dict
  contains:
    host:
      description: Name of the host.
      type: str
      sample: n1
    network:
      description: Name of the network. Null where it is not known.
      type: str
      sample: lan
    where:
      description: The directory that could not be read.
      type: str
      sample: /var/lib/cni/networks/lan
    reason:
      description: Why not.
      type: str
      sample: Permission denied
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
    unread:
      description: How many networks it could not read.
      type: int
      sample: 0
    errors:
      description: How many findings of its own are errors.
      type: int
      sample: 0
    warnings:
      description: How many findings of its own are warnings.
      type: int
      sample: 1
    infos:
      description: How many findings of its own are neither.
      type: int
      sample: 0
networks:
  description:
    - The networks of all hosts by name - C(network), C(scope), C(scope_from) (V(option), V(report), or V(default)
      where no
      report tells), C(hosts) and C(pools) (how many), the sums C(usable), C(reserved), C(static), C(leaked) and
      C(free), and
      how many C(duplicates) and C(overlaps) were found, and on how many hosts it is C(unread).
  returned: success
  type: list
  elements: dict
  sample: []
usage:
  description: How full each range set of each host is, with the keys of RV(pools).
  returned: success
  type: list
  elements: dict
  sample: []
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
      description: Who holds it there, with the keys C(host), C(owner), C(container_id), C(ifname) and C(alive).
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
    scope:
      description: V(shared) or V(node).
      type: str
      sample: node
    range_set:
      description: Index of the range set.
      type: int
      sample: 0
    ranges:
      description: Its ranges, each as first and last address.
      type: list
      elements: str
      sample: [10.244.1.1-10.244.1.14]
    gateways:
      description: Addresses that are never handed out.
      type: list
      elements: str
      sample: [10.244.1.1]
    static:
      description: How many reservations are static.
      type: int
      sample: 0
    per_day:
      description: By how many addresses a day it grew since the audit before. Null if that is not known.
      type: float
      sample: 1.5
    full_in_s:
      description: In how many seconds it is full at that rate. Null if it does not grow.
      type: int
      sample: 57600
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
pod_cidrs:
  description:
    - Hosts that hand out no address of a pod CIDR that was assigned to them, with the keys C(host), C(pod_cidr),
      C(networks)
      and C(ranges).
  returned: success
  type: list
  elements: dict
  sample: []
plan:
  description:
    - Where the plan contradicts itself or the nodes, with the keys C(problem) (V(twice), V(gateway),
      V(foreign_range), V(outside),
      V(invalid), V(held), V(missing) or V(unplanned)), C(network), C(address), C(hosts), C(owners), C(other_hosts)
      and C(holder).
  returned: success
  type: list
  elements: dict
  sample: []
drift:
  description:
    - Groups of hosts that differ from the majority, with the keys C(what) (V(conflist), V(multus), V(plugin) or
      V(effective)),
      C(name), C(hosts), C(others) (how many the majority has) and C(differences), a list of C(key), C(here) and
      C(there).
  returned: success
  type: list
  elements: dict
  sample: []
history:
  description:
    - What changed since the audit before. Null without O(history).
    - A finding is gone only if all of its hosts were asked, reported, and could read the network. Those of hosts that
      are away, or that are not among those asked this time, stay as they were.
  returned: success
  type: dict
  contains:
    previous_at:
      description: When the audit before was made, in seconds since the epoch. Null for the first one.
      type: int
      sample: 1764352800
    audits:
      description: How many audits the file holds, with this one.
      type: int
      sample: 2
    new:
      description: Findings that were not there, with the keys C(code), C(severity), C(host), C(where) and C(text).
      type: list
      elements: dict
      sample: []
    gone:
      description: Findings that are not there any more, with the same keys.
      type: list
      elements: dict
      sample: []
    growing:
      description:
        - Range sets with more reserved addresses, with the keys C(host), C(network), C(range_set), C(before),
          C(reserved),
          C(usable), C(per_day) and C(full_in_s).
      type: list
      elements: dict
      sample: []
    ranges_changed:
      description: Range sets with other ranges, with the keys C(host), C(network), C(range_set), C(before) and
        C(ranges).
      type: list
      elements: dict
      sample: []
failing:
  description: The codes of the findings that O(fail_on) names.
  returned: when the reports were compared
  type: list
  elements: str
  sample: []
tables:
  description: For each host its report as a text table, with its findings below.
  returned: with O(tables=true)
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
    hosts:
      description: The hosts that it is about.
      type: list
      elements: str
      sample: [n1, n2]
    network:
      description: The network that it is about. Null if it is about none.
      type: str
      sample: lan
    subject:
      description: What tells it from others of the same code and place.
      type: str
      sample: 192.0.2.50
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
shown:
  description:
    - What was found as lines for people, of each kind at most a hundred. C(errors), C(warnings) and C(infos) are the
      findings, those of the fleet first, each with its code and what to do, and those of nodes with their hosts.
      C(unread) are the networks that could not be read.
  returned: success
  type: dict
  sample:
    errors:
      - "network 'lan': 192.0.2.2-192.0.2.9 on n1 overlaps 192.0.2.5-192.0.2.9 on n2 (FLEET002): give each
        node its own part of the subnet; sooner or later both hand out one address"
    warnings: []
    infos: []
    unread: []
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
