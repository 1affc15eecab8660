# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubeconfig files and the configuration of a pod: which API server, whom to trust, who we are (multus spec 3)."""

from __future__ import annotations

import posix

from ..cni import gojson, wholefile
from ..cni.errors import go_strerror
from .kubeaccess import Access, Fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_EMPTY = "no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
_LARGEST_FILE = 1 << 24
_CLUSTER_TEXTS = ("server", "certificate-authority", "certificate-authority-data", "tls-server-name", "proxy-url")
_USER_TEXTS = (
    "token", "tokenFile", "client-certificate", "client-certificate-data", "client-key", "client-key-data",
    "username", "password", "as", "as-uid",
)  # fmt: skip


def load(path: str, environ: Mapping[str, str]) -> Access | None:
    """Return the access that *path*, else the environment of a pod, describes; None if there is neither.

    :param path: a kubeconfig, of which only the current context counts; empty: none
    :raises Fault: with the text of ``GetK8sClient``
    """
    if path:
        try:
            access = _from_file(path)
        except Fault as fault:
            raise Fault(
                "GetK8sClient: failed to get context for the kubeconfig %s: %s" % (path, fault), path=path
            ) from None
    elif environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"):
        try:
            access = _from_pod(environ)
        except Fault as fault:
            raise Fault("GetK8sClient: failed to get context for in-cluster kube config: %s" % fault) from None
    else:
        return None
    access.environ = environ
    return access


def _from_pod(environ: Mapping[str, str]) -> Access:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    token = _read(_SERVICE_ACCOUNT + "/token").strip()
    access = Access("https://%s:%s" % ("[%s]" % host if ":" in host else host, port))
    access.token = _valid_header(token, "the service account's token")
    try:
        access.ca = _read(_SERVICE_ACCOUNT + "/ca.crt")
    except Fault:  # as client-go does: those of the system
        pass
    return access


def _from_file(path: str) -> Access:
    try:
        posix.stat(path)
    except (OSError, ValueError) as error:
        raise Fault("stat %s: %s" % (path, go_strerror(error))) from None
    try:
        document = _parse(_read(path))
        return _current(document, path)
    except _FormatFault as fault:
        raise Fault('error loading config file "%s": %s' % (path, fault)) from None


class _FormatFault(Exception):
    """The file's content is not that of a kubeconfig."""


