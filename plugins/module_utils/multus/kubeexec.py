# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials from the plugin that a kubeconfig names under ``exec`` (client.authentication.k8s.io, multus spec 3)."""

from __future__ import annotations

import posix
import time

from ..cni import gojson, goprint
from .kubedial import Overdue, Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .kubeaccess import Access

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


def obtain(access: Access, deadline: float) -> None:
    """Run the plugin and put what it tells into *access*; its output is shown to nobody.

    :raises Unusable: with why there are none. :raises Overdue: the plugin was killed.
    """
    plugin = access.exec or {}
    version = plugin["apiVersion"]
    if version not in _VERSIONS:
        raise _fault('exec plugin: invalid apiVersion "%s"' % version)
    if plugin["interactiveMode"] == "Always":
        raise _fault("exec plugin cannot support interactive mode: standard input is unavailable")
    command = _command(plugin["command"], access)
    arguments = plugin.get("args") or []
    variables = plugin.get("env") or []
    if not _are_texts(arguments) or not isinstance(variables, list):
        raise _fault("exec plugin: args must be a list of strings, env a list of names and values")
    environ = dict(access.environ)
    for variable in variables:
        if not isinstance(variable, dict) or not _are_texts([variable.get("name"), variable.get("value")]):
            raise _fault("exec plugin: env must be a list of names and values")
        environ[variable["name"]] = variable["value"]
    environ["KUBERNETES_EXEC_INFO"] = goprint.dumps(_info(access, plugin, version), indent=0)
    _take(access, _run(command, arguments, environ, deadline), version)
    access.exec = None


def _fault(reason: str) -> Unusable:
    return Unusable("getting credentials: " + reason)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _command(command: str, access: Access) -> str:
    """Return the path of a command: with a slash in it, it is relative to the kubeconfig, else looked for in PATH."""
    if "/" in command:
        relative = not command.startswith("/") and access.exec_dir
        return access.exec_dir + "/" + command if relative else command
    for directory in access.environ.get("PATH", "").split(":"):
        path = directory + "/" + command
        if directory.startswith("/") and posix.access(path, posix.X_OK):
            return path
    raise _fault("exec: executable %s not found in PATH of this plugin" % command)


def _info(access: Access, plugin: dict[str, Any], version: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        import binascii

        cluster: dict[str, Any] = {"server": access.server}
        if access.ca:
            data = binascii.b2a_base64(access.ca.encode("utf-8", "replace"), newline=False)
            cluster["certificate-authority-data"] = data.decode()
        if access.server_name != access.host:
            cluster["tls-server-name"] = access.server_name
        if access.insecure:
            cluster["insecure-skip-tls-verify"] = True
        spec["cluster"] = cluster
    return {"kind": "ExecCredential", "apiVersion": version, "spec": spec}


def _run(command: str, arguments: list[str], environ: dict[str, str], deadline: float) -> bytes:
    import subprocess  # such a plugin takes many times longer than this import

    try:
        process = subprocess.Popen(
            [command, *arguments],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # it may speak of secrets
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise _fault("exec: executable %s: %s" % (command, getattr(error, "strerror", "") or error)) from None
    try:
        output = process.communicate(timeout=max(0.0, deadline - time.monotonic()))[0]
    except subprocess.TimeoutExpired:
        raise Overdue from None
    finally:
        if process.returncode is None:
            try:
                posix.kill(-process.pid, 9)
            except OSError:
                pass
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if process.returncode:
        raise _fault(
            "exec: executable %s failed with exit code %d; run it by hand to see why" % (command, process.returncode)
        )
    return bytes(output)


def _take(access: Access, output: bytes, version: str) -> None:
    try:
        answer = gojson.plain(gojson.parse(output))
    except gojson.SyntaxFault:
        answer = None
    status = answer.get("status") if isinstance(answer, dict) else None
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential" or not isinstance(status, dict):
        raise _fault("exec plugin: the output is no ExecCredential with a status")
    if answer.get("apiVersion") != version:
        raise _fault("exec plugin is configured to use API version %s, plugin returned another" % version)
    token, cert, key = (status.get(name) or "" for name in ("token", "clientCertificateData", "clientKeyData"))
    if not _are_texts([token, cert, key]) or not token.isascii() or not token.isprintable():
        raise _fault("exec plugin: the credentials are not what they should be")
    if bool(cert) != bool(key):
        raise _fault("exec plugin returned only certificate or key, not both")
    if not token and not cert:
        raise _fault("exec plugin didn't return a token or cert/key pair")
    access.token = token
    if cert:
        access.cert, access.key = cert, key
        access.forget_certificate()
