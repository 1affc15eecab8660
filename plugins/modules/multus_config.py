#!/usr/bin/python
# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: multus_config
short_description: Put Multus in front of a node's network
version_added: 0.1.0
description:
  - Writes C(00-multus.conf) or C(00-multus.conflist), so that every new pod gets its network from Multus, and the
    kubeconfig with which Multus asks the API server.
  - The pod's first network, the master, is copied from the file that defines it. When that file has changed, the next
    run copies it anew.
  - Nothing is written unless the file of a master is there, can be loaded and is not Multus' own. The file of Multus is
    never empty and never refers to itself.
  - Each moment is usable for the container runtime. The kubeconfig comes first, and the file that names it appears
    whole, by a rename. Removal begins with the file of Multus, so that runtimes fall back to the master's own.
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
  - nodenet.cni._options.state_dir
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - Tokens and other secrets are not shown.
  idempotent:
    support: full
    details:
      - A fresh token replaces the one in the file only when that one is about to expire, see
        O(kubeconfig.renew_before).
options:
  state:
    description:
      - V(present) writes what is missing or has changed.
      - V(absent) removes every file of O(conf_dir) whose plugin is Multus, then the kubeconfig with its directory
        C(multus.d), and last the executable, see O(remove_plugin). A kubeconfig that is not of Multus alone stays, and
        so does what Multus remembers of running pods, for their end.
    type: str
    choices:
      - present
      - absent
    default: present
  master:
    description:
      - The network that every pod gets first, as the name of the network, the name of its file in O(conf_dir), or the
        whole path of a file.
      - By default the network that the runtimes use when neither Multus nor the loopback is there. The task fails when
        containerd and CRI-O would use different ones.
    type: str
  name:
    description:
      - Name of the network that the file of Multus defines.
      - V("") takes the name of the master's network. Two files then define a network of that name.
    type: str
    default: multus-cni-network
  cni_version:
    description:
      - Version of the CNI specification. By default the master's.
      - The task fails when the master has another one, since their results would not fit, unless
        O(force_cni_version=true).
      - From V(1.0.0) on the file is C(00-multus.conflist), before that C(00-multus.conf). The one that does not belong
        there is removed.
    type: str
  force_cni_version:
    description:
      - Whether the copy of a master with another version gets O(cni_version). Its own file stays as it is.
    type: bool
    default: false
  kubeconfig_path:
    description:
      - The kubeconfig. By default C(multus.d/multus.kubeconfig) in O(conf_dir).
      - Without O(kubeconfig) it is left as it is. The file of Multus names it only if it exists, since Multus fails for
        every pod otherwise.
    type: path
  kubeconfig:
    description:
      - What the kubeconfig holds. It is written as JSON with mode C(0600).
    type: dict
    suboptions:
      server:
        description: URL of the API server.
        type: str
        required: true
      ca:
        description:
          - The certificates of the authority that signed the server's, as PEM text.
          - Excludes O(kubeconfig.ca_file).
        type: str
      ca_file:
        description: Path of a file with them on the node.
        type: path
      validate_certs:
        description: Whether Multus verifies the server's certificate.
        type: bool
        default: true
      tls_server_name:
        description: Name to expect in the server's certificate.
        type: str
      token:
        description:
          - Token of a service account.
          - A token that has expired is refused.
          - Excludes O(kubeconfig.token_file).
        type: str
      token_file:
        description: Path of a file with the token on the node, which somebody else renews.
        type: path
      client_certificate:
        description: Path of a client certificate on the node.
        type: path
      client_key:
        description: Path of its key on the node.
        type: path
      renew_before:
        description:
          - O(kubeconfig.token) takes the place of a token of the same account when that one has this many seconds
            left, or less. By default when four fifths of its time are over.
          - A very large number writes each new token.
        type: int
  parts:
    description:
      - What is looked after with O(state=present). With V(kubeconfig) alone only the credentials are renewed, and no
        master is needed.
    type: list
    elements: str
    choices:
      - config
      - kubeconfig
    default:
      - config
      - kubeconfig
  namespace_isolation:
    description: Whether pods may refer to networks of their own namespace only.
    type: bool
  global_namespaces:
    description:
      - Namespaces whose networks every pod may refer to nevertheless. They take the place of C(default).
    type: list
    elements: str
  log_level:
    description: What Multus logs.
    type: str
    choices:
      - debug
      - verbose
      - error
      - panic
  log_file:
    description: File that Multus logs to.
    type: path
  log_to_stderr:
    description: Whether Multus logs to the runtime.
    type: bool
  readiness_indicator_file:
    description: File that the master's agent makes when it is ready. Multus waits for it.
    type: path
  delegate_conf_dir:
    description: Directory in which Multus looks for networks by name.
    type: path
    default: /etc/cni/multus/net.d
  cache_dir:
    description: Directory in which Multus remembers the delegates of each pod.
    type: path
    default: /var/lib/cni/multus
  delegate_bin_dir:
    description:
      - Directory in which Multus looks for the plugins of networks before those that the runtime names. By default
        O(bin_dir).
    type: path
  settings:
    description:
      - Further members of the configuration of Multus, for example C(systemNamespaces), C(retryDeleteOnError),
        C(apiTimeoutSeconds) and C(logOptions).
    type: dict
    default: {}
  expect_effective:
    description:
      - Name of the network that a new pod has to get, from containerd and from CRI-O, when the task is done. If it
        would be another one, the task fails and nothing is written.
      - Without this option it is the network of Multus with O(state=present). With O(state=absent) it is the network of
        the master that the removed file had, for the runtimes that used it. A runtime whose configuration is not
        understood does not count then.
    type: str
  crio_default_network:
    description:
      - The value of C(cni_default_network), in place of the one in O(crio_config).
    type: str
  remove_plugin:
    description:
      - Whether the executable C(multus) in O(bin_dir) goes with O(state=absent).
      - V(unused) removes it when no pod is left in O(cache_dir), since these need it for their end.
      - What M(nodenet.cni.plugin_binaries) installed stays in any case, and goes with that module.
    type: str
    choices:
      - unused
      - always
      - never
    default: unused
