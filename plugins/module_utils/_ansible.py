# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the modules share: the way out (result or one clear error), common options, diff texts.

The only utility that knows AnsibleModule. Private to the collection, may change at any time.
"""

from __future__ import annotations

import os
import typing as t

from .cni.errors import NodenetError

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

CONF_DIR_OPTIONS: dict[str, t.Any] = {"conf_dir": {"type": "path", "default": "/etc/cni/net.d"}}
BIN_DIR_OPTIONS: dict[str, t.Any] = {"bin_dir": {"type": "path", "default": "/opt/cni/bin"}}
STATE_DIR_OPTIONS: dict[str, t.Any] = {"state_dir": {"type": "path", "default": "/var/lib/nodenet-cni"}}
LOCK_OPTIONS: dict[str, t.Any] = {"lock_timeout": {"type": "float", "default": 30.0}}
FLANNEL_OPTIONS: dict[str, t.Any] = {"flannel_subnet_file": {"type": "path", "default": "/run/flannel/subnet.env"}}


def run(module: AnsibleModule, function: t.Callable[[], dict[str, t.Any]]) -> t.NoReturn:
    """Call *function* and leave the module with what it returns.

    A path option that names no place for sure ends it before that: where a module runs in is nobody's choice.
    An expected failure (any NodenetError, also one of the CNI protocol) ends the module with its text as ``msg`` and
    its facts as further keys. An OSError that nobody has put into words names the path. Everything else is a defect and
    stays a traceback.
    """
    try:
        _check_paths(module)
        result = function()
    except NodenetError as exc:
        facts: t.Any = {key: value for key, value in exc.facts.items() if key not in ("msg", "failed", "changed")}
        module.fail_json(msg=_printable(str(exc)), **facts)
    except OSError as exc:
        module.fail_json(msg=_printable(os_error_text(exc)), errno=exc.errno)
    module.exit_json(**dict({"changed": False}, **result))


def _check_paths(module: AnsibleModule) -> None:
    for name, option in module.argument_spec.items():
        if "path" in (option.get("type"), option.get("elements")):
            value = module.params[name]
            for path in value if isinstance(value, list) else [value]:
                if path is not None and ("\0" in path or path[:1] != "/"):
                    from .node.option_paths import check

                    check(name, path)


def warn_findings(module: AnsibleModule, findings: t.Iterable[t.Mapping[str, t.Any]]) -> None:
    """Show findings of severity error and warning to who runs the play; the result has all of them.

    A task that leaves the node without a usable network must not look like one that is content.
    """
    for one in findings:
        if one["severity"] != "info":
            module.warn("{where}: {text}; {hint} ({code})".format(**one))


def os_error_text(exc: OSError) -> str:
    """One sentence for an OSError, naming the path or paths that it carries."""
    paths = [_text(path) for path in (exc.filename, exc.filename2) if path is not None]
    reason = exc.strerror or str(exc) or type(exc).__name__
    return f"Cannot use {' and '.join(paths) or 'a file'} on this node: {reason}"


def diff(before: t.Iterable[str], after: t.Iterable[str], header: str) -> dict[str, str]:
    """The value of ``diff`` for a thing that is a list of lines; *header* is its path or name."""
    return {
        "before": "".join(f"{line}\n" for line in before),
        "after": "".join(f"{line}\n" for line in after),
        "before_header": header,
        "after_header": header,
    }


def _printable(text: str) -> str:
    if os.geteuid() and ("permission denied" in text.lower() or "not permitted" in text.lower()):
        text += "; the task does not run as root, as become would let it"
    if text.isascii() and "\0" not in text:
        return text
    from .host_local.rows import printable  # names that are no UTF-8 are rare

    return printable(text)


def _text(path: object) -> str:
    return os.fsdecode(path) if isinstance(path, (bytes, os.PathLike)) else str(path)
