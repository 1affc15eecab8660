# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import tempfile
import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet import merge, table, unknown_networks


class ActionModule(ActionBase):
    """Compares what host_local_info returned on the hosts of the play. Runs on the controller only."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            {
                "reports": {"type": "dict"},
                "variable": {"type": "str", "default": "nodenet_ipam"},
                "hosts": {"type": "list", "elements": "str"},
                "scopes": {"type": "dict", "default": {}},
                "threshold": {"type": "float", "default": 0.8},
                "dest": {"type": "path"},
                "output_dir": {"type": "path"},
            }
        )
        try:
            result.update(self._compare(options, task_vars or {}))
        except NodenetError as exc:
            # as a result, not as an exception, which failed_when would not see
            result.update(failed=True, msg=str(exc))
        return result

    def _compare(self, options: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        if not 0 < options["threshold"] <= 1:
            raise NodenetError(
                f"Cannot compare the nodes: threshold {options['threshold']} is not above 0 and at most 1"
            )
        for name, scope in options["scopes"].items():
            if scope not in ("shared", "node"):
                raise NodenetError(f"Cannot compare the nodes: scope {scope!r} of network {name} is not shared or node")
        reports = self._reports(options, task_vars)
        if not reports:
            raise NodenetError("Cannot compare the nodes: there is no host to compare")
        merged = merge(reports, options["scopes"], options["threshold"])
        tables = {host: table(report) for host, report in sorted(reports.items())}
        result = dict(merged, tables=tables, changed=False)
        unknown = unknown_networks(reports, options["scopes"])
        if unknown:
            result["warnings"] = [f"scopes names networks of which no report tells: {', '.join(unknown)}"]
        fleet = dict(merged, reports={host: reports[host] for host in sorted(reports)})
        if options["output_dir"]:
            result.update(output_dir=options["output_dir"], changed=self._write_all(options["output_dir"], fleet))
        if options["dest"]:
            result.update(dest=options["dest"], changed=self._write(options["dest"], fleet) or result["changed"])
        return result

    def _reports(self, options: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        if options["reports"] is not None:
            reports = dict(options["reports"])
            return {host: reports.get(host) for host in [*reports, *(options["hosts"] or [])]}
        hosts = options["hosts"] or task_vars.get("ansible_play_hosts_all") or []
        hostvars = task_vars.get("hostvars") or {}
        return {host: hostvars[host].get(options["variable"]) if host in hostvars else None for host in hosts}

    def _write_all(self, output_dir: str, fleet: dict[str, t.Any]) -> bool:
        """Write the report of each host that has one and of the fleet, which is last; tell whether a file changes."""
        if not self._task.check_mode:
            try:
                os.makedirs(output_dir, exist_ok=True)
            except OSError as error:
                raise NodenetError(f"Cannot make the directory {output_dir}: {error.strerror}") from error
        files = {host.replace("/", "_"): report for host, report in fleet["reports"].items() if report is not None}
        files["fleet"] = fleet
        changed = [self._write(os.path.join(output_dir, name + ".json"), files[name]) for name in files]
        return any(changed)

    def _write(self, dest: str, document: dict[str, t.Any]) -> bool:
        """Write *document* as JSON, whole or not at all; tell whether the file changes."""
        text = json.dumps(document, indent=1, sort_keys=True) + "\n"
        try:
            with open(dest, encoding="utf-8") as stream:
                if stream.read() == text:
                    return False
        except (OSError, ValueError):
            pass
        if self._task.check_mode:
            return True
        temporary = ""
        try:
            handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=os.path.dirname(dest) or ".")
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                os.fchmod(stream.fileno(), 0o644)
            os.replace(temporary, dest)
        except OSError as error:
            if temporary and os.path.exists(temporary):
                os.unlink(temporary)
            raise NodenetError(f"Cannot write the report to {dest}: {error.strerror}") from error
        return True