seealso:
  - module: nodenet.cni.multus_info
  - module: nodenet.cni.conflist
  - module: nodenet.cni.plugin_binaries
  - module: nodenet.cni.node_info
notes:
  - Findings of severity C(error) and C(warning) are shown as warnings too.
  - The task fails when O(bin_dir) exists and has no plugin C(multus), since every new pod would fail.
  - The master's own file has to stay, because a removal falls back to it.
"""

EXAMPLES = r"""
- name: Put Multus in front of the network that the node has
  nodenet.cni.multus_config:
    kubeconfig:
      server: https://10.96.0.1:443
      ca: "{{ lookup('ansible.builtin.file', 'ca.crt') }}"
      token: "{{ multus_token }}"

- name: See whether the copy of the master is still up to date
  nodenet.cni.multus_config:
    master: k8s-pod-network
    namespace_isolation: true
    global_namespaces: [default, shared]
    settings:
      systemNamespaces: [kube-system, calico-system]
  check_mode: true
  register: multus

- name: Renew the token alone, if it is time
  nodenet.cni.multus_config:
    parts: [kubeconfig]
    kubeconfig:
      server: https://10.96.0.1:443
      ca_file: /etc/kubernetes/pki/ca.crt
      token: "{{ multus_token }}"
      renew_before: 86400

- name: Take Multus away again
  nodenet.cni.multus_config:
    state: absent
    expect_effective: k8s-pod-network
"""

RETURN = r"""
conf_dir:
  description: The directory.
  type: str
  returned: success
  sample: /etc/cni/net.d
state:
  description: V(present) or V(absent).
  type: str
  returned: success
  sample: present
file:
  description: Path of the file of Multus; null with O(state=absent) and when O(parts) leaves it out.
  type: str
  returned: success
  sample: /etc/cni/net.d/00-multus.conflist
