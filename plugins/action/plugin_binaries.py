# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Brings a source of plugins from the controller to the node, and only if the node lacks something of it.

The code of the embedded plugins goes along with the arguments of the module.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping

from ansible.errors import AnsibleFileNotFound
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import NodenetError
from ansible_collections.nodenet.cni.plugins.module_utils.node import embedded, executables
from ansible_collections.nodenet.cni.plugins.module_utils.node.archive import DirectorySource, digest_of_stream
from ansible_collections.nodenet.cni.plugins.module_utils.node.checksum import split_checksum, wanted_digest
from ansible_collections.nodenet.cni.plugins.module_utils.node.elf import ARCHITECTURE_MARK, published_architecture
from ansible_collections.nodenet.cni.plugins.module_utils.node.supply import refuse_url

_MODULE_UTILS = os.path.dirname(os.path.dirname(os.path.abspath(executables.__file__)))


class ActionModule(ActionBase):
    TRANSFERS_FILES = False  # the temporary directory is made when something has to travel

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        try:
            self._choose(arguments)
        except NodenetError as exc:
            return dict(result, failed=True, msg=str(exc), **exc.facts)
        src = arguments.get("src")
        if (
            not isinstance(src, str)
            or not src
            or arguments.get("state") == "previous"
            or boolean(arguments.get("remote_src", False), strict=False)
        ):
            return self._ask_module(arguments, task_vars)
        packed = None
        try:
            refuse_url(src)
            src = self._name_architecture(arguments)
            local = self._find(src, task_vars)
            name = os.path.basename(local.rstrip("/"))
            if os.path.isdir(local):
                if arguments.get("checksum"):
                    raise NodenetError(f"Cannot verify {src}: checksum is for archives, this is a directory")
                packed = self._pack(local, arguments.get("include"))
                local, name = packed, name + ".tar"
            arguments["checksum"] = "sha256:" + self._digest(local, name, arguments.get("checksum"), task_vars)
            arguments["remote_src"] = True
            return self._install(local, name, src, arguments, task_vars)
        except NodenetError as exc:
            # as a result, as the module gives one, not as an exception, which failed_when would not see
            return dict(result, failed=True, msg=str(exc), **exc.facts)
        except OSError as exc:
            message = f"Cannot read {exc.filename or src} on the controller: {exc.strerror}"
            return dict(result, failed=True, msg=message)
        finally:
            if packed:
                os.unlink(packed)

    def _ask_module(self, arguments, task_vars):
        names = self._names(arguments.get("embedded"))
        arguments.pop("embedded_sources", None)
        if isinstance(names, list) and arguments.get("state", "present") == "present":
            # What is no plugin of ours the module refuses.
            known = [name for name in executables.PLUGINS if name in names]
            if known:
                arguments["embedded_sources"] = embedded.pack(executables.collect_sources(_MODULE_UTILS, known))
        result = self._execute_module(module_args=arguments, task_vars=task_vars)
        result.get("invocation", {}).get("module_args", {}).pop("embedded_sources", None)
        return result

    def _name_architecture(self, arguments):
        """Put the node's architecture into what names the source, and return that; the node is asked if need be."""
        texts = {key: arguments[key] for key in ("src", "checksum") if isinstance(arguments.get(key), str)}
        if any(ARCHITECTURE_MARK in text for text in texts.values()):
            # Facts would be those of another host where the task is delegated.
            architecture = self._architecture()
            for key, text in texts.items():
                arguments[key] = text.replace(ARCHITECTURE_MARK, architecture)
        return arguments["src"]

    def _architecture(self):
        """Return the node's architecture, in its own words as published archives spell it."""
        told = self._low_level_execute_command("uname -m")
        if told.get("rc"):
            said = (told.get("stderr") or told.get("stdout") or "").strip()
            raise NodenetError(f"Cannot ask the node for its architecture with uname -m: {said or 'it failed'}")
        return published_architecture(told.get("stdout", "").strip())

    def _choose(self, arguments):
        """Take what is meant for the node's architecture where a source or a checksum is given for each."""
        given = {key: arguments[key] for key in ("src", "checksum") if isinstance(arguments.get(key), Mapping)}
        architecture = self._architecture() if given else ""
        for key, values in given.items():
            if architecture not in values:
                raise NodenetError(
                    f"Cannot choose the {key} for a node of architecture {architecture}: there is one for "
                    f"{', '.join(sorted(values)) or 'none'} only"
                )
            arguments[key] = values[architecture]

    @staticmethod
    def _names(value):
        """Return the names of an option of type list, as the module reads it."""
        return [name.strip() for name in value.split(",")] if isinstance(value, str) else value

    def _find(self, path, task_vars):
        """Return where a file of the controller is: as for copy, else beside the inventory or where the run began.

        A playbook of a collection has no files of its user's beside it.
        """
        path = os.path.expanduser(path)
        try:
            return self._find_needle("files", path)
        except AnsibleFileNotFound:
            pass
        if os.path.isabs(path):
            raise NodenetError(
                f"Cannot find {path} on the controller: there is no such file; if it is on the node, set remote_src "
                "(roles: plugin_binaries_remote_src)"
            )
        # For an inventory without a directory ("host,") this is None, as an object or as a word.
        inventory = str((task_vars or {}).get("inventory_dir") or "")
        places = [place for place in (inventory, os.getcwd()) if os.path.isabs(place)]
        for place in places:
            for candidate in (os.path.join(place, "files", path), os.path.join(place, path)):
                if os.path.exists(candidate):
                    return candidate
        places = list(dict.fromkeys([self._loader.get_basedir(), *places]))
        raise NodenetError(
            f"Cannot find {path} on the controller: it is not in {', '.join(places)}, nor in files/ there or in a role"
            "; if it is on the node, set remote_src (roles: plugin_binaries_remote_src)"
        )

    def _install(self, local, name, source, arguments, task_vars):
        # The node remembers what an archive of this digest holds: if all of it is in place, nothing needs to travel.
        asked = self._ask_module(dict(arguments, src=f"controller:/{name}"), task_vars)
        if not asked.get("src_missing"):
            return asked
        directory = self._connection._shell.tmpdir or self._make_tmp_path()
        remote = self._connection._shell.join_path(directory, name)
        self._transfer_file(local, remote)
        self._fixup_perms2((directory, remote))
        result = self._ask_module(dict(arguments, src=remote), task_vars)
        if result.get("failed") and remote in str(result.get("msg")):
            # The name that the user knows, not that of the copy. What the screen shows first is made of "exception",
            # and without that of "msg".
            result.pop("exception", None)
            for key, value in result.items():
                if isinstance(value, str):
                    result[key] = value.replace(remote, source)
        return result

    def _digest(self, local, name, checksum, task_vars):
        """Return the sha256 of the archive, after it has been verified here."""
        with open(local, "rb") as stream:
            digest = digest_of_stream(stream)
            if checksum:
                algorithm, demanded = wanted_digest(self._with_real_path(checksum, task_vars), name)
                actual = digest if algorithm == "sha256" else digest_of_stream(stream, algorithm)
                if actual != demanded:
                    raise NodenetError(
                        f"Cannot use {local}: its {algorithm} is {actual}, the checksum demands {demanded}"
                    )
        return digest

    def _with_real_path(self, checksum, task_vars):
        algorithm, digest, path = split_checksum(str(checksum))
        return f"{algorithm}:{digest or self._find(path, task_vars)}"

    def _pack(self, directory, include):
        """Put the files of a directory into an archive that is the same for the same content.

        Of those that are not wanted it has the names only: what the directory lacks is not to be taken for that.
        """
        names = self._names(include)
        fd, path = tempfile.mkstemp(suffix=".tar")
        try:
            with os.fdopen(fd, "wb") as stream, tarfile.open(
                fileobj=stream, mode="w", format=tarfile.PAX_FORMAT
            ) as tar:
                for entry in DirectorySource(directory).entries(frozenset(names) if names else None):
                    member = tarfile.TarInfo(entry.path)
                    member.size = entry.size
                    member.mode = 0o755 if entry.marked else 0o644
                    tar.addfile(member, _Joined(entry.pieces()))
                for name in sorted(set(os.listdir(directory)) - set(names)) if names else ():
                    if os.path.isfile(os.path.join(directory, name)):
                        member = tarfile.TarInfo(name)
                        member.mode = 0o644
                        tar.addfile(member)
        except BaseException:
            os.unlink(path)
            raise
        return path


class _Joined:
    """Pieces of bytes as something that tarfile can read from."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._rest) < size:
            piece = next(self._pieces, b"")
            if not piece:
                break
            self._rest += piece
        if size < 0:
            size = len(self._rest)
        result, self._rest = self._rest[:size], self._rest[size:]
        return result
