"""The page in Chromium with the real service: a person's answer, crashes, lost acknowledgements, many tabs and refusals."""

import base64
import json
import os
import shutil
from pathlib import Path

import pytest
from all_vectors import WRONG, disagreements

chromium = pytest.importorskip("chromium", reason="websockets is missing, by which Chromium is driven")
serving = pytest.importorskip("serving", reason="there is no service yet to serve the page")

VECTORS = Path(__file__).parents[1] / "vectors"
pytestmark = [
    pytest.mark.research,
    pytest.mark.skipif(chromium.PROGRAM is None, reason="chromium is missing, in which the page is run"),
]
SENT = "document.getElementById('told').textContent.startsWith('Sent.')"
READY = "!document.getElementById('form').hidden"
CHOOSE = "x0.value = '50.5'; x0.dispatchEvent(new Event('input'))"
SUBMIT = f"{CHOOSE}; document.getElementById('send').click()"


@pytest.fixture
def place(tmp_path):
    return tmp_path / "collector.db"


@pytest.fixture
def service(place):
    serving.opened(place, name="Where do trips <b>start</b>?", center=[50, 10], radius=5.0)
    with serving.serving(place) as running:
        yield running


@pytest.fixture
def profile(tmp_path):
    folder = tmp_path / "profile"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def browser(profile):
    with chromium.Browser(profile) as running:
        yield running


def url(service):
    return f"http://localhost:{service.port}/"


def shown_bytes(tab):
    return bytes.fromhex(tab.js("document.getElementById('bytes').textContent"))


def text(tab, name):
    return tab.js(f"document.getElementById({json.dumps(name)}).textContent")


def pictured(tab, tmp_path, name):
    """A picture for whoever wants to look: in the folder KVEIL_PICTURES, if that is set."""
    tab.picture(Path(os.environ.get("KVEIL_PICTURES", tmp_path)) / f"{name}.png")


