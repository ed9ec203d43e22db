"""The page on another host, with the collector and its key pinned in it: it takes no other key, and asks no other host."""

import json
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

chromium = pytest.importorskip("chromium", reason="websockets is missing, by which Chromium is driven")
serving = pytest.importorskip("serving", reason="there is no service yet to serve the page")

STATIC = Path(__file__).parents[2] / "src" / "kveil" / "service" / "static"
pytestmark = [
    pytest.mark.research,
    pytest.mark.skipif(chromium.PROGRAM is None, reason="chromium is missing, in which the page is run"),
]
ANSWER = "x0.value = '0.25'; x0.dispatchEvent(new Event('input')); document.getElementById('send').click()"


class Elsewhere(SimpleHTTPRequestHandler):
    """Another host: the same files, with two elements filled in, and its own policy, as docs/deployment.md says."""

    collector, key = "", ""

    def do_GET(self):
        self.path = self.path.split("?")[0].removeprefix("/client")
        if self.path == "/":
            page = (STATIC / "index.html").read_text(encoding="utf-8")
            for name, value in (("service", self.collector), ("key", self.key)):
                empty = f'<meta name="kveil-{name}" content="">'
                assert empty in page
                page = page.replace(empty, f'<meta name="kveil-{name}" content="{value}">')
            self.answer(200, page.encode(), "text/html; charset=utf-8")
        elif self.path == "/marker":
            self.answer(204, b"", "text/plain")
        else:
            super().do_GET()

    def answer(self, status, body, media):
        self.send_response(status)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self):
        policy = f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' {self.collector}"
        self.send_header("content-security-policy", policy)
        super().end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def host():
    kind = type("Host", (Elsewhere,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(kind, directory=str(STATIC))) as server:
        server.kind, server.url = kind, f"http://localhost:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("is_right", [True, False])
def test_a_page_on_another_host_answers_under_its_own_key_alone(host, tmp_path, is_right):
    place, profile = tmp_path / "collector.db", tmp_path / "profile"
    profile.mkdir()
    serving.opened(place)
    with serving.serving(place, origins=[host.url]) as service, chromium.Browser(profile) as browser:
        host.kind.collector = f"http://localhost:{service.port}"
        host.kind.key = serving.KEY.public if is_right else "ab" * 32
        tab = browser.tab()
        tab.go(f"{host.url}/")
        if is_right:
            tab.until("!document.getElementById('form').hidden")
            assert "the key that came with this page" in tab.js("document.getElementById('trust').textContent")
            tab.js(ANSWER)
            tab.until("document.getElementById('told').textContent.startsWith('Sent.')")
        else:
            tab.until("!document.getElementById('about').textContent.startsWith('Looking')")
            assert tab.js("document.getElementById('form').hidden")
        hosts = {request["url"].split("/")[2] for request in tab.requests()}
        assert hosts == {host.url.split("/")[2], f"localhost:{service.port}"}
        assert "0.25" not in json.dumps(tab.requests())
        assert tab.complaints() == []
    assert len(serving.stored(place)) == int(is_right)
