"""Cosine clustering by sums of unit rows: six rows worked by hand, what it finds, what it spends, and what does not matter."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import kveil
from kveil import Ledger, PrivateKMeans, tuning
from kveil.errors import KveilError
from kveil.kernel import noise
from kveil.kernel.loss import floor_delta, floor_epsilon, zcdp_rho
from kveil.methods import spherical
from kveil.questions import frame
from kveil.solve.directions import merged_groups, noise_length, own_parts, split, standing
from kveil.testing import scripted

SIX = np.array([[2, 2, 2, 0, 0, 0, 0, 0]] * 3 + [[0, 0, 0, 5, 5, 5, 0, 0]] * 3)


def test_six_rows_by_hand_without_a_draw_of_noise(monkeypatch):
    """Step 1: totals are 3/sqrt(3) in six columns. 2: all six pass, and 4 k = 8 are kept. 3: the typical total, 1.72, is more
    than 3 * 2.5 deviations, so 3 k = 6 cells. 4: each row goes to a cell that holds one of its columns, and all alike to the
    same; in between, cells without rows get halves of these. 5: cells are merged to 2. 6, 7: two directions of length 3, sizes
    3 and 3, three entries each."""
    asked = []
    monkeypatch.setattr(noise, "discrete_gaussian", lambda source, variance, n: np.zeros(n, dtype=np.int64))
    for name in ("UnitTotals", "UnitSums"):
        monkeypatch.setattr(spherical, name, _noted(getattr(spherical, name), asked))
    with scripted(0):
        model = PrivateKMeans(2, epsilon=500, delta=1e-6, metric="cosine", method="spherical", random_state=3).fit(csr_array(SIX))
    rho = float(zcdp_rho(floor_epsilon(500), floor_delta(1e-6)))
    assert asked[0][0] == "UnitTotals"
    assert [shape for _, shape, _ in asked[1:]] == [(6, 8)] * 4 + [(2, 8)] * 2
    start = asked[1][2]
    assert sorted(np.count_nonzero(start, axis=1).tolist()) == [1, 1, 1, 1, 2, 2]
    assert (start.sum(axis=0) > 0).all()
    assert {*map(tuple, asked[2][2][:, :6].tolist())} >= {(t, t, t, 0, 0, 0) for t in [int(2**16 / 3**0.5)]}
    order = np.argsort(-model.cluster_centers_[:, 0])
    expected = np.array([[1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0]]) / 3**0.5
    assert np.allclose(model.cluster_centers_[order], expected, atol=1e-4)
    assert np.allclose(model.cluster_weights_, 0.5)
    assert np.allclose(model.cluster_errors_, 3**0.5 / math.sqrt(2 * 0.22 * rho) / 3, rtol=1e-3)
    shares = [float(draw.rho) / rho for draw in model.guarantee_.draws for _ in range(draw.times)]
    assert np.allclose(sorted(shares), sorted([0.1, *[0.1125] * 4, 0.01, 0.22, 0.22]), rtol=1e-6)


def _noted(kind, asked):
    def make(view, *rest):
        centers = rest[0] if kind.__name__ == "UnitSums" else None
        asked.append((kind.__name__, None if centers is None else centers.shape, _by_column(view, centers)))
        return kind(view, *rest)

    return make


def _by_column(view, centers):
    """Centres in the order of the table's columns."""
    if centers is None:
        return None
    found = np.zeros((len(centers), view.n_columns), dtype=np.int64)
    found[:, view.columns] = centers
    return found


def test_what_stands_out_is_kept_and_never_fewer_entries_than_asked_for():
    sums = np.array([[5.0, -6.0, 1.0, 0.5], [0.4, -0.3, 0.2, -0.1]])
    assert standing(sums, 2.0, 1, signed=False).tolist() == [[5.0, 0, 0, 0], [0.4, 0, 0, 0]]
    assert standing(sums, 2.0, 2, signed=True).tolist() == [[5.0, -6.0, 0, 0], [0.4, -0.3, 0, 0]]
    assert standing(sums, np.array([[4.0], [0.1]]), 3, signed=False).tolist() == [[5.0, 0, 1.0, 0.5], [0.4, 0, 0.2, 0]]


