# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random configurations, good and bad, given to ours and to the Go plugin: the same answer and the same files.

Go's order of judging faults is part of its behaviour, so values are drawn near the edge of what is allowed.
"""

from __future__ import annotations

import collections
import json
import os
import re
import shutil
import tempfile

import calls
import debian_go
import reporting
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugin_drivers import CommandDriver

SUBNETS = (
    "10.1.2.0/24", "10.1.2.0/29", "10.1.2.0/30", "10.1.2.4/30", "10.1.2.8/29", "10.1.0.0/16", "10.1.2.0/31",
    "fd00::/64", "fd00::/126", "fd00::8/125", "fd00::/127", "10.1.2.1/24", "fd00::1/64", "10.1.2.0/024",
)  # fmt: skip
BAD_SUBNETS = (
    "10.1.2.0", "10.1.2.0/33", "10.1.2.0/-1", "10.1.2.0/+8", "10.1.2.0/ 24", "", "x", "10.1.2.0/24/1", "010.1.2.0/24",
    "::ffff:10.1.2.0/120", "fd00::/129", "10.1.2.0/255.255.255.0", "fd00::%1/64", None,
)  # fmt: skip
ADDRESSES = (
    "10.1.2.0", "10.1.2.1", "10.1.2.2", "10.1.2.3", "10.1.2.5", "10.1.2.7", "10.1.2.254", "10.1.2.255", "10.1.3.1",
    "fd00::", "fd00::1", "fd00::2", "fd00::3", "fd00::9", "FD00::0A", "fd00::ffff", "fe80::1", "::ffff:10.1.2.5",
    "::ffff:0a01:0203", "fd00::10.1.2.3",
)  # fmt: skip
BAD_ADDRESSES = (
    "", None, "10.1.2", "10.1.2.03", " 10.1.2.3", "10.1.2.3\n", "10.1.2.256", "1::2::3", "fd00::%eth0", "12345::",
    ":1", "1:2:3:4:5:6:7:8:9", "\u0661.2.3.4", "10.1.2.3/24",
)  # fmt: skip


def often(good, bad):
    return st.one_of(st.sampled_from(good), st.sampled_from(good), st.sampled_from(good), st.sampled_from(good + bad))


subnet = often(SUBNETS, BAD_SUBNETS)
address = often(ADDRESSES, BAD_ADDRESSES)
one_range = st.fixed_dictionaries(
    {"subnet": subnet}, optional={"rangeStart": address, "rangeEnd": address, "gateway": address}
)
# Most ranges have nothing but a subnet, so that a good part of all calls gets as far as the allocator.
ranges = st.lists(
    st.lists(st.one_of(st.sampled_from(SUBNETS).map(lambda text: {"subnet": text}), one_range), max_size=3),
    min_size=1,
    max_size=3,
)
requests = st.lists(
    st.one_of(st.sampled_from(("10.1.2.2/24", "10.1.2.3", "fd00::2", "fd00::9/64")), address), max_size=1
)
pair = st.sampled_from(
    ("IP=10.1.2.3", "IP=fd00::2/64", "IP=", "IP=x", "IgnoreUnknown=1", "IgnoreUnknown=TRUE", "IgnoreUnknown=0",
     "IgnoreUnknown=", "A=B", "K8S_POD_NAME=p", "a", "=", "=x", "IP=10.1.2.3=", "ip=1", "IP = 1", "", "A=\u00a0\x7f\"")
)  # fmt: skip
ipam = st.fixed_dictionaries(
    {},
    optional={
        "ranges": ranges,
        "subnet": subnet,
        "rangeStart": address,
        "gateway": address,
        "routes": st.lists(st.fixed_dictionaries({}, optional={"dst": subnet, "gw": address}), max_size=2),
    },
)
configuration = st.fixed_dictionaries(
    {"ipam": ipam, "version": st.sampled_from(("1.0.0", "1.0.0", "0.4.0", "0.3.1", "0.3.0", "0.2.0", "0.1.0", None))},
    optional={"ipRanges": ranges, "ips": requests, "args": requests, "pairs": st.lists(pair, min_size=1, max_size=3)},
)

# Configurations that are right but for one value: what is odd about it decides the answer alone.
DISJOINT = (
    {"subnet": "10.1.2.0/29", "rangeStart": "10.1.2.2", "rangeEnd": "10.1.2.5"},
    {"subnet": "10.1.2.8/29"},
    {"subnet": "10.3.0.0/16", "gateway": "10.3.255.254"},
    {"subnet": "fd00::/126"},
    {"subnet": "fd00:3::/64", "rangeStart": "fd00:3::fffe", "gateway": "fe80::1"},
)
odd_value = st.one_of(
    st.none(),
    st.tuples(st.just("subnet"), subnet),
    st.tuples(st.sampled_from(("rangeStart", "rangeEnd", "gateway")), address),
)


@st.composite
def nearly_right(draw):
    chosen = draw(st.permutations(DISJOINT))[: draw(st.integers(1, 3))]
    odd = draw(odd_value)
    if odd is not None:
        chosen[0] = dict(chosen[0], **{odd[0]: odd[1]})
    route = {"dst": draw(st.sampled_from(("0.0.0.0/0", "10.1.2.3/8", "::/0", "::ffff:1.2.3.0/120"))), "gw": "10.1.2.1"}
    drawn = {
        "ipam": {"ranges": [[one] for one in chosen], "routes": [route] * draw(st.integers(0, 1))},
        "version": draw(st.sampled_from(("1.0.0", "0.4.0", "0.3.1", "0.2.0", None))),
    }
    if draw(st.booleans()):
        drawn["ips"] = draw(requests)
    return drawn


LEFT_OVER = re.compile(r"(failed to allocate all requested IPs: )([^\"]*)")
# A default end before a given start (H9): Go lets it pass and goes on to later faults, or hands out foreign addresses.
OUR_OWN = re.compile(r"RangeEnd \S+ not in network")


def document(drawn, base):
    config = {"name": "net", "ipam": dict(drawn["ipam"], type="host-local", dataDir=base)}
    if drawn["version"] is not None:
        config["cniVersion"] = drawn["version"]
    runtime = {key: drawn[key] for key in ("ipRanges", "ips") if key in drawn}
    if runtime:
        config["runtimeConfig"] = runtime
    if "args" in drawn:
        config["args"] = {"cni": {"ips": drawn["args"]}}
    return json.dumps(config).encode()


def act(driver, drawn, base):
    """ADD, another ADD, CHECK; return what was answered and what is there afterwards."""
    more = {"CNI_ARGS": ";".join(drawn["pairs"])} if "pairs" in drawn else {}
    answers = []
    for command, container in (("ADD", "a"), ("ADD", "b"), ("CHECK", "a")):
        done = driver.call(calls.environment(command, container, **more), document(drawn, base))
        stdout = debian_go.result(done.stdout.replace(base, "@"))
        if isinstance(stdout, str):
            stdout = LEFT_OVER.sub(lambda match: match.group(1) + " ".join(sorted(match.group(2).split())), stdout)
        answers.append((command, done.rc, stdout))
    files = {}
    for folder, _folders, names in os.walk(base):
        for name in names:
            with open(os.path.join(folder, name), "rb") as source:
                files[os.path.relpath(os.path.join(folder, name), base)] = source.read()
    return answers, files


# what only long runs of the test below have found
FOUND = [
    {"version": version, "ipam": {"routes": [route]}, "ipRanges": [[{"subnet": subnet}] for subnet in subnets]}
    for version in ("0.1.0", "0.2.0", "0.3.1", "1.0.0")
    for route in ({}, {"gw": "10.1.2.1"})
    for subnets in (["10.1.2.0/24"], ["fd01::/64"], ["10.1.2.0/24", "fd01::/64"])
]


def test_configurations_against_go(library):
    go = CommandDriver([reporting.require_go_plugin()], "go")
    seen = collections.Counter()

    def compare(drawn):
        root = tempfile.mkdtemp(prefix="nodenet-config.")
        try:
            ours, our_files = act(library, drawn, os.path.join(root, "ours"))
            theirs, their_files = act(go, drawn, os.path.join(root, "go"))
        finally:
            shutil.rmtree(root)
        seen["configurations"] += 1
        if ours != theirs and OUR_OWN.search(str(ours[0][2])) and not OUR_OWN.search(str(theirs[0][2])):
            seen["default end before the start (H9)"] += 1
            assert our_files == {}
            return
        crashed = [rc == 2 and not stdout for _command, rc, stdout in theirs]
        if any(crashed):
            seen["the Go plugin crashes (H8)"] += 1
            for own, other, crash in zip(ours, theirs, crashed):
                assert (own[1] == 1 and '"code": 999' in own[2]) if crash else own == other
            assert not any(name.rpartition("/")[2][0].isdigit() for name in our_files), our_files
            return
        seen["accepted" if ours[0][1] == 0 else "refused"] += 1
        assert ours == theirs
        assert our_files == their_files

    for drawn in FOUND:
        compare(drawn)
    compare = settings(
        max_examples=400 * reporting.soak_factor(),
        derandomize=not os.environ.get("NODENET_SOAK"),
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )(given(st.one_of(nearly_right(), nearly_right(), configuration))(compare))
    compare()

    line = "configurations against Go: " + ", ".join("%s %d" % item for item in sorted(seen.items()))
    reporting.note(line)
    assert min(seen["accepted"], seen["refused"]) >= seen["configurations"] / 10, line
