"""Ledgers as documents: entries and rounds, days, tables that a spreadsheet reads, and a page with a picture."""

from __future__ import annotations

import csv
import io
import re
import sqlite3
from contextlib import closing
from datetime import date
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from kveil import FederatedKMeans, Ledger, federate
from kveil.errors import InvalidValue
from kveil.filing import spending as spending_module
from kveil.filing.entries import filed
from kveil.filing.spending import Spending, legend, spending, svg
from kveil.filing.tables import to_csv, to_html
from kveil.kernel import ledger as ledger_module
from kveil.kernel.loss import Charge, Plan

OLD = Path(__file__).parents[1] / "kernel" / "ledger_made_by_0_1.sql"


def plan(epsilon="1/4", delta=0, rho=None):
    loss = {"epsilon": Fraction(epsilon)} if rho is None else {"rho": Fraction(rho)}
    kind = ("discrete-laplace", "l1") if rho is None else ("discrete-gaussian", "l2")
    return Plan((Charge(kind[0], "counts", 1, kind[1], **loss),), "add-remove", delta=Fraction(delta))


@pytest.fixture
def on(monkeypatch):
    """Set the day on which charges are made."""
    return lambda day: monkeypatch.setattr(ledger_module, "_day", lambda: day)


@pytest.fixture
def clinic(on):
    """A fit on 1 March, a run of two rounds over midnight, a fit on 9 April that broke off."""
    ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
    on("2026-03-01")
    with ledger.stating(purpose="beds", data_name="admissions", by="A. Hill").reserve(plan("1/4")) as ticket:
        pass
    ledger.note(ticket.token, release="d" * 64)
    on("2026-03-31")
    party = ledger.stating(data_name="admissions", by="coordinator")
    with party.reserve(plan("1/8"), run="f" * 32, round="cells"):
        pass
    on("2026-04-01")
    with party.reserve(plan("1/8"), run="f" * 32, round="sums"):
        pass
    on("2026-04-09")
    ledger.reserve(plan("1/4"))
    return ledger


def test_a_fit_is_an_entry_and_a_federated_run_is_one_with_its_rounds_below(clinic):
    first, run, last = filed(clinic)
    assert (first.day, first.purpose, first.data_name, first.by) == ("2026-03-01", "beds", "admissions", "A. Hill")
    assert (first.release, first.state, first.mechanisms, first.rounds) == ("d" * 64, "complete", "1 x counts", ())
    assert (run.token, run.day, run.amount.epsilon, run.mechanisms) == ("f" * 32, "2026-03-31", 0.25, "federated run, 2 rounds")
    assert (run.purpose, run.data_name, run.by, run.state) == ("", "admissions", "coordinator", "complete")
    assert [(part.day, part.mechanisms, part.amount.epsilon) for part in run.rounds] == [
        ("2026-03-31", "cells: 1 x counts", 0.125),
        ("2026-04-01", "sums: 1 x counts", 0.125),
    ]
    assert (last.purpose, last.data_name, last.by, last.release) == ("", "", "", "")
    assert last.state == "reserved, counts as spent"
    assert sum(entry.amount.epsilon for entry in filed(clinic)) == clinic.spent().epsilon


def test_days_are_both_included_and_a_run_counts_on_its_first(clinic):
    def days(**limits):
        return [entry.day for entry in filed(clinic, **limits)]

    assert days(since="2026-03-31") == ["2026-03-31", "2026-04-09"]
    assert days(until="2026-03-31") == ["2026-03-01", "2026-03-31"]
    assert days(since="2026-04-01", until="2026-04-08") == []
    for wrong in ("yesterday", "2026-02-30", ""):
        with pytest.raises(InvalidValue, match="takes a day"):
            days(since=wrong)


def test_rounds_of_a_zcdp_ledger_add_rho_and_not_epsilon():
    ledger = Ledger.memory("clinic", 2.0, 1e-6, relation="add-remove")
    for _ in range(2):
        ledger.reserve(plan(rho="1/64", delta=ledger.delta), run="r")
    (run,) = filed(ledger)
    assert run.amount.rho == 1 / 32
    assert run.amount == ledger.spent()
    assert run.amount.epsilon < sum(part.amount.epsilon for part in run.rounds)


def test_a_statement_that_was_added_to_stands_beside_the_first(clinic):
    clinic.note(clinic.charges()[0].token, purpose="wards")
    assert filed(clinic)[0].purpose == "beds | wards"


def test_csv_is_one_line_per_entry_and_per_round_of_all_ledgers(clinic):
    other = Ledger.memory("=cmd()", 1.0, relation="add-remove")
    other.stating(purpose="@sum, a", by='"x"').reserve(plan())
    rows = list(csv.DictReader(io.StringIO(to_csv([clinic, other]))))
    assert [row["ledger"] for row in rows] == ["clinic"] * 5 + ["'=cmd()"]
    assert [row["round"] for row in rows] == ["", "", "1", "2", "", ""]
    assert sum(float(row["epsilon"]) for row in rows if not row["round"]) == 1.0
    assert (rows[5]["purpose"], rows[5]["by"]) == ("'@sum, a", '"x"')  # no formula for a spreadsheet
    assert rows[1]["entry"] == rows[2]["entry"] == "f" * 32
    assert rows[0]["release"] == "d" * 64
    assert to_csv([clinic], "2026-05-01").count("\n") == 1