def test_sums_of_one_direction_are_joined_first_and_every_group_is_kept():
    """Losses by hand: parallel sums lose nothing, orthogonal ones of lengths a and b lose a + b - hypot(a, b)."""
    sums = np.array([[3.0, 0, 0], [0, 1.0, 0], [2.0, 0, 0], [0, 0, 1.0], [0, 0, 0]])
    assert merged_groups(sums, 5).tolist() == [0, 1, 2, 3, 4]
    assert merged_groups(sums, 3).tolist() == [0, 1, 0, 2, 0]
    assert merged_groups(sums, 2).tolist() == [0, 1, 0, 1, 0]  # 1 + 1 - sqrt(2) is less than 5 + 1 - sqrt(26)
    assert merged_groups(sums, 1).tolist() == [0] * 5
    rng = np.random.default_rng(0)
    some = rng.random((30, 8))
    assert merged_groups(some, 7).tolist() == _slowly_merged(some, 7)


def test_a_sum_of_two_kinds_of_rows_is_halved_by_columns_that_rise_together():
    """Cells of the history hold different mixtures of two kinds: columns 0 to 2 and 3 to 5. The empty sum gets one of them."""
    kinds = np.array([[4.0, 4, 4, 0, 0, 0], [0, 0, 0, 4.0, 4, 4]])
    history = np.array([[9, 1], [2, 8], [5, 5], [7, 3]]) @ kinds
    kept = np.array([[4.0, 4, 4, 4, 4, 4], [0, 0, 0, 0, 0, 0.1], [1.0, 0, 0, 0, 0, 0]])
    found = split(kept, history, 0.5)
    assert sorted(found[:2].tolist()) == sorted(kinds.tolist())
    assert found[2].tolist() == kept[2].tolist()  # one column has no halves
    assert (split(kept, history, 0.0) == kept).all()  # none is empty


def test_own_parts_are_what_a_cell_has_more_of_than_others():
    """By hand: both cells hold half of all rows, so half of the totals (12, 12, 4, 4, ...) is taken from each."""
    sums = np.concatenate([np.tile([[12.0], [0.0]], 6), np.tile([[0.0], [12.0]], 6)], axis=1) + 2.0
    own = own_parts(sums, 1.0, 0.0)
    assert np.allclose(own, sums - 8)
    assert (own_parts(sums, 9.0, 0.0) == sums).all()  # nothing of it stands out
    assert (own_parts(np.zeros((3, 4)), 0.0, 0.01) == 0).all()
    assert np.abs(own_parts(np.array([[1.0, 2.0], [-5.0, -6.0]]), 0.0, 0.0)).max() <= 12  # noise alone may add up to less than 0


@pytest.mark.parametrize(("signed", "times"), [(False, 2), (True, 0)])
def test_own_parts_and_halves_are_read_only_where_noise_bears_all_cells(topics, signed, times, monkeypatch):
    """Own parts in the first two steps, where rows have no signs; halves after the second and the third."""
    seen, halved = [], []
    monkeypatch.setattr(spherical, "own_parts", lambda sums, cut, chance: seen.append(chance) or own_parts(sums, cut, chance))
    monkeypatch.setattr(spherical, "split", lambda kept, history, least: halved.append(history) or split(kept, history, least))
    model = PrivateKMeans(K, epsilon=8.0, delta=1e-6, metric="cosine", tuning=tuning.Spherical(signed=signed), random_state=1)
    for epsilon in (8.0, 0.7):  # with the second so much noise that it bears fewer cells
        with scripted(1):
            model.set_params(epsilon=epsilon).fit(topics[0])
        assert (len(seen), len(halved)) == (times, 2)
    assert [len(history) for history in halved] == [6 * K, 9 * K]  # the sums of all 3 K cells so far
    assert all(0.012 < chance < 0.0123 for chance in seen)  # that a normal number passes 2.25


