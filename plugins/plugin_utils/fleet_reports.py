# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reports of nodes as they come to the controller. Nothing in them is believed before it has been looked at."""

from __future__ import annotations

import re
import socket
import typing as t

from ansible_collections.nodenet.cni.plugins.module_utils.cni.names import valid_name
from ansible_collections.nodenet.cni.plugins.module_utils.host_local import compact
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.addresses import parse_address
from ansible_collections.nodenet.cni.plugins.module_utils.host_local.snapshot import STATIC_PREFIX
from ansible_collections.nodenet.cni.plugins.module_utils.node.findings import SEVERITIES, entry, finding
from ansible_collections.nodenet.cni.plugins.module_utils.node.ipam_report import REPORT_VERSION

Json = dict[str, t.Any]

_TEXT = r"[^\t\n]*"
_ROW = rf"[0-9a-fA-F:.]+\t{_TEXT}\t{_TEXT}\t[0-9]{{0,9}}\t[0-9]{{1,15}}\t[01]?(?:\t{_TEXT}\t{_TEXT})?"
# what ssh says itself when a command has ended
_CONNECTION = re.compile("Shared connection to .* closed\\.")
_ROWS = re.compile(rf"(?:{_ROW}(?:\n{_ROW})*)?")
#: No range has more addresses, whatever a node says.
MOST = 2**128
_MAPPED = bytes(10) + b"\xff\xff"
#: Code of the finding that nothing is known of a network or of a data dir.
_UNUSABLE = entry("ipam-dir-unusable")[0]


def fault_of(report: t.Any) -> str | None:
    """Say why *report* is none that can be merged, None if it can."""
    if not isinstance(report, t.Mapping):
        return "it reported nothing"
    if report.get("unreachable"):
        return "it is unreachable"
    if report.get("failed"):
        return _failure(report, "its report failed")
    if not isinstance(report.get("networks"), list):
        # the play may have been told to carry on after a failure
        return _failure(report, "what it reported is no report of host_local_info, or of node_info with audit")
    version = report.get("report_version")
    if version != REPORT_VERSION:
        return f"its report has version {version}, this collection reads version {REPORT_VERSION}"
    return _damage(report)


def _failure(report: t.Mapping[str, t.Any], otherwise: str) -> str:
    """Return what a task that brought no report says of it, and the last line of what the node said itself.

    A module that never ran, as where become fails, has left its reason there only.
    """
    reason = " ".join(str(report.get("msg") or otherwise).split())
    for key in ("module_stderr", "module_stdout"):
        said = [line.strip() for line in str(report.get(key) or "").splitlines()]
        said = [line for line in said if line and not _CONNECTION.fullmatch(line)]
        if said:
            return f"{reason} ({short(said[-1], 300)})"
    return reason


def _damage(report: t.Mapping[str, t.Any]) -> str | None:
    try:
        for one in report.get("unread", ()):
            _require(all(isinstance(one[key], str) for key in ("path", "reason")), "unread")
            _require(one["name"] is None or isinstance(one["name"], str), "unread")
        for network in report["networks"]:
            _check_network(network)
        for one in report.get("findings", ()):
            _require(one["severity"] in SEVERITIES, "severity")
            _require(all(isinstance(one[key], str) for key in ("code", "where", "text")), "findings")
            _require(all(isinstance(one.get(key, ""), str) for key in ("hint", "go")), "findings")
        for one in (report.get("conf") or {}).get("files", ()):
            _require(all(isinstance(kind, str) for kind in one["plugins"]), "plugins")
            _require(_is_flat(one.get("settings", {})), "settings")
        for one in ((report.get("conf") or {}).get("effective") or {}).values():
            _require(isinstance(one["known"], bool) and isinstance(one["network"], (str, type(None))), "effective")
        for one in (report.get("binaries") or {}).get("plugins", ()):
            _require(isinstance(one["name"], str), "plugins")
            _require(all(isinstance(one.get(key), (str, type(None))) for key in ("version", "sha256")), "plugins")
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        return f"its report is damaged ({type(error).__name__}: {error})"
    return None


def _is_flat(values: t.Any) -> bool:
    return all(isinstance(key, str) and isinstance(value, str) for key, value in values.items())


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"{what} is not what it ought to be")


