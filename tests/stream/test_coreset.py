"""The synopsis: exact counts, honest scatter, fixed memory, whatever the order, the batches and the merges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.errors import InvalidValue
from kveil.solve.instances import kmeans_plusplus, skmeans_plusplus
from kveil.stream.coreset import Coreset


def seen(rows, memory, cuts=()):
    synopsis = Coreset(rows.shape[1], memory)
    for batch in np.split(rows, cuts):
        synopsis.update(batch)
    return synopsis


def same(one, other):
    a, b = one.arrays(), other.arrays()
    return all(a[name].tobytes() == b[name].tobytes() for name in a)


def mixture(n, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(6, d))[rng.integers(6, size=n)] + 0.1 * rng.normal(size=(n, d))


def test_a_stream_that_fits_is_kept_as_it_is_and_seeded_as_its_rows_would_be():
    rows = np.array([[0.0], [1.0], [1.0], [5.0], [9.0], [9.5]])
    synopsis = seen(rows, 6)
    assert synopsis.points.tolist() == rows.tolist()
    assert (synopsis.weights.tolist(), synopsis.spread) == ([1] * 6, 0.0)
    for seed in range(50):
        of_rows = kmeans_plusplus(rows, 2, random_state=seed)
        assert (skmeans_plusplus(synopsis.points, synopsis.weights, 2, random_state=seed) == of_rows).all()


def test_cells_by_hand():
    """Five rows in memory for four: cut at the mean 4.0 into {0, 1} and {6, 9}; then 7 is nearer to 7.5 than sqrt(2 5/4)."""
    synopsis = seen(np.array([[0.0], [1.0], [6.0], [9.0], [7.0]]), 4)
    assert synopsis.points.ravel().tolist() == [0.5, 22 / 3]
    assert synopsis.weights.tolist() == [2, 3]
    assert synopsis.scatters.tolist() == pytest.approx([0.5, 14 / 3])
    synopsis.update(np.array([[3.9], [100.0]]))  # both are far from their cell: held as they are
    assert synopsis.points.ravel().tolist() == [0.5, 22 / 3, 3.9, 100.0]


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 60), st.integers(1, 4), st.integers(1, 300), st.integers(0, 2**32 - 1), st.data())
def test_counts_add_up_exactly_and_scatter_is_what_was_lost(memory, d, n, seed, data):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-3, 4, (n, d)) + (rng.normal(size=(n, d)) if seed % 2 else 0.0)
    if seed % 3 == 0:
        rows = rows[np.argsort(rows[:, 0])]
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    synopsis = seen(rows, memory, cuts)
    assert same(synopsis, seen(rows, memory))  # batches do not matter
    assert len(synopsis) <= memory
    assert synopsis.weights.sum() == n
    assert synopsis.weights @ synopsis.points == pytest.approx(rows.sum(axis=0), abs=1e-8)
    # Scatter within cells and between them is the whole scatter of the rows.
    mean = rows.mean(axis=0)
    between = synopsis.weights @ ((synopsis.points - mean) ** 2).sum(axis=1)
    assert synopsis.spread + between == pytest.approx(((rows - mean) ** 2).sum(), rel=1e-9, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(4, 40), st.lists(st.integers(0, 120), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_any_merge_keeps_all_rows_in_the_same_memory(memory, sizes, seed):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(n, 2)) for n in sizes]
    whole = Coreset(2, memory)
    for part in parts:
        other = seen(part, memory)
        before = other.copy()
        whole.merge(other)
        assert same(other, before)
    rows = np.concatenate(parts)
    assert len(whole) <= memory
    assert whole.weights.sum() == len(rows)
    assert whole.weights @ whole.points == pytest.approx(rows.sum(axis=0), abs=1e-9)
    whole.update(rng.normal(size=(50, 2)))
    assert whole.weights.sum() == len(rows) + 50


def test_equal_rows_stay_one_point_wherever_they_lie():
    for place in (0.1, 1e9 + 1 / 3, -7e-12):
        synopsis = seen(np.full((5000, 3), place), 20)
        assert (synopsis.points == place).all()
        assert (synopsis.spread, synopsis.weights.sum(), len(np.unique(synopsis.points, axis=0))) == (0.0, 5000, 1)


def test_rows_far_from_the_origin_lose_no_precision():
    rows = mixture(4000)
    far = seen(rows + 1e8, 200)
    assert far.spread == pytest.approx(seen(rows, 200).spread, rel=0.2)
    assert far.spread < 0.2 * ((rows - rows.mean(axis=0)) ** 2).sum()


@pytest.mark.parametrize("order", ["as it came", "sorted", "by cluster"])
def test_what_is_lost_is_little_in_any_order(order):
    """100 points for 20 000 rows of six tight clusters lose less than the clusters' own scatter, 3 columns of 0.1^2."""
    rows = mixture(20_000)
    rows = {"sorted": rows[np.argsort(rows[:, 0])], "by cluster": rows[np.lexsort(np.round(rows).T)]}.get(order, rows)
    assert seen(rows, 100).spread < len(rows) * 3 * 0.01


def test_a_stream_with_outliers_keeps_them_apart():
    rows = np.concatenate([mixture(3000), [[1e6, 0, 0]], mixture(3000, seed=1), [[-1e6, 5, 5]]])
    synopsis = seen(rows, 60)
    assert {1e6, -1e6} <= set(np.round(synopsis.points[:, 0], 3))


def test_arrays_go_to_a_file_and_back():
    synopsis = seen(mixture(3000), 64)
    again = Coreset.from_arrays(synopsis.arrays(), 64)
    assert same(again, synopsis)
    for one in (synopsis, again):
        one.update(mixture(500, seed=5))
    assert same(again, synopsis)


def broken(arrays, name):
    nodes = np.arange(len(arrays["below"]))
    inner = int(np.flatnonzero(arrays["below"] != nodes)[-1])
    return {
        "a circle": {"below": np.where(nodes == inner, 0, arrays["below"])},
        "children outside": {"below": np.where(nodes == inner, len(nodes), arrays["below"])},
        "an axis outside": {"axes": np.where(nodes == inner, 3, arrays["axes"])},
        "a cell outside": {"cells": arrays["cells"] + 10**6},
        "a negative weight": {"weights": -arrays["weights"]},
        "floats for weights": {"weights": arrays["weights"].astype(float)},
        "NaN": {"points": arrays["points"] * np.nan},
        "fewer weights": {"weights": arrays["weights"][1:]},
        "too many points": {name: np.repeat(arrays[name], 9, axis=0) for name in ("points", "weights", "scatters")},
        "a point": {"points": arrays["points"][0]},
    }[name]


@pytest.mark.parametrize(
    "name",
    ["a circle", "children outside", "an axis outside", "a cell outside", "a negative weight", "floats for weights", "NaN",
     "fewer weights", "too many points", "a point"],
)  # fmt: skip
def test_arrays_that_would_lead_a_loop_astray_are_refused(name):
    arrays = seen(mixture(3000), 64).arrays()
    with pytest.raises(InvalidValue):
        Coreset.from_arrays({**arrays, **broken(arrays, name)}, 64)


def test_synopses_of_other_columns_do_not_merge():
    with pytest.raises(InvalidValue, match="column"):
        Coreset(2, 10).merge(Coreset(3, 10))
    with pytest.raises(InvalidValue, match="memory"):
        Coreset(2, 3)
