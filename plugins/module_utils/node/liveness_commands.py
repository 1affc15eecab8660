# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is alive by the answers of runtimes: by CRI, and by the programs crictl, ctr, nerdctl and podman where they are.

They confirm what the state directories say, and see what lies elsewhere. One that fails, or does not answer in time, is
a failed source, never an empty one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess

from ..host_local.idforms import SANDBOX_ID, id_form
from . import liveness_cri
from .liveness import STORAGE_ROOT, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

_SAMPLE_ID = "0" * 64
_CRI_NAMESPACE = "k8s.io"


class _Fault(Exception):
    pass


def ask(options: Mapping[str, Any], runtimes: Iterable[Source]) -> list[Source]:
    """Ask each installed program about the runtimes that are at work.

    :param runtimes: the sources that were read from directories; a program is asked about what was found there
    """
    timeout = options["command_timeout"]
    at_work = {(one.name, one.place) for one in runtimes if one.authoritative}
    sources: list[Source | None] = []
    for one in options["containerd"]:
        if ("containerd", one["root"]) in at_work:
            address = one.get("address") or os.path.join(one["state"], "containerd.sock")
            cri = _cri(address, timeout, _used_cri(one["root"]))
            sources += [cri] if cri is None else [cri, _asked("crictl", address, timeout, _crictl)]
            sources += [_asked("ctr", address, timeout, _ctr), _asked("nerdctl", address, timeout, _nerdctl)]
    if ("crio", options["storage_root"]) in at_work:
        sources.append(_cri(options["crio_address"], timeout, True))
        sources.append(_asked("crictl", options["crio_address"], timeout, _crictl))
    if ("podman", options["storage_root"]) in at_work:
        sources.append(_asked("podman", options["storage_root"], timeout, _podman))
    return [one for one in sources if one is not None]


def _used_cri(root: str) -> bool:
    return os.path.isdir(os.path.join(root, "io.containerd.grpc.v1.cri"))


def _cri(address: str, timeout: float, expected: bool) -> Source | None:
    """Ask by CRI itself; None if the runtime does not speak it and never did (*expected*)."""
    source = Source("cri", address, authoritative=True, command=True)
    try:
        for container_id in liveness_cri.sandboxes(address, timeout):
            source.add(container_id)
        source.forms.add(SANDBOX_ID)
        source.up = True
    except liveness_cri.NoAnswer as error:
        if not expected:
            return None
        source.failed = str(error)
    except OSError as error:
        source.failed = f"{address}: {(error.strerror or str(error)).lower()}"
    return source


def _asked(program: str, place: str, timeout: float, question: Any) -> Source | None:
    path = shutil.which(program)
    if path is None:
        return None
    source = Source(program, place, authoritative=True, command=True)
    try:
        question(source, path, place, timeout)
        source.up = True
    except _Fault as fault:
        source.failed = str(fault)
    return source


def _crictl(source: Source, program: str, address: str, timeout: float) -> None:
    """All sandboxes, whatever their state: one that is not ready may hold addresses."""
    endpoint = f"unix://{address}"
    pods = _json(_output([program, "-r", endpoint, "-t", f"{timeout:g}s", "pods", "-o", "json"], timeout), source)
    items = pods.get("items") if isinstance(pods, dict) else None
    if not isinstance(items, list):
        raise _Fault("crictl pods printed no list of items")
    source.forms.add(SANDBOX_ID)
    for one in items:
        source.add(_id(one, "id", source))


def _ctr(source: Source, program: str, address: str, timeout: float) -> None:
    base = [program, "--address", address, "--connect-timeout", f"{timeout:g}s"]
    for namespace in _output([*base, "namespaces", "ls", "-q"], timeout).split():
        ids = _output([*base, "--namespace", namespace, "tasks", "ls", "-q"], timeout).split()
        if namespace == _CRI_NAMESPACE:
            # its sandboxes own their addresses until they are removed
            ids += _output([*base, "--namespace", namespace, "containers", "ls", "-q"], timeout).split()
        _add_namespace(source, namespace, ids)


def _nerdctl(source: Source, program: str, address: str, timeout: float) -> None:
    base = [program, "--address", address]
    for namespace in _output([*base, "namespace", "ls", "-q"], timeout).split():
        ids = _output([*base, "--namespace", namespace, "ps", "--no-trunc", "-q"], timeout).split()
        _add_namespace(source, namespace, ids)


def _add_namespace(source: Source, namespace: str, ids: Iterable[str]) -> None:
    prefix = "" if namespace == _CRI_NAMESPACE else f"{namespace}-"
    if prefix:  # whether CRI is at work in its namespace is for CRI to say
        source.forms.add(id_form(prefix + _SAMPLE_ID))
    for container_id in ids:
        source.add(prefix + container_id)


def _podman(source: Source, program: str, root: str, timeout: float) -> None:
    # where its own configuration says, unless the user says otherwise
    base = [program] if root == STORAGE_ROOT else [program, "--root", root]
    containers = _json(_output([*base, "ps", "-a", "--no-trunc", "--format", "json"], timeout), source)
    if containers is None:  # no container at all, in some versions
        containers = []
    if not isinstance(containers, list):
        raise _Fault("podman ps printed no list")
    source.forms.add(SANDBOX_ID)
    for one in containers:
        source.add(_id(one, "Id", source))


def _id(one: Any, key: str, source: Source) -> str:
    found = one.get(key) if isinstance(one, dict) else None
    if not isinstance(found, str) or not found:
        raise _Fault(f"{source.name} printed an element without {key}")
    return found


def _json(text: str, source: Source) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _Fault(f"{source.name} printed no JSON ({error})") from None


def _output(command: list[str], timeout: float) -> str:
    name = os.path.basename(command[0])
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _Fault(f"{name} gave no answer within {timeout:g} s") from None
    except OSError as error:
        raise _Fault(f"{name} cannot be started ({(error.strerror or str(error)).lower()})") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise _Fault(f"{name} ended with status {done.returncode}{': ' + said[-1][:300] if said else ''}")
    return done.stdout.decode("utf-8", "replace")
