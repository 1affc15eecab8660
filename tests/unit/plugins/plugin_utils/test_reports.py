# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a report: what stands in them, and what a hostile node cannot do with them."""

from __future__ import annotations

import base64
import csv
import hashlib
import html.parser
import io
import json
import pathlib
import re

import pytest

from ansible_collections.nodenet.cni.plugins.plugin_utils import report_csv, report_data, report_html, report_prometheus
from ansible_collections.nodenet.cni.plugins.plugin_utils.fleet_pools import percent
from ansible_collections.nodenet.cni.plugins.plugin_utils.report_rows import LONGEST, Audit, visible
from ansible_collections.nodenet.cni.tests.unit import audits


@pytest.fixture(scope="module")
def small():
    return Audit(audits.small())


@pytest.fixture(scope="module")
def hostile():
    return Audit(audits.hostile())


def csv_text(name, audit):
    return "".join(getattr(report_csv, name + "_csv")(audit))


class TestVisible:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("plain text", "plain text"),
            ("שלום 你好 é", "שלום 你好 é"),
            ("a\nb\r\tc", "a\\x0ab\\x0d\\x09c"),
            ("\x1b[31m\x00", "\\x1b[31m\\x00"),
            ("a\u202egnp\u2066", "a\\u202egnp\\u2066"),
            ("\u200b\ufeff\u00ad\u2028", "\\u200b\\ufeff\\xad\\u2028"),
            ("\ud800 \udc80", "\\ud800 \\udc80"),
            ("\U000e0041", "\\U000e0041"),
            (7, "7"),
        ],
    )
    def test_every_character_is_seen(self, text, expected):
        assert visible(text) == expected
        assert visible(text).isprintable()

    def test_a_long_text_is_cut_and_says_so(self):
        assert visible("x" * LONGEST) == "x" * LONGEST
        assert visible("x" * (LONGEST + 5)) == "x" * LONGEST + "... (5 more characters)"


class TestStates:
    def test_one_word_for_each_reservation(self, small):
        found = {
            (network.host, one["address"]): network.state(one)
            for network in small.networks()
            for one in network.reservations
        }
        assert found == {
            ("n1", "10.244.1.2"): "live",
            ("n1", "10.244.1.3"): "leaked",
            ("n1", "10.244.1.4"): "static",
            ("n1", "10.244.1.5"): "reserved",
            ("n1", "10.250.0.9"): "live",
            ("n1", "192.0.2.50"): "conflict",
            ("n1", "2001:db8::a"): "live",
            ("n2", "192.0.2.50"): "conflict",
        }

    def test_two_files_of_one_address_on_a_node_are_a_conflict(self):
        held = [
            audits.reservation("fd00::a", "a"),
            audits.reservation("fd00::a", "b"),
            audits.reservation("fd00::b", "c"),
        ]
        made = audits.document({"n1": ([audits.network("v6", [["fd00::1-fd00::ff"]], held)], [])})
        [network] = Audit(made).networks()
        assert [network.state(one) for one in network.reservations] == ["conflict", "conflict", "live"]
        assert network.pools()[0]["conflicts"] == 1

    def test_pools_and_what_lies_outside(self, small):
        pools = [row for network in small.networks() for row in network.pools()]
        assert [
            (one["host"], one["network"], one["range_set"], one["reserved"], one["conflicts"]) for one in pools
        ] == [
            ("n1", "cbr0", 0, 4, 0),
            ("n1", "cbr0", None, 1, 0),
            ("n1", "lan", 0, 1, 1),
            ("n1", "lan", 1, 1, 0),
            ("n2", "cbr0", 0, 0, 0),
            ("n2", "lan", 0, 1, 1),
            ("n2", "lan", 1, 0, 0),
        ]
        assert [percent(one) for one in pools] == [30, None, 0, 0, 0, 0, 0]
        assert pools[1]["leaked"] == 0
        assert pools[1]["free"] is None

    def test_compact_reports_tell_the_same(self, small):
        from ansible_collections.nodenet.cni.plugins.module_utils.host_local.compact import encode

        made = audits.small()
        for report in filter(None, made["reports"].values()):
            for network in report["networks"]:
                network["rows"] = encode(network.pop("reservations"))
        compact = Audit(made)
        assert csv_text("addresses", compact) == csv_text("addresses", small)
        assert report_html.html(compact) == report_html.html(small)

    def test_findings_are_in_order_of_severity(self, small):
        assert [(one["code"], one["hosts"]) for one in small.findings()] == [
            ("FLEET005", ["n3"]),
            ("FLEET002", ["n1", "n2"]),
            ("FLEET002", ["n1", "n2"]),
            ("FLEET001", ["n1", "n2"]),
            ("IPAM001", ["n1"]),
        ]


