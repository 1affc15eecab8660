# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ADD: decide what the pod gets, attach it, tell the API (multus spec 4, 7, 10)."""

from __future__ import annotations

from ..cni import results, skel
from ..cni.errors import INTERNAL, TRY_AGAIN_LATER, CniError, NodenetError
from . import cache, ifnames, request, running
from .attachments import interface_names
from .session import Session, failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..cni.results import Document
    from ..cni.skel import Call
    from .delegate import Delegate
    from .journal import Journal
    from .kube import Client


_OTHER_LIMIT_S = 5.0


def add(call: Call, journal: Journal) -> Document:
    """Attach the pod to its networks and return the result of the first."""
    skel.check_netns(call)  # before anything is done (M1, vector netns-own)
    with Session.open(call, journal, "Multus: error loading netconf: ") as session:
        return _add(session)


def _add(session: Session) -> Document:
    call = session.call
    client = session.client()
    session.read_pod_args()
    prefix = f"Multus: [{session.pod}]: "
    session.wait_until_ready(prefix)
    pod: dict[str, Any] = {}
    if client is not None:
        found = _find_pod(session, client, prefix)
        if found is None:
            return _placeholder(session)
        pod = found
    delegates = _decide(session, client, pod, prefix)
    names = interface_names(delegates, call.ifname)
    try:
        for fault in ifnames.name_faults(delegates, names):
            raise fault
        ifnames.check_netns(call.netns, delegates, names)
    except ifnames.NameFault as fault:
        raise _not_added(session, delegates[fault.index], fault) from None
    lock = _save(session, delegates, prefix)
    try:
        adding = _Adding(session, delegates, names, prefix, lock)
        printed = adding.run(client, pod)
    finally:
        running.end(lock)
    if client is not None:
        adding.tell_people(client, pod)
    return printed


def _save(session: Session, delegates: list[Delegate], prefix: str) -> int:
    """Write the delegates cache; return the descriptor of its lock, which is taken before anybody can see the file."""
    directory, container_id = session.config.cni_dir, session.call.container_id
    path = cache.path_of(directory, container_id)
    other = running.alone(path, _OTHER_LIMIT_S)
    if other is None and not running.is_overdue(path):
        raise CniError(TRY_AGAIN_LATER, f"{prefix}another ADD of this container, or a plugin of it, still runs")
    locks: list[int] = []
    try:
        cache.write(directory, container_id, delegates, lambda staged: locks.append(running.begin(staged)))
    except CniError as error:
        for lock in locks:
            running.end(lock)
        raise CniError(INTERNAL, f"{prefix}error saving the delegates: {error}") from None
    finally:
        if other is not None:
            running.end(other)
    return locks[0]


def _find_pod(session: Session, client: Client, prefix: str) -> dict[str, Any] | None:
    from . import kube

    try:
        pod = client.pod(session.pod.namespace, session.pod.name)
    except kube.NotFound:
        return None
    except NodenetError as error:
        raise CniError(INTERNAL, f"{prefix}error waiting for pod: {error}") from None
    fault = session.expected(pod)
    if fault:
        raise CniError(INTERNAL, prefix + fault)
    return pod


def _placeholder(session: Session) -> Document:
    """Return what Multus answers for a pod that has vanished: nothing was attached (multus spec 4.4)."""
    document: Document = {"cniVersion": session.config.cni_version} if session.config.cni_version else {}
    document["interfaces"] = [{"name": session.call.ifname, "sandbox": session.call.netns}]
    document["ips"] = [{"address": "0.0.0.0/0", "gateway": "0.0.0.0"}]
    return document


def _decide(session: Session, client: Client | None, pod: dict[str, Any], prefix: str) -> list[Delegate]:
    config = session.config
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    asks = annotations.get(request.NETWORKS) or request.DEFAULT_NETWORK in annotations
    if not asks and not config.cluster_network and not config.auxiliary_chain:
        return list(config.delegates)  # what most pods get needs none of what decides
    from . import deciding

    try:
        return deciding.delegates(session, client, pod, prefix)
    except CniError as error:
        if client is not None:
            from . import resolve

            missing = resolve.cause_of(error, resolve.NoNetwork)
            if missing is not None:
                from . import events

                events.tell_not_found(client, pod, str(missing).partition(": ")[2])
        raise


def _not_added(session: Session, delegate: Delegate, error: CniError) -> CniError:
    network = delegate.network
    return failure(f'[{session.pod}:{network}]: error adding container to network "{network}": {error}', [error])


