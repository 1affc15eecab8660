# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attach containers to networks as libcni does it for runtimes: chains of plugins, CHECK, DEL, GC, STATUS, VERSION."""

from __future__ import annotations

from . import gojson, goprint, goshape, resultread, versions
from .args import go_quote
from .errors import INTERNAL, INVALID_ENVIRONMENT, INVALID_NETWORK_CONFIG, CniError
from .invoke import Attachment, PluginError
from .names import interface_fault, valid_name
from .resultcache import cached_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Sequence

    from .invoke import Plugins
    from .netconf import NetworkConfig
    from .resultcache import ResultCache
    from .results import Document

_PLUGIN = goshape.Struct(
    "types.PluginConf", {"name": goshape.STRING, "type": goshape.STRING, "capabilities": goshape.Shape()}
)
_INFO = goshape.Struct("version.pluginInfo", {"supportedVersions": goshape.List(goshape.STRING)})
_VERSION_REQUEST = goprint.dumps({"cniVersion": versions.CURRENT}, indent=0).encode()


class Runtime:
    """What a container runtime does with CNI.

    :param plugins: how plugins are called
    :param cache: where results are kept; None keeps none, and then CHECK and DEL hand no result on
    :param warn: told what does not stop a command
    """

    def __init__(
        self, plugins: Plugins, cache: ResultCache | None = None, warn: Callable[[str], None] | None = None
    ) -> None:
        self.plugins = plugins
        self.cache = cache
        self.warn = warn

    def add(self, network: NetworkConfig, attachment: Attachment) -> Document:
        """Call all plugins in order, each with the result of the one before; return the result of the last.

        It has the layout of the version in which that plugin printed it. Raises CniError; then whoever called calls
        `delete`, as runtimes do. The code is that of the plugin's error document, 999 if it has none.
        """
        result: Document | None = None
        for plugin in network.plugins:
            try:
                kind = self._checked(network, plugin, attachment)
                data = configuration(plugin, network.name, network.cni_version, result, attachment.capability_args)
                output = self.plugins.call(kind, "ADD", data, attachment)
                result = resultread.read(output, network.cni_version)
            except CniError as error:
                raise _in_list(network, plugin, "add", error) from None
        if result is None:
            raise CniError(INTERNAL, "no plugin configs found")
        if self.cache is not None:
            self.cache.write(network.name, network.data, result, attachment)
        return result

    def check(self, network: NetworkConfig, attachment: Attachment) -> None:
        """Let all plugins look whether what ADD made is still there. Raises CniError of the first that misses it."""
        if not versions.at_least(network.cni_version or versions.DEFAULT, "0.4.0"):
            text = f"configuration version {go_quote(network.cni_version)} does not support the CHECK command"
            raise CniError(INTERNAL, text)
        if network.disable_check:
            return
        result = self._cached(network, attachment)
        for plugin in network.plugins:
            data = configuration(plugin, network.name, network.cni_version, result, attachment.capability_args)
            self.plugins.call(_kind(plugin), "CHECK", data, attachment)

    def delete(self, network: NetworkConfig, attachment: Attachment) -> None:
        """Let all plugins take down what ADD made, the last one first; then the cached result goes.

        Raises CniError of the first that fails; those before it are not called, and the cached result stays. A cached
        result that cannot be used is removed and not handed on (M3, spec 11.6).
        """
        result: Document | None = None
        if versions.at_least(network.cni_version or versions.DEFAULT, "0.4.0"):
            try:
                result = self._cached(network, attachment)
            except CniError as error:
                if self.warn is not None:
                    self.warn(str(error))
                self._forget(network, attachment)
        for plugin in reversed(network.plugins):
            try:
                data = configuration(plugin, network.name, network.cni_version, result, attachment.capability_args)
                self.plugins.call(_kind(plugin), "DEL", data, attachment)
            except CniError as error:
                raise _in_list(network, plugin, "delete", error) from None
        self._forget(network, attachment)

    def status(self, network: NetworkConfig) -> None:
        """Ask all plugins whether they could serve an ADD. Raises PluginError of the first that could not.

        Before version 1.1.0 there is no such question, and nobody is asked.
        """
        if not versions.at_least(network.cni_version or versions.DEFAULT, "1.1.0"):
            return
        for plugin in network.plugins:
            data = configuration(plugin, network.name, network.cni_version)
            self.plugins.call(_kind(plugin), "STATUS", data, Attachment())

    def collect(self, network: NetworkConfig, valid: Sequence[tuple[str, str]] | None) -> None:
        """GC: take down all cached attachments of the network but those of *valid* (container id, ifname).

        Then, from version 1.1.0 on, the plugins are told who is valid; None tells them nothing. Raises CniError with
        one line for each failure, after all was tried.
        """
        if network.disable_gc:
            return
        faults = []
        known = set(valid or ())
        for entry in self.cache.entries() if self.cache is not None else []:
            if entry.network != network.name or (entry.container_id, entry.ifname) in known:
                continue
            stale = Attachment(entry.container_id, entry.netns, entry.ifname, entry.args, entry.capability_args)
            try:
                self.delete(network, stale)
            except CniError as error:
                faults.append(f"failed to delete stale attachment {entry.container_id} {entry.ifname}: {error}")
        if versions.at_least(network.cni_version or versions.DEFAULT, "1.1.0"):
            more: dict[str, Any] = {}
            if valid is not None:
                listed = [{"containerID": one[0], "ifname": one[1]} for one in valid]
                more = {"cni.dev/valid-attachments": listed, "cni.dev/attachments": listed}
            for plugin in network.plugins:
                data = configuration(plugin, network.name, network.cni_version, more=more)
                try:
                    self.plugins.call(_kind(plugin), "GC", data, Attachment())
                except CniError as error:
                    faults.append(f"failed to GC plugin {_kind(plugin)}: {error}")
        if faults:
            raise CniError(INTERNAL, "\n".join(faults))

    def supported_versions(self, plugin: str) -> list[str]:
        """Return the versions of the protocol that a plugin speaks. Raises CniError."""
        # plugins of the first libraries want these variables also for VERSION
        attachment = Attachment(netns="dummy", ifname="dummy")
        try:
            output = self.plugins.call(plugin, "VERSION", _VERSION_REQUEST, attachment)
        except PluginError as error:
            if str(error) == "unknown CNI_COMMAND: VERSION":
                return [versions.DEFAULT]
            raise
        try:
            info = _INFO.decode(gojson.parse(output), None, "")
        except (gojson.SyntaxFault, goshape.TypeFault) as fault:
            raise CniError(INTERNAL, f"decoding version info: {fault}") from None
        # 0.2.0 introduced the list
        return info.get("supportedVersions") or [versions.DEFAULT, "0.2.0"]

    def validate(self, network: NetworkConfig) -> list[str]:
        """Return the capabilities of the plugins. Raises CniError that names those that are missing or too old."""
        wanted = network.cni_version or versions.DEFAULT
        faults = []
        capabilities: set[str] = set()
        for plugin in network.plugins:
            kind = _kind(plugin)
            try:
                if wanted not in self.supported_versions(kind):
                    faults.append(f"plugin {kind} does not support config version {go_quote(wanted)}")
            except CniError as error:
                faults.append(str(error))
            capabilities.update(_capabilities(plugin))
        if faults:
            raise CniError(INTERNAL, f"[{' '.join(faults)}]")
        return sorted(capabilities)

    def _checked(self, network: NetworkConfig, plugin: Any, attachment: Attachment) -> str:
        """Return the plugin's type after the checks that libcni makes before ADD, in its order."""
        kind = _kind(plugin)
        self.plugins.find(kind)
        if not attachment.container_id:
            raise CniError(INVALID_ENVIRONMENT, "missing containerID")
        if not valid_name(attachment.container_id):
            raise CniError(INVALID_ENVIRONMENT, "invalid characters in containerID", attachment.container_id)
        if not network.name:
            raise CniError(INVALID_NETWORK_CONFIG, "missing network name:")
        if not valid_name(network.name):
            raise CniError(INVALID_NETWORK_CONFIG, "invalid characters found in network name", network.name)
        if not attachment.ifname:
            raise CniError(INVALID_ENVIRONMENT, "interface name is empty")
        fault = interface_fault(attachment.ifname)
        if fault is not None:
            raise CniError(INVALID_ENVIRONMENT, *fault)
        return kind

    def _cached(self, network: NetworkConfig, attachment: Attachment) -> Document | None:
        if self.cache is None:
            return None
        entry = self.cache.find(network.name, attachment.container_id, attachment.ifname)
        if entry is None:
            return None
        return cached_result(entry, network.cni_version or versions.DEFAULT)

    def _forget(self, network: NetworkConfig, attachment: Attachment) -> None:
        if self.cache is not None:
            self.cache.remove(network.name, attachment.container_id, attachment.ifname)


