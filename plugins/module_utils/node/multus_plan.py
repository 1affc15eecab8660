# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put Multus in front of a node's network, keep its copy of the master up to date, and take it away again (M16).

The order keeps every moment usable for a runtime: the kubeconfig is complete before the file that names it, that file
appears by a rename, and only then its twin of another ending goes. Removal goes the other way round: first the file of
Multus, so that runtimes fall back to the master's own file, then the kubeconfig, and the executable last.
"""

from __future__ import annotations

import os

from ..cni import gojson
from ..cni.errors import NodenetError
from . import confcheck, confdir, conflists, dircheck, kubeconfig, multus_conf, multus_kubeconfig, multus_master
from .confdir import ConfFile, text_of
from .effective import RUNTIMES, Settings, predict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

MODE = 0o600
_TARGETS = tuple(multus_master.STEM + ending for ending in confdir.EXTENSIONS)


class Options:
    """What the user asked for besides the document. kubeconfig_path: where it is, or will be; kubeconfig: what it shall
    hold, None to leave it as it is. parts: which of "config" and "kubeconfig" are looked after."""

    def __init__(
        self,
        master: str = "",
        wishes: multus_conf.Wishes | None = None,
        runtimes: Settings | None = None,
        expect_effective: str = "",
        bin_dir: str = "",
        kubeconfig_path: str = "",
        kubeconfig: Mapping[str, Any] | None = None,
        parts: Sequence[str] = ("config", "kubeconfig"),
        flannel_subnet_file: str = "",
    ) -> None:
        self.master = master
        self.wishes = wishes or multus_conf.Wishes()
        self.runtimes = runtimes or Settings()
        self.expect_effective = expect_effective
        self.bin_dir = bin_dir
        self.kubeconfig_path = kubeconfig_path
        self.kubeconfig = kubeconfig
        self.parts = parts
        self.flannel_subnet_file = flannel_subnet_file


def options_of(params: Mapping[str, Any]) -> Options:
    """Return the options of the module multus_config as the planner takes them."""
    installed = confdir.installed_plugins(params["bin_dir"])
    speaks = confdir.plugin_versions(params["bin_dir"]) if installed else None
    runtimes = Settings(installed, speaks, params["crio_default_network"] or "")
    runtimes.read_runtimes(params["conf_dir"], params["containerd_config"], params["crio_config"])
    members = {
        "namespaceIsolation": params["namespace_isolation"],
        "globalNamespaces": ",".join(params["global_namespaces"] or []),
        "logToStderr": params["log_to_stderr"],
        "logLevel": params["log_level"],
        "logFile": params["log_file"],
        "confDir": params["delegate_conf_dir"],
        "cniDir": params["cache_dir"],
        "binDir": params["delegate_bin_dir"] or params["bin_dir"],
        "readinessindicatorfile": params["readiness_indicator_file"],
    }
    wishes = multus_conf.Wishes(
        params["name"], params["cni_version"] or "", params["force_cni_version"], members, params["settings"]
    )
    return Options(
        master=params["master"] or "",
        wishes=wishes,
        runtimes=runtimes,
        expect_effective=params["expect_effective"] or "",
        bin_dir=params["bin_dir"],
        kubeconfig_path=params["kubeconfig_path"] or os.path.join(params["conf_dir"], "multus.d", "multus.kubeconfig"),
        kubeconfig=params["kubeconfig"],
        parts=params["parts"],
        flannel_subnet_file=params["flannel_subnet_file"],
    )


def make_plan(found: confdir.ConfDir, params: Mapping[str, Any]) -> Plan:
    """Decide what the options of the module multus_config ask for. Raises NodenetError."""
    options = options_of(params)
    if params["state"] == "present":
        plan = plan_present(found, options)
        plan.result["plugin"] = None
        return plan
    from . import multus_leaving

    where = (params["bin_dir"], params["state_dir"], params["cache_dir"])
    answer, facts = multus_leaving.look(*where, params["remove_plugin"])
    if answer["cached_delegates"] and any(multus_master.of_multus(one) for one in found.files):
        facts.append({"kind": "multus-pods-left", "where": params["cache_dir"], "count": answer["cached_delegates"]})
    plan = plan_absent(found, options, answer["path"] if answer["removed"] else "", facts)
    plan.result["plugin"] = answer
    return plan


class Plan(conflists.Plan):
    """A plan of the conf dir, and what becomes of the kubeconfig (``credentials``, None if it is not looked after) and
    of files and directories outside (``later``: to remove after the configuration, in order)."""

    def __init__(self, conf_dir: str) -> None:
        super().__init__(conf_dir, MODE)
        self.credentials: multus_kubeconfig.Plan | None = None
        self.later: list[str] = []


def plan_present(found: confdir.ConfDir, options: Options) -> Plan:
    """Decide what has to change so that every new pod gets its network from Multus.

    :param found: what read_conf_dir returned
    :raises NodenetError: it cannot be written, or a runtime would not use it
    """
    plan = Plan(found.path)
    verb = f"write Multus' configuration in {found.path}"
    facts: list[dict[str, Any]] = []
    wanted = options.kubeconfig if "kubeconfig" in options.parts else None
    if options.kubeconfig_path:
        plan.credentials = multus_kubeconfig.make_plan(options.kubeconfig_path, wanted, verb)
        if plan.credentials.data is None:
            facts += kubeconfig.look(options.kubeconfig_path)[1]
    plan.result = _result(found, plan, "present")
    if "config" in options.parts:
        facts += _plan_config(found, options, plan, verb)
    plan.result["changed"] = bool(plan.write or plan.remove or (plan.credentials and plan.credentials.data))
    if plan.credentials and plan.credentials.data is not None:
        plan.diff.append(plan.credentials.diff)
    _finish(plan, found, options, facts)
    return plan


def plan_absent(
    found: confdir.ConfDir, options: Options, plugin: str = "", facts: Sequence[dict[str, Any]] = ()
) -> Plan:
    """Decide what has to go so that runtimes fall back to the master's own file.

    :param plugin: path of the executable that goes too, "" if it stays
    :param facts: what is doubtful already
    :raises NodenetError: a runtime would be left without a network, or with another one than the master's
    """
    plan = Plan(found.path)
    verb = f"remove Multus' configuration from {found.path}"
    files = [one for one in found.files if multus_master.of_multus(one)]
    plan.remove = [one.name for one in reversed(files)]
    plan.result = _result(found, plan, "absent")
    if options.kubeconfig_path and os.path.lexists(options.kubeconfig_path):
        if os.path.isdir(options.kubeconfig_path) and not os.path.islink(options.kubeconfig_path):
            raise NodenetError(f"Cannot {verb}: the kubeconfig {options.kubeconfig_path} is a directory")
        if multus_kubeconfig.may_go(options.kubeconfig_path):
            plan.later.append(options.kubeconfig_path)
    folder = _own_folder(options.kubeconfig_path)
    if folder:
        plan.later.append(folder)
    if plugin:
        plan.later.append(plugin)
    after = _refuse_unexpected(found, plan, options, verb, _expected_without(files))
    plan.diff = [_conf_diff(found.path, one, None, MODE) for one in files]
    plan.diff += [
        {"before": "present\n", "after": "", "before_header": path, "after_header": path} for path in plan.later
    ]
    plan.result["removed"] = [os.path.join(found.path, name) for name in plan.remove] + plan.later
    plan.result["changed"] = bool(plan.remove or plan.later)
    _finish(plan, found, options, list(facts), after)
    return plan


def apply(plan: Plan) -> None:
    """Carry a plan out, in the order that the top of this file tells. Raises NodenetError."""
    from . import confwrite, files

    if plan.credentials is not None and plan.credentials.data is not None:
        path = plan.credentials.path
        try:
            files.make_directory(os.path.dirname(path))
            files.sweep_temporary(os.path.dirname(path))
            files.replace_file(path, plan.credentials.data, multus_kubeconfig.MODE)
        except OSError as fault:
            raise NodenetError(f"Cannot write kubeconfig {path}: {fault.strerror or fault}") from fault
    confwrite.apply_plan(plan)
    for path in plan.later:
        try:
            if os.path.isdir(path) and not os.path.islink(path):
                files.sweep_temporary(path)
                files.remove_directories([path])  # it stays if somebody uses it meanwhile
            else:
                files.remove_file(path)
        except OSError as fault:
            raise NodenetError(f"Cannot remove {path}: {fault.strerror or fault}") from fault


def _own_folder(kubeconfig_path: str) -> str:
    """Return the directory of the kubeconfig if it is Multus' own and nobody keeps anything else there, else ""."""
    from . import files

    folder, name = os.path.split(kubeconfig_path)
    if os.path.basename(folder) != "multus.d" or os.path.islink(folder):
        return ""
    try:
        others = [one for one in os.listdir(folder) if one != name and not one.startswith(files.TEMPORARY_PREFIX)]
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return "" if others else folder