network:
  description: Name of the network that it defines; null where there is no RV(file).
  type: str
  returned: success
  sample: multus-cni-network
cni_version:
  description: Its version of the CNI specification; null where there is no RV(file).
  type: str
  returned: success
  sample: 1.0.0
master:
  description: Where the master comes from; null where there is no RV(file).
  type: dict
  returned: success
  contains:
    network:
      description: Name of its network.
      type: str
      sample: k8s-pod-network
    file:
      description: Name of its file.
      type: str
      sample: 10-calico.conflist
    cni_version:
      description: Its version of the CNI specification.
      type: str
      sample: 1.0.0
    types:
      description: The types of its plugins.
      type: list
      elements: str
      sample: [calico, portmap, bandwidth]
config:
  description: The document of the file of Multus, as it is after the task; null where there is no RV(file).
  type: dict
  returned: success
  sample:
    cniVersion: 1.0.0
    name: multus-cni-network
    plugins:
      - type: multus
capabilities:
  description: The capabilities of all of the master's plugins, which the file of Multus has too.
  type: dict
  returned: success
  sample:
    portMappings: true
drift:
  description:
    - The places in which the copy of the master differed from its file before the task, the parts of a path separated
      by dots. Empty if there was no copy.
  type: list
  elements: str
  returned: success
  sample: [delegates.0.plugins.0.mtu]
removed:
  description: Paths of what was removed, or would be in check mode, in this order.
  type: list
  elements: str
  returned: success
  sample: [/etc/cni/net.d/00-multus.conf]
kubeconfig:
  description: The credentials of Multus after the task; null if there are none.
  type: dict
  returned: success
  contains:
    path:
      description: The file.
      type: str
      sample: /etc/cni/net.d/multus.d/multus.kubeconfig
    changed:
      description: Whether it was written, or would be in check mode.
      type: bool
      sample: false
    mode:
      description: Its permissions.
      type: str
      sample: "0600"
    server:
      description: URL of the API server; null if nobody can tell.
      type: str
      sample: https://10.96.0.1:443
    account:
      description: Whom the token is for; null if it does not tell.
      type: str
      sample: system:serviceaccount:kube-system:multus
    age_s:
      description: Seconds since the file was written.
      type: int
      sample: 3600
    token_age_s:
      description: Seconds since the token was issued; null if it does not tell.
      type: int
      sample: 3600
    expires_in_s:
      description: Seconds until the token expires, negative if it has; null if it does not tell.
      type: int
      sample: 82800
    renew:
      description: Whether four fifths of the token's time are over.
      type: bool
      sample: false
plugin:
  description: What became of the executable; null with O(state=present).
  type: dict
  returned: success
  contains:
    path:
      description: The file.
      type: str
      sample: /opt/cni/bin/multus
    removed:
      description: Whether it was removed, or would be in check mode.
      type: bool
      sample: false
    reason:
      description: Why.
      type: str
      sample: 12 pod(s) in /var/lib/cni/multus need it for their end
    cached_delegates:
      description: Of how many pods Multus remembers the delegates; null if O(cache_dir) cannot be read.
      type: int
      sample: 12
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
              sample: multus-cni-network
            known:
              description: Whether one can tell, that is, whether the runtime's configuration was understood.
              type: bool
              sample: true
            file:
              description: Name of the file that defines it; null if there is none.
              type: str
              sample: 00-multus.conflist
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
              sample: multus-cni-network
            known:
              description: Whether one can tell, that is, whether the runtime's configuration was understood.
              type: bool
              sample: true
            file:
              description: Name of the file that defines it; null if there is none.
              type: str
              sample: 00-multus.conflist
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
              sample: multus-cni-network
            known:
              description: Whether one can tell, that is, whether the runtime's configuration was understood.
              type: bool
              sample: true
            file:
              description: Name of the file that defines it; null if there is none.
              type: str
              sample: 00-multus.conflist
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
              sample: multus-cni-network
            known:
              description: Whether one can tell, that is, whether the runtime's configuration was understood.
              type: bool
              sample: true
            file:
              description: Name of the file that defines it; null if there is none.
              type: str
              sample: 00-multus.conflist
            reason:
              description: Why, and which files were skipped.
              type: str
              sample: first file in load order
