# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters parse_networks and format_networks: what one writes the other reads, and what is wrong is told."""

from __future__ import annotations

import json
import re

import pytest
from ansible.errors import AnsibleFilterError
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.nodenet.cni.plugins.filter.format_networks import format_networks
from ansible_collections.nodenet.cni.plugins.filter.parse_networks import parse_networks
from ansible_collections.nodenet.cni.plugins.module_utils.multus import selection

WHOLE = {
    "name": "lan",
    "namespace": "prod",
    "interface": "lan0",
    "ips": ["192.0.2.7/24", "2001:db8::7"],
    "mac": "02:00:00:00:00:01",
    "infiniband-guid": "c2:11:22:33:44:55:66:77",
    "portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "TCP", "hostIP": "127.0.0.1"}],
    "bandwidth": {"ingressRate": 1, "ingressBurst": 2, "egressRate": 3, "egressBurst": 4},
    "deviceID": "0000:00:00.1",
    "cni-args": {"a": [1, "b"], "c": None},
    "default-route": ["192.0.2.1", "2001:db8::1"],
}


def test_every_field_goes_both_ways():
    text = json.dumps([WHOLE])
    assert parse_networks(text) == [WHOLE]
    assert format_networks([WHOLE]) == json.dumps([WHOLE], separators=(",", ":"))
    assert parse_networks(format_networks([WHOLE])) == [WHOLE]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("lan", [{"name": "lan"}]),
        (
            "lan, prod/lan@data0 ,lan",
            [{"name": "lan"}, {"name": "lan", "namespace": "prod", "interface": "data0"}, {"name": "lan"}],
        ),
        ("", []),
        (None, []),
        ("[]", []),
        ('[{"NAME": "a", "interfaceRequest": "old0"}]', [{"name": "a", "interface": "old0"}]),
        (
            '[{"name": "a", "default-route": [], "cni-args": {}}]',
            [{"name": "a", "cni-args": {}, "default-route": []}],
        ),
        (
            '[{"name": "a", "bandwidth": {"egressRate": 5}}]',
            [{"name": "a", "bandwidth": {"ingressRate": 0, "ingressBurst": 0, "egressRate": 5, "egressBurst": 0}}],
        ),
    ],
)
def test_both_forms(text, found):
    assert parse_networks(text) == found


def test_the_namespace_of_the_pod():
    assert parse_networks("lan,other/lan", "prod") == [
        {"name": "lan", "namespace": "prod"},
        {"name": "lan", "namespace": "other"},
    ]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("lan,", "element 2: empty network name"),
        (" ", "element 1: empty network name"),
        ("a/b/c", "element 1 (a/b/c): more than one '/'; it has to be like namespace/name@interface"),
        ("a@b@c", "more than one '@'"),
        ("Lan", "element 1 (Lan): 'Lan' has to consist of lower case letters, digits and '-'"),
        ("lan@storage_if_0001x", "the interface name 'storage_if_0001x' has 16 characters, at most 15 are allowed"),
        ("lan@a:b", "'a:b' cannot be the name of an interface"),
        ('[{"name":"lan","interface":"lan0"}', "not valid JSON at line 1, column 35: the text ends in the middle"),
        ('[{"name":"lan",}]', "trailing comma at line 1, column 15"),
        ("[{'name':'lan'}]", "single quotes instead of double quotes at line 1"),
        ('{"name":"lan"}', "has to be a list of objects"),
        ('["lan"]', "element 1: it has to be an object"),
        ("[null]", "element 1: it has to be an object"),
        ('[{"name":1}]', "element 1: name has to be text, not a number"),
        ('[{"name":"a","ips":"192.0.2.7"}]', "element 1 (a): ips has to be a list, not text"),
        ('[{"name":"a","ips":["192.0.2"]}]', "'192.0.2' is no IP address"),
        ('[{"name":"a","ips":["2001::g"]}]', "'2001::g' is no IP address"),
        ('[{"name":"a","ips":["192.0.2.7/33"]}]', "'192.0.2.7/33' is no IP address with a prefix length"),
        ('[{"name":"a","default-route":["x"]}]', "'x' is no IP address"),
        ('[{"name":"a","mac":"02:00"}]', "mac '02:00' is no hardware address"),
        ('[{"name":"a","infiniband-guid":"x"}]', "infiniband-guid 'x' is no hardware address"),
        ('[{"name":"a","portMappings":[{"hostPort":"80"}]}]', "portMappings[0].hostPort has to be a whole number"),
        ('[{"name":"a","bandwidth":{"ingressRate":1.5}}]', "1.5 has to be a whole number"),
        ('[{"name":"a","cni-args":1}]', "cni-args has to be an object"),
        ([1], "wants the text of an annotation, not list"),
    ],
)
def test_what_is_wrong_is_told(value, reason):
    with pytest.raises(AnsibleFilterError) as raised:
        parse_networks(value)
    text = str(raised.value)
    assert text.startswith("nodenet.cni.parse_networks: ")
    assert reason in text
    assert "parsePod" not in text
    assert "unmarshal" not in text


