# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import os
import re
import time
import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node.findings import SEVERITIES, every
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet import (
    Question,
    failing,
    merge,
    table,
    unknown_networks,
)
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_drift import KINDS
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_history import KEEP, History
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_lines import shown
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_files import FORMATS, paths_in, write, write_files
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_files import KINDS as REPORT_KINDS
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_json import FLEET, file_names, lines


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
                "plan": {"type": "dict"},
                "plan_variable": {"type": "str"},
                "pod_cidrs": {"type": "dict"},
                "pod_cidr_variable": {"type": "str"},
                "pod_network": {"type": "str", "default": ""},
                "drift": {"type": "list", "elements": "str", "choices": list(KINDS), "default": list(KINDS)},
                "history": {"type": "path"},
                "history_keep": {"type": "int", "default": KEEP},
                "fail_on": {"type": "list", "elements": "str", "default": ["never"]},
                "tables": {"type": "bool", "default": True},
                "dest": {"type": "path"},
                "output_dir": {"type": "path"},
                "mode": {"type": "raw"},
                "output_formats": {
                    "type": "list",
                    "elements": "str",
                    "choices": list(FORMATS),
                    "default": list(FORMATS),
                },
                "files": {"type": "dict", "options": {kind: {"type": "path"} for kind in REPORT_KINDS}},
            }
        )
        try:
            result.update(self._compare(options, task_vars or {}))
        except (NodenetError, ValueError) as exc:
            # as a result, not as an exception, which failed_when would not see
            text = str(exc)
            result.update(
                failed=True, msg=text if isinstance(exc, NodenetError) else f"Cannot compare the nodes: {text}"
            )
        return result

    def _compare(self, options: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        _check(options)
        mode = _mode(options["mode"])
        reports, plan, pod_cidrs = self._reports(options, task_vars)
        if not reports:
            raise NodenetError("Cannot compare the nodes: there is no host to compare")
        paths = paths_in(options["output_dir"], options["output_formats"]) if options["output_dir"] else []
        paths += [(kind, path) for kind, path in (options["files"] or {}).items() if path]
        names = file_names(reports) if options["output_dir"] else {}
        # before the history is opened or a file is written: a file that cannot be would leave the others behind
        for path in [options["dest"], *(options["files"] or {}).values()]:
            if path and not os.path.isdir(os.path.dirname(path) or "."):
                raise NodenetError(f"Cannot write the report to {path}: No such directory; make it first")
        question = Question(
            scopes=options["scopes"],
            threshold=options["threshold"],
            plan=plan,
            pod_cidrs=pod_cidrs,
            pod_network=options["pod_network"],
            drift=options["drift"],
            now=int(time.time()),
        )
        with contextlib.ExitStack() as stack:
            history = None
            if options["history"]:
                history = stack.enter_context(History(options["history"], write=not self._task.check_mode))
                question = question._replace(before=history.before(question.now))
            merged = merge(reports, question)
            if history:
                merged["history"] = history.compare(merged, question.before)
            result = dict(merged, changed=history is not None, shown=shown(merged))
            if options["tables"]:
                result["tables"] = {host: table(report) for host, report in sorted(reports.items())}
            unknown = unknown_networks(reports, options["scopes"])
            if unknown:
                result["warnings"] = [f"scopes names networks of which no report tells: {', '.join(unknown)}"]
            fleet = dict(merged, reports={host: reports[host] for host in sorted(reports)})
            if options["output_dir"]:
                changed = self._write_all(options["output_dir"], fleet, names, mode)
                result.update(output_dir=options["output_dir"], changed=changed or result["changed"])
            if options["dest"]:
                changed = write(options["dest"], lines(fleet), self._task.check_mode, mode=mode)
                result.update(dest=options["dest"], changed=changed or result["changed"])
            result["changed"] = write_files(fleet, paths, self._task.check_mode, mode) or result["changed"]
            if history and not self._task.check_mode:
                history.append(merged, options["history_keep"])  # last: what cannot be written is told next time
        result["failing"] = failing(merged, options["fail_on"])
        if result["failing"]:
            # after everything is written: whoever is called wants to read it
            result.update(failed=True, msg=f"Findings that fail_on names: {', '.join(result['failing'])}")
        return result

    def _reports(
        self, options: dict[str, t.Any], task_vars: dict[str, t.Any]
    ) -> tuple[dict[str, t.Any], dict[str, t.Any], dict[str, list[str]]]:
        """Return what each host reported, what is planned for it, and the pod CIDRs that it was assigned."""
        reports = dict(options["reports"] or {})
        plan = dict(options["plan"] or {})
        pod_cidrs = dict(options["pod_cidrs"] or {})
        hosts = options["hosts"] or []
        if options["reports"] is None and not hosts:
            hosts = task_vars.get("ansible_play_hosts_all") or []
        hostvars = task_vars.get("hostvars") or {}
        for host in dict.fromkeys([*reports, *hosts]):
            # its variables are put together anew each time, so once
            variables: t.Mapping[str, t.Any] = {}
            if host in hostvars:
                variables = hostvars[host]
            if options["reports"] is None:
                reports[host] = variables.get(options["variable"])
            else:
                reports.setdefault(host, None)
            for name, found in ((options["plan_variable"], plan), (options["pod_cidr_variable"], pod_cidrs)):
                if name and host not in found and variables.get(name):
                    found[host] = variables.get(name)
        listed = {host: [one] if isinstance(one, str) else list(one) for host, one in pod_cidrs.items()}
        return reports, plan, listed

    def _write_all(self, output_dir: str, fleet: dict[str, t.Any], names: dict[str, str], mode: int | None) -> bool:
        """Write the report of each host that has one and of the fleet, which is last; tell whether a file changes.

        :param names: name of the file of each host, as `report_json.file_names` has them
        """
        if not self._task.check_mode:
            try:
                os.makedirs(output_dir, exist_ok=True)
            except OSError as error:
                raise NodenetError(f"Cannot make the directory {output_dir}: {error.strerror}") from error
        changed = False
        for host, report in fleet["reports"].items():
            if report is not None:  # a sync of each of thousands would take longer than all the rest
                path = os.path.join(output_dir, names[host])
                changed = write(path, lines(report), self._task.check_mode, sync=False, mode=mode) or changed
        return write(os.path.join(output_dir, FLEET), lines(fleet), self._task.check_mode, mode=mode) or changed


def _mode(value: t.Any) -> int | None:
    if value is None:
        return None
    # a number has lost how it was written: 0640 is 416 in YAML, and 640 would be another mode
    if isinstance(value, str) and re.fullmatch("0[0-7]{3}", value):
        return int(value, 8)
    raise NodenetError(f"Cannot compare the nodes: mode {value!r} is not an octal number in quotes, such as '0640'")


def _check(options: dict[str, t.Any]) -> None:
    if not 0 < options["threshold"] <= 1:
        raise NodenetError(f"Cannot compare the nodes: threshold {options['threshold']} is not above 0 and at most 1")
    if options["history_keep"] < 1:
        raise NodenetError(f"Cannot compare the nodes: history_keep {options['history_keep']} is not at least 1")
    for name, scope in options["scopes"].items():
        if scope not in ("shared", "node"):
            raise NodenetError(f"Cannot compare the nodes: scope {scope!r} of network {name} is not shared or node")
    known = {"never", *SEVERITIES, *(code for code, *_rest in every().values())}
    unknown = sorted(set(options["fail_on"]) - known)
    if unknown:
        raise NodenetError(
            f"Cannot compare the nodes: fail_on takes {', '.join(SEVERITIES)}, never and codes of findings, not "
            + ", ".join(unknown)
        )
