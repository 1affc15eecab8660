# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The executables: CNI plugins that are this collection's own code, as they lie on a node.

    <bin_dir>/host-local                        launcher, one line that names the starter
    <bin_dir>/.nodenet-cni/<hash>/host-local    starter, a few lines for the node's Python
    <bin_dir>/.nodenet-cni/<hash>/host-local.code  byte code of all modules that it may need, see `bundling`
    <bin_dir>/.nodenet-cni/<hash>/nodenet_cni/  the packages cni, host_local and multus, sources;
                                                in vendored/ those of others with byte code, see `vendoring`

The directory of a version is written under another name first and renamed; the launcher is then renamed into place and
names the version by its hash. So a call sees one version, whole, and calls in flight keep theirs: the version before
the present one stays until the next change.

An interpreter opens a script by its name some milliseconds after the kernel has read its first line. Were the launcher
what Python is to read, a call would fail if another plugin, or none, has taken its place meanwhile. So the kernel alone
reads the launcher, and Python reads the starter, which stays with its version. (Where the path is too long for a first
line, the launcher is a starter.) A call is over before collecting garbage pays, so the starter switches that off.
Where the byte code is not of the Python that runs, as after an upgrade, the sources serve.
"""

from __future__ import annotations

import hashlib
import importlib.util
import marshal
import os
import py_compile
import re
import shutil
import sys

from ..cni.errors import NodenetError
from . import bundling, files, vendoring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Mapping, Sequence

STORE = ".nodenet-cni"
PACKAGE = "nodenet_cni"
#: plugin -> module that serves it
PLUGINS = {"host-local": "host_local.commands", "multus": "multus.commands"}
_ENTRIES = ("cni/process.py", "cni/bundle.py")
_LAUNCHER = """\
#!{starter}
# {plugin} of the Ansible collection nodenet.cni. Made by nodenet.cni.plugin_binaries; changes are lost.
"""
_STARTER = """\
#!{python} -IBS
# {plugin} of the Ansible collection nodenet.cni. Made by nodenet.cni.plugin_binaries; changes are lost.
import gc, sys
gc.disable()
sys.path.insert(0, {path!r})
try:
    import marshal, posix
    from _frozen_importlib_external import MAGIC_NUMBER
    fd = posix.open({code!r}, posix.O_RDONLY)
    head = posix.read(fd, {head})
    if head.startswith(MAGIC_NUMBER):
        size = int.from_bytes(head[-{number}:], "little")
        loader, *rest = marshal.loads(posix.read(fd, size))
        names = {{}}
        exec(loader, names)
        names["install"](fd, {head} + size, *rest)
except Exception:
    pass
