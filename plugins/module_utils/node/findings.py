# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The registry of findings: one checked fact that is wrong or doubtful, with a code that never changes its meaning.

Code that looks at a node returns plain facts, ``{"kind": ..., "where": ..., **params}``. This module turns a fact into
what a user reads: code, severity, text, hint, and whether the Go plugins or runtimes fail on it. The page
docs/findings.md is generated from the same table (tests/tools/gen_findings.py).

Adding one: take the next free number of the family, never reuse a number. A text is one sentence without a final dot;
``{name}`` is replaced by the fact's value of that name.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

FAMILIES = {
    "CONF": "files of the conf dir and what the runtimes make of them",
    "BIN": "plugin executables",
    "IPAM": "host-local configurations and their data dirs",
    "MULTUS": "Multus and its delegates",
    "NODE": "the node itself",
    "FLEET": "what only shows when nodes are compared",
}

SEVERITIES = ("error", "warning", "info")

FAILS = "fails"
CARRIES_ON = "carries_on"
UNAFFECTED = "unaffected"

#: What the Go plugins, or the runtime that reads the file, do about it.
GO = {
    FAILS: "the runtime or the Go plugin fails on it",
    CARRIES_ON: "the runtime or the Go plugin carries on, and the fault shows later or never",
    UNAFFECTED: "no concern of the runtime or the Go plugin",
}

