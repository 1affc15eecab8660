# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # What check mode, diff mode and idempotence mean here; a module adds how far it supports each.
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Says what would change and leaves the node as it is.
  diff_mode:
    description: Shows what changes (or would change in check mode) as text before and after.
  idempotent:
    description: A second run with the same input on the same node reports C(changed=false).
"""

    # A module that only reads.
    INFO_MODULE = r"""
options: {}
attributes:
  check_mode:
    description: Says what would change and leaves the node as it is.
    support: full
    details:
      - This module never changes anything.
  diff_mode:
    description: Shows what changes (or would change in check mode) as text before and after.
    support: N/A
    details:
      - This module never changes anything.
  idempotent:
    description: A second run with the same input on the same node reports C(changed=false).
    support: full
    details:
      - This module never changes anything.
"""

    # Member of the collection's action group.
    ACTIONGROUP_ALL = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/nodenet.cni.all) in C(module_defaults) to set options for all modules of this collection.
    support: full
    membership:
      - nodenet.cni.all
"""

    # Everything that touches a node's files.
    PLATFORM = r"""
options: {}
attributes:
  platform:
    description: Target operating systems.
    support: full
    platforms: linux
"""

    # An action plugin that does its work on the controller.
    CONTROLLER = r"""
options: {}
attributes:
  action:
    description: Has a matching action plugin, so that some of the work is done on the controller.
    support: full
  bypass_host_loop:
    description: Runs once for all hosts of a play instead of once for each.
    support: none
  connection:
    description: Uses the target's connection to do its work.
    support: none
  platform:
    description: Target operating systems.
    support: full
    platforms: all
"""
