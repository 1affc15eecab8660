# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""DEL: undo what the delegates cache says, or what would have been attached (multus spec 11)."""

from __future__ import annotations

import posix

from ..cni import gojson, skel
from ..cni.errors import INTERNAL, TRY_AGAIN_LATER, CniError, NodenetError, go_strerror
from ..cni.invoke import Attachment
from . import cache, running
from .attachments import interface_name, interface_names
from .delegate import Unknown, load_delegate
from .session import Session, call_failed, failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ..cni.resultcache import Entry
    from ..cni.skel import Call
    from .delegate import Delegate
    from .journal import Journal
    from .kube import Client


# the kubelet tries again and again, and what it waits for may be this very node's API server
_API_LIMIT_S = 5.0
RUNNING_LIMIT_S = 5.0


def delete(call: Call, journal: Journal) -> None:
    """Take the pod off its networks.

    The cache file stays until every delegate's DEL succeeded (M9). One that cannot be used counts as missing (M3).
    """
    with Session.open(call, journal) as session:
        _delete(session)
    skel.check_netns(call)


def _delete(session: Session) -> None:
    session.read_pod_args()
    _look_for_readiness(session)
    directory, container_id = session.config.cni_dir, session.call.container_id
    busy = _wait_for_add(session)
    try:
        delegates = cache.read(directory, container_id)
    except cache.Unusable as fault:
        _with_damaged_cache(session, fault, busy)
        return
    if delegates is None:
        _without_cache(session, must_succeed=False)
        return
    faults = take_down(session, delegates)
    if faults:
        raise _all_of(faults)
    if busy is not None:
        raise busy
    cache.remove(directory, container_id)
    cache.sweep(directory)


def _wait_for_add(session: Session) -> CniError | None:
    """Return what a DEL fails with in the end, if an ADD still runs: what it attaches from now on needs another DEL.

    That goes on for some minutes only; then it may be a process that was left behind on purpose.
    """
    path = cache.path_of(session.config.cni_dir, session.call.container_id)
    if running.wait(path, RUNNING_LIMIT_S):
        return None
    text = (
        f"Multus: [{session.pod}]: an ADD of this container, or a plugin of it, still runs after "
        f"{RUNNING_LIMIT_S:g} s; what it attaches from now on "
    )
    if running.is_overdue(path):
        session.journal.note(text + "stays")
        return None
    return CniError(TRY_AGAIN_LATER, text + "needs another DEL")


def _with_damaged_cache(session: Session, fault: cache.Unusable, busy: CniError | None) -> None:
    """Do as without it. It stays in its place until that succeeded, so that the next DEL does not take it for none."""
    text = f"Multus: cannot use the cached delegates: {fault}"
    try:
        _without_cache(session, must_succeed=True)
    except CniError:
        session.journal.note(text)
        raise
    if busy is not None:
        raise busy
    kept = cache.set_aside(session.config.cni_dir, session.call.container_id)
    session.journal.note(f"{text}; kept as {kept}")


def _all_of(faults: list[CniError]) -> CniError:
    return failure("errors: " + " / ".join(str(one) for one in faults), faults)


def _without_cache(session: Session, must_succeed: bool) -> None:
    """Take down what the pod would get; for a pod that nobody knows any more, what every pod gets (M9).

    :param must_succeed: nothing but a DEL that fails counts (M3), and that does in any case
    """
    prefix = f"Multus: [{session.pod}]: "
    client = _client(session, must_succeed)
    pod = _find_pod(session, client) if client is not None else None
    delegates: list[Delegate] = []
    if client is not None and pod is not None:
        from . import deciding, kube
        from .resolve import cause_of

        try:
            delegates = deciding.default_networks(session, client, pod, prefix)
        except CniError as reason:
            if not must_succeed:
                raise
            session.journal.note(str(reason))
            config = session.config
            more = [] if session.pod.namespace in config.system_namespaces else config.default_networks
            delegates = [Unknown() for _each in ["", *more]]  # in their places, so that the others keep theirs
        undoing = deciding.Undoing(deciding.resolver(session, client, pod), pod)
        undoing.pod_networks(delegates)
        for error in undoing.undecided:
            # no failure: after an ADD that could not decide either, DEL would fail for as long as that lasts
            gone = cause_of(error, kube.NotFound) is not None  # as upstream, which says it from level error on
            tell = session.journal.error if gone else session.journal.note
            tell(f"{prefix}not all networks of the pod are known: {error}")
    else:
        delegates = _configured(session, client, prefix)
    faults = take_down(session, delegates) + _take_down_rest(session, delegates)
    cache.sweep(session.config.cni_dir)
    if faults and (pod is not None or must_succeed):
        raise _all_of(faults)
    for fault in faults:
        session.journal.note(f"{prefix}{fault}")