# kind: (code, severity, go, text, hint)
# fmt: off
REGISTRY = {
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
        "CONF023", "warning", FAILS,
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
    "bin-noexec": (
        "BIN001", "error", FAILS,
        "{mount} is mounted with noexec, so no plugin below it can run",
        "remount it with exec, or put the plugins into a directory on another file system",
    ),
    "bin-silent": (
        "BIN002", "warning", FAILS,
        "does not answer VERSION: {reason}",
        "run it by hand with CNI_COMMAND=VERSION; a plugin that cannot say its versions cannot be used by a runtime",
    ),
    "bin-wrong-architecture": (
        "BIN003", "error", FAILS,
        "is built for {found}, this node runs {wanted}",
        "install the build for {wanted}",
    ),
    "bin-truncated": (
        "BIN004", "error", FAILS,
        "is incomplete: {reason}",
        "a former copy broke off; install it again",
    ),
    "bin-not-executable": (
        "BIN005", "error", FAILS,
        "cannot be executed: {reason}",
        "give it mode 0755, or install it again",
    ),
    "bin-changed-since": (
        "BIN006", "warning", UNAFFECTED,
        "was changed by somebody else since it was installed from {source}, so it stays",
        "name it in include to remove it all the same",
    ),
    "bin-drift": (
        "BIN007", "warning", UNAFFECTED,
        "had been {what} by somebody else since it was installed from {source}",
        "find out who writes to the directory: two that install the same plugin undo each other's work",
    ),
    "bin-label": (
        "BIN008", "warning", FAILS,
        "has the SELinux type {label}, its directory has {directory}: it was moved there from somewhere else",
        "run restorecon on it, or a confined runtime may not execute it",
    ),
    "bin-embedded-python": (
        "BIN009", "error", FAILS,
        "is made to run with {python}, which does not: {reason}",
        "run plugin_binaries again with the Python that the node has now",
    ),
    "bin-embedded-code": (
        "BIN010", "error", FAILS,
        "its code is not in {code}, where it looks for it",
        "run plugin_binaries again; something removed the directory, or moved the bin directory",
    ),
    "bin-embedded-stale": (
        "BIN011", "warning", CARRIES_ON,
        "its byte code is not of {python}, which is {version} now, so that every call compiles the code anew",
        "run plugin_binaries again; until then calls take several times as long",
    ),
    "bin-dir-unreadable": (
        "BIN012", "error", FAILS,
        "the directory cannot be read: {reason}",
        "make it a directory with mode 0755, or run the task as root",
    ),
    "ipam-gateway-outside": (
        "IPAM001", "warning", CARRIES_ON,
        "the gateway {gateway} lies outside the subnet {subnet}",
        "name an address of the subnet, or leave it out; only an IPv6 link-local gateway may lie elsewhere",
    ),
    "ipam-flannel-subnet-missing": (
        "IPAM002", "warning", FAILS,
        "network {network!r} takes its subnet from {path}, which cannot be read: {reason}",
        "flanneld writes the file when it has got a lease; see whether it runs",
    ),
    "ipam-host-bits": (
        "IPAM003", "error", FAILS,
        "{path}: {reason}",
        "write {network}",
    ),
    "ipam-mixed-families": (
        "IPAM004", "error", FAILS,
        "{path}: {reason}",
        "put IPv4 and IPv6 into a range set of their own, so that a pod gets one address of each",
    ),
    "ipam-range-edge": (
        "IPAM005", "warning", CARRIES_ON,
        "{address} is the {what} address of {subnet}, and is handed out",
        "leave it out of the range; no host can use it",
    ),
    "ipam-range-start-late": (
        "IPAM006", "error", CARRIES_ON,
        "{path}: rangeStart lies behind the last address that the subnet has by default",
        "choose another rangeStart; the Go plugin hands out addresses beyond the subnet",
    ),
    "ipam-route-gateway": (
        "IPAM007", "warning", FAILS,
        "a route leads through {gateway}, which lies in no subnet of the network",
        "name a gateway that the pod can reach; the kernel refuses such a route",
    ),
    "ipam-route-dst": (
        "IPAM008", "error", FAILS,
        "{path} is missing: host-local hands the route on, and the plugin that calls it fails",
        "give the network that the route leads to, 0.0.0.0/0 or ::/0 for the default route",
    ),
    "ipam-orphan-network": (
        "IPAM010", "warning", UNAFFECTED,
        "no configuration names network {network!r}, whose directory holds {count} reservation(s)",
        "left behind by a former network; remove the directory when nothing runs on that network any more",
    ),
    "ipam-empty-file": (
        "IPAM011", "warning", CARRIES_ON,
        "{count} empty address file(s), owner unknown: {names}",
        "remove them when nothing uses the addresses; left by a power cut or a full file system, no DEL matches them",
    ),
    "ipam-foreign-entry": (
        "IPAM012", "info", UNAFFECTED,
        "{count} entry(s) that are not of the plugin: {names}",
        "keep other files out of this directory; they are never removed by this collection",
    ),
    "ipam-foreign-copy": (
        "IPAM013", "warning", CARRIES_ON,
        "{count} file(s) with the content of a reservation under another name: {names}",
        "the Go plugin's DEL for that owner removes them too; move them elsewhere",
    ),
    "ipam-legacy-entry": (
        "IPAM014", "info", CARRIES_ON,
        "{count} reservation(s) that name a container id only: {names}",
        "written by an old plugin; they count for every interface of the container",
    ),
    "ipam-odd-name": (
        "IPAM015", "warning", CARRIES_ON,
        "{count} address file(s) whose name is not the canonical text of the address: {names}",
        "the Go plugin does not see that these addresses are taken and can hand them out again",
    ),
    "ipam-held-twice": (
        "IPAM016", "error", CARRIES_ON,
        "{count} address(es) reserved by more than one file: {names}",
        "two owners may use one address; find out which of them is alive",
    ),
    "ipam-outside-ranges": (
        "IPAM017", "warning", UNAFFECTED,
        "{count} reservation(s) outside every range: {names}",
        "the ranges changed after these addresses were handed out; they stay until their owner gives them back",
    ),
    "ipam-gateway-reserved": (
        "IPAM018", "error", CARRIES_ON,
        "a gateway address is reserved: {names}",
        "its holder and the gateway use the same address; give it back and take another",
    ),
    "ipam-bad-content": (
        "IPAM019", "warning", CARRIES_ON,
        "{count} address file(s) that hold neither an id nor an id, CR LF and an interface: {names}",
        "no DEL ever matches them, so the addresses stay blocked",
    ),
    "ipam-pool-high": (
        "IPAM020", "warning", CARRIES_ON,
        "range set {set} ({ranges}): {reserved} of {usable} addresses are reserved",
        "enlarge the range before it runs out",
    ),
    "ipam-pool-leaked": (
        "IPAM021", "warning", CARRIES_ON,
        "range set {set} ({ranges}): {reserved} of {usable} addresses are reserved, {leaked} of them leaked",
        "give the leaked addresses back; the range need not grow",
    ),
    "ipam-pool-full": (
        "IPAM022", "error", FAILS,
        "range set {set} ({ranges}): no address is free, {reserved} of {usable} are reserved",
        "no further attachment gets an address; see whether addresses leaked before enlarging the range",
    ),
    "ipam-leaked": (
        "IPAM023", "warning", CARRIES_ON,
        "{count} reservation(s) whose owner is not alive: {names}",
        "give them back once the list of live attachments is known to be complete",
    ),
    "ipam-unknown-owner": (
        "IPAM024", "info", UNAFFECTED,
        "{count} reservation(s) with a form of id that no listed attachment has: {names}",
        "another runtime may own them; list its attachments too",
    ),
    "ipam-rotation-odd": (
        "IPAM025", "info", CARRIES_ON,
        "last_reserved_ip.{set} holds {text!r}, which is no address of range set {set}",
        "the rotation starts again at the first address; nothing else depends on it",
    ),
    "ipam-symlinked-dir": (
        "IPAM026", "error", FAILS,
        "the directory of network {network!r} is a symbolic link",
        "the Go plugin never finds a reservation in it again; make it a directory, or set dataDir",
    ),
    "ipam-unreadable-file": (
        "IPAM027", "warning", FAILS,
        "{count} address file(s) cannot be read: {names}",
        "the owner is unknown; look at the modes and at the file system",
    ),
    "ipam-dir-unusable": (
        "IPAM028", "error", FAILS,
        "cannot be used, so nothing is known of it: {reason}",
        "make it a readable directory, or see why its lock is held; everything else is reported",
    ),
    "ipam-owner-doubtful": (
        "IPAM029", "warning", UNAFFECTED,
        "{count} reservation(s) kept although no runtime knows their owner: {names}",
        "another owner with such an id is in use and no runtime lists it; ask its runtime too, or remove what is left "
        "of its containers (network namespaces, processes)",
    ),
    "ipam-liveness-unknown": (
        "IPAM030", "warning", UNAFFECTED,
        "who is alive cannot be told: {reason}",
        "until all sources answer, no reservation is reported as leaked",
    ),
    "ipam-holder-alone": (
        "IPAM031", "error", CARRIES_ON,
        "{count} holder file(s) without a static reservation beside: {names}",
        "a container may use these addresses although nothing reserves them, and the Go plugin hands them out; "
        "put the reservation back, or remove the holder file when the container is gone",
    ),
    "ipam-holder-leaked": (
        "IPAM032", "warning", UNAFFECTED,
        "{count} sticky address(es) whose present holder is not alive: {names}",
        "the pod that they are reserved for cannot start until the holder file goes; "
        "release what that container holds once it is known to be dead",
    ),
    "ipam-cache-broken": (
        "IPAM033", "warning", FAILS,
        "{count} entry(s) of the result cache that are empty or damaged: {names}",
        "left by a power cut or a full file system; some runtimes fail in DEL and CHECK over them, remove them when "
        "their container is gone",
    ),
    "ipam-cache-dead": (
        "IPAM034", "warning", UNAFFECTED,
        "{count} entry(s) of the result cache whose container is not alive: {names}",
        "no DEL came: run it with the configuration that the entry holds, or host_local_gc, which removes the entry "
        "with the reservation",
    ),
    "ipam-live-unreserved": (
        "IPAM035", "error", CARRIES_ON,
        "{count} address(es) that a live container has although nothing reserves them: {names}",
        "the plugin hands them out again; reserve them for that container, or start it anew",
    ),
    "ipam-in-use-twice": (
        "IPAM036", "error", CARRIES_ON,
        "{count} address(es) that a live container has and another one too, or holds: {names}",
        "start all but one of them anew, so that they get other addresses",
    ),
    "ipam-pool-filling": (
        "IPAM037", "warning", CARRIES_ON,
        "range set {set}: {reserved} of {usable} addresses are reserved, {more} more than {since} ago; full in {left} "
        "at that rate",
        "see whether addresses leak, else enlarge the range in time",
    ),
    "ipam-range-changed": (
        "IPAM038", "info", UNAFFECTED,
        "range set {set} was {before} in the report before, and is {ranges}",
        "nothing, if that was intended; reservations outside of the new ranges stay until their owners give them back",
    ),
    "ipam-rotation-unusable": (
        "IPAM039", "error", FAILS,
        "last_reserved_ip.{set} cannot be used: {reason}",
        "remove it; the Go plugin fails in each ADD over it, and leaves the address behind that it has just reserved",
    ),
    "ipam-owner-twice": (
        "IPAM040", "warning", CARRIES_ON,
        "{count} address(es) of a range set of which their owner has another one already: {names}",
        "an attachment uses one of each range set; left by a call that failed half way, its DEL frees all of them",
    ),
    "multus-kubeconfig-unreadable": (
        "MULTUS001", "warning", UNAFFECTED,
        "cannot be read: {reason}",
        "run the task as root",
    ),
    "multus-token-expired": (
        "MULTUS002", "error", FAILS,
        "its token expired {seconds} seconds ago, so Multus cannot ask for a pod any more",
        "see why its daemon or entrypoint did not write a new one, and restart it",
    ),
    "multus-token-expires": (
        "MULTUS003", "warning", CARRIES_ON,
        "its token expires in {seconds} seconds",
        "see that its daemon or entrypoint writes a new one in time",
    ),
    "multus-kubeconfig-open": (
        "MULTUS004", "warning", UNAFFECTED,
        "has mode {mode}, so that others than root can read the credentials",
        "give it mode 0600; multus_config does",
    ),
    "multus-no-kubeconfig": (
        "MULTUS005", "warning", CARRIES_ON,
        "names no kubeconfig, so Multus attaches pods to the master alone and sees no annotation",
        "give kubeconfig to multus_config, or see that the file exists",
    ),
    "multus-master-chained": (
        "MULTUS006", "warning", CARRIES_ON,
        "the copy of {master} does not have the plugins of its sub-directory ({types}), which runtimes with libcni "
        "1.3.0 or newer add",
        "write them into the conflist of the master",
    ),
    "multus-annotation-invalid": (
        "MULTUS007", "error", FAILS,
        "the annotation {annotation} cannot be used: {reason}",
        "correct it; the filter format_networks makes one that can be",
    ),
    "multus-annotation-doubtful": (
        "MULTUS008", "warning", CARRIES_ON,
        "the annotation {annotation}: {reason}",
        "correct it; what Multus does not know is passed over without a word",
    ),
    "multus-network-missing": (
        "MULTUS009", "error", FAILS,
        "there is no network {network}",
        "create the NetworkAttachmentDefinition, or name another one; without a namespace the pod's own counts",
    ),
    "multus-network-elsewhere": (
        "MULTUS010", "error", FAILS,
        "there is no network {network}, but there is {elsewhere}",
        "write the namespace before the name; without one the pod's own counts",
    ),
    "multus-network-unusable": (
        "MULTUS011", "error", FAILS,
        "the network {network} cannot be used: {reason}",
        "correct the NetworkAttachmentDefinition; the filter lint_conflist tells more",
    ),
    "multus-namespace-isolated": (
        "MULTUS012", "error", FAILS,
        "the network {network} is not open to pods of namespace {namespace}, only those of {allowed} are",
        "add its namespace to globalNamespaces, which takes the place of default, or switch namespaceIsolation off",
    ),
    "multus-interface-twice": (
        "MULTUS013", "error", FAILS,
        "the interface {interface} of {network} is that of {first} already",
        "give one of them another name; automatic names count all networks of the pod, named ones too",
    ),
    "multus-interface-invalid": (
        "MULTUS014", "error", FAILS,
        "{interface!r} cannot be the interface of {network}: {reason}",
        "give it a name of at most 15 characters without white space, '/' and ':'",
    ),
    "multus-capability-missing": (
        "MULTUS015", "warning", CARRIES_ON,
        "no plugin of {network} has capabilities.{capability}, so what the pod asks for is not passed on",
        "set the capability to true in the plugin that can do it",
    ),
    "multus-undecided": (
        "MULTUS016", "error", FAILS,
        "a network cannot be decided: {reason}",
        "Multus refuses the pod with that reason",
    ),
    "multus-device-unknown": (
        "MULTUS017", "info", UNAFFECTED,
        "it gets a device of {resource}, and which one only the node with the pod can tell",
        "run multus_info with api there",
    ),
    "multus-pod-unknown": (
        "MULTUS018", "error", FAILS,
        "the API server does not give it: {reason}",
        "see that it exists and that Multus' account may read it, or give its annotations",
    ),
    "multus-cache-unusable": (
        "MULTUS019", "warning", CARRIES_ON,
        "no delegates can be read from it: {reason}",
        "the end of its pod takes what configuration and API say; the Go plugin leaks its networks",
    ),
    "multus-cache-dead": (
        "MULTUS020", "warning", CARRIES_ON,
        "{count} of {entries} pod(s) with delegates here are not alive: {names}",
        "their end never came or failed, so their addresses may be reserved still; host_local_gc frees those",
    ),
    "multus-liveness-unknown": (
        "MULTUS021", "warning", UNAFFECTED,
        "who is alive cannot be told: {reason}",
        "until all sources answer, no pod is reported as dead",
    ),
    "multus-pods-left": (
        "MULTUS022", "warning", CARRIES_ON,
        "{count} pod(s) here were attached by Multus; without it their end takes down the first network only",
        "drain the node before Multus goes, or free with host_local_gc what their other networks hold",
    ),
    "node-module-missing": (
        "NODE001", "error", FAILS,
        "has no module {module}, needed by {needed_by}",
        "install the package with the kernel's further modules, or run another kernel",
    ),
    "node-module-not-loaded": (
        "NODE002", "warning", CARRIES_ON,
        "its module {module}, needed by {needed_by}, is not loaded",
        "run node_prerequisites; a kernel that may load modules by itself often does it on the first use",
    ),
    "node-module-unknown": (
        "NODE003", "info", CARRIES_ON,
        "nothing here tells whether it has module {module}, needed by {needed_by}",
        "look from outside of the container; here /lib/modules and the kernel's configuration are missing",
    ),
    "node-sysctl-wrong": (
        "NODE004", "warning", CARRIES_ON,
        "is {value}, and has to be {wanted} for {needed_by}",
        "run node_prerequisites, or set it; packets of pods are dropped without a word",
    ),
    "node-sysctl-missing": (
        "NODE005", "error", CARRIES_ON,
        "the running kernel has no such setting, needed by {needed_by}",
        "load the module that brings it (br_netfilter for net.bridge), or switch IPv6 on",
    ),
    "node-sysctl-overridden": (
        "NODE006", "warning", CARRIES_ON,
        "sets {key} to {value}, and is read after {ours}, so that the next boot brings {value} instead of {wanted}",
        "take the line out of that file, or drop the networks that need it",
    ),
    "node-sysctl-overrides": (
        "NODE007", "info", UNAFFECTED,
        "sets {key} to {value}, and is read before {ours}, which sets {wanted}",
        "take the line out of that file, so that both agree",
    ),
    "node-sysctl-not-kept": (
        "NODE008", "info", CARRIES_ON,
        "is {wanted}, as needed by {needed_by}, but no file sets it at boot",
        "run node_prerequisites; some plugins set it again with the next pod, others do not",
    ),
    "node-nm-manages": (
        "NODE009", "warning", CARRIES_ON,
        "NetworkManager runs and does not leave these interfaces alone: {interfaces}",
        "run node_prerequisites; else it may take addresses and routes from the interfaces of pods",
    ),
    "node-nm-overridden": (
        "NODE010", "warning", CARRIES_ON,
        "sets unmanaged-devices anew, so that {ours} has no effect for {interfaces}",
        "write unmanaged-devices+= there instead of unmanaged-devices=",
    ),
    "node-firewalld": (
        "NODE011", "warning", CARRIES_ON,
        "firewalld has {what} in zone {zone}, which does not accept what pods send",
        "bind it to the zone trusted, or let that zone accept it; it was left as it is",
    ),
    "node-firewalld-unbound": (
        "NODE012", "warning", CARRIES_ON,
        "firewalld runs, and {what} is in no zone that accepts what pods send",
        "run node_prerequisites",
    ),
    "node-firewalld-unknown": (
        "NODE033", "warning", CARRIES_ON,
        "firewalld runs, and nothing tells in which zone {what} is: {reason}",
        "see that firewall-cmd works on this node",
    ),
    "node-cloud-setup": (
        "NODE013", "warning", CARRIES_ON,
        "nm-cloud-setup is enabled, whose routing rules can take packets of pods elsewhere",
        "disable its service and its timer and boot the node anew",
    ),
    "node-ipv6-off": (
        "NODE014", "warning", FAILS,
        "is 1, and a network has IPv6 addresses",
        "set it to 0, or give the network IPv4 addresses only",
    ),
    "node-ra-kept": (
        "NODE015", "info", UNAFFECTED,
        "the IPv6 default route of {interface} comes from router advertisements, to which a forwarding node listens "
        "only with the value 2",
        "nothing, node_prerequisites sets it along with the forwarding",
    ),
    "node-dir-writable": (
        "NODE016", "warning", UNAFFECTED,
        "others than root can write to it (mode {mode}), and root runs or obeys what lies there",
        "give it mode 0755 and owner root",
    ),
    "node-rp-filter": (
        "NODE017", "info", CARRIES_ON,
        "is {value} (strict), which pods take over, and pods here can have several interfaces",
        "set rp_filter to loose, or net.ipv4.conf.IFNAME.rp_filter to 2 by the plugin tuning; else a packet that "
        "arrives on one interface and is answered by another is dropped",
    ),
    "node-cache-old": (
        "NODE018", "info", CARRIES_ON,
        "{count} of {entries} entry(s) are older than the last boot",
        "left behind by pods that no DEL came for; remove them when their pods are gone",
    ),
    "node-record-unusable": (
        "NODE019", "warning", UNAFFECTED,
        "{reason}",
        "nothing is known of who brought the plugins; move the record away to start anew",
    ),
    "node-cache-unreadable": (
        "NODE020", "warning", UNAFFECTED,
        "cannot be read: {reason}",
        "run the task as root",
    ),
    "node-probe-plugin-failed": (
        "NODE021", "error", FAILS,
        "plugin {plugin} failed at {command}: {reason}",
        "every new pod of this network meets the same; the reason is the plugin's own",
    ),
    "node-probe-plugin-hangs": (
        "NODE022", "error", FAILS,
        "plugin {plugin} gave no answer to {command} within {seconds} s",
        "every new pod of this network waits for it; see what the plugin waits for, or allow more time",
    ),
    "node-probe-no-address": (
        "NODE023", "warning", CARRIES_ON,
        "the result of ADD names no address",
        "give the first plugin an ipam, unless this network is meant to have none",
    ),
    "node-probe-interface-wrong": (
        "NODE024", "error", CARRIES_ON,
        "the result names interface {interface}, which {state}",
        "the plugin says what is not so; look at its log and at what else changes interfaces on this node",
    ),
    "node-probe-address-wrong": (
        "NODE025", "error", CARRIES_ON,
        "the result names address {address} on {interface}, which has {found}",
        "the plugin says what is not so; look at its log and at what else changes addresses on this node",
    ),
    "node-probe-address-duplicate": (
        "NODE026", "error", CARRIES_ON,
        "another machine has address {address} already",
        "take it out of this network's ranges, or reserve it there",
    ),
    "node-probe-route-missing": (
        "NODE027", "error", CARRIES_ON,
        "the result names a route to {route}, which is not there",
        "look at the routes of the ipam and at what else changes routes on this node",
    ),
    "node-probe-gateway-silent": (
        "NODE028", "error", CARRIES_ON,
        "gateway {gateway} answers neither an echo request nor the question for its hardware address",
        "pods reach nothing beyond their network; bring the gateway up, or name the right one",
    ),
    "node-probe-unchecked": (
        "NODE029", "info", UNAFFECTED,
        "{what} was not checked: {reason}",
        "nothing, if that is as it should be",
    ),
    "node-probe-left-behind": (
        "NODE030", "error", CARRIES_ON,
        "what the plugins made is not gone after DEL: {what}",
        "each pod leaves the same behind; see which plugin keeps it",
    ),
    "node-probe-leftover-kept": (
        "NODE031", "warning", CARRIES_ON,
        "the earlier probe {id} cannot be taken down: {reason}",
        "repair what the reason names; the next probe tries it again",
    ),
    "node-probe-shared": (
        "NODE032", "info", UNAFFECTED,
        "was not probed: {reason}",
        "set allow_shared if a probe may take an address of that segment for a moment",
    ),
    "fleet-address-twice": (
        "FLEET001", "error", CARRIES_ON,
        "address {address} of network {network!r} is held by {holders}",
        "two nodes use one address on one segment; release it on all but one",
    ),
    "fleet-ranges-overlap": (
        "FLEET002", "error", CARRIES_ON,
        "network {network!r}: {first} on {first_host} overlaps {second} on {second_host}",
        "give each node its own part of the subnet; sooner or later both hand out one address",
    ),
    "fleet-pool-high": (
        "FLEET003", "warning", CARRIES_ON,
        "network {network!r} on {host}: {reserved} of {usable} addresses of range set {set} are reserved",
        "enlarge the range before it runs out",
    ),
    "fleet-pool-leaked": (
        "FLEET004", "warning", CARRIES_ON,
        "network {network!r} on {host}: {reserved} of {usable} addresses of range set {set} reserved, {leaked} leaked",
        "give the leaked addresses back; the range need not grow",
    ),
    "fleet-host-missing": (
        "FLEET005", "error", UNAFFECTED,
        "no report of host {host}: {reason}",
        "see why, and ask again; until then the result is incomplete, an address may be held there too",
    ),
    "fleet-pool-unknown": (
        "FLEET006", "warning", CARRIES_ON,
        "network {network!r} on {host}: {reserved} of {usable} addresses of range set {set} are reserved",
        "see whether addresses leaked (the node was not told who is alive) before the range is enlarged",
    ),
    "fleet-pool-full": (
        "FLEET007", "error", FAILS,
        "network {network!r} on {host}: no address of range set {set} is free, {reserved} of {usable} are reserved",
        "enlarge the range; until then no further attachment gets an address",
    ),
    "fleet-pool-full-leaked": (
        "FLEET008", "error", FAILS,
        "network {network!r} on {host}: no address of range set {set} is free, {leaked} of {usable} leaked",
        "give the leaked addresses back, the range need not grow; until then no further attachment gets an address",
    ),
    "fleet-pool-full-unknown": (
        "FLEET009", "error", FAILS,
        "network {network!r} on {host}: no address of range set {set} is free, {reserved} of {usable} are reserved",
        "see whether addresses leaked (the node was not told who is alive) before the range is enlarged",
    ),
    "fleet-pod-cidr-stale": (
        "FLEET010", "error", CARRIES_ON,
        "{host} was assigned {pod_cidr}, but {what}",
        "write the conflist anew with the subnet of now, then drain the node: its pods have addresses of another one",
    ),
    "fleet-plan-twice": (
        "FLEET011", "error", UNAFFECTED,
        "{address} of network {network!r} is planned more than once: {owners}",
        "plan another address for all but one of them",
    ),
    "fleet-plan-gateway": (
        "FLEET012", "error", UNAFFECTED,
        "{address} of network {network!r} is planned for {owners}, and is a gateway",
        "plan another address; the gateway and its holder would be in each other's way",
    ),
    "fleet-plan-foreign-range": (
        "FLEET013", "error", CARRIES_ON,
        "{address} of network {network!r} is planned for {owners}, and lies in a range of {other_hosts}",
        "reserve it there too for the same owner, or plan another one: that node may hand it out to a pod",
    ),
    "fleet-plan-outside": (
        "FLEET014", "error", UNAFFECTED,
        "{address} of network {network!r} is planned for {owners}, and lies in no range there",
        "plan an address of the range; one outside is refused",
    ),
    "fleet-plan-held": (
        "FLEET015", "error", CARRIES_ON,
        "{address} of network {network!r} is planned for {owners}, and held by {holder}",
        "free it there, or plan another one",
    ),
    "fleet-plan-missing": (
        "FLEET016", "warning", UNAFFECTED,
        "{address} of network {network!r} is planned for {owners}, and not reserved",
        "run the playbook reserve",
    ),
    "fleet-plan-unplanned": (
        "FLEET017", "info", UNAFFECTED,
        "{address} of network {network!r} is reserved for {owners}, which is not in the plan",
        "put it into the plan, or release it",
    ),
    "fleet-plan-invalid": (
        "FLEET018", "error", UNAFFECTED,
        "the plan of {owners} for network {network!r} holds {address!r}, which is no address",
        "correct the inventory",
    ),
    "fleet-conflist-drift": (
        "FLEET019", "warning", CARRIES_ON,
        "network {name!r} on {hosts} is not as on {others} other node(s): {differences}",
        "bring the nodes to one state with the playbook bootstrap; ranges are not compared, each node has its own",
    ),
    "fleet-multus-drift": (
        "FLEET020", "warning", CARRIES_ON,
        "the configuration of Multus on {hosts} is not as on {others} other node(s): {differences}",
        "bring the nodes to one state with multus_config",
    ),
    "fleet-plugin-drift": (
        "FLEET021", "warning", CARRIES_ON,
        "plugin {name} on {hosts} is not as on {others} other node(s): {differences}",
        "bring the nodes to one release with plugin_binaries",
    ),
    "fleet-effective-drift": (
        "FLEET022", "warning", CARRIES_ON,
        "with {name}, a new pod on {hosts} gets another network than on {others} other node(s): {differences}",
        "see which file comes first in the conf dir there",
    ),
    "fleet-pool-filling": (
        "FLEET023", "warning", CARRIES_ON,
        "network {network!r} on {host}: {reserved} of {usable} addresses of range set {set} are reserved, full in "
        "{left} at the rate of {per_day} a day",
        "see whether addresses leak, else enlarge the range in time",
    ),
    "fleet-range-changed": (
        "FLEET024", "info", UNAFFECTED,
        "network {network!r} on {host}: range set {set} was {before} in the audit before, and is {ranges}",
        "nothing, if that was intended; reservations outside of the new ranges stay until their owners give them back",
    ),
}
# fmt: on


def finding(kind: str, where: str, **params: object) -> dict[str, str]:
    """Build the finding of one fact, in the shape that all modules return.

    :param kind: key of the registry; an unknown one is a fault of the program (KeyError)
    :param where: the file, network or address that the finding is about
    :param params: the values that the text names
    """
    code, severity, go, text, hint = REGISTRY[kind]
    return {
        "code": code,
        "severity": severity,
        "where": _printable(where),
        "text": _printable(text.format(**params)),
        "hint": _printable(hint.format(**params)),
        "go": go,
    }


def _printable(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    from ..host_local.rows import printable  # names that are no UTF-8 are rare

    return printable(text)


def from_facts(facts: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    """Turn facts into findings, the gravest first, else in the order given; of equal ones the first is kept.

    :param facts: iterable of ``{"kind": ..., "where": ..., **params}``
    """
    out = []
    for fact in facts:
        params = {key: value for key, value in fact.items() if key not in ("kind", "where")}
        item = finding(fact["kind"], fact["where"], **params)
        if item not in out:
            out.append(item)
    return sorted(out, key=lambda item: SEVERITIES.index(item["severity"]))
