#!/usr/bin/python
# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: network_probe
short_description: Prove that a container would get its network
version_added: 0.1.0
author:
  - The nodenet.cni authors (@nodenet)
description:
  - Attaches a throw-away network namespace to a CNI network as a container runtime attaches a pod, looks whether the
    network really works in it, and takes everything down again.
  - Calls all plugins of the network with ADD, CHECK and DEL and reports what each of them answered and how long it
    took. Between ADD and CHECK it compares the result with the addresses, routes and interfaces that are in the
    namespace, and asks the gateways for an answer from there.
  - The task fails when a plugin fails, hangs or says what is not so, when a gateway is silent, or when something stays
    behind after DEL.
  - DEL always runs, also when something failed, when a plugin ran out of time, and when the task is ended by a signal.
    What a probe leaves that was killed is taken down by the next one. The id of the container begins with
    C(nodenet-probe-).
  - The rotation of C(host-local) is put back where it was, unless somebody else was given an address meanwhile.
notes:
  - Needs root, and nothing but Python on the node.
  - A plugin may make things on the node that stay for the next pod, such as the bridge of the plugin C(bridge). See
    RV(interfaces_created).
  - Plugins that need a pod known to the Kubernetes API get one only by O(args), if it exists.
extends_documentation_fragment:
  - nodenet.cni._attributes
  - nodenet.cni._attributes.actiongroup_all
  - nodenet.cni._attributes.platform
  - nodenet.cni._options.bin_dir
  - nodenet.cni._options.conf_dir
  - nodenet.cni._options.flannel
  - nodenet.cni._options.lock
  - nodenet.cni._options.state_dir
attributes:
  check_mode:
    support: full
    details:
      - Reports which plugins would run, which of them are missing, and which earlier probes would be taken down. Runs
        nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
    details:
      - Reports a change only when it took down an earlier probe, or when a plugin made an interface that stays.
options:
  network:
    description:
      - Name of the network to probe, as a file in O(conf_dir) defines it. Two files that define it are an error.
      - Exactly one of O(network), O(conflist) and O(config) is required.
    type: str
  conflist:
    description:
      - File with the network to probe. It need not lie in O(conf_dir), so that a network can be tried before it is put
        into effect.
    type: path
  config:
    description:
      - The network to probe itself - a conflist, or the configuration of a single plugin.
    type: dict
  allow_shared:
    description:
      - Probe also a network whose segment reaches beyond the node, where the probe takes an address that other nodes
        see (C(macvlan), C(ipvlan), C(vlan), C(host-device), SR-IOV, addresses by DHCP, a bridge with a physical port).
      - Without it such a network is skipped.
    type: bool
    default: false
  require_gateway:
    description:
      - Fail when a gateway that the result names does not answer. With V(false) it is only reported.
    type: bool
    default: true
  ifname:
    description:
      - Name of the interface in the namespace.
    type: str
    default: eth0
  args:
    description:
      - Keys and values for C(CNI_ARGS), such as C(IgnoreUnknown) and C(K8S_POD_NAME).
    type: dict
    default: {}
  capabilities:
    description:
      - Values for the capabilities of the plugins, which get them as C(runtimeConfig), such as C(portMappings) or
        C(ips).
    type: dict
    default: {}
  timeout:
    description:
      - Seconds that each call of a plugin may take. Then it is killed with all that it started.
    type: float
    default: 30
  netns_dir:
    description:
      - Directory in which the namespace is mounted, as those of container runtimes are.
    type: path
    default: /run/netns
seealso:
  - module: nodenet.cni.conflist
  - module: nodenet.cni.plugin_binaries
"""

EXAMPLES = r"""
- name: Prove that pods of this node get their network
  nodenet.cni.network_probe:
    network: cbr0

- name: Try a network before the runtimes see it
  nodenet.cni.network_probe:
    config:
      cniVersion: 1.0.0
      name: lan
      plugins:
        - type: bridge
          bridge: cni0
          isGateway: true
          ipam:
            type: host-local
            ranges:
              - - subnet: 10.244.1.0/24

- name: Probe with a published port and a shorter time limit
  nodenet.cni.network_probe:
    network: cbr0
    timeout: 10
    capabilities:
      portMappings:
        - hostPort: 8080
          containerPort: 80
          protocol: tcp

- name: See which plugins would run
  nodenet.cni.network_probe:
    network: cbr0
  check_mode: true
"""

RETURN = r"""
network:
  description: Name of the network.
  returned: always
  type: str
  sample: cbr0
source:
  description: File that defines the network, C(config) if the task itself does.
  returned: always
  type: str
  sample: /etc/cni/net.d/10-cbr0.conflist
exhausted:
  description: Whether the task failed for nothing but that all addresses of the network are in use.
  returned: always
  type: bool
  sample: false
msg:
  description: Why the network was skipped or the task failed.
  returned: on skip or failure
  type: str
  sample: "Skipped the probe of network lan (/etc/cni/net.d/10-lan.conflist): plugin macvlan puts it on a segment that
    reaches beyond this node; allow_shared allows it"
