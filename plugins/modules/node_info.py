#!/usr/bin/python
# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
short_description: Report the CNI state of a node
version_added: 0.1.0
description:
  - Reports what a node has and what it needs - plugins with their versions, network configurations in load order and
    which of them each runtime uses, kernel modules and settings against what these networks need, caches, usage of
    addresses, and everything that is wrong or doubtful with any of it.
  - Use it to see why pods get no network, before an upgrade, or to watch a fleet.
  - It never creates or changes anything. Plugins are run to ask for their version.
extends_documentation_fragment:
  - nodenet.cni._attributes
  - nodenet.cni._attributes.info_module
  - nodenet.cni._attributes.actiongroup_all
  - nodenet.cni._attributes.platform
  - nodenet.cni._options.conf_dir
  - nodenet.cni._options.bin_dir
  - nodenet.cni._options.state_dir
  - nodenet.cni._options.flannel
  - nodenet.cni._options.lock
  - nodenet.cni._options.runtimes
  - nodenet.cni._options.boot
  - nodenet.cni._options.live
options:
  gather:
    description:
      - Parts of the report. Those that are left out are null, cost nothing and have no findings.
    type: list
    elements: str
    choices: [binaries, conf, prerequisites, caches, addresses, multus]
    default: [binaries, conf, prerequisites, caches, addresses, multus]
  cache_dir:
    description:
      - Directory in which runtimes keep the results of CNI calls, below C(results).
    type: path
    default: /var/lib/cni
  multus_cache_dir:
    description:
      - Directory in which Multus keeps the delegates of each pod.
    type: path
    default: /var/lib/cni/multus
  multus_kubeconfig:
    description:
      - File with the credentials of Multus.
    type: path
    default: /etc/cni/net.d/multus.d/multus.kubeconfig
  audit:
    description:
      - Return also what M(nodenet.cni.fleet_audit) compares, RV(networks) and RV(conf.files[].settings), so that one
        task on each node is enough for it.
    type: bool
    default: false
  networks:
    description:
      - Names of the networks whose addresses are reported, as in M(nodenet.cni.host_local_info). All of them when left
        out.
    type: list
    elements: str
  data_dir:
    description:
      - Look for the networks in this data directory instead of those that the configurations name.
    type: path
  previous:
    description:
      - What this module (with O(audit)) or M(nodenet.cni.host_local_info) returned on the node earlier. RV(findings)
        then says when a range set that fills will be full, and which ranges changed.
    type: dict
seealso:
  - module: nodenet.cni.node_prerequisites
  - module: nodenet.cni.host_local_info
    description: Reports reservations one by one.
author:
  - The nodenet.cni authors (@nodenet)
"""

EXAMPLES = r"""
- name: Report everything
  nodenet.cni.node_info:
  register: node

- name: Show what is wrong
  ansible.builtin.debug:
    msg: "{{ node.findings | rejectattr('severity', 'eq', 'info') | map(attribute='text') | list }}"

- name: See whether a node lacks what its networks need
  nodenet.cni.node_info:
    gather: [conf, prerequisites]
  register: node
  failed_when: node is failed or node.findings | selectattr('severity', 'eq', 'error') | list | length > 0

- name: Report what a fleet audit compares
  nodenet.cni.node_info:
    gather: [binaries, conf, caches, addresses, multus]
    audit: true
    live:
      discover: true
  register: nodenet_ipam

