# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings of the family IPAM: host-local configurations and their data dirs. See `findings`."""

from __future__ import annotations

from .findings import CARRIES_ON, FAILS, UNAFFECTED

# kind: (code, severity, go, text, hint)
# fmt: off
CODES = {
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
        "see whether addresses leaked with the playbook nodenet.cni.reclaim, which only shows what it would free; else "
        "enlarge the range before it runs out",
    ),
    "ipam-pool-leaked": (
        "IPAM021", "warning", CARRIES_ON,
        "range set {set} ({ranges}): {reserved} of {usable} addresses are reserved, {leaked} of them leaked",
        "give the leaked addresses back with the playbook nodenet.cni.reclaim; the range need not grow",
    ),
    "ipam-pool-full": (
        "IPAM022", "error", FAILS,
        "range set {set} ({ranges}): no address is free, {reserved} of {usable} are reserved",
        "no further attachment gets an address; see whether addresses leaked before enlarging the range, with the "
        "playbook nodenet.cni.reclaim, which only shows what it would free",
    ),
    "ipam-leaked": (
        "IPAM023", "warning", CARRIES_ON,
        "{count} reservation(s) whose owner is not alive: {names}",
        "give them back with the playbook nodenet.cni.reclaim once the list of live attachments is sure to be complete",
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
        "make it a readable directory, or see why its lock is held, and ask again; everything else is reported, and an "
        "audit is incomplete until then",
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
        "see whether addresses leak (playbook nodenet.cni.reclaim), else enlarge the range in time",
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
    "ipam-data-dir-relative": (
        "IPAM041", "warning", CARRIES_ON,
        "{path}: {value!r} is no absolute path, so it is another place for each process that runs elsewhere",
        "write the whole path; where a runtime's plugins run is not defined, and no audit can tell",
    ),
    "ipam-emptied-at-boot": (
        "IPAM042", "warning", CARRIES_ON,
        "{count} static reservation(s) will be gone after the next boot: {path} empties {data_dir}",
        "hide that file by one of its name in /etc/tmpfiles.d without the line, or use another dataDir, or reserve "
        "again after each boot, before the runtime starts",
    ),
}
# fmt: on
