# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""TLS with an API server: who is trusted, who we are, and that no secret ever shows."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import ssl
import stat
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.multus import kube, kubeconfig, kubetls
from ansible_collections.nodenet.cni.plugins.module_utils.multus.kubeaccess import Access
from ansible_collections.nodenet.cni.tests.unit import api_server
from ansible_collections.nodenet.cni.tests.unit.api_server import ApiServer, Fault

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="not run: there is no openssl command")
TOKEN = "eyJhbGciOi.S3cr3t-Payload.and_signature"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return api_server.Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def api(certificates):
    with ApiServer(certificates, client_ca=certificates.ca) as server:
        server.add_pod("ns1", "p1")
        yield server


def connect(url, tmp_path, cluster=None, user=None, environ=None, deadline=5.0):
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(api_server.kubeconfig(url, cluster, user)), encoding="utf-8")
    return kube.Client.from_config(SimpleNamespace(kubeconfig=str(path)), deadline, environ or {})


def trusting(certificates, **more):
    return {"certificate-authority": str(certificates.ca), **more}


def data(path):
    return base64.b64encode(path.read_bytes()).decode()


def error_of(call):
    with pytest.raises(kube.KubeError) as caught:
        call()
    return str(caught.value)


def read_pod(*arguments, **more):
    client = connect(*arguments, **more)
    try:
        return client.pod("ns1", "p1")
    finally:
        client.close()


def asked(api):
    """The headers that came with the only request."""
    (request,) = api.requests
    return request.headers


def asked_first(api):
    return api.requests[0].headers


# --- whom we trust


@pytest.mark.parametrize("form", ["file", "relative", "data"])
def test_a_certificate_of_the_ca_is_trusted(api, certificates, tmp_path, form):
    shutil.copy(str(certificates.ca), str(tmp_path / "ca.crt"))
    cluster = {
        "file": {"certificate-authority": str(certificates.ca)},
        "relative": {"certificate-authority": "ca.crt"},
        "data": {"certificate-authority-data": data(certificates.ca), "certificate-authority": "/gone"},
    }[form]
    assert read_pod(api.url, tmp_path, cluster)["kind"] == "Pod"


def test_the_certificate_of_the_server_itself_may_be_what_is_trusted(api, certificates, tmp_path):
    assert read_pod(api.url, tmp_path, {"certificate-authority": str(certificates.server[0])})["kind"] == "Pod"


def test_a_certificate_of_another_ca_is_refused_at_once(api, certificates, tmp_path):
    for cluster in ({"certificate-authority": str(certificates.other_ca)}, {}):
        begin = time.monotonic()
        text = error_of(lambda cluster=cluster: read_pod(api.url, tmp_path, cluster, {"token": TOKEN}))
        start = 'Get "%s/api/v1/namespaces/ns1/pods/p1?timeout=1m0s": tls: failed to verify certificate: x509: '
        assert text.startswith(start % api.url)
        assert time.monotonic() - begin < 4
    assert api.requests == []


@pytest.mark.parametrize("kind", ["unnamed", "expired"])
def test_a_certificate_with_its_name_in_the_subject_only_or_that_expired_is_refused(certificates, tmp_path, kind):
    cluster = trusting(certificates, **({"tls-server-name": "api.test"} if kind == "unnamed" else {}))
    with ApiServer(certificates, server=getattr(certificates, kind)) as api:
        text = error_of(lambda: read_pod(api.url, tmp_path, cluster, {"token": TOKEN}))
        assert "tls: failed to verify certificate: x509: " in text
        assert ("expired" in text) == (kind == "expired")
        assert api.requests == []


def test_the_name_to_expect_can_be_told(api, certificates, tmp_path):
    named = {"tls-server-name": "api.test"}
    assert read_pod(api.url, tmp_path, trusting(certificates, **named))["kind"] == "Pod"
    assert "x509" in error_of(lambda: read_pod(api.url, tmp_path, trusting(certificates, **{"tls-server-name": "b"})))


def test_verification_can_be_switched_off(certificates, tmp_path):
    with ApiServer(certificates, server=certificates.expired) as api:
        api.add_pod("ns1", "p1")
        assert read_pod(api.url, tmp_path, {"insecure-skip-tls-verify": True})["kind"] == "Pod"


def test_old_tls_is_refused(certificates):
    access = Access("https://127.0.0.1:1")
    access.ca = certificates.ca.read_text()
    for insecure in (False, True):
        access.insecure = insecure
        made = kubetls.context(access)
        assert made.minimum_version == ssl.TLSVersion.TLSv1_2
        assert (made.verify_mode, made.check_hostname) == ((0, False) if insecure else (2, True))


