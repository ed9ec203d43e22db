"""The tree for sparse rows: what it finds, what it spends, and that a dense table of few columns gives the same bytes."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import kveil
from kveil import Ledger, PrivateKMeans, tuning
from kveil.errors import KveilError
from kveil.methods.tree import sparse, sparse_sums
from kveil.questions import frame
from kveil.testing import scripted

N, D, S, K = 20_000, 10_000, 5, 8


@pytest.fixture(autouse=True)
def rows_that_stay_sparse(monkeypatch):
    """Sparse rows of more than 16 columns stay sparse here, so that small tables will do."""
    monkeypatch.setattr(frame, "FEW_COLUMNS", 16)


@pytest.fixture(scope="module")
def toy():
    """Eight clusters of unit rows, each on 12 columns of its own, of which a row has 5; and the cost of the best centres."""
    rng = np.random.default_rng(0)
    supports, group = rng.choice(D, (K, 12), replace=False), rng.integers(0, K, N)
    columns = np.sort(
        np.take_along_axis(supports[group], rng.permuted(np.tile(np.arange(12), (N, 1)), axis=1)[:, :S], axis=1), axis=1
    )
    values = rng.uniform(0.5, 1.0, (N, S))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    rows = csr_array((values.ravel(), columns.ravel(), np.arange(0, N * S + 1, S)), shape=(N, D))
    return rows, sum(cost(rows[group == j], rows[group == j].mean(axis=0)[None]) for j in range(K))


def cost(rows, centers):
    """Of sparse rows, without making them dense."""
    squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return float((squares - (2 * (rows @ centers.T) - (centers**2).sum(axis=1)).max(axis=1)).sum())


def mean_cost(rows, seeds=2, **parameters):
    costs = []
    for seed in range(seeds):
        with scripted(seed):
            model = PrivateKMeans(K, radius=1.0, random_state=seed, **parameters).fit(rows)
        costs.append(cost(rows, model.cluster_centers_))
    return np.mean(costs)


@pytest.mark.parametrize(
    ("epsilon", "delta", "nonzeros", "limit"),
    [(0.5, 1e-6, None, 1.15), (1.0, 1e-6, None, 1.08), (2.0, 1e-6, S, 1.03), (2.0, 0.0, S, 1.1), (math.inf, 0.0, None, 1.001)],
)
def test_clusters_of_sparse_rows_are_found(toy, epsilon, delta, nonzeros, limit):
    rows, floor = toy
    assert mean_cost(rows, epsilon=epsilon, delta=delta, tuning=tuning.Tree(nonzeros=nonzeros)) < limit * floor


@pytest.mark.parametrize(("delta", "nonzeros"), [(1e-6, None), (0.0, S), (0.0, None)])
def test_the_threshold_costs_no_more_than_keeping_all_columns(toy, delta, nonzeros, monkeypatch):
    rows, _ = toy
    for epsilon in (0.1, 1.0):
        terms = {"epsilon": epsilon, "delta": delta, "tuning": tuning.Tree(nonzeros=nonzeros), "seeds": 1}
        kept = mean_cost(rows, **terms)
        with monkeypatch.context() as patch:
            patch.setattr(sparse_sums, "standing_out", lambda sums, cutoffs: sums.copy())
            assert kept <= mean_cost(rows, **terms)


def test_auto_takes_the_tree_which_does_better_than_lloyd_and_one_mean(toy):
    rows, _ = toy
    for delta in (1e-6, 0.0):
        costs = {
            method: mean_cost(rows, seeds=1, epsilon=1.0, delta=delta, method=method) for method in ("auto", "lloyd", "mean")
        }
        assert costs["auto"] < min(costs["lloyd"], costs["mean"])
    model = PrivateKMeans(2, radius=1.0).fit(csr_array(np.eye(20)))
    assert model.method_ == "tree"
    assert "sparse" in model.release_.method["why"]


def test_one_mean_where_k_centres_are_shown_to_be_no_better():
    """Rows of one kind, each 20 of 300 words: the sums of the second release show a loss. Of four kinds they do not."""
    rng = np.random.default_rng(0)
    words, kind = rng.integers(0, 300, (6000, 20)), np.arange(6000) % 4
    topics = 300 + 12 * kind[:, None] + rng.integers(0, 12, (6000, 20))
    for columns, is_one in ((words, True), (topics, False)):
        rows = csr_array((np.full(columns.size, 20**-0.5), columns.ravel(), np.arange(0, 120_001, 20)), shape=(6000, 2000))
        with scripted(0):
            model = PrivateKMeans(4, epsilon=0.25, delta=1e-6, radius=1.0, random_state=0).fit(rows)
        assert (sparse.NOT_BETTER in model.release_.notes) == is_one
        assert (not np.ptp(model.cluster_centers_, axis=0).any()) == is_one
        assert is_one or cost(rows, model.cluster_centers_) < 0.9 * cost(rows, np.asarray(rows.mean(axis=0))[None])


def small(d, n=3000, seed=0):
    rng = np.random.default_rng(seed)
    return 0.3 * rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)


def bytes_of(X, epsilon=1.0, **parameters):
    with scripted(3):
        model = PrivateKMeans(3, epsilon=epsilon, random_state=1, **{"radius": 2.0, **parameters}).fit(X)
    return b"".join(a.tobytes() for a in (model.cluster_centers_, model.cluster_weights_, model.cluster_errors_))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 13, 16, 40])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_few_columns_give_the_bytes_of_a_dense_table(d, delta, monkeypatch):
    monkeypatch.setattr(frame, "FEW_COLUMNS", 1000)
    rows = small(d)
    rows[5] = np.nan
    assert bytes_of(csr_array(rows), delta=delta) == bytes_of(rows, delta=delta)
    uneven = {"radius": None, "bounds": (-1 - np.arange(d), 1.0 + np.arange(d)), "delta": delta}
    assert bytes_of(csr_array(rows), **uneven) == bytes_of(rows, **uneven)


@pytest.mark.parametrize("parameters", [{"delta": 1e-6}, {"tuning": tuning.Tree(nonzeros=4), "epsilon": 8.0}])
def test_blocks_threads_and_order_do_not_matter(parameters, monkeypatch):
    rows = small(40)
    rows[7, 3] = np.inf
    expected = bytes_of(csr_array(rows), **parameters)
    assert bytes_of(csr_array(rows[::-1]), **parameters) == expected
    assert bytes_of(csr_array(rows).tocoo(), **parameters) == expected
    for threads, block in (("1", 7), ("2", 64), ("5", 2048)):
        monkeypatch.setenv("KVEIL_THREADS", threads)
        monkeypatch.setattr(frame, "BLOCK", block)
        assert bytes_of(kveil.read(csr_array(rows), memory="2MB"), **parameters) == expected


def test_a_row_with_a_missing_value_counts_as_a_row_of_zeros():
    rows = small(40)
    missing, zeros = rows.copy(), rows.copy()
    missing[[3, 9], [1, 2]] = [np.nan, np.inf]
    zeros[[3, 9]] = 0.0
    assert bytes_of(csr_array(missing), delta=1e-6) == bytes_of(csr_array(zeros), delta=1e-6)


@pytest.mark.filterwarnings("error", "ignore::kveil.errors.NoisyResultWarning")  # the second is by released values
@pytest.mark.parametrize("n", [0, 1, 50])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 100.0, math.inf])
def test_no_rows_few_rows_and_empty_rows_give_k_centres_silently(n, delta, epsilon):
    model = PrivateKMeans(4, epsilon=epsilon, delta=delta, radius=1.0).fit(csr_array((n, 30)))
    assert model.cluster_centers_.shape == (4, 30)
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite(model.cluster_errors_).all()


def test_centres_of_sparse_rows_are_sparse(toy):
    rows, _ = toy
    with scripted(0):
        model = PrivateKMeans(K, epsilon=1.0, delta=1e-6, radius=1.0, random_state=0).fit(rows)
    assert np.count_nonzero(model.cluster_centers_, axis=1).max() < 30


def test_the_budget_is_used_up_and_the_guarantee_is_known_before():
    rows = csr_array(small(60, n=6000))
    for epsilon, delta, nonzeros in [(1.0, 0.0, None), (1.0, 0.0, 3), (4.0, 1e-6, None), (1.0, 1e-6, 3), (0.01, 0.0, None)]:
        ledger = Ledger.memory("exact", epsilon, delta, relation="add-remove")
        model = PrivateKMeans(
            4, epsilon=epsilon, delta=delta, radius=1.0, ledger=ledger, method="tree", tuning=tuning.Tree(nonzeros=nonzeros)
        )
        before = model.guarantee(60, is_sparse=True)
        after = model.fit(rows).guarantee_
        assert (before.epsilon, before.delta, before.charges) == (after.epsilon, after.delta, after.charges)
        assert sum(draw.times for draw in after.draws) == model.release_.receipt["charges"]
        assert ledger.remaining().epsilon < 1e-3 * epsilon
        assert ("sums: discrete-laplace" in str(after)) == (nonzeros is not None and not delta)


def test_rows_of_few_bounded_entries_stay_sparse_where_noise_is_narrower_so(monkeypatch):
    monkeypatch.setattr(frame, "FEW_COLUMNS", 1000)
    rule = {(16, 1): False, (17, 2): True, (40, 5): True, (40, 6): False, (1000, None): False, (1001, None): True}
    assert {terms: frame.stays_sparse(*terms) for terms in rule} == rule


def test_a_bound_on_entries_is_kept_whatever_the_rows_hold():
    """Rows with one large and many small entries are read as if the small ones were not there."""
    rng = np.random.default_rng(0)
    large = np.zeros((4000, 30))
    large[np.arange(4000), rng.integers(0, 3, 4000)] = 0.9
    crowded = csr_array(np.where(large > 0, large, 0.01 * rng.random((4000, 30))))
    for delta in (0.0, 1e-6):
        terms = {"delta": delta, "tuning": tuning.Tree(nonzeros=1), "epsilon": 8.0}
        assert bytes_of(crowded, **terms) == bytes_of(csr_array(large), **terms)


@pytest.mark.parametrize(
    ("parameters", "is_sparse", "message"),
    [
        ({"tuning": tuning.Tree(nonzeros=0)}, True, "nonzeros must be a whole number"),
        ({"tuning": tuning.Tree(nonzeros=2.5)}, True, "nonzeros must be a whole number"),
        ({"tuning": tuning.Tree(nonzeros=3)}, False, "these are dense"),
        ({"tuning": tuning.Tree(frame="svd"), "delta": 1e-6}, False, "frame must be one of"),
        ({"tuning": tuning.Tree(frame="pca"), "delta": 1e-6}, True, "needs dense rows"),
        ({"tuning": tuning.Tree(frame="pca")}, False, "not pure"),
        ({"tuning": tuning.Tree(steps=-1)}, False, "steps must be"),
    ],
)
def test_tuning_that_cannot_be_is_refused_before_anything_is_spent(parameters, is_sparse, message):
    ledger = Ledger.memory("untouched", 1.0, parameters.get("delta", 0.0), relation="add-remove")
    rows = np.zeros((5, 30))
    with pytest.raises(KveilError, match=message):
        PrivateKMeans(2, radius=1.0, ledger=ledger, **parameters).fit(csr_array(rows) if is_sparse else rows)
    assert ledger.spent().epsilon == 0


def test_too_many_columns_for_a_matrix_of_moments_are_refused():
    with pytest.raises(KveilError, match="too many"):
        PrivateKMeans(2, radius=1.0, delta=1e-6, tuning=tuning.Tree(frame="pca")).fit(np.zeros((5, 1001)))
