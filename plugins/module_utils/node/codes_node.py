# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings of the family NODE: the node itself. See `findings`."""

from __future__ import annotations

from .findings import CARRIES_ON, FAILS, UNAFFECTED

# kind: (code, severity, go, text, hint)
# fmt: off
CODES = {
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
    "node-probe-exhausted": (
        "NODE034", "error", FAILS,
        "plugin {plugin} failed at {command}: {reason}",
        "no new pod of this network gets an address; host_local_info tells who has them, playbook nodenet.cni.reclaim "
        "frees those of dead containers",
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
        "set allow_shared if a probe may take an address of that segment for a moment (roles: node_probe_allow_shared)",
    ),
}
# fmt: on
