# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a call of the multus executable costs, as a multiple of the bare start of its interpreter.

A pod without annotation, one delegate that does nothing, an API server on this machine. Prints medians of calls that
take turns. With NODENET_GO_MULTUS=/path/to/multus the Go plugin takes its turns as well.

    python tests/bench/bench_multus.py [--quick]
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import functools
import http.client
import json
import os
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "unit"))

from api_server import ApiServer, Certificates, Fault, kubeconfig
from bench_host_local import Figures, import_root, module, scratch

GO = os.environ.get("NODENET_GO_MULTUS", "")
GO_PEAK_KIB = 34 * 1024
DELEGATE = """\
#!/bin/sh
read -r config
[ "$CNI_COMMAND" != ADD ] || echo '{"cniVersion":"1.0.0","interfaces":[{"name":"nnb0","sandbox":"/x"}],"ips":[]}'
"""
SMALL_PARENT = """
import os, sys
pid = os.fork()
if not pid:
    os.execv(sys.argv[1], sys.argv[1:])
_pid, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(bool(status))
"""
POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns1;K8S_POD_NAME=p1;K8S_POD_UID=uid-1"
YAML = """\
current-context: c
contexts: [{name: c, context: {cluster: local}}]
clusters: [{name: local, cluster: {server: %s}}]
"""


@contextlib.contextmanager
def namespace():
    """A network namespace that lasts as long as a process of ours."""
    process = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    try:
        own = os.readlink("/proc/self/ns/net")
        path = "/proc/%d/ns/net" % process.pid
        while os.readlink(path) == own and process.poll() is None:
            time.sleep(0.01)
        if process.poll() is not None:
            raise SystemExit("unshare --net failed")
        yield path
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


class Multus:
    """One executable with a kubeconfig for each way to the API."""

    def __init__(self, name, path, base, netns, kubeconfigs):
        self.name = name
        self._path = path
        self._base = base
        self._netns = netns
        self._kubeconfigs = kubeconfigs
        self._number = 0

    def call(self, command, way, container):
        """Return the seconds that a call took."""
        data, env = self._call(command, way, container)
        begin = time.perf_counter()
        done = subprocess.run([self._path], input=data, env=env, stdout=subprocess.PIPE, check=False)
        elapsed = time.perf_counter() - begin
        if done.returncode:
            raise SystemExit("%s, %s over %s: %s" % (self.name, command, way, done.stdout.decode()))
        return elapsed

    def peak(self, python, command, way, container):
        """Return the most memory that a call took, in KiB; a process begins with that of the one that starts it."""
        data, env = self._call(command, way, container)
        command_line = [python, "-IBS", "-c", SMALL_PARENT, self._path]
        done = subprocess.run(command_line, input=data, env=env, capture_output=True, check=True)
        return int(done.stderr.split()[-1])

    def _call(self, command, way, container):
        config = {
            "cniVersion": "1.0.0", "name": "bench", "type": "multus", "kubeconfig": self._kubeconfigs[way],
            "cniDir": "%s/cni-%s" % (self._base, self.name), "binDir": self._base,
            "delegates": [{"cniVersion": "1.0.0", "name": "inner", "type": "delegate"}],
        }  # fmt: skip
        env = {
            "CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_NETNS": self._netns, "CNI_IFNAME": "nnb0",
            "CNI_PATH": self._base, "CNI_ARGS": POD,
        }  # fmt: skip
        return json.dumps(config).encode(), env


