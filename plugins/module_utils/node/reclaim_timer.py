# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Freeing leaked addresses without anybody at the keyboard: units of systemd for networks, as host_local_gc_timer
installs them.

    <program_dir>/reclaim-<hash>.pyz                     the code, one for all networks
    <settings_dir>/<network>.json                        what it is to do
    <unit_dir>/nodenet-reclaim-<network>.service         runs it
    <unit_dir>/nodenet-reclaim-<network>.timer           starts that at its times
    <unit_dir>/nodenet-reclaim-<network>@boot.service    runs it at boot: after the runtime, before the kubelet
    <unit_dir>/{multi-user,timers}.target.wants/         links by which they are enabled

Everything is decided and compared before anything is written; what is in place already is left alone. Python reads the
program piece by piece while it runs. So a new one has another name, and the one before stays until the next change.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile

from ..cni.errors import NodenetError
from ..cni.names import valid_name
from ..host_local.lock import LockTimeout
from ..host_local.rows import label, short_list
from ..host_local.store import Store, StoreError
from . import executables, files
from . import networks as definitions
from . import reclaim_systemd as systemd
from .embedded import unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

HEAD = "# Written by the Ansible collection nodenet.cni (host_local_gc_timer); changes are lost."
PACKAGE = "nodenet_cni"
ENTRY = "node/reclaim_program.py"
#: Options of host_local_gc that the settings hold besides the names of networks.
OPTIONS = (
    *("conf_dir", "data_dir", "flannel_subnet_file", "state_dir", "sources", "grace", "containerd", "storage_root"),
    *("crio_address", "results_dirs", "command_timeout", "lock_timeout"),
)
# no name of a network has an @, so this is no other network's unit
_BOOT = "@boot.service"
_PROGRAM = re.compile(r"reclaim(-[0-9a-f]{16})?\.pyz")
_WAIT_S = 30
_MAIN = f"import sys\n\nfrom {PACKAGE}.{ENTRY[:-3].replace('/', '.')} import main\n\nsys.exit(main(sys.argv[1:]))\n"
# a unit that is not there is no matter for After and Before
_RUNTIMES = (
    *("containerd", "crio", "docker", "podman", "k3s", "k3s-agent", "rke2-server", "rke2-agent", "k0scontroller"),
    *("k0sworker", "snap.microk8s.daemon-containerd"),
)
_SERVICE = """\
{head}
[Unit]
Description=Free leaked addresses of CNI network {network}
After=local-fs.target {runtimes}
{before}
[Service]
Type=oneshot
ExecStart={python} -IBS {program} {settings}
TimeoutStartSec=120
# no sandbox: it has to see the processes and namespaces of the node
{install}"""
_TIMER = """\
{head}
[Unit]
Description=Free leaked addresses of CNI network {network} from time to time

[Timer]
OnCalendar={calendar}
# not all nodes at one moment
RandomizedDelaySec=300

[Install]
WantedBy=timers.target
"""
# a unit of its own: a kubelet that is started anew would wait for each run that has this line
_AT_BOOT = {"before": "Before=kubelet.service\n", "install": "\n[Install]\nWantedBy=multi-user.target\n"}
_AT_OTHER_TIMES = {"before": "", "install": ""}


class Place:
    """A file or a link as it is and as it shall be. ``before``, ``after``: bytes, the target of a link as a text, or
    None where there is none."""

    def __init__(self, path: str, after: bytes | str | None) -> None:
        self.path = path
        self.after = after
        self.before = _present(path)

    @property
    def action(self) -> str:
        """What is to be done: ``unchanged``, ``created``, ``replaced`` or ``removed``."""
        if self.before == self.after:
            return "unchanged"
        return "removed" if self.after is None else "created" if self.before is None else "replaced"

    def put(self, what: bytes | str | None) -> None:
        """Have that there. Errors: OSError."""
        if what is None or isinstance(what, str):
            files.remove_file(self.path)
        if what is not None:
            files.make_directory(os.path.dirname(self.path))
        if isinstance(what, bytes):
            files.replace_file(self.path, what, 0o644)
        elif isinstance(what, str):
            os.symlink(what, self.path)

    def difference(self) -> dict[str, str]:
        """Return before and after for ``diff``."""
        texts = [_text(one) for one in (self.before, self.after)]
        return {"before": texts[0], "after": texts[1], "before_header": self.path, "after_header": self.path}