from {package}.cni.process import run_and_exit
from {package}.{module} import run
run_and_exit(run{about})
"""
#: plugin -> what it says of its version (multus spec 1.1); the hash stands where the Go plugin names its tree
_ABOUT = {"multus": "multus: version:nodenet.cni(%s), commit:unknown commit, date:unknown date\n"}
_SHEBANG_LIMIT = 127  # what every Linux kernel in use reads of the first line
_LONGEST_LAUNCHER = 8192  # it holds one path
_HASH = re.compile(r"[0-9a-f]{32}")


def collect_sources(root: str, plugins: Sequence[str]) -> dict[str, str]:
    """Return path below the package -> text of the files that *plugins* are made of: what their modules import.

    And the packages of others that they can make use of, as far as this Python has them.

    :param root: the directory module_utils of the collection
    """
    from . import closure  # only who builds needs it, not every task

    sources = closure.collect(root, [*_ENTRIES, *map(_entry, plugins)])
    sources.update(vendoring.collect(plugins))
    return sources


def _entry(plugin: str) -> str:
    """Return the path of the module that serves a plugin."""
    return PLUGINS[plugin].replace(".", "/") + ".py"


def version_hash(sources: Mapping[str, str], python: str) -> str:
    """Return the name of a version: it changes with every source and with the interpreter."""
    digest = hashlib.sha256(f"{python} {sys.version} {_LAUNCHER} {_STARTER}".encode())
    for path in sorted(sources):
        digest.update(f"\0{path}\0{sources[path]}".encode())
    return digest.hexdigest()[:32]


def node_python() -> str:
    """Return the interpreter that the launchers name: the real path of the one that runs this.

    Raises NodenetError if it would go away with somebody's virtual environment or home directory.
    """
    python = os.path.realpath(sys.executable)
    if sys.prefix != sys.base_prefix:
        reason = f"it runs in the virtual environment {sys.prefix}"
    elif any(python.startswith(home) for home in ("/home/", "/root/", os.path.expanduser("~") + "/")):
        reason = "it lies in a home directory"
    elif len(python) > _SHEBANG_LIMIT - len("#! -IBS") or " " in python:
        reason = "its path cannot stand in the first line of a script"
    else:
        return python
    raise NodenetError(
        f"Cannot make executables that run with {python}: {reason}; "
        "set ansible_python_interpreter to a Python of the system, such as /usr/bin/python3"
    )


def launcher(plugin: str, python: str, bin_dir: str, version: str) -> bytes:
    """Return the content of a launcher."""
    path = os.path.join(bin_dir, STORE, version, plugin)
    if len(os.fsencode(path)) > _SHEBANG_LIMIT - len("#!") or not path.isprintable() or " " in path:
        return starter(plugin, python, bin_dir, version)
    return _LAUNCHER.format(starter=path, plugin=plugin).encode("utf-8", "surrogateescape")


def starter(plugin: str, python: str, bin_dir: str, version: str) -> bytes:
    """Return the content of a starter."""
    path = os.path.join(bin_dir, STORE, version)
    about = f", {_ABOUT[plugin] % version!r}" if plugin in _ABOUT else ""
    text = _STARTER.format(
        python=python,
        plugin=plugin,
        path=path,
        code=os.path.join(path, plugin + bundling.SUFFIX),
        head=bundling.HEAD,
        number=bundling.NUMBER,
        package=PACKAGE,
        module=PLUGINS[plugin],
        about=about,
    )
    return text.encode("utf-8", "surrogateescape")


def launched_python(path: str) -> str:
    """Return the interpreter that a launcher ends up with. Errors: OSError."""
    with open(path, "rb") as stream:
        words = stream.readline(256)[len(b"#!") :].split()
    first = os.fsdecode(words[0]) if words else ""
    return launched_python(first) if f"/{STORE}/" in first else first


def launched_version(path: str) -> str | None:
    """Return the version that a launcher names, None if the file is none of ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        head = os.read(fd, _LONGEST_LAUNCHER)
    except OSError:  # a directory
        return None
    finally:
        os.close(fd)
    found = re.search(re.escape(f"/{STORE}/").encode() + rb"([0-9a-f]{32})['\"/]", head)
    return found.group(1).decode() if found else None


def named_versions(bin_dir: str) -> frozenset[str]:
    """Return the versions that the launchers in *bin_dir* name."""
    named = (launched_version(os.path.join(bin_dir, plugin)) for plugin in PLUGINS)
    return frozenset(version for version in named if version)


def versions(bin_dir: str) -> list[str]:
    """Return the names of the versions in *bin_dir*, also of what interrupted runs left."""
    try:
        names = os.listdir(os.path.join(bin_dir, STORE))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(name for name in names if _HASH.match(name))


def old_versions(bin_dir: str, keep: Collection[str]) -> list[str]:
    """Return the versions that are not to be kept."""
    return [name for name in versions(bin_dir) if name not in keep]


def is_whole(bin_dir: str, version: str, sources: Mapping[str, str], python: str) -> bool:
    """Tell whether a version lies there with all of its sources as they are here, and with their byte code."""
    top = os.path.join(bin_dir, STORE, version)
    root = os.path.join(top, PACKAGE)
    for plugin, content in _starters(bin_dir, version, sources, python).items():
        try:
            with open(os.path.join(top, plugin), "rb") as stream:
                if stream.read() != content or not os.fstat(stream.fileno()).st_mode & 0o111:
                    return False
            with open(os.path.join(top, plugin + bundling.SUFFIX), "rb") as stream:
                if not bundling.is_whole(stream.read(), _parts(sources, plugin), _final(bin_dir, version)):
                    return False
        except OSError:
            return False
    packages = {path.split("/")[1] for path in sources if vendoring.is_others(path)}
    without = [package for package in packages if os.path.exists(os.path.join(root, vendoring.marker(package)))]
    for path, text in vendoring.wanted(sources, without).items():
        try:
            with open(os.path.join(root, path), encoding="utf-8") as stream:
                if stream.read() != text:
                    return False
        except (OSError, UnicodeDecodeError):
            return False
        byte_code = _byte_code(os.path.join(root, path))
        if vendoring.is_others(path) and path.endswith(".py") and not _is_byte_code(byte_code, text):
            return False
    return True


def _final(bin_dir: str, version: str) -> str:
    """Return where the sources of a version are looked for, as tracebacks show it."""
    return os.path.join(os.path.abspath(bin_dir), STORE, version, PACKAGE)


