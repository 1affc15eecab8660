# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages of others that lie beside an executable, copied there from the controller: PyYAML and h2.

Imported only where nothing else will do. In an Ansible module they come from where Python has them.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

#: beside the packages cni and multus
DIRECTORY = "vendored"


def load(name: str) -> ModuleType:
    """Import a package. Raises ImportError, also if it is none for this Python."""
    path = __file__.rpartition("/")[0].rpartition("/")[0] + "/" + DIRECTORY
    if path not in sys.path:
        sys.path.append(path)
    try:
        __import__(name)
    except ImportError:
        raise
    except Exception as error:
        raise ImportError("%s cannot be used with this Python: %s" % (name, error)) from None
    return sys.modules[name]
