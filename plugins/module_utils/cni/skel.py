# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Being a CNI plugin: environment, standard input, versions, error documents (host-local spec 1)."""

from __future__ import annotations

import posix
import time

from . import gojson, goprint, goshape, paths, versions
from .errors import (
    DECODING_FAILURE,
    INTERNAL,
    INVALID_ENVIRONMENT,
    INVALID_NETNS,
    INVALID_NETWORK_CONFIG,
    IO_FAILURE,
    CniError,
    NodenetError,
    go_strerror,
)
from .names import interface_fault, valid_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

_POD_COMMANDS = ("ADD", "CHECK", "DEL")
_REQUIRED = {
    "CNI_CONTAINERID": _POD_COMMANDS,
    "CNI_NETNS": ("ADD", "CHECK"),
    "CNI_IFNAME": _POD_COMMANDS,
    "CNI_PATH": _POD_COMMANDS + ("GC", "STATUS"),
}
_MINIMUM_VERSION = {"CHECK": "0.4.0", "GC": "1.1.0", "STATUS": "1.1.0"}
_NAME = goshape.Struct("types.PluginConf", {"name": goshape.STRING})
_VERSION = goshape.Struct("", {"cniVersion": goshape.STRING})


class Call:
    """One call of a plugin: the command, who it is for, and the configuration as a tree (`gojson.parse`)."""

    def __init__(self, command: str, environ: Mapping[str, str], config: Any, name: str, cni_version: str) -> None:
        self.command = command
        self.environ = environ
        self.container_id = environ.get("CNI_CONTAINERID", "")
        self.ifname = environ.get("CNI_IFNAME", "")
        self.netns = environ.get("CNI_NETNS", "")
        self.args = environ.get("CNI_ARGS", "")
        self.config = config
        self.name = name
        self.cni_version = cni_version
        self.log: list[str] = []
        self.undo: Callable[[], None] | None = None


class Outcome:
    """What a call leaves: exit status, standard output and error, and how to take it back if it cannot be printed."""

    def __init__(self, rc: int, stdout: str = "", stderr: str = "", undo: Callable[[], None] | None = None) -> None:
        self.rc = rc
        self.stdout = stdout
        self.stderr = stderr
        self.undo = undo


def run(
    about: str,
    handlers: Mapping[str, Callable[[Call], Any]],
    environ: Mapping[str, str],
    read_stdin: Callable[[], bytes],
) -> Outcome:
    """Serve one call. *handlers* maps commands to functions; that of ADD returns the document to print."""
    command = environ.get("CNI_COMMAND", "")
    if not command:
        known = ", ".join(versions.SUPPORTED)
        return Outcome(0, "", f"{about}\nCNI protocol versions supported: {known}\n")
    call: Call | None = None
    try:
        _check_environment(command, environ)
        if command == "VERSION":
            return Outcome(0, _version_document())
        call = _read_call(command, environ, read_stdin)
        document = handlers[command](call)
        text = "" if document is None else goprint.dumps(document)
        return Outcome(0, text, _log_text(call), call.undo)
    except CniError as error:
        return Outcome(1, goprint.dumps(error.document()), _log_text(call))
    except NodenetError as error:
        return Outcome(1, goprint.dumps(CniError(INTERNAL, str(error)).document()), _log_text(call))
    except OSError as error:
        place = f" {error.filename}" if isinstance(error.filename, str) else ""
        document = CniError(IO_FAILURE, f"cannot use{place}: {go_strerror(error)}").document()
        return Outcome(1, goprint.dumps(document), _log_text(call))


def _version_document() -> str:
    return goprint.dumps({"cniVersion": versions.CURRENT, "supportedVersions": versions.SUPPORTED}, indent=0) + "\n"


def _log_text(call: Call | None) -> str:
    if call is None or not call.log:
        return ""
    stamp = time.strftime("%Y/%m/%d %H:%M:%S")
    return "".join(f"{stamp} {line}\n" for line in call.log)


def _check_environment(command: str, environ: Mapping[str, str]) -> None:
    missing = []
    for variable, commands in _REQUIRED.items():
        value = environ.get(variable, "")
        if command not in commands:
            continue
        if not value:
            missing.append(variable)
        elif variable == "CNI_CONTAINERID" and not valid_name(value):
            raise CniError(INVALID_ENVIRONMENT, "invalid characters in containerID", value)
        elif variable == "CNI_IFNAME":
            fault = interface_fault(value)
            if fault is not None:
                raise CniError(INVALID_ENVIRONMENT, *fault)
    if missing:
        raise CniError(INVALID_ENVIRONMENT, f"required env variables [{','.join(missing)}] missing")


def _read_call(command: str, environ: Mapping[str, str], read_stdin: Callable[[], bytes]) -> Call:
    try:
        config = gojson.parse(read_stdin())
        name = _NAME.decode(config, None, "").get("name") or ""
    except (gojson.SyntaxFault, goshape.TypeFault) as fault:
        raise CniError(DECODING_FAILURE, f"error unmarshall network config: {fault}") from None
    if not name:
        raise CniError(INVALID_NETWORK_CONFIG, "missing network name")
    if not valid_name(name):
        raise CniError(INVALID_NETWORK_CONFIG, "invalid characters found in network name", name)
    if command not in _MINIMUM_VERSION and command not in _POD_COMMANDS:
        raise CniError(INVALID_ENVIRONMENT, f"unknown CNI_COMMAND: {command}")
    try:
        version = _VERSION.decode(config, None, "").get("cniVersion") or versions.DEFAULT
    except goshape.TypeFault as fault:
        raise CniError(DECODING_FAILURE, f"decoding version from network config: {fault}") from None
    if command in _MINIMUM_VERSION:
        versions.require_range(version, _MINIMUM_VERSION[command], command)
    versions.require_supported(version)
    return Call(command, environ, config, name, version)


def check_netns(call: Call) -> None:
    """Raise CniError (code 8) if the call's network namespace is our own (host-local spec 5.5)."""
    if call.environ.get("CNI_NETNS_OVERRIDE", "").lower() in ("1", "true"):
        return
    try:
        given = posix.stat(call.netns)
        own = posix.stat("/proc/self/ns/net")
    except (OSError, ValueError):
        return
    if paths.same_file(given, own):
        raise CniError(INVALID_NETNS, "plugin's netns and netns from CNI_NETNS should not be the same")