def test_http_where_https_is_spoken_and_the_other_way_round(api, certificates, tmp_path):
    plain = api.url.replace("https", "http")
    error_of(lambda: read_pod(plain, tmp_path, deadline=0.5))
    with ApiServer() as other:
        url = other.url.replace("http", "https")
        text = error_of(lambda: read_pod(url, tmp_path, trusting(certificates), deadline=0.5))
        assert ": net/http: TLS handshake timeout" in text or ": tls: " in text or "EOF" in text


@pytest.mark.parametrize(
    ("answer", "reset", "expected"),
    [
        (b"", False, ": EOF (tried "),
        (b"", True, "connection reset by peer (tried "),
        (b"HTTP/1.1 400 Bad\r\n\r\n", False, ": tls: "),
    ],
)
def test_what_does_not_speak_tls(certificates, tmp_path, answer, reset, expected):
    def serve():
        while True:
            try:
                connection, _address = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(answer)
                if reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        url = "https://127.0.0.1:%d" % listener.getsockname()[1]
        text = error_of(lambda: read_pod(url, tmp_path, trusting(certificates), deadline=0.5))
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
    assert expected in text


@pytest.mark.parametrize("name", ["a\0b", "\u00e9", "", ".", "x" * 300])
def test_names_that_no_certificate_has(api, certificates, tmp_path, name):
    if name:
        text = error_of(lambda: read_pod(api.url, tmp_path, trusting(certificates, **{"tls-server-name": name})))
        assert ": tls: " in text
        assert api.requests == []
    else:
        assert read_pod(api.url, tmp_path, trusting(certificates, **{"tls-server-name": name}))["kind"] == "Pod"


def test_a_ca_that_is_none(api, tmp_path):
    (tmp_path / "ca").write_text("nonsense")
    text = error_of(lambda: read_pod(api.url, tmp_path, {"certificate-authority": "ca"}))
    assert text.endswith("tls: the certificate-authority holds no certificates in PEM form")


@pytest.mark.parametrize("how", ["reset", "close", "truncate", "chunked", "until-close", "close-after"])
def test_broken_connections_and_forms_of_answers(api, certificates, tmp_path, how):
    client = connect(api.url, tmp_path, trusting(certificates))
    api.faults = [Fault(how=how)]
    for _call in range(2):
        assert client.pod("ns1", "p1")["kind"] == "Pod"
    client.close()


@pytest.mark.parametrize("how", ["hang", "handshake"])
def test_the_deadline_holds(api, certificates, tmp_path, how):
    api.faults = [Fault(how="hang", times=None)]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = api.url if how == "hang" else "https://127.0.0.1:%d" % silent.getsockname()[1]
        begin = time.monotonic()
        text = error_of(lambda: read_pod(url, tmp_path, trusting(certificates), deadline=1.0))
        assert 0.9 < time.monotonic() - begin < 4.0
    assert ("deadline exceeded" if how == "hang" else "TLS handshake timeout") in text


# --- who we are


def test_a_token(api, certificates, tmp_path):
    api.token = TOKEN
    assert read_pod(api.url, tmp_path, trusting(certificates), {"token": TOKEN})["kind"] == "Pod"


