# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One recorded scenario of Multus: files, API server, plugins and a network namespace, in a directory of its own."""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
import reporting
from multus_api import ApiServer

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "local", "cluster": {"server": "@API@"}}],
    "users": [{"name": "multus", "user": {"token": "tok-123"}}],
    "contexts": [{"name": "multus-context", "context": {"cluster": "local", "user": "multus"}}],
    "current-context": "multus-context",
}
DEVICE_INFO = "/var/run/k8s.cni.cncf.io"
KUBELET = "/var/lib/kubelet"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
PLUGIN = """\
#!{python} -ISE
import json, os, sys
here = os.path.abspath(sys.argv[0])
name, root = os.path.basename(here), os.path.dirname(os.path.dirname(here))
raw = sys.stdin.buffer.read()
env = {{key: value for key, value in os.environ.items() if key.startswith("CNI_")}}
command = env.get("CNI_COMMAND", "")
try:
    stdin = json.loads(raw.decode())
except ValueError:
    stdin = {{"$raw": raw.decode("utf-8", "replace")}}
try:
    with open(root + "/answered.json") as stream:
        answered = json.load(stream)
except FileNotFoundError:
    answered = {{}}
number = answered.get(name + "/" + command, 0)
answered[name + "/" + command] = number + 1
with open(root + "/answered.json", "w") as stream:
    json.dump(answered, stream)
with open(root + "/calls.jsonl", "a") as stream:
    record = {{"plugin": name, "dir": os.path.dirname(here), "env": env, "stdin": stdin}}
    stream.write(json.dumps(record) + "\\n")
with open(root + "/plugins.json") as stream:
    answer = json.load(stream).get(name, {{}}).get(command)
if isinstance(answer, list):
    answer = answer[min(number, len(answer) - 1)]
if answer is None:
    sys.exit(0)
text = json.dumps(answer)
for token, key in (("@IFNAME@", "CNI_IFNAME"), ("@NETNS@", "CNI_NETNS"), ("@CID@", "CNI_CONTAINERID")):
    text = text.replace(token, env.get(key, ""))
answer = json.loads(text)
if answer.get("ip"):
    import subprocess
    for arguments in answer["ip"]:
        subprocess.call(["nsenter", "--net=" + env.get("CNI_NETNS", ""), "ip"] + arguments)
if answer.get("write"):
    path = answer["write"]["path"]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as stream:
        stream.write(answer["write"]["text"])
sys.stderr.write(answer.get("stderr", ""))
for key, rc in (("result", 0), ("error", 1)):
    if key in answer:
        sys.stdout.write(json.dumps(answer[key]))
        sys.stdout.flush()
        sys.exit(answer.get("rc", rc))
sys.stdout.write(answer.get("stdout", ""))
sys.stdout.flush()
sys.exit(answer.get("rc", 0))
"""


def require_namespaces() -> None:
    """Without the right to make network namespaces skip aloud, or fail where that is mandatory (``CI=true``)."""
    if os.geteuid() == 0 and shutil.which("ip") and shutil.which("nsenter"):
        return
    why = "not run: multus scenarios need root, ip and nsenter"
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    reporting.note(why)
    pytest.skip(why)


def replaced(value, pairs):
    if isinstance(value, str):
        for old, new in pairs:
            value = value.replace(old, new)
        return value
    if isinstance(value, list):
        return [replaced(one, pairs) for one in value]
    if isinstance(value, dict):
        return {replaced(key, pairs): replaced(one, pairs) for key, one in value.items()}
    return value


