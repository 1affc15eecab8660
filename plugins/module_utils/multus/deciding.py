# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide the delegates of a call with what the API and the node's files say (multus spec 4.4 to 4.6, 11.3)."""

from __future__ import annotations

from ..cni.errors import INTERNAL, CniError, NodenetError
from . import confdir
from .delegate import Unknown
from .devices import Devices
from .resolve import Resolver, Sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .delegate import Delegate
    from .kube import Client
    from .request import Request
    from .session import Session


def delegates(session: Session, client: Client | None, pod: dict[str, Any], prefix: str) -> list[Delegate]:
    """Return all delegates of a pod. Raises CniError (code 999) whose text begins with *prefix*."""
    decided = default_networks(session, client, pod, prefix)
    if client is not None:
        try:
            resolver(session, client, pod).pod_networks(decided)
        except NodenetError as error:
            raise CniError(INTERNAL, f"{prefix}error loading k8s delegates k8s args: {error}") from None
    config = session.config
    if config.auxiliary_chain:
        try:
            chain = confdir.auxiliary(config.auxiliary_chain, config.cluster_network, config.cni_version)
        except CniError as error:
            if "/" not in config.cluster_network:
                raise CniError(INTERNAL, prefix + str(error)) from None
            session.journal.error(f"{prefix}error loading the auxiliary chain: {error}")
            chain = None
        if chain is not None:
            decided.append(chain)
    return decided


def default_networks(session: Session, client: Client | None, pod: dict[str, Any], prefix: str) -> list[Delegate]:
    """Return the delegates that every pod gets. Raises CniError (code 999)."""
    if not session.config.cluster_network:
        return list(session.config.delegates)
    try:
        if client is None:
            raise CniError(INTERNAL, "GetDefaultNetworks: must have either Kubernetes config or delegates")
        return resolver(session, client, pod).default_networks()
    except NodenetError as error:
        raise CniError(INTERNAL, f"{prefix}failed to get clusterNetwork/defaultNetworks: {error}") from None


class Undoing(Resolver):
    """The decision for a DEL: what cannot be decided is left out, and told in ``undecided``."""

    def __init__(self, resolver: Resolver, pod: dict[str, Any]) -> None:
        self.undecided: list[NodenetError] = []
        super().__init__(resolver.config, pod, resolver.sources, self.undecided)

    def _default_network(self, delegates: list[Delegate]) -> list[Delegate]:
        try:
            return super()._default_network(delegates)
        except NodenetError as error:
            self.undecided.append(error)
            delegates[:1] = [Unknown()]  # the configured one was not attached in any case (M5)
            return []

    def _requested(self, request: Request) -> list[Delegate]:
        try:
            return super()._requested(request)
        except NodenetError as error:
            self.undecided.append(error)
            return [Unknown()]


def resolver(session: Session, client: Client, pod: dict[str, Any]) -> Resolver:
    """Return what decides for a pod; all decisions of one call share its devices (M10)."""
    if session.devices is None:
        session.devices = Devices(pod, client)
    return Resolver(session.config, pod, Sources(client.nad, session.devices.take))