def test_a_token_file(api, certificates, tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\n")
    read_pod(api.url, tmp_path, trusting(certificates), {"tokenFile": "token"})
    read_pod(api.url, tmp_path, trusting(certificates), {"tokenFile": str(tmp_path / "token")})
    assert {request.headers["authorization"] for request in api.requests} == {"Bearer " + TOKEN}
    text = error_of(lambda: read_pod(api.url, tmp_path, trusting(certificates), {"tokenFile": "gone"}))
    assert text.endswith("open %s/gone: no such file or directory" % tmp_path)


def test_name_and_password(api, certificates, tmp_path):
    read_pod(api.url, tmp_path, trusting(certificates), {"username": "me", "password": "s3cr3t pass"})
    assert asked(api)["authorization"] == "Basic " + base64.b64encode(b"me:s3cr3t pass").decode()


@pytest.mark.parametrize("form", ["file", "data"])
def test_a_client_certificate(api, certificates, tmp_path, form):
    cert, key = certificates.client
    user = {"client-certificate": str(cert), "client-key": str(key)}
    if form == "data":
        user = {"client-certificate-data": data(cert), "client-key-data": data(key)}
    read_pod(api.url, tmp_path, trusting(certificates), user)
    assert api.requests[0].peer == "multus-client"
    assert "authorization" not in api.requests[0].headers


def test_a_client_certificate_with_the_wrong_key(api, certificates, tmp_path):
    user = {"client-certificate": str(certificates.client[0]), "client-key": str(certificates.server[1])}
    text = error_of(lambda: read_pod(api.url, tmp_path, trusting(certificates), user))
    assert text.endswith("tls: client certificate and client key are no pair of PEM texts without a password")


def test_a_key_with_a_password_asks_nobody(api, certificates, tmp_path):
    cert, key = certificates.client
    locked = tmp_path / "locked.key"
    command = ["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:wordword", "-out", locked]
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    user = {"client-certificate": str(cert), "client-key": str(locked)}
    text = error_of(lambda: read_pod(api.url, tmp_path, trusting(certificates), user))
    assert text.endswith("without a password")


def test_a_server_that_wants_a_certificate_says_so_at_once(certificates, tmp_path):
    with ApiServer(certificates, client_ca=certificates.ca, must_have=True) as api:
        begin = time.monotonic()
        text = error_of(lambda: read_pod(api.url, tmp_path, trusting(certificates), {"token": TOKEN}))
        assert time.monotonic() - begin < 4
        assert text.endswith(": remote error: tls: certificate required")


def test_impersonation(api, certificates, tmp_path):
    user = {
        "token": TOKEN, "as": "jane", "as-uid": "u1", "as-groups": ["a", "b"], "as-user-extra": {"scope": ["x", "y"]},
    }  # fmt: skip
    read_pod(api.url, tmp_path, trusting(certificates), user)
    headers = asked(api)
    assert headers["impersonate-user"] == "jane"
    assert headers["impersonate-uid"] == "u1"
    assert headers["impersonate-group"] == "a, b"
    assert headers["impersonate-extra-scope"] == "x, y"


def test_secrets_stay_here_where_the_wire_is_in_the_clear(certificates, tmp_path):
    with ApiServer() as plain:
        plain.add_pod("ns1", "p1")
        user = {"token": TOKEN, "as": "jane"}
        read_pod(plain.url, tmp_path, None, user)
        assert "authorization" not in asked(plain)
        assert asked(plain)["impersonate-user"] == "jane"


def test_the_configuration_of_a_pod(api, certificates, tmp_path, monkeypatch):
    monkeypatch.setattr(kubeconfig, "_SERVICE_ACCOUNT", str(tmp_path))
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.port)}
    config = SimpleNamespace(kubeconfig="")
    text = error_of(lambda: kube.Client.from_config(config, 5.0, environ))
    start = "GetK8sClient: failed to get context for in-cluster kube config: open "
    assert text == start + "%s/token: no such file or directory" % tmp_path
    (tmp_path / "token").write_text(TOKEN)
    shutil.copy(str(certificates.ca), str(tmp_path / "ca.crt"))
    client = kube.Client.from_config(config, 5.0, environ)
    assert client.pod("ns1", "p1")["kind"] == "Pod"
    assert asked(api)["authorization"] == "Bearer " + TOKEN
    client.close()
    assert kube.Client.from_config(config, 5.0, {"KUBERNETES_SERVICE_HOST": "127.0.0.1"}) is None


# --- a credential plugin


def plugin(tmp_path, body, **more):
    path = tmp_path / "credentials"
    path.write_text("#!%s -IS\nimport json, os, sys, time\n%s\n" % (sys.executable, body))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./credentials", "interactiveMode": "Never"}
    return {"exec": {**entry, **more}}


def tell(status, version="v1"):
    answer = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/" + version, "status": status}
    return "print(json.dumps(%r))" % answer


def test_a_plugin_tells_the_token_once(api, certificates, tmp_path):
    body = "open('%s/ran', 'a').write(' '.join(sys.argv[1:]) + os.environ['X'] + os.environ['KUBERNETES_EXEC_INFO'])\n"
    user = plugin(
        tmp_path, body % tmp_path + tell({"token": TOKEN}), args=["a", "b c"], env=[{"name": "X", "value": "y"}],
        provideClusterInfo=True,
    )  # fmt: skip
    client = connect(api.url, tmp_path, trusting(certificates), user)
    client.pod("ns1", "p1")
    client.pod("ns1", "p1")
    client.close()
    assert {request.headers["authorization"] for request in api.requests} == {"Bearer " + TOKEN}
    ran = (tmp_path / "ran").read_text()
    assert ran.startswith("a b cy{")
    info = json.loads(ran[len("a b cy") :])
    assert info["apiVersion"] == "client.authentication.k8s.io/v1"
    assert info["spec"]["interactive"] is False
    assert info["spec"]["cluster"] == {"server": api.url, "certificate-authority-data": data(certificates.ca)}