def _result(found: confdir.ConfDir, plan: Plan, state: str) -> dict[str, Any]:
    return {
        "conf_dir": found.path,
        "state": state,
        "file": None,
        "network": None,
        "cni_version": None,
        "master": None,
        "config": None,
        "capabilities": {},
        "drift": [],
        "removed": [],
        "kubeconfig": plan.credentials.report if plan.credentials else None,
    }


def _plan_config(found: confdir.ConfDir, options: Options, plan: Plan, verb: str) -> list[dict[str, Any]]:
    master = multus_master.find(found, options.master, options.runtimes, verb)
    credentials = plan.credentials
    if credentials is not None and credentials.report is not None:
        options.wishes.members["kubeconfig"] = options.kubeconfig_path
    target = multus_conf.build(master, options.wishes, verb)
    where = os.path.join(found.path, target.name)
    there = {one.name: one for one in found.files if one.name in _TARGETS}
    for one in there.values():
        if not one.error and not multus_master.of_multus(one):
            raise NodenetError(
                f"Cannot {verb}: {one.shown} defines network {one.network}, which is not Multus'; move it away first",
                file=os.path.join(found.path, one.shown),
            )
    facts = confcheck.check_file(target, where, options.flannel_subnet_file)
    _refuse_own_faults(target, where, verb)
    if options.runtimes.installed is not None and not options.runtimes.installed("multus"):
        raise NodenetError(
            f"Cannot {verb}: there is no plugin multus in {options.bin_dir}, and every new pod would fail; "
            "install it first",
            bin_dir=options.bin_dir,
        )
    if options.runtimes.installed is not None:
        facts += confcheck.check_binaries(target, where, options.bin_dir, options.runtimes.installed)
    before = there.get(target.name) or next(iter(there.values()), None)
    same = there.get(target.name)
    mode = conflists.modes_of(found.path, [target.name]).get(target.name)
    if same is None or mode != MODE or not conflists.same_content(same, target):
        plan.write.append(target)
        plan.diff.append(_conf_diff(found.path, same, target, mode))
    plan.remove = [name for name in there if name != target.name]
    plan.diff += [_conf_diff(found.path, there[name], None, MODE) for name in plan.remove]
    if credentials is None or credentials.report is None:
        facts.append({"kind": "multus-no-kubeconfig", "where": where})
    chained = found.chained.get(master.network, [])
    if chained and any(one is master for one in found.files):
        types = ", ".join(kind for one in chained for kind in one.types)
        facts.append({"kind": "multus-master-chained", "where": where, "master": master.shown, "types": types})
    drifted = multus_conf.drift(before, target)
    plan.result.update(
        file=where,
        network=target.network,
        cni_version=target.cni_version,
        master={"network": master.network, "file": master.shown, "cni_version": master.cni_version,
                "types": master.types},
        config=gojson.plain(target.tree),
        capabilities=multus_conf.united_capabilities(master),
        drift=drifted,
        removed=[os.path.join(found.path, name) for name in plan.remove],
    )  # fmt: skip
    _refuse_unexpected(found, plan, options, verb, {runtime: target.network for runtime in RUNTIMES})
    return facts


