"""Candidates, swaps and recovery: what they find, what they spend, and that no step of them looks at rows."""

import math

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

import kveil
from kveil import Ledger, PrivateKMeans
from kveil.desk.pool import Pool
from kveil.errors import KveilError, NoisyResultWarning
from kveil.methods.candidate_search import CandidateSearch
from kveil.methods.candidates import Candidates, means
from kveil.questions import saturating
from kveil.source.local import LocalSource
from kveil.testing import scripted
from kveil.tuning import Candidates as Tuning


def fitted(X, k=4, seed=1, **parameters):
    with scripted(seed):
        return PrivateKMeans(k, method="candidates", random_state=seed, **{"bounds": (-1, 1), **parameters}).fit(X)


@pytest.fixture(scope="module")
def places():
    return np.array([[-0.7, -0.7], [-0.6, 0.7], [0.7, -0.5], [0.5, 0.6]])


@pytest.fixture(scope="module")
def rows(places):
    rng = np.random.default_rng(3)
    return np.repeat(places, 2000, axis=0) + 0.05 * rng.standard_normal((8000, 2))


@pytest.mark.parametrize(("epsilon", "delta", "limit"), [(8.0, 0.0, 0.35), (math.inf, 0.0, 0.35)])
def test_separated_clusters_are_found(rows, places, epsilon, delta, limit):
    model = fitted(rows, epsilon=epsilon, delta=delta, tuning=Tuning(swaps=8))
    assert max(np.linalg.norm(model.cluster_centers_ - place, axis=1).min() for place in places) < limit


def test_digits_cost_less_than_the_first_study_of_this_method():
    """Its ratios, with exact counts and no shrinkage: 2.52, 2.15, 1.78 at epsilon 0.5, 1, 2."""
    X = load_digits().data / 16
    floor = min(KMeans(10, n_init=1, random_state=seed).fit(X).inertia_ for seed in range(5))
    for epsilon, limit in [(0.5, 2.52), (1.0, 2.15), (2.0, 1.78)]:
        costs = [-fitted(X, 10, seed, epsilon=epsilon, bounds=(0, 1)).score(X) for seed in range(3)]
        assert np.mean(costs) / floor < limit


@pytest.mark.parametrize("d", [1, 2, 5, 6, 40])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_budget_is_used_up_and_never_passed(d, delta):
    X = 0.3 * np.random.default_rng(2).standard_normal((600, d))
    for tuning in (None, Tuning(trials=2, repetitions=1)):
        ledger = Ledger.memory("exact", 1.0, delta, relation="add-remove")
        model = PrivateKMeans(3, epsilon=1.0, delta=delta, bounds=(-1, 1), method="candidates", ledger=ledger, tuning=tuning)
        before = model.guarantee(d)
        model.fit(X)
        assert (model.guarantee_.epsilon, model.guarantee_.charges) == (before.epsilon, before.charges)
        assert ledger.remaining().epsilon < 1e-3
        assert sum(draw.times for draw in model.guarantee_.draws) == model.release_.receipt["charges"]
        assert model.guarantee_.valid


def test_what_is_drawn_adds_up_to_the_pool(rows):
    """The receipts themselves: coins, choices, sizes and sums, in epsilon and in rho, come to the whole and not beyond."""
    for is_zcdp in (False, True):
        ledger = Ledger.memory("exact", 1.0, 1e-6 if is_zcdp else 0.0, relation="add-remove")
        X = np.hstack([rows, rows])
        model = PrivateKMeans(4, delta=1e-6 if is_zcdp else 0.0, bounds=(-1, 1), method="candidates", ledger=ledger)
        kept = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Candidates, "run", _keeping(kept, Candidates.run))
            model.fit(X)
        losses = [(r.charge.zcdp() if is_zcdp else r.charge.pure()) for r in kept["ticket"].receipts]
        assert kept["pool"].total * (1 - 1e-6) <= sum(losses) <= kept["pool"].total


def _keeping(kept, run):
    def wrapped(self, desk, rng):
        kept.update(pool=self.budget, ticket=self.budget._ticket)
        return run(self, desk, rng)

    return wrapped


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_people_and_replacement_are_charged_for(relation):
    X = np.c_[np.repeat(np.arange(50), 4), np.random.default_rng(0).random((200, 2))]
    source = kveil.read(X, columns=[1, 2], person=0, max_rows_per_person=3)
    model = PrivateKMeans(2, method="candidates", bounds=(0, 1), relation=relation).fit(source)
    drawn = [draw for draw in model.guarantee_.draws if draw.label == "active cubes"]
    assert drawn
    assert all((draw.norm, draw.sensitivity) == ("l1", 3 if relation == "add-remove" else 6) for draw in drawn)


