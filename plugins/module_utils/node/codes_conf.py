# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings of the family CONF: files of the conf dir and what the runtimes make of them. See `findings`."""

from __future__ import annotations

from .findings import CARRIES_ON, FAILS, UNAFFECTED

# kind: (code, severity, go, text, hint)
# fmt: off
CODES = {
    "conf-dir-missing": (
        "CONF001", "error", FAILS,
        "the directory does not exist, so no runtime finds a network",
        "write a conflist there, or give the directory that the runtime reads",
    ),
    "conf-unreadable": (
        "CONF002", "error", FAILS,
        "the file cannot be read: {reason}",
        "make it readable or remove it; containerd loads no network at all while it sorts first, CRI-O skips it",
    ),
    "conf-syntax": (
        "CONF003", "error", FAILS,
        "not valid JSON at line {line}, column {column}: {reason}",
        "render the file with to_json instead of writing JSON by hand",
    ),
    "conf-trailing-comma": (
        "CONF004", "error", FAILS,
        "trailing comma at line {line}, column {column}",
        "JSON allows no comma before a closing bracket; render lists with to_json instead of a loop",
    ),
    "conf-template-leftover": (
        "CONF005", "error", FAILS,
        "un-rendered template text {text!r} at line {line}, column {column}",
        "put the value there; the file was written before its placeholders were replaced",
    ),
    "conf-single-quotes": (
        "CONF006", "error", FAILS,
        "single quotes instead of double quotes at line {line}, column {column}",
        "this is the text of a Python dict; pass it through to_json",
    ),
    "conf-python-literal": (
        "CONF007", "error", FAILS,
        "{text} instead of {wanted} at line {line}, column {column}",
        "this is the text of a Python dict; pass it through to_json",
    ),
    "conf-structure": (
        "CONF008", "error", FAILS,
        "{reason}",
        "a conflist needs name, cniVersion and a non-empty list plugins whose elements have a type",
    ),
    "conf-list-in-conf": (
        "CONF009", "error", FAILS,
        "a list of plugins in a file whose name does not end in .conflist",
        "rename the file to .conflist and remove the old name in the same step",
    ),
    "conf-single-in-conflist": (
        "CONF010", "error", FAILS,
        "a single plugin in a file whose name ends in .conflist",
        "put the plugin into the list plugins and give the list a name, or rename the file to .conf",
    ),
    "conf-name-invalid": (
        "CONF011", "error", FAILS,
        "{name!r} is not a network name",
        "a name starts with a letter or digit and goes on with letters, digits, '_', '.' and '-'",
    ),
    "conf-version-unknown": (
        "CONF012", "error", FAILS,
        "cniVersion {version!r} is none of {supported}",
        "name one of those versions; the file loads and the node looks ready, but every pod fails",
    ),
    "conf-repeated-key": (
        "CONF013", "error", CARRIES_ON,
        "the key {key} occurs more than once in one object; the last one counts, without a word",
        "keep one of them (keys are matched without regard to case)",
    ),
    "conf-network-twice": (
        "CONF014", "warning", CARRIES_ON,
        "defines network {network!r} that {first} defines already, so it is never used for it",
        "remove one of the files or give one network another name",
    ),
    "conf-runtimes-differ": (
        "CONF015", "warning", CARRIES_ON,
        "containerd would use {containerd} and CRI-O would use {crio} for a new pod",
        "repair or remove the file that one of them skips",
    ),
    "conf-no-network": (
        "CONF016", "error", FAILS,
        "{runtime} has no network for a new pod: {reason}",
        "repair or remove the named file",
    ),
    "conf-hidden-file": (
        "CONF017", "warning", CARRIES_ON,
        "a hidden file that the runtimes read, before all others",
        "remove it, or give it a name with another ending",
    ),
    "conf-subdir-plugins": (
        "CONF018", "info", CARRIES_ON,
        "adds {count} plugin(s) ({types}) to network {network!r} for runtimes with libcni 1.3.0 or newer",
        "move the plugins into the conflist; older runtimes do not read this directory, so one network has two chains",
    ),
    "conf-plugin-missing": (
        "CONF019", "error", FAILS,
        "plugin {type!r} is not in {bin_dir}",
        "install it; until then each failed attempt of a pod may leave one address reserved",
    ),
    "conf-ipam-invalid": (
        "CONF020", "error", FAILS,
        "{path}: {reason}",
        "correct the value; the plugin refuses the configuration with the same words",
    ),
    "conf-broken": (
        "CONF021", "error", FAILS,
        "cannot be loaded: {reason}",
        "repair or remove it; containerd loads no network at all while it sorts first, CRI-O skips it",
    ),
    "conf-placeholder": (
        "CONF022", "error", CARRIES_ON,
        "a value holds un-rendered template text {text!r} at line {line}, column {column}",
        "put the value there; the file was written before its placeholders were replaced",
    ),
    "conf-bridge-shared": (
        "CONF023", "error", FAILS,
        "bridge {bridge} has gateway {gateway} in network {network!r} and {other_gateway} in network {other!r}",
        "give each network a bridge of its own; on one bridge all pods of the network that comes second fail",
    ),
    "conf-key-unknown": (
        "CONF024", "warning", CARRIES_ON,
        "{path}: {plugin} has no such key and passes over it",
        "remove it, or look up how the setting is called",
    ),
    "conf-key-misspelt": (
        "CONF025", "warning", CARRIES_ON,
        "{path}: {plugin} has no such key and passes over it; it has {near}",
        "write {near}, if that is meant",
    ),
    "conf-key-type": (
        "CONF026", "error", FAILS,
        "{path} is {found}, but {plugin} reads {wanted}",
        "let the template keep the type: the filters bool and int, or to_json over the whole value",
    ),
    "conf-value-refused": (
        "CONF027", "error", FAILS,
        "{path} is {value!r}, but {plugin} takes {wanted}",
        "correct the value; the file loads, and every pod fails",
    ),
    "conf-value-default": (
        "CONF028", "warning", CARRIES_ON,
        "{path} is {value!r}, which is not {wanted}, so {plugin} takes its default",
        "correct the value or remove the key",
    ),
    "conf-keys-conflict": (
        "CONF029", "error", FAILS,
        "{path}: {plugin} takes {first} or {second}, not both",
        "remove one of them",
    ),
    "conf-key-needed": (
        "CONF030", "error", FAILS,
        "{path} is missing, and {plugin} does not work without it",
        "give it a value",
    ),
    "conf-chain-first": (
        "CONF031", "error", FAILS,
        "{path}: {plugin} works on what another plugin has made, and none runs before it",
        "put it behind the plugin that makes the interface",
    ),
    "conf-chain-interface": (
        "CONF032", "error", FAILS,
        "{path}: {plugin} makes the pod's interface, which {first} has made before",
        "give each of them a network of its own",
    ),
    "conf-capability-missing": (
        "CONF033", "warning", CARRIES_ON,
        "{path}: {plugin} gets nothing to do, because the runtime passes it no {capability}",
        "add capabilities with {capability}: true to the plugin",
    ),
    "conf-capability-idle": (
        "CONF034", "warning", CARRIES_ON,
        "{path}: {plugin} makes no use of what the runtime passes for this capability",
        "move it to the plugin that does, or correct its spelling; capabilities are told apart by case",
    ),
    "conf-version-missing": (
        "CONF035", "warning", CARRIES_ON,
        "names no cniVersion, which makes it {version}",
        "name the version that the plugins speak, 1.0.0 for those of today",
    ),
    "conf-version-only-list": (
        "CONF036", "warning", CARRIES_ON,
        "has cniVersions without cniVersion; runtimes with libcni before 1.2 do not know that key and take {version}",
        "add cniVersion with the version for older runtimes",
    ),
    "conf-version-below-plugin": (
        "CONF037", "error", FAILS,
        "{path}: {plugin} speaks cniVersion {oldest} and newer, but the network is {version}",
        "raise the network's cniVersion to {oldest} or more",
    ),
    "conf-version-unsupported": (
        "CONF038", "error", FAILS,
        "plugin {type!r} speaks {supported}, but not the network's cniVersion {version}",
        "set cniVersion to {suggest}, the newest that all its plugins speak, or install a newer {type}",
    ),
    "conf-version-no-common": (
        "CONF039", "error", FAILS,
        "plugin {type!r} speaks {supported}, but not the network's cniVersion {version}",
        "install another release of it; no version is spoken by all plugins of the network",
    ),
    "conf-flag-text": (
        "CONF040", "warning", FAILS,
        "{key} is a string; runtimes with libcni before 1.3 refuse the whole file",
        "write true or false without quotes",
    ),
    "conf-key-idle": (
        "CONF041", "warning", CARRIES_ON,
        "{path}: {plugin} makes no use of it without {without}",
        "remove it, or add what is missing",
    ),
    "conf-masquerade-idle": (
        "CONF042", "warning", CARRIES_ON,
        "{path}: the node does NAT, but the bridge is no gateway, so pods do not send through it",
        "set isGateway, unless something else routes the pods through this node",
    ),
    "conf-mtu-ipv6": (
        "CONF043", "warning", CARRIES_ON,
        "{path} is {mtu}, with which the kernel takes IPv6 off the interface",
        "IPv6 needs 1280 at least",
    ),
    "conf-vlan-zero": (
        "CONF044", "warning", CARRIES_ON,
        "{path} is 0 or not given, which tags frames with a priority but with no VLAN",
        "give the number of the VLAN, 1 to 4094",
    ),
    "conf-link-in-container": (
        "CONF045", "warning", FAILS,
        "{path}: without master it takes the interface of the pod's default route, which a new pod has not got",
        "name the master",
    ),
    "conf-device-needed": (
        "CONF046", "warning", FAILS,
        "{path}: {plugin} needs one of device, hwaddr, kernelpath and pciBusID, unless Multus puts one in",
        "name the interface, or set the capability deviceID where a device plugin picks it",
    ),
    "conf-needs-veth": (
        "CONF047", "warning", FAILS,
        "{path}: {plugin} limits veth pairs only, and {first} makes none; a pod that asks for a limit fails",
        "remove it, or use bridge or ptp",
    ),
    "conf-delegate-key": (
        "CONF048", "error", FAILS,
        "{path}: flannel sets {key} itself and refuses a delegate that has it",
        "remove it from the delegate; ipam stands beside delegate",
    ),
    "conf-delegate-itself": (
        "CONF049", "error", FAILS,
        "{path}: Multus would call itself",
        "name the network that was in effect without Multus",
    ),
    "conf-subnets-overlap": (
        "CONF050", "warning", CARRIES_ON,
        "networks {network!r} and {other!r} both hand out addresses of {range}, and do not know of each other",
        "give them ranges that do not overlap",
    ),
    "conf-twin": (
        "CONF051", "warning", CARRIES_ON,
        "stands beside {other} and is read before it",
        "one of the two is usually left over from a change of the ending; remove it",
    ),
    "conf-backup-files": (
        "CONF052", "info", UNAFFECTED,
        "{count} backup(s) that no runtime reads: {names}",
        "keep them elsewhere; one that is renamed by mistake becomes a network",
    ),
    "conf-extension": (
        "CONF053", "warning", UNAFFECTED,
        "no runtime reads a file that ends in {ending}",
        "name it .conflist, in lower case, or keep it elsewhere",
    ),
    "conf-subdir-file": (
        "CONF054", "warning", FAILS,
        "has the name of network {network!r}; runtimes with libcni 1.3.0 or newer want a directory there and fail",
        "rename or remove it",
    ),
    "conf-subdir-broken": (
        "CONF055", "error", FAILS,
        "cannot be loaded, and with it network {network!r} in runtimes with libcni 1.3.0 or newer: {reason}",
        "repair or remove it",
    ),
    "conf-static-empty": (
        "CONF057", "warning", FAILS,
        "{path}: there is no address for a pod, unless its runtime passes one",
        "give addresses, or set the capability ips",
    ),
    "conf-flag-newer": (
        "CONF058", "info", CARRIES_ON,
        "{key} is known to runtimes with libcni {since} or newer; others act as if it were not there",
        "nothing, if all runtimes that read the file are as new as that",
    ),
    "conf-runtime-unknown": (
        "CONF056", "warning", UNAFFECTED,
        "nobody can tell which network {runtime} uses: {reason}",
        "make its configuration readable, or ask the runtime itself",
    ),
    "conf-type-misspelt": (
        "CONF059", "warning", FAILS,
        "{path}: no known plugin is called {type!r}; there is {near}",
        "write {near}, if that is meant; a network whose plugin is missing gives no pod an interface",
    ),
    "conf-range-new": (
        "CONF060", "error", UNAFFECTED,
        "network {network} would hand out {new} on this node, and before {old}",
        "another node may use some of it: have node_ranges keep what nodes have (held); or see that none uses any, and "
        "allow it once with move_ranges (networks_move_ranges of the role)",
    ),
    "conf-range-left-shared": (
        "CONF061", "error", UNAFFECTED,
        "{count} address(es) of network {network}, such as {example}, are in use on this node, but not in its new "
        "ranges {new}",
        "keep the ranges until they are free, for another node may hand them out; or see that none does, and allow it "
        "once with move_ranges (networks_move_ranges of the role)",
    ),
    "conf-held-elsewhere": (
        "CONF063", "error", UNAFFECTED,
        "{count} address(es) that network {network} hands out, such as {example}, are in use by {old}, and {new} would "
        "know nothing of it",
        "keep name and data dir of the network until they are free; or see that nobody uses them, and allow it once "
        "with move_ranges (networks_move_ranges of the role)",
    ),
    "conf-held-unknown": (
        "CONF064", "error", UNAFFECTED,
        "nobody can tell which addresses of network {network} are in use, {path} cannot be read: {reason}",
        "make it readable; or see that nobody uses any, and allow it once with move_ranges (networks_move_ranges of "
        "the role)",
    ),
    "conf-range-left": (
        "CONF062", "warning", UNAFFECTED,
        "{count} address(es) of network {network}, such as {example}, are in use, but not in its new ranges {new}",
        "their containers keep them until they end, but may not be reached any more",
    ),
}
# fmt: on
