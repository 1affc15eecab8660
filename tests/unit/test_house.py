# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of the house that no linter knows: floors, thin modules, one truth for defaults, nothing but Python."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
UTILS = ROOT / "plugins" / "module_utils"
PACKAGE = "ansible_collections.nodenet.cni.plugins.module_utils"
# floor -> what it may import besides itself
BELOW = {
    "cni": set(),
    "host_local": {"cni"},
    "multus": {"cni"},
    "node": {"cni", "host_local", "multus"},
}
# what an executable pays for at each start; allowed inside functions and for type checkers
SLOW_TO_IMPORT = {"re", "json", "ipaddress", "pathlib", "typing", "dataclasses", "enum", "subprocess"}
SLOW_TO_IMPORT |= {"socket", "ssl", "http", "email", "urllib"}
HEADER = (
    "# Copyright (c) 2026, The nodenet.cni authors",
    "# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)",
    "# SPDX-License-Identifier: GPL-3.0-or-later",
)
DOCUMENTATION_NAMES = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
MODULE_LINES = 60


def tracked():
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def python_files(*folders):
    return [path for path in tracked() if path.suffix == ".py" and any(ROOT / part in path.parents for part in folders)]


def modules():
    return [path for path in python_files("plugins/modules") if path.parent == ROOT / "plugins" / "modules"]


def roles():
    return sorted(path.parent.parent for path in tracked() if path.match("roles/*/defaults/main.yml"))


def tracked_role_specs():
    return [path for path in tracked() if path.match("roles/*/meta/argument_specs.yml")]


def relative(path):
    return str(path.relative_to(ROOT))