def test_all_faults_are_told_at_once():
    with pytest.raises(AnsibleFilterError) as raised:
        parse_networks("A,b,c@d@e,")
    assert re.findall(r"element \d", str(raised.value)) == ["element 1", "element 3", "element 4"]


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (["lan", "storage/fast@data0"], "auto", "lan,storage/fast@data0"),
        ("lan", "auto", "lan"),
        ({"name": "lan", "interface": "x", "mac": None}, "auto", "lan@x"),
        ([{"name": "lan", "namespace": "prod"}], "json", '[{"name":"lan","namespace":"prod"}]'),
        ([{"name": "a.b"}], "auto", '[{"name":"a.b"}]'),
        ([], "auto", ""),
        ([], "json", "[]"),
    ],
)
def test_format(value, form, text):
    assert format_networks(value, form) == text


@pytest.mark.parametrize(
    ("value", "form", "reason"),
    [
        ([{"name": "a", "ips": ["192.0.2.7"]}], "short", "element 1 (a): the short form cannot tell ips"),
        ([{"name": "a.b"}], "short", "element 1 (a.b): the short form cannot tell such names"),
        (["a", {"nam": "b"}], "auto", "element 2 (None): there is no nam, only name, "),
        (["a", "b,c"], "auto", "element 2 (b,c): it has to be like"),
        ([1], "auto", "element 1: it has to be a dictionary, or text"),
        ([{"name": "a", "mac": "x"}, {"name": "b", "ips": "x"}], "auto", "hardware address; element 2 (b): ips"),
        ([{"name": ""}], "auto", "empty network name"),
        ([{"name": "a", "cni-args": {"x": {1, 2}}}], "auto", "element 1 (a): it cannot be written as JSON"),
        (1, "auto", "wants a list of networks, not int"),
        (["a"], "yaml", "form has to be one of auto, json, short, not 'yaml'"),
    ],
)  # fmt: skip
def test_format_refuses(value, form, reason):
    with pytest.raises(AnsibleFilterError) as raised:
        format_networks(value, form)
    assert str(raised.value).startswith("nodenet.cni.format_networks: ")
    assert reason in str(raised.value)


NAMES = st.text("abz09-", min_size=1, max_size=8).filter(lambda text: text[0] != "-" and text[-1] != "-")
SHORT = st.fixed_dictionaries(
    {"name": NAMES}, optional={"namespace": NAMES, "interface": st.text("abz09-_.", min_size=1, max_size=15)}
)


@given(st.lists(SHORT, max_size=4))
def test_the_short_form_goes_both_ways(networks):
    usable = [one for one in networks if one.get("interface") not in (".", "..")]
    text = format_networks(usable)
    assert "{" not in text
    assert parse_networks(text) == usable
    assert parse_networks(format_networks(usable, "json")) == usable


@given(st.text('[{"}],:@/ab 1', max_size=12))
def test_only_what_multus_takes_is_taken(text):
    try:
        found = parse_networks(text, "prod")
    except AnsibleFilterError:
        return
    if text:
        requests = selection.parse_networks(text, "prod")
        assert [one.name for one in requests] == [one["name"] for one in found]
        assert [one.namespace for one in requests] == [one["namespace"] for one in found]