def schedule(options: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """Have units for exactly these networks, by the options of the module; return its result.

    :raises NodenetError: a network holds static reservations, or something cannot be used or written; what had been
        written is taken back then
    """
    names = list(dict.fromkeys(options["networks"]))
    _check(names, options)
    if not options["with_static"]:
        _refuse_static(names, options)
    places = _places(names, options)
    changed = [one for one in places if one.action != "unchanged"]
    systemctl = systemd.systemctl_program() if options["apply"] else ""
    if options["apply"] and not systemctl and (names or changed):
        raise NodenetError(
            "Cannot free addresses by a timer on this node: systemd does not run it; set apply=false to write the "
            "units only, such as for the image of a node"
        )
    timers = [f"{systemd.PREFIX}{name}.timer" for name in names if options["on_calendar"]]
    moved = {os.path.basename(one.path) for one in changed}
    removed = {os.path.basename(one.path) for one in changed if one.action == "removed" and systemd.is_name(one.path)}
    left = systemd.left_behind(systemctl) if systemctl else []
    stopping = sorted({one for one in removed if one.endswith(".timer")} | set(left)) if systemctl else []
    # a run that was killed, or one with apply=false, has written what systemd does not know yet
    stale = bool(systemctl) and systemd.is_stale(systemctl, places)
    starting = [one for one in timers if systemctl and (stale or one in moved or not systemd.is_active(systemctl, one))]
    reload = bool(systemctl and (changed or stale or left))
    result = {
        "changed": bool(changed or starting or stale or left),
        "networks": sorted(names),
        "files": [{"path": one.path, "action": one.action} for one in places],
        "reloaded": reload,
        "started": starting,
        "stopped": stopping,
        "diff": [one.difference() for one in changed],
    }
    if not check_mode:
        systemd.carry_out(changed, systemctl, stopping, starting, reload)
        services = {f"{one[: -len('.timer')]}.service" for one in left}
        removed.update(left, services - {f"{systemd.PREFIX}{name}.service" for name in names})
        if systemctl and removed:  # or what failed is listed until the next boot
            systemd.succeeds(systemctl, "reset-failed", *sorted(removed))
    return result


def _check(names: Sequence[str], options: Mapping[str, Any]) -> None:
    for name in names:
        if not valid_name(name):
            raise NodenetError(f"Cannot free addresses of network {name!r} by a timer: that is no name of a network")
    for key in ("unit_dir", "settings_dir", "program_dir"):
        value = options[key]
        if not value.isprintable() or set(value) & set(" %$\"'\\;"):
            raise NodenetError(f"Cannot use {key} {value!r}: it cannot stand in a unit of systemd as it is")
    calendar = options["on_calendar"]
    if not calendar.isprintable():
        raise NodenetError(f"Cannot use on_calendar {calendar!r}: it is not one line of text")
    if names and not calendar and not options["boot"]:
        raise NodenetError(
            "Cannot free addresses at no time at all: set on_calendar or boot, or leave networks empty "
            "(roles: reclaim_timer_on_calendar, reclaim_timer_boot, reclaim_timer_networks)"
        )
    analyze = systemd.find_program("systemd-analyze")
    if calendar and analyze:
        done = systemd.call(analyze, "calendar", calendar)
        if done.returncode:
            raise NodenetError(f"Cannot use on_calendar {calendar!r}: {systemd.said(done)}")


def _refuse_static(names: Sequence[str], options: Mapping[str, Any]) -> None:
    found, _facts = definitions.all_networks(options["conf_dir"], options["flannel_subnet_file"])
    data_dirs = {one.name: options["data_dir"] or one.data_dir for one in found}
    for name in names:
        if name not in data_dirs:  # it may come later
            continue
        try:
            with Store(data_dirs[name], name, create=False) as store, store.lock(options["lock_timeout"]):
                held = [one for one in store.snapshot().reservations if one.static]
        except (StoreError, LockTimeout) as error:
            raise NodenetError(f"Cannot tell whether network {name} holds static reservations: {error}") from None
        if held:
            shown = short_list(f"{one.name} of {label(one.container_id)}" for one in held)
            raise NodenetError(
                f"Cannot free addresses of network {name} by a timer: it holds static reservations ({shown}), which "
                "are never freed; set with_static=true if the others shall be freed there without anybody looking "
                "(roles: reclaim_timer_with_static)"
            )


def _places(names: Sequence[str], options: Mapping[str, Any]) -> list[Place]:
    units, settings = options["unit_dir"], options["settings_dir"]
    program = ""
    wanted: dict[str, bytes | str] = {}
    if names:
        if not options["program_sources"]:
            raise NodenetError(
                "Cannot install the program that frees addresses: its code did not come with the task; its action "
                "plugin sends it, so run it as nodenet.cni.host_local_gc_timer"
            )
        code = archive(unpack(options["program_sources"]))
        program = os.path.join(options["program_dir"], f"reclaim-{hashlib.sha256(code).hexdigest()[:16]}.pyz")
        wanted[program] = code
    for name in names:
        unit = os.path.join(units, systemd.PREFIX + name)
        path = os.path.join(settings, f"{name}.json")
        own = {"networks": [name], **{key: options[key] for key in OPTIONS}}
        document = {"options": own, "wait_s": _WAIT_S, "with_static": options["with_static"]}
        wanted[path] = (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()
        words = {"head": HEAD, "network": name, "program": program, "settings": path}
        words.update(python=executables.node_python(), calendar=options["on_calendar"])
        words["runtimes"] = " ".join(f"{one}.service" for one in _RUNTIMES)
        wanted[f"{unit}.service"] = _SERVICE.format(**words, **_AT_OTHER_TIMES).encode()
        if options["boot"]:
            wanted[unit + _BOOT] = _SERVICE.format(**words, **_AT_BOOT).encode()
            wanted[os.path.join(units, "multi-user.target.wants", systemd.PREFIX + name + _BOOT)] = unit + _BOOT
        if options["on_calendar"]:
            wanted[f"{unit}.timer"] = _TIMER.format(**words).encode()
            wanted[os.path.join(units, "timers.target.wants", f"{systemd.PREFIX}{name}.timer")] = f"{unit}.timer"
    # links come last and go first, so that nothing names what is not there
    order = sorted(wanted, key=lambda path: (isinstance(wanted[path], str), path))
    places = [Place(path, wanted[path]) for path in order]
    gone = [path for path in _ours(units, settings) if path not in wanted]
    gone += _old_programs(options["program_dir"], program, [path for path in gone + order if _is_unit(path)])
    return [*(Place(path, None) for path in gone), *places]


def _ours(units: str, settings: str) -> list[str]:
    """Return what earlier runs have put there, links first."""
    found = []
    for folder in (os.path.join(units, "multi-user.target.wants"), os.path.join(units, "timers.target.wants"), units):
        for name in _names(folder):
            path = os.path.join(folder, name)
            own = os.path.join(units, name)
            if _is_unit(path) and _is_unit(own) and _text(_present(own)).startswith(HEAD):
                found.append(path)
    unit_names = {os.path.basename(path)[len(systemd.PREFIX) :].rpartition(".")[0] for path in found}
    for name in sorted({one.partition("@")[0] for one in unit_names}):
        path = os.path.join(settings, f"{name}.json")
        if _are_settings(path):
            found.append(path)
    return found


def _old_programs(folder: str, program: str, units: Sequence[str]) -> list[str]:
    """Return the programs to remove: all if none is wanted, else those before the one that the units name, if that is
    another than the one that is wanted."""
    paths = [os.path.join(folder, name) for name in _names(folder) if _PROGRAM.fullmatch(name)]
    found = [path for path in paths if os.path.isfile(path)]
    texts = [_text(_present(path)) for path in units]
    named = {path for path in found if any(f" {path} " in text for text in texts)}
    if not program:
        return found
    return [] if program in named else [path for path in found if path != program and path not in named]


def _is_unit(path: str) -> bool:
    """Tell whether a path may be a unit of ours, or a link to one; directories with drop-ins begin like it."""
    return systemd.is_name(path) and (os.path.islink(path) or os.path.isfile(path))


def _are_settings(path: str) -> bool:
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as stream:
            found = json.loads(stream.read())
    except ValueError:
        return False
    return isinstance(found, dict) and {"options", "wait_s"} <= set(found)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def archive(sources: Mapping[str, str]) -> bytes:
    """Return the program: a file that Python runs, the same bytes for the same sources."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as zipped:
        texts = {"__main__.py": _MAIN, f"{PACKAGE}/__init__.py": ""}
        texts.update({f"{PACKAGE}/{path}": text for path, text in sources.items()})
        for path in sorted(texts):
            zipped.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), texts[path])
    return stream.getvalue()


def _present(path: str) -> bytes | str | None:
    if os.path.islink(path):
        return os.readlink(path)
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def _text(content: bytes | str | None) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return f"link to {content}\n"
    if content[:2] == b"PK":
        return f"program of {len(content)} bytes\n"
    return content.decode("utf-8", "replace")
