# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with a configuration file before any runtime has read it."""

from __future__ import annotations

from ..cni import gojson, versions
from ..cni.names import valid_name
from . import networks
from .confdir import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import confdir

_SUPPORTED = ", ".join(versions.SUPPORTED)


def check_file(
    one: confdir.ConfFile,
    where: str,
    flannel_subnet_file: str = networks.FLANNEL_SUBNET_FILE,
    installed: Callable[[str], bool] | None = None,
) -> list[dict[str, Any]]:
    """Return the facts about one file: its syntax, structure, version and host-local configurations.

    Nothing is looked up on the node but the subnet file of flannel. *where* is what to call the file.

    :param installed: tells whether the node has a plugin; one that it has is not taken for another that is misspelt
    """
    if one.data is None:
        return [{"kind": "conf-unreadable", "where": where, "reason": one.error}]
    from . import jsonfaults

    text = one.data.decode("utf-8", "replace")
    if one.tree is None and one.error:
        return jsonfaults.explain(text, where)
    # in a valid document they stand in strings, which no runtime looks into
    facts = [dict(fact, kind="conf-placeholder") for fact in jsonfaults.leftovers(text, where)]
    facts += [{"kind": "conf-repeated-key", "where": where, "key": key} for key in gojson.repeated_keys(one.tree)]
    facts += _structure(one, where) or _content(one, where, flannel_subnet_file)
    return [
        fact for fact in facts if fact["kind"] != "conf-type-misspelt" or not (installed and installed(fact["type"]))
    ]


def check_binaries(
    one: confdir.ConfFile, where: str, bin_dir: str, installed: Callable[[str], bool]
) -> list[dict[str, Any]]:
    """Return a fact for each plugin that the file needs and *bin_dir* lacks, those of delegates and ipam too."""
    return [
        {"kind": "conf-plugin-missing", "where": where, "type": name, "bin_dir": bin_dir}
        for name in needed_types(one.plugins)
        if not installed(name)
    ]


def needed_types(plugins: list[Any]) -> list[str]:
    """Return the types of the executables that these plugins need, each once: their own, of delegates and of ipam."""
    needed: list[str] = []
    for plugin in plugins:
        kind = text_of(gojson.field(plugin, "type"))
        needed.append(kind)
        if kind == "flannel":
            needed += [text_of(gojson.field(gojson.field(plugin, "delegate"), "type")) or "bridge", "host-local"]
        delegates = gojson.field(plugin, "delegates") if kind.startswith("multus") else None
        for delegate in delegates if isinstance(delegates, list) else []:
            listed = gojson.field(delegate, "plugins")
            needed += needed_types(listed if isinstance(listed, list) else [delegate])
        needed.append(text_of(gojson.field(gojson.field(plugin, "ipam"), "type")))
    return [name for name in dict.fromkeys(needed) if name]


def check_versions(one: confdir.ConfFile, where: str, speaks: Callable[[str], list[str]]) -> list[dict[str, Any]]:
    """Return a fact for each plugin that does not speak the file's cniVersion.

    :param speaks: tells the versions that a plugin speaks, by its type; [] if it cannot be asked
    """
    told = {name: speaks(name) for name in needed_types(one.plugins)}
    version = one.cni_version or versions.DEFAULT
    common = [each for each in versions.SUPPORTED if all(each in listed for listed in told.values() if listed)]
    params = {"where": where, "version": version, "suggest": common[-1] if common else ""}
    kind = "conf-version-unsupported" if common else "conf-version-no-common"
    return [
        dict(params, kind=kind, type=name, supported=", ".join(listed))
        for name, listed in told.items()
        if listed and version not in listed
    ]


def _structure(one: confdir.ConfFile, where: str) -> list[dict[str, Any]]:
    """Return the faults of the document's form; with one of these nobody reads further."""
    if not isinstance(one.tree, tuple):
        return [{"kind": "conf-structure", "where": where, "reason": "the document is not an object"}]
    listed = gojson.field(one.tree, "plugins")
    if not one.is_list and listed is not None and gojson.field(one.tree, "type") is None:
        return [{"kind": "conf-list-in-conf", "where": where}]
    if one.is_list and listed is None and gojson.field(one.tree, "type") is not None:
        return [{"kind": "conf-single-in-conflist", "where": where}]
    missing = []
    name = gojson.field(one.tree, "name")
    if name is None or name == "":
        missing.append("'name' is missing")
    elif not text_of(name):
        missing.append("'name' is not a string")
    if one.is_list:
        if not isinstance(listed, list) or not listed:
            missing.append("no 'plugins'" if listed is None or listed == [] else "'plugins' is not a list")
        else:
            missing += [
                f"plugins[{index}] has no 'type'"
                for index, plugin in enumerate(listed)
                if not text_of(gojson.field(plugin, "type"))
            ]
    elif not text_of(gojson.field(one.tree, "type")):
        missing.append("'type' is missing")
    if not missing and one.error:
        missing.append(one.error)
    return [{"kind": "conf-structure", "where": where, "reason": reason} for reason in missing]


def _content(one: confdir.ConfFile, where: str, flannel_subnet_file: str) -> list[dict[str, Any]]:
    from . import ipam_rules, lint  # not needed for a file that is no configuration at all

    facts = _versions(one, where)
    if not valid_name(one.network):
        facts.append({"kind": "conf-name-invalid", "where": where, "name": one.network})
    facts += lint.check_config(one.tree, one.cni_version, where)
    for network in networks.network_of(where, one.tree, flannel_subnet_file):
        facts += network.facts or ipam_rules.check(network, where)
    return facts


def _versions(one: confdir.ConfFile, where: str) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = []
    if one.cni_version and one.cni_version not in versions.SUPPORTED:
        facts.append(
            {"kind": "conf-version-unknown", "where": where, "version": one.cni_version, "supported": _SUPPORTED}
        )
    given = dict(one.tree) if one.is_list else {"cniVersion": one.cni_version}
    if not one.cni_version:
        facts.append({"kind": "conf-version-missing", "where": where, "version": versions.DEFAULT})
    elif not given.get("cniVersion"):
        facts.append({"kind": "conf-version-only-list", "where": where, "version": versions.DEFAULT})
    if one.is_list and isinstance(given.get("disableCheck"), str):
        facts.append({"kind": "conf-flag-text", "where": where, "key": "disableCheck"})
    for key, since in (("disableGC", "1.2"), ("loadOnlyInlinedPlugins", "1.3")) if one.is_list else ():
        if str(given.get(key)).lower() == "true":
            facts.append({"kind": "conf-flag-newer", "where": where, "key": key, "since": since})
    return facts
