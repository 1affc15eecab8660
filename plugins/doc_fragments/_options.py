# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    CONF_DIR = r"""
options:
  conf_dir:
    description:
      - Directory with the network configurations of the container runtime.
    type: path
    default: /etc/cni/net.d
"""

    BIN_DIR = r"""
options:
  bin_dir:
    description:
      - Directory with the CNI plugins.
    type: path
    default: /opt/cni/bin
"""

    STATE_DIR = r"""
options:
  state_dir:
    description:
      - Directory in which the collection keeps its own state on the node, the record of what it installed and the lock
        of that record.
    type: path
    default: /var/lib/nodenet-cni
"""

    LOCK = r"""
options:
  lock_timeout:
    description:
      - Seconds to wait for the lock of a network's data directory. CNI plugins hold it for the time of one allocation.
      - The task fails when the lock is still held after that time; V(0) tries once.
    type: float
    default: 30
"""

    FLANNEL = r"""
options:
  flannel_subnet_file:
    description:
      - File in which flannel leaves the subnet of this node. It is read for networks whose configuration delegates to
        C(host-local) through the C(flannel) plugin.
    type: path
    default: /run/flannel/subnet.env
"""

    LIVENESS = r"""
options:
  sources:
    description:
      - Where to look for the living on the node. A source that belongs to a runtime which was never used here says
        nothing. One that fails ends the task.
      - V(containerd), V(crio) and V(podman) read the state directories of these runtimes, and ask the programs
        C(crictl), C(ctr), C(nerdctl) and C(podman) where they are installed. Each container that is not removed counts,
        running or not.
      - V(processes) sees the containers that have processes, V(namespaces) the addresses in use in network namespaces,
        V(caches) the entries of O(results_dirs) whose namespace is still mounted. These three only ever keep
        reservations. When they see processes of a container that no runtime lists, all reservations with such a form of
        id are kept.
    type: list
    elements: str
    choices:
      - containerd
      - crio
      - podman
      - processes
      - namespaces
      - caches
    default:
      - containerd
      - crio
      - podman
      - processes
      - namespaces
      - caches
  grace:
    description:
      - Seconds. A reservation that was made later than that before the sources were asked is kept, since a container
        has its address before its runtime lists it. So is one whose file time lies in the future.
    type: float
    default: 600
  containerd:
    description:
      - Where containerd keeps its files, for each one on the node. Pairs that are not there are passed over.
    type: list
    elements: dict
    default:
      - root: /var/lib/containerd
        state: /run/containerd
      - root: /var/lib/rancher/k3s/agent/containerd
        state: /run/k3s/containerd
      - root: /var/lib/rancher/rke2/agent/containerd
        state: /run/k3s/containerd
      - root: /var/lib/k0s/containerd
        state: /run/k0s/containerd
      - root: /var/snap/microk8s/common/var/lib/containerd
        state: /var/snap/microk8s/common/run/containerd
    suboptions:
      root:
        description:
          - Directory of persistent data, C(root) in its configuration.
        type: path
        required: true
      state:
        description:
          - Directory of its state, C(state) in its configuration.
        type: path
        required: true
      address:
        description:
          - Path of its socket, C(containerd.sock) in O(containerd[].state) when left out.
        type: path
  storage_root:
    description:
      - Directory in which CRI-O and podman keep containers, C(graphroot) in C(storage.conf).
    type: path
    default: /var/lib/containers/storage
  crio_address:
    description:
      - Path of the socket of CRI-O.
    type: path
    default: /run/crio/crio.sock
  results_dirs:
    description:
      - Directories of result caches, libcni's and that of Multus. The dead entry of a freed reservation is removed.
    type: list
    elements: path
    default:
      - /var/lib/cni/results
      - /var/lib/cni/multus/results
  command_timeout:
    description:
      - Seconds to wait for an answer of a runtime's program.
    type: float
    default: 20
"""
