# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import gojson, goshape


def test_keys_match_in_any_case_and_objects_merge():
    shape = goshape.Struct("t", {"ipam": goshape.Struct("i", {"dataDir": goshape.STRING, "type": goshape.STRING})})
    text = '{"IPAM": {"DATADIR": "/a", "type": "x"}, "ipam": {"dataDir": "/b"}}'
    assert shape.decode(gojson.parse(text), None, "") == {"ipam": {"dataDir": "/b", "type": "x"}}
    # U+017F folds to s and U+212A to k
    assert gojson.field(gojson.parse('{"\u017fubnet": 1, "\u212aey": 2}'), "subnet") == gojson.Number("1")
    assert gojson.field(gojson.parse('{"\u212aey": 2}'), "key") == gojson.Number("2")
    assert gojson.field(gojson.parse('{"sub_net": 1}'), "subnet") is None


def test_a_repeated_list_overlays_the_earlier_one():
    shape = goshape.Struct("t", {"l": goshape.List(goshape.Struct("e", {"a": goshape.STRING, "b": goshape.STRING}))})
    text = '{"l": [{"a": "1"}, {"a": "2"}], "l": [{"b": "3"}]}'
    assert shape.decode(gojson.parse(text), None, "") == {"l": [{"a": "1", "b": "3"}]}


def test_null_leaves_scalars_alone_and_empties_lists_and_pointers():
    shape = goshape.Struct(
        "t",
        {
            "s": goshape.STRING,
            "i": goshape.INTEGER,
            "l": goshape.List(goshape.STRING),
            "p": goshape.Integer(pointer=True),
        },
    )
    text = '{"s": "x", "s": null, "i": 1, "i": null, "l": ["y"], "l": null, "p": 2, "p": null}'
    assert shape.decode(gojson.parse(text), None, "") == {"s": "x", "i": 1}


@pytest.mark.parametrize(
    "literal", ["1500.0", "1e3", '"1"', "true", "9223372036854775808", "-9223372036854775809", "[]"]
)
def test_an_integer_field_takes_integer_literals_of_64_bits_only(literal):
    with pytest.raises(goshape.TypeFault) as caught:
        goshape.Struct("t", {"mtu": goshape.INTEGER}).decode(gojson.parse('{"mtu": %s}' % literal), None, "")
    assert caught.value.path == "mtu"


def test_the_limits_of_an_integer_field():
    for number in (2**63 - 1, -(2**63), 0):
        assert goshape.INTEGER.decode(gojson.parse(str(number)), None, "") == number


def test_a_type_fault_names_the_place():
    shape = goshape.Struct("t", {"l": goshape.List(goshape.List(goshape.Struct("r", {"a": goshape.STRING})))})
    with pytest.raises(goshape.TypeFault) as caught:
        shape.decode(gojson.parse('{"l": [[{"a": "x"}, {"a": 5}]]}'), None, "")
    assert caught.value.path == "l[0][1].a"


@pytest.mark.parametrize("literal", ["1", '"true"', "[]", "{}"])
def test_a_boolean_field_takes_true_and_false_only(literal):
    shape = goshape.Struct("t", {"b": goshape.BOOLEAN})
    assert shape.decode(gojson.parse('{"b": false, "B": true, "b": null}'), None, "") == {"b": True}
    with pytest.raises(goshape.TypeFault, match="of type bool") as caught:
        shape.decode(gojson.parse('{"b": %s}' % literal), None, "")
    assert caught.value.path == "b"
