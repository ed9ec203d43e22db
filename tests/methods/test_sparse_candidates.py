"""Candidates of sparse rows: what they find, what they spend, and the exact privacy of a recovery by chosen columns."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

from kveil import Ledger, PrivateKMeans
from kveil.desk.pool import Pool
from kveil.errors import KveilError
from kveil.kernel.grid import Ball
from kveil.kernel.loss import PrivacyUnit
from kveil.methods.candidate_search import whole_frame
from kveil.methods.sparse_recovery import by_columns, n_columns_chosen
from kveil.questions.cells import TOP, Residuals
from kveil.questions.frame import Frame
from kveil.source import read
from kveil.space.euclidean import Centers
from kveil.testing import scripted
from kveil.tuning import Candidates as Tuning

S, D, K, N = 4, 400, 3, 3000
BOTH = [Tuning(nonzeros=S), Tuning(nonzeros=S, recovery="columns")]


@pytest.fixture(scope="module")
def rows():
    """Clusters on 12 columns each; a row has 4 of them, and norm 1."""
    rng = np.random.default_rng(0)
    own = np.arange(N) % K
    columns = np.stack([12 * k + rng.choice(12, S, replace=False) for k in own])
    return csr_array((np.full(N * S, S**-0.5), (np.repeat(np.arange(N), S), columns.ravel())), shape=(N, D))


def fitted(rows, seed=0, **parameters):
    with scripted(seed):
        return PrivateKMeans(K, method="candidates", radius=1.0, random_state=seed, **{"epsilon": 8.0, **parameters}).fit(rows)


def cost(model, rows):
    return -model.score(rows) / rows.shape[0]


@pytest.mark.parametrize("tuning", BOTH, ids=["threshold", "columns"])
def test_clusters_are_found_with_noise_that_hides_a_row(rows, tuning):
    """All centres at 0 cost 1, the best ones 2/3."""
    costs = [cost(fitted(rows, seed, epsilon=16.0, tuning=replace(tuning, dimension=6, swaps=6)), rows) for seed in range(2)]
    assert np.mean(costs) < 0.85
    assert cost(fitted(rows, epsilon=np.inf, tuning=replace(tuning, dimension=6, swaps=6)), rows) < 0.8


def test_chosen_columns_are_as_many_as_the_paper_says_and_no_others_are_released(rows):
    tuning = Tuning(nonzeros=S, recovery="columns", eta=0.25)
    model = fitted(rows, tuning=tuning)
    assert np.count_nonzero(model.cluster_centers_, axis=1).max() <= 2 * S / tuning.eta
    drawn = {draw.label: draw for draw in model.guarantee_.draws}
    assert drawn["columns"].mechanism == "peel"
    assert drawn["columns"].sensitivity == 31 * TOP + 2 * TOP  # 2 s/eta picks but one, of a radius each, and sqrt(s) radii
    assert (drawn["sums of columns"].norm, drawn["sums of columns"].sensitivity) == ("l1", 2 * TOP)
    picks, values = (float(drawn[label].epsilon) for label in ("columns", "sums of columns"))
    assert picks / values == pytest.approx(33 / 2)  # one rate for both


@pytest.mark.parametrize("tuning", [None, *BOTH, replace(BOTH[1], trials=2, repetitions=1)])
def test_the_budget_is_used_up_and_never_passed(rows, tuning):
    ledger = Ledger.memory("exact", 1.0, relation="add-remove")
    model = PrivateKMeans(K, radius=1.0, method="candidates", ledger=ledger, tuning=tuning)
    before = model.guarantee(D, is_sparse=True)
    model.fit(rows[:300])
    assert (model.guarantee_.epsilon, model.guarantee_.charges) == (before.epsilon, before.charges)
    assert ledger.remaining().epsilon < 1e-3
    assert sum(draw.times for draw in model.guarantee_.draws) == model.release_.receipt["charges"]


def test_a_bound_on_entries_narrows_the_ball_of_a_box_and_clips_no_row():
    """4 entries of at most 1/2, of [-1/2, 1/2]^400: a ball of 1 holds them, where the box has a half diagonal of 10."""
    model = PrivateKMeans(K, method="candidates", bounds=(-0.5, 0.5), tuning=BOTH[0])
    task = model._task("candidates", D, PrivacyUnit(), is_sparse=True)
    frame, corner = whole_frame(task, task.tuning), csr_array(([0.5, -0.5, 0.5, 0.5], ([0] * S, [0, 7, 99, D - 1])), shape=(1, D))
    assert frame.radius == 2 * task.domain.top + 1 < Frame.of(task.domain, None).radius / 9
    codes = task.domain.encode_sparse(corner)
    assert (frame.centred(codes) != codes).nnz == 0


@pytest.mark.parametrize("d", [3, 17, 60])
@pytest.mark.parametrize("tuning", [None, Tuning(nonzeros=2), Tuning(nonzeros=2, recovery="columns", dimension=40)])
def test_whatever_sparse_rows_hold_there_are_k_centres_inside(d, tuning):
    rng = np.random.default_rng(1)
    odd = np.array([np.full(d, np.nan), np.full(d, 1e308), np.zeros(d), np.full(d, 5e-324), -np.ones(d)])
    for table in (np.zeros((0, d)), odd, rng.uniform(-1, 1, (40, d)) * (rng.random((40, d)) < 0.2)):
        model = PrivateKMeans(4, radius=1.0, method="candidates", tuning=tuning, random_state=0).fit(csr_array(table))
        assert model.cluster_centers_.shape == (4, d)
        assert (np.linalg.norm(model.cluster_centers_, axis=1) <= 1 + 1e-9).all()
        assert model.cluster_weights_.sum() == pytest.approx(1)


@pytest.mark.parametrize(("parameters", "says"), [
    ({"tuning": Tuning(recovery="columns")}, "give nonzeros"),
    ({"tuning": BOTH[1], "delta": 1e-6}, "is pure"),
    ({"tuning": BOTH[1], "epsilon": 2**-26}, "too small"),
    ({"tuning": Tuning(nonzeros=2.5)}, "nonzeros"),
    ({"tuning": Tuning(nonzeros=2, eta=float("nan"))}, "eta"),
    ({"center": 1.0}, "centred at 0|centred at zero|centre"),
])  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_spent(rows, parameters, says):
    ledger = Ledger.memory("untouched", 1.0, 1e-3, relation="add-remove", rule="approx")
    with pytest.raises(KveilError, match=says):
        PrivateKMeans(K, **{"radius": 1.0, "method": "candidates", "ledger": ledger, **parameters}).fit(rows)
    assert ledger.charges() == ()


# The exact law of a whole recovery, on tables of a few rows with at most 2 of 5 entries.

FRAME = replace(Frame.of(Ball([0.0] * 5, 1.0, 16), None), nonzeros=2)
TABLES = [np.zeros((0, 5)), np.eye(5)[:1], np.array([[0.8, -0.6, 0, 0, 0], [0, 0, 0.9, 0, 0]]), np.full((3, 5), -0.5)]
ADDED = [*np.eye(5)[:2], -np.eye(5)[0], np.array([-0.8, 0.6, 0, 0, 0]), np.array([0, 0, 0.7, 0.7, 0]), np.ones(5)]


def recovered(table, eta, monkeypatch, outcomes=None):
    """What a recovery releases of two clusters, and the logarithm of its probability up to a constant. `outcomes` are forced."""
    draw, released, logs = Pool._draw, [], []

    def watched(pool, measurement, raw):
        noisy, charge = draw(pool, measurement, raw), measurement.charge
        value = noisy if outcomes is None else outcomes[len(released)]
        released.append(value)
        rate = float(charge.epsilon) / charge.sensitivity
        logs.append(sum(_log_of_picks(*each, rate) for each in zip(raw, value, strict=True)) if charge.mechanism == "peel" else
                    -rate * float(np.abs(value - raw).sum()))  # fmt: skip
        return value

    pool = Pool(Fraction(1), Fraction(0), "add-remove", PrivacyUnit(), is_pure=True)
    places = np.array([[1, 0, 0, 0, 0], [-1, 0, 0, 0, 0]])
    terms = (Centers(places * float(FRAME.radius), None), "projected", "centred", 0 * places, np.full(2, FRAME.radius))
    with (
        monkeypatch.context() as patch,
        scripted(3),
        Ledger.memory("one", 1, relation="add-remove").reserve(pool.plan()) as ticket,
    ):
        patch.setattr(Pool, "_draw", watched)
        by_columns(pool.open(read(csr_array(table)), Ball([0.0] * 5, 1.0, 16), ticket), Residuals(FRAME, *terms), 1.0, eta)
    return released, sum(logs)


def _log_of_picks(costs, picks, rate):
    left, log = np.ones(len(costs), dtype=bool), 0.0
    for pick in picks:
        log -= rate * costs[pick] + np.log(np.exp(-rate * costs[left].astype(np.float64)).sum())
        left[pick] = False
    return float(log)


def worst_ratio(eta, monkeypatch):
    worst = 0.0
    for table in TABLES:
        released, log = recovered(table, eta, monkeypatch)
        for row in ADDED:
            again, other = recovered(np.vstack([table, row]), eta, monkeypatch, released)
            assert len(again) == len(released) == 3
            worst = max(worst, abs(other - log))
    return worst


@pytest.mark.parametrize("eta", [0.9, 0.99])
def test_a_row_never_changes_the_probability_of_a_recovery_by_more_than_epsilon(eta, monkeypatch):
    assert n_columns_chosen(FRAME, 5, eta) == 5
    assert 0.3 < worst_ratio(eta, monkeypatch) <= 1


@pytest.mark.parametrize(("what", "times"), [("choose_several", 4), ("release", 8)])
def test_sums_that_move_farther_than_they_are_charged_for_are_noticed(what, times, monkeypatch):
    """The guard, for costs of columns and for their sums, which have a small part of the budget; sizes stay as they are."""
    real = getattr(Pool, what)

    def moved(pool, part, raw, *rest):
        return real(pool, part, raw * (times if part.label != "cluster sizes" else 1), *rest)

    monkeypatch.setattr(Pool, what, moved)
    assert worst_ratio(0.99, monkeypatch) > 1


def test_the_frame_keeps_the_largest_entries_of_a_row_so_that_the_bound_is_true():
    loose = csr_array(np.ones((1, 5)))
    assert np.count_nonzero(FRAME.centred(Ball([0.0] * 5, 1.0, 16).encode_sparse(vstack([loose, loose])))[0]) == 2