- name: Report the plugins that the distribution installed
  nodenet.cni.node_info:
    gather: [binaries]
    bin_dir: /usr/lib/cni
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
binaries:
  description: The plugins. Null if they were not asked for.
  returned: success
  type: dict
  contains:
    bin_dir:
      description: The directory.
      type: str
      sample: /opt/cni/bin
    exists:
      description: Whether the directory exists.
      type: bool
      sample: true
    plugins:
      description: The files in it, by name.
      type: list
      elements: dict
      contains:
        name:
          description: Name of the plugin, which is its type in a network configuration.
          type: str
          sample: bridge
        path:
          description: Where it is.
          type: str
          sample: /opt/cni/bin/bridge
        kind:
          description: V(file) or V(link).
          type: str
          sample: file
        mode:
          description: Its permissions; null for a link.
          type: str
          sample: "0755"
        sha256:
          description: Digest of the content; null for a link.
          type: str
          sample: 5ed55ea9c6b5f9f1d9ee0f2d2d3ae9ec04a7e8d56c4a5e4a6b1c1c7b1d3d0d1f
        source:
          description: What M(nodenet.cni.plugin_binaries) installed it from; null if it did not.
          type: str
          sample: cni-plugins-linux-amd64-v1.5.1.tgz
        drift:
          description: Whether somebody else changed it since.
          type: bool
          sample: false
        embedded:
          description: Whether it is one that this collection brings itself.
          type: bool
          sample: false
        version:
          description: Release in the plugin's own words; null if it does not tell.
          type: str
          sample: v1.5.1
        cni_versions:
          description:
            - Versions of the CNI specification that it speaks. Empty if it does not tell, and for files that do not
              have the name of a known plugin, which are not run.
          type: list
          elements: str
          sample: ["0.4.0", "1.0.0"]
    embedded:
      description: The plugins that this collection brings itself.
      type: list
      elements: dict
      contains:
        name:
          description: Name of the plugin.
          type: str
          sample: host-local
        version:
          description: Hash of its code.
          type: str
          sample: 0f3c61a4d2b8e97564c1b0a9d8e7f605
        python:
          description: The interpreter that it runs with; null if its code is gone.
          type: str
          sample: /usr/bin/python3.11
        python_version:
          description: Version of that interpreter now; null if it does not run.
          type: str
          sample: 3.11.2
        byte_code:
          description:
            - V(fresh), V(stale) (made by another Python, so that each call compiles anew) or V(missing) (its code is
              gone).
          type: str
          sample: fresh
conf:
  description: The network configurations. Null if they were not asked for.
  returned: success
  type: dict
  contains:
    conf_dir:
      description: The directory.
      type: str
      sample: /etc/cni/net.d
    exists:
      description: Whether the directory exists.
      type: bool
      sample: true
    files:
      description: The files that runtimes read, in load order.
      type: list
      elements: dict
      contains:
        settings:
          description:
            - Its values by their path, all but the ranges. Of secrets and of long values a digest.
            - Only there with O(audit), for files that can be loaded.
          type: dict
          sample:
            plugins[0].mtu: "1450"
        name:
          description: Name of the file.
          type: str
          sample: 10-podnet.conflist
        network:
          description: Name of the network; null if it has none.
          type: str
          sample: podnet
        cni_version:
          description: Version of the CNI specification; null if none is named.
          type: str
          sample: 1.0.0
        plugins:
          description: Types of its plugins, in order.
          type: list
          elements: str
          sample: [bridge, portmap]
        chained:
          description:
            - Types of plugins that runtimes with libcni 1.3.0 or newer add from the sub-directory of the network.
          type: list
          elements: str
          sample: []
        error:
          description: Why a runtime cannot load it; null if it can.
          type: str
          sample: null
    effective:
      description: The network that a new pod gets, by runtime (C(containerd), C(crio)).
      type: dict
      sample:
        containerd:
          network: podnet
          file: 10-podnet.conflist
          known: true
          reason: first file in load order
prerequisites:
  description: What the networks of the node need, and what it has. Null if they were not asked for.
  returned: success
  type: dict
  contains:
    kernel:
      description: Release of the running kernel.
      type: str
      sample: 6.1.0-31-amd64
    modules:
      description: The kernel modules that are needed, by name.
      type: list
      elements: dict
      contains:
        name:
          description: Name of the module.
          type: str
          sample: br_netfilter
        state:
          description: V(loaded), V(builtin), V(available), V(absent) or V(unknown).
          type: str
          sample: loaded
        needed_by:
          description: What needs it.
          type: list
          elements: str
          sample: [bridge of podnet]
    sysctls:
      description: The kernel settings that are needed, and those of the reverse path filter.
      type: list
      elements: dict
      contains:
        name:
          description: Name of the setting.
          type: str
          sample: net.ipv4.ip_forward
        value:
          description: What it is; null if the kernel has no such setting.
          type: str
          sample: "1"
        wanted:
          description: What it has to be; null if nothing needs it.
          type: str
          sample: "1"
        needed_by:
          description: What needs it.
          type: list
          elements: str
          sample: [bridge of podnet]
        at_boot:
          description: What the node's files set at boot; null if none names it.
          type: str
          sample: "1"
        set_by:
          description: The file whose value counts at boot; null if none names it.
          type: str
          sample: /etc/sysctl.d/90-nodenet-cni.conf
    exemptions:
      description: NetworkManager and firewalld, where they are installed.
      type: list
      elements: dict
      contains:
        service:
          description: V(NetworkManager) or V(firewalld).
          type: str
          sample: NetworkManager
        running:
          description: Whether it runs.
          type: bool
          sample: true
        missing:
          description: Names and patterns of interfaces, and subnets, that it does not leave alone or accept.
          type: list
          elements: str
          sample: []