def test_a_plugin_in_the_path_tells_a_certificate(api, certificates, tmp_path):
    cert, key = certificates.client
    status = {"clientCertificateData": cert.read_text(), "clientKeyData": key.read_text()}
    user = plugin(tmp_path, tell(status, "v1beta1"), command="credentials")
    user["exec"]["apiVersion"] = "client.authentication.k8s.io/v1beta1"
    environ = {"PATH": "relative:/nowhere:%s" % tmp_path}
    read_pod(api.url, tmp_path, trusting(certificates), user, environ)
    assert api.requests[0].peer == "multus-client"


@pytest.mark.parametrize(
    ("body", "more", "text"),
    [
        ("sys.exit(3)", {}, "failed with exit code 3"),
        ("print('no json')", {}, "the output is no ExecCredential with a status"),
        (tell({}), {}, "didn't return a token or cert/key pair"),
        (tell({"clientKeyData": "k"}), {}, "returned only certificate or key, not both"),
        (tell({"token": 5}), {}, "the credentials are not what they should be"),
        (tell({"token": "a\r\nX-Injected: b"}), {}, "the credentials are not what they should be"),
        (tell({"token": "t"}, "v1beta1"), {}, "plugin returned another"),
        ("", {"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "invalid apiVersion"),
        ("", {"interactiveMode": "Always"}, "cannot support interactive mode"),
        ("", {"command": "no-such-command"}, "executable no-such-command not found in PATH of this plugin"),
        ("", {"command": "/no/such"}, "exec: executable /no/such: No such file or directory"),
        ("", {"args": "x"}, "args must be a list of strings"),
        ("", {"env": [{"name": "x"}]}, "env must be a list of names and values"),
    ],
)
def test_plugins_that_fail(api, certificates, tmp_path, body, more, text):
    user = plugin(tmp_path, body, **more)
    assert text in error_of(lambda: read_pod(api.url, tmp_path, trusting(certificates), user))
    assert api.requests == []


def test_a_plugin_that_hangs_is_killed_with_all_that_it_started(api, certificates, tmp_path):
    body = "import subprocess\nprint(subprocess.Popen(['sleep', '99']).pid, file=open('%s/pid', 'w'), flush=True)\n"
    user = plugin(tmp_path, body % tmp_path + "time.sleep(1000)")
    begin = time.monotonic()
    text = error_of(lambda: read_pod(api.url, tmp_path, trusting(certificates), user, deadline=3.0))
    assert time.monotonic() - begin < 6
    assert "deadline exceeded" in text
    state = Path("/proc/%s/stat" % (tmp_path / "pid").read_text().strip())
    for _wait in range(100):
        try:
            if state.read_text().rpartition(")")[2].split()[0] == "Z":
                break
        except FileNotFoundError:
            break
        time.sleep(0.01)
    else:
        pytest.fail("what the plugin started still runs")


# --- nothing secret shows


@pytest.mark.parametrize("code", [401, 403, 500])
@pytest.mark.parametrize("form", ["token", "file", "password", "exec"])
def test_no_secret_is_in_an_error_even_if_the_server_says_it(api, certificates, tmp_path, form, code):
    (tmp_path / "token").write_text(TOKEN)
    user = {
        "token": {"token": TOKEN},
        "file": {"tokenFile": "token"},
        "password": {"username": "me", "password": TOKEN},
        "exec": plugin(tmp_path, tell({"token": TOKEN})),
    }[form]
    api.faults = [Fault(code=code, message="the token %s is none of mine" % TOKEN, times=None)]
    deadline = 3.0 if form == "exec" else 1.0
    text = error_of(lambda: read_pod(api.url, tmp_path, trusting(certificates), user, deadline=deadline))
    assert text.startswith("the token *** is none of mine")


@pytest.mark.parametrize("code", [401, 500])
def test_a_header_with_name_and_password_is_not_shown(api, certificates, tmp_path, code):
    header = "Basic " + base64.b64encode(b":s3cr3t").decode()
    api.faults = [Fault(code=code, message="not %s" % header, times=None)]
    user = {"username": "", "password": "s3cr3t"}
    text = error_of(lambda: read_pod(api.url, tmp_path, trusting(certificates), user, deadline=1.0))
    assert text.startswith("not Basic ***")
    assert asked_first(api)["authorization"] == header


@pytest.mark.parametrize("token", ["a\nb-S3cr3t", "S3cr3t\u00e9", "S3cr3t\x7f"])
def test_a_token_that_is_none_is_not_shown(api, tmp_path, token):
    text = error_of(lambda: read_pod(api.url, tmp_path, None, {"token": token}))
    assert text.endswith("the token of user multus is none, it has characters that no token has")
    assert "S3cr3t" not in text
