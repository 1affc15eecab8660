# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files a program is made of, and in which order they run."""

from __future__ import annotations

import ast
import os

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import closure, executables

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(closure.__file__)))
TYPED = "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from .%s import Type\n"
SOURCES = {
    "__init__.py": "",
    "one/__init__.py": "",
    "two/__init__.py": "",
    "one/start.py": "import posix\nfrom ..two import needs\nfrom .last import Last\nif True:\n    from . import late\n",
    "one/last.py": "from . import shared\n" + TYPED % "typed",
    "one/shared.py": "",
    "one/late.py": "from . import start\nimport _json as quick\n",
    "one/typed.py": "import typing\n",
    "one/unused.py": "",
    "two/needs.py": "from ..one.shared import what\nfrom os.path import join\n",
}


@pytest.fixture
def tree(tmp_path):
    for path, text in SOURCES.items():
        target = tmp_path / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text)
    return str(tmp_path)


def test_all_that_is_ever_imported_is_taken_but_for_what_only_type_checkers_see(tree):
    left = {"__init__.py", "one/typed.py", "one/unused.py"}  # the package above all has a file in every case
    assert set(closure.collect(tree, ["one/start.py"])) == set(SOURCES) - left


def test_each_module_runs_behind_its_package_and_what_it_imports_as_it_is_loaded():
    order = closure.run_order(SOURCES, ["one/start.py"])
    assert order == [
        "__init__.py", "one/__init__.py", "two/__init__.py", "one/shared.py", "two/needs.py", "one/last.py",
        "one/start.py",
    ]  # fmt: skip
    assert closure.run_order(SOURCES, ["one/shared.py", "one/start.py"])[2:4] == ["one/shared.py", "two/__init__.py"]


def test_two_modules_that_import_each_other_come_once():
    sources = {"__init__.py": "", "a.py": "from . import b\n", "b.py": "from . import a\n"}
    assert closure.run_order(sources, ["a.py"]) == ["__init__.py", "b.py", "a.py"]


def test_modules_of_others_are_named_by_their_top():
    assert closure.absolute_imports(SOURCES) == {"posix", "_json", "os", "typing"}


def is_for_type_checkers(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@pytest.mark.parametrize("plugin", sorted(executables.PLUGINS))
def test_no_module_of_an_executable_runs_before_what_it_imports(plugin):
    """What `run_order` relies on: no circle, and no import under a condition but that of type checkers."""
    sources = {
        path: text
        for path, text in executables.collect_sources(ROOT, [plugin]).items()
        if not path.startswith("vendored")
    }
    for path, text in sources.items():
        order = closure.run_order(sources, [path])
        assert order[-1] == path
        for one in order:
            needed = closure.run_order(sources, [one])
            assert order.index(one) >= max(order.index(other) for other in needed)
        for node in ast.parse(text).body:
            if isinstance(node, (ast.If, ast.Try)) and not is_for_type_checkers(node):
                assert not [one for one in ast.walk(node) if isinstance(one, ast.ImportFrom) and one.level], path