caches:
  description: The caches of the runtimes and of Multus. Null if they were not asked for.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: V(results) or V(multus).
      type: str
      sample: results
    path:
      description: The directory.
      type: str
      sample: /var/lib/cni/results
    entries:
      description: How many entries it has.
      type: int
      sample: 31
    before_boot:
      description: How many of them are older than the last boot.
      type: int
      sample: 0
    oldest_age_s:
      description: Age of the oldest one in seconds; null if there is none.
      type: int
      sample: 86400
networks:
  description:
    - The networks of C(host-local), as M(nodenet.cni.host_local_info) returns them with C(compact).
  returned: with O(audit) and the part C(addresses)
  type: list
  elements: dict
  sample: []
unread:
  description: Networks that could not be read, of which nothing is known. Each one is a finding too (IPAM028).
  returned: with O(audit) and the part C(addresses)
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
addresses:
  description: The networks of C(host-local) in short. Null if they were not asked for.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the network.
      type: str
      sample: podnet
    data_dir:
      description: Directory in which its directory lies.
      type: str
      sample: /var/lib/cni/networks
    source:
      description: File that defines it; null for a directory that no configuration speaks of.
      type: str
      sample: /etc/cni/net.d/10-podnet.conflist
    scope:
      description: V(node) or V(shared), as in M(nodenet.cni.host_local_info).
      type: str
      sample: node
    usable:
      description: How many addresses can be handed out.
      type: int
      sample: 253
    free:
      description: How many are left.
      type: int
      sample: 240
    reservations:
      description: How many are reserved.
      type: int
      sample: 13
    static:
      description: How many of these an operator made.
      type: int
      sample: 2
multus:
  description: The credentials of Multus. Null if it has none, or if they were not asked for.
  returned: success
  type: dict
  contains:
    path:
      description: The file.
      type: str
      sample: /etc/cni/net.d/multus.d/multus.kubeconfig
    age_s:
      description: Seconds since it was written.
      type: int
      sample: 3600
    mode:
      description: Its permissions.
      type: str
      sample: "0600"
    expires_in_s:
      description: Seconds until its token expires, negative if it has; null if the token does not tell.
      type: int
      sample: 82800
findings:
  description: What is wrong or doubtful, of all parts, the gravest first.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: Code that never changes its meaning.
      type: str
      sample: NODE004
    severity:
      description: V(error), V(warning) or V(info).
      type: str
      sample: warning
    where:
      description: What it is about.
      type: str
      sample: net.ipv4.ip_forward
    text:
      description: What it is.
      type: str
      sample: is 0, and has to be 1 for bridge of podnet
    hint:
      description: What to do.
      type: str
      sample: run node_prerequisites, or set it; packets of pods are dropped without a word
    go:
      description: Whether runtime or Go plugin V(fails), V(carries_on) or is V(unaffected).
      type: str
      sample: carries_on
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nodenet.cni.plugins.module_utils import _ansible, _options
from ansible_collections.nodenet.cni.plugins.module_utils.node import node_report


def argument_spec() -> dict[str, object]:
    """The options of the module."""
    parts = list(node_report.PARTS)
    kubeconfig = "/etc/cni/net.d/multus.d/multus.kubeconfig"
    return {
        "gather": {"type": "list", "elements": "str", "choices": parts, "default": list(parts)},
        "cache_dir": {"type": "path", "default": "/var/lib/cni"},
        "multus_cache_dir": {"type": "path", "default": "/var/lib/cni/multus"},
        "multus_kubeconfig": {"type": "path", "default": kubeconfig},
        "audit": {"type": "bool", "default": False},
        "networks": {"type": "list", "elements": "str"},
        "data_dir": {"type": "path"},
        "previous": {"type": "dict"},
        **_ansible.CONF_DIR_OPTIONS,
        **_ansible.BIN_DIR_OPTIONS,
        **_ansible.STATE_DIR_OPTIONS,
        **_ansible.FLANNEL_OPTIONS,
        **_ansible.LOCK_OPTIONS,
        **_options.RUNTIMES,
        **_options.BOOT,
        **_options.LIVE,
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    _ansible.run(module, lambda: node_report.report(node_report.Options(module.params), module.params["gather"]))


if __name__ == "__main__":
    main()
