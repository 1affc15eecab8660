# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that a few modules share, beside those of nearly all in _ansible.py: a task compiles what it imports.

Each is documented by the fragment of its name in doc_fragments/_options.py. Private to the collection.
"""

from __future__ import annotations

RUNTIMES: dict[str, object] = {
    "containerd_config": {"type": "path", "default": "/etc/containerd/config.toml"},
    "crio_config": {"type": "path", "default": "/etc/crio/crio.conf"},
}
_READ_AT_BOOT = ["/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d", "/etc/sysctl.conf"]
BOOT: dict[str, object] = {
    "sysctl_dir": {"type": "path", "default": "/etc/sysctl.d"},
    "sysctl_others": {"type": "list", "elements": "path", "default": _READ_AT_BOOT},
    "networkmanager_dir": {"type": "path", "default": "/etc/NetworkManager/conf.d"},
    "firewalld_dir": {"type": "path", "default": "/etc/firewalld"},
}
_ATTACHMENT = {"container_id": {"type": "str", "required": True}, "ifname": {"type": "str"}}
_WHO = {"attachments": {"type": "list", "elements": "dict", "options": _ATTACHMENT}, "discover": {"type": "bool"}}
LIVE: dict[str, object] = {"live": {"type": "dict", "required_one_of": [("attachments", "discover")], "options": _WHO}}
