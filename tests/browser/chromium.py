"""Debian's Chromium, without a window, driven over the DevTools protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-quic", "--disable-sync",
    "--remote-debugging-port=0",
]  # fmt: skip
SECONDS = 60


class Browser:
    """A process with a profile of its own; `kill` is a crash, after which the profile may be opened again."""

    def __init__(self, profile: Path) -> None:
        (profile / "DevToolsActivePort").unlink(missing_ok=True)
        command = [str(PROGRAM), *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._port = int(awaited(lambda: _port(profile)))
        self._tabs: list[Tab] = []

    def tab(self, width: int = 390, height: int = 844) -> Tab:
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=SECONDS) as told:
            opened = Tab(json.load(told)["webSocketDebuggerUrl"], width, height)
        self._tabs.append(opened)
        return opened

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for tab in self._tabs:
            tab.close()
        self._tabs = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()


class Tab:
    """One page. `events`: what the browser has told so far."""

    def __init__(self, address: str, width: int, height: int) -> None:
        self._open = ExitStack()
        self._socket = self._open.enter_context(connect(address, max_size=2**26, open_timeout=SECONDS))
        self._n = 0
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        is_phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=is_phone)

    def close(self) -> None:
        self._open.close()

    def call(self, method: str, **params: Any) -> Any:
        self._n += 1
        self._socket.send(json.dumps({"id": self._n, "method": method, "params": params}))
        while True:
            told = json.loads(self._socket.recv(timeout=SECONDS))
            if told.get("id") == self._n:
                assert "error" not in told, told
                return told["result"]
            self.events.append(told)

    def js(self, text: str) -> Any:
        """The value of an expression, or of the promise that it is."""
        told = self.call("Runtime.evaluate", expression=text, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def until(self, text: str) -> Any:
        return awaited(lambda: self.js(text), text)

    def event(self, method: str) -> dict[str, Any]:
        """The next event of this kind that nobody has taken."""

        def found() -> Any:
            self.js("0")  # whatever has happened is read with its answer
            places = [i for i, event in enumerate(self.events) if event["method"] == method]
            return self.events.pop(places[0])["params"] if places else None

        return awaited(found, method)

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.until(f"location.href.startsWith({json.dumps(url)}) && document.readyState === 'complete'")

    def press(self, key: str, *, shift: bool = False) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=8 if shift else 0, **_codes(key, kind))

    def touch(self, x: float, y: float) -> None:
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        told = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(told["data"]))

    def complaints(self) -> list[Any]:
        """Errors and warnings of the console, and exceptions that nobody caught."""
        self.js("0")
        told = [event["params"] for event in self.events if event["method"] == "Runtime.exceptionThrown"]
        told += [e["params"] for e in self.events if e["method"] == "Runtime.consoleAPICalled" and e["params"]["type"] != "log"]
        return told + [event["params"]["entry"] for event in self.events if event["method"] == "Log.entryAdded"]

    def requests(self) -> list[dict[str, Any]]:
        self.js("0")
        return [event["params"]["request"] for event in self.events if event["method"] == "Network.requestWillBeSent"]


def awaited(look: Any, what: object = "") -> Any:
    """What `look` returns once it is something."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.05)
    raise TimeoutError(what)


def _port(profile: Path) -> str | None:
    file = profile / "DevToolsActivePort"
    lines = file.read_text().splitlines() if file.exists() else []
    return lines[0] if len(lines) > 1 else None


def _codes(key: str, kind: str) -> dict[str, Any]:
    """What makes a key do what it does by default."""
    codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
    text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
    return {"windowsVirtualKeyCode": codes[key], **text}
