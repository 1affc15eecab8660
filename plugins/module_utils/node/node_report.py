# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All that can be said of a node's CNI state without changing it: the work of module node_info.

Each part imports what it needs when it is asked for, since a task compiles what it imports.
"""

from __future__ import annotations

import os
import time

from ..cni.errors import NodenetError
from ..host_local.snapshot import STATIC_PREFIX
from . import confdir, findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .survey import Places

REPORT_VERSION = 1
PARTS = ("binaries", "conf", "prerequisites", "caches", "addresses", "multus")


class Options:
    """Where to look; see the options of node_info of the same names."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.conf_dir: str = values["conf_dir"]
        self.bin_dir: str = values["bin_dir"]
        self.state_dir: str = values["state_dir"]
        self.cache_dir: str = values["cache_dir"]
        self.multus_cache_dir: str = values["multus_cache_dir"]
        self.multus_kubeconfig: str = values["multus_kubeconfig"]
        self.flannel_subnet_file: str = values["flannel_subnet_file"]
        self.containerd_config: str = values["containerd_config"]
        self.crio_config: str = values["crio_config"]
        self.sysctl_dir: str = values["sysctl_dir"]
        self.sysctl_others: list[str] = values["sysctl_others"]
        self.networkmanager_dir: str = values["networkmanager_dir"]
        self.firewalld_dir: str = values["firewalld_dir"]
        self.lock_timeout: float = values["lock_timeout"]
        self.audit: bool = values.get("audit") or False
        self.networks: list[str] | None = values.get("networks")
        self.data_dir: str | None = values.get("data_dir")
        self.live: dict[str, Any] | None = values.get("live")
        self.previous: dict[str, Any] | None = values.get("previous")


def report(options: Options, gather: Sequence[str] = PARTS, places: Places | None = None) -> dict[str, Any]:
    """Return the report of these parts; what was not asked for is None.

    :param places: where the prerequisites are looked for, if not where *options* say
    :raises NodenetError: a path that cannot be one, or a conf dir that cannot be read; everything else is a finding
    """
    facts: list[dict[str, Any]] = []
    result: dict[str, Any] = dict.fromkeys(PARTS)
    try:
        found = confdir.read_conf_dir(options.conf_dir)
    except OSError as exc:
        raise NodenetError(f"Cannot read conf dir {options.conf_dir}: {exc.strerror or exc}") from exc
    speaks: dict[str, list[str]] = {}
    if "binaries" in gather:
        result["binaries"], more = _binaries(options)
        facts += more
        speaks = {row["name"]: row["cni_versions"] for row in result["binaries"]["plugins"]}
    if "conf" in gather:
        result["conf"], more = _conf(options, found, speaks)
        facts += more
    if "prerequisites" in gather:
        result["prerequisites"], more = _prerequisites(options, places)
        facts += more if "conf" not in gather else [fact for fact in more if not fact["kind"].startswith("conf-")]
    if "caches" in gather:
        result["caches"], more = _caches(options)
        facts += more
    noted: list[dict[str, str]] = []
    if "addresses" in gather:
        full = _networks(options)
        result["addresses"], noted = [_in_short(one) for one in full["networks"]], full["findings"]
        if options.audit:
            result.update(networks=full["networks"], unread=full["unread"])
        # the part conf tells the exact cause of what others only stumble over
        noted = [one for one in noted if "conf" not in gather or not one["code"].startswith("CONF")]
    if "multus" in gather:
        from . import kubeconfig

        result["multus"], more = kubeconfig.look(options.multus_kubeconfig)
        facts += more
    listed = findings.from_facts(facts)
    listed += [one for one in noted if one not in listed]
    order = findings.SEVERITIES.index
    return {
        "report_version": REPORT_VERSION,
        "taken_at": int(time.time()),
        **result,
        "findings": sorted(listed, key=lambda one: order(one["severity"])),
    }


def _binaries(options: Options) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from . import bin_dir, bin_report, embedded_health, manifest, mounts

    facts: list[dict[str, Any]] = []
    document: dict[str, Any] = {"bin_dir": options.bin_dir, "exists": os.path.isdir(options.bin_dir)}
    document.update(plugins=[], embedded=[])
    try:
        record: manifest.Manifest | None = manifest.Manifest(options.state_dir, options.bin_dir)
    except NodenetError as exc:
        record = None
        where = os.path.join(options.state_dir, "plugin_binaries.json")
        facts.append({"kind": "node-record-unusable", "where": where, "reason": str(exc)})
    try:
        names = sorted(name for name in os.listdir(options.bin_dir) if not name.startswith("."))
        present = bin_dir.look(options.bin_dir, names)
    except FileNotFoundError:
        names, present = [], {}
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        facts.append({"kind": "bin-dir-unreadable", "where": options.bin_dir, "reason": reason})
        return document, facts
    describe = bin_report.Report(options.bin_dir, (), record.versions if record else {}, absent=False)
    for name, there in present.items():
        if there.kind not in ("file", "link") or not os.path.isfile(os.path.join(options.bin_dir, name)):
            continue
        drift = record is not None and bin_report.drifted(record, present, name)
        row = describe.describe(name, bin_dir.KEPT, there.sha256, bool(there.embedded), drift)
        del row["action"]
        ours = record.plugins.get(name, {}) if record else {}
        row.update(kind=there.kind, mode=f"{there.mode:04o}" if there.kind == "file" else None)
        row["source"] = ours.get("source")
        document["plugins"].append(row)
    facts += describe.facts
    if record:
        facts += bin_report.drift_facts(options.bin_dir, record, present, sorted({*record.plugins, *present}))
    mount = mounts.noexec_mount(options.bin_dir)
    if mount:
        facts.append({"kind": "bin-noexec", "where": options.bin_dir, "mount": mount})
    document["embedded"], more = embedded_health.look(options.bin_dir)
    return document, facts + more


