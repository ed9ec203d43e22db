"""The same answers and verdicts in Firefox, whose engine has its own floats and signatures, and a person's answer there."""

import pytest
from all_vectors import WRONG, disagreements

firefox = pytest.importorskip("firefox", reason="websockets is missing, by which Firefox is driven")
serving = pytest.importorskip("serving", reason="there is no service yet to serve the page")

pytestmark = [
    pytest.mark.research,
    pytest.mark.skipif(firefox.PROGRAM is None, reason="firefox is missing: apt-get install firefox-esr"),
]
ANSWER = "x0.value = '0.25', x0.dispatchEvent(new Event('input')), document.getElementById('send').click(), 0"


def test_vectors_and_a_persons_answer(tmp_path):
    place, profile = tmp_path / "collector.db", tmp_path / "profile"
    profile.mkdir()
    serving.opened(place)
    with serving.serving(place) as service, firefox.Firefox(profile) as page:
        page.go(f"http://localhost:{service.port}/health")
        assert disagreements(page, serving.KEY.public) == []
        seen = disagreements(page, serving.KEY.public, is_spoiled=True)
        assert seen == [f"{name} 0" for name in WRONG], "and it would be seen"
        page.go(f"http://localhost:{service.port}/")
        firefox.awaited(lambda: page.js("!document.getElementById('form').hidden"))
        page.js(ANSWER)
        firefox.awaited(lambda: page.js("document.getElementById('told').textContent.startsWith('Sent.')"))
        shown = page.js("document.getElementById('bytes').textContent")
    assert serving.stored(place) == {bytes.fromhex(shown)}
