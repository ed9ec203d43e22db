"""Which party gives the next centre of PDk-means++ (and of Dk-means++): the exact law, from what parties answered."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
from federate_tools import FREE, party

from kveil.federate.picks import PickMessage, TotalMessage
from kveil.federate.questions import CellsMessage
from kveil.federate.sealed import SeedMessage
from kveil.federate.variates import PrivateVariatesRun, SealedVariatesRun, _drawn

NAMES = ("north", "south", "west")
SIZES = {"north": 6, "south": 3, "west": 1}
TOTALS = {"north": 4, "south": 60, "west": -5}  # with noise a total may be negative


class Public:
    """A generator that takes the party it is told and keeps the chances it was given."""

    def __init__(self, told):
        self.told, self.chances = iter(told), []

    def choice(self, n, p):
        assert len(p) == n
        self.chances.append([Fraction(float(chance)).limit_denominator(1000) for chance in p])
        return next(self.told)

    def uniform(self, low, high, size):
        return np.zeros(size)  # where copies of centres are put; no party is drawn by it


class Answering:
    """A coordinator whose parties answer sizes, then totals; whoever is picked gives a row."""

    def __init__(self, row):
        self.row, self.present, self.picked = row, NAMES, []

    def ask(self, kind, question, layout, parties=None):
        if isinstance(question, PickMessage | SeedMessage):
            self.picked += parties
            return {name: [self.row] for name in parties}
        answers = {CellsMessage: SIZES, TotalMessage: TOTALS}.get(type(question), TOTALS)
        return {name: [np.array([answers[name]])] for name in self.present}


def drawn(kind, told, k, row, monkeypatch):
    """The chances of every draw of a run, and who was picked."""
    held = party(policy=FREE)
    run = object.__new__(kind)
    run.coordinator, run.layout, run.rng, run.k = Answering(row), held.layout, Public(told), k
    monkeypatch.setattr(kind, "parts", lambda self, kind: [SimpleNamespace(times=2)])
    for name in ("start", "stepped"):
        monkeypatch.setattr(kind, name, lambda self, found: found)
    if kind is SealedVariatesRun:
        monkeypatch.setattr(kind, "asked", lambda self, kind, question: ((np.ones(k), np.zeros((k, 2))), 3))
        run.reach = 1
    run.run()
    return run.rng.chances, run.coordinator.picked


def test_a_party_is_drawn_by_its_size_then_by_its_total(monkeypatch):
    """Exact: 6 : 3 : 1, then 4 : 60 : 0, since noise below 0 counts as nothing."""
    chances, picked = drawn(PrivateVariatesRun, [2, 0], 2, np.zeros(2, dtype=np.int64), monkeypatch)
    assert chances == [[Fraction(6, 10), Fraction(3, 10), Fraction(1, 10)], [Fraction(1, 16), Fraction(15, 16), 0]]
    assert picked == ["west", "north"]


def test_a_party_that_was_picked_often_enough_is_left_out(monkeypatch):
    """After two picks south may not be drawn again, and the others share by their totals."""
    chances, picked = drawn(PrivateVariatesRun, [1, 1, 0], 3, np.zeros(2, dtype=np.int64), monkeypatch)
    assert picked == ["south", "south", "north"]
    assert chances[2] == [1, 0]


def test_where_no_total_is_above_zero_any_party_may_be_drawn(monkeypatch):
    monkeypatch.setitem(TOTALS, "north", 0)
    monkeypatch.setitem(TOTALS, "south", -1)
    chances, _ = drawn(PrivateVariatesRun, [0, 0], 2, np.zeros(2, dtype=np.int64), monkeypatch)
    assert chances[1] == [Fraction(1, 3)] * 3


def test_sealed_seeds_come_from_parties_by_their_totals_too(monkeypatch):
    monkeypatch.setitem(TOTALS, "west", 0)
    chances, _ = drawn(SealedVariatesRun, [2, 0], 2, np.zeros(3, dtype=np.int64), monkeypatch)
    assert chances == [[Fraction(6, 10), Fraction(3, 10), Fraction(1, 10)], [Fraction(1, 16), Fraction(15, 16), 0]]


def test_the_draw_itself_follows_those_chances():
    """Numpy's own choice: north has no weight and never comes. A uniform draw passes with probability 2^-50."""
    rng = np.random.default_rng(0)
    assert {_drawn(["north", "south"], {"north": 0, "south": 9}, rng) for _ in range(50)} == {"south"}