def _refuse_own_faults(target: ConfFile, where: str, verb: str) -> None:
    """Refuse what is wrong with Multus' own members; faults of the master were there before, and are findings."""
    from . import findings, lint

    own = lint.check_keys(multus_conf.plugin_of(target), "multus", where, "plugins[0]" if target.is_list else "")
    grave = [one for one in findings.from_facts(own) if one["severity"] == "error"]
    if grave:
        reasons = "; ".join(f"{one['text']} ({one['hint']})" for one in grave)
        raise NodenetError(f"Cannot {verb}: {reasons}", findings=grave)


def _expected_without(files: Sequence[ConfFile]) -> dict[str, str]:
    """Return, by runtime, the network of the master of the files that go; "" where they do not tell."""
    for one in files:
        names = [text_of(gojson.field(delegate, "name")) for delegate in multus_conf.delegates_of(one)[:1]]
        if names and names[0]:
            return {runtime: names[0] for runtime in RUNTIMES}
    return {}


def _refuse_unexpected(
    found: confdir.ConfDir, plan: Plan, options: Options, verb: str, wanted: Mapping[str, str]
) -> list[ConfFile]:
    """Refuse a plan after which a runtime uses another network than it shall; return the files as they will be.

    :param wanted: by runtime, the network that the plan is about
    """
    after = confdir.with_change(found.files, plan.write, plan.remove)
    effective = {
        when: predict(listed, options.runtimes) for when, listed in (("before", found.files), ("after", after))
    }
    plan.result["effective"] = effective
    gone = {one.network for one in found.files if one.name in plan.remove}
    for runtime, title in RUNTIMES.items():
        was, will = effective["before"][runtime], effective["after"][runtime]
        expected, hint = options.expect_effective, ""
        if not expected:
            if not will["known"] or (plan.result["state"] == "absent" and was["network"] not in gone):
                continue  # unknown, or no matter of Multus'
            expected = wanted.get(runtime) or (will["network"] or "any other network")
            if will["network"] is not None:
                hint = "; set expect_effective to the network that is meant (roles: multus_expect_effective)"
        if will["network"] != expected:
            network = f"network {will['network']}" if will["network"] is not None else "no network"
            if not will["known"]:
                network = "an unknown network"
                hint = f'; set {runtime}_config: "" to go by its defaults (roles: multus_{runtime}_config)'
            raise NodenetError(
                f"Cannot {verb}: {title} would use {network} instead of {expected} ({will['reason']}){hint}",
                effective=dict(effective["after"]),
            )
    return after


