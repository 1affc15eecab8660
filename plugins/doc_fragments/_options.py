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
