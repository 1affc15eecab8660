# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import json
import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import findings, kubeconfig

NOW = 1700000000


def token(claims):
    parts = [json.dumps(one).encode() for one in ({"alg": "none"}, claims)]
    return ".".join([base64.urlsafe_b64encode(one).decode().rstrip("=") for one in parts] + ["c2ln"])


@pytest.fixture
def write(tmp_path):
    def build(text):
        path = tmp_path / "multus.kubeconfig"
        path.write_text(f"apiVersion: v1\nkind: Config\nusers:\n- name: multus\n  user:\n    {text}\n")
        path.chmod(0o600)
        os.utime(str(path), (NOW - 500, NOW - 500))
        return str(path)

    return build


def test_there_is_none(tmp_path):
    assert kubeconfig.look(str(tmp_path / "none")) == (None, [])


@pytest.mark.parametrize(
    ("left", "kinds"), [(86400, []), (60, ["multus-token-expires"]), (-60, ["multus-token-expired"])]
)
@pytest.mark.parametrize("form", ["token: {}", 'token: "{}"', "token: '{}'"])
def test_when_the_token_expires(write, left, kinds, form):
    text = token({"exp": NOW + left})
    row, facts = kubeconfig.look(write(form.format(text)), NOW)
    assert (row["age_s"], row["expires_in_s"]) == (500, left)
    assert [fact["kind"] for fact in facts] == kinds
    assert text not in json.dumps([row, findings.from_facts(facts)])


def test_a_token_in_a_file_of_its_own(write, tmp_path):
    (tmp_path / "token").write_text(token({"exp": NOW + 7200}) + "\n")
    assert kubeconfig.look(write(f"tokenFile: {tmp_path}/token"), NOW)[0]["expires_in_s"] == 7200
    assert kubeconfig.look(write(f"tokenFile: {tmp_path}/none"), NOW)[0]["expires_in_s"] is None


@pytest.mark.parametrize("text", ["token: abc", "token: a.b.c", "client-certificate-data: x", "token: bnVsbA.bnVsbA.x"])
def test_credentials_that_do_not_tell(write, text):
    row, facts = kubeconfig.look(write(text), NOW)
    assert (row["expires_in_s"], facts) == (None, [])


def test_a_directory_in_its_place_is_a_fact(tmp_path):
    row, facts = kubeconfig.look(str(tmp_path))
    assert row is None
    assert [fact["kind"] for fact in facts] == ["multus-kubeconfig-unreadable"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_kubeconfig_in_json(tmp_path, indent):
    text = token({"exp": NOW + 7200})
    path = tmp_path / "multus.kubeconfig"
    document = {
        "contexts": [{"name": "x", "context": {"user": "x"}}, {"name": "m", "context": {"user": "m"}}],
        "users": [{"name": "x", "user": {"token": token({"exp": 1})}}, {"name": "m", "user": {"token": text}}],
        "current-context": "m",
    }
    path.write_text(json.dumps(document, indent=indent))
    row, facts = kubeconfig.look(str(path), NOW)
    assert row["expires_in_s"] == 7200
    assert text not in json.dumps([row, facts])
    (tmp_path / "token").write_text(token({"exp": NOW + 60}))
    document["users"][1]["user"] = {"tokenFile": str(tmp_path / "token")}
    path.write_text(json.dumps(document))
    assert kubeconfig.look(str(path), NOW)[0]["expires_in_s"] == 60
    for broken in ("{", "{}", '{"users": 1}', '{"contexts": [], "users": [], "current-context": []}'):
        path.write_text(broken)
        assert kubeconfig.look(str(path), NOW)[0]["expires_in_s"] is None


@pytest.mark.parametrize(
    ("mode", "kinds"), [(0o644, ["multus-kubeconfig-open"]), (0o640, ["multus-kubeconfig-open"]), (0o400, [])]
)
def test_who_may_read_it(write, mode, kinds):
    path = write("token: abc")
    os.chmod(path, mode)
    row, facts = kubeconfig.look(path, NOW)
    assert row["mode"] == f"{mode:04o}"
    assert [fact["kind"] for fact in facts] == kinds


@pytest.mark.parametrize(
    "claims", [[], "x", {"exp": "soon"}, {"exp": None}, {"exp": 1e300}, {"exp": float("inf")}, {"iat": 1}]
)
def test_claims_that_tell_no_end(write, claims):
    assert kubeconfig.look(write("token: " + token(claims)), NOW)[0]["expires_in_s"] is None
