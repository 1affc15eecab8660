#!/usr/bin/python
# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: plugin_binaries
short_description: Install CNI plugin executables
version_added: 0.1.0
description:
  - Makes the plugins of an archive or a directory present in the bin directory of a node, or removes what it
    installed before.
  - Use it to install or upgrade plugins on a node that is in use. Every file is replaced by a rename, so that a
    plugin is never missing or partial, a plugin that is running goes on, and C(text file busy) cannot happen. Links
    are replaced, never written through.
  - Everything is verified before anything is written, the checksum of the archive, every name in it, that each plugin
    is an executable for the architecture of the node, and that it is complete. Plugins of other products in the same
    directory are left alone.
  - A new version takes away what an older version of the same source brought and it has not. What it takes the place
    of is kept, and O(state=previous) puts it back.
extends_documentation_fragment:
  - nodenet.cni._attributes
  - nodenet.cni._attributes.actiongroup_all
  - nodenet.cni._attributes.platform
  - nodenet.cni._options.bin_dir
  - nodenet.cni._options.state_dir
attributes:
  action:
    description: Has a matching action plugin, so that some of the work is done on the controller.
    support: full
    details:
      - It copies O(src) from the controller, if something of it is not in place yet.
      - It sends the code of the O(embedded) plugins along with the module, and for V(multus) the Python packages
        PyYAML and h2 of the controller.
  check_mode:
    support: full
    details:
      - A directory for plugins or state that could not be used fails the task here already.
      - Plugins that would be written are not asked for their versions, RV(plugins[].version) is empty for them unless
        they were asked before.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  src:
    description:
      - Archive with the plugins, C(.tgz), C(.tar.gz), C(.tar.xz), C(.tar.bz2), C(.tar) or C(.zip), told by its
        content, or a directory with them.
      - Only files at the top of it count, or those in its one top folder if there is nothing else at the top. Of
        these only ELF programs are taken as plugins, and what O(include) names. An archive that holds a link, a
        device, or a name that points outside of it, is refused.
      - In a directory a link counts as the file that it leads to, if that lies in the directory.
      - Without it the module only looks after the O(embedded) and O(required) plugins, or removes what it installed.
      - With O(checksum) an archive may be gone from the node once all of it is installed.
      - C({arch}) in it, and in O(checksum), stands for the architecture of the node as published archives spell it,
        such as C(amd64) or C(arm64). It, and O(checksum), can be dictionaries as well, with a value for each
        architecture.
      - Of plugins that this module installed from an older version of the same source, those that the source has no
        more are removed, unless O(required) names them or somebody changed them since. Sources are versions of each
        other if they are named alike but for a version, as C(cni-plugins-linux-amd64-v1.5.1.tgz) and
        C(cni-plugins-linux-amd64-v1.6.0.tgz), and share a plugin.
    type: path
  remote_src:
    description:
      - Whether O(src), and the checksum file in O(checksum), lie on the node. If not, they are looked for on the
        controller, as for M(ansible.builtin.copy), then in the directory of the inventory and in the current one, in
        C(files) there and beside it. A playbook of a collection has no files of its user's beside it.
    type: bool
    default: false
  checksum:
    description:
      - Digest that the archive must have, C(sha256:<hex digest>) or C(sha512:<hex digest>).
      - C(sha256:<path>) takes the digest from a checksum file, out of the line that names the file name of O(src). A
        digest without a file name only counts if it is the only one in the file.
    type: str
  file_checksums:
    description:
      - Digests that plugins must have, by name, each C(sha256:<hex digest>). They hold for what is installed from
        O(src), also from a directory, and for O(required) plugins that are kept.
      - If one differs, nothing is changed. A plugin without a digest here is not checked.
    type: dict
  keep_previous:
    description:
      - Whether what a new version takes the place of is kept in O(state_dir), for O(state=previous). It takes about as
        much room as the plugins.
    type: bool
    default: true
  embedded:
    description:
      - Plugins to install that this collection brings itself, written in Python. They take the place of plugins of the
        same name in O(src), which are not installed then, and O(include) need not name them.
      - V(host-local) keeps its reservations as the plugin of the CNI project does, and both can be exchanged for each
        other at any time.
      - V(multus) takes the configuration of the thin plugin of Multus, and takes over the pods that it finds. It starts
        no daemon. Along with it go PyYAML, for kubeconfigs that are YAML, and h2, to ask the kubelet for devices, if
        the controller has them; of either only what is written in Python.
      - A plugin is a small script in O(bin_dir); its code lies in the directory C(.nodenet-cni) there. It runs with
        the Python that runs the module, C(ansible_python_interpreter), which must not lie in a virtual environment or
        in a home directory. It needs nothing but that.
      - A new version is complete before the script is exchanged. The version before stays until the next run, also
        after a removal, so that calls in progress can finish, and for as long as O(state=previous) may need it.
      - With O(state=absent), these are removed even if something else made them of this collection.
    type: list
    elements: str
    choices: [host-local, multus]
  embedded_sources:
    description:
      - The code of the O(embedded) plugins, packed. The action plugin sends it along; a playbook never sets it.
    type: str
  include:
    description:
      - Names of the plugins to install. All in O(src) if this is empty. A script is only installed if it is named here.
      - With O(state=absent), names of the plugins to remove, whoever installed them.
      - With O(state=previous), names of the plugins to put back, whoever changed them since.
    type: list
    elements: str
    default: []
  required:
    description:
      - Names of plugins that must be in O(bin_dir) afterwards. Those that are neither in O(src) nor O(embedded) must be
        there already. They are kept and reported.
      - If one is neither in O(src) nor there, nothing is changed, and the error says where the plugin comes from.
      - Without O(src) and O(embedded) there must be a list, an empty one will do. With O(state=absent) this has no
        effect.
    type: list
    elements: str
  state:
    description:
      - V(present) installs what is missing or differs, by content, mode or owner. The files get mode C(0755) and
        belong to the user who runs the module.
      - V(absent) removes the plugins that this module wrote, if nobody changed them since, and the code of O(embedded)
        ones that nothing uses any more. What was in place already
        when it came is not its own and stays. If O(src) is given, plugins that are identical to those in it are removed
        too, whoever brought them. What was kept of earlier versions is removed as well.
      - V(previous) makes the plugins again what they were before the last task that brought a new version of some, or
        new ones. What was not there then is removed. Other files, modes and owners as well as links are as before. A
        plugin that somebody changed since stays. A second run changes nothing. A task that only repairs plugins leaves
        what is kept alone.
    type: str
    choices: [present, absent, previous]
    default: present
  conf_dir:
    description:
      - Directory with network configurations. With O(state=absent), what these networks need stays, unless O(include)
        names it, the plugins of their chains as well as those that these call, of C(ipam) and of delegates.
      - A file that no runtime can load keeps the plugins that its text names.
      - Without it, and in the other states, no network is looked at.
    type: path
  leaving_networks:
    description:
      - Names of networks in O(conf_dir) that keep nothing, as they go as well. In check mode they are there still.
    type: list
    elements: str
    default: []
