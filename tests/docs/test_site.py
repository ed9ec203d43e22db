"""The site builds without a warning, asks no other host for anything, and fits a desk and a phone, in light and dark."""

import functools
import http.server
import importlib.util
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.research
VIEWS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
PAGES = ("index.html", "tutorial.html", "people.html", "how-it-works.html", "ref-models.html", "commands.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built(site):
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= {page.stem for page in site.glob("*.html")}


def test_no_page_names_another_host_to_load_from(site):
    loaded = [
        (page.name, part)
        for page in site.glob("*.html")
        for part in page.read_text(encoding="utf-8").split("<")
        if part.startswith(("script", "link", "img", "iframe")) and ('src="http' in part or 'stylesheet" href="http' in part)
    ]
    assert loaded == []


def test_no_type_is_read_as_a_subtraction(site):
    assert [page.name for page in site.glob("ref-*.html") if "</span> - <span" in page.read_text(encoding="utf-8")] == []


@pytest.fixture(scope="module")
def address(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


@pytest.fixture(scope="module")
def chromium():
    place = ROOT / "tests" / "browser" / "chromium.py"
    spec = importlib.util.spec_from_file_location("chromium_of_the_site", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not module.PROGRAM:
        pytest.skip("needs Chromium")
    return module


def test_pages_fit_and_are_quiet_at_both_widths_in_both_schemes(address, chromium, tmp_path):
    with chromium.Browser(tmp_path / "profile") as browser:
        for width, scheme in VIEWS:
            tab = browser.tab(width, 900)
            tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            for page in PAGES:
                tab.go(address + page)
                assert tab.js("document.documentElement.scrollWidth") <= width, f"{page} is wider than {width} pixels"
                wanted = "slate" if scheme == "dark" else "default"
                tab.until(f"document.body.getAttribute('data-md-color-scheme') === '{wanted}'")
            asked = [request["url"] for request in tab.requests()]
            assert [url for url in asked if not url.startswith((address, "data:", "about:"))] == []
            assert tab.complaints() == []