def test_the_page_needs_no_other_file_and_shows_every_entry(clinic):
    page = to_html([clinic], "2026-03-02", "2026-04-30")
    assert "Entries from 2026-03-02 until 2026-04-30. Sums and picture are of all time." in page
    assert page.count("<tr>") == 3  # the head, the run, the fit that broke off
    assert page.count('<tr class="round">') == 2
    assert not re.search(r"(src|href)=", page)
    ElementTree.fromstring(re.sub(r"<meta [^>]*>", "", page.split("\n", 1)[1]))  # every tag is closed
    assert "No entries." in to_html([Ledger.memory("new", 1.0, relation="add-remove")])


def test_names_cannot_act_as_markup():
    ledger = Ledger.memory("<script>", 1.0, relation="add-remove")
    ledger.stating(purpose="<img src=x>", by="a&b").reserve(plan())
    page = to_html([ledger])
    assert "<script" not in page
    assert "<img" not in page
    assert "a&amp;b" in page


def test_spending_is_the_share_of_the_budget_after_each_day(clinic):
    told = spending(clinic)
    assert [day.isoformat() for day in told.days] == ["2026-03-01", "2026-03-31", "2026-04-01", "2026-04-09"]
    assert told.shares == (0.25, 0.375, 0.5, 0.75)
    assert told.entries == (0.25, 0.25, 0.25)


def test_the_picture_steps_up_and_keeps_within_its_frame(clinic):
    picture = ElementTree.fromstring(svg([spending(clinic), Spending("none", (), ())]))
    path, flat = [part.attrib["d"] for part in picture.iter() if part.tag.endswith("path")]
    assert "V" not in flat, "nothing was spent"
    heights = [float(text) for text in re.findall(r"V([\d.]+)", path)]
    places = [float(text) for text in re.findall(r"H([\d.]+)", path)]
    assert heights == sorted(heights, reverse=True)
    assert places == sorted(places)
    frame = spending_module
    assert min(heights) > frame.TOP
    assert max(heights) < frame.HEIGHT - frame.BOTTOM
    assert max(places) == frame.WIDTH - frame.RIGHT
    whole = frame.HEIGHT - frame.TOP - frame.BOTTOM
    assert heights[-1] == pytest.approx(frame.TOP + whole * 0.25, abs=0.06)


def test_a_ledger_that_was_not_charged_is_an_empty_frame():
    picture = ElementTree.fromstring(svg([Spending("new", (), ())]))
    (frame,) = [part.attrib for part in picture.iter() if part.tag.endswith("rect")]
    assert (frame["width"], frame["fill"]) == ("100.00%", "none")
    assert "new: nothing spent" in "".join(picture.itertext())


def test_a_budget_of_one_day_is_a_bar_with_a_block_per_release(on):
    on("2026-03-01")
    ledger = Ledger.memory("clinic & co", 1.0, relation="add-remove")
    for share in ("1/4", "1/8"):
        ledger.reserve(plan(share))
    told = spending(ledger)
    assert (told.shares, told.entries) == ((0.375,), (0.25, 0.125))
    picture = ElementTree.fromstring(svg([told]))
    boxes = [part.attrib for part in picture.iter() if part.tag.endswith("rect")]
    blocks = [(float(box["x"].rstrip("%")), float(box["width"].rstrip("%"))) for box in boxes]
    assert [width for _, width in blocks] == pytest.approx([25, 12.5, 100], abs=0.25)
    assert [start for start, _ in blocks] == [0, 25, 0]
    assert "viewBox" not in picture.attrib, "its text would shrink with it"
    assert "one release" in legend([told])


def test_an_older_ledger_shows_blanks(tmp_path):
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        db.executescript(OLD.read_text())
    entries = filed(Ledger.open(tmp_path / "old.db"))
    assert [(entry.purpose, entry.data_name, entry.by, entry.release) for entry in entries] == [("", "", "", "")] * 2
    assert [entry.state for entry in entries] == ["complete", "reserved, counts as spent"]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_party_files_its_run_with_dataset_and_statement():
    rows = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    ledger = Ledger.memory("north", 1.0, relation="add-remove")
    party = federate.Party(rows, bounds=(-1, 1), name="north", dataset="heart", ledger=ledger.stating(purpose="beds", by="me"))
    model = FederatedKMeans(2, epsilon=0.5, bounds=(-1, 1)).fit([party])
    (run,) = filed(ledger)
    assert run.token == model.release_.receipt["token"]
    assert (run.purpose, run.data_name, run.by) == ("beds", "heart", "me")
    assert len(run.rounds) > 1
    assert 0 < run.amount.epsilon == ledger.spent().epsilon <= 0.5  # rounds may be left out


def test_names_of_many_ledgers_stand_apart_and_have_the_colour_of_the_page():
    told = [
        Spending(f"ledger <{i}> with a name that is far too long", (date(2026, 1, 1 + i),), (0.5,), (0.5,)) for i in range(15)
    ]
    picture = ElementTree.fromstring(svg(told))
    names = [part for part in picture.iter() if part.tag.endswith("text") and "ledger" in (part.text or "")]
    heights = sorted(float(part.attrib["y"]) for part in names)
    assert len(names) == 15
    assert min(b - a for a, b in pairwise(heights)) >= 14
    assert heights[-1] <= float(picture.attrib["height"])
    assert picture.attrib["fill"] == "currentColor"
