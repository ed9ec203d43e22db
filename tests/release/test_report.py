"""A report: everything on one page, from the release alone, and nothing of it acts as markup."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from kveil import Ledger
from kveil.kernel.loss import Plan
from kveil.release.recluster import RECLUSTERED
from kveil.solve.synopsis import UniverseSynopsis

EVIL = "<script>alert('x')</script>&\x1b[31m"


class Page(HTMLParser):
    """Tags, attributes and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.text, self.attributes = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)

    def says(self, words):
        return words in re.sub(r"\s+", " ", "".join(self.text))


def test_a_report_tells_promise_verdict_centres_and_card(make, tmp_path):
    release = make(centers=[[1.0, 2.0], [3.0, 1.0]], errors=[0.1, 0.2], features=("age", "pay"), data_name="a survey")
    written = release.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == written
    page = Page(written)
    assert page.says("2 centres of a survey")
    assert page.says("can become at most 62.3 % sure by seeing this release")  # e^0.5 / (1 + e^0.5), rounded up
    assert page.says("50 %62.3 %"), "one below its tick, one beside the bar"
    assert page.says("1.000 ± 0.071")  # 0.1 / sqrt(2) in each of two columns
    assert page.says("Is it any good?")
    assert page.says(release.verdict().reasons[0])
    assert page.says("## What not to do with it"), "the card"
    assert page.says(release.fingerprint())


def test_a_good_report_on_points_of_a_universe_speaks_of_their_demand(make):
    synopsis = UniverseSynopsis([1, 2], [50.0, 60.0], [3, 4], 1.0, 0.03, "kept")
    page = Page(make(centers=[1, 2], errors=None, synopsis=synopsis).report())
    assert page.says("Good: noise could hide little of the demand.")
    assert not page.says("moved the centres")


def test_a_report_asks_the_network_for_nothing_and_runs_nothing(make):
    page = Page(make(centers=np.eye(2)).report())
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    addresses = [value for name, value in page.attributes if name in ("src", "href", "xlink:href", "action")]
    assert all(value.startswith(("#", "data:image/png")) for value in addresses)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert any("default-src 'none'" in (value or "") for _, value in page.attributes)


@pytest.mark.parametrize("d", [2, 3])
def test_names_are_shown_literally(make, d):
    names = tuple(f"{EVIL} {i}" for i in range(d))
    release = make(centers=np.zeros((2, d)), features=names, data_name="<b>bold</b>", purpose="&amp;")
    written = release.report()
    assert "script" not in Page(written).tags
    assert "\x1b" not in written
    assert Page(written).says("<b>bold</b>")
    universe = make(centers=[1, 2], names=(EVIL, "b"), errors=None)
    assert "script" not in Page(universe.report()).tags


def test_a_report_warns_where_nothing_is_promised(make, none, invalid):
    receipt = {"token": None, "ledger": None, "charges": 0, "secure": False}
    assert Page(make(guarantee=none, receipt=receipt).report()).says("No privacy guarantee")
    broken = Page(make(guarantee=invalid, receipt=receipt).report())
    assert broken.says("The guarantee is NOT VALID")
    assert broken.says("the noise was scripted")


@pytest.fixture
def budget(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", "ward <7>", 2.0, relation="add-remove")
    return ledger.stating(purpose="beds", data_name="visits <b>", by="A. Hill & Co")


def paid_by(ledger, make, **more):
    """A release whose charge is on the ledger; nothing is noted of it yet."""
    release = make(centers=np.eye(2), purpose="beds", data_name="visits <b>", **more)
    plan = Plan(release.guarantee.charges, "add-remove")
    ticket = ledger.reserve(plan)
    return replace(release, receipt={**release.receipt, "ledger": ledger.name, "token": ticket.token})


def test_a_report_shows_the_state_of_a_ledger_and_whether_it_paid(make, budget, tmp_path):
    release = paid_by(budget, make)
    page = Page(release.report(ledger=tmp_path / "budget.db"))
    assert page.says('This release was paid for on "ward <7>", ')
    assert page.says("charged; no digest was noted.")
    budget.note(release.receipt["token"], release=release.fingerprint())
    page = Page(release.report(ledger=budget))
    assert page.says(": the same release.")
    assert page.says("epsilon 1.5, delta 0"), "what is left"
    assert "alert" not in dict(page.attributes).values()
    assert Page(make().report(ledger=budget)).says('ledger "ward <7>" has no charge of this release\'s token')


def test_a_report_says_of_a_release_that_was_clustered_again_what_the_check_says(make, budget):
    release = paid_by(budget, make)
    budget.note(release.receipt["token"], release=release.fingerprint())
    again = replace(release, centers=np.eye(2) / 2, notes=(RECLUSTERED,))
    page = Page(again.report(ledger=budget))
    assert page.says("The ledger does not confirm this release")
    assert page.says("says that it was clustered again from it")
    assert not page.says("none did"), "this ledger has its token"
    assert ("role", "alert") in page.attributes


def test_who_asked_is_in_the_budget_and_nowhere_without_the_ledger(make, budget):
    release = paid_by(budget, make)
    page = Page(release.report(ledger=budget))
    assert page.says("Asked for byA. Hill & Co")
    assert page.says("Datavisits <b>")
    assert page.says("Paid for the purposebeds")
    assert "Hill" not in release.report()


def test_the_footer_names_what_the_page_was_written_from(make, budget):
    assert Page(make().report()).says("from the release alone; it holds no rows")
    assert Page(paid_by(budget, make).report(ledger=budget)).says('from the release and the ledger "ward <7>"; it holds no rows')


def test_a_page_that_was_made_without_the_folder_does_not_speak_of_its_signature(make):
    assert Page(make().report()).says("Signaturenot looked at: this page was made without the saved folder")


def test_without_matplotlib_a_report_says_why_there_is_no_picture(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert Page(make().report()).says("The picture is left out: matplotlib is not installed.")


@pytest.mark.parametrize("shape", [(1, 1), (300, 2), (2, 250)])
def test_a_large_table_says_what_it_leaves_out(make, shape):
    page = Page(make(centers=np.zeros(shape), errors=np.zeros(shape[0])).report())
    assert page.tags.count("tr") == min(shape[0], 200) + 1
    assert page.says("100 more centres are in the table") == (shape[0] == 300)
    assert page.says("50 more columns are in the table") == (shape[1] == 250)
