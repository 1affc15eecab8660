# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One call of our host-local as a process: variables from the environment, the configuration on stdin.

The argument is a directory from which the collection can be imported.

For what only a process shows: system calls under strace, a kill at a given point.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from plugin_drivers import LibraryDriver, import_root


def main() -> int:
    env = {key: value for key, value in os.environ.items() if key.startswith("CNI_")}
    with import_root(*sys.argv[1:2]):
        done = LibraryDriver().call(env, sys.stdin.buffer.read(), os.getcwd())
    sys.stdout.buffer.write(done.stdout.encode("utf-8", "surrogateescape"))
    sys.stderr.buffer.write(done.stderr.encode("utf-8", "surrogateescape"))
    return done.rc


if __name__ == "__main__":
    sys.exit(main())
