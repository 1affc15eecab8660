# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

from ansible.errors import AnsibleFilterError

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import multus_requests

NAME = "nodenet.cni.format_networks"
FORMS = ("auto", "json", "short")


def format_networks(value: t.Any, form: str = "auto") -> str:
    """Return the text of a pod's annotation for these networks."""
    if form not in FORMS:
        raise AnsibleFilterError(f"{NAME}: form has to be one of {', '.join(FORMS)}, not {form!r}")
    if isinstance(value, (str, Mapping)):
        value = [value]
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        kind = next((one.__name__ for one in type(value).__mro__ if one.__module__ == "builtins"), "object")
        raise AnsibleFilterError(f"{NAME}: wants a list of networks, not {kind}")
    try:
        return multus_requests.text_of([_plain(one) for one in value], form)
    except NodenetError as error:
        raise AnsibleFilterError(f"{NAME}: {error}") from error


def _plain(value: t.Any) -> t.Any:
    """Return what the templates of ansible-core have wrapped as ordinary dictionaries and lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"format_networks": format_networks}