def steps_of(X, monkeypatch, **parameters):
    """Everything a run does when its releases are fixed: parts and shapes of its answers, and shares of draws."""
    seen = []

    def fixed(name, answer):
        def release(self, part, raw, *rest):
            stated = (part.label, part.kind, part.length)
            seen.append((name, stated, rest, np.shape(raw) if name != "activate" else None))
            return answer(part, raw, *rest)

        return release

    answers = {
        "release": lambda part, raw, share: (
            np.full(np.shape(raw), 300.0) if part.kind == "counts" else np.ones(np.atleast_2d(raw).shape)
        ),
        "activate": lambda part, raw, n_cells, chance, share: np.arange(min(2, n_cells)),
        "choose": lambda part, raw, share: len(raw) // 2,
    }
    with monkeypatch.context() as patch:
        for name, answer in answers.items():
            patch.setattr(Pool, name, fixed(name, answer))
        model = PrivateKMeans(3, method="candidates", bounds=(0, 1), random_state=0, **parameters).fit(X)
    return seen, model.cluster_centers_.tobytes()


@pytest.mark.parametrize("d", [2, 8])
def test_with_the_same_releases_nothing_depends_on_the_rows(d, monkeypatch):
    """n straddles the integers of log n, or is 0: shapes, labels, shares and the result are the same."""
    X = np.random.default_rng(0).random((1097, d))
    expected = steps_of(X[:20], monkeypatch)
    assert len(expected[0]) > 8
    for n in (0, 1, 2, 7, 8, 21, 54, 55, 148, 149, 403, 404, 1096, 1097):
        assert steps_of(X[:n], monkeypatch) == expected


def test_steps_that_follow_the_number_of_rows_would_be_noticed(monkeypatch):
    """The guard: with n itself in place of a release, neighbours on either side of e**3 go different ways."""
    X = np.random.default_rng(0).random((21, 8))
    assert steps_of(X[:20], monkeypatch, expected_rows=20)[0] != steps_of(X, monkeypatch, expected_rows=21)[0]


@pytest.mark.parametrize("objective", ["k-means", "k-median"])
def test_the_search_keeps_centres_in_the_ball_and_serves_both_objectives(objective):
    from kveil.kernel.grid import Ball
    from kveil.kernel.loss import PrivacyUnit
    from kveil.methods.task import Task

    X = np.random.default_rng(0).standard_normal((500, 9))
    task = Task(6, None, 0, Ball(np.zeros(9), 1.0, 20), None, "add-remove", PrivacyUnit(), Tuning())
    pool = Pool(None, task.delta, "add-remove", task.unit, is_pure=True)
    search = CandidateSearch(pool.open(kveil.read(X), task.domain, None), task, Tuning(), objective, np.random.default_rng(1))
    frame, centers = search.found_in_projection(500.0, 0.5, 0.5)
    assert centers.shape == (6, 3)  # log(500)/2 = 3.1
    assert (np.sqrt((centers.astype(float) ** 2).sum(axis=1)) <= frame.radius).all()
    assert len(np.unique(centers, axis=0)) == 6


def test_too_few_candidates_are_filled_up_with_points_of_the_ball():
    model = fitted(np.zeros((0, 3)), k=9, epsilon=0.01)
    assert model.cluster_centers_.shape == (9, 3)
    assert np.isfinite(model.cluster_centers_).all()
    assert (np.abs(model.cluster_centers_) <= 1).all()


@pytest.mark.parametrize("epsilon", [0.5, 1000.0, math.inf])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(
    ("X", "k"),
    [
        (np.zeros((0, 2)), 3),
        (np.ones((1, 1)), 1),
        (np.full((50, 4), 0.25), 5),
        (np.full((20, 7), np.nan), 2),
        (np.array([[np.inf, 1.0], [2.0, -3.0]]), 4),
        (np.random.default_rng(0).random((40, 1)), 1),
        (np.full((5000, 3), 0.5), 2),
    ],
    ids=["no rows", "one row", "all equal", "missing", "infinite", "one column", "many and equal"],
)
def test_whatever_rows_hold_there_are_k_centres_inside_and_no_warning(X, k, epsilon, delta):
    import warnings

    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
        model = fitted(X, k, epsilon=epsilon, delta=delta)
    assert model.cluster_centers_.shape == (k, X.shape[1])
    assert (np.abs(model.cluster_centers_) <= 1).all()
    assert model.cluster_weights_.sum() == pytest.approx(1)
    assert model.cluster_errors_.shape == (k,)
    assert (model.cluster_errors_ >= 0).all()


