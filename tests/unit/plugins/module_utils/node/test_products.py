# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import products


@pytest.mark.parametrize(
    ("source", "product"),
    [
        ("cni-plugins-linux-amd64-v1.5.1.tgz", "cni-plugins-linux-amd64"),
        ("cni-plugins-linux-amd64-v1.6.0-rc.1.tar.xz", "cni-plugins-linux-amd64"),
        ("cni-plugin-flannel-linux-arm64-v1.6.0-flannel1.zip", "cni-plugin-flannel-linux-arm64"),
        ("cni-1.5.1-linux-arm64.tgz", "cni-linux-arm64"),
        ("plugins_1.2.3+git20240101.tar.bz2", "plugins"),
        ("cni2.tgz", "cni2"),
        ("v1.6.0.tgz", "v1.6.0.tgz"),
        ("/usr/lib/cni", "/usr/lib/cni"),
        ("/srv/v1.5.1/cni", "/srv//cni"),
        ("nodenet.cni", "nodenet.cni"),
    ],
)
def test_product(source, product):
    assert products.product(source) == product


RECORD = {
    "bridge": {"source": "cni-v1.0.0.tgz"},
    "sbr": {"source": "cni-v1.0.0.tgz"},
    "ptp": {"source": "cni-v1.1.0.tgz"},
    "flannel": {"source": "flannel-v1.0.0.tgz"},
    "host-local": {"source": "nodenet.cni"},
}


@pytest.mark.parametrize(
    ("source", "held", "keep", "outdated"),
    [
        ("cni-v2.0.0.tgz", ["bridge", "README"], [], ["ptp", "sbr"]),
        ("cni-v2.0.0.tgz", ["bridge"], ["sbr"], ["ptp"]),
        ("cni-v2.0.0.tgz", ["bridge", "ptp", "sbr", "tap"], [], []),
        # named alike but with nothing in common: another product
        ("cni-v2.0.0.tgz", ["calico"], [], []),
        # another product that brings the same plugin
        ("calico-v3.0.0.tgz", ["bridge", "calico"], [], []),
        ("flannel-v1.1.0.tgz", ["flannel"], [], []),
    ],
)
def test_outdated(source, held, keep, outdated):
    assert products.outdated(RECORD, source, held, keep) == outdated