findings:
  description:
    - What is wrong or doubtful with the files and the credentials, as they are after the task. When the task refuses to
      write a file, why.
  type: list
  elements: dict
  returned: always
  contains:
    code:
      description: Code that never changes its meaning.
      type: str
      sample: MULTUS004
    severity:
      description: V(error), V(warning) or V(info).
      type: str
      sample: warning
    where:
      description: The file.
      type: str
      sample: /etc/cni/net.d/multus.d/multus.kubeconfig
    text:
      description: What it is.
      type: str
      sample: has mode 0644, so that others than root can read the credentials
    hint:
      description: What to do.
      type: str
      sample: give it mode 0600; multus_config does
    go:
      description: Whether runtime or Go plugin V(fails), V(carries_on) or is V(unaffected).
      type: str
      sample: unaffected
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nodenet.cni.plugins.module_utils import _ansible, _options
from ansible_collections.nodenet.cni.plugins.module_utils.node import confdir, multus_plan


def argument_spec() -> dict[str, object]:
    """The options of the module."""
    credentials = {
        "server": {"type": "str", "required": True},
        "ca": {"type": "str"},
        "validate_certs": {"type": "bool", "default": True},
        "tls_server_name": {"type": "str"},
        "token": {"type": "str", "no_log": True},
        "renew_before": {"type": "int"},
        "token_file": {"type": "path", "no_log": False},
        "client_key": {"type": "path", "no_log": False},
        **{key: {"type": "path"} for key in ("ca_file", "client_certificate")},
    }
    exclusive = [("ca", "ca_file"), ("token", "token_file")]
    parts = ["config", "kubeconfig"]
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "name": {"type": "str", "default": "multus-cni-network"},
        "force_cni_version": {"type": "bool", "default": False},
        "kubeconfig": {"type": "dict", "options": credentials, "mutually_exclusive": exclusive},
        "parts": {"type": "list", "elements": "str", "choices": parts, "default": list(parts)},
        "global_namespaces": {"type": "list", "elements": "str"},
        "log_level": {"type": "str", "choices": ["debug", "verbose", "error", "panic"]},
        "delegate_conf_dir": {"type": "path", "default": "/etc/cni/multus/net.d"},
        "cache_dir": {"type": "path", "default": "/var/lib/cni/multus"},
        "settings": {"type": "dict", "default": {}},
        "remove_plugin": {"type": "str", "choices": ["unused", "always", "never"], "default": "unused"},
        **{key: {"type": "str"} for key in ("master", "cni_version", "expect_effective", "crio_default_network")},
        **{key: {"type": "path"} for key in ("kubeconfig_path", "log_file", "readiness_indicator_file")},
        **{key: {"type": "bool"} for key in ("namespace_isolation", "log_to_stderr")},
        "delegate_bin_dir": {"type": "path"},
        **_ansible.CONF_DIR_OPTIONS,
        **_ansible.BIN_DIR_OPTIONS,
        **_ansible.STATE_DIR_OPTIONS,
        **_ansible.FLANNEL_OPTIONS,
        **_options.RUNTIMES,
    }


def manage(module: AnsibleModule) -> dict[str, object]:
    """Plan, and carry the plan out unless in check mode."""
    plan = multus_plan.make_plan(confdir.read_conf_dir(module.params["conf_dir"]), module.params)
    if not module.check_mode:
        multus_plan.apply(plan)
    _ansible.warn_findings(module, plan.result["findings"])
    return dict(plan.result, diff=plan.diff) if module._diff else plan.result


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    _ansible.run(module, lambda: manage(module))


if __name__ == "__main__":
    main()
