# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Merged audits for the tests of report files, made of reports as nodes give them."""

from __future__ import annotations

import hashlib
import ipaddress

from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet import Question, merge

AT = 1_800_000_000
HINT = "two nodes use one address on one segment; release it on all but one"


def container(number):
    return hashlib.sha256(str(number).encode()).hexdigest()


def reservation(address, container_id, ifname="eth0", range_set=0, age_s=3600, alive=True, **more):
    static = container_id.startswith("static.")
    return dict(
        more,
        address=address,
        owner=container_id[len("static.") :] if static else None,
        container_id=container_id,
        ifname=ifname,
        static=static,
        range_set=range_set,
        age_s=age_s,
        alive=None if static else alive,
    )


def network(name, range_sets, reservations, scope="node"):
    """One of a node's report. *range_sets* are lists of ``first-last``; the first address of a set is its gateway."""
    documents = []
    for index, ranges in enumerate(range_sets):
        bounds = [[ipaddress.ip_address(one) for one in text.split("-")] for text in ranges]
        usable = sum(int(last) - int(first) + 1 for first, last in bounds) - 1
        mine = [one for one in reservations if one["range_set"] == index]
        judged = [one for one in mine if one["alive"] is not None]
        documents.append(
            {
                "ranges": ranges,
                "gateways": [str(bounds[0][0])],
                "usable": usable,
                "reserved": len(mine),
                "static": sum(one["static"] for one in mine),
                "leaked": sum(one["alive"] is False for one in mine) if judged or not mine else None,
                "free": usable - len({one["address"] for one in mine}),
                "last_reserved": None,
            }
        )
    return {
        "name": name,
        "data_dir": "/var/lib/cni/networks",
        "source": f"/etc/cni/net.d/10-{name}.conflist",
        "scope": scope,
        "range_sets": documents,
        "reservations": reservations,
        "foreign": [],
    }


def finding(code="IPAM011", severity="warning", where="/var/lib/cni/networks/cbr0", text="1 empty file", **more):
    return dict({"hint": HINT, "go": "carries_on"}, code=code, severity=severity, where=where, text=text, **more)


def document(reports, findings=(), missing=(), **more):
    """A merged audit with its reports. *reports*: host -> (networks, findings)."""
    given = {
        host: {"report_version": 1, "networks": networks, "findings": found}
        for host, (networks, found) in reports.items()
    }
    given.update(dict.fromkeys(missing))
    made = merge(given, Question(now=AT))
    made["findings"] += [dict({"hosts": [], "network": None}, **one) for one in findings]
    for one in findings:
        made["summary"][one["severity"] + "s"] += 1
    return dict(made, reports=given, **more)


def duplicate(name, address, **holders):
    """An address that hosts hold together; *holders*: host -> container id."""
    return {
        "network": name,
        "address": address,
        "hosts": sorted(holders),
        "holders": [
            {"host": host, "owner": None, "container_id": one, "ifname": "eth0"}
            for host, one in sorted(holders.items())
        ],
    }


def small():
    """Three hosts, one of them missing; every state of an address, two families, an owner that nobody knows."""
    n1 = [
        reservation("10.244.1.2", container(1)),
        reservation("10.244.1.3", container(2), alive=False, age_s=90000),
        reservation("10.244.1.4", "static.vip-db", age_s=864000),
        reservation("10.244.1.5", "kube-system-dns", alive=None),
        reservation("10.250.0.9", container(3), range_set=None),
    ]
    lan1 = [reservation("192.0.2.50", container(4)), reservation("2001:db8::a", container(4), range_set=1)]
    lan2 = [reservation("192.0.2.50", container(5), ifname="net1")]
    lan_sets = [["192.0.2.1-192.0.2.254"], ["2001:db8::1-2001:db8::ffff:ffff:ffff:ffff"]]
    return document(
        {
            "n1": (
                [network("cbr0", [["10.244.1.1-10.244.1.14"]], n1), network("lan", lan_sets, lan1, "shared")],
                [finding(text="1 leaked: 10.244.1.3", code="IPAM001")],
            ),
            "n2": (
                [network("cbr0", [["10.244.2.1-10.244.2.14"]], []), network("lan", lan_sets, lan2, "shared")],
                [],
            ),
        },
        missing=["n3"],
        drift=[
            {
                "what": "conflist",
                "name": "cbr0",
                "hosts": ["n2"],
                "others": 1,
                "differences": [{"key": "plugins[0].mtu", "here": "1500", "there": None}],
            }
        ],
        history={
            "previous_at": AT - 86400,
            "audits": 7,
            "new": [dict(code="IPAM001", severity="warning", host="n1", where="/d/cbr0", text="1 leaked: 10.244.1.3")],
            "gone": [],
            "growing": [
                dict(
                    host="n1",
                    network="cbr0",
                    range_set=0,
                    before=3,
                    reserved=4,
                    usable=13,
                    per_day=1.0,
                    full_in_s=777600,
                )
            ],
            "ranges_changed": [],
        },
    )