def alone(path):
    """The delegate without Multus."""
    begin = time.perf_counter()
    subprocess.run([path], input=b"{}\n", env={"CNI_COMMAND": "ADD"}, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - begin


def requests_alone(url, certificates):
    """As many requests as an ADD makes, on one connection of the standard library, which is imported already."""
    host = url.partition("//")[2]
    begin = time.perf_counter()
    if url.startswith("https"):
        context = ssl.create_default_context(cafile=str(certificates.ca))
        connection = http.client.HTTPSConnection(host, context=context)
    else:
        connection = http.client.HTTPConnection(host)
    for _request in range(REQUESTS):
        connection.request("GET", "/api/v1/namespaces/ns1/pods/p1")
        connection.getresponse().read()
    connection.close()
    return time.perf_counter() - begin


def start(python):
    begin = time.perf_counter()
    subprocess.run([python, "-IBS", "-c", "pass"], check=True)
    return time.perf_counter() - begin


CALLS = [("ADD", "http"), ("CHECK", "http"), ("DEL", "http"), ("ADD", "https"), ("DEL", "https")]
CALLS += [("ADD", "http, kubeconfig in YAML"), ("DEL", "http, kubeconfig in YAML")]
REQUESTS = 5  # GET pod, PATCH status (refused), GET pod, PUT status, POST event
LIMITS = {"http": 2.5, "https": 6}


def measure(python, plugins, others, turns):
    """Return the medians of the bare interpreter, of *others* and of each call."""
    bare = []
    rest = {name: [] for name in others}
    times = {(plugin.name, *call): [] for plugin in plugins for call in CALLS}
    for turn in range(turns):
        bare.append(start(python))
        for name, other in others.items():
            rest[name].append(other())
        for plugin in plugins:
            for command, way in CALLS:
                times[plugin.name, command, way].append(plugin.call(command, way, "bench-%d-%d" % (turn, len(way))))
    medians = {key: statistics.median(values) for key, values in times.items()}
    return statistics.median(bare), {name: statistics.median(values) for name, values in rest.items()}, medians


def measure_memory(python, plugins):
    return {
        (plugin.name, *call): max(plugin.peak(python, *call, "memory-%d" % len(call[1])) for _turn in range(3))
        for plugin in plugins
        for call in CALLS
    }


def show(bare, others, medians):
    Figures.line("bare interpreter", bare * 1000, "ms")
    Figures.line("the delegate alone, which ADD, CHECK and DEL run", others["delegate"] * 1000, "ms")
    for command, way in CALLS:
        what = "%s over %s" % (command, way)
        total = medians["ours", command, way]
        Figures.line("ours, " + what, total * 1000, "ms")
        if way in LIMITS:
            besides = others["delegate"]
            if command == "ADD":
                Figures.line("%d requests over %s alone" % (REQUESTS, way), others[way] * 1000, "ms")
                besides += others[way]
            what += " against the bare interpreter, less API and delegate"
            Figures.target(what, (total - besides) / bare, LIMITS[way], at_least=False)
        if ("Go", command, way) in medians:
            Figures.line("Go, %s over %s" % (command, way), medians["Go", command, way] * 1000, "ms")


def show_memory(peaks):
    for (name, command, way), peak in peaks.items():
        Figures.line("%s, most memory of %s over %s" % (name, command, way), peak / 1024, "MiB")
    most = max(peak for (name, *_call), peak in peaks.items() if name == "ours")
    Figures.target("most memory against that of Go (34 MiB)", most / GO_PEAK_KIB, 1, at_least=False)


def bench(quick):
    python = os.path.realpath("/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable)
    with scratch() as base, namespace() as netns, contextlib.ExitStack() as stack:
        delegate = Path(base, "delegate")
        delegate.write_text(DELEGATE)
        delegate.chmod(0o755)
        certificates = Certificates(Path(base, "certificates"))
        servers = {"http": ApiServer(), "https": ApiServer(certificates)}
        cluster = {"certificate-authority-data": base64.b64encode(certificates.ca.read_bytes()).decode()}
        kubeconfigs = {}
        for way, server in servers.items():
            stack.enter_context(server)
            server.add_pod("ns1", "p1")
            # as with the ClusterRole that Multus ships, which does not let it patch
            server.faults = [Fault("/status$", "PATCH", code=403, message="no", times=None)]
            path = Path(base, way + ".kubeconfig")
            path.write_text(json.dumps(kubeconfig(server.url, cluster if way == "https" else None, {"token": "t"})))
            kubeconfigs[way] = str(path)
        kubeconfigs["http, kubeconfig in YAML"] = str(Path(base, "yaml.kubeconfig"))
        Path(base, "yaml.kubeconfig").write_text(YAML % servers["http"].url)
        (ours,) = module("node.executables").build(
            str(ROOT / "plugins" / "module_utils"), os.path.join(base, "bin"), ["multus"], python
        )
        plugins = [Multus("ours", ours, base, netns, kubeconfigs)]
        if GO:
            plugins.append(Multus("Go", GO, base, netns, kubeconfigs))
        others = {way: functools.partial(requests_alone, servers[way].url, certificates) for way in servers}
        others["delegate"] = functools.partial(alone, str(delegate))
        measure(python, plugins, others, 2)
        show(*measure(python, plugins, others, 10 if quick else 40))
        show_memory(measure_memory(python, plugins))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    quick = parser.parse_args().quick
    print("One call of the multus executable, a pod without annotation")
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("openssl"):
        Figures.not_run("multus", "it takes root, unshare and openssl")
        return
    with import_root():
        bench(quick)
    if not GO:
        Figures.not_run("the comparison with Go", "NODENET_GO_MULTUS names no plugin")


if __name__ == "__main__":
    main()
