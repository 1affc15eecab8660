# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import CniError
from ansible_collections.nodenet.cni.plugins.module_utils.multus import selection


def read(value):
    text = value if isinstance(value, str) else json.dumps(value)
    return selection.parse_networks(text, "own")


def test_the_short_form():
    found = [(one.namespace, one.name, one.interface) for one in read(" a , x/b@if0,c@ data0 ,, y / d ")]
    assert found == [
        ("own", "a", ""),
        ("x", "b", "if0"),
        ("own", "c", "data0"),
        ("own", "", ""),
        ("y", "d", ""),
    ]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a/b/c", "Invalid network object (failed at '/')"),
        ("a@b@c", "Invalid network object (failed at '@')"),
        ("A", "mismatch @ 'A'"),
        ("a.b", "mismatch @ 'a.b'"),
        ("-a", "mismatch @ '-a'"),
        ("x-/a", "mismatch @ 'x-'"),
        ("a@0123456789abcdef", "interface name '0123456789abcdef'"),
        ("a@b c", "interface name 'b c'"),
        ("", 'does not have "network" as key'),
    ],
)
def test_the_short_form_refused(text, part):
    with pytest.raises(CniError) as caught:
        read(text)
    assert part in str(caught.value)


def test_every_member_of_an_element():
    element = {
        "name": "n",
        "NAMESPACE": "x",
        "ips": ["10.0.0.1", "10.0.0.2/24", "fd00::1/64"],
        "mac": "02-00-00-00-00-01",
        "infiniband-guid": "24:8a:07:03:00:8d:ae:2e",
        "interface": "i",
        "interfaceRequest": "old",
        "portMappings": [{"hostPort": 1, "containerPort": 2, "protocol": "tcp"}, {"hostIP": "h"}],
        "bandwidth": {"egressBurst": 4},
        "deviceID": "d",
        "cni-args": {"a": 1},
        "default-route": ["10.0.0.254", "FD00::FE", "::ffff:10.0.0.3", "", None],
        "ipRequest": 5,
    }
    (found,) = read([element])
    assert (found.namespace, found.name, found.interface) == ("x", "n", "i")
    assert found.ips == element["ips"]
    assert (found.mac, found.infiniband_guid) == (element["mac"], element["infiniband-guid"])
    assert found.port_mappings == [
        {"hostPort": 1, "containerPort": 2, "protocol": "tcp"},
        {"hostPort": 0, "containerPort": 0, "hostIP": "h"},
    ]
    assert found.bandwidth == {"ingressRate": 0, "ingressBurst": 0, "egressRate": 0, "egressBurst": 4}
    assert found.device_id == "d"
    assert [str(one[0]) for one in found.cni_args] == ["a"]
    assert found.gateways == ["10.0.0.254", "fd00::fe", "10.0.0.3", "", ""]


def test_what_is_absent_and_what_is_empty():
    absent, empty, null = read([{"name": "a"}, {"default-route": [], "cni-args": {}}, {"default-route": None}])
    assert (absent.gateways, empty.gateways, null.gateways) == (None, [], None)
    assert (absent.cni_args, empty.cni_args) == (None, ())


@pytest.mark.parametrize(
    ("element", "part"),
    [
        ({"mac": "02:00"}, "failed to mac: address 02:00: invalid MAC address"),
        ({"mac": "02:00:00:00:00:0g"}, "invalid MAC address"),
        ({"infiniband-guid": "x"}, "failed to validate infiniband GUID: address x: invalid MAC address"),
        ({"ips": ["10.0.0.1/33"]}, 'failed to parse CIDR "10.0.0.1/33": invalid CIDR address: 10.0.0.1/33'),
        ({"ips": ["10.0.0"]}, 'failed to parse IP address "10.0.0"'),
        ({"ips": ["010.0.0.1"]}, 'failed to parse IP address "010.0.0.1"'),
        ({"ips": ["fe80::1%eth0"]}, "failed to parse IP address"),
        ({"default-route": ["x"]}, "JSON format: invalid IP address: x"),
        ({"ips": "10.0.0.1"}, "JSON format: json: cannot unmarshal string"),
        ({"cni-args": []}, "JSON format: json: cannot unmarshal"),
        ({"portMappings": [{"hostPort": 1.5}]}, "JSON format: json: cannot unmarshal number 1.5"),
        (None, "element 0 is null"),
        ("x", "JSON format: json: cannot unmarshal string"),
    ],
)
def test_elements_refused(element, part):
    with pytest.raises(CniError) as caught:
        read([element])
    assert str(caught.value).startswith("parsePodNetworkAnnotation: ")
    assert part in str(caught.value)


@pytest.mark.parametrize("text", ['{"name": "a"}', '"a"', "[", '[{"name": "a"}] x'])
def test_documents_refused(text):
    with pytest.raises(CniError, match="^parsePodNetworkAnnotation: failed to parse pod Network Attachment Selection"):
        read(text)


@pytest.mark.parametrize(
    "text", ["00:00:5e:00:53:01", "02-00-5E-10-00-00-00-01", "0000.5e00.5301", ":".join(["00"] * 20)]
)
def test_hardware_addresses(text):
    assert selection.is_mac(text)


@pytest.mark.parametrize(
    "text", ["", "00:00:5e:00:53", "0000:5e00:5301", "00:00:5e:00:53:1", "00-00:5e:00:53:01", "00005e005301"]
)
def test_what_is_no_hardware_address(text):
    assert not selection.is_mac(text)