def _conf(
    options: Options, found: confdir.ConfDir, speaks: Mapping[str, list[str]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from . import confcheck, dircheck
    from .effective import Settings, predict

    def told_by(kind: str) -> list[str]:
        return list(speaks.get(kind, ()))

    facts: list[dict[str, Any]] = []
    installed = confdir.installed_plugins(options.bin_dir)
    runtimes = Settings(installed, told_by)
    runtimes.read_runtimes(options.conf_dir, options.containerd_config, options.crio_config)
    effective = predict(found.files, runtimes)
    if not found.exists:
        facts.append({"kind": "conf-dir-missing", "where": options.conf_dir})
    if not os.path.lexists(options.bin_dir) and any(one.types for one in found.files):
        reason = "there is no such directory, and networks need plugins"
        facts.append({"kind": "bin-dir-unreadable", "where": options.bin_dir, "reason": reason})
    rows: list[dict[str, Any]] = []
    for one in found.files:
        where = os.path.join(options.conf_dir, one.shown)
        facts += confcheck.check_file(one, where, options.flannel_subnet_file, installed)
        if installed is not None and not one.error:
            facts += confcheck.check_binaries(one, where, options.bin_dir, installed)
            facts += confcheck.check_versions(one, where, told_by)
        chained = [kind for more in found.chained.get(one.network, ()) for kind in more.types] if not one.error else []
        rows.append(
            {
                "name": one.shown,
                "network": one.network or None,
                "cni_version": one.cni_version or None,
                "plugins": one.types,
                "chained": chained,
                "error": one.error or None,
            }
        )
        if options.audit and not one.error:
            from .conf_settings import settings

            rows[-1]["settings"] = settings(one.tree)
    told = {fact["where"] for fact in facts}
    facts += [
        fact
        for fact in dircheck.check_dir(found, effective, options.flannel_subnet_file)
        if fact["kind"] != "conf-broken" or fact["where"] not in told  # else the exact cause is there already
    ]
    document = {"conf_dir": options.conf_dir, "exists": found.exists, "files": rows, "effective": effective}
    return document, facts


def _prerequisites(options: Options, places: Places | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from . import standing, survey

    if places is None:
        places = survey.Places(
            sysctl_dir=options.sysctl_dir,
            sysctl_others=options.sysctl_others,
            networkmanager_dir=options.networkmanager_dir,
            firewalld_dir=options.firewalld_dir,
        )
    needs, facts = survey.needs_of(options.conf_dir, options.flannel_subnet_file)
    document, more = standing.look(needs, places)
    directories = [options.conf_dir, options.bin_dir]
    return document, facts + more + survey.directory_facts(directories)


def _caches(options: Options) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    from . import cachecount

    booted = cachecount.boot_time()
    rows, facts = [], []
    for kind, path in (("results", os.path.join(options.cache_dir, "results")), ("multus", options.multus_cache_dir)):
        row, more = cachecount.count(kind, path, booted)
        rows.append(row)
        facts += more
    return rows, facts


def _networks(options: Options) -> dict[str, Any]:
    """Return the report of the networks of host-local, compact."""
    from . import ipam_report

    return ipam_report.report(
        options.conf_dir,
        options.flannel_subnet_file,
        names=options.networks,
        data_dir=options.data_dir,
        live=options.live,
        lock_timeout=options.lock_timeout,
        results_dirs=[os.path.join(one, "results") for one in (options.cache_dir, options.multus_cache_dir)],
        previous=options.previous,
        compact=True,
    )


def _in_short(network: dict[str, Any]) -> dict[str, Any]:
    """Return a network as numbers. host_local_info has the reservations one by one."""
    from ..host_local import compact

    return {
        "name": network["name"],
        "data_dir": network["data_dir"],
        "source": network["source"],
        "scope": network["scope"],
        "usable": sum(each["usable"] for each in network["range_sets"]),
        "free": sum(each["free"] for each in network["range_sets"]),
        "reservations": compact.count(network),
        "static": sum(fields[1].startswith(STATIC_PREFIX) for fields in compact.lines(network["rows"])),
    }
