# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubeconfig of Multus: made as JSON, which every reader of kubeconfigs takes, and renewed before its token ends.

A token is a secret: it goes into the file (mode 0600) and nowhere else, neither into results nor into messages.
"""

from __future__ import annotations

import base64
import json
import os
import time

from ..cni.errors import NodenetError
from ..multus import kubeaccess
from . import confdir, kubeconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MODE = 0o600
HIDDEN = "VALUE_HIDDEN"
#: What is left of a token's lifetime when a new one takes its place, as kubelet does it.
RENEW_SHARE = 0.2
#: The members of what is written here; whatever else a file holds may be a secret.
_DOCUMENT = {"apiVersion", "kind", "clusters", "users", "contexts", "current-context"}
_MEMBERS = {
    "clusters": (
        "cluster",
        {
            "server",
            "certificate-authority-data",
            "certificate-authority",
            "insecure-skip-tls-verify",
            "tls-server-name",
        },
    ),
    "users": ("user", {"token", "tokenFile", "client-certificate", "client-key"}),
    "contexts": ("context", {"cluster", "user"}),
}
_PEM = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----")


class Plan:
    """What becomes of the file. data: what to write, None to leave it. report: what the module returns. diff: its text
    before and after, secrets hidden."""

    def __init__(self, path: str, data: bytes | None, report: dict[str, Any] | None, diff: dict[str, str]) -> None:
        self.path = path
        self.data = data
        self.report = report
        self.diff = diff


def make_plan(path: str, wanted: Mapping[str, Any] | None, verb: str, now: float | None = None) -> Plan:
    """Decide what has to become of the kubeconfig.

    :param wanted: the option ``kubeconfig`` of the module; None to look only
    :param verb: how a message begins
    :raises NodenetError: what is wanted makes no kubeconfig, or its token has expired already
    """
    now = time.time() if now is None else now
    before, mode, ours = _read(path, verb)
    if wanted is None:
        return Plan(path, None, _report(path, before, mode, now, False), {})
    document = _document(wanted, verb)
    renew = _renew(before, document, wanted.get("renew_before"), now)
    if not renew:
        document["users"][0]["user"]["token"] = _token(before or {})
    expires = _claims(document).get("exp")
    if expires is not None and expires <= now and renew:
        raise NodenetError(
            f"Cannot {verb}: the token for {path} expired {int(now - expires)} s ago; give one that is still good",
            seconds_left=int(expires - now),
        )
    changed = before != document or mode != MODE or not ours
    text = json.dumps(document, indent=2) + "\n"
    report = _report(path, document, MODE, now, changed)
    if changed and report is not None:
        report["age_s"] = 0
    return Plan(path, text.encode("utf-8") if changed else None, report, _diff(path, before, document, mode))


def may_go(path: str) -> bool:
    """Tell whether a kubeconfig is Multus' alone: it lies in its directory, or has its context.

    Somebody may have named the cluster's administrator's, which has to stay.
    """
    if os.path.basename(os.path.dirname(path)) == "multus.d":
        return True
    try:
        return b"multus-context" in confdir.read_regular(path)
    except OSError:
        return False


def _read(path: str, verb: str) -> tuple[dict[str, Any] | None, int, bool]:
    """Return the document that is there, its mode, and whether it belongs to us: None if there is none, {} for one that
    is no JSON."""
    try:
        data = confdir.read_regular(path)
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None, 0, True
    except OSError as fault:
        raise NodenetError(f"Cannot {verb}: the kubeconfig {path} cannot be read: {fault.strerror}") from fault
    try:
        document = json.loads(data)
    except ValueError:
        document = {}
    mode = status.st_mode & 0o7777
    return document if isinstance(document, dict) else {}, mode, status.st_uid == os.geteuid()


def _document(wanted: Mapping[str, Any], verb: str) -> dict[str, Any]:
    server = str(wanted.get("server") or "")
    fault = _server_fault(server)
    if fault:
        raise NodenetError(f"Cannot {verb}: kubeconfig.server has to be a URL like https://10.96.0.1:443: {fault}")
    user = _user(wanted, verb)
    cluster: dict[str, Any] = {"server": server}
    if wanted.get("ca"):
        pem = str(wanted["ca"]).strip() + "\n"
        if not _has_certificate(pem):
            raise NodenetError(
                f"Cannot {verb}: kubeconfig.ca holds no certificate; give the PEM text, from {_PEM[0]} to {_PEM[1]}"
            )
        cluster["certificate-authority-data"] = base64.b64encode(pem.encode("utf-8")).decode()
    elif wanted.get("ca_file"):
        cluster["certificate-authority"] = wanted["ca_file"]
    if wanted.get("validate_certs") is False:
        if len(cluster) > 1:
            raise NodenetError(
                f"Cannot {verb}: kubeconfig has a CA and validate_certs: false, which exclude each other"
            )
        cluster["insecure-skip-tls-verify"] = True
    if wanted.get("tls_server_name"):
        cluster["tls-server-name"] = wanted["tls_server_name"]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": "multus", "user": user}],
        "contexts": [{"name": "multus-context", "context": {"cluster": "local", "user": "multus"}}],
        "current-context": "multus-context",
    }


def _server_fault(server: str) -> str:
    """Return why Multus could not use the URL, "" if it can; without a password that is in it."""
    if not server.startswith(("https://", "http://")):
        return f"{server.rpartition('@')[2]} does not begin with https:// or http://"
    try:
        kubeaccess.Access(server)
    except kubeaccess.Fault as fault:
        return str(fault).replace("invalid configuration: ", "")
    return ""


def _has_certificate(pem: str) -> bool:
    """Tell whether a text has a certificate at its beginning or after comments, and none that is cut off."""
    found = 0
    rest = pem
    while _PEM[0] in rest:
        body, end, rest = rest.partition(_PEM[0])[2].partition(_PEM[1])
        try:
            data = base64.b64decode("".join(body.split()), validate=True)
        except ValueError:
            return False
        if not end or not data:
            return False
        found += 1
    return found > 0


def _user(wanted: Mapping[str, Any], verb: str) -> dict[str, Any]:
    token = str(wanted.get("token") or "").strip()
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise NodenetError(f"Cannot {verb}: the token of kubeconfig holds white space or other bytes that no token has")
    if token:
        return {"token": token}
    if wanted.get("token_file"):
        return {"tokenFile": wanted["token_file"]}
    if wanted.get("client_certificate") and wanted.get("client_key"):
        return {"client-certificate": wanted["client_certificate"], "client-key": wanted["client_key"]}
    raise NodenetError(f"Cannot {verb}: kubeconfig needs token, token_file, or client_certificate and client_key")


def _renew(before: dict[str, Any] | None, after: dict[str, Any], margin: int | None, now: float) -> bool:
    """Tell whether the given token has to take the place of the one in the file.

    A fresh token comes with every run, so the one that is there stays as long as it is good: for the same server and
    account, and with more left than the margin.
    """
    token = _token(after)
    old = _token(before or {})
    if not token or not old or not before:
        return True
    mine, theirs = _claims(after), _claims(before)
    if _without_token(before) != _without_token(after) or not theirs:
        return True
    if _account(mine) != _account(theirs) or "exp" not in theirs:
        return token != old
    if margin is None:
        if "exp" in mine and now < theirs["exp"] >= mine["exp"]:
            return False  # it would not last longer
        margin = int((theirs["exp"] - theirs.get("iat", theirs["exp"])) * RENEW_SHARE)
    return bool(theirs["exp"] - now <= margin)


def _account(claims: dict[str, Any]) -> list[Any]:
    """Return whom a token is for; one that was made anew has another uid, and old tokens are worth nothing."""
    bound = claims.get("kubernetes.io")
    account = bound.get("serviceaccount") if isinstance(bound, dict) else None
    return [*[claims.get(key) for key in ("sub", "iss", "aud")], account]


def _without_token(document: dict[str, Any]) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(document))
    try:
        copy["users"][0]["user"]["token"] = ""
    except (KeyError, IndexError, TypeError):
        pass
    return copy


def _token(document: dict[str, Any]) -> str:
    try:
        token = document["users"][0]["user"]["token"]
    except (KeyError, IndexError, TypeError):
        return ""
    return token if isinstance(token, str) else ""


def _claims(document: dict[str, Any]) -> dict[str, Any]:
    return kubeconfig.claims_of(_token(document))


def _report(path: str, document: dict[str, Any] | None, mode: int, now: float, changed: bool) -> dict[str, Any] | None:
    if document is None:
        return None
    report = {"path": path, "changed": changed, "mode": f"{mode:04o}", "server": None, "account": None}
    report.update(age_s=0, token_age_s=None, expires_in_s=None, renew=False)
    row, _facts = kubeconfig.look(path, now)
    if row is not None:
        report["age_s"] = row["age_s"]
    if not document:
        if row is not None:
            report["expires_in_s"] = row["expires_in_s"]
        return report
    try:
        report["server"] = _without_userinfo(document["clusters"][0]["cluster"]["server"])
    except (KeyError, IndexError, TypeError):
        pass
    claims = _claims(document)
    report["account"] = claims.get("sub")
    if "iat" in claims:
        report["token_age_s"] = int(now - claims["iat"])
    if "exp" in claims:
        left = claims["exp"] - now
        report["expires_in_s"] = int(left)
        report["renew"] = left <= (claims["exp"] - claims.get("iat", claims["exp"])) * RENEW_SHARE
    elif row is not None and not changed:
        report["expires_in_s"] = row["expires_in_s"]
    return report


def _without_userinfo(url: Any) -> str | None:
    """Return a URL without the name and the password in it."""
    if not isinstance(url, str):
        return None
    scheme, mark, rest = url.partition("://") if "://" in url else ("", "", url)
    authority, slash, path = rest.partition("/")
    shown = scheme + mark + authority.rpartition("@")[2] + slash + path
    return HIDDEN if "@" in shown else shown


def _diff(path: str, before: dict[str, Any] | None, after: dict[str, Any], mode: int) -> dict[str, str]:
    headers = [path, path]
    if before is not None and mode != MODE:
        headers = [f"{path} (mode {one:04o})" for one in (mode, MODE)]
    other = "(not JSON, and not shown)\n" if before == {} else ""
    return {
        "before": _hidden(before, None) if before else other,
        "after": _hidden(after, _token(before or {})),
        "before_header": headers[0],
        "after_header": headers[1],
    }


def _hidden(document: dict[str, Any], old: str | None) -> str:
    """Return the text of a kubeconfig without its secrets.

    :param old: the token that it takes the place of, None if this is the one that is there
    """
    copy = dict(document)
    token = _token(document)
    if token:
        copy = _without_token(document)
        copy["users"][0]["user"]["token"] = HIDDEN + (" (a new token)" if old and old != token else "")
    for key in _MEMBERS:
        if key in copy and not _is_plain(copy, key):
            copy[key] = HIDDEN
    return json.dumps({key: value if key in _DOCUMENT else HIDDEN for key, value in copy.items()}, indent=2) + "\n"


def _has_text(values: dict[str, Any], key: str) -> bool:
    return isinstance(values.get(key, ""), str)


def _is_plain(document: dict[str, Any], key: str) -> bool:
    """Tell whether a part of a kubeconfig has nothing but what is written here, so that it can be shown."""
    member, known = _MEMBERS[key]
    try:
        (only,) = document[key]
        found = only[member]
        server = found.get("server", "")
        return set(only) <= {"name", member} and set(found) <= known and "@" not in server and _has_text(found, "token")
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