def _check_network(network: t.Mapping[str, t.Any]) -> None:
    _require(isinstance(network["name"], str) and valid_name(network["name"]), "name")
    _require(network["scope"] in (None, "node", "shared"), "scope")
    for one in network["range_sets"]:
        for text in one["ranges"]:
            span_of(text)
        for text in one.get("gateways", ()):
            key_of(text)
        for key in ("usable", "reserved", "static", "free"):
            _require(isinstance(one[key], int) and 0 <= one[key] <= MOST, key)
        leaked = one["leaked"]
        _require(leaked is None or (isinstance(leaked, int) and 0 <= leaked <= MOST), "leaked")
    rows = network.get("rows")
    if rows is not None:
        _require(_ROWS.fullmatch(rows) is not None, "rows")
        return
    for one in network["reservations"]:
        _require(all(isinstance(one[key], str) for key in ("address", "container_id", "ifname")), "reservations")


def unread_of(report: t.Mapping[str, t.Any]) -> list[Json]:
    """Return what a node could not read, as docs/audit-schema.md describes ``unread``, without its host."""
    listed = [
        {"network": one["name"], "where": one["path"], "reason": one["reason"]} for one in report.get("unread", ())
    ]
    known = {one["where"] for one in listed}
    return listed + [
        {"network": None, "where": one["where"], "reason": one["text"]}
        for one in report.get("findings", ())
        if one["code"] == _UNUSABLE and one["where"] not in known
    ]


def key_of(address: str) -> bytes:
    """Return an address as bytes, equal for all spellings of it. Raises OSError or ValueError if it is none."""
    try:
        return socket.inet_pton(socket.AF_INET, address)
    except OSError:
        packed = socket.inet_pton(socket.AF_INET6, address)
        return packed[12:] if packed[:12] == _MAPPED else packed


def text_of(key: bytes) -> str:
    """Return the canonical text of what `key_of` returned."""
    return str(parse_address(socket.inet_ntop(socket.AF_INET if len(key) == 4 else socket.AF_INET6, key)))


def order(key: bytes) -> tuple[int, bytes]:
    """Sort key for what `key_of` returns: IPv4 before IPv6, each as numbers."""
    return len(key), key


def span_of(text: str) -> tuple[bytes, bytes]:
    """Return first and last address of a range as `key_of` does. Raises OSError or ValueError if it is none."""
    start, _dash, end = text.partition("-")
    first, last = key_of(start), key_of(end)
    _require(len(first) == len(last) and first <= last, f"the range {text}")
    return first, last


def keys_of(network: t.Mapping[str, t.Any]) -> list[bytes]:
    """Return the addresses of all reservations of a network. Raises OSError if one is no address."""
    rows = network.get("rows")
    if rows is not None:
        return [key_of(line.partition("\t")[0]) for line in rows.split("\n")] if rows else []
    return [key_of(one["address"]) for one in network["reservations"]]


def chosen(network: t.Mapping[str, t.Any], wanted: t.Container[bytes]) -> t.Iterator[tuple[bytes, Json]]:
    """Yield the reservations of the *wanted* addresses, each with its key. The others are not taken apart."""
    rows = network.get("rows")
    if rows is not None:
        for key, line in zip(keys_of(network), rows.split("\n")):
            if key in wanted:
                yield from ((key, one) for one in compact.decode(line))
        return
    for one in network["reservations"]:
        key = key_of(one["address"])
        if key in wanted:
            yield key, one


def statics(network: t.Mapping[str, t.Any]) -> t.Iterator[Json]:
    """Yield the static reservations of a network. The others are not taken apart."""
    rows = network.get("rows")
    if rows is not None:
        lines = (line for line in rows.split("\n") if f"\t{STATIC_PREFIX}" in line)
        yield from (one for line in lines for one in compact.decode(line) if one["static"])
    else:
        yield from (one for one in network["reservations"] if one["static"])


def short(text: str, limit: int = 80) -> str:
    """Return a text of a node so that a finding can name it."""
    return text if len(text) <= limit else text[:limit] + "..."


def told(kind: str, where: str, about: t.Iterable[str], subject: str, **params: t.Any) -> Json:
    """Return a finding of the fleet.

    :param about: the hosts that it is about
    :param subject: what tells it from others with the same code and place, whatever its numbers are
    :param params: what the text names; ``network`` is the network that it is about
    """
    return dict(finding(kind, where, **params), hosts=list(about), network=params.get("network"), subject=subject)