class TestCsv:
    def test_addresses(self, small):
        assert csv_text("addresses", small) == (
            "host,network,range_set,address,state,owner,container_id,ifname,age_s,holder_container_id\n"
            f"n1,cbr0,0,10.244.1.2,live,,{audits.container(1)},eth0,3600,\n"
            f"n1,cbr0,0,10.244.1.3,leaked,,{audits.container(2)},eth0,90000,\n"
            "n1,cbr0,0,10.244.1.4,static,vip-db,static.vip-db,eth0,864000,\n"
            "n1,cbr0,0,10.244.1.5,reserved,,kube-system-dns,eth0,3600,\n"
            f"n1,cbr0,,10.250.0.9,live,,{audits.container(3)},eth0,3600,\n"
            f"n1,lan,0,192.0.2.50,conflict,,{audits.container(4)},eth0,3600,\n"
            f"n1,lan,1,2001:db8::a,live,,{audits.container(4)},eth0,3600,\n"
            f"n2,lan,0,192.0.2.50,conflict,,{audits.container(5)},net1,3600,\n"
        )

    def test_pools(self, small):
        lines = csv_text("pools", small).splitlines()
        assert lines[:3] == [
            "host,network,scope,range_set,ranges,usable,reserved,static,leaked,conflicts,free,use_percent,action,"
            "per_day,full_in_s",
            "n1,cbr0,node,0,10.244.1.1-10.244.1.14,13,4,1,1,0,9,30,,,",
            "n1,cbr0,node,,,,1,0,0,0,,,,,",
        ]
        assert "18446744073709551614" in lines[4]

    def test_findings(self, small):
        lines = csv_text("findings", small).splitlines()
        assert lines[0] == "severity,code,hosts,where,text,hint,go"
        assert lines[1].startswith("error,FLEET005,n3,n3,no report of host n3: it reported nothing,")
        assert lines[4].startswith(
            "error,FLEET001,n1 n2,network lan,\"address 192.0.2.50 of network 'lan' is held by n1 ("
        )
        assert (
            lines[5] == f"warning,IPAM001,n1,/var/lib/cni/networks/cbr0,1 leaked: 10.244.1.3,{audits.HINT},carries_on"
        )

    @pytest.mark.parametrize(
        "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "'=1", '"=1', "\uff1d1", "\uff20x", "  \"'=1"]
    )
    def test_no_text_is_a_formula(self, text):
        made = report_csv.cell(text)
        assert made[0] == "'" or not re.match(r"[\s'\"]*[=+\-@\uff1d\uff0b\uff0d\uff20]", made)
        assert "\n" not in made

    @pytest.mark.parametrize(
        ("text", "expected"),
        [("a;=1", "a;'=1"), ('a; "=1;-2', "a;' \"=1;'-2"), ("=1;=2", "'=1;'=2"), ("a; release it", "a; release it")],
    )
    def test_nor_is_what_follows_a_semicolon(self, text, expected):
        assert report_csv.cell(text) == expected

    @pytest.mark.parametrize("text", ["a=1", "static.x", "2001:db8::a", "::1", "10.0.0.1", "n-1"])
    def test_other_text_stays_as_it_is(self, text):
        assert report_csv.cell(text) == text

    def test_numbers_may_be_negative(self):
        assert [report_csv.cell(one) for one in (-1, -0.5, None, 0)] == ["-1", "-0.5", "", "0"]

    def test_hostile_texts_change_no_row(self, hostile):
        for text in (
            csv_text("addresses", hostile),
            csv_text("findings", hostile),
            csv_text("pools", hostile),
        ):
            text.encode("utf-8")
            rows = list(csv.reader(io.StringIO(text)))
            assert len({len(row) for row in rows}) == 1
            assert len(rows) == text.count("\n")
            cells = [one for row in rows[1:] for one in row]
            assert not [one for one in cells if one.startswith(("=", "+", "@", "\t", "\r")) or re.match(r"-[^\d]", one)]
            assert all(one.isprintable() for one in cells)


