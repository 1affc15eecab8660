# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Freeing leaked addresses by timers: the units that are installed, and the program as systemd would run it."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from reclaim_node import Node, Runtime, sandbox

A, B, C, D = (sandbox(number) for number in range(4))
ROOT = Path(__file__).resolve().parents[2]
BOOT = "nodenet-reclaim-net@boot.service"
LINKS = (f"multi-user.target.wants/{BOOT}", "timers.target.wants/nodenet-reclaim-net.timer")


@functools.lru_cache(maxsize=None)
def code(release: int = 0):
    """The code of the program as the action plugin sends it; of a later release nothing is where it was."""
    from ansible_collections.nodenet.cni.plugins.module_utils.node import closure, embedded, reclaim_timer

    sources = closure.collect(str(ROOT / "plugins" / "module_utils"), [reclaim_timer.ENTRY])
    return embedded.pack({path: "#" * 1000 * release + "\n" * release + text for path, text in sources.items()})


class Timed(Node):
    """A node with a directory for units; the program runs with the Python of the tests."""

    def __init__(self, base) -> None:
        super().__init__(base)
        self.units = self.base / "units"
        self.settings = self.base / "settings"
        self.programs = self.base / "lib"

    def asked(self, *networks: str, **more: object) -> dict:
        options = {
            "networks": list(networks),
            "on_calendar": "hourly",
            "boot": True,
            "with_static": False,
            "apply": False,
            "unit_dir": str(self.units),
            "settings_dir": str(self.settings),
            "program_dir": str(self.programs),
            "program_sources": code(),
        }
        return dict(self.options(), **dict(options, **more))

    def schedule(self, *networks: str, check_mode: bool = False, **more: object) -> dict:
        from ansible_collections.nodenet.cni.plugins.module_utils.node.reclaim_timer import schedule

        return schedule(self.asked(*networks, **more), check_mode)

    def command(self, network: str = "net") -> list[str]:
        """What the service of a network runs."""
        text = (self.units / f"nodenet-reclaim-{network}.service").read_text()
        (line,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
        return shlex.split(line[len("ExecStart=") :])

    def program(self) -> Path:
        return Path(self.command()[2])

    def main(self) -> int:
        """Run the program in this process."""
        from ansible_collections.nodenet.cni.plugins.module_utils.node.reclaim_program import main

        self._wait(0.0)
        return main([str(self.settings / "net.json")])

    def _wait(self, wait_s: float, network: str = "net") -> None:
        path = self.settings / f"{network}.json"
        path.write_text(json.dumps(dict(json.loads(path.read_text()), wait_s=wait_s)))

    def run(self, network: str = "net", wait_s: float = 0.0) -> subprocess.CompletedProcess:
        self._wait(wait_s, network)
        # as in a service of systemd: no locale, hardly any variables
        environment = {"PATH": os.environ["PATH"]}
        return subprocess.run(
            self.command(network), capture_output=True, text=True, env=environment, cwd="/", check=False, timeout=60
        )


@pytest.fixture
def node(tmp_path, monkeypatch):
    from ansible_collections.nodenet.cni.plugins.module_utils.node import executables

    # the interpreter of the tests lies in an environment of its own, and of a node's none may
    monkeypatch.setattr(executables, "node_python", lambda: sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    made = Timed(tmp_path)
    made.network()
    try:
        yield made
    finally:
        made.close()


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def actions(result):
    return {os.path.basename(one["path"]): one["action"] for one in result["files"]}


# --- the units


def test_check_apply_again_and_away(node):
    predicted = node.schedule("net", check_mode=True)
    assert listing(node.base) == ["net.d/net.conflist"]
    result = node.schedule("net")
    assert result == predicted
    assert result["changed"]
    assert set(actions(result).values()) == {"created"}
    assert listing(node.units) == sorted([*LINKS, BOOT, "nodenet-reclaim-net.service", "nodenet-reclaim-net.timer"])
    for link in LINKS:
        assert (node.units / link).resolve() == node.units / os.path.basename(link)
    (program,) = node.programs.iterdir()
    for path in (program, node.settings / "net.json", node.units / "nodenet-reclaim-net.timer"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
    again = node.schedule("net")
    assert not again["changed"]
    assert set(actions(again).values()) == {"unchanged"}

    other = node.schedule("other", on_calendar="Sun 03:00", boot=False)
    assert actions(other)["nodenet-reclaim-net.service"] == "removed"
    assert listing(node.units) == [
        "nodenet-reclaim-other.service",
        "nodenet-reclaim-other.timer",
        "timers.target.wants/nodenet-reclaim-other.timer",
    ]
    assert "OnCalendar=Sun 03:00\n" in (node.units / "nodenet-reclaim-other.timer").read_text()
    assert "[Install]" not in (node.units / "nodenet-reclaim-other.service").read_text()
    assert listing(node.settings) == ["other.json"]

    (node.units / "nodenet-reclaim-mine.timer").write_text("[Timer]\nOnCalendar=daily\n")
    assert node.schedule()["changed"]
    assert listing(node.units) == ["nodenet-reclaim-mine.timer"]
    assert not node.settings.exists()
    assert not node.programs.exists()
    assert not node.schedule()["changed"]


def test_at_boot_alone_there_is_no_timer(node):
    node.schedule("net", on_calendar="")
    assert listing(node.units) == [LINKS[0], "nodenet-reclaim-net.service", BOOT]
    node.schedule("net")
    node.schedule("net", boot=False)
    assert listing(node.units) == [
        "nodenet-reclaim-net.service",
        "nodenet-reclaim-net.timer",
        LINKS[1],
    ]


def test_only_the_unit_of_the_boot_holds_up_a_kubelet(node):
    """Or a kubelet that is started anew waits for a run of the timer."""
    node.schedule("net")
    boot, other = ((node.units / name).read_text() for name in (BOOT, "nodenet-reclaim-net.service"))
    assert [line for line in boot.splitlines() if line not in other.splitlines()] == [
        *("Before=kubelet.service", "[Install]", "WantedBy=multi-user.target"),
    ]
    assert "kubelet" not in other


def test_a_network_named_like_a_unit_has_its_own(node):
    node.schedule("net", "net-boot", "net.boot")
    assert len(listing(node.settings)) == 3
    assert len(listing(node.units)) == 15
    node.schedule("net")
    assert listing(node.settings) == ["net.json"]
    assert listing(node.units) == sorted([*LINKS, BOOT, "nodenet-reclaim-net.service", "nodenet-reclaim-net.timer"])


def test_drop_ins_and_whatever_else_begins_like_a_unit_stay(node):
    node.schedule("net")
    drop_in = node.units / "nodenet-reclaim-net.service.d" / "nice.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nNice=10\n")
    (node.units / "nodenet-reclaim-x.service").mkdir()
    os.mkfifo(node.units / "nodenet-reclaim-y.timer")
    copy = node.units / "nodenet-reclaim-net.service.orig"
    shutil.copy(node.units / "nodenet-reclaim-net.service", copy)
    assert not node.schedule("net")["changed"]
    assert set(actions(node.schedule()).values()) == {"removed"}
    assert sorted(path.name for path in node.units.iterdir()) == [
        *("nodenet-reclaim-net.service.d", copy.name, "nodenet-reclaim-x.service", "nodenet-reclaim-y.timer"),
    ]
    assert drop_in.exists()


def test_only_settings_of_ours_are_removed(node):
    node.schedule("net", "other")
    for name in ("net.orig", "net.jsonx", "net", "notes.json"):
        (node.settings / name).write_text("mine")
    (node.settings / "other.json").write_text('{"of": "somebody else"}')
    node.schedule()
    assert listing(node.settings) == ["net", "net.jsonx", "net.orig", "notes.json", "other.json"]


def test_systemd_takes_the_units(node, monkeypatch):
    analyze = shutil.which("systemd-analyze", path="/usr/bin:/bin")
    if analyze is None:
        pytest.skip("not run: there is no systemd-analyze")
    node.schedule("net")
    units = [str(path) for path in node.units.glob("nodenet-reclaim-net*")]
    done = subprocess.run(
        [analyze, "--recursive-errors=no", "verify", *units], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(Exception, match="Cannot use on_calendar 'noon-ish'"):
        node.schedule("net", on_calendar="noon-ish")


@pytest.mark.parametrize(
    ("networks", "more", "reason"),
    [
        (["../x"], {}, "that is no name of a network"),
        (["net"], {"on_calendar": "", "boot": False}, "at no time at all"),
        (["net"], {"on_calendar": "daily\n[Service]\nExecStart=/bin/sh"}, "it is not one line of text"),
        (["net"], {"settings_dir": "/etc/a b"}, "cannot stand in a unit"),
        (["net"], {"unit_dir": "/etc/%n"}, "cannot stand in a unit"),
        (["net"], {"program_sources": None}, "its code did not come with the task"),
        (["net"], {"apply": True}, "systemd does not run it; set apply=false"),
    ],
)
def test_bad_input_changes_nothing(node, networks, more, reason):
    with pytest.raises(Exception, match=reason):
        node.schedule(*networks, **more)
    assert listing(node.base) == ["net.d/net.conflist"]


def test_a_network_with_static_reservations_is_refused_unless_asked_for(node):
    node.hold("192.0.2.9", "static.web")
    with pytest.raises(Exception, match=r"static reservations \(192.0.2.9 of web\)"):
        node.schedule("net")
    assert not node.units.exists()
    node.schedule("net", with_static=True)
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    assert node.run().returncode == 0
    assert node.held() == ["192.0.2.2", "192.0.2.9"]


@pytest.fixture
def systemctl(node, monkeypatch):
    """A node whose systemctl notes what it is asked, says that timers run once they were started, and that it has to
    read units again while there is a file "stale"; what begins with the words in FAILS fails."""
    from ansible_collections.nodenet.cni.plugins.module_utils.node import reclaim_systemd

    log = node.base / "asked"
    path = node.base / "programs" / "systemctl"
    path.parent.mkdir()
    path.write_text(f"""#!/bin/sh
        case "$1" in
        is-active) exec /bin/grep -qx "restart $3" {log} ;;
        show)
            case "$*" in *Fragment*) [ ! -e {node.base}/loaded ] || exec /bin/cat {node.base}/loaded; exit 0 ;; esac
            echo NeedDaemonReload=no; [ ! -e {node.base}/stale ] || echo NeedDaemonReload=yes; exit 0 ;;
        esac
        echo "$@" >> {log}
        case "$*" in "${{FAILS:-none}}"*) echo "no such luck"; exit 1 ;; esac
        [ "$1" != daemon-reload ] || exec /bin/rm -f {node.base}/stale
    """)
    path.chmod(0o755)
    log.write_text("")
    monkeypatch.setattr(reclaim_systemd, "RUNNING", str(node.base))
    return log


def test_what_systemd_is_told(node, systemctl):
    assert node.schedule("net", apply=True, check_mode=True)["started"] == ["nodenet-reclaim-net.timer"]
    assert systemctl.read_text() == ""
    node.schedule("net", apply=True)
    assert systemctl.read_text().splitlines() == ["daemon-reload", "restart nodenet-reclaim-net.timer"]
    assert not node.schedule("net", apply=True)["changed"]
    # somebody stopped it
    systemctl.write_text("")
    result = node.schedule("net", apply=True)
    assert (result["changed"], result["started"]) == (True, ["nodenet-reclaim-net.timer"])
    assert systemctl.read_text() == "restart nodenet-reclaim-net.timer\n"
    assert node.schedule(apply=True)["stopped"] == ["nodenet-reclaim-net.timer"]
    assert systemctl.read_text().splitlines()[1:] == [
        "stop nodenet-reclaim-net.timer",
        "daemon-reload",
        f"reset-failed nodenet-reclaim-net.service nodenet-reclaim-net.timer {BOOT}",
    ]


def test_units_that_systemd_has_not_read_yet_are_read_and_timers_started_anew(node, systemctl):
    """A run that was killed between writing and telling, or one with apply=false, has left it so."""
    node.schedule("net", apply=True)
    node.schedule("net", on_calendar="daily")
    (node.base / "stale").touch()
    before = systemctl.read_text()
    predicted = node.schedule("net", on_calendar="daily", apply=True, check_mode=True)
    assert systemctl.read_text() == before
    assert predicted["changed"]
    systemctl.write_text(before)
    assert node.schedule("net", on_calendar="daily", apply=True) == predicted
    assert (predicted["reloaded"], predicted["started"]) == (True, ["nodenet-reclaim-net.timer"])
    assert set(actions(predicted).values()) == {"unchanged"}
    assert systemctl.read_text()[len(before) :].splitlines() == ["daemon-reload", "restart nodenet-reclaim-net.timer"]
    assert not node.schedule("net", on_calendar="daily", apply=True)["changed"]


def test_a_timer_that_runs_without_its_file_is_stopped(node, systemctl):
    """Its file went with apply=false, or a run was killed before it told systemd."""
    node.schedule("net", apply=True)
    state = "\n\n".join(
        f"Id=nodenet-reclaim-{name}.timer\nActiveState={active}\nFragmentPath={node.units}/nodenet-reclaim-{name}.timer"
        for name, active in (("gone", "active"), ("net", "active"), ("over", "inactive"))
    )
    (node.base / "loaded").write_text(f"{state}\n")
    asked = systemctl.read_text()
    result = node.schedule("net", apply=True)
    assert (result["changed"], result["stopped"], result["started"]) == (True, ["nodenet-reclaim-gone.timer"], [])
    assert systemctl.read_text()[len(asked) :].splitlines() == [
        *("stop nodenet-reclaim-gone.timer", "daemon-reload"),
        "reset-failed nodenet-reclaim-gone.service nodenet-reclaim-gone.timer",
    ]
    (node.base / "loaded").unlink()
    assert not node.schedule("net", apply=True)["changed"]


def test_nothing_to_remove_needs_no_systemd(node):
    assert not node.schedule(apply=True)["changed"]
    node.schedule("net")
    with pytest.raises(Exception, match="systemd does not run it"):
        node.schedule(apply=True)


def test_a_failure_of_removed_units_is_forgotten_if_it_can_be(node, systemctl, monkeypatch):
    node.schedule("net", apply=True)
    monkeypatch.setenv("FAILS", "reset-failed")
    assert node.schedule(apply=True)["changed"]
    assert systemctl.read_text().splitlines()[-1].startswith("reset-failed ")
    assert listing(node.units) == []


def test_what_was_stopped_and_started_is_taken_back_too(node, systemctl, monkeypatch):
    node.schedule("net", "old", apply=True)
    systemctl.write_text("restart nodenet-reclaim-net.timer\nrestart nodenet-reclaim-old.timer\n")
    asked = len(systemctl.read_text())
    monkeypatch.setenv("FAILS", "restart nodenet-reclaim-other.timer")
    with pytest.raises(Exception, match="no such luck; the units are as they were before"):
        node.schedule("net", "other", apply=True, on_calendar="daily")
    assert systemctl.read_text()[asked:].splitlines() == [
        *("stop nodenet-reclaim-old.timer", "daemon-reload"),
        *("restart nodenet-reclaim-net.timer", "restart nodenet-reclaim-other.timer"),
        *("daemon-reload", "stop nodenet-reclaim-other.timer"),
        *("restart nodenet-reclaim-net.timer", "start nodenet-reclaim-old.timer"),
    ]
    assert "OnCalendar=hourly" in (node.units / "nodenet-reclaim-net.timer").read_text()


def test_what_cannot_be_undone_is_named(node, systemctl, monkeypatch):
    node.schedule("net", apply=True)
    monkeypatch.setenv("FAILS", "restart")
    with pytest.raises(Exception, match="no such luck; this could not be undone: restart nodenet-reclaim-net.timer$"):
        node.schedule("net", apply=True, on_calendar="daily")


@pytest.mark.parametrize("verb", ["daemon-reload", "restart"])
def test_what_systemd_refuses_is_taken_back(node, systemctl, monkeypatch, verb):
    node.schedule("net")
    before = {path: path.read_bytes() for path in node.base.rglob("*") if path.is_file() and path != systemctl}
    monkeypatch.setenv("FAILS", verb)
    with pytest.raises(Exception, match=f"Cannot {verb}.* with systemctl: no such luck; the units are as they were"):
        node.schedule("net", "other", apply=True, on_calendar="daily")
    assert {path: path.read_bytes() for path in before} == before
    assert listing(node.settings) == ["net.json"]


# --- the program


def test_it_frees_what_leaked_and_says_so(node):
    node.schedule("net")
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.hold("192.0.2.4", C, age_s=5)
    done = node.run()
    assert (done.returncode, done.stderr) == (0, "")
    first, last = done.stdout.splitlines()
    assert first == f"net: freed 192.0.2.3, was held by {B} eth0 for 25 hours"
    assert last.startswith("net: freed 1, kept 2 (1 alive, 1 young); restore with run id ")
    assert node.held() == ["192.0.2.2", "192.0.2.4"]
    assert [one["address"] for one in node.restore(last.rpartition(" ")[2])["added"]] == ["192.0.2.3"]


def test_what_was_restored_the_timer_leaves_alone_and_who_is_at_the_keyboard_may_free_it(node):
    node.schedule("net")
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.hold("192.0.2.4", b"")
    run_id = node.run().stdout.split()[-1]
    assert node.held() == ["192.0.2.2"]
    node.restore(run_id, check_mode=True)
    assert not list((node.state_dir / "reclaimed").glob("*.restored"))
    node.restore(run_id)
    node.hold("192.0.2.5", C)
    said = node.run().stdout.splitlines()
    assert node.held() == ["192.0.2.2", "192.0.2.3", "192.0.2.4"]
    assert said[1] == "net: left alone, restored by hand: 192.0.2.3, 192.0.2.4"
    assert said[2].startswith("net: freed 1, kept 3 (1 alive, 2 restored); ")
    # its next holder is nobody whom somebody restored
    node.hold("192.0.2.3", D)
    node.run()
    assert node.held() == ["192.0.2.2", "192.0.2.4"]
    assert [one["address"] for one in node.gc()["removed"]] == ["192.0.2.4"]


def test_a_note_of_what_was_restored_that_cannot_be_read_frees_nothing(node, capsys):
    node.schedule("net")
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    (node.state_dir / "reclaimed").mkdir(parents=True)
    (node.state_dir / "reclaimed" / "x.restored").write_text('[["net"]]')
    assert node.main() == 1
    assert "Cannot tell what was restored" in capsys.readouterr().err
    assert node.held() == ["192.0.2.2", "192.0.2.3"]


def test_a_run_in_flight_keeps_its_program(node):
    node.schedule("net")
    node.containerd(A)
    node.runtime.before = functools.lru_cache(maxsize=None)(lambda: node.schedule("net", program_sources=code(1)))
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.hold("192.0.2.4", "my-container")
    done = node.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("IPAM024 ")
    assert node.held() == ["192.0.2.2", "192.0.2.4"]
    both = set(node.programs.iterdir())
    assert len(both) == 2
    assert not node.schedule("net", program_sources=code(1))["changed"]
    before = node.program()
    (older,) = both - {before}
    assert actions(node.schedule("net", program_sources=code(2)))[older.name] == "removed"
    assert set(node.programs.iterdir()) == {before, node.program()}
    node.schedule()
    assert not node.programs.exists()


def test_what_was_freed_is_said_before_anything_else_can_fail(node, monkeypatch, capsys):
    from ansible_collections.nodenet.cni.plugins.module_utils import node as package

    node.schedule("net")
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.hold("192.0.2.4", "my-container")
    monkeypatch.delattr(package, "findings", raising=False)
    monkeypatch.setitem(sys.modules, f"{package.__name__}.findings", None)
    with pytest.raises(ImportError):
        node.main()
    assert "net: freed 192.0.2.3" in capsys.readouterr().out
    assert node.held() == ["192.0.2.2", "192.0.2.4"]


def test_nothing_to_do_is_one_line(node):
    node.schedule("net")
    node.containerd(A)
    node.hold("192.0.2.2", A)
    assert node.run().stdout == "net: freed 0, kept 1 (1 alive)\n"


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda node: node.containerd(A, up=False), "does not answer"),
        (lambda node: None, "no container runtime was found"),
        (lambda node: node.containerd(C), "none of the reservations older than the grace age is known"),
        (lambda node: (node.containerd(A), node.conf_dir.joinpath("net.conflist").unlink()), "no file defines it"),
        (
            lambda node: (node.settings / "net.json").write_text('{"options": {"networks": ["net"]}, "wait_s": 0}'),
            "Key",
        ),
    ],
)
def test_a_doubt_fails_the_unit_and_frees_nothing(node, capsys, prepare, reason):
    node.schedule("net", grace=1.0)
    node.hold("192.0.2.2", A, age_s=30)  # this machine was booted before that
    node.hold("192.0.2.3", B, age_s=30)
    prepare(node)
    assert node.main() == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert reason in said.err
    assert said.err.count("\n") == 1
    assert node.held() == ["192.0.2.2", "192.0.2.3"]


