# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sends the code of the program along with the arguments of the module."""

from __future__ import annotations

import os

from ansible.plugins.action import ActionBase

from ansible_collections.nodenet.cni.plugins.module_utils.node import closure, embedded, reclaim_timer

_MODULE_UTILS = os.path.dirname(os.path.dirname(os.path.abspath(closure.__file__)))


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        sources = closure.collect(_MODULE_UTILS, [reclaim_timer.ENTRY])
        arguments["program_sources"] = embedded.pack(sources)
        result.update(self._execute_module(module_args=arguments, task_vars=task_vars))
        result.get("invocation", {}).get("module_args", {}).pop("program_sources", None)
        return result