# what the textfile collector reads: one line, labels in double quotes with \\, \" and \n as the only escapes
SAMPLE = re.compile(
    r'[a-z_]+(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? -?\d+(\.\d+)?'
)


class TestPrometheus:
    def test_figures(self, small):
        text = report_prometheus.prometheus(small)
        assert text.endswith("\n")
        assert text.startswith(
            "# HELP nodenet_cni_audit_timestamp_seconds When the audit was made, in seconds since 1970.\n"
            "# TYPE nodenet_cni_audit_timestamp_seconds gauge\n"
            "nodenet_cni_audit_timestamp_seconds 1800000000\n"
        )
        lines = text.splitlines()
        for wanted in (
            "nodenet_cni_audit_complete 0",
            'nodenet_cni_host_reported{host="n1"} 1',
            'nodenet_cni_host_reported{host="n3"} 0',
            'nodenet_cni_host_findings{host="n1",severity="error"} 3',
            'nodenet_cni_host_findings{host="n1",severity="warning"} 1',
            'nodenet_cni_host_findings{host="n3",severity="error"} 1',
            'nodenet_cni_findings{code="IPAM001",severity="warning"} 1',
            'nodenet_cni_duplicate_addresses{network="cbr0"} 0',
            'nodenet_cni_duplicate_addresses{network="lan"} 1',
            'nodenet_cni_pool_usable_addresses{host="n1",network="cbr0",range_set="0"} 13',
            'nodenet_cni_pool_leaked_addresses{host="n1",network="cbr0",range_set="0"} 1',
            'nodenet_cni_pool_conflicting_addresses{host="n2",network="lan",range_set="0"} 1',
            'nodenet_cni_pool_free_addresses{host="n1",network="lan",range_set="1"} 18446744073709551613',
        ):
            assert wanted in lines
        assert "pool_full_in_seconds" not in text

    def test_every_metric_is_declared_once_before_its_samples(self, hostile):
        seen = []
        for line in report_prometheus.prometheus(hostile).splitlines():
            name = line.split("{")[0].split(" ")
            if line.startswith("# HELP "):
                seen.append(line.split(" ")[2])
            elif line.startswith("# TYPE "):
                assert line == f"# TYPE {seen[-1]} gauge"
            else:
                assert name[0] == seen[-1]
        assert len(seen) == len(set(seen)) > 8

    def test_hostile_texts_make_no_line(self, hostile):
        text = report_prometheus.prometheus(hostile)
        text.encode("utf-8")
        samples = [one for one in text.split("\n") if one and not one.startswith("# ")]
        assert [one for one in samples if not SAMPLE.fullmatch(one)] == []
        assert len({one.rpartition(" ")[0] for one in samples}) == len(samples)
        assert text.count("# HELP x") == 0 or all("# HELP x" in one for one in samples if "# HELP x" in one)

    def test_escapes(self):
        assert report_prometheus.label_value('a\\b"c\nd') == 'a\\\\b\\"c\\\\x0ad'

    def test_hosts_that_look_the_same_are_one_series(self):
        made = audits.document({"n\u200b": ([], []), "n\\u200b": ([], [])})
        text = report_prometheus.prometheus(Audit(made))
        assert text.count("nodenet_cni_host_reported{") == 1


