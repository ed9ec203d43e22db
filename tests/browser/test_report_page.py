"""A report in Chromium: screenshots at two widths and in two themes, contrast, the keyboard, and two pages of paper.

With KVEIL_PICTURES=folder the screenshots stay there, for somebody to look at.
"""

import base64
import os
import re
from pathlib import Path

import numpy as np
import pytest

from kveil import Ledger, PrivateKMeans

chromium = pytest.importorskip("chromium", reason="websockets is missing, by which Chromium is driven")
pytest.importorskip("matplotlib")

pytestmark = [
    pytest.mark.research,
    pytest.mark.skipif(chromium.PROGRAM is None, reason="chromium is missing, in which the page is shown"),
]
LOW_CONTRAST = (Path(__file__).parent / "in_page" / "low_contrast.js").read_text(encoding="utf-8")
NAMES = [f"{name} of a household & its <b>people</b>" for name in ("age", "income", "rooms", "distance", "visits")]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A map with a ledger, a profile of long names with more centres than paper has room for, and one of many columns."""
    folder, rng = tmp_path_factory.mktemp("reports"), np.random.default_rng(0)
    ledger = Ledger.create(folder / "budget.db", "clinic", 2.0, relation="add-remove")
    rows = np.concatenate([rng.normal(place, 0.5, (4000, 2)) for place in ([2, 3], [7, 2], [5, 8])])
    model = PrivateKMeans(3, epsilon=1.0, bounds=(0, 10), ledger=ledger, random_state=0).fit(rows)
    model.release_.report(folder / "map.html", ledger=ledger)
    import pandas as pd

    table = pd.DataFrame(rng.uniform(0, 10, (20_000, 5)), columns=NAMES)
    wide = PrivateKMeans(40, epsilon=1.0, delta=1e-6, bounds=(0, 10), random_state=0).fit(table)
    wide.release_.report(folder / "wide.html")
    many = PrivateKMeans(4, epsilon=1.0, delta=1e-6, bounds=(0, 10), random_state=0).fit(
        pd.DataFrame(rng.uniform(0, 10, (20_000, 14)), columns=[f"column {number}" for number in range(14)])
    )
    many.release_.report(folder / "many.html")
    return folder


HINTED = """[...document.querySelectorAll('.scroll')].map(frame => {
    const hint = frame.querySelector('.wider').getBoundingClientRect(), top = frame.getBoundingClientRect().top
    const is_wider = frame.scrollWidth > frame.clientWidth, shown = Math.max(0, hint.bottom - top)
    return [frame.getAttribute('aria-label'), is_wider, shown > 2]
})"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("name", ["map", "wide", "many"])
@pytest.mark.parametrize("width", [390, 740, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_report_is_readable_at_any_width_and_asks_for_nothing(pages, browser, tmp_path, name, width, theme):
    tab = browser.tab(width)
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    tab.go((pages / f"{name}.html").as_uri())
    tab.js("document.querySelector('details').open = true")
    assert tab.js("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"
    hints = tab.js(HINTED)
    assert all(is_wider == is_said for _, is_wider, is_said in hints), "what scrolls says so where it does"
    table = width == 390 or name != "map"
    wider = {"Picture": width == 390, "Table of centres": table}
    assert {label: is_wider for label, is_wider, _ in hints} == wider
    if table:  # the hint stays in sight
        left = "document.querySelector('div.scroll .wider').getBoundingClientRect().left"
        before = tab.js(left)
        tab.js("document.querySelector('div.scroll').scrollLeft = 150")
        assert tab.js(left) == before
        tab.js("document.querySelector('div.scroll').scrollLeft = 0")
    bar = tab.js("document.querySelector('.ledger svg')?.getBoundingClientRect().right ?? 0")
    assert (0 < bar <= width) == (name == "map"), "the whole budget is seen, so that half of it looks like half"
    assert tab.js(LOW_CONTRAST) == []
    assert tab.js("document.querySelectorAll('script, b').length") == 0, "names are text"
    assert tab.complaints() == []
    asked = [request["url"] for request in tab.requests()]
    assert [url for url in asked if not url.startswith("data:image/png")] == [(pages / f"{name}.html").as_uri()]
    light = sum(map(int, re.findall(r"\d+", tab.js("getComputedStyle(document.body).backgroundColor"))[:3])) / 3
    assert (light > 200) == (theme == "light")
    tab.picture(Path(os.environ.get("KVEIL_PICTURES", tmp_path)) / f"report-{name}-{width}-{theme}.png")


def test_the_keyboard_reaches_the_table_the_picture_and_the_card(pages, browser):
    tab = browser.tab(1280)
    tab.go((pages / "wide.html").as_uri())
    reached = []
    for _ in range(5):
        tab.press("Tab")
        reached.append(tab.js("(document.activeElement.getAttribute('aria-label') || document.activeElement.tagName)"))
    assert reached[:4] == ["A", "Picture", "Table of centres", "SUMMARY"]
    tab.js("document.querySelector('.scroll[aria-label=\"Table of centres\"]').focus()")
    assert tab.js("getComputedStyle(document.activeElement).outlineWidth") == "3px", "where the keyboard is can be seen"


@pytest.mark.parametrize("name", ["map", "wide"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_printed_report_has_two_pages_on_white_paper(pages, browser, tmp_path, name, theme):
    tab = browser.tab(1280)
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    tab.go((pages / f"{name}.html").as_uri())
    paper = base64.b64decode(tab.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])
    (tmp_path / "report.pdf").write_bytes(paper)
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 2
    tab.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": theme}])
    assert tab.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 254)"
