# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import typing as t
from collections.abc import Mapping

from ansible.errors import AnsibleFilterError

from ansible_collections.nodenet.cni.plugins.module_utils.node import confcheck, confdir, findings

NAME = "nodenet.cni.lint_conflist"


def lint_conflist(value: t.Any, filename: str | None = None, severity: str = "info") -> list[dict[str, str]]:
    """Return the findings of a network configuration, the gravest first."""
    if severity not in findings.SEVERITIES:
        raise AnsibleFilterError(
            f"{NAME}: severity has to be one of {', '.join(findings.SEVERITIES)}, not {severity!r}"
        )
    if isinstance(value, Mapping):
        try:
            data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        except (TypeError, ValueError) as error:
            raise AnsibleFilterError(f"{NAME}: the conflist cannot be written as JSON: {error}") from error
    elif isinstance(value, (str, bytes)):
        data = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
    else:
        raise AnsibleFilterError(f"{NAME}: wants a conflist as text or as a dictionary, not {_kind(value)}")
    where = _file_name(data) if filename is None else str(filename)
    if confdir.extension(where) not in confdir.EXTENSIONS:
        known = ", ".join(confdir.EXTENSIONS)
        raise AnsibleFilterError(f"{NAME}: filename has to end in one of {known}, not {where!r}")
    # what flannel hands out is known on the node alone
    facts = confcheck.check_file(confdir.ConfFile(where.rpartition("/")[2], data), where, flannel_subnet_file="")
    wanted = findings.SEVERITIES[: findings.SEVERITIES.index(severity) + 1]
    return [one for one in findings.from_facts(facts) if one["severity"] in wanted]


def _file_name(data: bytes) -> str:
    """Return a name for a configuration that came without one: its ending says whether it is a list."""
    one = confdir.ConfFile("conflist.conflist", data)
    is_single = isinstance(one.tree, tuple) and "plugins" not in dict(one.tree)
    return f"{one.network or 'network'}.{'conf' if is_single else 'conflist'}"


def _kind(value: t.Any) -> str:
    """Return the name of a value's type as a playbook's author knows it: ansible-core has subclasses of its own."""
    return next((one.__name__ for one in type(value).__mro__ if one.__module__ == "builtins"), "object")


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"lint_conflist": lint_conflist}