def _parts(sources: Mapping[str, str], plugin: str) -> dict[str, str]:
    """Return the sources whose byte code an executable takes along: of its own package, of cni and of none above."""
    folders = ("cni", PLUGINS[plugin].partition(".")[0])
    parts = {path: text for path, text in sources.items() if path.startswith(tuple(f"{one}/" for one in folders))}
    return dict(parts, **{"__init__.py": ""})


def _is_byte_code(path: str, text: str) -> bool:
    """Tell whether a file holds byte code of this Python for a source; Python itself takes what it finds there."""
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError:
        return False
    source_hash = importlib.util.source_hash(text.encode("utf-8"))
    if data[:16] != importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + source_hash:  # 1: unchecked hash
        return False
    try:
        marshal.loads(data[16:])
    except (EOFError, ValueError, TypeError):
        return False
    return True


def _starters(bin_dir: str, version: str, sources: Mapping[str, str], python: str) -> dict[str, bytes]:
    return {
        plugin: starter(plugin, python, os.path.abspath(bin_dir), version)
        for plugin in PLUGINS
        if _entry(plugin) in sources
    }


def write_version(bin_dir: str, version: str, sources: Mapping[str, str], python: str) -> None:
    """Write a version of the packages, in one step as far as others can see. Errors: OSError, nothing has changed."""
    store = os.path.join(bin_dir, STORE)
    files.make_directory(store, 0o755)
    final = os.path.join(store, version)
    staged = f"{final}.{os.getpid()}"
    shutil.rmtree(staged, ignore_errors=True)
    try:
        os.makedirs(staged)
        for plugin, content in _starters(bin_dir, version, sources, python).items():
            _write(os.path.join(staged, plugin), content, 0o755)
            entries = ("cni/process.py", _entry(plugin))
            code = bundling.make(_parts(sources, plugin), _final(bin_dir, version), PACKAGE, entries)
            _write(os.path.join(staged, plugin + bundling.SUFFIX), code)
        _write_tree(os.path.join(staged, PACKAGE), vendoring.wanted(sources, vendoring.unfit(sources)))
        if os.path.lexists(final):  # damaged, or it would not be written again
            os.rename(final, f"{staged}.old")
        os.rename(staged, final)
        files.sync_directory(store)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        shutil.rmtree(f"{staged}.old", ignore_errors=True)


def _write_tree(root: str, sources: Mapping[str, str]) -> None:
    for path, text in dict(sources, **{"__init__.py": ""}).items():
        target = os.path.join(root, path)
        os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
        _write(target, text.encode("utf-8"))
        if not (vendoring.is_others(path) and path.endswith(".py")):
            continue
        byte_code = _byte_code(target)
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(target, cfile=byte_code, doraise=True, optimize=0, invalidation_mode=mode)
        _finish(byte_code)
    for here, _directories, _names in os.walk(os.path.dirname(root)):
        os.chmod(here, 0o755)
        files.sync_directory(here)


def _byte_code(path: str) -> str:
    head, name = os.path.split(path)
    return os.path.join(head, "__pycache__", f"{name[:-3]}.{sys.implementation.cache_tag}.pyc")


def _write(path: str, data: bytes, mode: int = 0o644) -> None:
    with open(path, "wb") as stream:
        stream.write(data)
    _finish(path, mode)


def _finish(path: str, mode: int = 0o644) -> None:
    os.chmod(path, mode)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_old_versions(bin_dir: str, keep: Collection[str]) -> list[str]:
    """Remove the versions that are not to be kept, and what interrupted runs left; return their names."""
    store = os.path.join(bin_dir, STORE)
    gone = old_versions(bin_dir, keep)
    for name in gone:
        shutil.rmtree(os.path.join(store, name), ignore_errors=True)
    try:
        os.rmdir(store)
    except OSError:  # something is in it, or it is not there
        pass
    return gone


def build(root: str, bin_dir: str, plugins: Sequence[str], python: str) -> list[str]:
    """Make the executables in *bin_dir* from the sources in *root*; return the paths of the launchers.

    For people without Ansible, and for tests. Errors: NodenetError, OSError.
    """
    bin_dir = os.path.abspath(bin_dir)
    sources = collect_sources(root, plugins)
    version = version_hash(sources, python)
    if not is_whole(bin_dir, version, sources, python):
        write_version(bin_dir, version, sources, python)
    launchers = []
    before = set()
    for plugin in plugins:
        path = os.path.join(bin_dir, plugin)
        before.add(launched_version(path) or "")
        files.replace_file(path, launcher(plugin, python, bin_dir, version), 0o755)
        launchers.append(path)
    remove_old_versions(bin_dir, [version, *sorted(before)])
    return launchers