LABELS = ("cluster sums", "best trial", "number of rows")


def test_several_trials_are_paid_for_and_one_is_chosen(rows):
    model = fitted(rows, epsilon=8.0, tuning=Tuning(trials=3))
    times = {label: sum(draw.times for draw in model.guarantee_.draws if draw.label == label) for label in LABELS}
    assert times == {"cluster sums": 3, "best trial": 1, "number of rows": 1}


def test_known_rows_need_no_counting(rows):
    model = fitted(rows, expected_rows=8000)
    assert model.guarantee_.draws
    assert not any(draw.label == "number of rows" for draw in model.guarantee_.draws)


@pytest.mark.parametrize("tuning", [
    {"kappa": 1.0}, {"kappa": 0}, {"repetitions": 0}, {"trials": 1.5}, {"dimension": 41}, {"levels": 31}, {"swaps": 0},
    {"most": -1}, {"nonzeros": 0}, {"eta": 1.0}, {"eta": 0}, {"recovery": "magic"}, {"recovery": "columns"},
    {"recovery": "threshold"}, {"nonzeros": 3},
])  # fmt: skip
def test_bad_constants_are_refused_before_anything_is_spent(tuning):
    ledger = Ledger.memory("untouched", 1.0, relation="add-remove")
    with pytest.raises(KveilError, match=next(iter(tuning))):
        PrivateKMeans(2, method="candidates", bounds=(0, 1), ledger=ledger, tuning=Tuning(**tuning)).fit(np.zeros((5, 2)))
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize("parameters", [
    {"epsilon": 2**-30}, {"epsilon": 2**-22, "delta": 1e-6}, {"tuning": Tuning(repetitions=10**9)},
])  # fmt: skip
def test_a_budget_too_small_to_share_is_refused_before_it_is_spent(parameters):
    ledger = Ledger.memory("untouched", 1.0, 1e-3 if "delta" in parameters else 0.0, relation="add-remove")
    with pytest.raises(KveilError, match="too small"):
        PrivateKMeans(2, method="candidates", bounds=(0, 1), ledger=ledger, **parameters).fit(np.zeros((5, 4)))
    assert ledger.spent().epsilon == 0


def test_means_shrink_to_the_mean_of_all_when_noise_explains_them():
    sizes, sums = np.array([100.0, 300.0, -4.0]), np.array([[100.0, 0.0], [300.0, 600.0], [0.0, 0.0]])
    weak = np.array([False, False, True])
    exact = means(sizes, sums, 0.0, weak, 10.0)
    assert exact[:2].tolist() == [[1.0, 0.0], [1.0, 2.0]]
    middle = sums.sum(axis=0) / sizes.sum()
    assert np.allclose(exact[2], middle)  # a cluster without rows
    some = means(sizes, sums, 5e4, weak, 10.0)
    assert some[0].tolist() == some[2].tolist() != some[1].tolist()  # noise explains where the small one is, not the large one
    assert np.allclose(means(sizes, sums, 1e12, weak, 10.0), 0.0)
    assert np.linalg.norm(means(sizes, sums * 1e6, 0.0, weak, 10.0), axis=1).max() <= 10.0 + 1e-9


def test_errors_are_the_length_of_the_noise_over_the_size(rows):
    """Without shrinkage in the way: one cluster of 8000 rows, in the units of the data."""
    errors, misses = [], []
    for seed in range(40):
        model = fitted(rows, 1, seed, epsilon=1.0, tuning=Tuning(levels=1))
        errors.append(model.cluster_errors_[0])
        misses.append(np.linalg.norm(model.cluster_centers_[0] - rows.mean(axis=0)))
    assert 0.5 < np.sqrt(np.mean(np.square(misses))) / np.mean(errors) < 1.5


def test_costs_that_choices_are_made_by_are_merged_so_that_they_cannot_wrap(monkeypatch):
    merged = {}
    ordinary = LocalSource.map_reduce

    def spied(self, kernel, state, *, grid, combine=np.add):
        merged[type(state).__name__] = combine
        return ordinary(self, kernel, state, grid=grid, combine=combine)

    monkeypatch.setattr(LocalSource, "map_reduce", spied)
    rows = np.random.default_rng(0).random((300, 2))
    PrivateKMeans(2, epsilon=50.0, bounds=(0, 1), method="candidates", tuning=Tuning(trials=2), random_state=0).fit(rows)
    assert merged["SwapCosts"] is merged["SetCosts"] is saturating.add
