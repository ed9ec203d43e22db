"""The privacy of a stream's release, checked draw by draw.

A release is run on a stream and noted: every charge, every raw array that reaches the gate, every noisy answer. Then it is run
on a neighbour that is given the same noisy answers. If both runs ask the same questions, charge the same, and the raw arrays
differ by no more than each charge says, the noise added by the vault, whose laws are tested there, makes the whole private:
the argument of adaptive composition, with the premises looked at instead of believed.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil import Ledger, PrivacyUnit
from kveil.desk import pool as pool_module
from kveil.desk.leaf_table import LeafTable, depth_for
from kveil.desk.pool import Pool
from kveil.kernel import gate
from kveil.kernel.grid import Box
from kveil.kernel.loss import floor_delta
from kveil.methods import leaves as release
from kveil.methods.leaves import LeafReading
from kveil.solve import placed
from kveil.source import read
from kveil.testing import scripted

MECHANISMS = {"discrete-laplace", "discrete-gaussian", "k-norm"}


class Replay:
    """Stands in for the gate: the first run is noted, the second gets the answers of the first."""

    def __init__(self):
        self.runs = [[]]
        self.answers = []

    def again(self):
        self.runs.append([])

    def run(self, measurement, secret, account):
        noisy, receipt = gate.run(measurement, secret, account)
        run = self.runs[-1]
        if len(self.runs) == 1:
            self.answers.append(noisy)
        run.append((measurement.charge, np.array(secret)))
        return self.answers[len(run) - 1].copy(), receipt


def moved(charge, one, other):
    """How far a neighbour moved what a charge protects, in the norm of its noise."""
    away = (other - one).astype(np.float64)
    if charge.mechanism == "discrete-laplace":
        return np.abs(away).sum()
    if charge.mechanism == "discrete-gaussian":
        return np.sqrt((away**2).sum())
    return np.sqrt((away**2).sum(axis=1)).sum()


def quick_centers(points, weights, n_clusters, rng):
    """In place of a thorough search: what follows from released numbers is free, so any function of them will do."""
    return np.resize(points[np.argsort(-weights, kind="stable")], (n_clusters, points.shape[1]))


def a_pool(d, delta):
    return Pool(Fraction(1), floor_delta(delta), "add-remove", PrivacyUnit(), is_pure=not delta or d <= 3)


def replayed(rows, neighbour, seed, memory, delta=0.0, half=1.0):
    """The draws (charge, raw) of a release, and by how much a neighbour's pass what they are charged for (<= 0: private)."""
    replay, d = Replay(), rows.shape[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool_module, "gate", replay)
        patch.setattr(release, "thorough_kmeans", quick_centers)
        patch.setattr(placed, "thorough_kmeans", quick_centers)
        for table in (rows, neighbour):
            state, pool = LeafTable(Box(-half * np.ones(d), half * np.ones(d)), depth_for(memory)), a_pool(d, delta)
            state.update(read(table))
            with scripted(seed):
                ledger = Ledger.memory("one", 1.0, pool.delta, relation="add-remove")
                desk = state.open(pool, ledger.reserve(pool.plan()))
                LeafReading(state.leaves, desk, 3, np.random.default_rng(0)).run()
            if table is rows:
                replay.again()
    first, second = replay.runs
    assert [(charge, raw.shape) for charge, raw in first] == [(charge, raw.shape) for charge, raw in second]
    assert {charge.mechanism for charge, _ in first} <= MECHANISMS
    losses = [charge.rho if charge.epsilon is None else charge.epsilon for charge, _ in first]
    assert sum(losses) <= pool.total
    return first, max(moved(c, a, b) - c.sensitivity for (c, a), (_, b) in zip(first, second, strict=True))


CASES = [(1, 64), (2, 500), (4, 64), (6, 1024), (12, 64), (25, 600)]


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("d", "memory"), CASES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_neighbour_is_asked_the_same_and_moves_no_answer_by_more_than_is_charged(d, memory, delta, data):
    value = st.floats(-1.5, 1.5) | st.sampled_from([0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e300, 0.5, -0.5, 2.0**-15])
    row = np.array(data.draw(st.lists(value, min_size=d, max_size=d)))
    seed = data.draw(st.integers(0, 2**20))
    rng = np.random.default_rng(seed)
    n = data.draw(st.sampled_from([0, 1, 50, 2000]))
    rows = rng.normal(size=(3, d))[rng.integers(3, size=n)] * 0.5 + 0.1 * rng.normal(size=(n, d))
    half = 1.0 if data.draw(st.booleans()) else 10.0 ** rng.uniform(-6, 3, d)  # columns of one width, and of very different ones
    _, excess = replayed(rows * half, np.vstack([rows, row]) * half, seed, memory, delta, half)
    assert excess <= 1e-6


@pytest.mark.parametrize("d", [2, 6, 25])
def test_the_check_would_notice_a_person_with_two_rows(d):
    """The broken twin: two rows more move a count by 2, and every charge is for 1."""
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(500, d)) * 0.3
    _, excess = replayed(rows, np.vstack([rows, np.ones((2, d))]), 0, memory=64)
    assert excess >= 1


def test_every_kind_of_draw_was_looked_at():
    rng = np.random.default_rng(0)
    labels = set()
    for d in (2, 6, 25):
        rows = rng.normal(size=(3, d))[rng.integers(3, size=2000)] * 0.4
        draws, excess = replayed(rows, rows[1:], 1, memory=256)
        labels |= {charge.label for charge, _ in draws}
        assert excess == pytest.approx(0, abs=1e-6)  # a row removed moves a count by 1, which is all that it is charged for
    assert labels == {"number of rows", "cells", "means of cells", "clusters", "deviations", "sums"}
