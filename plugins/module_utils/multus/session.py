# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every command needs: configuration, pod, log, and the runtime that runs the delegates (multus spec 4, 7.5)."""

from __future__ import annotations

import posix
import time

from ..cni import chain, gojson, resultcache
from ..cni.errors import INTERNAL, PLUGIN_NOT_AVAILABLE, TRY_AGAIN_LATER, CniError, NodenetError
from ..cni.invoke import Plugins
from . import podargs
from .attachments import attachment, interface_name
from .config import load_config
from .delegate import ListFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ..cni.invoke import Attachment, Called
    from ..cni.resultcache import Entry
    from ..cni.skel import Call
    from .config import Config
    from .delegate import Delegate
    from .devices import Devices
    from .journal import Journal
    from .kube import Client

READINESS_WAIT_S = 45.0
_READINESS_PAUSE_S = 1.0
_KEPT_CODES = (TRY_AGAIN_LATER, PLUGIN_NOT_AVAILABLE)


class Delegates(Plugins):
    """The plugins of delegates; ``started`` tells whether one was called since it was set to false."""

    started = False

    def call(self, plugin: str, command: str, config: bytes, attachment: Attachment) -> bytes:
        self.find(plugin)
        self.started = True
        return super().call(plugin, command, config, attachment)


class Session:
    """One call of Multus. Use it in a with block."""

    def __init__(self, call: Call, journal: Journal, config: Config) -> None:
        self.call = call
        self.journal = journal
        self.config = config
        self.pod = podargs.parse("")
        self.devices: Devices | None = None
        self._client: Client | None = None
        self.plugins = Delegates([config.bin_dir, *call.environ["CNI_PATH"].split(":")], call.environ, told=self._told)
        self.results = resultcache.ResultCache(config.cni_dir)
        self.runtime = chain.Runtime(self.plugins, self.results, journal.note)

    @classmethod
    def open(cls, call: Call, journal: Journal, prefix: str = "") -> Session:
        """Load the configuration. Raises CniError whose text begins with *prefix*."""
        try:
            config = load_config(call.config)
        except CniError as error:
            raise CniError(error.code, prefix + str(error)) from None
        journal.configure(config)
        return cls(call, journal, config)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._client is not None:
            self._client.close()

    def read_pod_args(self) -> None:
        """Read CNI_ARGS into ``pod``. Raises CniError (code 999)."""
        self.pod = podargs.parse(self.call.args)

    def client(self, most_s: float = 3600.0) -> Client | None:
        """Return the client of the Kubernetes API, None when the node has none. Raises CniError (code 999).

        :param most_s: seconds for all its calls, if the configuration does not allow less
        """
        environ = self.call.environ
        if not self.config.kubeconfig and not (
            environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT")
        ):
            return None
        from . import kube

        try:
            self._client = kube.Client.from_config(self.config, min(self.config.api_timeout_s, most_s), environ)
        except NodenetError as error:
            raise CniError(INTERNAL, f"Multus: error getting k8s client: {error}") from None
        return self._client

    def wait_until_ready(self, prefix: str) -> None:
        """Wait for the indicator file of the default network. Raises CniError (code 999)."""
        path = self.config.readiness_indicator_file
        if not path:
            return
        deadline = time.monotonic() + READINESS_WAIT_S
        while True:
            try:
                posix.stat(path)
                return
            except (OSError, ValueError):
                pass
            if time.monotonic() + _READINESS_PAUSE_S > deadline:
                raise CniError(
                    INTERNAL,
                    f"{prefix}have you checked that your default network is ready? still waiting for "
                    f"readinessindicatorfile @ {path}. pollimmediate error: timed out waiting for the condition",
                )
            time.sleep(_READINESS_PAUSE_S)

    def attachment(self, index: int, delegate: Delegate, adding: bool = False) -> Attachment:
        """Return what the delegate at *index* of all is called with."""
        call = self.call
        interface = interface_name(index, delegate, call.ifname)
        return attachment(self.config, delegate, interface, self.pod, call.container_id, call.netns, adding)

    def attached(self) -> list[Entry]:
        """Return the cached results of delegates.

        A runtime that keeps its own in the same directory has one of Multus itself there, and a DEL of that would lead
        back here.
        """
        return [one for one in self.results.entries() if not self._is_own(one)]

    def shares_results(self) -> bool:
        """Tell whether the runtime keeps cached results in the same directory, also those of other networks."""
        directory = self.config.cni_dir.rstrip("/")
        return directory == resultcache.CACHE_DIR or any(self._is_own(one) for one in self.results.entries())

    def _is_own(self, entry: Entry) -> bool:
        if entry.network != self.call.name:
            return False
        try:
            tree = gojson.parse(entry.config)
        except gojson.SyntaxFault:
            return False
        listed = gojson.field(tree, "plugins")
        own = gojson.field(self.call.config, "type")
        return any(gojson.field(one, "type") == own for one in (listed if isinstance(listed, list) else [tree]))

    def expected(self, pod: dict[str, Any]) -> str:
        """Return why *pod* is not the one that the call is for, "" if it is; static pods have a UID of their own."""
        metadata = pod.get("metadata") or {}
        uid = metadata.get("uid") or ""
        source = (metadata.get("annotations") or {}).get("kubernetes.io/config.source")
        if self.pod.uid in ("", uid) or source not in (None, "api"):
            return ""
        return f'expected pod UID "{self.pod.uid}" but got "{uid}" from Kube API'

    def _told(self, called: Called) -> None:
        if called.error is None and called.log:
            self.journal.tell(called.log.decode("utf-8", "surrogateescape"))


def failure(text: str, causes: Sequence[CniError]) -> CniError:
    """Return the error of a call; what a plugin says of trying again, or of not being available, is kept (M11)."""
    code = next((one.code for one in causes if one.code in _KEPT_CODES), INTERNAL)
    return CniError(code, text)


def call_failed(verb: str, delegate: Delegate, error: CniError) -> str:
    """Return what is said of a delegate whose DEL or CHECK failed; *verb* as in Multus' function names: Del, Check."""
    network = f"{verb}Network"
    if not delegate.is_list:
        where = f'Delegate{verb}: error invoking Delegate{verb} - "{delegate.kind}"'
        return f"{where}: error in getting result from {network}: {error}"
    if isinstance(error, ListFault):
        text = f"error converting the raw bytes into a conflist: {error}"
    else:
        text = f"error in getting result from {network}List: {error}"
    return f'Delegate{verb}: error invoking Conflist{verb} - "{delegate.network}": conflist{verb}: {text}'
