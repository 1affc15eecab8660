# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names that are nearly known ones: variables and parameters that somebody misspelt.

Ansible takes any variable, so that one with a slip in its name asks for nothing, and nobody is told. But the names that
are not ours are somebody's own. So names are compared word by word, and a word of few letters has to be right but for
what fingers do: two letters exchanged, one left out or typed twice.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
import typing as t

from ansible.module_utils.common.yaml import yaml_load

_ROLES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "roles")
_BETWEEN_WORDS = re.compile(r"[_-]+")
#: How many letters must be right of a name that begins with another word, as network_mode may be anybody's.
_LETTERS = 8


@functools.lru_cache(maxsize=1)
def role_variables(folder: str = _ROLES) -> t.Mapping[str, str]:
    """Return the variables in the argument specs of the collection's roles, each with its role. Errors: OSError."""
    found = {}
    for role in sorted(os.listdir(folder)):
        path = os.path.join(folder, role, "meta", "argument_specs.yml")
        if not os.path.isfile(path):
            continue
        with open(path, encoding="utf-8") as stream:
            entries = yaml_load(stream)["argument_specs"].values()
        found.update({name: role for entry in entries for name in entry.get("options") or {}})
    return found


def near_misses(names: t.Iterable[str], known: t.Mapping[str, str]) -> dict[str, str]:
    """Return those of the names that are nearly a known one, with the one that is meant, in the order of names.

    :param known: prefix by name, which is the role of a variable; "" if there is none
    """
    plain = {_joined(name): name for name in known}
    words = {name: _words(name) for name in known}
    first = {each[0] for each in words.values()}
    beginnings: dict[str, bool] = {}
    found = {}
    for name in sorted(set(names) - set(known)):
        given = _words(name)
        if given[0] not in beginnings:  # of a great many variables nearly all begin otherwise
            beginnings[given[0]] = any(_alike(given[0], each) for each in first)
        if _joined(name) in plain:
            found[name] = plain[_joined(name)]
        elif beginnings[given[0]]:
            fitting = [each for each, prefix in known.items() if _is_slip(given, words[each], _words(prefix))]
            if fitting:
                found[name] = max(fitting, key=lambda each: difflib.SequenceMatcher(None, name, each).ratio())
    return found


def _is_slip(given: list[str], meant: list[str], prefix: list[str]) -> bool:
    if len(given) != len(meant) or not all(map(_alike, given, meant)):
        return False
    pairs = list(zip(given, meant, strict=True))
    other_word = any(one != two and _singular(one) == _singular(two) for one, two in pairs[: len(prefix)])
    right = [
        len(two)
        for place, (one, two) in enumerate(pairs)
        if one == two or (place >= len(prefix) and _singular(one) == _singular(two))
    ]
    return not other_word or sum(right) >= _LETTERS


@functools.lru_cache(maxsize=None)
def _alike(given: str, meant: str) -> bool:
    """Tell whether one word may be a slip of the other, or is the same."""
    if given == meant or _singular(given) == _singular(meant):
        return True
    short, long = sorted((len(given), len(meant)))
    if short < 3 or long - short > 2:
        return False
    steps = _distance(given, meant)
    if short >= 8:
        return steps <= 2
    if steps != 1:
        return False
    if short >= 6:
        return True
    # of so few letters, another one makes another word: bin and bit, state and stage, bin and sbin
    return sorted(given) == sorted(meant) or (short != long and given[0] == meant[0])


def _distance(one: str, two: str) -> int:
    """Count the letters to insert, drop, replace or exchange with their neighbour (Damerau, each place once)."""
    before: list[int] = []
    last = list(range(len(two) + 1))
    for row, letter in enumerate(one, 1):
        this = [row]
        for column, other in enumerate(two, 1):
            steps = min(last[column] + 1, this[-1] + 1, last[column - 1] + (letter != other))
            if row > 1 and column > 1 and letter == two[column - 2] and one[row - 2] == other:
                steps = min(steps, before[column - 2] + 1)
            this.append(steps)
        before, last = last, this
    return last[-1]


def _words(name: str) -> list[str]:
    return _BETWEEN_WORDS.split(name.lower())


def _joined(name: str) -> str:
    return "".join(_words(name))


def _singular(word: str) -> str:
    return word[:-3] + "y" if word.endswith("ies") else word[:-1] if word.endswith("s") and len(word) > 3 else word