def in_page(name, given=None):
    """A script of the folder `in_page`, an expression, with what it is given."""
    return (Path(__file__).parent / "in_page" / f"{name}.js").read_text(encoding="ascii").replace("GIVEN", json.dumps(given))


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (390, "light"), (390, "dark"), (1280, "light")])
def test_a_person_answers(service, browser, place, tmp_path, width, scheme):
    tab = browser.tab(width)
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    tab.go(url(service))
    tab.until(READY)
    assert text(tab, "name") == "Where do trips <b>start</b>?"
    assert "at most 73.2 % sure" in text(tab, "sure")
    assert "could change it" in text(tab, "trust")
    assert tab.js("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"
    assert low_contrast(tab) == []
    assert nameless(tab) == []
    assert small_targets(tab) == []
    pictured(tab, tmp_path, f"page-{width}-{scheme}")
    tab.js("document.getElementById('send').click()")
    assert text(tab, "told") == "Choose your place first."
    tab.js(SUBMIT)
    tab.until(SENT)
    pictured(tab, tmp_path, f"sent-{width}-{scheme}")
    assert serving.stored(place) == {shown_bytes(tab)}
    assert tab.complaints() == []
    hosts = {request["url"].split("/")[2] for request in tab.requests()}
    assert hosts == {f"localhost:{service.port}"}
    tab.go(url(service) + "?again")
    tab.until("document.getElementById('told').textContent === 'This browser has answered this question.'")
    assert serving.stored(place) == {shown_bytes(tab)}


def test_the_place_is_chosen_by_touch_by_keys_and_by_typing_and_never_leaves(service, browser, place):
    tab = browser.tab()
    tab.go(url(service))
    tab.until(READY)
    x, y, width = tab.js(
        "(() => { const b = document.getElementById('map').getBoundingClientRect(); return [b.x, b.y, b.width]; })()"
    )
    tab.touch(x + width / 2 + 20, y + 30)
    assert tab.js("Number(x0.value) > 50 && Number(x1.value) > 10")
    tab.js("document.getElementById('map').focus()")
    before = tab.js("Number(x0.value)")
    tab.press("ArrowRight")
    tab.press("ArrowRight", shift=True)
    assert tab.js("Number(x0.value)") == pytest.approx(before + 0.55, abs=1e-3)
    tab.press("Tab")
    assert tab.js("document.activeElement.id") == "x0"
    tab.js("x0.select()")
    tab.type("51,2345")
    tab.press("Tab")
    tab.js("x1.select()")
    tab.type("99.875")
    assert "51.2345 and 99.875. That is outside" in text(tab, "said")
    tab.press("Enter")  # a form is sent from its fields
    tab.until(SENT)
    assert len(serving.stored(place)) == 1
    sent = json.dumps(tab.requests())
    assert "51.2345" not in sent
    assert "99.875" not in sent
    kept = tab.js("(async () => JSON.stringify([await indexedDB.databases(), localStorage, sessionStorage, document.cookie]))()")
    assert "51.2345" not in kept
    ledger = tab.js(in_page("ledger"))
    assert len(json.loads(ledger)["rows"]) == 1
    assert "51.2345" not in ledger


STOPPED = {"patterns": [{"urlPattern": "*/reports", "requestStage": "Request"}]}


def test_a_browser_that_dies_between_storing_and_sending_sends_the_same_bytes_later(service, profile, place):
    with chromium.Browser(profile) as browser:
        tab = browser.tab()
        tab.go(url(service))
        tab.until(READY)
        tab.call("Fetch.enable", **STOPPED)
        tab.js(SUBMIT)
        tab.event("Fetch.requestPaused")
        (row,) = json.loads(tab.js(in_page("ledger")))["rows"]
        assert row["state"] == "sent"
        browser.kill()
    assert serving.stored(place) == set()
    with chromium.Browser(profile) as browser:
        tab = browser.tab()
        tab.go(url(service))
        tab.until("document.getElementById('told').textContent.includes('has answered')")
        assert serving.stored(place) == {bytes.fromhex(row["report"])} == {shown_bytes(tab)}


def test_a_lost_acknowledgement_ends_in_one_report(service, browser, place):
    tab = browser.tab()
    tab.go(url(service))
    tab.until(READY)
    tab.call("Fetch.enable", patterns=[{"urlPattern": "*/reports", "requestStage": "Response"}])
    tab.js(SUBMIT)
    paused = tab.event("Fetch.requestPaused")
    assert paused["responseStatusCode"] == 200
    tab.call("Fetch.fulfillRequest", requestId=paused["requestId"], responseCode=503, responseHeaders=[])
    tab.until("document.getElementById('told').textContent.startsWith('Stored here, not sent yet')")
    (stored,) = serving.stored(place)
    assert json.loads(tab.js(in_page("ledger")))["rows"][0]["state"] == "sent"
    tab.call("Fetch.disable")
    tab.go(url(service) + "?again")
    tab.until("document.getElementById('told').textContent.includes('has answered')")
    assert serving.stored(place) == {stored} == {shown_bytes(tab)}
    assert json.loads(tab.js(in_page("ledger")))["rows"][0]["state"] == "acked"
    assert len([request for request in tab.requests() if request["url"].endswith("/reports")]) == 2


def test_eight_tabs_at_once_make_one_report(service, browser, place):
    tabs = [browser.tab() for _ in range(8)]
    for tab in tabs:
        tab.go(url(service))
        tab.until(READY)
        tab.js(f"globalThis.go = new BroadcastChannel('go'); go.onmessage = () => {{ {SUBMIT}; }}; 0")
    starter = browser.tab()
    starter.go(f"{url(service)}health")
    starter.js("new BroadcastChannel('go').postMessage(0)")  # all in the same moment
    for tab in tabs:
        tab.until("!document.getElementById('proof').hidden")
    assert len({shown_bytes(tab) for tab in tabs}) == 1
    assert serving.stored(place) == {shown_bytes(tabs[0])}


@pytest.fixture
def asked(place):
    """Two questions that are open, each with a code: name, campaign, code."""
    from kveil.collect.collector import Collector
    from kveil.service.admission import digest, new_code

    made = []
    for name in ("Where do you live?", "Where do you work?"):
        campaign, _ = serving.opened(place, name=name, center=[50, 10], radius=5.0)
        made.append((name, campaign, new_code()))
    with Collector(place) as collector:
        for _, campaign, code in made:
            collector.add_codes(campaign, [digest(code, campaign)])
    return made


WAITS = "document.getElementById('told').textContent.startsWith('Stored here, not sent yet')"
CODED = "document.getElementById('coded')"
ANSWERED = "document.getElementById('told')?.textContent.includes('has answered')"  # while a page is loaded anew, it has no parts


def uploads(tab):
    """Codes that went with reports so far, in order; None for a report without."""
    sent = [request for request in tab.requests() if request["method"] == "POST"]
    return [request["headers"].get("Authorization") for request in sent]


def test_a_code_goes_with_the_report_of_its_own_campaign_alone(browser, place, asked):
    (_, home, home_code), (name, work, work_code) = asked
    with serving.serving(place, admission="codes") as service:
        tab = browser.tab()
        tab.go(f"{url(service)}#campaign={work}")
        tab.until(READY)
        assert text(tab, "name") == name, "the link's question, not the first one"
        assert tab.js(f"{CODED}.hidden")
        tab.js(SUBMIT)
        tab.until(WAITS)
        assert (uploads(tab), serving.stored(place)) == ([None], set())
        waiting = shown_bytes(tab)
        tab.go(f"{url(service)}?again#campaign={home}&code={home_code}")
        tab.until(READY)
        assert tab.js(f"{CODED}.checkVisibility()"), "that a code goes along is said before it does"
        tab.js(SUBMIT)
        tab.until(SENT)
        told = uploads(tab)[1:]
        assert told.count(f"Bearer {home_code}") == 1
        assert set(told) == {None, f"Bearer {home_code}"}, "what waits for another code was sent, and without one"
        assert serving.stored(place) == {shown_bytes(tab)}
        first = shown_bytes(tab)
        tab.js(f"location.hash = 'campaign={work}&code={work_code}'")  # a link that is followed in the same tab
        tab.until(ANSWERED)
        assert (text(tab, "name"), shown_bytes(tab)) == (name, waiting)
        assert uploads(tab)[-1] == f"Bearer {work_code}"
        assert serving.stored(place) == {first, waiting}
        assert not any(code in request["url"] for request in tab.requests() for code in (home_code, work_code))


def test_a_code_whose_campaign_is_not_named_is_not_used(browser, place, asked):
    (_, home, _), (_, _, code) = asked
    with serving.serving(place, admission="codes") as service:
        tab = browser.tab()
        tab.go(f"{url(service)}#campaign={home}")
        tab.until(READY)
        tab.js(SUBMIT)
        tab.until(WAITS)
        tab.go(f"{url(service)}?again#code={code}")
        tab.until("document.getElementById('about').textContent.startsWith('This link has a code')")
        assert tab.js("document.getElementById('form').hidden"), "nothing is spent on an answer that nobody takes"
        assert uploads(tab) == [None, None]
        tab.go(f"{url(service)}?more#campaign={'ab' * 32}&code={code}")
        tab.until("document.getElementById('about').textContent === 'The question of this link is not open now.'")
        assert uploads(tab) == [None, None, None]


def test_a_collector_cannot_show_another_question_than_the_link_names(browser, place, asked):
    (_, home, _), (_, work, code) = asked
    with serving.serving(place, admission="codes") as service:
        listed = json.loads(service.request("GET", "/v1/campaigns")[2])
        ids = {home: work, work: home}
        for one in listed["campaigns"]:
            one["campaign"] = ids[one["campaign"]]
        tab = browser.tab()
        tab.call("Fetch.enable", patterns=[{"urlPattern": "*/v1/campaigns", "requestStage": "Request"}])
        tab.go(f"{url(service)}#campaign={work}&code={code}")
        paused = tab.event("Fetch.requestPaused")
        body = base64.b64encode(json.dumps(listed).encode()).decode()
        tab.call("Fetch.fulfillRequest", requestId=paused["requestId"], responseCode=200, body=body)
        tab.until("document.getElementById('about').textContent.startsWith('The collector shows another question')")
        assert tab.js("document.getElementById('form').hidden")


def test_a_cleared_ledger_is_noticed_and_stays_quiet(service, browser, place):
    tab = browser.tab()
    tab.go(url(service))
    tab.until(READY)
    tab.js(SUBMIT)
    tab.until(SENT)
    tab.go(f"{url(service)}health")
    tab.js("new Promise((resolve) => { indexedDB.deleteDatabase('kveil').onsuccess = () => resolve(0); })")
    tab.go(url(service))
    tab.until("document.getElementById('about').textContent.includes('stays quiet until')")
    assert tab.js("document.getElementById('form').hidden")
    assert len(serving.stored(place)) == 1


def test_six_refusals_never_read_the_point(service, browser):
    from campaigns import forged

    from kveil.collect.manifest import Signed

    chains = dict(json.loads((VECTORS / "chains.json").read_text(encoding="ascii")))
    one, rounds = chains["a whole epsilon"], chains["refine-2 in 4"][:1]
    again = forged(Signed.from_bytes(one[0].encode()), lambda data: data.update(not_after="2030-01-30")).to_bytes().decode()
    given = {
        "key": serving.KEY.public,
        "one": one,
        "rounds": rounds,
        "again": [again],
        "unsigned": [one[0].replace("2030", "2031")],
    }
    tab = browser.tab()
    tab.go(f"{url(service)}health")
    told = tab.js(in_page("refusals", given))
    assert told["told"] == [[why, 0] for why in ("manifest", "not now", "budget", "budget", "not asked", "answered")]
    assert told["reads"] == 0


def test_answers_and_verdicts_in_chromium_are_those_of_the_vectors(service, browser):
    tab = browser.tab()
    tab.go(f"{url(service)}health")
    assert disagreements(tab, serving.KEY.public) == []
    seen = disagreements(tab, serving.KEY.public, is_spoiled=True)
    assert seen == [f"{name} 0" for name in WRONG], "and it would be seen"


def low_contrast(tab):
    """Texts whose contrast with what is behind them is below 4.5 (WCAG AA), by their computed colours."""
    return tab.js(in_page("low_contrast"))


def nameless(tab):
    """Controls that the accessibility tree has no name for."""
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "application", "link", "DisclosureTriangle"}
    controls = [node for node in nodes if not node.get("ignored") and node["role"].get("value") in roles]
    assert {node["role"]["value"] for node in controls} >= {"button", "textbox", "application"}
    return [node for node in controls if not node.get("name", {}).get("value")]


def small_targets(tab):
    return tab.js("""[...document.querySelectorAll('button, input, svg, summary')].filter((e) => e.checkVisibility())
        .map((e) => [e.id, e.getBoundingClientRect().height]).filter(([, height]) => height < 44)""")
