#!/usr/bin/python
# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_local_gc_timer
short_description: Free the addresses of dead containers by timers of systemd, and after each boot
version_added: 0.1.0
author:
  - The nodenet.cni authors (@nodenet)
description:
  - Installs what M(nodenet.cni.host_local_gc) does as a program on the node, with a service and a timer of systemd for
    each network, and another service that runs it at boot, after the container runtime and before the kubelet.
  - At boot those addresses go whose sandbox or container the runtime does not know any more. A containerd still knows
    the sandboxes from before a power cut until the kubelet removes them. Their addresses stay until then, and a later
    run of the timer frees what leaked all the same.
  - Use it for nodes whose pools fill up between two visits of yours. It is as careful as the module, with the same
    sources and the same journal. What it refuses fails the unit, and C(systemctl --failed) and the log of the node say
    why.
  - The node then has timers for exactly O(networks), and needs nothing for them but its Python.
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
  diff_mode:
    support: full
    details:
      - Shows the units and settings; of the program only its size.
  idempotent:
    support: full
options:
  networks:
    description:
      - Names of the networks. There is no way to say all of them, so that a network that comes later is not included
        by accident.
      - What earlier runs have installed for other networks is removed. An empty list removes everything, the program
        too.
      - A network need not be configured yet. Its service fails until it is.
    type: list
    elements: str
    required: true
  on_calendar:
    description:
      - When the timers run, as C(OnCalendar) of systemd has it, and up to 5 minutes later, so that not all nodes
        start at one moment. An empty text for no timers.
    type: str
    default: hourly
  boot:
    description:
      - Whether addresses are also freed at each boot. The unit C(kubelet.service) waits for it then, two minutes at
        most. What has its kubelet inside (k3s, RKE2, k0s, MicroK8s) does not wait, it is started first.
      - What was reserved within O(grace) before a power cut may still be young at that boot, and stays until a later
        run.
    type: bool
    default: true
  with_static:
    description:
      - Also networks that hold static reservations. These are never freed, but who owns addresses by hand may want
        nobody else to work in that network unattended.
      - Without it such a network fails the task, and one that got a static reservation since is left alone by the
        program, which says so in the log.
    type: bool
    default: false
  apply:
    description:
      - Whether the timers shall run at once. V(false) only writes the files, for the image of a node.
    type: bool
    default: true
  data_dir:
    description:
      - Look for the networks in this data directory instead of those that the configurations name.
    type: path
  unit_dir:
    description:
      - Directory for the units.
    type: path
    default: /etc/systemd/system
  settings_dir:
    description:
      - Directory for what each network is to be treated with, a file for each.
    type: path
    default: /etc/nodenet-cni/reclaim
  program_dir:
    description:
      - Directory for the program.
    type: path
    default: /usr/local/lib/nodenet-cni
  program_sources:
    description:
      - The code of the program, packed. The action plugin sends it along; a playbook never sets it.
    type: str
notes:
  - The program leaves no more of its journals than the newest 100 and all of the last 90 days. Those of people stay,
    and all of them while one is of the future, for the clock is wrong then.
  - The node's Python must not lie in a virtual environment or a home directory. After its path has changed, by an
    upgrade of the distribution, run the module again.
  - A list of the living and O(ignore:force_empty) of M(nodenet.cni.host_local_gc) are for people at the keyboard. Where
    no container runtime can be asked, the program frees nothing.
seealso:
  - module: nodenet.cni.host_local_gc
"""

EXAMPLES = r"""
- name: Free leaked addresses of the pod network every hour and at boot
  nodenet.cni.host_local_gc_timer:
    networks:
      - podnet

- name: Only after a boot, with a longer grace age, also beside static reservations
  nodenet.cni.host_local_gc_timer:
    networks:
      - podnet
      - lan
    on_calendar: ""
    grace: 3600
    with_static: true

- name: See what would be installed
  nodenet.cni.host_local_gc_timer:
    networks:
      - podnet
    on_calendar: "Sun 03:00"
  check_mode: true
  diff: true

- name: Take everything away again
  nodenet.cni.host_local_gc_timer:
    networks: []
"""

RETURN = r"""
networks:
  description: Names of the networks that have units.
  returned: success
  type: list
  elements: str
  sample:
    - podnet
files:
  description: Files and links, those that are removed first.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: Where it is.
      type: str
      sample: /etc/systemd/system/nodenet-reclaim-podnet.timer
    action:
      description: One of V(created), V(replaced), V(removed) and V(unchanged).
      type: str
      sample: created
reloaded:
  description: Whether systemd was told to read its units again, since they have changed or it had others in memory.
  returned: success
  type: bool
  sample: true
started:
  description: Timers that were started, since they are new, have changed or did not run.
  returned: success
  type: list
  elements: str
  sample:
    - nodenet-reclaim-podnet.timer
stopped:
  description: Timers that were stopped.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nodenet.cni.plugins.module_utils import _ansible, _liveness
from ansible_collections.nodenet.cni.plugins.module_utils.node import reclaim_timer


def schedule(module):
    result = reclaim_timer.schedule(module.params, module.check_mode)
    diff = result.pop("diff")
    return dict(result, diff=diff) if module._diff and diff else result


def main():
    module = AnsibleModule(
        argument_spec=dict(
            _ansible.CONF_DIR_OPTIONS,
            **_ansible.FLANNEL_OPTIONS,
            **_liveness.OPTIONS,
            **_ansible.LOCK_OPTIONS,
            **_ansible.STATE_DIR_OPTIONS,
            networks={"type": "list", "elements": "str", "required": True},
            on_calendar={"type": "str", "default": "hourly"},
            boot={"type": "bool", "default": True},
            with_static={"type": "bool", "default": False},
            apply={"type": "bool", "default": True},
            data_dir={"type": "path"},
            unit_dir={"type": "path", "default": "/etc/systemd/system"},
            settings_dir={"type": "path", "default": "/etc/nodenet-cni/reclaim"},
            program_dir={"type": "path", "default": "/usr/local/lib/nodenet-cni"},
            program_sources={"type": "str", "no_log": True},  # not secret, but far too long for a log
        ),
        supports_check_mode=True,
    )
    _ansible.run(module, lambda: schedule(module))


if __name__ == "__main__":
    main()