class Reader(html.parser.HTMLParser):
    """Elements with their attributes, and the text of all that is no script or style."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.text = []
        self.raw = {}
        self._inside = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = (tag, dict(attrs).get("id")) if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        if self._inside and tag == self._inside[0]:
            self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.raw[self._inside] = self.raw.get(self._inside, "") + data
        else:
            self.text.append(data)


class TestOddReports:
    """What a node may tell, though no report of the collection has it: one host must not spoil the files of all."""

    def test_values_of_other_kinds(self):
        held = [
            {"address": "2001:DB8:0::A", "container_id": "static.x", "ifname": "eth0", "static": [], "owner": {"a": 1}},
            {"address": "10.1.0.3", "container_id": "", "ifname": "", "age_s": "<b>", "range_set": "0", "alive": "no"},
            {
                "address": "10.1.0.4",
                "container_id": "c",
                "ifname": "",
                "age_s": 10**300,
                "range_set": 7,
                "holder": {"x": 1},
            },
            {"address": "10.1.0.5", "container_id": "d", "ifname": "", "age_s": -5, "range_set": 0, "holder": "me"},
        ]
        given = audits.network("lan", [["10.1.0.1-10.1.0.9"]], [])
        own = [{"code": "X", "severity": "error", "where": "w", "text": "t"}]
        made = audits.document({"n1": ([given], own)})
        # the merge refuses some of it, and the files do not count on that
        given.update(reservations=held, source={"a": 1})
        counts = {"usable": 10**400, "free": 10**400 + 1, "static": 10**400, "leaked": -3}
        made["usage"][0].update(counts)
        made["summary"].update(counts)
        audit = Audit(made)
        lines = csv_text("addresses", audit).splitlines()
        assert lines[1:] == [
            "n1,lan,,2001:db8::a,static,x,static.x,eth0,0,",
            "n1,lan,,10.1.0.3,reserved,,,,0,",
            "n1,lan,7,10.1.0.4,reserved,,c,,10000000000,",
            "n1,lan,0,10.1.0.5,reserved,,d,,0,",
        ]
        assert f"{2**128},0,{2**128}" in csv_text("pools", audit)
        assert csv_text("findings", audit).splitlines()[1] == "error,X,n1,w,t,,"
        assert 'pool_leaked_addresses{host="n1",network="lan",range_set="0"} 0\n' in report_prometheus.prometheus(audit)
        page = Reader(report_html.html(audit))
        assert json.loads(page.raw["script", "data"])["nets"][0]["t"] == [0, 0, 166666666, 0]
        assert "3.4 × 10³⁸" in "".join(page.text)


class TestHtml:
    def test_what_is_there_without_the_script(self, small):
        text = "".join(Reader(report_html.html(small)).text)
        for wanted in (
            "4 errors, 1 warning, 1 of 3 hosts missing",
            "no report of 1 of 3 hosts",
            "n3: it reported nothing",
            "address 192.0.2.50 of network 'lan' is held by n1 (",
            audits.HINT,
            "warning IPAM001 n1: /d/cbr0: 1 leaked: 10.244.1.3",
            "cbr0 on n1, range set 0: 3 to 4 of 13, full in 9 days",
            "plugins[0].mtu: 1500, elsewhere (nothing)",
        ):
            assert wanted in text

    def test_a_clean_fleet_is_told_so(self):
        text = "".join(Reader(report_html.html(Audit(audits.document({"n1": ([], [])})))).text)
        assert "Nothing wrong found" in text
        assert "Every host that was asked has reported" in text
        assert "Nothing was found to be wrong or doubtful." in text

    @pytest.mark.parametrize("name", ["small", "hostile"])
    def test_policy_allows_this_script_and_style_alone(self, name):
        page = report_html.html(Audit(getattr(audits, name)()))
        reader = Reader(page)
        [policy] = [
            one["content"] for tag, one in reader.elements if one.get("http-equiv") == "Content-Security-Policy"
        ]
        rules = dict(one.strip().split(" ", 1) for one in policy.split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["require-trusted-types-for"] == "'script'"
        for directive, element in (("script-src", "script"), ("style-src", "style")):
            digest = base64.b64encode(hashlib.sha256(reader.raw[element, None].encode()).digest()).decode()
            assert rules[directive] == f"'sha256-{digest}'"
        assert page.index("Content-Security-Policy") < page.index("<style>")

    @pytest.mark.parametrize("name", ["small", "hostile"])
    def test_no_element_or_attribute_loads_or_runs_anything(self, name):
        elements = Reader(report_html.html(Audit(getattr(audits, name)()))).elements
        assert [tag for tag, _attributes in elements if tag == "script"] == ["script", "script"]
        assert {tag for tag, _attributes in elements}.isdisjoint(
            {"img", "svg", "iframe", "object", "embed", "link", "base", "form", "video", "audio"}
        )
        for tag, attributes in elements:
            assert not {
                one for one in attributes if one.startswith("on") or one in ("src", "style", "srcdoc", "action")
            }
            assert attributes.get("href", "#").startswith("#"), (tag, attributes)

    def test_hostile_texts_are_text(self, hostile):
        page = report_html.html(hostile)
        page.encode("utf-8")
        reader = Reader(page)
        text = "".join(reader.text)
        for one in audits.HOSTILE:
            assert visible(one) in text
        data = reader.raw["script", "data"]
        assert not set("<>&") & set(data)
        assert data.isascii()
        assert "more characters" in data
        made = json.loads(data)
        assert made["nets"][0]["o"][: len(audits.HOSTILE)] == [visible(one) for one in audits.HOSTILE]

    def test_addresses_are_packed(self, small):
        made = json.loads(Reader(report_html.html(small)).raw["script", "data"])
        cbr0, lan = made["nets"][:2]
        start = int.from_bytes(bytes([10, 244, 1, 2]), "big")
        assert cbr0["a"] == [start, 1, 1, 1, 392_964]
        assert cbr0["s"] == "ALSRA"
        assert cbr0["r"] == [0, 0, 0, 0, None]
        assert cbr0["o"][0] == audits.container(1)[:16] + "~"
        assert cbr0["o"][2:4] == ["vip-db", "kube-system-dns"]
        assert lan["a"][1] == "2001:db8::a"
        assert made["twice"] == [["lan", "192.0.2.50", [0, 1]]]

    def test_what_several_hosts_have_in_common_is_one_row(self):
        same = [audits.finding(text="no bridge")]
        made = audits.document({"n1": ([], same), "n2": ([], [*same, audits.finding(text="other")]), "n3": ([], same)})
        rows = json.loads(Reader(report_html.html(Audit(made))).raw["script", "data"])["findings"]
        where = "/var/lib/cni/networks/cbr0"
        assert rows == [[1, "IPAM011", [0, 1, 2], where, "no bridge", 0, 3], [1, "IPAM011", [1], where, "other", 0, 1]]
        assert "4 warnings" in report_html.html(Audit(made))
        assert len(csv_text("findings", Audit(made)).splitlines()) == 5

    def test_missing_hosts_stand_behind_other_errors(self, small):
        rows = json.loads(Reader(report_html.html(small)).raw["script", "data"])["findings"]
        assert [row[1] for row in rows] == ["FLEET002", "FLEET002", "FLEET001", "FLEET005", "IPAM001"]

    def test_an_address_that_is_none_does_no_harm(self):
        held = [
            audits.reservation("10.1.0.2", "a"),
            audits.reservation("not-an-address", "b"),
            audits.reservation("10.1.0.4", "c"),
        ]
        made = audits.document({"n1": ([audits.network("lan", [["10.1.0.1-10.1.0.9"]], [])], [])})
        made["reports"]["n1"]["networks"][0]["reservations"] = held
        data = json.loads(Reader(report_html.html(Audit(made))).raw["script", "data"])
        first, second = (int.from_bytes(bytes([10, 1, 0, last]), "big") for last in (2, 4))
        assert data["nets"][0]["a"] == [first, "not-an-address", second]

    def test_a_large_fleet_is_a_small_page(self):
        page = report_html.html(Audit(audits.large(hosts=100, reservations=250)))
        assert len(page) < 100_000 + 25_000 * 32


class TestGuide:
    """The guide tells of every column, figure and sign, with the words of the files."""

    @pytest.fixture
    def guide(self):
        path = pathlib.Path(__file__).resolve().parents[4] / "docs" / "docsite" / "rst" / "guide_audit_reports.rst"
        return path.read_text(encoding="utf-8")

    def test_figures(self, guide):
        told = set(re.findall(r"``nodenet_cni_([a-z_]+)``", guide))
        assert told == set(report_prometheus.METRICS)

    @pytest.mark.parametrize("columns", [report_csv.FINDINGS, report_csv.POOLS, report_csv.ADDRESSES])
    def test_columns(self, guide, columns):
        assert [one for one in columns if f"``{one}``" not in guide] == []

    def test_signs(self, guide):
        rows = re.findall(r"^   \* - ``(.)``\n     - (\w+)$", guide, re.MULTILINE)
        assert sorted(rows) == sorted((sign, state) for state, (sign, _text) in report_data.SIGNS.items())
