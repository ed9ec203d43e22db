"""n_clusters="auto": the number of clusters by noisy counts, inside the budget of any other fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kveil import Ledger, PrivateKMeans, PrivateKMedian
from kveil.errors import InvalidValue
from kveil.testing import scripted

PLACES = np.array([[-0.7, -0.7], [-0.7, 0.7], [0.7, -0.7], [0.7, 0.7], [0.0, 0.0]])


def clumps(d: int, n: int = 20_000) -> np.ndarray:
    """Five clusters, well apart."""
    rng = np.random.default_rng(d)
    places = np.linspace(-0.8, 0.8, 5)[:, None] if d == 1 else PLACES
    places = np.hstack([places, 0.6 * rng.choice([-1, 1], (5, max(0, d - 2)))])
    return np.clip(places[rng.integers(5, size=n)] + 0.05 * rng.standard_normal((n, d)), -1, 1)


WAYS = {
    "1 column": (1, {}),
    "2 columns": (2, {}),
    "grid": (2, {"method": "grid"}),
    "scaled": (2, {"bounds": ([-1, -5], [1, 5]), "scaling": "bounds"}),
    "3 columns": (3, {}),
    "6 columns": (6, {"delta": 1e-6}),
    "6 columns, pure": (6, {"epsilon": 8.0}),
    "20 columns": (20, {"delta": 1e-6}),
}


@pytest.mark.parametrize("name", WAYS)
def test_five_clumps_are_found_for_the_guarantee_of_a_fixed_number(name):
    d, options = WAYS[name]
    rows = clumps(d) * (np.array([1.0, 5.0]) if "scaling" in options else 1.0)
    given = {"bounds": (-1, 1), "random_state": 0, **options}
    model, fixed = PrivateKMeans("auto", k_range=(2, 11), **given), PrivateKMeans(5, **given)
    assert model.guarantee(d) == fixed.guarantee(d)
    with scripted(2):
        release = model.fit(rows).release_
    assert len(release.centers) == 5
    assert model.guarantee_.charges == fixed.guarantee(d).charges
    assert release.parameters["n_clusters"] == "auto"
    assert release.parameters["k_range"] == [2, 11]
    curve = release.cost_curve()
    assert release.notes[0] == f'n_clusters="auto": {curve.why}.'
    assert curve.suggested == 5
    assert "auto" not in " ".join(release.recluster(2).notes)
    assert "k_range" not in release.recluster(2).parameters


def test_a_ledger_is_charged_once_and_what_it_would_be_for_any_number():
    book = Ledger.memory("one", epsilon=1.0, relation="add-remove")
    with scripted(2):
        PrivateKMeans("auto", epsilon=1.0, bounds=(-1, 1), ledger=book).fit(clumps(2, 2000))
    assert len(book.charges()) == 1
    assert book.remaining().epsilon == 0
    assert PrivateKMeans("auto", bounds=(-1, 1)).fit(clumps(2, 300)).release_.parameters["k_range"] == [2, 20]


@pytest.mark.parametrize(
    ("k_range", "epsilon", "d"), [((5, 20), 0.05, 2), ((3, 4), 1.0, 2), ((5, 9), 0.001, 20), ((6, 30), 0.02, 6)]
)
def test_the_number_is_in_its_range_whatever_noise_leaves(k_range, epsilon, d):
    with scripted(4):
        model = PrivateKMeans("auto", k_range=k_range, epsilon=epsilon, bounds=(-1, 1), random_state=0).fit(clumps(d, 300))
    assert k_range[0] <= len(model.cluster_centers_) <= k_range[1]
    assert "guess" in model.release_.notes[0]
    assert model.predict(clumps(d, 300)).max() < len(model.cluster_centers_)


def test_without_signal_there_are_as_many_as_the_range_begins_with_and_all_are_one_mean():
    with scripted(4):
        model = PrivateKMeans("auto", k_range=(3, 9), epsilon=0.001, bounds=(-1, 1), random_state=0).fit(clumps(20, 300))
    assert len(np.unique(model.cluster_centers_, axis=0)) == 1
    assert len(model.cluster_centers_) == 3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"n_clusters": 5, "k_range": (2, 9)}, "k_range"),
        ({"k_range": (1, 9)}, "k_range"),
        ({"k_range": (2, 101)}, "k_range"),
        ({"k_range": (9, 2)}, "k_range"),
        ({"method": "lloyd"}, "lloyd"),
        ({"method": "mean"}, "mean"),
        ({"n_steps": 3}, "lloyd"),
        ({"n_clusters": "many"}, "n_clusters"),
    ],
)
def test_what_auto_cannot_do_is_refused_before_anything_is_charged(options, text):
    book = Ledger.memory("one", epsilon=1.0, relation="add-remove")
    with pytest.raises(InvalidValue, match=text):
        PrivateKMeans(**{"n_clusters": "auto", "bounds": (-1, 1), "ledger": book, **options}).fit(clumps(2, 100))
    assert not book.charges()


def test_wide_sparse_rows_and_medians_need_a_number():
    with pytest.raises(InvalidValue, match="sparse"):
        PrivateKMeans("auto", bounds=(-1, 1)).fit(sp.csr_array(np.ones((9, 1001))))
    with pytest.raises(InvalidValue, match="n_clusters"):
        PrivateKMedian("auto", bounds=(-1, 1)).fit(clumps(2, 9))
    with scripted(1):
        assert PrivateKMeans("auto", k_range=(2, 3), bounds=(-1, 1)).fit(sp.csr_array(clumps(6, 500))).method_ == "tree"
