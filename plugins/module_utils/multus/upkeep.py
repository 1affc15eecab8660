# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CHECK, STATUS and GC: what does not change a pod's networks (multus spec 12)."""

from __future__ import annotations

from ..cni import gojson
from ..cni.errors import INTERNAL, CniError
from ..cni.invoke import NOT_FOUND, PluginError
from .attachments import interface_name
from .session import Session, call_failed, failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..cni.skel import Call
    from .delegate import Delegate
    from .journal import Journal


def check(call: Call, journal: Journal) -> None:
    """Let the configured delegates look whether what ADD made is still there; the first fault counts."""
    session = Session.open(call, journal)
    session.read_pod_args()
    for index, delegate in enumerate(session.config.delegates):
        if journal.wants("verbose"):
            pod = session.pod
            interface = interface_name(index, delegate, call.ifname)
            text = delegate.data.decode("utf-8", "surrogateescape")
            journal.verbose(f"Check: {pod.namespace}:{pod.name}:{delegate.name}({delegate.network}):{interface} {text}")
        try:
            session.runtime.check(delegate.load(), session.attachment(index, delegate))
        except CniError as error:
            raise failure(call_failed("Check", delegate, error), [error]) from None


def status(call: Call, journal: Journal) -> None:
    """Ask the first delegate whether it could serve an ADD; what it answers is handed on as it is."""
    with Session.open(call, journal, "Multus: error loading netconf: ") as session:
        delegate = _first_networks(session)[0]
        try:
            session.runtime.status(delegate.load())
        except CniError as error:
            if isinstance(error, PluginError) and error.reason != NOT_FOUND and error.code:
                raise
            where = "error in STATUS command" if delegate.is_list else "error in getting result from StatusNetworkList"
            raise CniError(INTERNAL, f"{where}: {error}") from None


def collect_garbage(call: Call, journal: Journal) -> None:
    """Tell all delegates which attachments are valid: those of the containers that the runtime lists (M12)."""
    with Session.open(call, journal, "Multus: error loading netconf: ") as session:
        delegates = _first_networks(session)
        listed = _valid_attachments(call)
        if listed is None:
            journal.note("Multus: GC without a list of valid attachments: nothing is collected")
            return
        from . import collecting

        collecting.collect(session, delegates, listed)


def _valid_attachments(call: Call) -> list[tuple[str, str]] | None:
    for key in ("cni.dev/valid-attachments", "cni.dev/attachments"):
        listed = gojson.field(call.config, key)
        if isinstance(listed, list):
            pairs = [(gojson.field(one, "containerID"), gojson.field(one, "ifname")) for one in listed]
            return [(str(one[0]), str(one[1] or "")) for one in pairs if one[0]]
    return None


def _first_networks(session: Session) -> list[Delegate]:
    """Return the configured delegates, after the default network is ready."""
    client = session.client()
    session.wait_until_ready("Multus: ")
    delegates = list(session.config.delegates)
    if session.config.cluster_network:
        from . import deciding

        try:
            if client is None:
                raise CniError(INTERNAL, "GetDefaultNetworks: must have either Kubernetes config or delegates")
            delegates = deciding.resolver(session, client, {}).cluster_network()
        except CniError as error:
            raise CniError(INTERNAL, f"Multus: failed to get clusterNetwork: {error}") from None
    return delegates
