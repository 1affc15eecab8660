# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Call plugins: find the executable, give it its environment, read what it answers (multus spec 7.5 to 7.7)."""

from __future__ import annotations

import _signal
import posix
import time
from _stat import S_ISREG

from . import gojson, goshape, spawn
from .args import go_quote
from .errors import INTERNAL, CniError, go_strerror

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Sequence

_ERROR = goshape.Struct("types.Error", {"code": goshape.INTEGER, "msg": goshape.STRING, "details": goshape.STRING})
FAILED, OVERDUE, STOPPED, NOT_FOUND = "failed", "overdue", "stopped", "not found"


class PluginError(CniError):
    """A plugin could not be called or failed. ``msg`` is worded as libcni words it; ``plugin``: its type.

    ``code``: that of the plugin's error document, 0 if it printed none. ``reason``: one of FAILED, OVERDUE, STOPPED and
    NOT_FOUND.
    """

    def __init__(self, plugin: str, code: int, msg: str, details: str = "", reason: str = FAILED) -> None:
        super().__init__(code, msg, details)
        self.plugin = plugin
        self.reason = reason


class Attachment:
    """What a runtime says of one interface of one container.

    ``args`` are the pairs of CNI_ARGS, ``capability_args`` what plugins with these capabilities get as runtimeConfig,
    as plain values.
    """

    __slots__ = ("container_id", "netns", "ifname", "args", "capability_args")

    def __init__(
        self,
        container_id: str = "",
        netns: str = "",
        ifname: str = "",
        args: Sequence[tuple[str, str]] = (),
        capability_args: Mapping[str, Any] | None = None,
    ) -> None:
        self.container_id = container_id
        self.netns = netns
        self.ifname = ifname
        self.args = list(args)
        self.capability_args = dict(capability_args or {})


class Called:
    """One call that was made: for whom it may concern (`Plugins.told`). ``seconds`` it took, ``output``: standard
    output, ``log``: standard error, ``error``: None if it succeeded."""

    __slots__ = ("command", "plugin", "path", "seconds", "output", "log", "error")

    def __init__(
        self, command: str, plugin: str, path: str, seconds: float, output: bytes, log: bytes, error: CniError | None
    ) -> None:
        self.command = command
        self.plugin = plugin
        self.path = path
        self.seconds = seconds
        self.output = output
        self.log = log
        self.error = error


class Plugins:
    """The plugins of a node and how they are called.

    :param path: directories in which they lie, the first hit counts
    :param environ: what they find in their environment besides the variables of the protocol
    :param time_limit: seconds for each call, None for no limit, as libcni
    :param stop: asked while a plugin runs; once it returns true the plugin is killed
    :param alone: kill what a plugin leaves running; else a plugin may start servers, as with libcni
    :param told: called after each call
    """

    def __init__(
        self,
        path: Sequence[str],
        environ: Mapping[str, str],
        time_limit: float | None = None,
        stop: Callable[[], bool] | None = None,
        alone: bool = False,
        told: Callable[[Called], None] | None = None,
    ) -> None:
        self.path = list(path)
        self.environ = environ
        self.time_limit = time_limit
        self.stop = stop
        self.alone = alone
        self.told = told

    def find(self, plugin: str) -> str:
        """Return the path of a plugin's executable. Raises PluginError (code 999)."""
        return find(plugin, self.path)

    def call(self, plugin: str, command: str, config: bytes, attachment: Attachment) -> bytes:
        """Return what a plugin prints. Raises PluginError when it fails, cannot be started or takes too long."""
        path = self.find(plugin)
        environ = dict(self.environ)
        environ.update(_protocol_variables(command, attachment, self.path))
        started = time.monotonic()
        output = log = b""
        error: CniError | None = None
        try:
            ended = spawn.run(path, environ, config, self.time_limit, self.stop, self.alone)
            output, log = ended.stdout, ended.stderr
            error = _failure(plugin, ended, self.time_limit)
        except OSError as fault:
            text = f"netplugin failed with no error message: fork/exec {path}: {go_strerror(fault)}"
            error = PluginError(plugin, 0, text)
        if self.told is not None:
            self.told(Called(command, plugin, path, time.monotonic() - started, output, log, error))
        if error is not None:
            raise error
        return output


def find(plugin: str, path: Sequence[str]) -> str:
    """Return the first regular file of that name in the directories of *path*. Raises PluginError (code 999)."""
    if not plugin:
        raise PluginError(plugin, INTERNAL, "no plugin name provided", reason=NOT_FOUND)
    if "/" in plugin or "\0" in plugin:
        raise PluginError(plugin, INTERNAL, f"invalid plugin name: {plugin}", reason=NOT_FOUND)
    if not path:
        raise PluginError(plugin, INTERNAL, "no paths provided", reason=NOT_FOUND)
    for directory in path:
        candidate = f"{directory.rstrip('/')}/{plugin}" if directory else plugin
        try:
            if S_ISREG(posix.stat(candidate).st_mode):
                return candidate
        except (OSError, ValueError):
            continue
    text = f"failed to find plugin {go_quote(plugin)} in path [{' '.join(path)}]"
    raise PluginError(plugin, INTERNAL, text, reason=NOT_FOUND)


def _protocol_variables(command: str, attachment: Attachment, path: Sequence[str]) -> dict[str, str]:
    return {
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": attachment.container_id,
        "CNI_NETNS": attachment.netns,
        "CNI_ARGS": ";".join(f"{key}={value}" for key, value in attachment.args),
        "CNI_IFNAME": attachment.ifname,
        "CNI_PATH": ":".join(path),
    }


def _failure(plugin: str, ended: spawn.Ended, time_limit: float | None) -> PluginError | None:
    if ended.overdue:
        text = f"no answer within {time_limit:g} s; it was killed with all that it had started"
        return PluginError(plugin, 0, text, reason=OVERDUE)
    if ended.stopped:
        return PluginError(plugin, 0, "it was killed, as the call was to end", reason=STOPPED)
    if ended.status == 0:
        return None
    if not ended.stdout:
        if ended.stderr:
            return PluginError(plugin, 0, f"netplugin failed: {go_quote(_text(ended.stderr))}")
        return PluginError(plugin, 0, f"netplugin failed with no error message: {_how(ended.status)}")
    try:
        document = _ERROR.decode(gojson.parse(ended.stdout), None, "")
    except (gojson.SyntaxFault, goshape.TypeFault) as fault:
        said = go_quote(_text(ended.stdout))
        return PluginError(plugin, 0, f"netplugin failed but error parsing its diagnostic message {said}: {fault}")
    return PluginError(plugin, document.get("code", 0), document.get("msg", ""), document.get("details", ""))


def _how(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    return f"signal: {(_signal.strsignal(-status) or f'signal {-status}').lower()}"


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
