"""The operator's page in Chromium, over a status that is made up: what it shows, and that names are text."""

import json
import os
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

chromium = pytest.importorskip("chromium", reason="websockets is missing, by which Chromium is driven")

STATIC = Path(__file__).parents[2] / "src" / "kveil" / "service" / "static"
pytestmark = [
    pytest.mark.research,
    pytest.mark.skipif(chromium.PROGRAM is None, reason="chromium is missing, in which the page is run"),
]
OPEN = {
    "campaign": "ab" * 32, "name": "Where do <i>trips</i> start?", "state": "open", "round": 1, "rounds": 2,
    "not_before": "2030-01-01", "not_after": "2030-01-31", "days_left": 12, "reports": 41210, "least": 5000,
    "laid_out_for": 100000, "epsilon": "1", "stuck": 0,
}  # fmt: skip
RESULT = {
    "centers": [[48.02, 10.51], [52.1, 9.0]], "counts": [60123.4, 39876.6], "count_sd": 812.3, "sd": [0.01, 0.02],
    "warnings": ["few people answered"], "forgery": ["one forged report moves the count of a cell up by at most 3.3 people."],
}  # fmt: skip
SHOWN = [
    "Where do <i>trips</i> start?", "1 of 2", "12 left", "41,210, at least 5,000", "48.02, 10.51", "60,123 ± 812", "0.01",
    "few people answered", "Forged reports: one forged report moves", "too few reports",
]  # fmt: skip
STATUS = {"campaigns": [OPEN, {**OPEN, "state": "done", "result": RESULT}, {**OPEN, "stuck": 1, "days_left": 0}]}


class Admin(SimpleHTTPRequestHandler):
    """The admin address: the page, its files under /client/, and /status."""

    def do_GET(self):
        if self.path == "/status":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(STATUS).encode())
            return
        self.path = "/operator.html" if self.path == "/" else self.path.removeprefix("/client")
        super().do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def address():
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Admin, directory=str(STATIC))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_rounds_counts_deadlines_and_results(address, tmp_path, width, scheme):
    profile = tmp_path / "profile"
    profile.mkdir()
    with chromium.Browser(profile) as browser:
        tab = browser.tab(width)
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        tab.go(address)
        tab.until("document.querySelectorAll('section').length === 3")
        told = tab.js("document.querySelector('main').innerText")
        for words in SHOWN:
            assert words in told
        assert tab.js("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"
        assert tab.complaints() == []
        tab.picture(Path(os.environ.get("KVEIL_PICTURES", tmp_path)) / f"operator-{width}-{scheme}.png")