def named():
    """A host with the name of its domain, in a pool of which everything is known."""
    held = [reservation(f"10.244.100.{last}", container(last), alive=last % 2 == 0) for last in range(102, 112)]
    pods = network("production-pods", [["10.244.100.101-10.244.100.112"]], held)
    made = document(
        {"edge-119.fra1.example.net": ([pods], []), "n2": ([network("lan", [["192.0.2.1-192.0.2.9"]], [])], [])}
    )
    for one in made["usage"]:
        one.update(per_day=1.0, full_in_s=777600 if one["host"] != "n2" else None)
    return made


HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>document.title='owned'</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;",
    "line\nbreak\r\n# HELP x",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "semicolon;=1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\uff1d1+1",
    'back\\slash\\"quote',
    "half \ud800 pair \udc80",
    "abc\u202egnp.exe\u2066",
    "zero\u200bwidth\ufeff",
    "nul\0bell\a\x1b[31m",
    "\u2028line\u2029separators",
    "x" * 10_000,
    "\u05e9\u05dc\u05d5\u05dd \u4f60\u597d",
    "__proto__",
    "constructor",
    "1e309",
)


def hostile():
    """A fleet in which every text that a node chooses is one that means harm."""
    held = [
        reservation(f"10.1.0.{number}", text, ifname=text, alive=number % 2 == 0)
        for number, text in enumerate(HOSTILE, start=2)
    ]
    held += [
        reservation(f"10.1.0.{number}", "static." + text, ifname=text, holder={"container_id": text, "ifname": text})
        for number, text in enumerate(HOSTILE, start=100)
    ]
    found = [finding(where=text, text=text, hint=text) for text in HOSTILE]
    bad = network("cbr0", [["10.1.0.1-10.1.0.254"]], held)
    named = [dict(network(text, [], []), source=text) for text in HOSTILE]
    twice = duplicate("cbr0", "10.1.0.2", n1=HOSTILE[0], **{HOSTILE[0]: HOSTILE[1]})
    history = {
        "previous_at": AT - 86400,
        "audits": 2,
        "new": [dict(code="IPAM001", severity="warning", host=text, where=text, text=text) for text in HOSTILE],
        "gone": [],
        "growing": [],
        "ranges_changed": [
            dict(host=text, network=text, range_set=0, before=[text], ranges=[text]) for text in HOSTILE
        ],
    }
    drift = [
        {
            "what": "conflist",
            "name": text,
            "hosts": [text],
            "others": 3,
            "differences": [{"key": text, "here": text, "there": text}],
        }
        for text in HOSTILE
    ]
    made = document(
        {"n1": ([bad, *named], found), **{text: ([bad], found[:1]) for text in HOSTILE}},
        duplicates=[twice],
        missing=["gone" + text for text in HOSTILE],
        findings=[finding("FLEET001", "error", text, text, hosts=[text], network=text, hint=text) for text in HOSTILE],
        history=history,
        drift=drift,
    )
    for one in made["hosts"]:
        if not one["reported"]:
            one["reason"] = one["host"]
    return made


def large(hosts=1000, reservations=250):
    """A fleet of *hosts* with *reservations* each in a /23 of its own, one in twenty leaked."""
    reports = {}
    for number in range(hosts):
        start = int(ipaddress.ip_address("10.0.0.0")) + number * 512
        address = [str(ipaddress.ip_address(start + step)) for step in range(512)]
        held = [
            reservation(
                address[2 + step],
                f"static.vip-{number}-{step}" if step % 50 == 0 else container(number * 1000 + step),
                age_s=step * 731,
                alive=step % 20 != 7,
            )
            for step in range(reservations)
        ]
        found = [finding(text=f"{reservations // 20} leaked: {address[9]} and others")] if number % 3 == 0 else []
        found += [finding("IPAM009", "info", text="foreign file")] if number % 5 == 0 else []
        reports[f"node-{number:04d}"] = ([network("cbr0", [[f"{address[1]}-{address[510]}"]], held)], found)
    return document(reports, missing=["node-9998", "node-9999"])