probed:
  description: Whether plugins were called. Not in check mode, and not for a shared network without O(allow_shared).
  returned: always
  type: bool
  sample: true
plugins:
  description: The plugins of the chain, in order.
  returned: always
  type: list
  elements: str
  sample:
    - bridge
    - portmap
calls:
  description: Each call of a plugin, in order.
  returned: always
  type: list
  elements: dict
  contains:
    command:
      description: One of V(ADD), V(CHECK) and V(DEL).
      type: str
      sample: ADD
    plugin:
      description: Type of the plugin.
      type: str
      sample: bridge
    path:
      description: The executable.
      type: str
      sample: /opt/cni/bin/bridge
    seconds:
      description: How long it took.
      type: float
      sample: 0.021
    error:
      description: Why it failed, null if it succeeded.
      type: str
      sample:
    timed_out:
      description: Whether it was killed as it took longer than O(timeout).
      type: bool
      sample: false
    log:
      description: What it wrote to its standard error.
      type: str
      sample: ""
    result:
      description: What it answered to ADD, as text where that is no JSON document.
      type: raw
      returned: for ADD
      sample:
        cniVersion: 1.0.0
        ips:
          - address: 10.244.1.5/24
checks:
  description: What was compared and asked in the namespace.
  returned: always
  type: list
  elements: dict
  contains:
    check:
      description: One of V(interface), V(address), V(route) and V(gateway).
      type: str
      sample: gateway
    target:
      description: What was looked for.
      type: str
      sample: 10.244.1.1
    interface:
      description: The interface, if it matters.
      type: str
      sample: eth0
    ok:
      description: Whether it is as the result says. Null if that could not be checked.
      type: bool
      sample: true
    detail:
      description: What was found.
      type: str
      sample: answers an echo request
container_id:
  description: Id of the container that plugins were told.
  returned: when RV(probed)
  type: str
  sample: nodenet-probe-34a575b35a
netns:
  description: Path of the namespace, which is gone again.
  returned: when RV(probed)
  type: str
  sample: /run/netns/nodenet-probe-34a575b35a
result:
  description: The result of ADD of the whole chain, empty if it failed.
  returned: when RV(probed) and the task was not ended by a signal
  type: dict
  sample:
    cniVersion: 1.0.0
    ips:
      - address: 10.244.1.5/24
        gateway: 10.244.1.1
leftovers:
  description: Earlier probes that were taken down, or would be.
  returned: always
  type: list
  elements: str
  sample: []
interfaces_created:
  description: Interfaces of the node that plugins made and that stay, as they would after the first pod.
  returned: always
  type: list
  elements: str
  sample:
    - cni0
seconds:
  description: How long everything took.
  returned: when RV(probed) and the task was not ended by a signal
  type: float
  sample: 0.21
findings:
  description: What is wrong or doubtful, the gravest first.
  returned: always, unless the task was ended by a signal
  type: list
  elements: dict
  contains:
    code:
      description: Stable code of the finding.
      type: str
      sample: NODE028
    severity:
      description: One of V(error), V(warning) and V(info).
      type: str
      sample: error
    where:
      description: The file that the finding is about.
      type: str
      sample: /etc/cni/net.d/10-cbr0.conflist
    text:
      description: What was found.
      type: str
      sample: gateway 10.244.1.1 answers neither an echo request nor the question for its hardware address
    hint:
      description: What to do about it.
      type: str
      sample: pods reach nothing beyond their network; bring the gateway up, or name the right one
    go:
      description: What the runtime or the Go plugins do about it, one of V(fails), V(carries_on) and V(unaffected).
      type: str
      sample: carries_on
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nodenet.cni.plugins.module_utils import _ansible
from ansible_collections.nodenet.cni.plugins.module_utils.node.probe import probe


def main():
    module = AnsibleModule(
        argument_spec=dict(
            _ansible.BIN_DIR_OPTIONS,
            **_ansible.CONF_DIR_OPTIONS,
            **_ansible.FLANNEL_OPTIONS,
            **_ansible.LOCK_OPTIONS,
            **_ansible.STATE_DIR_OPTIONS,
            network={"type": "str"},
            conflist={"type": "path"},
            config={"type": "dict"},
            allow_shared={"type": "bool", "default": False},
            require_gateway={"type": "bool", "default": True},
            ifname={"type": "str", "default": "eth0"},
            args={"type": "dict", "default": {}},
            capabilities={"type": "dict", "default": {}},
            timeout={"type": "float", "default": 30.0},
            netns_dir={"type": "path", "default": "/run/netns"},
        ),
        mutually_exclusive=[("network", "conflist", "config")],
        required_one_of=[("network", "conflist", "config")],
        supports_check_mode=True,
    )

    def function():
        result = probe(module.params, module.check_mode)
        _ansible.warn_findings(module, result["findings"])
        return result

    _ansible.run(module, function)


if __name__ == "__main__":
    main()
