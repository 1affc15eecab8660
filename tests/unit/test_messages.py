# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages that tell what to set name the option of the module and the variables of roles and playbooks for it."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.nodenet.cni.plugins.plugin_utils import near_names

ROOT = Path(__file__).resolve().parents[2]
# options that a message asks for, by a part of that message
ASKED = {
    "set expect_effective to the network": 2,
    "to go by its defaults": 2,
    "set remote_src": 3,
    "set keep_previous to false": 1,
    "name it in include to remove it": 1,
    "set allow_shared if a probe": 1,
    "leave cni_version out": 1,
    "set on_calendar or boot": 1,
    "set with_static=true": 1,
    "set force_empty=true": 1,
}


def texts():
    """The sources of the plugins, with strings over several lines put together."""
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        yield re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8"))


def test_what_to_set_is_said_for_roles_too():
    everything = "\n".join(texts())
    for words, times in ASKED.items():
        found = re.findall(re.escape(words) + r"[^\n]*", everything)
        found = [one for one in found if "description" not in one and not one.endswith(".")]
        assert len(found) == times, (words, found)
        assert [one for one in found if "(roles: " not in one and "(variable " not in one] == []


def test_the_variables_that_messages_name_are_there():
    known = set(near_names.role_variables())
    known.update(re.findall(r"reclaim_\w+", (ROOT / "playbooks" / "reclaim.yml").read_text(encoding="utf-8")))
    named = [
        name.replace("{runtime}", runtime)
        for text in texts()
        for group in re.findall(r"\((?:roles:|variables?) ([a-z_{}, ]+)\)", text)
        for name in re.findall(r"[a-z_{}]+_[a-z_{}]+", group)
        for runtime in ("containerd", "crio")
    ]
    assert len(set(named)) > 10
    assert [name for name in named if name not in known] == []