def test_a_runtime_that_needs_a_moment_after_the_boot_is_waited_for(node):
    node.schedule("net")
    node.containerd(A, up=False)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)

    def start():
        node.runtime = Runtime(node.state / "containerd.sock", [A])

    later = threading.Timer(1.0, start)
    later.start()
    try:
        assert node.run(wait_s=20).returncode == 0
    finally:
        later.join()
    assert node.held() == ["192.0.2.2"]


def test_after_a_boot_what_was_there_before_goes(node):
    node.schedule("net")
    node.containerd(A)
    for last in (2, 3):
        node.hold(f"192.0.2.{last}", sandbox(last), age_s=time.time() - 1000)
    node.reboot()
    node.containerd()
    assert node.main() == 0
    assert node.held() == []


def test_a_network_that_got_a_static_reservation_since_is_left_alone(node):
    node.schedule("net")
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", B)
    node.hold("192.0.2.9", "static.web")
    done = node.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "net: left alone, it holds static reservations: 192.0.2.9 of web\n"
    assert node.held() == ["192.0.2.2", "192.0.2.3", "192.0.2.9"]


def journal_of(node, days: float, by: str = "timer", mtime_days: float | None = None) -> str:
    """Leave the journal of a run so many days ago; return its name."""
    when = time.time() - days * 86400
    path = node.state_dir / "reclaimed" / time.strftime("%Y%m%dT%H%M%SZ-0a0a0a.json", time.gmtime(when))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"by": by}))
    os.utime(path, (time.time() - (days if mtime_days is None else mtime_days) * 86400,) * 2)
    return path.name


