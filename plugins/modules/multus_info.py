#!/usr/bin/python
# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: multus_info
short_description: Tell what a pod gets from Multus
version_added: 0.1.0
description:
  - Decides for pods, as Multus itself would, which networks they get. For each it tells the interface, the arguments
    and what the network's plugins are passed. Everything that is wrong is reported at once, not only what Multus would
    refuse first.
  - The annotations and networks are given, or the API server is asked with the kubeconfig of Multus.
  - Reports of which pods Multus keeps delegates on the node, how old these are, and whether their pods are alive.
  - Nothing is called, and nothing is changed.
author:
  - The nodenet.cni authors (@nodenet)
extends_documentation_fragment:
  - nodenet.cni._attributes.info_module
  - nodenet.cni._attributes.actiongroup_all
  - nodenet.cni._attributes.platform
  - nodenet.cni._options.conf_dir
  - nodenet.cni._options.live
options:
  pods:
    description:
      - The pods to decide for.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the pod.
        type: str
        required: true
      namespace:
        description: Its namespace.
        type: str
        default: default
      uid:
        description: Its UID, for the arguments of plugins.
        type: str
      annotations:
        description:
          - Its annotations. An empty dictionary is a pod without any.
          - With O(api=true) a pod is asked for unless this, O(pods[].networks) or O(pods[].default_network) is given.
        type: dict
      networks:
        description: Its annotation C(k8s.v1.cni.cncf.io/networks), in either form.
        type: str
      default_network:
        description: Its annotation C(v1.multus-cni.io/default-network).
        type: str
      ifname:
        description: Name of its first interface, as the runtime gives it.
        type: str
        default: eth0
      container_id:
        description: Id of its sandbox, for the arguments of plugins.
        type: str
  networks:
    description:
      - The networks of the cluster. Each is the whole object of the API, as C(kubernetes.core.k8s_info) returns them,
        or a dictionary with C(name), C(namespace) (V(default)), C(config) (a dictionary or text) and C(annotations).
      - With O(api=true) these take precedence over the ones of the API server.
    type: list
    elements: dict
    default: []
  config:
    description:
      - The configuration of Multus, a single plugin's or a list with Multus in it. By default the first file of
        O(conf_dir) that is of Multus.
    type: dict
  api:
    description:
      - Whether the API server is asked for what is not given, with the kubeconfig that the configuration of Multus
        names. Devices of pods are looked up on the node as well.
    type: bool
    default: false
  api_timeout:
    description:
      - Seconds for all questions to the API server together.
    type: float
    default: 30
  cached:
    description:
      - Whether the delegates that Multus keeps are reported.
    type: bool
    default: true
  cache_dir:
    description:
      - Directory in which Multus keeps them.
    type: path
    default: /var/lib/cni/multus
seealso:
  - module: nodenet.cni.multus_config
  - plugin: nodenet.cni.parse_networks
    plugin_type: filter
  - module: nodenet.cni.network_probe
notes:
  - A pod with faults does not fail the task. Look at RV(pods[].usable) or RV(findings).
"""

EXAMPLES = r"""
- name: See what a pod will get before it is made, without a cluster
  nodenet.cni.multus_info:
    cached: false
    config:
      cniVersion: 1.0.0
      name: multus-cni-network
      type: multus
      delegates:
        - cniVersion: 1.0.0
          name: cbr0
          type: bridge
    networks:
      - name: lan
        namespace: prod
        config:
          cniVersion: 1.0.0
          type: macvlan
          master: eth1
    pods:
      - name: web-0
        namespace: prod
        networks: lan@lan0
  register: multus

- name: Refuse it when Multus would
  ansible.builtin.assert:
    that: multus.pods | map(attribute='usable') is all
    fail_msg: "{{ multus.findings | map(attribute='text') | join('; ') }}"

- name: See why a pod of the cluster does not start
  nodenet.cni.multus_info:
    api: true
    pods:
      - name: web-0
        namespace: prod

- name: Find what Multus keeps of pods that are gone
  nodenet.cni.multus_info:
    live:
      discover: true
  register: multus
"""

RETURN = r"""
config_source:
  description: Where the configuration of Multus comes from; null if no pod was asked for.
  type: str
  returned: success
  sample: /etc/cni/net.d/00-multus.conflist
