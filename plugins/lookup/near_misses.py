# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: near_misses
short_description: Find misspelt names of variables
version_added: 0.1.0
author:
  - The nodenet.cni authors (@nodenet)
description:
  - Ansible takes any variable, so that one with a slip in its name asks for nothing, and nobody is told. This lookup
    finds names that are nearly those of the collection's roles. The role C(node) refuses them before it asks the node
    anything.
  - A name is compared word by word. A word may be in the singular for the plural, or have one letter too many, too few,
    wrong or exchanged with its neighbour; two if it is long, and never a wrong one if it is short. Underscores do not
    count. A name that begins in the singular for the plural has to be right in eight letters at least, since
    C(network_mode) may be anybody's.
  - So C(node_exporter_version) and C(networks_of_our_company) are left alone.
options:
  _terms:
    description: Names to look at. Those of all variables of the host unless given.
    type: list
    elements: str
  own:
    description: Names that are somebody's own, however near they are.
    type: list
    elements: str
    default: []
  known:
    description: The names that are right. Those of the variables of the collection's roles unless given.
    type: list
    elements: str
seealso:
  - plugin: ansible.builtin.varnames
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: See that no variable of the collection is misspelt
  ansible.builtin.assert:
    that: query('nodenet.cni.near_misses') == []

- name: Tell what is meant
  ansible.builtin.debug:
    # [{'name': 'subnett', 'meant': 'subnet'}]
    msg: "{{ query('nodenet.cni.near_misses', 'subnett', 'mtu', known=['subnet', 'mtu']) }}"
"""

RETURN = r"""
_list:
  description: The names that are nearly known ones, in the order of names.
  type: list
  elements: dict
  contains:
    name:
      description: The name that was given.
      type: str
      sample: plugin_binaries_cheksum
    meant:
      description: The known name that is meant.
      type: str
      sample: plugin_binaries_checksum
"""

from ansible.plugins.lookup import LookupBase

from ansible_collections.nodenet.cni.plugins.plugin_utils import near_names


class LookupModule(LookupBase):
    """A lookup and no filter: for one filter, ansible-core loads all of a collection's, on each host."""

    def run(self, terms, variables=None, **kwargs):
        known = kwargs.get("known")
        wanted = near_names.role_variables() if known is None else dict.fromkeys(map(str, known), "")
        names = set(map(str, terms or variables or ())) - set(map(str, kwargs.get("own") or ()))
        return [{"name": name, "meant": meant} for name, meant in near_names.near_misses(names, wanted).items()]