def test_what_runs_by_itself_does_not_fill_the_disk(node, monkeypatch):
    from ansible_collections.nodenet.cni.plugins.module_utils.node import reclaim_journal

    monkeypatch.setattr(reclaim_journal, "KEEP", 3)
    node.schedule("net")
    node.containerd(A)
    node.hold("192.0.2.2", A)
    folder = node.state_dir / "reclaimed"
    stay = {journal_of(node, days) for days in (1, 89)}
    stay |= {journal_of(node, 300, by="module"), journal_of(node, 301, mtime_days=1)}
    stay |= {"notes", "20200101T000000Z-0b0b0b.json", "mine.json"}
    go = {journal_of(node, days) for days in (91, 92, 400)}
    (folder / "notes").write_text("mine")
    for name in ("20200101T000000Z-0b0b0b.json", "mine.json"):
        (folder / name).write_text("{")
        os.utime(folder / name, (1e9, 1e9))
    assert node.main() == 0  # nothing freed: nothing to do
    assert {path.name for path in folder.iterdir()} == stay | go
    node.hold("192.0.2.3", B)
    assert node.main() == 0
    (own,) = {path.name for path in folder.iterdir()} - stay
    assert own not in go
    assert json.loads((folder / own).read_text())["by"] == "timer"
    node.hold("192.0.2.3", B)
    by_hand = node.gc()["journal"]
    assert json.loads(Path(by_hand).read_text())["by"] == "module"


@pytest.mark.parametrize(("days", "mtime_days"), [(-1, 5), (5, -1)])
def test_a_clock_that_cannot_be_right_prunes_nothing(node, monkeypatch, days, mtime_days):
    from ansible_collections.nodenet.cni.plugins.module_utils.node import reclaim_journal

    monkeypatch.setattr(reclaim_journal, "KEEP", 1)
    old = journal_of(node, 400)
    future = journal_of(node, days, mtime_days=mtime_days)
    assert reclaim_journal.prune(str(node.state_dir), time.time()) == 0
    (node.state_dir / "reclaimed" / future).unlink()
    journal_of(node, 1)
    assert reclaim_journal.prune(str(node.state_dir), time.time()) == 1
    assert not (node.state_dir / "reclaimed" / old).exists()


def test_an_id_writes_no_line_of_its_own_in_the_log(node):
    node.schedule("net")
    node.containerd(A)
    node.hold("192.0.2.2", A)
    node.hold("192.0.2.3", "static.x\x1b[2J\u202e\x85y")
    done = node.run()
    assert done.returncode == 0
    assert done.stdout == "net: left alone, it holds static reservations: 192.0.2.3 of x\\x1b[2J\\u202e\\x85y\n"