@pytest.mark.parametrize("is_laplace", [False, True])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("n", "cut"), [(20_000, 2.25), (200, 2.25), (3000, 3.9)])
def test_what_noise_alone_leaves_is_about_as_long_as_said(n, cut, signed, is_laplace):
    rng = np.random.default_rng(0)
    noise = rng.laplace(0, 2**-0.5, (200, n)) if is_laplace else rng.standard_normal((200, n))
    lengths = np.linalg.norm(standing(noise, cut, 32, signed=signed), axis=1)
    assert 0.95 < lengths.mean() / noise_length(n, cut, 32, is_laplace=is_laplace, signed=signed) < 1.05


def _slowly_merged(sums, k):
    groups = [[i] for i in range(len(sums))]
    while len(groups) > k:
        whole = [sums[g].sum(axis=0) for g in groups]
        pairs = [(i, j) for i in range(len(groups)) for j in range(i + 1, len(groups))]
        length = np.linalg.norm
        i, j = min(pairs, key=lambda p: length(whole[p[0]]) + length(whole[p[1]]) - length(whole[p[0]] + whole[p[1]]))
        groups[i] += groups.pop(j)
    return [next(number for number, g in enumerate(groups) if i in g) for i in range(len(sums))]


N, D, K = 6000, 3000, 5


@pytest.fixture(scope="module")
def topics():
    """Texts of five topics: 12 words of each topic's own 30, and 8 of any."""
    rng = np.random.default_rng(5)
    label, own = rng.integers(0, K, N), rng.permutation(D)[: 30 * K].reshape(K, 30)
    words = np.concatenate([own[label][np.arange(N)[:, None], rng.integers(0, 30, (N, 12))], rng.integers(0, D, (N, 8))], axis=1)
    rows = csr_array((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 20)), shape=(N, D))
    return rows, label


def agreement(found, label):
    """The share of rows whose cluster is that of most rows of its topic, at the worst topic; 0 if two topics share one."""
    best = [np.bincount(found[label == topic], minlength=K) for topic in range(K)]
    return min(b.max() / b.sum() for b in best) if len({int(b.argmax()) for b in best}) == K else 0.0


@pytest.mark.parametrize(
    ("terms", "least"),
    [
        ({"epsilon": 2.0, "delta": 1e-6}, 0.97),
        ({"epsilon": 3.0, "delta": 1e-6, "relation": "replace-one"}, 0.97),
        ({"epsilon": 8.0, "tuning": tuning.Spherical(nonzeros=20)}, 0.9),
        ({"epsilon": math.inf}, 0.99),
    ],
)
def test_topics_are_found_and_centres_are_unit(topics, terms, least):
    rows, label = topics
    with scripted(1):
        model = PrivateKMeans(K, metric="cosine", random_state=1, **terms).fit(rows)
    assert model.method_ == "spherical"
    assert agreement(model.predict(rows), label) > least
    assert np.allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)
    assert np.allclose(model.cluster_weights_, 0.2, atol=0.03)
    assert 0.4 < model.score(rows) < 0.5


def test_without_signal_all_centres_are_one_direction_and_a_note_says_so(topics):
    rows, _ = topics
    with scripted(1):
        model = PrivateKMeans(K, epsilon=0.02, delta=1e-6, metric="cosine", random_state=1).fit(rows)
    assert not np.ptp(model.cluster_centers_, axis=0).any()
    assert np.allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)
    assert spherical.NO_DIRECTIONS in model.release_.notes
    assert model.verdict_.word == "noise"


def bytes_of(X, **terms):
    with scripted(3):
        model = PrivateKMeans(K, metric="cosine", random_state=1, **{"epsilon": 2.0, "delta": 1e-6, **terms}).fit(X)
    return b"".join(a.tobytes() for a in (model.cluster_centers_, model.cluster_weights_, model.cluster_errors_))


