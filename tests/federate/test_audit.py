"""A black-box look at a run of one party: how well can two neighbouring tables be told apart by all it says?"""

from fractions import Fraction

import numpy as np
import pytest
from federate_tools import FREE, HALF, opened, party, told
from scipy import stats

from kveil import Ledger, PrivacyUnit
from kveil.desk.law import Law
from kveil.federate.plan import Round
from kveil.kernel import gate, noise
from kveil.kernel.loss import Plan
from kveil.questions.base import Part

pytestmark = pytest.mark.statistical

N_RUNS = 300  # of a whole party; a thousand epsilon is what a ledger holds
N_DRAWS = 100_000  # of the mechanism that it uses
FALSE_ALARM = 1e-6
EPSILON = 1.0
ROUNDS = (Round("cells", HALF, level=1), Round("sums", HALF, counts=HALF))


def heard(rows, seed):
    """(runs, numbers): all that a party answers about one cell in a run of two rounds."""
    found = []
    for number in range(N_RUNS):
        if number % 50 == 0:
            held = party(rows, policy=FREE, budget=1000.0)
        run = f"{seed:016x}{number:016x}"
        opened(held, *ROUNDS, run=run)
        counts = told(held, 1, "cells", {"level": 1, "nodes": "all"}, run).body["count"]
        sums = told(held, 2, "sums", {"cells": [[1, 1]]}, run).body
        found.append([counts[1], sums["count"][0], *sums["dev"][0]])
        told(held, 3, "abort", {}, run)
    return np.array(found, dtype=float)


def least_epsilon(with_row, without):
    """A lower bound on epsilon at the stated confidence: the best of several events, by Clopper-Pearson.

    The row sits at the far corner of its cell, so it moves both counts up by 1 and the deviation by half the diagonal.
    """
    events = [(score, threshold) for score in (counts_of, all_of) for threshold in (0.5, 1.0, 2.0, 3.0)]
    best = 0.0
    for score, threshold in events:
        yes, no = score(with_row) > threshold, score(without) > threshold
        for a, b in ((yes, no), (~no, ~yes)):
            alarm = FALSE_ALARM / (4 * len(events))
            low = stats.beta.ppf(alarm, a.sum(), len(a) - a.sum() + 1) if a.any() else 0.0
            high = stats.beta.ppf(1 - alarm, b.sum() + 1, len(b) - b.sum()) if not b.all() else 1.0
            best = max(best, np.log(max(low, 1e-300) / high))
    return best


def counts_of(table):
    return table[:, 0] + table[:, 1] / 2


def all_of(table):
    """Each number weighted by how sharp it is: noise has scale 2, 4, and 4 times the longest deviation."""
    corner = party().layout.cells.reaches(1).astype(float)
    return counts_of(table) + table[:, 2:] @ corner / (corner @ corner) / 2


def test_one_record_is_told_apart_no_better_than_promised():
    assert least_epsilon(heard([[1.0, 1.0]], 1), heard(np.empty((0, 2)), 2)) <= EPSILON


def test_a_party_with_an_eighth_of_the_noise_is_caught(monkeypatch):
    """The control: the same audit must flag noise that is far too small."""
    real_laplace = noise.discrete_laplace
    monkeypatch.setattr(noise, "discrete_laplace", lambda source, rate, n: real_laplace(source, 8 * rate, n))
    assert least_epsilon(heard([[1.0, 1.0]], 3), heard(np.empty((0, 2)), 4)) > EPSILON


def drawn_often(count, deviation, budget=HALF):
    """(draws, numbers): the same two rounds by the law of noise alone, as so many cells at once."""
    law, reach = Law("pure", "add-remove", PrivacyUnit()), party().layout.cells.reach(1, "l2")
    noises = (
        law.measure(Part("cells", "counts"), 1, budget),
        law.measure(Part("rows", "counts"), 1, budget / 2),
        law.measure(Part("deviations", "vectors", reach), 2, budget / 2, lengths=np.full(N_DRAWS, reach)),
    )
    raw = (np.full(N_DRAWS, count), np.full(N_DRAWS, count), np.tile(deviation, (N_DRAWS, 1)))
    plan = Plan(tuple(one.charge for one in noises), "add-remove")
    with Ledger.memory("x", 1000, relation="add-remove").reserve(plan) as ticket:
        drawn = [gate.run(one, secret, ticket)[0] for one, secret in zip(noises, raw, strict=True)]
    return np.column_stack(drawn).astype(float)


def test_the_mechanism_alone_drawn_a_hundred_thousand_times():
    corner = party().layout.cells.reaches(1)
    nothing = drawn_often(0, [0, 0])
    assert least_epsilon(drawn_often(1, corner), nothing) <= EPSILON
    assert least_epsilon(drawn_often(1, corner, 4 * HALF), drawn_often(0, [0, 0], 4 * HALF)) > EPSILON  # the control


def test_the_rounds_cost_what_is_audited():
    assert sum((part.budget for part in ROUNDS), Fraction(0)) == EPSILON