def configuration(
    plugin: Any,
    name: str,
    cni_version: str,
    result: Document | None = None,
    capability_args: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> bytes:
    """Return what a plugin gets on its standard input: its configuration with what a runtime adds, keys sorted.

    Of repeated keys the last one counts. Integers keep all their digits (M11).
    """
    values = gojson.plain(plugin)
    values.update(more or {}, name=name, cniVersion=cni_version)
    if result is not None:
        values["prevResult"] = result
    given = capability_args or {}
    wanted = {key: given[key] for key in _capabilities(plugin) if key in given}
    if wanted:
        values["runtimeConfig"] = wanted
    return goprint.dumps(goprint.in_order(values), indent=0).encode()


def _kind(plugin: Any) -> str:
    return _PLUGIN.decode(plugin, None, "").get("type") or ""


def _capabilities(plugin: Any) -> list[str]:
    """Return the capabilities that a plugin's configuration switches on."""
    listed = gojson.field(plugin, "capabilities")
    return [key for key, value in dict(listed).items() if value is True] if isinstance(listed, tuple) else []


def _in_list(network: NetworkConfig, plugin: Any, command: str, error: CniError) -> CniError:
    """Return the error of a plugin of a list, which names the plugin; its code stays (M11)."""
    if not network.is_list:
        return error
    values = _PLUGIN.decode(plugin, None, "")
    named = f" name={go_quote(values['name'])}" if values.get("name") else ""
    text = f"plugin type={go_quote(values.get('type') or '')}{named} failed ({command}): {error}"
    if isinstance(error, PluginError):
        return PluginError(error.plugin, error.code or INTERNAL, text, reason=error.reason)
    return PluginError(values.get("type") or "", error.code, text)
