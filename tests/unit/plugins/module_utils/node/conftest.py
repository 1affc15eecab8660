# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest


@pytest.fixture
def case():
    """Load a public case of tests/cases by its id."""
    root = os.path.abspath(__file__)
    while not os.path.isdir(os.path.join(root, "tests", "cases")):
        root = os.path.dirname(root)

    def load(name):
        with open(os.path.join(root, "tests", "cases", name + ".json"), encoding="utf-8") as stream:
            return json.load(stream)

    return load