def _client(session: Session, must_succeed: bool) -> Client | None:
    try:
        return session.client(_API_LIMIT_S)
    except CniError as error:
        if not must_succeed:
            raise
        session.journal.note(str(error))
        return None


def _configured(session: Session, client: Client | None, prefix: str) -> list[Delegate]:
    from . import deciding

    try:
        return deciding.default_networks(session, client, {"metadata": {"namespace": session.pod.namespace}}, prefix)
    except CniError as error:
        session.journal.note(str(error))
        return []


def _find_pod(session: Session, client: Client) -> dict[str, Any] | None:
    """Return the pod, None if it is gone, is another one by now, or the API does not say."""
    try:
        pod = client.pod(session.pod.namespace, session.pod.name)
    except NodenetError as error:
        session.journal.error(f"Multus: GetPod failed: {error}, but continue to delete")
        return None
    fault = session.expected(pod)
    if fault:
        session.journal.error(f"Multus: GetPod failed: {fault}, but continue to delete")
        return None
    return pod


def _look_for_readiness(session: Session) -> None:
    path = session.config.readiness_indicator_file
    if not path:
        return
    try:
        posix.stat(path)
    except FileNotFoundError:
        session.journal.error(f"Multus: warning: cannot find readinessindicatorfile {path}, but continue to delete")
    except (OSError, ValueError) as error:
        text = f"error checking readinessindicatorfile on CNI DEL @ {path}: stat {path}: {go_strerror(error)}"
        raise CniError(INTERNAL, text) from None


def take_down(session: Session, delegates: Sequence[Delegate]) -> list[CniError]:
    """Call DEL for all delegates, the last one first; return what failed."""
    faults: list[CniError] = []
    for index in range(len(delegates) - 1, -1, -1):
        delegate = delegates[index]
        if isinstance(delegate, Unknown):
            continue
        interface = interface_name(index, delegate, session.call.ifname)
        complete(session, delegate)
        if session.journal.wants("verbose"):
            pod = session.pod
            text = delegate.data.decode("utf-8", "surrogateescape")
            session.journal.verbose(
                f"Del: {pod.namespace}:{pod.name}:{pod.uid or 'unknownUID'}:{delegate.network}:{interface} {text}"
            )
        try:
            session.runtime.delete(delegate.load(), session.attachment(index, delegate))
        except CniError as error:
            faults.append(CniError(error.code, call_failed("Del", delegate, error)))
            continue
        if delegate.device_id:
            from . import deviceinfo

            deviceinfo.remove(delegate, session.call.container_id, interface)
    return faults


def _take_down_rest(session: Session, delegates: Sequence[Delegate]) -> list[CniError]:
    """Take down by their cached results what else the container has: networks that nobody knows any more."""
    call = session.call
    names = interface_names(delegates, call.ifname)
    done = {(one.network, name) for one, name in zip(delegates, names) if not isinstance(one, Unknown)}
    faults: list[CniError] = []
    for entry in session.attached():
        if entry.container_id == call.container_id and (entry.network, entry.ifname) not in done:
            try:
                take_down_entry(session, entry, call.netns)
            except CniError as error:
                faults.append(error)
    return faults


def take_down_entry(session: Session, entry: Entry, netns: str) -> None:
    """Call DEL for what a cached result tells of. Raises CniError.

    :param netns: the namespace; the one in the entry may be another's by now if the runtime gives none
    """
    try:
        delegate = load_delegate(gojson.parse(entry.config), entry.config)
    except gojson.SyntaxFault as fault:
        raise CniError(INTERNAL, f"cached result of {entry.network} and {entry.ifname}: {fault}") from None
    complete(session, delegate)
    attached = Attachment(entry.container_id, netns, entry.ifname, entry.args, entry.capability_args)
    session.runtime.delete(delegate.load(), attached)
    info = entry.capability_args.get("CNIDeviceInfoFile")
    if info:
        from . import deviceinfo

        deviceinfo.remove_file(info)


def complete(session: Session, delegate: Delegate) -> None:
    """Give a list that names no version that of the configuration."""
    if delegate.is_list and not delegate.cni_version:
        delegate.set_version(session.config.cni_version)
