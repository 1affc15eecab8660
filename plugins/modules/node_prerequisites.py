#!/usr/bin/python
# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_prerequisites
short_description: Prepare kernel, NetworkManager and firewalld of a node for CNI plugins
version_added: 0.1.0
description:
  - Loads the kernel modules and sets the kernel settings (sysctls) that the plugins of a node need, and keeps
    NetworkManager and firewalld away from the interfaces of containers, now and at each boot.
  - Use it before the first container comes, and again when networks change. It does only what the plugins that are
    used need, and what is right already is left alone.
  - What plugins need comes from O(plugins), from O(configs), or from the networks in O(conf_dir).
  - Everything is checked before anything changes. A module that the kernel does not have, and a setting that cannot be
    written here, are errors.
  - What other files set is never changed. Where they contradict, a finding says which one counts at the next boot.
extends_documentation_fragment:
  - nodenet.cni._attributes
  - nodenet.cni._attributes.actiongroup_all
  - nodenet.cni._attributes.platform
  - nodenet.cni._options.conf_dir
  - nodenet.cni._options.bin_dir
  - nodenet.cni._options.state_dir
  - nodenet.cni._options.flannel
  - nodenet.cni._options.boot
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  plugins:
    description:
      - Types of the plugins that will be used, for example V(bridge) and V(portmap). A V(bridge) counts as a gateway
        called C(cni0).
      - Types that are not known here need nothing.
    type: list
    elements: str
  ip_versions:
    description:
      - IP versions of the addresses that O(plugins) will hand out. Networks tell theirs by their addresses.
    type: list
    elements: int
    choices: [4, 6]
    default: [4]
  configs:
    description:
      - Network configurations as dictionaries, which need not be on the node yet, for example the values of
        RV(nodenet.cni.conflist#module:documents).
    type: list
    elements: dict
  networks:
    description:
      - Names of networks in O(conf_dir).
      - When neither this nor O(plugins) nor O(configs) is given, all of O(conf_dir) count.
    type: list
    elements: str
  modules:
    description:
      - Further kernel modules.
    type: list
    elements: str
    default: []
  sysctls:
    description:
      - Further kernel settings by name, or other values for those that plugins need.
      - A dot in the name of an interface is written as a slash, C(net.ipv4.conf.eth0/100.rp_filter).
    type: dict
    default: {}
  rp_filter:
    description:
      - How the kernel checks the way back of a packet, in C(net.ipv4.conf.all) and C(net.ipv4.conf.default). Pods
        take over what the node has.
      - V(keep) leaves it as it is. V(loose) suits pods with several interfaces. V(strict) is the safer one for others.
    type: str
    choices: [keep, loose, strict]
    default: keep
  bridge_nf_call:
    description:
      - Whether packets between the ports of a bridge pass the firewall rules of the node, as Kubernetes services and
        network policies need it. It holds for all bridges of the node, those of virtual machines too.
    type: bool
    default: true
  interfaces:
    description:
      - Further names and patterns of interfaces that NetworkManager has to leave alone.
    type: list
    elements: str
    default: []
  exempt:
    description:
      - What is kept away from the interfaces of containers, where it is installed.
      - NetworkManager gets a drop-in that adds them to those it does not manage, and is told to read it if it runs.
      - firewalld gets a zone that accepts what comes from bridges, and from the subnets of C(ptp) networks. It is not
        reloaded, since that would flush the rules of running containers; until its next start they are in the zone
        V(trusted).
    type: list
    elements: str
    choices: [networkmanager, firewalld]
    default: [networkmanager, firewalld]
  directories:
    description:
      - Which directories have to exist, of O(bin_dir) (V(bin)), O(conf_dir) (V(conf)), O(data_dir) (V(data)) and
        O(state_dir) (V(state)). Those that do keep their mode and owner.
      - V(bin) is not among the defaults, because an empty bin directory makes some runtimes look there instead of where
        their plugins are. M(nodenet.cni.plugin_binaries) creates it along with plugins.
    type: list
    elements: str
    choices: [bin, conf, data, state]
    default: [conf, data]
  directory_mode:
    description:
      - Permissions of the directories that are created, in octal as a quoted string.
    type: str
    default: "0755"
  data_dir:
    description:
      - Directory in which C(host-local) keeps the reservations of all networks.
    type: path
    default: /var/lib/cni/networks
  apply:
    description:
      - Whether all of it has to hold at once. If not, only files and directories are written, for the image of a node
        that is yet to boot, and the running kernel plays no part.
    type: bool
    default: true
  modules_load_dir:
    description:
      - Directory for the list of modules to load at boot, in a file C(nodenet-cni.conf).
    type: path
    default: /etc/modules-load.d
  state:
    description:
      - V(present) brings the node to what is needed. What was needed before and is no more leaves the files.
      - V(absent) removes the files. Modules, settings and directories stay as they are until the next boot, since
        running containers may depend on them.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: nodenet.cni.node_info
  - module: nodenet.cni.conflist
notes:
  - Findings of severity C(error) and C(warning) are shown as warnings too.
  - Where a default route of IPv6 comes from router advertisements, C(accept_ra) of its interface is set to 2 before the
    node forwards, since the kernel would drop that route else.
author:
  - The nodenet.cni authors (@nodenet)
"""

EXAMPLES = r"""
- name: Prepare the node for a bridge with port mappings
  nodenet.cni.node_prerequisites:
    plugins: [bridge, portmap]

- name: Prepare it for IPv6 too, and for pods with several interfaces
  nodenet.cni.node_prerequisites:
    plugins: [bridge, portmap, macvlan]
    ip_versions: [4, 6]
    rp_filter: loose

- name: See what the networks on the node need that it does not have
  nodenet.cni.node_prerequisites:
  check_mode: true
  diff: true

- name: Write the files of an image, without a look at the kernel that runs now
  nodenet.cni.node_prerequisites:
    plugins: [bridge, portmap]
    sysctls:
      net.netfilter.nf_conntrack_max: 262144
    apply: false

- name: Take the files away
  nodenet.cni.node_prerequisites:
    state: absent
"""

RETURN = r"""
modules:
  description: The kernel modules that are needed, by name.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name of the module.
      type: str
      sample: br_netfilter
    state:
      description:
        - What it was before the task, V(loaded), V(builtin), V(available) (its file is there), V(absent) or V(unknown)
          (nothing here tells, as in a container).
      type: str
      sample: available
    needed_by:
      description: What needs it.
      type: list
      elements: str
      sample: [bridge]
    action:
      description: V(loaded), also in check mode for what would be, or V(unchanged).
      type: str
      sample: loaded
sysctls:
  description: The kernel settings that are needed, in the order in which they are written.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name of the setting.
      type: str
      sample: net.ipv4.ip_forward
    value:
      description: What it has to be.
      type: str
      sample: "1"
    before:
      description: What it was before the task; null if the kernel had no such setting, or without O(apply).
      type: str
      sample: "0"
    needed_by:
      description: What needs it.
      type: list
      elements: str
      sample: [bridge, portmap]
    action:
      description: V(set), also in check mode for what would be, or V(unchanged).
      type: str
      sample: set
files:
  description: The files of this module.
  type: list
  elements: dict
  returned: success
  contains:
    path:
      description: The file.
      type: str
      sample: /etc/sysctl.d/90-nodenet-cni.conf
    action:
      description: V(created), V(replaced), V(removed) or V(unchanged).
      type: str
      sample: created
directories:
  description: The directories of O(directories).
  type: list
  elements: dict
  returned: success
  contains:
    path:
      description: The directory.
      type: str
      sample: /etc/cni/net.d
    mode:
      description: Its permissions.
      type: str
      sample: "0755"
    action:
      description: V(created) or V(unchanged).
      type: str
      sample: unchanged
exemptions:
  description: What was done about NetworkManager and firewalld, where they are installed.
  type: list
  elements: dict
  returned: success
  contains:
    service:
      description: V(NetworkManager) or V(firewalld).
      type: str
      sample: NetworkManager
    running:
      description: Whether it runs. Always false without O(apply).
      type: bool
      sample: true
    interfaces:
      description: Names and patterns that it leaves alone, or accepts.
      type: list
      elements: str
      sample: [cni0, veth*]
    subnets:
      description: Subnets that it accepts.
      type: list
      elements: str
      sample: []
    action:
      description: V(reloaded), V(accepted) (in the running firewalld) or V(unchanged).
      type: str
      sample: reloaded
findings:
  description: What is wrong or doubtful.
  type: list
  elements: dict
  returned: success
  contains:
    code:
      description: Code that never changes its meaning.
      type: str
      sample: NODE006
    severity:
      description: V(error), V(warning) or V(info).
      type: str
      sample: warning
    where:
      description: What it is about.
      type: str
      sample: /etc/sysctl.d/99-hardening.conf
    text:
      description: What it is.
      type: str
      sample: >-
        sets net.ipv4.ip_forward to 0, and is read after /etc/sysctl.d/90-nodenet-cni.conf, so that the next boot brings
        0 instead of 1
    hint:
      description: What to do.
      type: str
      sample: take the line out of that file, or drop the networks that need it
    go:
      description: Whether runtime or Go plugin V(fails), V(carries_on) or is V(unaffected).
      type: str
      sample: carries_on
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nodenet.cni.plugins.module_utils import _ansible, _options
from ansible_collections.nodenet.cni.plugins.module_utils.node import prerequisites, survey


def argument_spec() -> dict[str, object]:
    """The options of the module."""
    exempt = ["networkmanager", "firewalld"]
    places = ["bin", "conf", "data", "state"]
    return {
        "plugins": {"type": "list", "elements": "str"},
        "ip_versions": {"type": "list", "elements": "int", "choices": [4, 6], "default": [4]},
        "configs": {"type": "list", "elements": "dict"},
        "networks": {"type": "list", "elements": "str"},
        "modules": {"type": "list", "elements": "str", "default": []},
        "sysctls": {"type": "dict", "default": {}},
        "rp_filter": {"type": "str", "choices": ["keep", "loose", "strict"], "default": "keep"},
        "bridge_nf_call": {"type": "bool", "default": True},
        "interfaces": {"type": "list", "elements": "str", "default": []},
        "exempt": {"type": "list", "elements": "str", "choices": exempt, "default": list(exempt)},
        "directories": {"type": "list", "elements": "str", "choices": places, "default": ["conf", "data"]},
        "directory_mode": {"type": "str", "default": "0755"},
        "data_dir": {"type": "path", "default": "/var/lib/cni/networks"},
        "apply": {"type": "bool", "default": True},
        "modules_load_dir": {"type": "path", "default": "/etc/modules-load.d"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        **_ansible.CONF_DIR_OPTIONS,
        **_ansible.BIN_DIR_OPTIONS,
        **_ansible.STATE_DIR_OPTIONS,
        **_ansible.FLANNEL_OPTIONS,
        **_options.BOOT,
    }


def manage(module: AnsibleModule) -> dict[str, object]:
    """Plan, and carry the plan out unless in check mode."""
    params = module.params
    names = ("modules_load_dir", "sysctl_dir", "networkmanager_dir", "firewalld_dir", "sysctl_others")
    places = survey.Places(**{name: params[name] for name in names})
    plan = (
        prerequisites.make_removal(places) if params["state"] == "absent" else prerequisites.plan_task(params, places)
    )
    result = plan.result()
    if not module.check_mode and plan.changed:
        from ansible_collections.nodenet.cni.plugins.module_utils.node import bringing  # most tasks change nothing

        bringing.carry_out(plan, places)
    if not module._diff:
        del result["diff"]
    _ansible.warn_findings(module, result["findings"])
    return result


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    _ansible.run(module, lambda: manage(module))


if __name__ == "__main__":
    main()
