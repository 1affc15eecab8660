# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Making a batch of changes in a network's directory under its lock."""

from __future__ import annotations

import os
import time

from ..cni.errors import NodenetError
from . import lock
from .store import Store, StoreError, network_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from .reservations import Plan
    from .snapshot import Snapshot


def run_batch(
    data_dir: str,
    network: str,
    decide: Callable[[Snapshot], Plan],
    check_mode: bool,
    lock_timeout: float,
) -> tuple[Plan, list[str]]:
    """Plan with *decide* and carry the plan out; return it, and what ought to be said besides.

    First a look that creates nothing, under a shared lock if there is one: check mode ends there, and so does a batch
    that is refused or has nothing to change. Otherwise everything is read and planned again under one exclusive hold of
    the lock, in which the plan is carried out, whole or not at all.

    :param lock_timeout: seconds to wait for the lock, in all
    :raises NodenetError: the batch is refused, or the directory or its lock cannot be used
    """
    path = network_dir(data_dir, network)
    deadline = time.monotonic() + lock_timeout
    try:
        with Store(data_dir, network, create=False) as store, store.lock(lock_timeout):
            plan = decide(store.snapshot())
        if not plan.changed:
            return plan, store.warnings
        if check_mode:
            _expect_writable(path)
            return plan, store.warnings
        return _carry_out(data_dir, network, decide, deadline)
    except (StoreError, lock.LockTimeout) as error:
        raise NodenetError(f"Cannot change reservations of network {network} in {path}: {error}", path=path) from None


def _carry_out(
    data_dir: str, network: str, decide: Callable[[Snapshot], Plan], deadline: float
) -> tuple[Plan, list[str]]:
    from . import transaction  # most runs, and all in check mode, change nothing

    store = Store(data_dir, network)
    try:
        with store, store.lock(max(deadline - time.monotonic(), 0.0)):
            try:
                snapshot = store.snapshot()
                plan = decide(snapshot)
                transaction.apply(store, snapshot, plan.add, plan.remove)
            except BaseException:
                store.discard()
                raise
    except BaseException:
        store.discard()
        raise
    return plan, store.warnings


def _expect_writable(path: str) -> None:
    """Let check mode fail where the real run would: the nearest existing directory cannot be written to."""
    while not os.path.lexists(path):
        path = os.path.dirname(path) or "."
    if not os.access(path, os.W_OK | os.X_OK):
        read_only = os.statvfs(path).f_flag & os.ST_RDONLY
        reason = "the file system is read-only" if read_only else "no permission to write"
        raise NodenetError(f"Cannot change reservations in {path}: {reason}", path=path)
