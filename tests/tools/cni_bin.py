# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the collection's executables in a directory, without Ansible.

Usage: python3 tests/tools/cni_bin.py DIRECTORY
"""

from __future__ import annotations

import os
import sys

import staging

SYSTEM_PYTHON = "/usr/bin/python3"
WITHOUT = {
    "yaml": "multus reads kubeconfigs that are JSON only",
    "h2": "multus learns of devices from the kubelet's checkpoint only",
}


def main() -> int:
    if len(sys.argv) != 2 or not sys.argv[1]:
        print("Cannot make the executables: say where, as in `make cni-bin DEST=/opt/cni/bin`", file=sys.stderr)
        return 2
    staging.link()
    sys.path.insert(0, os.path.join(staging.ROOT, ".dev"))
    from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
    from ansible_collections.nodenet.cni.plugins.module_utils.node import executables, vendoring

    root = os.path.join(staging.ROOT, "plugins", "module_utils")
    try:
        python = executables.node_python()
    except NodenetError as error:
        # this interpreter is somebody's own; that of the system will do, if there is one
        if not os.access(SYSTEM_PYTHON, os.X_OK) or os.path.samefile(SYSTEM_PYTHON, sys.executable):
            print(error, file=sys.stderr)
            return 1
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    plugins = sorted(executables.PLUGINS)
    for path in executables.build(root, sys.argv[1], plugins, python):
        print(path)
    for package in vendoring.missing(executables.collect_sources(root, plugins), plugins):
        print(f"without {package}, which {sys.executable} has not: {WITHOUT[package]}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