seealso:
  - module: nodenet.cni.conflist
author:
  - The nodenet.cni authors (@nodenet)
"""

EXAMPLES = r"""
- name: Install the plugins of an archive that lies on the controller
  nodenet.cni.plugin_binaries:
    src: cni-plugins-linux-amd64-v1.5.1.tgz

- name: Install a verified archive from a mirror that every node mounts
  nodenet.cni.plugin_binaries:
    src: /srv/mirror/cni-plugins-linux-amd64-v1.5.1.tgz
    remote_src: true
    checksum: sha256:/srv/mirror/SHA256SUMS

- name: Take some of the distribution's plugins, and make sure that flannel is there
  nodenet.cni.plugin_binaries:
    src: /usr/lib/cni
    remote_src: true
    include: [bridge, host-local, loopback, portmap]
    required: [flannel]

- name: Take the distribution's plugins, but host-local from this collection
  nodenet.cni.plugin_binaries:
    src: /usr/lib/cni
    remote_src: true
    include: [bridge, loopback, portmap]
    embedded: [host-local]

- name: Take both of the collection's own plugins, and nothing else
  nodenet.cni.plugin_binaries:
    embedded: [host-local, multus]

- name: See what an upgrade would change
  nodenet.cni.plugin_binaries:
    src: cni-plugins-linux-amd64-v1.6.0.tgz
  check_mode: true
  diff: true

- name: Install the archive for the architecture of each node
  nodenet.cni.plugin_binaries:
    src: cni-plugins-linux-{arch}-v1.6.0.tgz
    checksum: sha256:SHA256SUMS

- name: Install another archive on each architecture
  nodenet.cni.plugin_binaries:
    src:
      amd64: cni-plugins-linux-amd64-v1.6.0.tgz
      arm64: vendor-plugins-for-arm.tar.xz
    checksum:
      amd64: sha256:4b1e5cd2e4c5b1c2a0a4a5e9d9a3a7c8f6a3b2c1d0e9f8a7b6c5d4e3f2a1b0c9
      arm64: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

- name: Take plugins from a directory only if they are the right ones
  nodenet.cni.plugin_binaries:
    src: /srv/plugins
    remote_src: true
    include: [bridge]
    file_checksums:
      bridge: sha256:5ed55ea9c6b5f9f1d9ee0f2d2d3ae9ec04a7e8d56c4a5e4a6b1c1c7b1d3d0d1f

- name: Put back what was there before the last upgrade
  nodenet.cni.plugin_binaries:
    state: previous

- name: Remove what this module installed, other plugins stay
  nodenet.cni.plugin_binaries:
    state: absent

- name: Remove it but for the plugins that a network on the node needs
  nodenet.cni.plugin_binaries:
    state: absent
    conf_dir: /etc/cni/net.d
"""

RETURN = r"""
bin_dir:
  description: The directory with the plugins.
  type: str
  returned: success
  sample: /opt/cni/bin
