# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Making a batch of changes in a network's directory under its lock."""

from __future__ import annotations

import errno
import os
import time

from ..cni.errors import NodenetError
from . import lock
from .layout import network_dir
from .store import Store, StoreError

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
    :raises NodenetError: the batch is refused, or the directory or its lock cannot be used; it also tells what could
        not be put back after an error
    """
    path = network_dir(data_dir, network)
    deadline = time.monotonic() + lock_timeout
    said: list[str] = []
    try:
        with Store(data_dir, network, create=False) as store, store.lock(lock_timeout):
            plan = decide(store.snapshot())
        if not plan.changed:
            return plan, store.warnings
        if check_mode:
            _expect_writable(path)
            return plan, store.warnings
        store = Store(data_dir, network)
        said = store.warnings
        return _carry_out(store, decide, deadline, lock_timeout), store.warnings
    except (StoreError, lock.LockTimeout) as error:
        reasons = "; ".join([str(error), *said])
        raise NodenetError(
            f"Cannot change reservations of network {network} in {path}: {reasons}", where=path
        ) from None


def _carry_out(store: Store, decide: Callable[[Snapshot], Plan], deadline: float, lock_timeout: float) -> Plan:
    from . import transaction  # most runs, and all in check mode, change nothing

    try:
        with store, store.lock(max(deadline - time.monotonic(), 0.0), asked=lock_timeout):
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
    return plan


def _expect_writable(path: str) -> None:
    """Let check mode fail where the real run would: the nearest existing directory cannot be written to."""
    operation = "open"
    while not os.path.lexists(path):
        operation, path = "mkdir", os.path.dirname(path) or "."
    fault = 0
    if not os.path.isdir(path):
        operation, fault = "mkdir", errno.EEXIST  # a link that points nowhere
    elif not os.access(path, os.W_OK | os.X_OK):
        fault = errno.EROFS if os.statvfs(path).f_flag & os.ST_RDONLY else errno.EACCES
    if fault:
        raise StoreError(operation, path, OSError(fault, os.strerror(fault)))
