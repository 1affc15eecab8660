# Copyright (c) 2026, The nodenet.cni authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Chromium without a window, driven through its debugging pipe: nothing of it listens on the network."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
LIMIT_S = 60


def program() -> str | None:
    return next((found for found in map(shutil.which, PROGRAMS) if found), None)


class BrowserError(Exception):
    """The browser has ended, does not answer, or refuses a command."""


class Browser:
    """One process; `page` opens a tab. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        command = [
            program() or "chromium",
            *("--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio"),
            *("--no-default-browser-check", "--disable-extensions", "--hide-scrollbars"),
            f"--user-data-dir={folder}",
            # root in a container has no user namespaces, and all pages are ours
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            "about:blank",
        ]
        read_3, self._commands = os.pipe()
        self._answers, write_4 = os.pipe()
        # the browser expects the two ends as its descriptors 3 and 4
        script = 'exec 3<&%d 4>&%d; exec "$@"' % (read_3, write_4)
        with open(folder / "stderr", "wb") as errors:
            self._process = subprocess.Popen(
                ["bash", "-c", script, "browser", *command],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=(read_3, write_4),
                start_new_session=True,
            )
        os.close(read_3)
        os.close(write_4)
        self._number = 0
        self._rest = b""
        self._answered: dict[int, dict] = {}
        self.events: list[dict] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_exc: object) -> None:
        with contextlib.suppress(BrowserError, OSError):
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def call(self, method: str, session: str | None = None, **params: object) -> dict:
        self._number += 1
        number = self._number
        message: dict[str, object] = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + LIMIT_S
        while number not in self._answered:
            self._read(deadline, f"answers {method}")
        answer = self._answered.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def wait_for(self, method: str, session: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not any(one["method"] == method and one.get("sessionId") == session for one in self.events):
            self._read(deadline, f"tells {method}")

    def _read(self, deadline: float, what: str) -> None:
        ready = select.select([self._answers], [], [], max(0, deadline - time.monotonic()))[0]
        if not ready:
            raise BrowserError(f"the browser never {what}")
        chunk = os.read(self._answers, 1 << 20)
        if not chunk:
            raise BrowserError("the browser has ended")
        *messages, self._rest = (self._rest + chunk).split(b"\0")
        for one in map(json.loads, messages):
            if "id" in one:
                self._answered[one["id"]] = one
            else:
                self.events.append(one)

    def page(self, width: int = 1280, height: int = 900, dark: bool = False, script: bool = True) -> Page:
        return Page(self, width, height, dark, script)


class Page:
    """A tab that notes everything a report must not do: requests, dialogs, errors, messages on the console."""

    def __init__(self, browser: Browser, width: int, height: int, dark: bool, script: bool) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._target = target
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility", "Performance"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        if not script:
            self.call("Emulation.setScriptExecutionDisabled", value=True)

    def call(self, method: str, **params: object) -> dict:
        return self._browser.call(method, self._session, **params)

    def open(self, url: str) -> float:
        """Load a page; the seconds until its load event, and a frame after it, are over."""
        started = time.monotonic()
        self._forget("Page.loadEventFired")
        self.call("Page.navigate", url=url)
        self._browser.wait_for("Page.loadEventFired", self._session)
        self.evaluate("1")
        return time.monotonic() - started

    def processor_s(self) -> float:
        """Seconds of processor time that the page took: what it costs, however busy the machine is."""
        metrics = {one["name"]: one["value"] for one in self.call("Performance.getMetrics")["metrics"]}
        return metrics["ProcessTime"]

    def _forget(self, method: str) -> None:
        mine = self._browser.events
        mine[:] = [one for one in mine if one["method"] != method or one.get("sessionId") != self._session]

    def evaluate(self, expression: str) -> object:
        """The value of an expression; a promise is waited for."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise BrowserError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def until(self, expression: str) -> object:
        """Wait until an expression is true."""
        deadline = time.monotonic() + LIMIT_S / 4
        while not (value := self.evaluate(expression)):
            if time.monotonic() > deadline:
                raise BrowserError(f"never true: {expression}")
            time.sleep(0.03)
        return value

    def key(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            more = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            code = {"Enter": 13, "Tab": 9, "ArrowRight": 39, "ArrowDown": 40}[key]
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def screenshot(self, path: Path, whole: bool = False) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def pdf(self, path: Path) -> None:
        data = self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def misdeeds(self, url: str) -> list[str]:
        """What the page did besides showing itself."""
        found = []
        for one in self._browser.events:
            if one.get("sessionId") != self._session:
                continue
            method, params = one["method"], one["params"]
            if method == "Network.requestWillBeSent" and params["request"]["url"].split("#")[0] != url:
                found.append("request " + params["request"]["url"][:200])
            elif method == "Page.javascriptDialogOpening":
                found.append("dialog " + params["message"])
            elif method == "Runtime.exceptionThrown":
                found.append("exception " + json.dumps(params["exceptionDetails"])[:500])
            elif method == "Runtime.consoleAPICalled":
                found.append("console " + params["type"])
            elif method == "Log.entryAdded":
                found.append("log " + params["entry"]["text"])
            elif method in ("Page.windowOpen", "Page.downloadWillBegin", "Page.frameRequestedNavigation"):
                found.append(method)
        return found

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)
