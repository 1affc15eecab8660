# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubeconfig files: what is read of them, and what is said of those that cannot be used (vector kubeconfig-bad)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.multus import kubeconfig, vendored
from ansible_collections.nodenet.cni.plugins.module_utils.multus.kubeaccess import Access, Fault
from ansible_collections.nodenet.cni.tests.unit import api_server

EMPTY = "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
YAML = """\
# as the DaemonSet of Multus writes it
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: https://[fd00::1]:6443
    insecure-skip-tls-verify: true
users:
- name: multus
  user:
    token: "tok-123"
contexts:
- name: multus-context
  context:
    cluster: local
    user: multus
    namespace: kube-system
current-context: multus-context
"""

try:
    vendored.load("yaml")
    HAS_YAML = True
except ImportError:
    HAS_YAML = False
needs_yaml = pytest.mark.skipif(not HAS_YAML, reason="not run: PyYAML is not installed")


def load(tmp_path, text):
    path = tmp_path / "kubeconfig"
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return kubeconfig.load(str(path), {})


def fault_of(tmp_path, text):
    with pytest.raises(Fault) as caught:
        load(tmp_path, text)
    start = "GetK8sClient: failed to get context for the kubeconfig %s/kubeconfig: " % tmp_path
    assert str(caught.value).startswith(start)
    return str(caught.value)[len(start) :]


def document(cluster=None, user=None, url="https://api.test"):
    return api_server.kubeconfig(url, cluster, user)


# --- where the server is


@pytest.mark.parametrize(
    ("url", "host", "port", "prefix", "is_tls"),
    [
        ("http://127.0.0.1:8080", "127.0.0.1", 8080, "", False),
        ("https://api.test", "api.test", 443, "", True),
        ("HTTP://api.test/", "api.test", 80, "", False),
        ("https://[fd00::1]:6443/k8s/c-1/", "fd00::1", 6443, "/k8s/c-1", True),
        ("https://[fd00::1]", "fd00::1", 443, "", True),
        ("api.test:8080", "api.test", 8080, "", False),
    ],
)
def test_servers(url, host, port, prefix, is_tls):
    access = Access(url)
    assert (access.host, access.port, access.prefix, access.is_tls) == (host, port, prefix, is_tls)


def test_a_server_without_a_scheme_is_one_of_https_if_there_is_anything_of_tls(tmp_path):
    assert not load(tmp_path, document(url="api.test:1")).is_tls
    assert load(tmp_path, document({"insecure-skip-tls-verify": True}, url="api.test:1")).is_tls
    assert load(tmp_path, document({"certificate-authority-data": "YQ=="}, url="api.test:1")).is_tls
    assert not load(tmp_path, document(user={"token": "t"}, url="api.test:1")).is_tls


@pytest.mark.parametrize(
    "url",
    ["ftp://x", "https://", "https://x:0", "https://x:70000", "https://x:y", "https://a:b@x", "https://x/?q",
     "https://x y", "https://[x]:1", "https://[::1", "https://::1", "https://x#f", "https://\u00e9",
     "https://x\0y", "https://x/\r\nInjected: y"],
)  # fmt: skip
def test_servers_that_are_none(tmp_path, url):
    text = fault_of(tmp_path, document(url=url))
    assert text.startswith("invalid configuration: ")
    assert "a:b" not in text


# --- files that cannot be used


def test_no_file_and_one_that_is_none(tmp_path):
    for path, reason in (
        (tmp_path / "no", "stat %s: no such file or directory"),
        (tmp_path, "read %s: is a directory"),
    ):
        with pytest.raises(Fault) as caught:
            kubeconfig.load(str(path), {})
        start = "GetK8sClient: failed to get context for the kubeconfig %s: " % path
        assert str(caught.value) == start + reason % path
    assert kubeconfig.load("", {}) is None


def test_documents_without_what_it_takes(tmp_path):
    for text in ("", " \n", "{}", {"current-context": ""}, {"current-context": None, "clusters": None}):
        assert fault_of(tmp_path, text) == EMPTY
    whole = document()
    for change in ({"clusters": []}, {"clusters": [{"name": "local"}]}):
        assert fault_of(tmp_path, dict(whole, **change)) == EMPTY
    text = fault_of(tmp_path, dict(whole, **{"current-context": "nope"}))
    reasons = "[context was not found for specified context: nope, cluster has no server defined]"
    assert text == "invalid configuration: " + reasons
    nowhere = dict(whole, clusters=[{"name": "local", "cluster": {"tls-server-name": "x"}}])
    assert fault_of(tmp_path, nowhere) == 'invalid configuration: no server found for cluster "local"'


def test_a_context_whose_user_is_not_there_is_one_without_credentials(tmp_path):
    access = load(tmp_path, dict(document(), users=[]))
    assert (access.token, access.cert, access.basic) == ("", "", ("", ""))


def test_files_that_are_named_and_not_there(tmp_path):
    text = fault_of(tmp_path, document({"certificate-authority": "/no/ca"}))
    reason = "unable to read certificate-authority /no/ca for local due to open /no/ca: no such file or directory"
    assert text == "invalid configuration: " + reason
    text = fault_of(tmp_path, document(user={"client-certificate": "c", "client-key": "/no/k"}))
    assert text == (
        "invalid configuration: [unable to read client-cert %s/c for multus due to open %s/c: no such file or "
        "directory, unable to read client-key /no/k for multus due to open /no/k: no such file or directory]"
        % (tmp_path, tmp_path)
    )