def make_certificate(folder: Path) -> tuple[str, str, str]:
    """Return paths of certificate, key and CA of a server at 127.0.0.1, made once."""
    certificate, key, ca = (str(folder / name) for name in ("server.pem", "server.key", "ca.pem"))
    if not os.path.exists(certificate):
        folder.mkdir(exist_ok=True)
        (folder / "ext").write_text("subjectAltName=IP:127.0.0.1\n")
        new = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        orders = [
            [*new, "-x509", "-days", "30", "-subj", "/CN=test-ca", "-keyout", "ca.key", "-out", "ca.pem"],
            [*new, "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr"],
            ["openssl", "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]
            + ["-days", "30", "-extfile", "ext", "-out", "server.pem"],
        ]
        for order in orders:
            subprocess.run(order, cwd=folder, check=True, capture_output=True)
    return certificate, key, ca


class Scenario:
    """The world of one vector. Leave it with ``close``.

    :param driver: calls multus: ``driver.call(env, stdin, cwd, argv)``
    :param folder: for what several scenarios share
    """

    def __init__(self, driver, vector: dict, folder: Path, number: int = 0) -> None:
        self.driver = driver
        self.vector = copy.deepcopy(vector)
        self.root = tempfile.mkdtemp(prefix="nodenet-multus.")
        self.netns_name = "nodenet-mv-%d-%d" % (os.getpid(), number)
        self.netns = "/var/run/netns/" + self.netns_name
        self.timers: list = []
        self.kubelet = None
        for name in ("bin", "bin2", "conf", "tmp"):
            os.mkdir(os.path.join(self.root, name))
        certificate = make_certificate(folder / "tls") if vector.get("tls") else None
        self.api = ApiServer(certificate[:2] if certificate else None)
        try:
            self.prepare(certificate)
        except BaseException:
            self.close()
            raise

    def prepare(self, certificate) -> None:
        vector = self.vector
        path = self.root + "/"
        self.pairs = [
            ("@CNIDIR@", path + "cni"),
            ("@CONFDIR@", path + "conf"),
            ("@BINDIR2@", path + "bin2"),
            ("@BINDIR@", path + "bin"),
            ("@TMP@", path + "tmp"),
            ("@KUBECONFIG@", path + "multus.kubeconfig"),
            ("@API@", self.api.url),
            ("@APIHOST@", "127.0.0.1:%d" % self.api.port),
            ("@APIPORT@", str(self.api.port)),
            ("@NETNS@", self.netns),
        ]
        if certificate:
            data = base64.b64encode(Path(certificate[2]).read_bytes()).decode()
            self.pairs += [("@CA_DATA@", data), ("@CA_FILE@", certificate[2])]
        self.masks = [(new, old) for old, new in self.pairs if old != "@APIPORT@"]
        self.masks += [(path + "host" + one, one) for one in (DEVICE_INFO, KUBELET)]
        for pod in vector.get("pods", []):
            self.api.put_pod(pod)
        for nad in vector.get("nads", []):
            self.api.put_nad(nad)
        self.api.objects = vector.get("objects", {})
        self.api.rules = vector.get("api_rules", [])
        self.api.looked_for = vector.get("keep_raw_put", [])
        kubeconfig = vector.get("kubeconfig", KUBECONFIG)
        if kubeconfig is not None:
            self.write(path + "multus.kubeconfig", kubeconfig)
        for name, content in (vector.get("files") or {}).items():
            self.write(replaced(name, self.pairs), content)
        plugins = vector.get("plugins", {})
        script = PLUGIN.format(python=os.path.realpath(sys.executable))
        for name in plugins:
            for folder in vector.get("plugins_in", {}).get(name, ["@BINDIR@"]):
                executable = os.path.join(replaced(folder, self.pairs), name)
                Path(executable).write_text(script)
                os.chmod(executable, 0o755)
        self.write_plugins(plugins)
        self.prepare_host()
        if not vector.get("no_netns"):
            self.ip("netns", "add", self.netns_name)
            for arguments in vector.get("links", []):
                self.ip("-n", self.netns_name, *arguments)

    def prepare_host(self) -> None:
        vector = self.vector
        if vector.get("checkpoint") is not None:
            self.write(self.host("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"), vector["checkpoint"])
        for name, content in (vector.get("hostfs_files") or {}).items():
            self.write(self.host(name), content)
        self.driver.use_host(self.root + "/host")

    def host(self, path: str) -> str:
        if path.startswith("/run/"):
            path = "/var" + path
        return self.root + "/host" + path

    def write(self, path: str, content) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(content, dict) and "$repeat" in content:
            text = content["$repeat"] * content["times"]
        elif isinstance(content, str):
            text = replaced(content, self.pairs)
        else:
            text = json.dumps(replaced(content, self.pairs), indent=2)
        Path(path).write_text(text, "utf-8")

    def write_plugins(self, plugins: dict) -> None:
        pairs = [one for one in self.pairs if one[0] != "@NETNS@"] + [(DEVICE_INFO, self.root + "/host" + DEVICE_INFO)]
        Path(self.root, "plugins.json").write_text(json.dumps(replaced(plugins, pairs)))
        Path(self.root, "answered.json").unlink(missing_ok=True)

    @staticmethod
    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    def close(self) -> None:
        for timer in self.timers:
            timer.join()
        self.driver.leave_host()
        self.api.stop()
        subprocess.run(["ip", "netns", "del", self.netns_name], capture_output=True, check=False)
        shutil.rmtree(self.root)

    def before(self, order: dict) -> None:
        kind = order["op"]
        path = replaced(order.get("path", ""), self.pairs)
        if kind == "delete_pod":
            self.api.pods.pop((order["ns"], order["name"]), None)
        elif kind == "put_pod":
            self.api.put_pod(order["pod"])
        elif kind == "put_nad":
            self.api.put_nad(order["nad"])
        elif kind == "delete_nad":
            self.api.nads.pop((order["ns"], order["name"]), None)
        elif kind == "rm":
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.exists(path):
                os.unlink(path)
        elif kind == "write":
            self.write(path, order["content"])
        elif kind == "rules":
            self.api.rules = copy.deepcopy(order["rules"])
        elif kind == "plugins":
            self.write_plugins(order["plugins"])
        elif kind == "ip":
            self.ip("-n", self.netns_name, *order["args"])
        elif kind == "host_write":
            self.write(self.host(order["path"]), order["content"])
        elif kind == "write_after":
            timer = threading.Timer(order["seconds"], self.write, (path, order["content"]))
            self.timers.append(timer)
            timer.start()
        elif kind == "stop_api":
            self.api.stop()
        elif kind == "del_netns":
            self.ip("netns", "del", self.netns_name)
        elif kind == "chmod":
            os.chmod(path, int(order["mode"], 8))
        else:
            raise ValueError("unknown op %s" % kind)

    def stdin(self, step: dict) -> bytes:
        for key, holder in (("stdin_raw", step), ("stdin", step), ("config_raw", self.vector)):
            if key in holder:
                value = replaced(holder[key], self.pairs)
                return (value if isinstance(value, str) else json.dumps(value)).encode()
        return json.dumps(replaced(self.vector.get("config", {}), self.pairs)).encode()

    def run(self, step: dict) -> dict:
        """Run one step and return its whole outcome in the words of the vectors."""
        for order in step.get("before", []):
            self.before(order)
        calls = Path(self.root, "calls.jsonl")
        calls.unlink(missing_ok=True)
        self.api.calls = []
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent", "TZ": "UTC"}
        env.update(replaced(step.get("env", {}), self.pairs))
        done = self.driver.call(env, self.stdin(step), self.root, step.get("argv", []))
        outcome: dict = {"rc": done.rc}
        try:
            outcome["stdout_json"] = self.mask(json.loads(done.stdout))
        except ValueError:
            outcome["stdout_raw"] = self.mask(done.stdout)
        stderr = TIME.sub("@TIME@", self.mask(done.stderr)).rstrip("\n")
        if stderr:
            outcome["stderr"] = stderr
        outcome["delegate_calls"] = self.delegate_calls(calls)
        outcome["api_calls"] = self.mask(copy.deepcopy(self.api.calls))
        outcome["cache_after"] = self.mask(tree(os.path.join(self.root, "cni")))
        self.record(outcome)
        return outcome

    def mask(self, value):
        return replaced(value, self.masks)

    def delegate_calls(self, path: Path) -> list:
        found = []
        for line in path.read_text().splitlines() if path.exists() else []:
            call = json.loads(line)
            if call.pop("dir") == os.path.join(self.root, "bin2"):
                call["dir"] = "@BINDIR2@"
            found.append(self.mask(call))
        return found

    def record(self, outcome: dict) -> None:
        vector = self.vector
        if vector.get("record_netns"):
            outcome["netns_after"] = self.links_and_routes()
        if vector.get("record_log") or vector.get("tail_log"):
            path = Path(replaced(vector.get("record_log") or "@TMP@/multus.log", self.pairs))
            if path.exists():
                text = path.read_text()
                text = text[text.rfind("x\n") + 2 :] if "x\n" in text and vector.get("tail_log") else text
                outcome["log"] = TIME.sub("@TIME@", self.mask(text)).rstrip("\n")
        if vector.get("list_dir"):
            listed = os.listdir(replaced(vector["list_dir"], self.pairs))
            outcome["dir_after"] = sorted(re.sub(r"-\d{4}-.*(?=\.log)", "-@TIME@", one) for one in listed)
        if vector.get("hostfs"):
            outcome["host_after"] = self.host_files()

    def host_files(self) -> dict:
        found: dict = {}
        base = self.root + "/host"
        for folder, _folders, names in os.walk(base):
            for name in names:
                path = os.path.join(folder, name)
                shown = path[len(base) :].replace("/var/run/", "/run/")
                if "kubelet" in shown:
                    continue
                found[shown] = {"mode": "%04o" % stat.S_IMODE(os.stat(path).st_mode), "json": None}
                with contextlib.suppress(ValueError):
                    found[shown]["json"] = json.loads(Path(path).read_text())
        return found

    def links_and_routes(self) -> dict:
        found = {}
        for family, key in (("-4", "routes4"), ("-6", "routes6")):
            shown = subprocess.run(
                ["ip", family, "-n", self.netns_name, "route", "show", "table", "main"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            lines = [line.strip() for line in shown.splitlines()]
            found[key] = sorted(line for line in lines if line and not line.startswith("fe80"))
        shown = subprocess.run(
            ["ip", "-n", self.netns_name, "-o", "link"], capture_output=True, text=True, check=True
        ).stdout
        found["links"] = sorted(re.findall(r"^\d+: ([^:@]+)", shown, re.MULTILINE))
        return found


def opened(text: str):
    """Show what a base64 member holds."""
    raw = base64.b64decode(text)
    try:
        return {"$b64json": json.loads(raw)}
    except ValueError:
        return {"$b64text": raw.decode("utf-8", "replace")}


def tree(root: str):
    """Return directories and files below the cache directory, None if there is none."""
    if not os.path.isdir(root):
        return None
    dirs, files = {}, {}
    for folder, _folders, names in os.walk(root):
        relative = os.path.relpath(folder, root)
        dirs[relative] = "%04o" % stat.S_IMODE(os.stat(folder).st_mode)
        for name in names:
            path = os.path.join(folder, name)
            entry: dict = {"mode": "%04o" % stat.S_IMODE(os.stat(path).st_mode)}
            raw = Path(path).read_bytes()
            try:
                value = json.loads(raw)
            except ValueError:
                entry["text"] = raw.decode("utf-8", "replace")
            else:
                for holder in value if isinstance(value, list) else [value]:
                    for key in ("Bytes", "config"):
                        if isinstance(holder, dict) and isinstance(holder.get(key), str):
                            holder[key] = opened(holder[key])
                entry["json"] = value
            files[os.path.normpath(os.path.join(relative, name))] = entry
    return {"dirs": dirs, "files": files}