class _Adding:
    """The attachments of one ADD, and how they are taken back."""

    def __init__(self, session: Session, delegates: list[Delegate], names: list[str], prefix: str, lock: int) -> None:
        self.session = session
        self.delegates = delegates
        self.names = names
        self.prefix = prefix
        self.lock = lock
        self.started: list[int] = []
        self.entries: list[Document] = []
        self.news: list[tuple[str, str, Document]] = []

    def run(self, client: Client | None, pod: dict[str, Any]) -> Document:
        session = self.session
        try:
            result = self._attach(client is not None)
            if client is not None and self.entries and session.pod.namespace not in session.config.system_namespaces:
                self._tell(client, pod)
            printed = _in_version(result, session.config.cni_version)
            self._check_cache()
        except BaseException:
            self.take_back()
            raise
        session.call.undo = self.take_back
        return printed

    def _attach(self, with_status: bool) -> Document:
        first: Document = {}
        for index, delegate in enumerate(self.delegates):
            session = self.session
            self._check_cache()
            attachment = session.attachment(index, delegate, adding=True)
            session.plugins.started = False
            try:
                if delegate.resource_name:
                    from . import deviceinfo

                    deviceinfo.hand_over(delegate, session.call.container_id, attachment.ifname)
                try:
                    result = self._add(delegate, attachment)
                finally:
                    if session.plugins.started:
                        self.started.append(index)
            except CniError as error:
                raise _not_added(session, delegate, error) from None
            first = first or result
            gateways = self._route(delegate, attachment, result)
            if with_status:
                self._collect(delegate, attachment.ifname, result, gateways)
        return first

    def _check_cache(self) -> None:
        """Raise CniError if a DEL, or another ADD, did not wait for this one: nobody would take down what it makes."""
        path = cache.path_of(self.session.config.cni_dir, self.session.call.container_id)
        if self.lock >= 0 and not running.is_in_place(self.lock, path):
            raise CniError(INTERNAL, f"{self.prefix}the delegates cache of this ADD is gone: a DEL came in between")

    def _add(self, delegate: Delegate, attachment: Any) -> Document:
        from .delegate import ListFault

        session = self.session
        try:
            network = delegate.load()
        except ListFault as fault:
            text = f"conflistAdd: error converting the raw bytes into a conflist: {fault}"
            raise CniError(INTERNAL, text) from None
        result = session.runtime.add(network, attachment)
        if session.journal.wants("verbose"):
            from ..cni import goprint

            pod = session.pod
            session.journal.verbose(
                f"Add: {pod.namespace}:{pod.name}:{pod.uid or 'unknownUID'}:{delegate.name}({delegate.network}):"
                f"{attachment.ifname} {goprint.dumps(result, indent=0)}"
            )
        return result

    def _route(self, delegate: Delegate, attachment: Any, result: Document) -> list[str] | None:
        """Replace default routes if a network asks for it; return the gateways that the delegate has then."""
        asked = any(one.request.gateways for one in self.delegates)
        if not asked or not (result.get("interfaces") or result.get("ips")):
            return None
        from . import defaultroute

        families = defaultroute.to_replace(delegate, self.delegates)
        if not families:
            return None
        session = self.session
        try:
            defaultroute.apply(session.call.netns, attachment.ifname, delegate, families)
            edited = defaultroute.edited(result, delegate, families)
            session.results.write(delegate.network, delegate.data, edited, attachment)
        except CniError as error:
            raise CniError(INTERNAL, self.prefix + str(error)) from None
        return defaultroute.gateways(result, delegate, families)

    def _collect(self, delegate: Delegate, interface: str, result: Document, gateways: list[str] | None) -> None:
        from . import netstatus

        info = None
        if delegate.device_id:
            from . import deviceinfo

            info = deviceinfo.read(delegate, self.session.call.container_id, interface)
        self.entries += netstatus.entries(delegate.name, delegate.is_master, result, info, gateways)
        self.news.append((delegate.name, interface, result))

    def _tell(self, client: Client, pod: dict[str, Any]) -> None:
        from . import netstatus

        namespace, name = self.session.pod.namespace, self.session.pod.name
        try:
            client.set_network_status(namespace, name, pod, netstatus.text(self.entries))
        except NodenetError as error:
            raise CniError(
                INTERNAL,
                f"{self.prefix}error setting the networks status: SetPodNetworkStatusAnnotation: failed to update the "
                f"pod {name} in out of cluster comm: SetNetworkStatus: failed to update the pod {name} in out of "
                f"cluster comm: status update failed for pod {namespace}/{name}: {error}",
            ) from None

    def tell_people(self, client: Client, pod: dict[str, Any]) -> None:
        """Make the pod's events. No fault of theirs is one of the ADD, which is complete."""
        try:
            from . import events

            events.tell_added(client, pod, [events.addition(*one) for one in self.news])
        except Exception as error:
            self.session.journal.note(f"{self.prefix}cannot make the events of the pod: {error}")

    def take_back(self) -> None:
        """Call DEL for every delegate whose ADD was started, the last one first (M4, M5); what fails is told."""
        session = self.session
        for index in reversed(self.started):
            delegate = self.delegates[index]
            try:
                session.runtime.delete(delegate.load(), session.attachment(index, delegate))
            except NodenetError as error:
                session.journal.note(f"Multus: cannot take back network {delegate.name}: {error}")
        self.started = []


def _in_version(result: Document, version: str) -> Document:
    """Return the result in the layout of the version that the runtime asked for (M11).

    One that this layout cannot hold (no address in 0.2.0) stays as it is; runtimes go by the version in it.
    """
    if not version or result.get("cniVersion") == version:
        return result
    try:
        return results.convert(result, version)
    except CniError:
        return result