def imports(tree, everywhere=True):
    """Yield (line, level, dotted name) of each import; without `everywhere` only those that importing the file runs."""

    def walk(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                yield from ((line, level, name) for line, level, name in walk(child) if everywhere)
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and not everywhere:
                continue
            elif isinstance(child, ast.Import):
                yield from ((child.lineno, 0, alias.name) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                if child.module:
                    yield child.lineno, child.level, child.module
                else:
                    yield from ((child.lineno, child.level, alias.name) for alias in child.names)
            else:
                yield from walk(child)

    return walk(tree)


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def resolved(path, level, name):
    """The absolute dotted name behind an import in a file of module_utils."""
    if not level:
        return name
    package = [PACKAGE, *path.relative_to(UTILS).parent.parts]
    return ".".join([*package[: len(package) - level + 1], name])


def module_documentation(path):
    """The documentation of a module with its fragments merged, as (document, attributes)."""
    constants = {}
    for node in parse(path).body:
        if isinstance(node, ast.Assign) and node.targets[0].id in DOCUMENTATION_NAMES:
            constants[node.targets[0].id] = yaml.safe_load(node.value.value)
    document = constants["DOCUMENTATION"]
    attributes = {}
    fragments = document.get("extends_documentation_fragment", [])
    for name in [fragments] if isinstance(fragments, str) else fragments:
        collection, fragment = name.rsplit(".", 1)[0], name.split(".")[2:]
        if not name.startswith("nodenet.cni."):
            continue
        assert collection
        source = parse(ROOT / "plugins" / "doc_fragments" / (fragment[0] + ".py"))
        wanted = fragment[1].upper() if len(fragment) > 1 else "DOCUMENTATION"
        for node in ast.walk(source):
            if isinstance(node, ast.Assign) and node.targets[0].id == wanted:
                merge(attributes, yaml.safe_load(node.value.value).get("attributes") or {})
    merge(attributes, document.get("attributes") or {})
    return document, attributes


def merge(into, attributes):
    for name, facts in attributes.items():
        into[name] = dict(into.get(name, {}), **facts)


def load_tool(name):
    spec = importlib.util.spec_from_file_location("house_tool_" + name, ROOT / "tests" / "tools" / (name + ".py"))
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def test_the_collection_has_modules_roles_and_playbooks():
    assert modules()
    assert roles()
    assert list((ROOT / "playbooks").glob("*.yml"))


# --- floors


def test_a_floor_imports_only_what_is_below_it():
    wrong = []
    for floor, below in BELOW.items():
        for path in python_files("plugins/module_utils/%s" % floor):
            for line, level, name in imports(parse(path)):
                target = resolved(path, level, name)
                if not target.startswith(PACKAGE):
                    continue
                if not level:
                    wrong.append("%s:%d imports %s by its full name" % (relative(path), line, name))
                reached = target[len(PACKAGE) + 1 :].split(".")[0]
                if reached not in below | {floor}:
                    wrong.append("%s:%d reaches %s" % (relative(path), line, target))
    assert not wrong, "\n" + "\n".join(wrong)


def test_below_the_modules_there_is_only_the_standard_library():
    wrong = []
    for floor in BELOW:
        for path in python_files("plugins/module_utils/%s" % floor):
            for line, level, name in imports(parse(path)):
                if not level and name.split(".")[0] not in sys.stdlib_module_names:
                    wrong.append("%s:%d imports %s" % (relative(path), line, name))
    assert not wrong, "\n" + "\n".join(wrong)


def test_what_runs_on_a_node_needs_nothing_but_python():
    allowed = ("ansible.module_utils.", "ansible_collections.nodenet.cni.plugins.module_utils.")
    wrong = []
    for path in [*modules(), *UTILS.glob("*.py")]:
        for line, level, name in imports(parse(path)):
            outside = not level and name.split(".")[0] not in sys.stdlib_module_names
            if outside and not (name + ".").startswith(allowed):
                wrong.append("%s:%d imports %s" % (relative(path), line, name))
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_executables_floors_import_nothing_slow_at_their_start():
    wrong = []
    for floor in ("cni", "host_local", "multus"):
        for path in python_files("plugins/module_utils/%s" % floor):
            for line, level, name in imports(parse(path), everywhere=False):
                if not level and name.split(".")[0] in SLOW_TO_IMPORT:
                    wrong.append("%s:%d imports %s" % (relative(path), line, name))
    assert not wrong, "\n" + "\n".join(wrong)


def test_packages_bring_nothing_along():
    wrong = []
    for path in tracked():
        if path.name == "__init__.py":
            body = parse(path).body
            docstring = len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
            if body and not docstring:
                wrong.append(relative(path))
    assert not wrong, "\n" + "\n".join(wrong)


def test_types_are_compared_with_isinstance():
    """The sanity test pylint refuses the other form; this says so within a second."""
    wrong = []
    for path in python_files("plugins", "tests"):
        for node in ast.walk(parse(path)):
            if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
                continue
            left = node.left
            if isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "type":
                wrong.append("%s:%d" % (relative(path), node.lineno))
    assert not wrong, "\n" + "\n".join(wrong)


# --- modules


def test_modules_are_thin():
    count = load_tool("import_lines").code_lines
    sizes = {relative(path): count(path.read_text(encoding="utf-8")) for path in modules()}
    assert sizes
    assert not {name: size for name, size in sizes.items() if size > MODULE_LINES}


def test_an_import_stays_within_its_budget_of_lines():
    tool = load_tool("import_lines")
    lines = {name: sum(tool.measure(name).values()) for name in tool.modules()}
    assert lines
    assert not {name: number for name, number in lines.items() if number > tool.budget(name)}


def test_every_module_says_how_it_behaves():
    wrong = []
    for path in modules():
        document, attributes = module_documentation(path)
        for name in ("check_mode", "diff_mode", "idempotent", "action_group", "platform"):
            support = attributes.get(name, {}).get("support")
            if support not in ("full", "partial", "none", "N/A"):
                wrong.append("%s: attribute %s has support %r" % (path.stem, name, support))
            elif support == "partial" and not attributes[name].get("details"):
                wrong.append("%s: attribute %s is partial without details" % (path.stem, name))
        if document.get("version_added") is None or document["module"] != path.stem:
            wrong.append("%s: version_added or module name" % path.stem)
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_action_group_is_the_list_of_modules():
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    names = sorted(path.stem for path in modules())
    assert runtime["action_groups"]["all"] == names
    for path in modules():
        assert module_documentation(path)[1]["action_group"]["membership"] == ["nodenet.cni.all"]


def test_markup_of_documentation_is_closed():
    """An escaped bracket in a mark that is closed much later makes ansible-doc search for hours."""
    wrong = []
    for path in [*modules(), *python_files("plugins/doc_fragments"), *tracked_role_specs()]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"\b(?:[OVE]|RV)\([^)]*\\\)(?!\))", line):
                wrong.append("%s:%d %s" % (relative(path), number, line.strip()))
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_module_supports_check_mode():
    for path in modules():
        text = path.read_text(encoding="utf-8")
        if "AnsibleModule(" in text:  # else an action plugin does the work, and its tests say so
            assert "supports_check_mode=True" in text, relative(path)


# --- roles


def test_role_defaults_are_those_of_the_argument_specs():
    wrong = []
    for role in roles():
        defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8")) or {}
        specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
        options = {}
        for entry in specs.values():
            options.update(entry.get("options") or {})
        for name in sorted(set(defaults) | set(options)):
            if name not in options:
                wrong.append("%s: %s has a default but is no option" % (role.name, name))
            elif name not in defaults and not options[name].get("required") and "default" in options[name]:
                wrong.append("%s: %s is in the argument specs alone" % (role.name, name))
            elif name in defaults and options[name].get("default") != defaults[name]:
                wrong.append(
                    "%s: %s is %r but documented as %r"
                    % (role.name, name, defaults[name], options[name].get("default"))
                )
    assert not wrong, "\n" + "\n".join(wrong)


def test_roles_are_complete():
    wrong = []
    for role in roles():
        for name in ("README.md", "meta/main.yml", "meta/argument_specs.yml", "tasks/main.yml"):
            if not (role / name).is_file():
                wrong.append("%s lacks %s" % (role.name, name))
    assert not wrong, "\n" + "\n".join(wrong)


# --- the repository


def test_python_files_carry_the_licence_header():
    wrong = []
    for path in tracked():
        text = path.read_text(encoding="utf-8") if path.suffix == ".py" else ""
        lines = text.splitlines()[1:4] if text.startswith("#!") else text.splitlines()[:3]
        if text.strip() and tuple(lines) != HEADER:
            wrong.append(relative(path))
        if text.startswith("#!") and path not in modules():
            wrong.append("%s has a first line that ansible-test keeps for modules" % relative(path))
    assert not wrong, "\n" + "\n".join(wrong)


def test_nothing_names_the_place_of_this_checkout():
    """Neither the folder itself nor, where it is a place of its own, the folder around it."""
    here = [str(ROOT)]
    around = str(ROOT.parent) + os.sep
    if ROOT.parent not in (Path("/"), Path.home(), Path(tempfile.gettempdir())) and len(around) > 2:
        here.append(around)
    wrong = []
    for path in tracked():
        content = path.read_bytes()
        wrong.extend("%s names %s" % (relative(path), place) for place in here if place.encode() in content)
        if re.search(rb"(?<![\w.-])(?:\.\./)?shared/(?:spec|vectors|cases|tools|testbed)\b", content):
            wrong.append("%s names a folder outside the checkout" % relative(path))
    assert not wrong, "\n" + "\n".join(wrong)


def test_galaxy_takes_the_tags():
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    assert len(galaxy["tags"]) <= 20
    assert set(galaxy["tags"]) & {"networking", "infrastructure", "linux", "tools", "security", "monitoring"}
    assert galaxy["dependencies"] == {}


def test_an_ignored_sanity_rule_has_a_reason():
    for path in (ROOT / "tests" / "sanity").glob("ignore-*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert re.search(r"# \w", line), "%s: %s" % (path.name, line)


def yaml_examples():
    """The YAML blocks of README files and guides, as (place, parsed block)."""
    for path in tracked():
        text = path.read_text(encoding="utf-8") if path.suffix in (".md", ".rst") else ""
        blocks = [(match.start(), match.group(1)) for match in re.finditer(r"^```yaml\n(.*?)^```", text, re.M | re.S)]
        for match in re.finditer(r"^\.\. code-block:: yaml\n\n((?:(?: {4}.*)?\n)+)", text, re.M):
            blocks.append((match.start(), textwrap.dedent(match.group(1))))
        for start, block in blocks:
            yield "%s:%d" % (relative(path), text.count("\n", 0, start) + 1), yaml.safe_load(block)


def pairs(value):
    """All key and value pairs of a nested structure."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from pairs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pairs(inner)


def module_options(path):
    """The names of a module's options, those of the fragments included."""
    names = set(
        re.findall(r"^  (\w+):$", re.search(r"^options:\n((?:  .*\n|\n)+)", path.read_text(), re.M).group(1), re.M)
    )
    for fragment in re.findall(r"nodenet\.cni\._options\.(\w+)", path.read_text(encoding="utf-8")):
        source = (ROOT / "plugins" / "doc_fragments" / "_options.py").read_text(encoding="utf-8")
        block = re.search(r'^    %s = r"""\noptions:\n(.*?)"""' % fragment.upper(), source, re.M | re.S).group(1)
        names.update(re.findall(r"^  (\w+):$", block, re.M))
    return names


def test_examples_in_the_documentation_use_what_there_is():
    options = {"nodenet.cni." + path.stem: module_options(path) for path in modules()}
    variables = set(re.findall(r"audit_\w+", (ROOT / "playbooks" / "audit.yml").read_text(encoding="utf-8")))
    cluster = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "playbooks").rglob("multus_cluster.yml"))
    variables.update(re.findall(r"multus_cluster_\w+", cluster))
    for role in roles():
        variables.update(yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8")))
        for entry in yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"].values():
            variables.update(entry.get("options") or {})
    owned = re.compile(r"(?:audit|%s)_\w+" % "|".join(sorted(role.name for role in roles())))
    wrong, seen = [], 0
    for place, block in yaml_examples():
        for key, value in pairs(block):
            if key in options:
                seen += 1
                wrong.extend("%s: %s has no option %s" % (place, key, name) for name in set(value or {}) - options[key])
            elif isinstance(key, str) and key.startswith("nodenet.cni."):
                wrong.append("%s: there is no module %s" % (place, key))
            elif isinstance(key, str) and owned.fullmatch(key):
                seen += 1
                if key not in variables:
                    wrong.append("%s: no role knows the variable %s" % (place, key))
    assert seen > 20
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_readme_lists_all_content_and_nothing_else():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.split("## Included content", 1)[1].split("\n## ", 1)[0]
    named = set(re.findall(r"^\| `(?:nodenet\.cni\.)?(\w+)`", section, re.MULTILINE))
    present = {path.stem for path in modules()} | {role.name for role in roles()}
    present |= {path.stem for path in (ROOT / "playbooks").glob("*.yml")}
    present |= {path.stem for kind in ("filter", "lookup") for path in (ROOT / "plugins" / kind).glob("*.py")}
    assert named == present