@pytest.mark.parametrize(
    ("cluster", "user", "text"),
    [
        ({"insecure-skip-tls-verify": True, "certificate-authority-data": "YQ=="}, {},
         "specifying a root certificates file with the insecure flag is not allowed"),
        ({"certificate-authority-data": "/%"}, {},
         "invalid configuration: certificate-authority-data of local is not base64 of a PEM text"),
        ({}, {"token": "t", "username": "u", "password": "p"},
         "invalid configuration: more than one authentication method found for multus; found [token basicAuth], "
         "only one is allowed"),
        ({}, {"client-certificate-data": "YQ=="},
         "invalid configuration: client-key-data or client-key must be specified for multus to use the clientCert "
         "authentication method."),
        ({}, {"auth-provider": {"name": "gcp"}},
         "invalid configuration: no Auth Provider found for the auth-provider of multus; use exec"),
        ({}, {"exec": {}},
         "invalid configuration: [command must be specified for multus to use exec authentication plugin, apiVersion "
         "must be specified for multus to use exec authentication plugin, interactiveMode must be specified for "
         "multus to use exec authentication plugin]"),
        ({}, {"as-groups": ["g"]}, "requesting uid, groups or user-extra without impersonating a user"),
        ({}, {"as": "a\r\nX: y"},
         "invalid configuration: whom to impersonate is none, it has characters that no token has"),
    ],
)  # fmt: skip
def test_members_that_contradict_each_other(tmp_path, cluster, user, text):
    assert fault_of(tmp_path, document(cluster, user)) == text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"clusters": {}}, None),
        ({"clusters": "x"}, "clusters must be a list"),
        ({"users": [1]}, "users must be a list of objects with a name and a user"),
        ({"users": [{"name": "multus", "user": {"token": 5}}]}, "user: token must be a string; put it in quotes"),
        ({"users": [{"name": "multus", "user": {"exec": []}}]}, "user: exec must be an object"),
        ({"users": [{"name": "multus", "user": {"as": "a", "as-groups": "g"}}]}, "user: as-groups must be a list"),
        ({"users": [{"name": "multus", "user": {"as": "a", "as-groups": [1]}}]}, "must hold strings"),
        ({"current-context": 5}, "current-context must be a string; put it in quotes"),
    ],
)
def test_members_of_the_wrong_type(tmp_path, change, text):
    told = fault_of(tmp_path, dict(document(), **change))
    if text is None:
        assert told == EMPTY
    else:
        assert told.startswith('error loading config file "%s/kubeconfig": ' % tmp_path)
        assert text in told


# --- YAML


@needs_yaml
def test_yaml(tmp_path):
    access = load(tmp_path, YAML)
    assert (access.host, access.port, access.token, access.insecure) == ("fd00::1", 6443, "tok-123", True)


@needs_yaml
def test_yaml_that_begins_like_json(tmp_path):
    contexts = "contexts: [{name: c, context: {cluster: l}}], clusters: [{name: l, cluster: {server: x}}]"
    assert load(tmp_path, "{current-context: c, %s}" % contexts).host == "x"


@needs_yaml
@pytest.mark.parametrize("text", ["a: [", "\ta: b", "a: b: c", "!!python/object/apply:os.system [id]", "[" * 5000])
def test_yaml_that_is_none(tmp_path, text):
    told = fault_of(tmp_path, text)
    assert told.startswith('error loading config file "%s/kubeconfig": yaml: ' % tmp_path)


@needs_yaml
def test_yaml_that_is_no_object(tmp_path):
    assert fault_of(tmp_path, "- a\n").endswith("it is no object")


@needs_yaml
def test_yaml_does_not_show_its_lines(tmp_path):
    assert "S3cr3t" not in fault_of(tmp_path, 'users: [{user: {token: "S3cr3t"}]\n')
    for line in ("token: S3cr3t: x", "token: *S3cr3t", "token: !S3cr3t x", 'token: "\\S3cr3t"', "token: &S3cr3t"):
        assert "S3cr3t" not in fault_of(tmp_path, line + "\n")


CHILD = """
import sys
sys.path.insert(0, %r)
from ansible_collections.nodenet.cni.plugins.module_utils.multus import kubeconfig
try:
    print(kubeconfig.load(sys.argv[1], {}).host)
except kubeconfig.Fault as fault:
    print(fault)
slow = ("json", "re", "yaml", "ssl", "socket", "http", "urllib", "email")
print(sorted(name for name in slow if name in sys.modules))
"""


def in_a_bare_interpreter(path):
    root = vendored.__file__.rpartition("/ansible_collections/")[0]
    command = [sys.executable, "-IBS", "-c", CHILD % root, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout.splitlines()


def test_json_takes_no_more_than_the_bare_interpreter(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(document()))
    assert in_a_bare_interpreter(path) == ["api.test", "[]"]


def test_yaml_without_pyyaml_says_what_to_do(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(YAML)
    told = in_a_bare_interpreter(path)[0]
    assert told.endswith(
        'error loading config file "%s": it is YAML, and PyYAML is not beside this plugin; install the plugin again '
        "from a controller that has PyYAML, or write the file as JSON" % path
    )
    path.write_text('{"current-context": }')
    assert 'error loading config file "%s": json: invalid character' % path in in_a_bare_interpreter(path)[0]