plugins:
  description: The plugins that the task speaks of, by name.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name of the plugin, which is its type in a network configuration.
      type: str
      sample: bridge
    path:
      description: Where it is.
      type: str
      sample: /opt/cni/bin/bridge
    action:
      description:
        - What was done, or would be done in check mode. V(adjusted) means that mode or owner were set right. V(kept)
          is a required plugin that was there already, or a file that was to go or to be put back and stays, since
          somebody changed it or a network needs it.
      type: str
      sample: replaced
    sha256:
      description: Digest of the content. Empty for what is no plain file.
      type: str
      sample: 5ed55ea9c6b5f9f1d9ee0f2d2d3ae9ec04a7e8d56c4a5e4a6b1c1c7b1d3d0d1f
    embedded:
      description: Whether it is one that this collection brings itself.
      type: bool
      sample: false
    drift:
      description:
        - Whether somebody else had changed or removed the file since this module wrote it, as this task found it.
      type: bool
      sample: false
    version:
      description:
        - Release, in the plugin's own words. Empty if it does not tell, as those that Debian builds.
        - To tell, a plugin is started when it was written, once, and its answer is kept for as long as the file stays
          the same. Of files that neither O(include) nor O(required) names, only those with the name of a known plugin
          are started.
      type: str
      sample: v1.5.1
    cni_versions:
      description: Versions of the CNI specification that the plugin speaks, in its own words, as for its release.
      type: list
      elements: str
      sample: ["0.4.0", "1.0.0"]
    needed_by:
      description:
        - The networks that keep a plugin which O(state=absent) would remove without O(conf_dir). Of a file without a
          network's name, its own.
      type: list
      elements: str
      sample: []
removed:
  description:
    - Names of the plugins that were removed, by O(state=absent), or as the source or the state of before has them not.
  type: list
  elements: str
  returned: success
  sample: []
brought:
  description:
    - Names of the plugins that this task brought a new version of, or removed with one, and that O(state=previous) puts
      back. Empty when it only repaired some, in check mode, and without O(keep_previous).
  type: list
  elements: str
  returned: success
  sample: ["bridge", "portmap"]
ignored:
  description: Names of files in O(src) that were passed over.
  type: list
  elements: str
  returned: success
  sample: ["LICENSE", "README.md"]
findings:
  description: What is wrong or doubtful with the plugins.
  type: list
  elements: dict
  returned: success, or when the bin directory is mounted with noexec
  contains:
    code:
      description: Code of the finding. It never changes its meaning.
      type: str
      sample: BIN002
    severity:
      description: One of V(error), V(warning), V(info).
      type: str
      sample: warning
    where:
      description: The file.
      type: str
      sample: /opt/cni/bin/bridge
    text:
      description: What is wrong.
      type: str
      sample: "does not answer VERSION: no answer within 5 s"
    hint:
      description: What to do about it.
      type: str
      sample: run it by hand with CNI_COMMAND=VERSION
    go:
      description: What the container runtime does about it, one of V(fails), V(carries_on), V(unaffected).
      type: str
      sample: fails
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nodenet.cni.plugins.module_utils import _ansible
from ansible_collections.nodenet.cni.plugins.module_utils.node import bin_report, binaries, put_back


def main():
    module = AnsibleModule(
        argument_spec=dict(
            src=dict(type="path"),
            # Settled by the action plugin: by the time this runs, src lies on the node.
            remote_src=dict(type="bool", default=False),
            checksum=dict(type="str"),
            file_checksums=dict(type="dict"),
            keep_previous=dict(type="bool", default=True),
            include=dict(type="list", elements="str", default=[]),
            embedded=dict(type="list", elements="str", choices=["host-local", "multus"]),
            embedded_sources=dict(type="str", no_log=True),  # not secret, but far too long for a log
            required=dict(type="list", elements="str"),
            state=dict(type="str", choices=["present", "absent", "previous"], default="present"),
            conf_dir=dict(type="path"),
            leaving_networks=dict(type="list", elements="str", default=[]),
            **_ansible.BIN_DIR_OPTIONS,
            **_ansible.STATE_DIR_OPTIONS,
        ),
        required_if=[("state", "present", ("src", "embedded", "required"), True)],
        required_by={"checksum": ("src",)},
        supports_check_mode=True,
    )
    params = module.params

    def work():
        places = {key: params[key] for key in ("bin_dir", "state_dir", "include")}
        places.update(check_mode=module.check_mode)
        source = {key: params[key] for key in ("src", "checksum")}
        source.update(own=list(dict.fromkeys(params["embedded"] or [])))
        if params["state"] == "present":
            more = {key: params[key] for key in ("file_checksums", "keep_previous")}
            more.update(required=params["required"] or [], sources=params["embedded_sources"])
            result = binaries.install(**places, **source, **more)
        elif params["state"] == "absent":
            kept = dict(conf_dir=params["conf_dir"], leaving=params["leaving_networks"])
            result = binaries.remove(**places, **source, **kept)
        else:
            result = put_back.put_back(**places)
        _ansible.warn_findings(module, result["findings"])
        difference = result.pop("diff")
        if module._diff:
            result["diff"] = bin_report.as_lines(difference)
        return result

    _ansible.run(module, work)


if __name__ == "__main__":
    main()
