# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove that a pod would get its network: ADD, CHECK and DEL of a chain in a namespace that goes away again."""

from __future__ import annotations

import os
import signal
import time

from ..cni import chain, invoke, links, netlink, netns, resultread, versions
from ..cni.errors import CniError, NodenetError
from ..host_local.lock import check_timeout
from . import probe_leftovers, probe_record, probe_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType
    from typing import Any

    from ..host_local.rotation import Rotation

GATEWAY_TIMEOUT = 5.0
_EXHAUSTED = "no IP addresses available in range set"  # host-local spec 4.1
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Interruption:
    """``with Interruption() as stop:`` lets signals that end a process only be noted: ``stop()`` tells of them.

    So everything is taken down also when the play is cancelled or the connection breaks.
    """

    def __init__(self) -> None:
        self.signal = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        return bool(self.signal)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.signal = self.signal or number


class Probe:
    """One probe: ``result`` is what the module returns, ``facts`` what was found."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options
        probe_target.check_wishes(options["ifname"], options["args"] or {})
        self.target = probe_target.find(options)
        self.node = probe_leftovers.Node(
            options["bin_dir"],
            _limit(options["timeout"]),
            check_timeout(options["lock_timeout"], "lock_timeout"),
        )
        self.records = probe_record.Records(options["state_dir"])
        self.place = f"network {self.target.network.name} ({self.target.source})"
        where = self.target.source
        self.leftovers = probe_leftovers.Leftovers(self.records, self.node, options["netns_dir"], where)
        self.facts = self.target.facts
        self.calls: list[dict[str, Any]] = []
        self.result: dict[str, Any] = {
            "changed": False,
            "network": self.target.network.name,
            "source": where,
            "probed": False,
            "plugins": self.target.types,
            "calls": self.calls,
            "checks": [],
            "leftovers": [],
            "interfaces_created": [],
            "exhausted": False,
        }

    def skip(self, host: list[links.Link]) -> str:
        """Tell why this network is not probed, "" if it is."""
        return "" if self.options["allow_shared"] else self.target.shared(host)

    def foretell(self) -> None:
        """Say what would run, and run nothing."""
        plugins = self.node.plugins()
        for kind in self.target.executables:
            try:
                plugins.find(kind)
            except CniError:
                fact = {"kind": "conf-plugin-missing", "where": self.target.source, "type": kind}
                self.facts.append(dict(fact, bin_dir=self.options["bin_dir"]))
        leftovers = self.leftovers.pending()
        self.result.update(leftovers=leftovers, changed=bool(leftovers))

    def run(self, host: list[links.Link]) -> None:
        """Take down what earlier probes left, then probe."""
        with Interruption() as stop:
            self.result["leftovers"] = self.leftovers.removed
            self.leftovers.remove(self.target.network, self.target.host_local)
            self.facts += self.leftovers.facts
            record = self._record(self._rotations())
            self.result.update(probed=True, container_id=record.container_id, netns=record.netns)
            self.records.open(record)
            document: dict[str, Any] = {}
            try:
                netns.create(record.netns, _loopback_up)
            except NodenetError:
                self.records.close(record)
                raise
            try:
                if not stop():
                    document = self._attach(record, stop)
            finally:
                self.records.close(record, keep=self._detach(record, stop))
            created = self._created(document, host)
            self.result.update(interfaces_created=created, changed=bool(created or self.leftovers.removed))
            if stop.signal:
                text = f"ended by signal {stop.signal}; what it had made was taken down"
                raise NodenetError(f"Cannot probe {self.place}: {text}", **self.result)
        self.result["result"] = document

    def _rotations(self) -> list[Rotation]:
        if not self.target.host_local:
            return []
        from ..host_local import rotation

        return [rotation.remember(*one, self.node.lock_timeout) for one in self.target.host_local]

    def _record(self, rotations: list[Rotation]) -> probe_record.Record:
        container_id = probe_record.new_id()
        options = self.options
        return probe_record.Record(
            container_id,
            os.path.join(options["netns_dir"], container_id),
            options["ifname"],
            options["bin_dir"],
            self.target.source,
            self.target.file_name,
            self.target.data.decode("utf-8", "surrogateescape"),
            [(str(key), str(value)) for key, value in (options["args"] or {}).items()],
            options["capabilities"] or {},
            rotations,
        )

    def _attach(self, record: probe_record.Record, stop: Interruption) -> dict[str, Any]:
        """ADD, look at what is there, CHECK; return the result of ADD."""
        from . import probe_checks  # a plugin that fails leaves nothing to look at

        lock = probe_record.hold(record.netns)
        try:
            runtime = chain.Runtime(self.node.plugins((), stop, self._told), self.records.cache)
            attachment = invoke.Attachment(
                record.container_id, record.netns, record.ifname, record.args, record.capability_args
            )
            document = self._command("ADD", lambda: runtime.add(self.target.network, attachment))
            if document is None:
                return {}
            checks = probe_checks.verify(
                document, record.netns, record.ifname, self.target.source, GATEWAY_TIMEOUT, stop
            )
            self.result["checks"] = checks.done
            for fact in checks.facts:
                if fact["kind"] != "node-probe-gateway-silent" or not stop():
                    self.facts.append(fact)
            network = self.target.network
            if not versions.at_least(network.cni_version or versions.DEFAULT, "0.4.0"):
                self._unchecked("CHECK", f"there is none in version {network.cni_version or versions.DEFAULT}")
            elif network.disable_check:
                self._unchecked("CHECK", "the configuration says disableCheck")
            else:
                self._command("CHECK", lambda: runtime.check(network, attachment))
            return document
        finally:
            if lock is not None:
                os.close(lock)

    def _detach(self, record: probe_record.Record, stop: Interruption) -> bool:
        """Take everything down; tell whether something is left for the next probe."""
        if stop() or any(one["timed_out"] for one in self.calls):
            probe_leftovers.end_plugins(record.container_id)
        runtime = chain.Runtime(self.node.plugins((), None, self._told), self.records.cache)
        calls = len(self.calls)
        reason, left = probe_leftovers.take_down(runtime, self.target.network, record)
        if reason and calls and not any(one["error"] for one in self.calls[calls:]):
            self._fault("node-probe-left-behind", what=reason)
        left = [f"interface {name}" for name in left]
        for data_dir, name in self.target.host_local:
            try:
                held = probe_leftovers.reservations(data_dir, name, lambda one: one == record.container_id)
                left += [f"address {one.name} in {data_dir}/{name}" for one in held]
            except NodenetError as error:
                left.append(str(error))
        if left:
            self._fault("node-probe-left-behind", what=", ".join(left))
        if not reason:
            for one in record.rotations:
                probe_leftovers.put_back(one, self.node.lock_timeout)
        ran = [one["plugin"] for one in self.calls if one["command"] == "ADD"]
        # a DEL that fails as its ADD did would fail at each probe from now on
        return bool(reason) and (bool(left) or os.path.lexists(record.netns) or not self.target.is_traceless(ran))

    def _command(self, command: str, function: Any) -> Any:
        """Run one command of the chain; None if it failed, which the calls and findings tell of then."""
        try:
            return function()
        except CniError as error:
            if not self.calls or not self.calls[-1]["error"]:
                plugin = getattr(error, "plugin", "") or self.target.types[0]
                self._fault("node-probe-plugin-failed", plugin=plugin, command=command, reason=str(error))
            return None

    def _told(self, called: invoke.Called) -> None:
        error = called.error
        entry = {
            "command": called.command,
            "plugin": called.plugin,
            "path": called.path,
            "seconds": round(called.seconds, 3),
            "error": str(error) if error is not None else None,
            "timed_out": getattr(error, "reason", "") == invoke.OVERDUE,
            "log": called.log.decode("utf-8", "replace"),
        }
        if called.command == "ADD":
            entry["result"] = resultread.plain(called.output)
        self.calls.append(entry)
        params = {"plugin": called.plugin, "command": called.command}
        reason = getattr(error, "reason", "")
        if reason == invoke.OVERDUE:
            self._fault("node-probe-plugin-hangs", seconds="%g" % self.node.timeout, **params)
        elif error is not None and reason != invoke.STOPPED:
            exhausted = called.command == "ADD" and _EXHAUSTED in str(error)
            kind = "node-probe-exhausted" if exhausted else "node-probe-plugin-failed"
            self._fault(kind, reason=str(error), **params)

    def _unchecked(self, what: str, reason: str) -> None:
        self._fault("node-probe-unchecked", what=what, reason=reason)

    def _fault(self, kind: str, **params: object) -> None:
        self.facts.append(dict(params, kind=kind, where=self.target.source))

    def _created(self, document: dict[str, Any], host: list[links.Link]) -> list[str]:
        """Return what the plugins made on the node and leave there for the next pod, as a bridge: also a chain that
        failed, which tells of nothing."""
        before = {one.name for one in host}
        now = {one.name for one in probe_leftovers.host_links()}
        named = (probe_leftovers.named_on_host(document) if document else []) + self.target.bridges()
        return [name for name in dict.fromkeys(named) if name in now and name not in before]


def probe(options: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """Probe the network that *options*, those of the module, name; return what the module returns.

    :raises NodenetError: it is not proven that a pod would get its network; facts carry the findings
    """
    from . import findings  # the registry is long

    one = Probe(options)
    host = probe_leftovers.host_links()
    reason = one.skip(host)
    if reason:
        one.facts.append({"kind": "node-probe-shared", "where": one.target.source, "reason": reason})
        one.result.update(skipped=True, msg=f"Skipped the probe of {one.place}: {reason}; allow_shared allows it")
    elif check_mode:
        one.foretell()
    else:
        started = time.monotonic()
        umask = os.umask(0o022)  # what plugins make for the next pod too is as a runtime would have it made
        try:
            one.run(host)
        finally:
            os.umask(umask)
        one.result["seconds"] = probe_leftovers.elapsed(started)
    found = findings.from_facts(one.facts)
    one.result["findings"] = found
    wrong = [item for item in found if item["severity"] == "error"]
    if not options["require_gateway"]:
        silent = findings.entry("node-probe-gateway-silent")[0]
        wrong = [item for item in wrong if item["code"] != silent]
    if one.result["probed"] and wrong:
        texts = [item["text"] for item in wrong]
        # then the plugins did their part, and what is wrong is no matter of configuration
        one.result["exhausted"] = all(item["code"] == findings.entry("node-probe-exhausted")[0] for item in wrong)
        more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
        raise NodenetError(f"Cannot prove {one.place}: {texts[0]}{more}", **one.result)
    return one.result


def _loopback_up() -> None:
    with netlink.Netlink() as kernel:
        links.set_up(kernel, 1)


def _limit(seconds: float) -> float:
    if not 0 < seconds <= 3600:
        raise NodenetError(
            f"Cannot probe within a timeout of {seconds:g} seconds: it must be more than 0, at most 3600"
        )
    return seconds