def _parse(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return gojson.plain(gojson.parse(text))
        except gojson.SyntaxFault as fault:
            json_fault = str(fault)
        # YAML has objects of this form as well, unquoted keys and comments among them
        return _parse_yaml(text, json_fault)
    return _parse_yaml(text, "") if text.strip() else None


def _parse_yaml(text: str, json_fault: str) -> Any:
    from . import vendored

    try:
        yaml = vendored.load("yaml")
    except ImportError:
        if json_fault:
            raise _FormatFault("json: %s" % json_fault) from None
        raise _FormatFault(
            "it is YAML, and PyYAML is not beside this plugin; install the plugin again from a controller that has "
            "PyYAML, or write the file as JSON"
        ) from None
    try:
        return yaml.load(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = "line %d: " % (mark.line + 1) if mark is not None else ""
        # what follows in quotes is of the file, and may be part of a secret
        raise _FormatFault("yaml: %s%s" % (line, str(error.problem).partition("'")[0].strip())) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise _FormatFault("yaml: it cannot be read") from None


def _read(path: str) -> str:
    try:
        data = wholefile.read(path, _LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        verb = "read" if isinstance(error, IsADirectoryError) else "open"
        raise Fault("%s %s: %s" % (verb, path, go_strerror(error))) from None
    if len(data) > _LARGEST_FILE:
        raise Fault("read %s: the file is too large" % path)
    return data.decode("utf-8", "replace")


# --- the current context of a file


def _current(document: Any, path: str) -> Access:
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise _FormatFault("it is no object")
    clusters, users, contexts = (_named(document, *kind) for kind in _KINDS)
    current = _text(document, "current-context", "")
    context = contexts.get(current)
    if not current:
        raise Fault("invalid configuration: " + _EMPTY)
    if context is None:
        raise Fault(
            "invalid configuration: [context was not found for specified context: %s, cluster has no server defined]"
            % current
        )
    cluster = clusters.get(_text(context, "cluster", "contexts"))
    if not cluster:
        raise Fault("invalid configuration: " + _EMPTY)
    user = users.get(_text(context, "user", "contexts")) or {}
    directory = path.rpartition("/")[0]
    return _access(cluster, user, directory, _text(context, "cluster", ""), _text(context, "user", ""))


_KINDS = (("clusters", "cluster"), ("users", "user"), ("contexts", "context"))


def _named(document: dict[str, Any], plural: str, singular: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    rows = document.get(plural) or []
    if not isinstance(rows, list):
        raise _FormatFault("%s must be a list" % plural)
    for row in rows:
        content = row.get(singular) if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(content, (dict, type(None))):
            raise _FormatFault("%s must be a list of objects with a name and a %s" % (plural, singular))
        found.setdefault(_text(row, "name", plural), content or {})
    return found


def _text(of: dict[str, Any], key: str, where: str) -> str:
    value = of.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _FormatFault("%s%s must be a string; put it in quotes" % (where and where + ": ", key))
    return value


def _access(cluster: dict[str, Any], user: dict[str, Any], directory: str, cluster_name: str, user_name: str) -> Access:
    options = {key: _text(cluster, key, "cluster") for key in _CLUSTER_TEXTS}
    own = {key: _text(user, key, "user") for key in _USER_TEXTS}
    if not options["server"]:
        raise Fault('invalid configuration: no server found for cluster "%s"' % cluster_name)
    insecure = cluster.get("insecure-skip-tls-verify") or False
    if not isinstance(insecure, bool):
        raise _FormatFault("cluster: insecure-skip-tls-verify must be true or false")
    has_tls = (
        insecure
        or any(options[key] or own.get(key) for key in ("certificate-authority", "certificate-authority-data"))
        or any(own[key] for key in ("client-certificate", "client-certificate-data"))
    )
    access = Access(options["server"], has_tls)
    access.proxy = options["proxy-url"] or None
    access.impersonate = _impersonation(user, own)
    faults: list[str] = []
    ca = _data_or_file(options, "certificate-authority", "certificate-authority", cluster_name, directory, faults)
    cert = _data_or_file(own, "client-certificate", "client-cert", user_name, directory, faults)
    key = _data_or_file(own, "client-key", "client-key", user_name, directory, faults)
    if cert and not own["client-key"] and not own["client-key-data"]:
        faults.append(
            "client-key-data or client-key must be specified for %s to use the clientCert authentication method."
            % user_name
        )
    faults += _user_faults(own, user, user_name)
    if faults:
        raise Fault("invalid configuration: " + (faults[0] if len(faults) == 1 else "[%s]" % ", ".join(faults)))
    if not access.is_tls:  # nobody's secret goes over the wire in the clear
        return access
    if insecure and ca:
        raise Fault("specifying a root certificates file with the insecure flag is not allowed")
    access.insecure = insecure
    access.ca, access.cert, access.key = ca, cert, key if cert else ""
    access.server_name = options["tls-server-name"] or access.host
    access.token = own["token"]
    if not access.token and own["tokenFile"]:
        access.token = _read(_beside(directory, own["tokenFile"])).strip()
    _valid_header(access.token, "the token of user %s" % user_name)
    access.basic = (own["username"], own["password"])
    access.exec = user.get("exec") if not access.token else None
    access.exec_dir = directory
    return access


def _valid_header(value: str, what: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise Fault("invalid configuration: %s is none, it has characters that no token has" % what)
    return value


def _beside(directory: str, path: str) -> str:
    return path if path.startswith("/") or not directory else directory + "/" + path


def _data_or_file(options: dict[str, str], key: str, word: str, owner: str, directory: str, faults: list[str]) -> str:
    data, path = options[key + "-data"], options[key]
    if data:
        return decode_base64(data, key + "-data", owner)
    if not path:
        return ""
    path = _beside(directory, path)
    try:
        return _read(path)
    except Fault as fault:
        faults.append("unable to read %s %s for %s due to %s" % (word, path, owner, fault))
        return ""


def decode_base64(data: str, key: str, owner: str) -> str:
    """Return the PEM text in a member of a kubeconfig. Raises Fault."""
    import binascii

    try:
        return binascii.a2b_base64(data).decode("ascii")
    except ValueError:
        raise Fault("invalid configuration: %s of %s is not base64 of a PEM text" % (key, owner)) from None


def _user_faults(own: dict[str, str], user: dict[str, Any], name: str) -> list[str]:
    faults = []
    methods = []
    if own["token"] or own["tokenFile"]:
        methods.append("token")
    if own["username"] or own["password"]:
        methods.append("basicAuth")
    if len(methods) > 1:
        faults.append(
            "more than one authentication method found for %s; found [%s], only one is allowed"
            % (name, " ".join(methods))
        )
    if user.get("auth-provider"):
        faults.append("no Auth Provider found for the auth-provider of %s; use exec" % name)
    plugin = user.get("exec")
    if plugin is None:
        return faults
    if not isinstance(plugin, dict):
        raise _FormatFault("user: exec must be an object")
    for key, word in (("command", "command"), ("apiVersion", "apiVersion"), ("interactiveMode", "interactiveMode")):
        if not _text(plugin, key, "exec"):
            faults.append("%s must be specified for %s to use exec authentication plugin" % (word, name))
    return faults


def _impersonation(user: dict[str, Any], own: dict[str, str]) -> list[tuple[str, str]]:
    headers = [("Impersonate-User", own["as"])] if own["as"] else []
    if own["as-uid"]:
        headers.append(("Impersonate-Uid", own["as-uid"]))
    groups = user.get("as-groups") or []
    extra = user.get("as-user-extra") or {}
    if not isinstance(groups, list) or not isinstance(extra, dict):
        raise _FormatFault("user: as-groups must be a list, as-user-extra an object of lists")
    headers += [("Impersonate-Group", group) for group in groups]
    for key, values in extra.items():
        headers += [("Impersonate-Extra-" + str(key), value) for value in (values if isinstance(values, list) else [])]
    if headers and not own["as"]:
        raise Fault("requesting uid, groups or user-extra without impersonating a user")
    for _name, value in headers:
        if not isinstance(value, str):
            raise _FormatFault("user: as-groups and as-user-extra must hold strings")
        _valid_header(value, "whom to impersonate")
    return headers
