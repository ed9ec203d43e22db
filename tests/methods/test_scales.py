"""Scales found privately: by hand on few rows, the same guarantee as without, and refusals that cost nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

import kveil
from kveil import Ledger, PrivateKMeans, PrivateKMedian
from kveil.errors import InvalidValue
from kveil.kernel.grid import Box
from kveil.methods import scales
from kveil.methods.scales import Scales, _middle, _moments
from kveil.questions.base import Noisy
from kveil.questions.column_bins import Cells, ColumnBins, even_edges, octave_edges
from kveil.testing import scripted

ROWS = np.random.default_rng(0).normal([30.0, -2000.0], [2.0, 300.0], (4000, 2))
WIDE = kveil.Bounds([0, -1e5], [100, 1e5])
MODELS = [PrivateKMeans, PrivateKMedian]


def fit(model=PrivateKMeans, rows=ROWS, **terms):
    return model(2, **{"epsilon": 1.0, "bounds": WIDE, "scaling": "private", "random_state": 0, **terms}).fit(rows)


def test_four_rows_by_hand():
    """Bounds 0 to 64, rows 10.5, 10.5, 12.5 and 32.5: of the even bins the median one is [10, 11], with the middle 10.5."""
    box = Box([0.0], [64.0], bits=23)
    rows = Cells(box).encode(np.array([[10.5], [10.5], [12.5], [32.5], [np.nan]]))
    (even,) = ColumnBins("", (0,), even_edges(box.top, 64)[None], -box.top).raw(rows)
    assert np.flatnonzero(even).tolist() == [10, 12, 32]
    middle = _middle(Noisy(even.astype(float), 0.0), box.top, is_pure=True)
    assert box.center[0] + middle * box.step[0] == pytest.approx(10.5, abs=1e-4)
    (octaves,) = ColumnBins("", (0,), octave_edges(box.top, middle)[None], -box.top).raw(rows)
    # 2 in 64 is 2**-5: the bin above it (of value 2**-4.5) or below, by rounding; 22 in 64 is in (1/4, 1/2], of value 2**-1.5
    values = [0.0, 2**-5.5 if octaves[17] else 2**-4.5, 2**-1.5]
    moved, spread = _moments(Noisy(octaves.astype(float), 0.0))
    assert octaves.sum() == 4
    assert moved == pytest.approx((values[1] + values[2]) / 4)
    assert spread == pytest.approx(np.std([0, 0, *values[1:]]))


def test_bins_about_a_code_are_octaves_of_the_width_on_either_side():
    top = 2**22 - 1
    edges = octave_edges(top, 5)
    assert len(edges) == 23
    for i in range(1, 12):
        last = (2 * top) >> i  # the farthest code of |x - m| <= width / 2**i
        assert np.searchsorted(edges, [5 + last, 5 + last + 1]).tolist() == [23 - i, 24 - i]
        assert np.searchsorted(edges, [5 - last, 5 - last - 1]).tolist() == [i, i - 1]
    assert np.searchsorted(edges, [4, 5]).tolist() == [11, 12]


def test_rows_that_noise_could_hide_widen_a_column():
    counts = np.zeros(24)
    counts[12] = 1000.0
    assert _moments(Noisy(counts, 0.0)) == (0.0, scales.NARROWEST)
    assert _moments(Noisy(counts, 20.0)) == (0.0, pytest.approx(np.sqrt(0.25 * 20 / 1000 / 4)))
    assert _moments(Noisy(np.zeros(24), 20.0)) == (0.0, 0.25)
    counts[[0, 23]] = 1000.0
    assert _moments(Noisy(counts, 0.0))[1] == 0.25, "never wider than the bounds"


def test_a_box_never_leaves_the_bounds_and_is_never_narrower_than_a_part_of_them():
    low, high = np.array([0.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0])
    box = Scales(low, high, np.array([0.0, 1.0, 0.5]), np.full(3, 2.0**-9)).box(Box(low, high))
    assert box.lower.tolist() == [0.0, 1 - 2.0**-7, 0.5 - 2.0**-7]
    assert box.upper.tolist() == [2.0**-7, 1.0, 0.5 + 2.0**-7]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize("terms", [{}, {"delta": 1e-6, "relation": "replace-one"}, {"epsilon": float("inf")}], ids=str)
def test_the_box_and_what_it_came_from_are_in_the_release(model, terms, tmp_path):
    with scripted(1):
        fitted = fit(model, **terms)
    told = fitted.release_.parameters
    low, high = (np.array(end) for end in told["bounds"])
    by = told["scaled_by"]
    assert told["scaling"] == "bounds"
    assert by["bounds"] == [[0.0, -1e5], [100.0, 1e5]]
    mean, deviation = np.array(by["mean"]), np.array(by["deviation"])
    np.testing.assert_array_equal(low, np.maximum(mean - 4 * deviation, [0, -1e5]))
    np.testing.assert_array_equal(high, np.minimum(mean + 4 * deviation, [100, 1e5]))
    assert (np.abs(mean - [30, -2000]) < [4, 4000]).all()
    assert (deviation / [2, 300] > 0.4).all()
    loaded = kveil.load(fitted.release_.save(tmp_path / "out"))
    np.testing.assert_array_equal(loaded.predict(ROWS), fitted.predict(ROWS))
    np.testing.assert_array_equal(loaded.transform(ROWS), fitted.transform(ROWS))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_charge_is_that_of_a_fit_without_scales_and_the_draws_add_up_to_it(d, delta):
    rows = ROWS[:, [0, 1, 0, 1, 0][:d]]
    terms = {"bounds": (-1e5, 1e5), "delta": delta}
    fitted = fit(rows=rows, **terms)
    assert fitted.guarantee_.charges == fit(rows=rows, scaling="bounds", **terms).guarantee_.charges
    assert fitted.guarantee_ == PrivateKMeans(2, scaling="private", **terms).guarantee(d)
    drawn = [(charge.label, charge.times, charge.epsilon or charge.rho) for charge in fitted.guarantee_.draws]
    of_scales = [times * loss for label, times, loss in drawn if label.endswith("of a column")]
    whole = fitted.guarantee_.charges[0].epsilon or fitted.guarantee_.charges[0].rho
    assert float(sum(of_scales) / whole) == pytest.approx(0.15, rel=1e-6)
    assert sum(times for label, times, _ in drawn if label == "places of a column") == d
    assert 0.99 < float(sum(times * loss for _, times, loss in drawn) / whole) <= 1


@pytest.mark.parametrize(
    ("model", "method"), [(PrivateKMeans, "grid"), (PrivateKMeans, "sample-aggregate"), (PrivateKMedian, "weiszfeld")]
)
def test_other_methods_that_split_their_budget_take_the_rest_too(model, method):
    fitted = fit(model, method=method, epsilon=4.0)
    whole = fitted.guarantee_.charges[0].epsilon
    assert 0.99 < float(sum(charge.times * charge.epsilon for charge in fitted.guarantee_.draws) / whole) <= 1
    assert np.ptp(fitted.release_.parameters["bounds"], axis=0)[1] < 1e5


def test_deviations_come_out_within_a_factor_of_four_and_the_fit_is_better_for_it():
    """Four groups that differ in a column which public bounds make 60 times too wide; scripted, so nothing is left to luck."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, 20_000)
    rows = np.column_stack([rng.normal(10 * group, 1), rng.uniform(0, 100, 20_000), rng.exponential(20, 20_000)])
    bounds, true = [(-400.0, 400.0), (0.0, 100.0), (0.0, 1000.0)], rows.std(axis=0)
    costs = {"bounds": [], "private": []}
    for seed in range(3):
        for scaling, cost in costs.items():
            with scripted(seed):
                fitted = PrivateKMeans(4, epsilon=1.0, bounds=bounds, scaling=scaling, random_state=0).fit(rows)
            away = (rows[:, None] - fitted.cluster_centers_) / true
            cost.append((away**2).sum(axis=2).min(axis=1).mean())
        ratio = np.array(fitted.release_.parameters["scaled_by"]["deviation"]) / true
        assert (ratio > 1 / 4).all()
        assert (ratio < 4).all()
    assert np.mean(costs["private"]) < 0.9 * np.mean(costs["bounds"])