pods:
  description: The pods, in the order of O(pods).
  type: list
  elements: dict
  returned: success
  contains:
    namespace:
      description: Its namespace.
      type: str
      sample: prod
    name:
      description: Its name.
      type: str
      sample: web-0
    uid:
      description: Its UID; null if it is not known.
      type: str
      sample: 5e0d2f7e-2bd5-4bd0-8a6d-3a1c1b2f7d11
    usable:
      description: Whether Multus would call the plugins of all of its networks.
      type: bool
      sample: true
    refusal:
      description: How the message of Multus ends that stands in the events of the pod; null if it does not refuse it.
      type: str
      sample: null
    delegates:
      description: The networks in the order in which they are attached. Those that cannot be decided are missing.
      type: list
      elements: dict
      contains:
        index:
          description: Position among all networks of the pod, from 0. Automatic names of interfaces count it.
          type: int
          sample: 1
        name:
          description: What Multus calls it, C(<namespace>/<name>) for a network of the cluster.
          type: str
          sample: prod/lan
        network:
          description: Name of the network in its configuration.
          type: str
          sample: lan
        cni_version:
          description: Version of the CNI specification in its configuration; empty if it names none.
          type: str
          sample: 1.0.0
        master:
          description: Whether it is the pod's first network, whose result the runtime gets.
          type: bool
          sample: false
        interface:
          description: Name of its interface.
          type: str
          sample: lan0
        cni_args:
          description: What its plugins get as C(CNI_ARGS).
          type: str
          sample: IgnoreUnknown=true;K8S_POD_NAMESPACE=prod;K8S_POD_NAME=web-0;K8S_POD_INFRA_CONTAINER_ID=;K8S_POD_UID=
        plugins:
          description: Its plugins, in order.
          type: list
          elements: dict
          contains:
            type:
              description: Type of the plugin.
              type: str
              sample: macvlan
            runtime_config:
              description: What it gets as C(runtimeConfig), by its own capabilities.
              type: dict
              sample: {}
        default_route:
          description: The gateways for which it takes the default route.
          type: list
          elements: str
          sample: []
        device_id:
          description: Its device; null if it has none, or if that is not known.
          type: str
          sample: null
        config:
          description: Its configuration with what the pod asks for, before names and versions are put in.
          type: dict
          sample:
            cniVersion: 1.0.0
            name: lan
            type: macvlan
    findings:
      description: What is wrong or doubtful with this pod and its networks, the gravest first, as in RV(findings).
      type: list
      elements: dict
      contains:
        code:
          description: Code that never changes its meaning.
          type: str
          sample: MULTUS010
        severity:
          description: V(error), V(warning) or V(info).
          type: str
          sample: error
        where:
          description: The pod or the network.
          type: str
          sample: pod prod/web-0
        text:
          description: What it is.
          type: str
          sample: there is no network prod/lan, but there is default/lan
        hint:
          description: What to do.
          type: str
          sample: write the namespace before the name; without one the pod's own counts
        go:
          description: Whether Go's Multus V(fails), V(carries_on) or is V(unaffected).
          type: str
          sample: fails
cached:
  description: The pods of which Multus keeps delegates, by container id. Empty with O(cached=false).
  type: list
  elements: dict
  returned: success
  contains:
    container_id:
      description: Id of the sandbox.
      type: str
      sample: 315bbe38938f72661913b5ed4c645249fdb913219e9898d43a39ccb85abfe0f4
    age_s:
      description: Seconds since its networks were decided.
      type: int
      sample: 3600
    usable:
      description: Whether its delegates can be read.
      type: bool
      sample: true
    namespace:
      description: Namespace of the pod; null if no attachment tells.
      type: str
      sample: prod
    name:
      description: Name of the pod; null if no attachment tells.
      type: str
      sample: web-0
    uid:
      description: UID of the pod; null if no attachment tells.
      type: str
      sample: 5e0d2f7e-2bd5-4bd0-8a6d-3a1c1b2f7d11
    alive:
      description: With O(live), whether it is alive. Null if that is not known.
      type: bool
      sample: true
    delegates:
      description: Its networks, in the order in which they were attached.
      type: list
      elements: dict
      contains:
        name:
          description: What Multus calls it.
          type: str
          sample: prod/lan
        network:
          description: Name of the network in its configuration.
          type: str
          sample: lan
        interface:
          description: Name of its interface.
          type: str
          sample: lan0
        attached:
          description: Whether there is a result of its attachment, which its end removes.
          type: bool
          sample: true
findings:
  description: What is wrong or doubtful, of all pods and of the cache, the gravest first.
  type: list
  elements: dict
  returned: success
  contains:
    code:
      description: Code that never changes its meaning.
      type: str
      sample: MULTUS010
    severity:
      description: V(error), V(warning) or V(info).
      type: str
      sample: error
    where:
      description: The pod, the network or the file.
      type: str
      sample: pod prod/web-0
    text:
      description: What it is.
      type: str
      sample: there is no network prod/lan, but there is default/lan
    hint:
      description: What to do.
      type: str
      sample: write the namespace before the name; without one the pod's own counts
    go:
      description: Whether Go's Multus V(fails), V(carries_on) or is V(unaffected).
      type: str
      sample: fails
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nodenet.cni.plugins.module_utils import _ansible, _options
from ansible_collections.nodenet.cni.plugins.module_utils.node import multus_report


def argument_spec() -> dict[str, object]:
    """The options of the module."""
    pod = {
        "name": {"type": "str", "required": True},
        "namespace": {"type": "str", "default": "default"},
        "annotations": {"type": "dict"},
        "ifname": {"type": "str", "default": "eth0"},
        **{key: {"type": "str"} for key in ("uid", "networks", "default_network", "container_id")},
    }
    return {
        "pods": {"type": "list", "elements": "dict", "options": pod, "default": []},
        "networks": {"type": "list", "elements": "dict", "default": []},
        "config": {"type": "dict"},
        "api": {"type": "bool", "default": False},
        "api_timeout": {"type": "float", "default": 30.0},
        "cached": {"type": "bool", "default": True},
        "cache_dir": {"type": "path", "default": "/var/lib/cni/multus"},
        **_ansible.CONF_DIR_OPTIONS,
        **_options.LIVE,
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    _ansible.run(module, lambda: multus_report.report(module.params))


if __name__ == "__main__":
    main()
