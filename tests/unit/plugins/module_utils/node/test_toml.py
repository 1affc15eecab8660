# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.nodenet.cni.plugins.module_utils.node import toml

DOCUMENTS = [
    "",
    "# only a comment\n",
    "a = 1\nb = -2\nc = 1_000\nd = 0x1F\ne = 1.5\nf = true\ng = false\nh = \"x # y\"\ni = 'C:\\x'\n",
    'version = 2\n[plugins]\n  [plugins."io.containerd.grpc.v1.cri"]\n    [plugins."io.containerd.grpc.v1.cri".cni]\n'
    '      bin_dir = "/usr/lib/cni"\n      conf_dir = "/etc/cni/net.d" # comment\n',
    'a.b.c = 1\na.d = 2\n"quoted key" = 3\n[t]\nx.y = 1\n',
    "list = []\nmore = [1, 2,\n  3, # with a comment\n]\nnested = [[1], [2, [3]]]\ninner = [[[1]]]\n",
    "[[rows]]\nname = 'a'\n[[rows]]\nname = 'b'\n[rows.sub]\nx = 1\n",
    'inline = {a = 1, b = {c = "d"}, "e.f" = []}\nempty = {}\n',
    'esc = "tab\\tquote\\"back\\\\u\\u00e9\\U0001F600"\n',
    "crlf = 1\r\nnext = 2\r\n",
    '[a]\n[a.b]\nx = 1\n[c."d.e"]\n',
    '[crio.network]\nplugin_dirs = [\n\t"/opt/cni/bin/",\n\t"/usr/libexec/cni",\n]\n',
]


@pytest.mark.parametrize("text", DOCUMENTS)
def test_what_it_reads_is_what_python_reads(text):
    reader = pytest.importorskip("tomllib", reason="not run: this Python has no reader of its own")
    assert toml.parse(text) == reader.loads(text)


def test_a_configuration_as_it_comes():
    assert toml.parse(DOCUMENTS[3]) == {
        "version": 2,
        "plugins": {"io.containerd.grpc.v1.cri": {"cni": {"bin_dir": "/usr/lib/cni", "conf_dir": "/etc/cni/net.d"}}},
    }


@pytest.mark.parametrize(
    "text",
    [
        "a\n",
        "a =\n",
        "a = \n1\n",
        "a = 1 b = 2\n",
        "a = yes\n",
        'a = "open\n',
        'a = """x"""\n',
        "a = '''x'''\n",
        "a = 1\na = 2\n",
        "a = 1\n[a]\n",
        "[a]\n[a]\n",
        "[a\n",
        "[a]]\n",
        "[[a]\n",
        "a = [1 2]\n",
        "a = [1\n",
        "a = {b = 1\n",
        "a = {b = 1,, c = 2}\n",
        'a = "\\x"\n',
        "a = 2026-11-29\n",
        "= 1\n",
        "a = 1 ]\n",
        "\x00",
        "a = $x\n",
    ],
)
def test_what_it_does_not_understand_it_refuses(text):
    with pytest.raises(toml.Unreadable, match=r"line \d+ is written in a way that is not understood"):
        toml.parse(text)
