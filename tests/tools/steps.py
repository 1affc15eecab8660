# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of the Makefile's targets. A step is one row of the summary, or one for each interpreter or core."""

from __future__ import annotations

import functools
import glob
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import packages
import pythons
import staging
import venvs

ROOT = venvs.ROOT
LIBRARY = "tests/unit/plugins/module_utils"
SCENARIOS = os.path.join(ROOT, "extensions", "molecule", "*", "molecule.yml")
FLOORS = ("cni", "host_local", "multus", "node")
# the oldest and the newest Python of a target
ENDS = ((3, 8), (3, 13))
# what ansible-test may leave out: interpreters that this machine does not have
HARMLESS = re.compile(r"on Python \d\.\d+ because it could not be found|on Python \d\.\d+ due to missing interpreter")
WARNING = re.compile(r"^WARNING: (.*\b(?:[Ss]kip|[Ee]xclud)\w*\b.*)$", re.MULTILINE)
# labels of Ansible's own guides: they cannot be resolved without fetching that site's index
OUTSIDE_LABEL = re.compile(
    r"undefined label: '(ansible_collections\.ansible\.|ansible_(?!collections)|common_return|action_plugins)"
)
# what pip says while ansible-test fills its environments
CHATTER = re.compile(
    r"\s*(Collecting |Downloading |Processing |Preparing metadata|Building wheel|Installing collected|Looking in "
    r"|Successfully installed|Successfully uninstalled|Using cached |Requirement already|Attempting uninstall"
    r"|Found existing|Uninstalling |\u2501|WARNING: Location |\[notice\])"
)


class NotRun(Exception):
    """This machine cannot run the row; the text says why."""


class Failed(Exception):
    """The row ran and is red; the text says what to look at."""


def in_ci() -> bool:
    return os.environ.get("CI") == "true"


@functools.lru_cache(maxsize=None)
def base() -> str:
    return venvs.ensure("base", pythons.base())


@functools.lru_cache(maxsize=None)
def newest() -> tuple[str, str]:
    """The environment with the newest ansible-core and the version of its interpreter."""
    fitting = [version for version in pythons.find() if (3, 12) <= version <= (3, 14)]
    if not fitting:
        raise NotRun("ansible-core 2.21 needs Python 3.12 or newer, and this machine has none")
    return venvs.ensure("newest", pythons.find()[fitting[-1]]), "%d.%d" % fitting[-1]


@functools.lru_cache(maxsize=None)
def oldest() -> tuple[str, str]:
    """The environment with the oldest supported ansible-core and the version of its interpreter."""
    fitting = [version for version in pythons.find() if (3, 10) <= version <= (3, 12)]
    if not fitting:
        raise NotRun("ansible-core 2.16 needs Python 3.10, 3.11 or 3.12, and this machine has none")
    return venvs.ensure("oldest", pythons.find()[fitting[-1]]), "%d.%d" % fitting[-1]


