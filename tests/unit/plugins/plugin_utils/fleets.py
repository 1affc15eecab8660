# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports of a generated fleet in which nothing is wrong, and one fault for each code of the fleet to plant in it."""

from __future__ import annotations

from ansible_collections.nodenet.cni.plugins.module_utils.host_local import compact
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.rows import row
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet import Question
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_pools import Before

NOW = 1_800_000_000
PLUGINS = ("bridge", "host-local", "macvlan", "portmap")


def container_id(host, number):
    return f"{host:08x}{number:056x}"


def range_set(ranges, gateway, usable, reserved, static=0, leaked=0):
    return {
        "ranges": [ranges],
        "gateways": [gateway],
        "usable": usable,
        "reserved": reserved,
        "static": static,
        "leaked": leaked,
        "free": usable - reserved,
        "last_reserved": None,
    }


def network(name, scope, rows, sets):
    for one in rows:
        one["alive"] = None if one["static"] else True
    return {
        "name": name,
        "data_dir": "/var/lib/cni/networks",
        "source": f"/etc/cni/net.d/10-{name}.conflist",
        "scope": scope,
        "range_sets": sets,
        "foreign": [],
        "rows": compact.encode(rows),
    }


def conf_file(name, kind, **settings):
    values = {"cniVersion": "1.0.0", "name": name, "plugins[0].type": kind}
    values.update({path.replace("__", "."): value for path, value in settings.items()})
    return {
        "name": f"10-{name}.conflist",
        "network": name,
        "cni_version": "1.0.0",
        "plugins": [kind],
        "chained": [],
        "error": None,
        "settings": values,
    }


def node(number, reservations=20, shared=1, **more):
    """The report of node *number*: a pod network behind a bridge, a shared one with a static address, Multus.

    :param reservations: how many pods have an address of the pod network, at most 250
    :param shared: how many of the shared one, at most 250
    """
    subnet = f"10.{64 + number // 256}.{number % 256}"
    pods = [
        row(f"{subnet}.{index + 2}", container_id(number, index), "eth0", 0, 9000)
        for index in range(min(reservations, 250))
    ]
    first = 0xAC100000 + 256 * number
    rows = [row(_v4(first + 2), f"static.vip-{number}", "eth0", 0, 9000)]
    rows += [row(_v4(first + 3 + index), container_id(number, index), "net1", 0, 9000) for index in range(shared)]
    usable = 253
    report = {
        "report_version": 1,
        "taken_at": NOW - 5,
        "networks": [
            network(
                "cbr0",
                "node",
                pods,
                [range_set(f"{subnet}.1-{subnet}.254", f"{subnet}.1", usable, len(pods))],
            ),
            network(
                "lan",
                "shared",
                rows,
                [range_set(f"{_v4(first + 2)}-{_v4(first + 254)}", "172.16.0.1", usable, 1 + shared, static=1)],
            ),
        ],
        "conf": {
            "conf_dir": "/etc/cni/net.d",
            "files": [
                conf_file("cbr0", "bridge", plugins__mtu="1450"),
                conf_file("lan", "macvlan", plugins__master="eth1"),
                conf_file("multus-cni-network", "multus-shim", logLevel="error"),
            ],
            "effective": {
                "containerd": {"network": "cbr0", "file": "10-cbr0.conflist", "known": True, "reason": "first"},
                "crio": {"network": None, "file": None, "known": False, "reason": "unknown"},
            },
        },
        "binaries": {
            "plugins": [{"name": one, "version": "v1.5.1", "sha256": "ab" * 32, "embedded": False} for one in PLUGINS]
        },
        "findings": [],
    }
    return dict(report, **more)


def _v4(number):
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def plan_of(number):
    first = 0xAC100000 + 256 * number
    wanted = {"owner": f"vip-{number}", "addresses": [_v4(first + 2)]}
    return [{"network": "lan", "reservations": [wanted]}]