def _finish(
    plan: Plan,
    found: confdir.ConfDir,
    options: Options,
    facts: list[dict[str, Any]],
    after: list[ConfFile] | None = None,
) -> None:
    """Add what is wrong with the directory as it will be, and the runtimes' choice where it was no question."""
    from . import findings

    after = after if after is not None else confdir.with_change(found.files, plan.write, plan.remove)
    if "effective" not in plan.result:
        chosen = predict(found.files, options.runtimes)
        plan.result["effective"] = {"before": chosen, "after": chosen}
    told = {fact["where"] for fact in facts}
    later = confdir.ConfDir(found.path, True, after, found.chained, found.others)
    for fact in dircheck.check_dir(later, plan.result["effective"]["after"], options.flannel_subnet_file):
        if fact["kind"] != "conf-broken" or fact["where"] not in told:
            facts.append(fact)
    plan.result["findings"] = findings.from_facts(facts)


def _conf_diff(conf_dir: str, before: ConfFile | None, after: ConfFile | None, mode: int | None) -> dict[str, str]:
    source = before or after
    path = os.path.join(conf_dir, source.shown if source else "")
    headers = [path, path]
    if before is not None and after is not None and mode != MODE:
        headers = [f"{path} (mode {one:04o})" for one in (mode or 0, MODE)]
    texts = [(one.data or b"").decode("utf-8", "replace") if one is not None else "" for one in (before, after)]
    return {
        "before": texts[0],
        "after": texts[1],
        "before_header": headers[0],
        "after_header": headers[1],
    }
