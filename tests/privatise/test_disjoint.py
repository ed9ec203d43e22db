"""Noise of every cell's own width: one row costs no more than the budget, whichever cells it moves."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil import Ledger, PrivacyUnit
from kveil.kernel.loss import Plan
from kveil.privatise import disjoint
from kveil.privatise.disjoint import DisjointCells, drawn

ONE = PrivacyUnit()


def pmf(z, rate):
    """Discrete Laplace."""
    q = exp(-rate)
    return (1 - q) / (1 + q) * q ** abs(z)


@pytest.mark.parametrize(("relation", "rows"), [("add-remove", 1), ("add-remove", 2), ("replace-one", 1)])
def test_the_enumerated_law_of_counts_and_sums_keeps_its_promise(relation, rows):
    """Two cells of one column, lengths 1 and 3: every pair of neighbours on a small lattice, every output, exact ratio.

    The rates are those that the mechanism hands to its samplers; see the next test.
    """
    unit = PrivacyUnit("person", rows) if rows > 1 else ONE
    noise, budget, lengths = DisjointCells("pure", relation, unit), Fraction(1), (1, 3)
    moved = noise.counts("c", budget).charge.sensitivity
    assert moved == rows * (2 if relation == "replace-one" else 1)
    rows_of_one = [(cell, value) for cell in (0, 1) for value in range(-lengths[cell], lengths[cell] + 1)]

    def sums(table):
        return [sum(value for cell, value in table if cell == c) for c in (0, 1)], [
            sum(cell == c for cell, _ in table) for c in (0, 1)
        ]

    tables = [[row] * rows for row in rows_of_one]
    pairs = [(a, b) for a in tables for b in tables] if relation == "replace-one" else [(a, []) for a in tables]
    rates = [float(budget / (length * moved)) for length in lengths]
    worst = 0.0
    for a, b in pairs:
        (sa, ca), (sb, cb) = sums(a), sums(b)
        for out in [(x, y) for x in range(-9, 10) for y in range(-9, 10)]:
            of_sums = sum(log(pmf(o - u, r) / pmf(o - v, r)) for o, u, v, r in zip(out, sa, sb, rates, strict=True))
            of_counts = sum(log(pmf(o - u, 1 / moved) / pmf(o - v, 1 / moved)) for o, u, v in zip(out, ca, cb, strict=True))
            worst = max(worst, abs(of_sums), abs(of_counts))
    assert worst == pytest.approx(1.0, abs=1e-9)  # tight, and never above


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
@pytest.mark.parametrize("columns", [1, 3])
def test_samplers_get_the_width_of_each_cell(monkeypatch, kind, columns):
    seen = []

    def of_laplace(source, rate, n):
        seen.append((1 / rate, n))
        return np.zeros(n, dtype=np.int64)

    def of_gaussian(source, variance, n):
        seen.append((variance, n))
        return np.zeros(n, dtype=np.int64)

    def of_k_norm(source, beta, blocks, d):
        seen.append((beta, blocks * d))
        return np.zeros((blocks, d), dtype=np.int64)

    for name, stub in (("discrete_laplace", of_laplace), ("discrete_gaussian", of_gaussian), ("k_norm", of_k_norm)):
        monkeypatch.setattr(disjoint, name, stub)
    noise, lengths, budget = DisjointCells(kind, "add-remove", PrivacyUnit("person", 2)), np.array([5, 1, 5]), Fraction(1, 4)
    measurement = noise.sums("s", lengths, budget, longest=7)
    assert measurement.charge.sensitivity == 14
    raw = np.arange(3 * columns).reshape(3, columns)
    assert np.array_equal(measurement.draw(None, raw), raw)
    scale = {"pure": lambda length: 2 * length / budget, "zcdp": lambda length: (2 * length) ** 2 / (2 * budget)}[kind]
    assert seen == [(scale(1), columns), (scale(5), 2 * columns)]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), min_size=1, max_size=3), st.integers(0, 2**32 - 1))
def test_vectors_of_a_person_cost_at_most_the_budget_in_both_losses(rows, seed):
    """Sum over cells of |move|/width for K-norm noise, of |move|^2/(2 variance) for Gaussian noise."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 100, 4)
    m, budget = len(rows), 0.7
    moves = np.zeros((4, 3))
    for cell, share in rows:
        direction = rng.standard_normal(3)
        moves[cell] += direction / np.linalg.norm(direction) * lengths[cell] * share / 50
    norms = np.linalg.norm(moves, axis=1)
    assert (norms * budget / (lengths * m)).sum() <= budget + 1e-9
    assert (norms**2 * 2 * budget / (2 * (lengths * m) ** 2)).sum() <= budget + 1e-9


def test_one_reservation_pays_for_counts_and_sums():
    noise, budget = DisjointCells("pure", "add-remove", ONE), Fraction(1, 2)
    parts = (noise.counts("counts", budget), noise.sums("sums", np.array([4, 2]), budget, 4))
    ledger = Ledger.memory("x", 1.0, relation="add-remove")
    with ledger.reserve(Plan(tuple(part.charge for part in parts), "add-remove")) as ticket:
        counts, sums = drawn(parts, (np.zeros(2, dtype=np.int64), np.zeros((2, 3), dtype=np.int64)), ticket)
    assert (counts.shape, sums.shape, ledger.remaining().epsilon) == ((2,), (2, 3), 0.0)


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_a_cell_without_a_length_is_never_released_without_noise(kind):
    noise = DisjointCells(kind, "add-remove", ONE).sums("sums", np.array([4, 4]), Fraction(1), 4)
    for rows in (1, 3):
        with pytest.raises(AssertionError, match="every cell"):
            noise.draw(None, np.zeros((rows, 2), dtype=np.int64))
    for lengths in ([0, 4], [4, 5]):
        with pytest.raises(AssertionError, match="at least 1"):
            DisjointCells(kind, "add-remove", ONE).sums("sums", np.array(lengths), Fraction(1), 4)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_stated_deviations_are_those_of_the_noise(kind):
    """Mean squares of 20000 draws, at 8 standard errors of squares (whose variance is at most 5 times their squared mean, the
    Laplace law's): false alarm below 1e-6. Catches a scale 15 % off. Counts are discrete: 2 % less than the stated width."""
    noise, n, budget = DisjointCells(kind, "add-remove", ONE), 20_000, Fraction(1, 2)
    ledger = Ledger.memory("x", 1000, 1e-3 if kind == "zcdp" else 0, relation="add-remove")
    parts = (noise.counts("counts", budget), noise.sums("sums", np.full(n, 30), budget, 30))
    with ledger.reserve(Plan(tuple(part.charge for part in parts), "add-remove", ONE, ledger.delta)) as ticket:
        counts, sums = drawn(parts, (np.zeros(n, dtype=np.int64), np.zeros((n, 4), dtype=np.int64)), ticket)
    margin = 8 * (5 / n) ** 0.5
    assert abs((counts**2).mean() / noise.count_deviation(budget) ** 2 - 0.98) < margin + 0.03
    assert abs((sums**2).sum(axis=1).mean() / noise.sum_spread(4, 30, budget) - 1) < margin