def test_lengths_blocks_threads_and_order_do_not_matter(topics, monkeypatch):
    rows = topics[0][:1500].tocsr()
    expected = bytes_of(rows)
    lengths = 10.0 ** np.random.default_rng(0).integers(-3, 3, rows.shape[0])
    assert bytes_of(csr_array(rows.multiply(lengths[:, None]))) == expected
    assert bytes_of(rows[::-1].tocoo()) == expected
    for threads, block in (("1", 7), ("2", 64)):
        monkeypatch.setenv("KVEIL_THREADS", threads)
        monkeypatch.setattr(frame, "BLOCK", block)
        assert bytes_of(kveil.read(rows, memory="2MB")) == expected


def test_negative_entries_count_as_0_and_rows_without_direction_nowhere(topics):
    rows = topics[0][:1500].tolil()
    expected = bytes_of(rows.tocsr())
    rows[3, 2999] = -5.0  # a column of its own: alone it changes the row's length, were it not dropped
    assert (rows[[3]].toarray() < 0).any()
    dropped = np.vstack([rows[:1500].toarray(), np.zeros((1, D)), np.full((1, D), np.nan), np.full((1, D), -1.0)])
    assert bytes_of(csr_array(dropped)) == expected


@pytest.mark.filterwarnings("error", "ignore::kveil.errors.NoisyResultWarning")
@pytest.mark.parametrize("n", [0, 1, 9])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (900.0, 1e-6), (900.0, 0.0), (math.inf, 0.0)])
@pytest.mark.parametrize("d", [1, 3, 40])
def test_few_rows_and_few_columns_give_k_unit_centres_silently(n, epsilon, delta, d):
    rows = csr_array(np.abs(np.random.default_rng(n).standard_normal((n, d))))
    model = PrivateKMeans(4, epsilon=epsilon, delta=delta, metric="cosine", method="spherical").fit(rows)
    assert model.cluster_centers_.shape == (4, d)
    assert np.allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)
    assert np.isfinite(model.cluster_errors_).all()
    assert model.cluster_weights_.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "terms", [{"delta": 1e-6}, {"delta": 1e-6, "relation": "replace-one"}, {"tuning": tuning.Spherical(nonzeros=5)}]
)
@pytest.mark.parametrize("epsilon", [0.01, 4.0])
def test_the_budget_is_used_up_and_the_guarantee_is_known_before(topics, terms, epsilon):
    rows = topics[0][:500]
    ledger = Ledger.memory("exact", epsilon, terms.get("delta", 0.0), relation=terms.get("relation", "add-remove"))
    model = PrivateKMeans(3, epsilon=epsilon, metric="cosine", method="spherical", ledger=ledger, **terms)
    before = model.guarantee(D, is_sparse=True)
    after = model.fit(rows).guarantee_
    assert (before.epsilon, before.delta, before.charges) == (after.epsilon, after.delta, after.charges)
    assert ledger.remaining().epsilon < 1e-3 * epsilon
    assert ("totals of columns: discrete-laplace" in str(after)) == ("tuning" in terms)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"steps": (4,)}, "two numbers"), ({"steps": (0, 2)}, "whole number"), ({"steps": (101, 2)}, "at most 100"),
        ({"cells": 0.5}, "cells must be"), ({"energy": 2}, "energy must be"), ({"floor": -1}, "floor must be"),
        ({"cuts": (1, -1)}, "cuts must be"), ({"least": 0}, "whole number"), ({"of_totals": 1.0}, "of_totals must be"),
        ({"nonzeros": 0}, "whole number"), ({"signed": 1}, "True or False"),
    ],
)  # fmt: skip
def test_constants_that_cannot_be_are_refused_before_anything_is_spent(changed, message):
    ledger = Ledger.memory("untouched", 1.0, 1e-6, relation="add-remove")
    model = PrivateKMeans(2, metric="cosine", delta=1e-6, ledger=ledger, tuning=tuning.Spherical(**changed))
    with pytest.raises(KveilError, match=message):
        model.fit(csr_array((5, 30)))
    assert ledger.spent().epsilon == 0