def environment(venv: str, **extra: str) -> dict[str, str]:
    link = staging.link()
    settings = {
        "PATH": pythons.search_path(os.path.join(venv, "bin")),
        "PYTHONPATH": link,
        "MYPYPATH": link,
        "ANSIBLE_COLLECTIONS_PATH": link,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return venvs.clean_environment(**dict(settings, **extra))


def call(venv: str, *command: str, cwd: str = ROOT, keep: bool = False, limit_s: int = 900, **extra: str) -> str:
    """Run a tool of an environment, its output on the terminal; with `keep` the output is returned too.

    After `limit_s` seconds the tool and what it started are ended, and the row is red.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment(venv, **extra),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if keep else None,
        stderr=subprocess.STDOUT if keep else None,
        start_new_session=True,
    )
    overdue = threading.Event()

    def end() -> None:
        overdue.set()
        os.killpg(process.pid, signal.SIGKILL)

    watchdog = threading.Timer(limit_s, end)
    watchdog.start()
    seen = []
    try:
        for line in process.stdout or ():
            text = line.decode(errors="replace")
            seen.append(text)
            if not CHATTER.match(text):
                sys.stdout.write(text)
                sys.stdout.flush()
        code = process.wait()
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
        raise
    finally:
        watchdog.cancel()
    if overdue.is_set():
        raise Failed("`%s` was still running after %d s" % (" ".join(command[:3]), limit_s))
    if code:
        raise Failed("`%s` ended with code %d" % (" ".join(command[:3]), code))
    return "".join(seen)


def present(*paths: str) -> list[str]:
    return [path for path in paths if os.path.exists(os.path.join(ROOT, path))]


def pytest(venv: str, paths: list[str], *arguments: str, **extra: str) -> None:
    if not paths:
        raise Failed("there are no tests of this kind in the tree")
    call(venv, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, *paths, **extra)


# --- one function a step; each takes the extra arguments of the command line


def system(_arguments: list[str]) -> str:
    """What the tests use of the distribution; in CI on Debian the Go plugins must be there."""
    problem = packages.ensure(*packages.DEBIAN)
    if problem is None:
        return "Go plugins, iproute2, shellcheck, strace"
    if in_ci() and os.path.exists("/etc/debian_version"):
        raise Failed(problem)
    raise NotRun(problem)


def venv(_arguments: list[str]) -> str:
    staging.link()
    print("export PATH=%s/bin:$PATH PYTHONPATH=.dev ANSIBLE_COLLECTIONS_PATH=$PWD/.dev" % base())
    return base()


def ruff(arguments: list[str]) -> None:
    call(base(), "ruff", "check", "--no-cache", *(arguments or ["."]))


def ruff_format(arguments: list[str]) -> None:
    call(base(), "ruff", "format", "--no-cache", "--check", *(arguments or ["."]))


def mypy(_arguments: list[str]) -> None:
    cache = os.path.join(venvs.cache(), "mypy")
    plugins = os.path.join(staging.link(), staging.COLLECTION, "plugins")
    call(base(), "mypy", "--config-file", ".mypy.ini", "--cache-dir", cache, plugins)


def yamllint(_arguments: list[str]) -> None:
    call(base(), "yamllint", "-s", ".")


def ansible_lint(arguments: list[str]) -> None:
    call(base(), "ansible-lint", "--offline", "--nocolor", *arguments)


def changelog(_arguments: list[str]) -> None:
    call(base(), "antsibull-changelog", "lint")


def docs_lint(_arguments: list[str]) -> None:
    options = ["--plugin-docs", "--validate-collection-refs=all", "--disallow-unknown-collection-refs"]
    call(base(), "antsibull-docs", "lint-collection-docs", *options, "--check-extra-docs-refs", ".")


def docs(_arguments: list[str]) -> str:
    """The HTML of plugins, roles and guides; every warning is an error, but for labels of Ansible's own site."""
    target = os.path.join(ROOT, "build", "docs")
    call(base(), "rm", "-rf", target)
    os.makedirs(target)
    options = ["--use-current", "--squash-hierarchy", "--fail-on-error", "--lenient", "--dest-dir", target]
    call(base(), "antsibull-docs", "sphinx-init", *options, "nodenet.cni")
    with open(os.path.join(target, "conf.py"), "a", encoding="utf-8") as stream:
        stream.write("\nintersphinx_mapping = {}\n")
    text = call(base(), "bash", os.path.join(target, "build.sh"), keep=True)
    wrong = [
        line
        for line in text.splitlines()
        if ("WARNING" in line or "ERROR" in line) and not OUTSIDE_LABEL.search(line) and "intersphinx" not in line
    ]
    if wrong:
        raise Failed("%d warnings of Sphinx, the first: %s" % (len(wrong), wrong[0].strip()))
    return os.path.join("build", "docs", "build", "html", "index.html")


def build(_arguments: list[str]) -> str:
    """The archive for ansible-galaxy, from the files that git knows."""
    with staging.copy() as staged:
        text = call(
            base(),
            *("ansible-galaxy", "collection", "build", "--force", "--output-path", os.path.join(ROOT, "dist"), staged),
            keep=True,
        )
    return os.path.join("dist", os.path.basename(text.strip().rsplit(" ", 1)[-1]))


def importer(_arguments: list[str]) -> None:
    """What Galaxy checks before it takes an archive."""
    archive = os.path.join(ROOT, build([]))
    with tempfile.TemporaryDirectory(prefix="nodenet-cni-importer-") as folder:
        config = os.path.join(folder, "importer.cfg")
        with open(config, "w", encoding="utf-8") as stream:
            stream.write("[galaxy-importer]\nCHECK_REQUIRED_TAGS = True\nRUN_ANSIBLE_TEST = False\n")
        command = ["python", "-m", "galaxy_importer.main", archive]
        text = call(base(), *command, cwd=folder, keep=True, GALAXY_IMPORTER_CONFIG=config)
    wrong = [line for line in text.splitlines() if re.match(r"(WARNING|ERROR|CRITICAL)", line)]
    if wrong or "Importer processing completed successfully" not in text:
        raise Failed("galaxy-importer says: %s" % (wrong[0] if wrong else "nothing of success"))


def ansible_test(venv: str, staged: str, *command: str) -> str:
    """Run ansible-test in a staged copy; what it leaves out in silence turns the row red."""
    with venvs.only_one(os.path.join(venvs.cache(), "seed.lock")):
        staging.seed(venv)
    text = call(
        venv,
        "ansible-test",
        *command,
        "--color",
        "no",
        cwd=staged,
        keep=True,
        PYTHONPATH="",
        ANSIBLE_COLLECTIONS_PATH="",
    )
    left_out = WARNING.findall(text)
    wrong = [line for line in left_out if not HARMLESS.search(line)]
    if wrong or "All targets skipped" in text:
        raise Failed("ansible-test left something out: %s" % (wrong[0] if wrong else "all targets"))
    absent = {int(minor) for line in left_out for minor in re.findall(r"Python 3\.(\d+)", line)}
    names = ", ".join("3.%d" % minor for minor in sorted(absent))
    return "not run: Python %s, not on this machine" % names if absent else ""


def sanity(arguments: list[str]) -> str:
    problem = packages.ensure("shellcheck")
    if problem:
        raise NotRun(problem)
    with staging.copy() as staged:
        return ansible_test(base(), staged, "sanity", "--local", *arguments)


def import_lines(arguments: list[str]) -> None:
    call(base(), "python", "tests/tools/import_lines.py", *arguments)


def unit(arguments: list[str]) -> None:
    pytest(base(), arguments or ["tests/unit"])


def coverage(_arguments: list[str]) -> None:
    """Both kinds of tests in one run, with the coverage that .coveragerc demands."""
    data = os.path.join(ROOT, "build", ".coverage")
    pytest(base(), ["tests/unit", "tests/conformance"], "--cov", "--cov-report=term", limit_s=2400, COVERAGE_FILE=data)


def conformance(arguments: list[str]) -> None:
    pytest(base(), arguments or present("tests/conformance"))


def clients(arguments: list[str]) -> None:
    """Programs that call an IPAM plugin in production, on a machine of its own for each test."""
    for program in packages.CLIENTS:
        # one after the other: on another release some have other names; the tests say which ones are missing
        problem = packages.ensure(program)
        if problem:
            print("not run: %s" % problem, flush=True)
    pytest(base(), arguments or present("tests/clients"), limit_s=1800)


def fleet(arguments: list[str]) -> None:
    """Playbooks on nodes of their own over SSH."""
    pytest(base(), arguments or present("tests/fleet"), "-o", "faulthandler_timeout=600", limit_s=1800)


def browser(arguments: list[str]) -> None:
    """The page of an audit in a Chromium without a window."""
    problem = packages.browser()
    if problem:
        raise NotRun(problem)
    pytest(base(), arguments or present("tests/browser"))


def mutants(arguments: list[str]) -> None:
    pytest(base(), arguments or present("tests/mutants"), limit_s=1800)


def demo(_arguments: list[str]) -> None:
    call(base(), "python", "demo/demo.py")


def bench(arguments: list[str]) -> None:
    """Each program of tests/bench, with the arguments: it prints its figures and says when a target is missed."""
    programs = sorted(glob.glob(os.path.join(ROOT, "tests", "bench", "bench_*.py")))
    if not programs:
        raise Failed("there are no programs in tests/bench")
    problem = packages.ensure(packages.GO_PLUGIN)
    if problem:
        print("not run: the comparisons with the Go plugin: %s" % problem)
    for program in programs:
        call(base(), "python", program, *arguments, limit_s=3600)


def soak(arguments: list[str]) -> str:
    """The full counts: every random test with fresh data and a thousand examples, and what is marked soak."""
    result = os.path.join(ROOT, "build", "soak.txt")
    paths = arguments or [LIBRARY, *present("tests/conformance", "tests/fleet")]
    options = ["-m", "soak or not soak", "-o", "faulthandler_timeout=0", "--durations=20"]
    command = ["python", "-m", "pytest", "-p", "no:cacheprovider", *options, *paths]
    try:
        text = call(base(), *command, keep=True, limit_s=4 * 3600, NODENET_SOAK="1")
    except Failed as exc:
        raise Failed("%s; run a failing test again with the blob that hypothesis printed" % exc) from exc
    with open(result, "w", encoding="utf-8") as stream:
        stream.write("%s, Python %s\n%s" % (platform.platform(), platform.python_version(), text))
    return os.path.relpath(result, ROOT)


def molecule(arguments: list[str]) -> str:
    """Every scenario; the count is compared because a scenario without hosts passes."""
    scenarios = glob.glob(SCENARIOS)
    if not scenarios:
        raise Failed("there is no molecule scenario in the tree")
    if os.geteuid() != 0:
        raise NotRun("the nodes of the scenarios need root")
    problem = packages.ensure(packages.GO_PLUGIN)
    if problem:
        if in_ci():
            raise Failed(problem)
        raise NotRun(problem)
    nodes = tempfile.mkdtemp(prefix="nodenet-molecule-", dir="/run")
    state = os.path.join(nodes, "state")
    program = os.path.join(ROOT, "tests", "fleet", "nodes.py")
    try:
        text = call(
            base(),
            *("molecule", "test", "--no-command-borders", *(arguments or ["--all"])),
            keep=True,
            limit_s=1800,
            ANSIBLE_INVENTORY_UNPARSED_FAILED="true",
            ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="true",
            ANSIBLE_HOME=os.path.join(nodes, "ansible"),
            NODENET_FLEET=state,
        )
    finally:
        call(base(), "python", program, "down", state)
        shutil.rmtree(nodes)
    if re.search(r"no hosts matched", text):
        raise Failed("a play of a scenario found no hosts")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    ran = re.search(r"Molecule executed (\d+) scenarios? \(\1 successful\)", plain)
    if not arguments and (not ran or int(ran.group(1)) != len(scenarios)):
        raise Failed("not all of the %d scenarios were executed" % len(scenarios))
    return "%d scenarios" % len(scenarios)


def units_newest(_arguments: list[str]) -> str:
    """What meets Ansible; the library has rows of its own."""
    folder, version = newest()
    pytest(folder, ["tests/unit", "--ignore", LIBRARY])
    return "ansible-core 2.21 on Python %s" % version


def library_rows(arguments: list[str]):
    """The library without Ansible on every interpreter that a target may have: all of it on the ends of the range."""
    for minor in range(8, 14):
        version = (3, minor)
        name = "library alone, Python 3.%d" % minor

        def action(version=version) -> None:
            if version not in pythons.find():
                raise NotRun("this machine has no Python %d.%d" % version)
            folder = venvs.ensure("library", pythons.find()[version])
            floors = FLOORS if version in ENDS else FLOORS[:2]
            pytest(folder, arguments or present(*(os.path.join(LIBRARY, floor) for floor in floors)))

        yield name, action


def integration_rows(arguments: list[str]):
    """The targets of tests/integration on cores and target interpreters: (name, environment, target version)."""

    def run(environment_of, target: str | None) -> str:
        folder = environment_of()
        if target and tuple(int(part) for part in target.split(".")) not in pythons.find():
            raise NotRun("this machine has no Python %s" % target)
        where = ["--venv", "--python", target] if target else ["--local"]
        with staging.copy() as staged:
            return ansible_test(folder, staged, "integration", *where, *arguments)

    yield "integration, core 2.19", lambda: run(base, None)
    yield "integration, core 2.19, target 3.8", lambda: run(base, "3.8")
    yield "integration, core 2.21", lambda: run(lambda: newest()[0], None)
    yield "integration, core 2.21, target 3.9", lambda: run(lambda: newest()[0], "3.9")
    yield "integration, core 2.16", lambda: run(lambda: oldest()[0], None)


SINGLE = {
    "system": ("programs of the distribution", system),
    "venv": ("test environment", venv),
    "ruff": ("ruff check", ruff),
    "format": ("ruff format", ruff_format),
    "mypy": ("mypy", mypy),
    "yamllint": ("yamllint", yamllint),
    "ansible-lint": ("ansible-lint, production", ansible_lint),
    "changelog": ("antsibull-changelog lint", changelog),
    "docs-lint": ("antsibull-docs lint", docs_lint),
    "docs": ("documentation", docs),
    "build": ("archive", build),
    "importer": ("galaxy-importer", importer),
    "sanity": ("ansible-test sanity, core 2.19", sanity),
    "import-lines": ("lines that an import executes", import_lines),
    "unit": ("unit tests, core 2.19", unit),
    "coverage": ("unit, conformance, core 2.19", coverage),
    "units-newest": ("unit tests, newest core", units_newest),
    "conformance": ("conformance", conformance),
    "mutants": ("planted mutants", mutants),
    "clients": ("real clients", clients),
    "browser": ("page of an audit in a browser", browser),
    "fleet": ("bootstrap over SSH, core 2.19", fleet),
    "molecule": ("molecule", molecule),
    "demo": ("demo", demo),
    "bench": ("bench", bench),
    "soak": ("soak", soak),
}
SEVERAL = {"library": library_rows, "integration": integration_rows}


def rows(name: str, arguments: list[str]):
    """The rows of a step as (name, action without arguments)."""
    if name in SEVERAL:
        return list(SEVERAL[name](arguments))
    title, function = SINGLE[name]
    return [(title, functools.partial(function, arguments))]
