# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asks again and again which network a pod would get on a node, as containerd and as CRI-O choose it."""

from __future__ import annotations

import threading
import time

from ansible_collections.nodenet.cni.plugins.module_utils.node import confdir, effective


class Lookout:
    """Looks from now on until ``stop()``, which returns how often it looked and all answers that it got.

    An answer is (network of containerd, network of CRI-O, the contents of all files). CRI-O passes over a network whose
    plugins are not all there, so they are looked for each time.
    """

    def __init__(self, conf_dir: str, bin_dir: str) -> None:
        self._places = conf_dir, bin_dir
        self._looks = 0
        self._answers: set = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        conf_dir, bin_dir = self._places
        while not self._ended.is_set():
            files = confdir.read_conf_dir(conf_dir).files
            chosen = effective.predict(files, effective.Settings(confdir.installed_plugins(bin_dir)))
            contents = tuple(one.data for one in files)
            self._answers.add((chosen["containerd"]["network"], chosen["crio"]["network"], contents))
            self._looks += 1
            time.sleep(0.008)  # the play needs the processor as well

    def stop(self) -> tuple[int, set]:
        self._ended.set()
        self._thread.join()
        return self._looks, self._answers
