# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a call of an executable loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys

#: what calls may load of Python that need no TLS
NO_API = {"__future__", "_ctypes", "_json", "_signal", "_socket", "_stat", "_struct", "binascii", "errno", "posix"}
NO_API |= {"fcntl", "gc", "select", "time"}


#: Runs a starter, and says at the end which modules there are besides those that Python begins with. What the byte code
#: of an executable loads without the import statement is among them.
_RUN = """
import sys
before = set(sys.modules)
import posix
end = posix._exit
def say_and_end(rc):
    posix.write(2, b"\\nloaded: " + " ".join(set(sys.modules) - before).encode() + b"\\n")
    end(rc)
posix._exit = say_and_end
sys.argv = sys.argv[1:]
with open(sys.argv[0]) as stream:
    text = stream.read()
exec(compile(text, sys.argv[0], "exec"))
"""


def loaded(executable, environ, config):
    """Return what a call loads besides what the interpreter starts with: (others' modules, ours by their last name)."""
    with open(executable, encoding="utf-8") as stream:
        starter = stream.readline()[len("#!") :].split()[0]
    assert os.path.basename(starter) == os.path.basename(executable)
    command = [os.path.realpath(sys.executable), "-IBS", "-c", _RUN, starter]
    stdin = config if isinstance(config, bytes) else json.dumps(config).encode()
    done = subprocess.run(command, env=environ, input=stdin, capture_output=True, check=True)
    (line,) = [line for line in done.stderr.decode().splitlines() if line.startswith("loaded: ")]
    names = set(line.split()[1:])
    foreign = {name for name in names if not name.startswith("nodenet_cni")}
    return foreign, {name.rpartition(".")[2] for name in names - foreign}
