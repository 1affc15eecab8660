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

    RUNTIMES = r"""
options:
  containerd_config:
    description:
      - containerd's configuration, of which C(conf_dir) and C(max_conf_num) count. The defaults do if the file does not
        exist or the option is empty.
      - When it cannot be read or is not understood, what containerd uses is unknown, and a task that expects a network
        of it fails.
    type: path
    default: /etc/containerd/config.toml
  crio_config:
    description:
      - CRI-O's configuration, of which C(network_dir) and C(cni_default_network) count, and the files in the directory
        of the same name that ends in C(.d). The defaults do if there is none or the option is empty.
      - When one of them cannot be read or is not understood, what CRI-O uses is unknown, and a task that expects a
        network of it fails.
    type: path
    default: /etc/crio/crio.conf
"""

    BOOT = r"""
options:
  sysctl_dir:
    description:
      - Directory for the settings to make at boot, in a file C(90-nodenet-cni.conf).
    type: path
    default: /etc/sysctl.d
  sysctl_others:
    description:
      - Directories and files that are read at boot as well, to see whether they contradict.
    type: list
    elements: path
    default: [/run/sysctl.d, /usr/local/lib/sysctl.d, /usr/lib/sysctl.d, /lib/sysctl.d, /etc/sysctl.conf]
  networkmanager_dir:
    description:
      - Directory for drop-ins of NetworkManager, in a file C(90-nodenet-cni.conf). NetworkManager counts as installed
        when the directory around it exists.
    type: path
    default: /etc/NetworkManager/conf.d
  firewalld_dir:
    description:
      - Directory with the configuration of firewalld, which counts as installed when it exists. The zone is
        C(zones/nodenet-cni.xml) there.
    type: path
    default: /etc/firewalld
"""

    LIVE = r"""
options:
  live:
    description:
      - Who is alive, to tell what leaked. Without it that is not told.
    type: dict
    suboptions:
      attachments:
        description:
          - All live attachments of the node, of every container runtime that uses its networks. One of this and
            O(live.discover) is needed.
          - A reservation whose id has a form that no listed id has (such as C(<namespace>-<id>) where only plain ids
            are listed) is reported as unknown, not as leaked. So is one that is younger than 60 seconds.
        type: list
        elements: dict
        suboptions:
          container_id:
            description:
              - Id of the container or sandbox as the runtime passes it to CNI plugins, or its first 12 or more
                characters.
            type: str
            required: true
          ifname:
            description:
              - Name of the interface. When left out, all interfaces of the container are alive.
            type: str
      discover:
        description:
          - Find out who is alive on the node, as M(nodenet.cni.host_local_gc) does with its defaults, besides
            O(live.attachments). When a source fails, nobody is reported as dead, and RV(findings) says so.
        type: bool
"""