class Fleet:
    """A fleet and the question to ask it; ``plant`` breaks one thing."""

    def __init__(self, count=20, reservations=20):
        self.reports = {f"n{number:04}": node(number, reservations) for number in range(count)}
        self.plan = {f"n{number:04}": plan_of(number) for number in range(count)}
        self.pod_cidrs = {f"n{number:04}": [f"10.{64 + number // 256}.{number % 256}.0/24"] for number in range(count)}
        self.before = {
            (host, one["name"], 0): Before(one["range_sets"][0]["ranges"], one["range_sets"][0]["reserved"], 86400)
            for host, report in self.reports.items()
            for one in report["networks"]
        }

    def question(self):
        return Question(plan=self.plan, pod_cidrs=self.pod_cidrs, before=self.before, now=NOW)

    def networks(self, host):
        return {one["name"]: one for one in self.reports[host]["networks"]}

    def edit_rows(self, host, name, change):
        found = self.networks(host)[name]
        rows = list(compact.reservations_of(found))
        found["rows"] = compact.encode(change(rows))

    def set_pool(self, host, name, **values):
        self.networks(host)[name]["range_sets"][0].update(values)

    def settings(self, host, index):
        return self.reports[host]["conf"]["files"][index]["settings"]


def _twice(fleet):
    other = next(compact.reservations_of(fleet.networks("n0007")["lan"]))["address"]
    fleet.edit_rows("n0003", "lan", lambda rows: [*rows, dict(row(other, "f" * 64, "net1", None, 90), alive=True)])


def _overlap(fleet):
    # the second half of its own range, and the first half of the neighbour's
    fleet.set_pool("n0003", "lan", ranges=["172.16.3.2-172.16.4.1", "172.16.4.200-172.16.4.210"])
    fleet.before["n0003", "lan", 0] = fleet.before["n0003", "lan", 0]._replace(
        ranges=["172.16.3.2-172.16.4.1", "172.16.4.200-172.16.4.210"]
    )


def _pool(leaked, free):
    def plant(fleet):
        taken = 253 - free
        fleet.set_pool("n0003", "cbr0", reserved=taken, free=free, leaked=leaked)
        fleet.before["n0003", "cbr0", 0] = fleet.before["n0003", "cbr0", 0]._replace(reserved=taken)

    return plant


def _stale(fleet):
    fleet.pod_cidrs["n0003"] = ["10.99.0.0/24"]


def _planned(host, owner, address):
    def plant(fleet):
        fleet.plan[host][0]["reservations"].append({"owner": owner, "addresses": [address]})

    return plant


def _unplanned(fleet):
    fleet.plan["n0003"][0]["reservations"].clear()


def _conflist(fleet):
    fleet.settings("n0003", 0)["plugins.mtu"] = "1500"


def _multus(fleet):
    fleet.settings("n0003", 2)["logLevel"] = "debug"


def _plugins(fleet):
    for one in fleet.reports["n0003"]["binaries"]["plugins"]:
        one["version"] = "v1.3.0"


def _effective(fleet):
    fleet.reports["n0003"]["conf"]["effective"]["containerd"]["network"] = "podman"


def _filling(fleet):
    fleet.set_pool("n0003", "cbr0", reserved=150, free=103)
    fleet.before["n0003", "cbr0", 0] = fleet.before["n0003", "cbr0", 0]._replace(reserved=100)


def _range_changed(fleet):
    fleet.before["n0003", "cbr0", 0] = fleet.before["n0003", "cbr0", 0]._replace(ranges=["10.0.0.1-10.0.0.9"])


def _missing(fleet):
    fleet.reports["n0003"] = None


FAULTS = {
    "FLEET001": _twice,
    "FLEET002": _overlap,
    "FLEET003": _pool(0, 20),
    "FLEET004": _pool(100, 20),
    "FLEET005": _missing,
    "FLEET006": _pool(None, 20),
    "FLEET007": _pool(0, 0),
    "FLEET008": _pool(100, 0),
    "FLEET009": _pool(None, 0),
    "FLEET010": _stale,
    "FLEET011": _planned("n0003", "vip-4", "172.16.3.2"),
    "FLEET012": _planned("n0003", "router", "172.16.0.1"),
    "FLEET013": _planned("n0003", "vip", "172.16.9.77"),
    "FLEET014": _planned("n0003", "vip", "192.0.2.1"),
    "FLEET015": _planned("n0003", "vip", "172.16.3.3"),
    "FLEET016": _planned("n0003", "vip", "172.16.3.9"),
    "FLEET017": _unplanned,
    "FLEET018": _planned("n0003", "vip", "172.16.3.900"),
    "FLEET019": _conflist,
    "FLEET020": _multus,
    "FLEET021": _plugins,
    "FLEET022": _effective,
    "FLEET023": _filling,
    "FLEET024": _range_changed,
}