def test_a_missing_cell_is_in_no_bin_of_its_column_and_in_one_of_every_other():
    box = Box([0.0, 0.0], [1.0, 1.0])
    codes = Cells(box).encode(np.array([[np.nan, 0.3], [np.inf, 0.3], [0.2, -9.0]]))
    question = ColumnBins("", (0, 1), np.tile(even_edges(box.top, 4), (2, 1)), -box.top)
    assert [counts.tolist() for counts in question.raw(codes)] == [[1, 0, 0, 0], [1, 2, 0, 0]]
    outside = Cells(box, clips=False).encode(np.array([[-0.1, 1.1], [0.0, 1.0]]))
    assert [counts.sum() for counts in question.raw(outside)] == [1, 1]


@pytest.mark.parametrize(
    ("terms", "rows", "why"),
    [
        ({"method": "lloyd"}, ROWS, "lists every charge beforehand"),
        ({"method": "mean"}, ROWS, "lists every charge beforehand"),
        ({"bounds": (-1, 1)}, csr_array(np.eye(4)), "sparse rows"),
        ({"bounds": (-1, 1)}, np.zeros((3, 65)), "1 to 64 columns"),
        ({"bounds": (2.0**52, 2.0**52 + 64)}, ROWS, "too far from 0"),
        ({"epsilon": 1e-9}, ROWS, "too small"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_has_no_scales_to_find_is_refused_and_costs_nothing(terms, rows, why):
    ledger = Ledger.memory("untouched", 1.0, relation="add-remove")
    with pytest.raises(InvalidValue, match=why):
        fit(rows=rows, ledger=ledger, **terms)
    assert ledger.charges() == ()


def test_the_rest_of_a_pool_is_a_whole_of_its_own_paid_by_the_same_reservation():
    from kveil import PrivacyUnit
    from kveil.desk.pool import Pool
    from kveil.questions.cells import RowCount
    from kveil.source import read

    pool = Pool(Fraction(1), Fraction(0), "add-remove", PrivacyUnit(), is_pure=True)
    with pytest.raises(AssertionError, match="once it draws"):
        pool.rest()
    with Ledger.memory("rows", 1, relation="add-remove").reserve(pool.plan()) as ticket:
        desk = pool.open(read(ROWS), Box([0.0, -1e5], [100.0, 1e5]), ticket)
        desk.ask(RowCount(), 0.25)
        rest = desk.rest()
        assert (desk.left, rest.left, rest.total) == (0.0, 1.0, Fraction(3, 4))
        assert rest.deviation(1.0) == pytest.approx(pool.deviation(0.75))
        rest.ask(RowCount(), 1.0)
        assert rest.left == 0.0
        with pytest.raises(kveil.errors.KveilError):
            rest.ask(RowCount(), 0.1)  # the reservation pays no more
        assert sum(float(receipt.charge.epsilon) for receipt in ticket.receipts) == 1.0
