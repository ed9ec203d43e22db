"""Debian's Firefox, without a window, driven over WebDriver BiDi."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from chromium import awaited
from websockets.sync.client import connect

PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
SECONDS = 120


class Firefox:
    """A process with a profile of its own, and one page in it."""

    def __init__(self, profile: Path) -> None:
        command = [str(PROGRAM), "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
        home = {**os.environ, "HOME": str(profile)}
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=home)
        self._open, self._n = ExitStack(), 0
        told = json.loads(awaited(lambda: _read(profile / "WebDriverBiDiServer.json")))
        address = f"ws://{told['ws_host']}:{told['ws_port']}/session"
        self._socket = self._open.enter_context(connect(address, max_size=2**26, open_timeout=SECONDS))
        self._call("session.new", capabilities={})
        self._page = self._call("browsingContext.getTree")["contexts"][0]["context"]

    def go(self, url: str) -> None:
        self._call("browsingContext.navigate", context=self._page, url=url, wait="complete")

    def js(self, text: str) -> Any:
        """The value of an expression, or of the promise that it is."""
        asked = f"(async () => JSON.stringify(await ({text})))()"
        told = self._call("script.evaluate", expression=asked, target={"context": self._page}, awaitPromise=True)
        assert told["type"] == "success", told
        return json.loads(told["result"]["value"])

    def _call(self, method: str, **params: Any) -> Any:
        self._n += 1
        self._socket.send(json.dumps({"id": self._n, "method": method, "params": params}))
        while True:
            told = json.loads(self._socket.recv(timeout=SECONDS))
            if told.get("id") == self._n:
                assert told["type"] == "success", told
                return told["result"]

    def __enter__(self) -> Firefox:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()
        self._process.kill()
        self._process.wait()


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
