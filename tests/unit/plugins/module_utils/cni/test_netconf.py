# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.cni import netconf
from ansible_collections.nodenet.cni.plugins.module_utils.cni.errors import CniError, ConfigError

GOOD = '{"name": "n", "cniVersion": "1.0.0", "plugins": [{"type": "bridge"}, {"type": "portmap"}]}'


def test_a_list():
    config = netconf.load_config(GOOD.encode(), "10-n.conflist")
    assert (config.name, config.cni_version, len(config.plugins)) == ("n", "1.0.0", 2)


def test_what_a_runtime_needs_of_a_list():
    config = netconf.load_config(GOOD.encode(), "10-n.conflist")
    assert (config.data, config.is_list, config.disable_check, config.disable_gc) == (GOOD.encode(), True, False, False)
    text = '{"name": "n", "disableCheck": true, "disableGC": "true", "plugins": [{"type": "a"}]}'
    config = netconf.load_config(text.encode(), "10-n.conflist")
    assert (config.disable_check, config.disable_gc) == (True, True)
    assert not netconf.load_config(b'{"type": "bridge", "disableCheck": true}', "10-n.conf").is_list


def test_a_single_plugin_may_have_no_name():
    config = netconf.load_config(b'{"type": "bridge"}', "10-n.conf")
    assert (config.name, config.cni_version, len(config.plugins)) == ("", "", 1)


def test_the_highest_version_that_we_speak():
    text = '{"name":"n", "cniVersion":"0.4.0", "cniVersions": ["0.3.1", "9.9.9", "1.0.0"], "plugins": [{"type": "a"}]}'
    assert netconf.load_config(text.encode(), "x.conflist").cni_version == "1.0.0"


@pytest.mark.parametrize(
    ("text", "filename", "path"),
    [
        ("[]", "a.conflist", ""),
        ("{}", "a.conflist", "name"),
        ('{"Name": "n", "plugins": [{"type": "b"}]}', "a.conflist", "name"),
        ('{"name": 5, "plugins": [{"type": "b"}]}', "a.conflist", "name"),
        ('{"name": "n"}', "a.conflist", "plugins"),
        ('{"name": "n", "plugins": []}', "a.conflist", "plugins"),
        ('{"name": "n", "plugins": {}}', "a.conflist", "plugins"),
        ('{"name": "n", "plugins": [{"type": "b"}, 5]}', "a.conflist", "plugins[1]"),
        ('{"name": "n", "plugins": [{"type": "b"}, {}]}', "a.conflist", "plugins[1].type"),
        ('{"name": "n", "plugins": [{"type": 5}]}', "a.conflist", "plugins[0].type"),
        ('{"name": "n", "cniVersion": 1, "plugins": [{"type": "b"}]}', "a.conflist", "cniVersion"),
        ('{"name": "n", "cniVersions": "1.0.0", "plugins": [{"type": "b"}]}', "a.conflist", "cniVersions"),
        ('{"name": "n", "disableCheck": "yes", "plugins": [{"type": "b"}]}', "a.conflist", "disableCheck"),
        (GOOD, "a.conf", "type"),
        ('{"type": ""}', "a.json", "type"),
    ],
)
def test_what_libcni_refuses(text, filename, path):
    with pytest.raises(ConfigError) as caught:
        netconf.load_config(text.encode(), filename)
    assert (caught.value.code, caught.value.path) == (7, path)


def test_no_document_at_all():
    with pytest.raises(CniError, match="unexpected end of JSON input") as caught:
        netconf.load_config(b"{", "a.conflist")
    assert caught.value.code == 6
